//! What a part of a program took of a device: figures from a reset on. Over time they are sampled
//! by `monitor/`.

use std::io::Write;

use plimsoll_core::{ByteSize, Device};

/// What a part of a program takes of a device, from [`MemoryTracker::reset`] on.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory::MemoryTracker};
/// let own = device::private_cpu(&Default::default())?;
/// let before = Tensor::zeros(&[1024], (DType::F32, own))?;
/// let tracker = MemoryTracker::new(own);
/// let kept = Tensor::zeros(&[2048], (DType::F32, own))?;
/// drop(Tensor::zeros(&[1024], (DType::F32, own))?);
/// assert_eq!((tracker.allocated_bytes(), tracker.peak_bytes()), (8192, 12288));
/// assert_eq!(tracker.stats("two"), "two - Allocated: 8.00 KiB, Peak: 12.00 KiB");
/// drop((before, kept));
/// assert_eq!(tracker.allocated_bytes(), -4096);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryTracker {
    device: Device,
    start_bytes: i64,
}

impl MemoryTracker {
    /// Counts from here.
    pub fn new(device: Device) -> MemoryTracker {
        let mut tracker = MemoryTracker { device, start_bytes: 0 };
        tracker.reset();
        tracker
    }

    /// Counts from here: what is cached is given back, and the device's peak starts at what there
    /// is.
    pub fn reset(&mut self) {
        super::empty_cache(self.device);
        super::reset_peak_memory_stats(self.device);
        self.start_bytes = super::memory_stats(self.device).allocated_bytes.all.current;
    }

    /// What there was at the reset.
    pub fn start_bytes(&self) -> i64 {
        self.start_bytes
    }

    /// What there is more than at the reset; below 0 where there is less.
    pub fn allocated_bytes(&self) -> i64 {
        super::memory_stats(self.device).allocated_bytes.all.current - self.start_bytes
    }

    /// The most that there was more than at the reset.
    pub fn peak_bytes(&self) -> i64 {
        super::memory_stats(self.device).allocated_bytes.all.peak - self.start_bytes
    }

    /// Both in words, after a label if there is one.
    pub fn stats(&self, label: &str) -> String {
        let (allocated, peak) = (words(self.allocated_bytes()), words(self.peak_bytes()));
        let told = format!("Allocated: {allocated}, Peak: {peak}");
        if label.is_empty() { told } else { format!("{label} - {told}") }
    }

    /// Prints both.
    ///
    /// ```
    /// use plimsoll_tensor::{device, memory::MemoryTracker};
    /// let own = device::private_cpu(&Default::default())?;
    /// MemoryTracker::new(own).print_stats("nothing yet");
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn print_stats(&self, label: &str) {
        // Not worth a failure where nobody reads.
        let _ = writeln!(std::io::stdout(), "{}", self.stats(label));
    }
}

fn words(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", ByteSize(usize::try_from(bytes.unsigned_abs()).unwrap_or(usize::MAX)))
}
