//! Why a GPU is not busy, as far as the figures of it and of its processes tell. It reads nothing
//! itself; where the figures support no cause, none is named.

use plimsoll_core::ByteSize;

use super::gpus::{Gpu, GpuProcess};
use super::host_use::HostUse;

/// A GPU that runs a kernel less than this share of the time waits for something.
const LOW_BUSY: f64 = 70.0;
/// A GPU that is always busy but draws less than this share of its power runs small kernels.
const LOW_POWER: f64 = 0.45;
const ALWAYS_BUSY: f64 = 90.0;
/// A thread that keeps a processor busy for this share of the time is what others wait for.
const BUSY_CORE: f64 = 0.8;
/// A process that works less than this waits itself.
const IDLE_CORE: f64 = 0.3;
/// A disk that is read this fast is at work.
const MUCH_READ: f64 = 100.0 * (1 << 20) as f64;
/// Memory in use beyond what the driver itself takes.
const IN_USE: u64 = 1 << 30;

/// What is likely, in words; `None` if the GPU is busy or nothing tells.
pub(super) fn likely(gpu: &Gpu) -> Option<String> {
    let busy = gpu.busy_percent?;
    let Some(largest) = gpu.processes.iter().max_by_key(|process| process.bytes) else {
        return (busy < LOW_BUSY).then(|| match gpu.used_bytes {
            used if used > IN_USE => {
                "memory is in use, but no process is listed: it belongs to another container or user"
                    .to_string()
            }
            _ => "idle: no process uses it".to_string(),
        });
    };
    if busy >= ALWAYS_BUSY {
        return small_kernels(gpu);
    }
    if busy >= LOW_BUSY {
        return None;
    }
    let host = largest.host.as_ref()?;
    Some(format!("busy {busy:.0}% of the time; {}", waits_for(largest, host)))
}

/// Kernels run all the time, but leave most of the chip unused.
fn small_kernels(gpu: &Gpu) -> Option<String> {
    let (watts, limit) = (gpu.power_watts?, gpu.power_limit_watts.filter(|limit| *limit > 0.0)?);
    (watts / limit < LOW_POWER).then(|| {
        format!(
            "a kernel runs {:.0}% of the time, but at {:.0}% of the power: kernels are likely too small to fill \
             the GPU (small batches or shapes)",
            gpu.busy_percent.unwrap_or_default(),
            100.0 * watts / limit
        )
    })
}

fn waits_for(process: &GpuProcess, host: &HostUse) -> String {
    let pid = process.pid;
    let each = host.child_cores / host.children.max(1) as f64;
    if host.children > 0 && each >= BUSY_CORE {
        return format!(
            "input-bound: the {} workers of process {pid} keep {:.1} processors busy, so batches are made as fast as \
             they can be: more workers, or less work for a batch",
            host.children, host.child_cores
        );
    }
    if host.cores >= BUSY_CORE {
        return format!(
            "launch-bound: process {pid} keeps {:.1} processors busy while the GPU waits: larger batches, fewer and \
             larger operations (compile, CUDA graphs), or input made in workers",
            host.cores
        );
    }
    if host.read_bytes_per_second >= MUCH_READ {
        return format!(
            "input-bound: process {pid} reads {} a second from disks and hardly computes meanwhile",
            ByteSize(host.read_bytes_per_second as usize)
        );
    }
    if host.cores < IDLE_CORE && host.child_cores < IDLE_CORE {
        return format!(
            "process {pid} waits too ({:.1} processors busy): for a network, a lock, other ranks or a person, not for \
             computing",
            host.cores
        );
    }
    format!(
        "no single cause is seen: process {pid} keeps {:.1} processors busy, its children {:.1}",
        host.cores, host.child_cores
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(busy: f64, watts: f64, host: Option<HostUse>) -> Gpu {
        let process = GpuProcess { pid: 42, name: None, bytes: Some(1 << 30), host };
        Gpu {
            busy_percent: Some(busy),
            power_watts: Some(watts),
            power_limit_watts: Some(700.0),
            used_bytes: 2 << 30,
            processes: vec![process],
            ..Gpu::default()
        }
    }

    fn used(cores: f64, children: usize, child_cores: f64, read: f64) -> Option<HostUse> {
        Some(HostUse { cores, children, child_cores, read_bytes_per_second: read })
    }

    #[test]
    fn each_cause_needs_its_figures() {
        let said = |busy, watts, host| likely(&gpu(busy, watts, host)).unwrap_or_default();
        assert!(
            said(20.0, 200.0, used(1.02, 0, 0.0, 0.0))
                .contains("launch-bound: process 42 keeps 1.0")
        );
        assert!(said(20.0, 200.0, used(0.4, 4, 3.9, 0.0)).contains("input-bound: the 4 workers"));
        assert!(said(20.0, 200.0, used(0.2, 0, 0.0, 3e8)).contains("reads 286.10 MiB a second"));
        assert!(said(20.0, 200.0, used(0.1, 4, 0.1, 0.0)).contains("waits too"));
        assert!(said(20.0, 200.0, used(0.5, 0, 0.0, 0.0)).contains("no single cause"));
        assert!(
            said(99.0, 200.0, None).contains("at 29% of the power: kernels are likely too small")
        );
        // Busy, or nothing known of the process: nothing is said.
        assert_eq!(said(99.0, 600.0, None), "");
        assert_eq!(said(80.0, 200.0, used(1.0, 0, 0.0, 0.0)), "");
        assert_eq!(said(20.0, 200.0, None), "");
    }

    #[test]
    fn a_gpu_without_processes_is_idle_or_not_ours_to_see() {
        let mut free = gpu(0.0, 80.0, None);
        free.processes.clear();
        assert!(likely(&free).unwrap().contains("no process is listed"));
        free.used_bytes = 4 << 20;
        assert_eq!(likely(&free).unwrap(), "idle: no process uses it");
        free.busy_percent = None;
        assert_eq!(likely(&free), None);
    }
}
