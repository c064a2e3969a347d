//! Where a device's memory went at its peak, in words: by kind, module and source line, 80 columns
//! wide. For a person at the end of a run; programs read [`super::peak_by_kind`] and its kin.

use std::collections::BTreeMap;
use std::fmt::Write;

use plimsoll_core::{ByteSize, Device};
use plimsoll_memory::{BreakdownRow, ModulePath, Share};

use crate::device;

/// Lines named at most; the rest is one row.
const MOST_LINES: usize = 12;
/// Modules named at most; the rest is one row.
const MOST_MODULES: usize = 16;
/// Characters of the line in a row.
const PLACE: usize = 34;

/// The peak of a device by kind, by module if any ran, and by source line. A module's bytes are its
/// own and those of the modules in it.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// let own = device::private_cpu(&Default::default())?;
/// let x = Tensor::zeros(&[1024], (DType::F32, own))?;
/// let report = memory::memory_report(own);
/// assert!(report.contains("4.00 KiB") && report.contains("zeros"));
/// assert!(report.contains("temporary"));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn memory_report(device: Device) -> String {
    let (peak, reserved) =
        (super::max_memory_allocated(device), super::max_memory_reserved(device));
    let mut text = format!(
        "Peak memory of {device}: {} allocated, {} reserved\nNow: {} allocated\n",
        ByteSize(peak),
        ByteSize(reserved),
        ByteSize(super::memory_allocated(device))
    );
    for (what, bytes) in elsewhere(device) {
        text += &format!("{what}: {}\n", ByteSize(bytes));
    }
    text += &format!("\n{:<PLACE$} {:>11} {:>7} {:>7}\n", "by kind", "bytes", "share", "blocks");
    for row in super::peak_by_kind(device) {
        line(&mut text, &row.kind.to_string(), row.bytes, peak, &row.count.to_string());
    }
    write_modules(&mut text, &super::peak_by_module(device), peak);
    text +=
        &format!("\n{:<PLACE$} {:>11} {:>7}  {}\n", "by line", "bytes", "share", "operation, kind");
    let lines = lines(&super::peak_by_origin(device));
    for used in lines.iter().take(MOST_LINES) {
        line(&mut text, &used.name, used.bytes, peak, &used.what);
    }
    if let Some(rest) = lines.get(MOST_LINES..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().map(|line| line.bytes).sum();
        line(&mut text, &format!("{} more lines", rest.len()), bytes, peak, "");
    }
    text
}

/// What each module holds with all that is in it, in the order of their paths, down to the depth at
/// which there are not too many.
fn write_modules(text: &mut String, shares: &[Share<ModulePath>], peak: usize) {
    if shares.iter().all(|share| share.part.is_root()) {
        return;
    }
    let paths: Vec<(String, usize, usize)> =
        shares.iter().map(|share| (share.part.to_string(), share.bytes, share.count)).collect();
    let deepest = paths.iter().map(|(path, ..)| path.split('.').count()).max().unwrap_or(1);
    let at_depth = |depth: usize| {
        let mut totals: BTreeMap<Vec<&str>, (usize, usize)> = BTreeMap::new();
        for (path, bytes, count) in &paths {
            let names: Vec<&str> = path.split('.').filter(|name| !name.is_empty()).collect();
            for length in 1..=names.len().min(depth) {
                let total = totals.entry(names[..length].to_vec()).or_default();
                *total = (total.0 + bytes, total.1 + count);
            }
            if names.is_empty() {
                totals.insert(Vec::new(), (*bytes, *count));
            }
        }
        totals
    };
    let depth = (1..=deepest).rev().find(|depth| at_depth(*depth).len() <= MOST_MODULES);
    let totals = at_depth(depth.unwrap_or(1));
    *text += &format!("\n{:<PLACE$} {:>11} {:>7} {:>7}\n", "by module", "bytes", "share", "blocks");
    let named = totals.iter().filter(|(names, _)| !names.is_empty());
    for (names, (bytes, count)) in named.clone().take(MOST_MODULES) {
        let indent = "  ".repeat(names.len() - 1);
        let name = format!("{indent}{}", names.last().copied().unwrap_or_default());
        line(text, &name, *bytes, peak, &count.to_string());
    }
    let (rest, bytes) = named
        .skip(MOST_MODULES)
        .filter(|(names, _)| names.len() == 1)
        .fold((0, 0), |(rest, sum), (_, (bytes, _))| (rest + 1, sum + bytes));
    if rest > 0 {
        line(text, &format!("{rest} more modules"), bytes, peak, "");
    }
    if let Some((bytes, count)) = totals.get(&Vec::new()) {
        line(text, "outside of modules", *bytes, peak, &count.to_string());
    }
}

/// Host memory that is in none of the device's own figures.
fn elsewhere(device: Device) -> Vec<(&'static str, usize)> {
    let pinned = device::pinned_if_open().filter(|_| device == Device::CPU);
    let rows = [
        ("Spilled to host memory", super::memory_spilled(device)),
        ("Pinned host memory", pinned.map_or(0, |arena| arena.live_bytes())),
    ];
    rows.into_iter().filter(|(_, bytes)| *bytes > 0).collect()
}

/// One row, cut to 80 columns.
fn line(text: &mut String, name: &str, bytes: usize, whole: usize, last: &str) {
    let share = 100.0 * bytes as f64 / whole.max(1) as f64;
    let size = ByteSize(bytes).to_string();
    let mut row = format!("{name:<PLACE$} {size:>11} {share:>6.1}%");
    // Numbers stand under their heading, words after it.
    let words = last.chars().any(char::is_alphabetic);
    let _ = if words { write!(row, "  {last}") } else { write!(row, " {last:>7}") };
    let cut: String = row.trim_end().chars().take(80).collect();
    text.push_str(&cut);
    text.push('\n');
}

/// What one source line holds.
struct LineUse {
    name: String,
    bytes: usize,
    /// Operation and kind of its largest part, and how many other parts there are.
    what: String,
    parts: usize,
}

/// The rows, which are sorted by size, gathered by source line. A line has several sites where it
/// calls several operations, which differ by column.
fn lines(rows: &[BreakdownRow]) -> Vec<LineUse> {
    let mut lines: Vec<LineUse> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let origin = row.origin.get();
        let place = origin.site.to_string();
        if let Some(&at) = places.get(&place) {
            lines[at].bytes += row.bytes;
            lines[at].parts += 1;
            continue;
        }
        lines.push(LineUse {
            name: place_name(&place),
            bytes: row.bytes,
            what: format!("{}, {}", origin.operation, row.kind),
            parts: 1,
        });
        places.insert(place, lines.len() - 1);
    }
    for line in lines.iter_mut().filter(|line| line.parts > 1) {
        line.what += &format!(" +{}", line.parts - 1);
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    lines
}

/// File and line; of a long path the end, which tells files apart.
fn place_name(name: &str) -> String {
    let length = name.chars().count();
    if length <= PLACE {
        return name.to_string();
    }
    let end: String = name.chars().skip(length - (PLACE - 1)).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use plimsoll_memory::Site;

    use super::*;
    use crate::{DType, Tensor};

    #[test]
    fn a_report_names_lines_and_kinds_within_80_columns() {
        let device = crate::device::private_cpu(&Default::default()).unwrap();
        let options = (DType::F32, device);
        let kept: Vec<Tensor> = (0..3).map(|_| Tensor::zeros(&[1024], options).unwrap()).collect();
        kept[0].mark_parameter();
        let here = line!() + 1;
        let other = Tensor::ones(&[256], options).unwrap();
        let report = memory_report(device);
        let parameter = report.lines().find(|line| line.starts_with("parameter")).unwrap();
        assert_eq!(
            parameter.split_whitespace().collect::<Vec<_>>(),
            ["parameter", "4.00", "KiB", "30.8%", "1"]
        );
        let line = report.lines().find(|line| line.contains(&format!(":{here}"))).unwrap();
        assert!(line.contains("1.00 KiB") && line.contains("ones, temporary"), "{line}");
        assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
        drop((kept, other));
        assert!(memory_report(device).contains("Now: 0 B allocated"));
    }

    #[test]
    fn the_smallest_of_many_lines_are_one_row() {
        let device = crate::device::private_cpu(&Default::default()).unwrap();
        let kept: Vec<Tensor> = (1..=MOST_LINES as i64 + 3)
            .map(|i| {
                let site = Site::Foreign(1_000_000 + i as u32);
                plimsoll_memory::with_site(site, || {
                    Tensor::zeros(&[i * 128], (DType::F32, device)).unwrap()
                })
            })
            .collect();
        let report = memory_report(device);
        let rest = report.lines().last().unwrap();
        // Blocks of 1, 2 and 3 times 512 bytes are the three smallest of fifteen.
        assert!(rest.starts_with("3 more lines") && rest.contains("3.00 KiB"), "{report}");
        drop(kept);
    }

    #[test]
    fn a_line_that_calls_several_operations_is_one_row() {
        let device = crate::device::private_cpu(&Default::default()).unwrap();
        let options = (DType::F32, device);
        let make = |bytes: i64| (Tensor::zeros(&[bytes], options), Tensor::ones(&[bytes], options));
        let here = format!("report.rs:{}", line!() - 1);
        let kept = (make(1024), make(256));
        let report = memory_report(device);
        let rows: Vec<&str> = report.lines().filter(|line| line.contains(&here)).collect();
        let [row] = rows[..] else { panic!("one row for {here} in\n{report}") };
        assert!(row.contains("10.00 KiB") && row.contains("zeros, temporary +1"), "{row}");
        drop(kept);
    }

    #[test]
    fn long_paths_keep_their_end() {
        assert_eq!(place_name("a.rs:1"), "a.rs:1");
        let here = Site::caller().to_string();
        let name = place_name(&Site::caller().to_string());
        assert!(name.chars().count() <= PLACE, "{name}");
        let line = here.rsplit(':').next().unwrap().parse::<u32>().unwrap();
        assert!(name.ends_with(&format!("report.rs:{}", line + 1)), "{name}");
    }
}
