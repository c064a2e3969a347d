//! What a monitor has sampled: rows of bytes over time, as a table and as a picture.

use std::fmt::Write;
use std::time::Duration;

use plimsoll_core::Device;

use super::chart::{Line, chart};

/// How many samples are kept; beyond, every second one is dropped and the interval doubles.
const MOST_SAMPLES: usize = 20_000;

/// What there was at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MemorySample {
    /// Since the monitor started.
    pub seconds: f64,
    /// What tensors hold on the device.
    pub allocated_bytes: usize,
    /// What the allocator holds there.
    pub reserved_bytes: usize,
    /// What this process has in the host's memory.
    pub resident_bytes: usize,
    /// What is in use on the device beside that: other processes, and the driver's own memory.
    pub other_bytes: usize,
}

/// The most of each figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPeak {
    /// The most that tensors held at once. Exact: the allocator's own count, not the largest
    /// sample.
    pub allocated_bytes: usize,
    /// The most that the allocator held. Exact, too.
    pub reserved_bytes: usize,
    /// The largest sample.
    pub resident_bytes: usize,
    /// The largest sample.
    pub other_bytes: usize,
}

/// What a monitor has sampled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemorySeries {
    /// Whose memory it is.
    pub device: Device,
    /// In the order of time.
    pub samples: Vec<MemorySample>,
    /// The most of each figure.
    pub peak: MemoryPeak,
}

impl MemorySeries {
    /// The samples as a table with a head.
    ///
    /// ```
    /// use plimsoll_tensor::{device, memory::MemoryMonitor};
    /// use std::time::Duration;
    /// let own = device::private_cpu(&Default::default())?;
    /// let table = MemoryMonitor::start(own, Duration::from_secs(60))?.stop().to_csv();
    /// let head = "seconds,allocated_bytes,reserved_bytes,resident_bytes,other_bytes";
    /// assert_eq!((table.lines().next(), table.lines().count()), (Some(head), 3));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn to_csv(&self) -> String {
        let mut table =
            "seconds,allocated_bytes,reserved_bytes,resident_bytes,other_bytes\n".to_string();
        for row in &self.samples {
            let (allocated, reserved) = (row.allocated_bytes, row.reserved_bytes);
            let (resident, other) = (row.resident_bytes, row.other_bytes);
            let seconds = row.seconds;
            let _ = writeln!(table, "{seconds:.6},{allocated},{reserved},{resident},{other}");
        }
        table
    }

    /// The samples as a picture: SVG that follows a page's light or dark colours.
    ///
    /// ```
    /// use plimsoll_tensor::{device, memory::MemoryMonitor};
    /// use std::time::Duration;
    /// let own = device::private_cpu(&Default::default())?;
    /// let picture = MemoryMonitor::start(own, Duration::from_secs(60))?.stop().to_svg();
    /// assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn to_svg(&self) -> String {
        let seconds: Vec<f64> = self.samples.iter().map(|sample| sample.seconds).collect();
        let line = |name, of: fn(&MemorySample) -> usize| Line {
            name,
            bytes: self.samples.iter().map(of).collect(),
        };
        let mut lines = vec![
            line("allocated", |sample| sample.allocated_bytes),
            line("reserved", |sample| sample.reserved_bytes),
            line("process", |sample| sample.resident_bytes),
        ];
        if !self.device.is_cpu() {
            // On the host they would be the whole rest of the machine.
            lines.push(line("others", |sample| sample.other_bytes));
        }
        chart(&format!("memory of {}", self.device), &seconds, &lines)
    }
}

/// Samples as they are taken, thinned where there are many.
pub(super) struct Samples {
    pub(super) taken: Vec<MemorySample>,
    /// The time from one to the next.
    pub(super) every: Duration,
}

impl Samples {
    pub(super) fn every(interval: Duration) -> Samples {
        Samples { taken: Vec::new(), every: interval }
    }

    pub(super) fn add(&mut self, sample: MemorySample) {
        self.taken.push(sample);
        if self.taken.len() > MOST_SAMPLES {
            let mut at = 0;
            self.taken.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: f64, allocated_bytes: usize) -> MemorySample {
        let (reserved_bytes, resident_bytes, other_bytes) = (2 << 20, 3 << 20, 4 << 20);
        MemorySample { seconds, allocated_bytes, reserved_bytes, resident_bytes, other_bytes }
    }

    fn series(device: Device, samples: Vec<MemorySample>) -> MemorySeries {
        let (allocated_bytes, reserved_bytes) = (1 << 20, 2 << 20);
        let (resident_bytes, other_bytes) = (3 << 20, 4 << 20);
        let peak = MemoryPeak { allocated_bytes, reserved_bytes, resident_bytes, other_bytes };
        MemorySeries { device, samples, peak }
    }

    #[test]
    fn many_samples_are_thinned_and_stay_in_order() {
        let mut samples = Samples::every(Duration::from_secs(1));
        for at in 0..3 * MOST_SAMPLES {
            samples.add(sample(at as f64, at));
        }
        assert!(samples.taken.len() <= MOST_SAMPLES);
        assert_eq!(samples.taken[0].seconds, 0.0);
        assert!(samples.taken.is_sorted_by_key(|sample| sample.allocated_bytes));
        assert!(samples.every > Duration::from_secs(1));
    }

    #[test]
    fn the_table_has_a_row_a_sample() {
        let table = series(Device::CPU, vec![sample(0.0, 512), sample(1.5, 1024)]).to_csv();
        let rows: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(
            rows,
            ["0.000000,512,2097152,3145728,4194304", "1.500000,1024,2097152,3145728,4194304"]
        );
    }

    #[test]
    fn the_picture_names_its_lines() {
        let picture = series(Device::CPU, vec![sample(0.0, 0), sample(2.0, 1 << 20)]).to_svg();
        for text in ["memory of cpu", ">allocated<", ">reserved<", ">process<", "3.00 MiB", "2 s"] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
        assert!(!picture.contains(">others<"), "the rest of the machine");
        // From nothing at the left to a third of the height at the right.
        assert!(picture.contains("points=\"84.0,266.0 650.0,188.7\""), "{picture}");
        let empty = series(Device::CPU, Vec::new()).to_svg();
        assert!(!empty.contains("polyline class"), "{empty}");
    }
}
