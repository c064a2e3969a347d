//! Events added up by name: PyTorch's `key_averages`.

use std::collections::HashMap;

use plimsoll_core::{Device, DeviceKind, Error, Result};

use crate::event::{Event, EventKind};
use crate::stacks::frame_words;

/// What tells rows apart beside the name.
///
/// ```
/// use plimsoll_profile::{Grouping, Profile};
/// use plimsoll_tensor::{DType, Tensor};
/// let recording = Profile::new().shapes(true).run(|| {
///     Tensor::ones(&[2], DType::F32)?.exp()?;
///     Tensor::ones(&[3], DType::F32)?.exp().map(drop)
/// })?;
/// let rows = |grouping| recording.averages(grouping).rows().len();
/// assert_eq!(rows(Grouping::default().input_shapes(true)), rows(Grouping::default()) + 1);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Grouping {
    input_shapes: bool,
    stack_frames: usize,
}

impl Grouping {
    /// Also by shapes of operands: `group_by_input_shape`.
    #[must_use]
    pub fn input_shapes(self, input_shapes: bool) -> Grouping {
        Grouping { input_shapes, ..self }
    }

    /// Also by the innermost lines of the stack, that many: `group_by_stack_n`.
    #[must_use]
    pub fn stack_frames(self, stack_frames: usize) -> Grouping {
        Grouping { stack_frames, ..self }
    }
}

/// Events of one name, added up. Times are in microseconds, as PyTorch has them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Average {
    /// The name.
    pub key: String,
    /// What they are.
    pub kind: EventKind,
    /// Where they ran: the host, or the kernels' device.
    pub device: Device,
    /// How many.
    pub count: u64,
    /// Host time.
    pub cpu_time_us: f64,
    /// Host time outside of events inside.
    pub self_cpu_time_us: f64,
    /// Time of kernels.
    pub device_time_us: f64,
    /// Time of kernels, without those of events inside.
    pub self_device_time_us: f64,
    /// Change of allocated bytes in host memory.
    pub cpu_bytes: i64,
    /// The same, without events inside.
    pub self_cpu_bytes: i64,
    /// Change of allocated bytes on other devices.
    pub device_bytes: i64,
    /// The same, without events inside.
    pub self_device_bytes: i64,
    /// Shapes of operands, if they tell rows apart.
    pub input_shapes: Option<Vec<Vec<usize>>>,
    /// Lines of the stack in words, innermost first, as many as tell rows apart.
    pub stack: Vec<String>,
    /// Floating point operations.
    pub flops: u64,
    /// Whether the first of them lies in no other event.
    pub top_level: bool,
}

impl Average {
    /// A row without figures, for bindings.
    #[doc(hidden)]
    pub fn named(key: String, kind: EventKind, device: Device) -> Average {
        Average {
            key,
            kind,
            device,
            count: 0,
            cpu_time_us: 0.0,
            self_cpu_time_us: 0.0,
            device_time_us: 0.0,
            self_device_time_us: 0.0,
            cpu_bytes: 0,
            self_cpu_bytes: 0,
            device_bytes: 0,
            self_device_bytes: 0,
            input_shapes: None,
            stack: Vec::new(),
            flops: 0,
            top_level: true,
        }
    }

    /// A row of one event.
    pub(crate) fn of(event: &Event) -> Average {
        let us = |ns: u64| ns as f64 / 1e3;
        Average {
            key: event.key().to_string(),
            kind: event.kind,
            device: event.device,
            count: 1,
            cpu_time_us: us(event.cpu_ns()),
            self_cpu_time_us: us(event.self_cpu_ns),
            device_time_us: us(event.device_ns),
            self_device_time_us: us(event.self_device_ns),
            cpu_bytes: event.cpu_bytes,
            self_cpu_bytes: event.self_cpu_bytes,
            device_bytes: event.device_bytes,
            self_device_bytes: event.self_device_bytes,
            input_shapes: None,
            stack: Vec::new(),
            flops: event.flops,
            top_level: event.parent.is_none(),
        }
    }

    fn add(&mut self, other: &Average) {
        self.count += other.count;
        self.cpu_time_us += other.cpu_time_us;
        self.self_cpu_time_us += other.self_cpu_time_us;
        self.device_time_us += other.device_time_us;
        self.self_device_time_us += other.self_device_time_us;
        self.cpu_bytes += other.cpu_bytes;
        self.self_cpu_bytes += other.self_cpu_bytes;
        self.device_bytes += other.device_bytes;
        self.self_device_bytes += other.self_device_bytes;
        self.flops += other.flops;
    }

    /// Host time of one call.
    pub fn cpu_time_avg_us(&self) -> f64 {
        self.cpu_time_us / self.count as f64
    }

    /// Kernel time of one call.
    pub fn device_time_avg_us(&self) -> f64 {
        self.device_time_us / self.count as f64
    }

    /// The figure that PyTorch's sort key names, under its old (`cuda_`) or new (`device_`) name.
    pub(crate) fn figure(&self, key: &str) -> Result<f64> {
        let device = ["cuda", "xpu", "privateuse1"]
            .iter()
            .fold(key.to_string(), |key, old| key.replace(old, "device"));
        Ok(match device.as_str() {
            "cpu_time" => self.cpu_time_avg_us(),
            "device_time" => self.device_time_avg_us(),
            "cpu_time_total" => self.cpu_time_us,
            "device_time_total" => self.device_time_us,
            "self_cpu_time_total" => self.self_cpu_time_us,
            "self_device_time_total" => self.self_device_time_us,
            "cpu_memory_usage" => self.cpu_bytes as f64,
            "device_memory_usage" => self.device_bytes as f64,
            "self_cpu_memory_usage" => self.self_cpu_bytes as f64,
            "self_device_memory_usage" => self.self_device_bytes as f64,
            "count" => self.count as f64,
            "flops" => self.flops as f64,
            _ => {
                return Err(Error::invalid_argument(format!(
                    "rows have no figure `{key}` to sort by; use cpu_time, cpu_time_total, \
                     self_cpu_time_total, cpu_memory_usage, self_cpu_memory_usage, the same with \
                     `device` or `cuda` for `cpu`, count or flops"
                ))
                .in_operation("table"));
            }
        })
    }
}

/// Rows, in the order in which their names first appeared.
#[derive(Clone, Debug)]
pub struct Averages {
    pub(crate) rows: Vec<Average>,
    pub(crate) memory: bool,
    pub(crate) flops: bool,
}

impl Averages {
    pub(crate) fn new(events: &[Event], grouping: Grouping, memory: bool, flops: bool) -> Averages {
        let mut rows: Vec<Average> = Vec::new();
        let mut places = HashMap::new();
        for event in events {
            let shapes = grouping.input_shapes.then(|| event.input_shapes.clone());
            let stack = &event.stack[..grouping.stack_frames.min(event.stack.len())];
            let annotation = event.kind == EventKind::Range;
            let key =
                (event.key().to_string(), event.device.kind(), annotation, shapes, stack.to_vec());
            let row = Average::of(event);
            match places.get(&key) {
                Some(&place) => {
                    let into: &mut Average = &mut rows[place];
                    into.add(&row);
                }
                None => {
                    let stack = stack.iter().map(|&site| frame_words(site)).collect();
                    let input_shapes = key.3.clone();
                    places.insert(key, rows.len());
                    rows.push(Average { input_shapes, stack, ..row });
                }
            }
        }
        Averages { rows, memory, flops }
    }

    /// Rows as they are given, for bindings.
    #[doc(hidden)]
    pub fn from_rows(rows: Vec<Average>, memory: bool, flops: bool) -> Averages {
        Averages { rows, memory, flops }
    }

    /// The rows.
    pub fn rows(&self) -> &[Average] {
        &self.rows
    }

    /// All rows in one, named `Total`; `None` if there are none.
    pub fn total(&self) -> Option<Average> {
        let (first, rest) = self.rows.split_first()?;
        let mut total = first.clone();
        rest.iter().for_each(|row| total.add(row));
        let (input_shapes, stack) = (None, Vec::new());
        Some(Average { key: "Total".to_string(), input_shapes, stack, ..total })
    }

    /// The kind of device beside the host, as tables head it.
    pub(crate) fn device_word(&self) -> Option<String> {
        let on_device = self.rows.iter().find(|row| row.kind == EventKind::Kernel);
        on_device.map(|row| device_word(row.device.kind()).to_uppercase())
    }
}

/// What a kind of device is called.
pub(crate) fn device_word(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Cuda => "cuda",
        DeviceKind::StandIn => "standin",
    }
}
