//! Kernels beside the least time that they can take: what their bytes need at the device's
//! bandwidth, or their floating point operations at its rate, whichever is longer.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use plimsoll_core::ByteSize;

use crate::event::Event;
use crate::recording::Recording;

/// What a device can do at best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes a second, read and written together.
    pub bytes_per_second: f64,
    /// Floating point operations of products a second.
    pub flops_per_second: f64,
}

impl Limits {
    /// What an H200 reaches in copies and in products of bfloat16.
    pub const H200: Limits = Limits { bytes_per_second: 4.2e12, flops_per_second: 790e12 };

    /// The limits of a device by its name, if they are known.
    ///
    /// ```
    /// use plimsoll_profile::Limits;
    /// assert_eq!(Limits::of("NVIDIA H200"), Some(Limits::H200));
    /// assert_eq!(Limits::of("NVIDIA H200 MIG 1g.18gb"), None);
    /// assert_eq!(Limits::of("NVIDIA GH200 480GB"), None);
    /// assert_eq!(Limits::of("stand-in"), None);
    /// ```
    pub fn of(device: &str) -> Option<Limits> {
        let mut words = device.split(' ');
        // A part of a GPU has a part of its limits.
        (words.any(|word| word == "H200") && words.all(|word| word != "MIG"))
            .then_some(Limits::H200)
    }
}

/// Kernels of one operation on operands of the same shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The kernel's name.
    pub name: String,
    /// Shapes of the operands of the operation that launched it.
    pub shapes: Vec<Vec<usize>>,
    /// How often it ran.
    pub count: usize,
    /// Time on the device, of all of them.
    pub device_us: f64,
    /// Bytes of the elements that they read and wrote, every operand once.
    pub moved_bytes: u64,
    /// Floating point operations, where they are counted.
    pub flops: u64,
}

impl Bound {
    /// The least time that all of them need.
    pub fn bound_us(&self, limits: &Limits) -> f64 {
        let bytes = self.moved_bytes as f64 / limits.bytes_per_second;
        bytes.max(self.flops as f64 / limits.flops_per_second) * 1e6
    }
}

/// All kernels of a recording, those that took longest first. Made with shapes and floating point
/// operations asked for, it tells products from each other.
///
/// ```
/// use plimsoll_profile::{Limits, Profile};
/// use plimsoll_tensor::{DType, Tensor, device};
/// let device = device::stand_in(Default::default())?;
/// let x = Tensor::ones(&[64, 64], DType::F32)?.to(device)?;
/// let recording = Profile::new().shapes(true).flops(true).run(|| x.mm(&x).map(drop))?;
/// let limits = Limits { bytes_per_second: 49152e6, flops_per_second: 1e15 };
/// let bounds = recording.bounds(Some(limits));
/// let row = &bounds.rows()[0];
/// assert_eq!((row.name.as_str(), row.count), ("mm_kernel", 1));
/// assert_eq!((row.moved_bytes, row.flops), (3 * 64 * 64 * 4, 2 * 64 * 64 * 64));
/// assert_eq!(row.bound_us(&limits), 1.0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bounds {
    rows: Vec<Bound>,
    limits: Option<Limits>,
}

impl Recording {
    /// The recording's kernels beside the least time that they can take, if the device's limits are
    /// known.
    pub fn bounds(&self, limits: Option<Limits>) -> Bounds {
        let mut places: HashMap<(&str, &[Vec<usize>]), usize> = HashMap::new();
        let mut rows: Vec<Bound> = Vec::new();
        // Operations whose floating point operations stand beside one of their kernels already.
        let mut told = vec![false; self.events.len()];
        for kernel in self.events.iter().filter(|event| event.is_on_device()) {
            let launcher = kernel.parent.and_then(|at| self.events.get(at));
            let shapes = launcher.map_or(&[][..], |event: &Event| &event.input_shapes);
            let place = *places.entry((&kernel.name, shapes)).or_insert_with(|| {
                rows.push(Bound {
                    name: kernel.name.clone(),
                    shapes: shapes.to_vec(),
                    count: 0,
                    device_us: 0.0,
                    moved_bytes: 0,
                    flops: 0,
                });
                rows.len() - 1
            });
            let row = &mut rows[place];
            row.count += 1;
            row.device_us += kernel.device_ns as f64 / 1e3;
            row.moved_bytes += kernel.moved_bytes;
            if let Some(at) = kernel.parent
                && !std::mem::replace(&mut told[at], true)
            {
                row.flops += self.events[at].flops;
            }
        }
        rows.sort_by(|a, b| b.device_us.total_cmp(&a.device_us));
        Bounds { rows, limits }
    }
}

impl Bounds {
    /// The kernels, those that took longest first.
    pub fn rows(&self) -> &[Bound] {
        &self.rows
    }

    /// The limits that they are held against.
    pub fn limits(&self) -> Option<Limits> {
        self.limits
    }
}

/// A table at 80 columns: how often, the time of one in microseconds, what it moved, its bound and
/// the share of the bound in its time.
impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:44} {:>5} {:>8} {:>10} {:>5}", "kernel", "times", "us", "bytes", "bound")?;
        let mut totals = (0.0, 0.0);
        for row in &self.rows {
            let each = row.count as f64;
            let bound = self.limits.map(|limits| row.bound_us(&limits));
            totals.0 += row.device_us;
            totals.1 += bound.unwrap_or(0.0);
            let share = bound.map_or("-".to_string(), |bound| share(bound, row.device_us));
            let bytes = ByteSize(row.moved_bytes as usize / row.count).to_string();
            let us = row.device_us / each;
            writeln!(f, "{:44} {:>5} {us:>8.1} {bytes:>10} {share:>5}", label(row), row.count)?;
        }
        write!(f, "all: {:.1} us", totals.0)?;
        match self.limits {
            Some(limits) => writeln!(
                f,
                ", {} of it needed at {:.1} TB/s and {:.0} TFLOP/s",
                share(totals.1, totals.0),
                limits.bytes_per_second / 1e12,
                limits.flops_per_second / 1e12
            ),
            None => writeln!(f, "; the limits of this device are not known"),
        }
    }
}

fn share(part: f64, of: f64) -> String {
    if of > 0.0 { format!("{:.0}%", 100.0 * part / of) } else { "-".to_string() }
}

/// The operation and its first operands' shapes, within the column.
fn label(row: &Bound) -> String {
    let mut text = row.name.strip_suffix("_kernel").unwrap_or(&row.name).to_string();
    for shape in row.shapes.iter().filter(|shape| !shape.is_empty()) {
        let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
        let _ = write!(text, " {}", sizes.join("x"));
    }
    match text.char_indices().nth(44) {
        Some(_) => text.chars().take(43).chain(['…']).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_shapes_and_shares_within_80_columns() {
        let row = |name: &str, shapes: &[&[usize]], device_us, moved_bytes, flops| Bound {
            name: name.to_string(),
            shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
            count: 2,
            device_us,
            moved_bytes,
            flops,
        };
        let rows = vec![
            row("mm_kernel", &[&[16_384, 768], &[768, 3072]], 200.0, 252_000_000, 79_000_000_000),
            row("layer_norm_backward_kernel", &[&[16_384, 768][..]; 4], 80.0, 84_000_000, 0),
            row("Memcpy DtoH (Device -> Pinned)", &[&[]], 0.0, 8, 0),
        ];
        let known = Bounds { rows: rows.clone(), limits: Some(Limits::H200) };
        // 39.5e9 operations need 50 us, 126 MB 30; 42 MB need 10.
        let expected = "\
kernel                                       times       us      bytes bound
mm 16384x768 768x3072                            2    100.0 120.16 MiB   50%
layer_norm_backward 16384x768 16384x768 163…     2     40.0  40.05 MiB   25%
Memcpy DtoH (Device -> Pinned)                   2      0.0        4 B     -
all: 280.0 us, 43% of it needed at 4.2 TB/s and 790 TFLOP/s
";
        assert_eq!(known.to_string(), expected);
        assert!(expected.lines().all(|line| line.chars().count() <= 80));
        let unknown = Bounds { rows, limits: None }.to_string();
        assert!(unknown.ends_with("all: 280.0 us; the limits of this device are not known\n"));
        assert!(unknown.lines().nth(1).unwrap().ends_with("  -"));
    }
}
