//! Stacks as text: one line a stack, outermost frame first, frames between semicolons, a number of
//! microseconds at its end. Flame graph tools read it.

use std::io::Write;
use std::path::Path;

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use crate::event::{Event, EventKind};
use crate::recording::Recording;

/// What the numbers behind stacks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackMetric {
    /// Host time of the event itself: `self_cpu_time_total`.
    SelfCpuTime,
    /// Time of the kernels that it launched: `self_cuda_time_total`.
    SelfDeviceTime,
}

impl StackMetric {
    /// The metric by PyTorch's name.
    ///
    /// ```
    /// use plimsoll_profile::StackMetric;
    /// assert_eq!(StackMetric::parse("self_cpu_time_total")?, StackMetric::SelfCpuTime);
    /// assert!(StackMetric::parse("count").is_err());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn parse(name: &str) -> Result<StackMetric> {
        match name {
            "self_cpu_time_total" => Ok(StackMetric::SelfCpuTime),
            "self_cuda_time_total"
            | "self_xpu_time_total"
            | "self_device_time_total"
            | "self_privateuse1_time_total" => Ok(StackMetric::SelfDeviceTime),
            _ => Err(Error::invalid_argument(
                "metric should be one of: ['self_cpu_time_total', 'self_cuda_time_total', \
                 'self_xpu_time_total', 'self_privateuse1_time_total']",
            )),
        }
    }
}

/// A line of a program as PyTorch's profiler writes it.
#[doc(hidden)]
pub fn frame_words(site: Site) -> String {
    match site.resolve() {
        None => site.to_string(),
        Some(site) if site.function.is_empty() => format!("{}({})", site.file, site.line),
        Some(site) => format!("{}({}): {}", site.file, site.line, site.function),
    }
}

impl Recording {
    /// The stacks as text. Where a binding gave whole stacks, a line has its frames, as PyTorch's;
    /// otherwise the events that lie in each other, and the line of the program that called.
    ///
    /// ```
    /// use plimsoll_profile::{Profile, StackMetric, range};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let recording = Profile::new().stacks(true).run(|| {
    ///     let _range = range("load");
    ///     Tensor::ones(&[1 << 16], DType::F32)?.exp().map(drop)
    /// })?;
    /// let stacks = recording.stacks(StackMetric::SelfCpuTime);
    /// assert!(stacks.lines().any(|line| line.starts_with("load;aten::exp;")), "{stacks}");
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn stacks(&self, metric: StackMetric) -> String {
        let mut text = String::new();
        for event in self.events().iter().filter(|event| !event.is_on_device()) {
            let us = match metric {
                StackMetric::SelfCpuTime => event.self_cpu_ns / 1000,
                StackMetric::SelfDeviceTime => event.self_device_ns / 1000,
            };
            let frames = self.frames_of(event);
            if us > 0 && !frames.is_empty() {
                let frames: Vec<String> = frames.iter().map(|frame| plain(frame)).collect();
                text.push_str(&format!("{} {us}\n", frames.join(";")));
            }
        }
        text
    }

    /// Outermost first.
    fn frames_of(&self, event: &Event) -> Vec<String> {
        let lines = event.stack.iter().rev().map(|&site| frame_words(site));
        if self.asked.frames.is_some() {
            return lines.collect();
        }
        let mut names = Vec::new();
        let mut next = Some(event).filter(|event| event.kind != EventKind::Memory);
        while let Some(event) = next {
            names.push(event.name.clone());
            next = event.parent.map(|parent| &self.events()[parent]);
        }
        names.reverse();
        names.into_iter().chain(lines).collect()
    }

    /// Writes [`Recording::stacks`] to a file: PyTorch's `export_stacks`.
    pub fn export_stacks(&self, path: impl AsRef<Path>, metric: StackMetric) -> Result<()> {
        let path = path.as_ref();
        let write = || std::fs::File::create(path)?.write_all(self.stacks(metric).as_bytes());
        write().map_err(|cause: std::io::Error| {
            Error::invalid_argument(format!("cannot write {}", path.display()))
                .in_operation("export_stacks")
                .because(cause)
        })
    }
}

/// A frame without what ends one.
fn plain(frame: &str) -> String {
    frame.replace([' ', ';', '\t', '\n'], "_")
}
