//! `plimsoll doctor`: what this machine offers, and the configuration in force. It changes nothing
//! and needs no device. With `--measure` the Python package says the same and then measures
//! (`plimsoll/_measured_costs.py`): collecting Python's garbage can be timed nowhere else.

use std::ffi::OsString;

use anstream::println;
use plimsoll_core::{ByteSize, Device, Result};
use plimsoll_kernels::cpu::simd::{Isa, isa};
use plimsoll_memory::{CONFIGURATION_VARIABLE, Configuration, GivenBy, LimitKind, SystemMemory};
use plimsoll_tensor::{device, memory, parallel};

use super::python;

pub(crate) fn run() -> Result<()> {
    println!("plimsoll {}", env!("CARGO_PKG_VERSION"));
    processor();
    system_memory();
    graphics_processors();
    configuration()
}

/// Becomes the Python that does all this and measures; the status is its own.
pub(crate) fn measure() -> u8 {
    python::start_package(&["doctor", "--measure"].map(OsString::from))
}

fn line(name: &str, value: impl std::fmt::Display) {
    println!("  {name:28} {value}");
}

fn heading(name: &str) {
    println!("\n\x1b[1m{name}\x1b[0m");
}

fn processor() {
    heading("processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    line("cores we may use", cores);
    line("kernel threads", parallel::threads());
    let levels: Vec<String> = Isa::available().map(|level| format!("{level:?}")).collect();
    line("SIMD in use", format!("{:?} (of {})", isa(), levels.join(", ")));
}

fn system_memory() {
    heading("memory");
    let shown = |bytes: Option<usize>| match bytes {
        Some(bytes) => ByteSize(bytes).to_string(),
        None => "not known".to_string(),
    };
    let system = SystemMemory::read();
    line("physical", shown(system.physical_bytes));
    line("available", shown(system.available_bytes));
    line("container's limit", system.cgroup_limit_bytes.map_or("none".into(), |b| shown(Some(b))));
    line("this process", shown(system.resident_bytes));
    let arena = memory::arena(Device::cpu());
    let limit = arena.limit().map(|(bytes, kind)| {
        let why = match kind {
            LimitKind::Limit => "as set",
            LimitKind::MemoryFraction => "the share that was set",
            _ => "by default",
        };
        format!("{} ({why})", ByteSize(bytes))
    });
    line("most we may reserve", limit.unwrap_or_else(|| "no limit".to_string()));
}

fn graphics_processors() {
    heading("GPUs");
    if let Some(why) = device::cuda_unavailable() {
        println!("  none: {why}");
    }
    for index in 0..device::cuda_count() {
        let name = format!("cuda:{index}");
        match device::cuda(index).and_then(device::cuda_memory_info) {
            Ok((free, total)) => {
                line(&name, format!("{} free of {}", ByteSize(free), ByteSize(total)));
            }
            Err(error) => line(&name, error),
        }
    }
}

/// The settings that were given, then the defaults; a mistake in them is the command's error.
fn configuration() -> Result<()> {
    heading("configuration");
    let configuration = Configuration::from_environment()?;
    let mut settings = configuration.describe();
    settings.sort_by_key(|setting| setting.given_by == GivenBy::Default);
    for setting in settings {
        let given_by = match setting.given_by {
            GivenBy::Default => String::new(),
            other => format!("  (from {other})"),
        };
        line(setting.key, format!("{}{given_by}", setting.value));
    }
    println!("\nset with {CONFIGURATION_VARIABLE}=key:value,key:value or a TOML file");
    Ok(())
}
