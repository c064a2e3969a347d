//! `plimsoll top --device`: memory, utilisation and processes of each GPU, by NVIDIA's management
//! library (NVML), which is loaded when it is asked for. Why a GPU is not busy is told by
//! `cause.rs`.

use std::time::{Duration, Instant};

use anstream::println;
use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use plimsoll_core::{ByteSize, Error, ErrorKind, Result};

use super::cause::likely;
use super::host_use::{HostUse, Look, name_of};
use super::screen::{ONCE, Size, bold, start_of};
use super::{LOOK, terminal};

/// Where the library is: the name that drivers install. The one without a number comes with
/// development packages only.
const LIBRARY: &str = if cfg!(windows) { "nvml.dll" } else { "libnvidia-ml.so.1" };
/// The driver measures utilisation over sixths of a second or longer: asked so often, the mean
/// misses nothing.
const APART: Duration = Duration::from_millis(150);
/// Processes of a GPU that are listed.
const MOST_PROCESSES: usize = 8;

/// One GPU over one look. What the driver does not tell is `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct Gpu {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) used_bytes: u64,
    pub(super) total_bytes: u64,
    /// The share of the time in which at least one kernel ran.
    pub(super) busy_percent: Option<f64>,
    /// The share of the time in which its memory was read or written.
    pub(super) memory_busy_percent: Option<f64>,
    pub(super) power_watts: Option<f64>,
    pub(super) power_limit_watts: Option<f64>,
    pub(super) processes: Vec<GpuProcess>,
}

/// A process that has memory on a GPU.
#[derive(Clone, Debug, Default)]
pub(super) struct GpuProcess {
    pub(super) pid: u32,
    pub(super) name: Option<String>,
    pub(super) bytes: Option<u64>,
    /// What it does on the host, where that can be seen.
    pub(super) host: Option<HostUse>,
}

pub(super) fn print_once() -> Result<()> {
    let nvml = open(LIBRARY)?;
    let gpus = Reading::of(&nvml).until(LOOK)?;
    lines(&gpus, ONCE).iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Into a pipe: a frame every so often, until nobody reads them.
pub(super) fn print_every(every: Duration) -> Result<()> {
    let nvml = open(LIBRARY)?;
    let mut reading = Reading::of(&nvml);
    loop {
        lines(&reading.until(every)?, ONCE).iter().for_each(|line| println!("{line}"));
        println!();
    }
}

pub(super) fn show(every: Duration) -> Result<()> {
    let nvml = open(LIBRARY)?;
    let mut reading = Reading::of(&nvml);
    // Keys are not read meanwhile.
    let look = (every / 2).min(2 * APART);
    terminal::show(every, |size: Size| Ok(lines(&reading.until(look)?, size)))
}

fn open(library: &str) -> Result<Nvml> {
    Nvml::builder().lib_path(library.as_ref()).init().map_err(|cause| {
        let message = match cause {
            NvmlError::LibloadingError(why) => format!(
                "the GPUs cannot be read: NVIDIA's management library (NVML, `{library}`) is not here: there is no \
                 NVIDIA driver, or the container has no part of it ({why})"
            ),
            NvmlError::DriverNotLoaded => {
                "the GPUs cannot be read: NVIDIA's driver is installed, but not loaded".to_string()
            }
            other => format!("the GPUs cannot be read: NVIDIA's management library says: {other}"),
        };
        Error::new(ErrorKind::Driver, message)
    })
}

/// The GPUs from one reading to the next.
struct Reading<'nvml> {
    nvml: &'nvml Nvml,
    before: Look,
}

impl Reading<'_> {
    fn of(nvml: &Nvml) -> Reading<'_> {
        Reading { nvml, before: Look::now() }
    }

    /// Reads for so long; processes are seen from the reading before.
    fn until(&mut self, over: Duration) -> Result<Vec<Gpu>> {
        let count = self.nvml.device_count().map_err(failed)?;
        let mut busy = vec![Busy::default(); count as usize];
        let began = Instant::now();
        loop {
            for (index, busy) in (0..count).zip(&mut busy) {
                busy.add(self.nvml, index);
            }
            match over.checked_sub(began.elapsed()) {
                Some(left) => std::thread::sleep(left.min(APART)),
                None => break,
            }
        }
        let after = Look::now();
        let gpus = (0..count).zip(&busy).map(|(index, busy)| {
            gpu(self.nvml, index, busy, |pid| self.before.until(&after, pid)).map_err(failed)
        });
        let gpus = gpus.collect::<Result<Vec<Gpu>>>();
        self.before = after;
        gpus
    }
}

fn failed(cause: NvmlError) -> Error {
    Error::new(ErrorKind::Driver, format!("the GPUs cannot be read: {cause}"))
}

/// Sums of what the driver says of utilisation, in percent.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    kernels: f64,
    memory: f64,
    samples: u32,
}

impl Busy {
    fn add(&mut self, nvml: &Nvml, index: u32) {
        if let Ok(now) = nvml.device_by_index(index).and_then(|gpu| gpu.utilization_rates()) {
            self.kernels += f64::from(now.gpu);
            self.memory += f64::from(now.memory);
            self.samples += 1;
        }
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.samples > 0).then(|| sum / f64::from(self.samples))
    }
}

fn gpu(
    nvml: &Nvml,
    index: u32,
    busy: &Busy,
    host: impl Fn(u32) -> Option<HostUse>,
) -> Result<Gpu, NvmlError> {
    let gpu = nvml.device_by_index(index)?;
    let memory_info = gpu.memory_info()?;
    let watts = |milliwatts: Result<u32, NvmlError>| Some(f64::from(milliwatts.ok()?) / 1e3);
    let mut processes: Vec<GpuProcess> = gpu
        .running_compute_processes()
        .unwrap_or_default()
        .into_iter()
        .map(|process| GpuProcess {
            pid: process.pid,
            name: name_of(process.pid),
            bytes: match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
            host: host(process.pid),
        })
        .collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.bytes));
    Ok(Gpu {
        index,
        name: gpu.name()?,
        used_bytes: memory_info.used,
        total_bytes: memory_info.total,
        busy_percent: busy.mean(busy.kernels),
        memory_busy_percent: busy.mean(busy.memory),
        power_watts: watts(gpu.power_usage()),
        power_limit_watts: watts(gpu.enforced_power_limit()),
        processes,
    })
}

/// The frame.
fn lines(gpus: &[Gpu], size: Size) -> Vec<String> {
    let width = size.columns.max(40);
    let mut lines = Vec::new();
    if gpus.is_empty() {
        lines.push("NVIDIA's driver is here, but no GPU".to_string());
    }
    for gpu in gpus {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(bold(&start_of(&format!("GPU {}  {}", gpu.index, gpu.name), width)));
        lines.push(start_of(&figures(gpu), width));
        for process in gpu.processes.iter().take(MOST_PROCESSES) {
            lines.push(process_line(process, width));
        }
        if gpu.processes.len() > MOST_PROCESSES {
            lines.push(format!("  and {} more processes", gpu.processes.len() - MOST_PROCESSES));
        }
        if let Some(why) = likely(gpu) {
            lines.extend(wrapped(&why, width, "  likely: "));
        }
    }
    lines.truncate(size.rows);
    lines
}

fn figures(gpu: &Gpu) -> String {
    let percent =
        |value: Option<f64>| value.map_or("unknown".to_string(), |value| format!("{value:.0}%"));
    let mut text = format!(
        "  memory {} of {}  kernels {}  memory access {}",
        ByteSize(gpu.used_bytes as usize),
        ByteSize(gpu.total_bytes as usize),
        percent(gpu.busy_percent),
        percent(gpu.memory_busy_percent),
    );
    match (gpu.power_watts, gpu.power_limit_watts) {
        (Some(watts), Some(limit)) => text += &format!("  {watts:.0} of {limit:.0} W"),
        (Some(watts), None) => text += &format!("  {watts:.0} W"),
        _ => {}
    }
    text
}

fn process_line(process: &GpuProcess, width: usize) -> String {
    let bytes = process.bytes.map_or("-".to_string(), |b| ByteSize(b as usize).to_string());
    let name = process.name.as_deref().unwrap_or("not visible from here");
    let host = process.host.as_ref().map_or(String::new(), |host| {
        format!(", {:.1} processors busy", host.cores + host.child_cores)
    });
    start_of(&format!("  {:>8} {bytes:>11}  {name}{host}", process.pid), width)
}

/// Words in lines of a width, the first after `start` and the others below it.
fn wrapped(text: &str, width: usize, start: &str) -> Vec<String> {
    let indent = " ".repeat(start.chars().count());
    let mut lines = vec![start.trim_end().to_string()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is a first line");
        if last.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{indent}{word}"));
        } else {
            *last += &format!(" {word}");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let error = open("libnvidia-ml-that-is-not-there.so").map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("NVML, `libnvidia-ml-that-is-not-there.so`) is not here"), "{said}");
        assert!(said.contains("there is no NVIDIA driver"), "{said}");
    }

    #[test]
    fn a_frame_has_every_figure_within_80_columns() {
        let host = HostUse { cores: 1.0, ..HostUse::default() };
        let process = GpuProcess {
            pid: 4711,
            name: Some("python train.py".to_string()),
            bytes: Some(11 << 30),
            host: Some(host),
        };
        let hidden = GpuProcess { pid: 9, ..GpuProcess::default() };
        let gpu = Gpu {
            index: 0,
            name: "NVIDIA H200".to_string(),
            used_bytes: 12 << 30,
            total_bytes: 140 << 30,
            busy_percent: Some(33.6),
            memory_busy_percent: Some(5.0),
            power_watts: Some(180.2),
            power_limit_watts: Some(700.0),
            processes: vec![process, hidden],
        };
        let unknown = Gpu { index: 1, name: "another".to_string(), ..Gpu::default() };
        let told = lines(&[gpu, unknown], ONCE);
        let plain: Vec<String> =
            told.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert!(plain.iter().all(|line| line.chars().count() <= 80), "{plain:#?}");
        assert_eq!(plain[0], "GPU 0  NVIDIA H200");
        assert_eq!(
            plain[1],
            "  memory 12.00 GiB of 140.00 GiB  kernels 34%  memory access 5%  180 of 700 W"
        );
        assert_eq!(plain[2], "      4711   11.00 GiB  python train.py, 1.0 processors busy");
        assert_eq!(plain[3], "         9           -  not visible from here");
        assert!(plain[4].starts_with("  likely: busy 34% of the time; launch-bound: process 4711"));
        assert!(plain[5].starts_with("          "));
        assert!(
            plain.contains(&"  memory 0 B of 0 B  kernels unknown  memory access unknown".into())
        );
        assert_eq!(lines(&[], ONCE), ["NVIDIA's driver is here, but no GPU"]);
    }
}
