//! A device's memory over time: a thread samples it beside the program, and the peak is the
//! allocator's own count, so that none falls between two samples. What was sampled is in
//! `series.rs`, its picture in `chart.rs`; what a part of a program took in `../tracker.rs`.

mod chart;
mod series;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{PeakScope, SystemMemory};

use crate::lock::Mutex;
use series::Samples;
pub use series::{MemoryPeak, MemorySample, MemorySeries};

/// Samples the memory of a device in a thread of its own, from [`MemoryMonitor::start`] to
/// [`MemoryMonitor::stop`]. Dropping it ends it too.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory::MemoryMonitor};
/// use std::time::Duration;
/// let own = device::private_cpu(&Default::default())?;
/// let monitor = MemoryMonitor::start(own, Duration::from_secs(60))?;
/// drop(Tensor::zeros(&[1 << 18], (DType::F32, own))?); // gone before the next sample
/// let series = monitor.stop();
/// assert_eq!(series.peak.allocated_bytes, 1 << 20);
/// assert_eq!(series.samples.len(), 2); // the first and the last
/// assert!(series.to_csv().starts_with("seconds,allocated_bytes,"));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct MemoryMonitor {
    device: Device,
    scope: PeakScope,
    shared: Arc<Shared>,
    /// Dropped to end the thread.
    going: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread: a forked one has not.
    process: u32,
}

/// What the thread and its owner share.
struct Shared {
    device: Device,
    began: Instant,
    samples: Mutex<Samples>,
}

impl MemoryMonitor {
    /// Begins to sample every `interval`; the first sample is taken now. Fails if the interval is 0
    /// or the system gives no thread.
    pub fn start(device: Device, interval: Duration) -> Result<MemoryMonitor> {
        if interval.is_zero() {
            return Err(Error::invalid_argument("the interval of a monitor must be above 0"));
        }
        let scope = super::peak_scope(device);
        let samples = Mutex::new(Samples::every(interval));
        let shared = Arc::new(Shared { device, began: Instant::now(), samples });
        shared.sample();
        let (going, ended) = mpsc::channel::<()>();
        let sampled = shared.clone();
        let run = move || {
            let every = || sampled.samples.lock().every;
            while ended.recv_timeout(every()) == Err(RecvTimeoutError::Timeout) {
                sampled.sample();
            }
        };
        let thread = std::thread::Builder::new().name("plimsoll-monitor".to_string()).spawn(run);
        let thread = thread.map_err(|error| {
            Error::driver("the system gives no thread for a monitor").because(error)
        })?;
        let (going, thread) = (Some(going), Some(thread));
        Ok(MemoryMonitor { device, scope, shared, going, thread, process: std::process::id() })
    }

    /// What was sampled so far.
    ///
    /// ```
    /// use plimsoll_tensor::{device, memory::MemoryMonitor};
    /// use std::time::Duration;
    /// let own = device::private_cpu(&Default::default())?;
    /// let monitor = MemoryMonitor::start(own, Duration::from_secs(60))?;
    /// assert_eq!(monitor.so_far().samples.len(), 1);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn so_far(&self) -> MemorySeries {
        let samples = self.shared.samples.lock().taken.clone();
        let most = |of: fn(&MemorySample) -> usize| samples.iter().map(of).max().unwrap_or(0);
        let peak = MemoryPeak {
            allocated_bytes: self.scope.allocated_bytes_peak(),
            reserved_bytes: self.scope.reserved_bytes_peak(),
            resident_bytes: most(|sample| sample.resident_bytes),
            other_bytes: most(|sample| sample.other_bytes),
        };
        MemorySeries { device: self.device, samples, peak }
    }

    /// Ends it, with a last sample.
    pub fn stop(mut self) -> MemorySeries {
        self.end();
        self.shared.sample();
        self.so_far()
    }

    fn end(&mut self) {
        self.going = None;
        match self.thread.take() {
            // It ends by itself; a panic there would be a sample less.
            Some(thread) if self.process == std::process::id() => drop(thread.join()),
            // Waiting for a thread that is not in this process would take for ever.
            thread => std::mem::forget(thread),
        }
    }
}

impl Shared {
    fn sample(&self) {
        let stats = super::memory_stats(self.device);
        let now = |current: i64| usize::try_from(current).unwrap_or(0);
        let allocated_bytes = now(stats.allocated_bytes.all.current);
        let reserved_bytes = now(stats.reserved_bytes.all.current);
        let resident_bytes = SystemMemory::read().resident_bytes.unwrap_or(0);
        let (free, total) = super::memory_info(self.device).unwrap_or((0, 0));
        let own = if self.device.is_cpu() { resident_bytes } else { reserved_bytes };
        let other_bytes = total.saturating_sub(free).saturating_sub(own);
        let seconds = self.began.elapsed().as_secs_f64();
        self.samples.lock().add(MemorySample {
            seconds,
            allocated_bytes,
            reserved_bytes,
            resident_bytes,
            other_bytes,
        });
    }
}

impl Drop for MemoryMonitor {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for MemoryMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryMonitor").field("device", &self.device).finish_non_exhaustive()
    }
}
