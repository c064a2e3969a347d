//! Numbers as PyTorch's profiler writes them.

/// A time in microseconds, in the unit that suits it.
///
/// ```
/// use plimsoll_profile::format_time_us;
/// assert_eq!(format_time_us(12.3456), "12.346us");
/// assert_eq!(format_time_us(1500.0), "1.500ms");
/// assert_eq!(format_time_us(2e6), "2.000s");
/// ```
pub fn format_time_us(time_us: f64) -> String {
    if time_us >= 1e6 {
        format!("{:.3}s", time_us / 1e6)
    } else if time_us >= 1e3 {
        format!("{:.3}ms", time_us / 1e3)
    } else {
        format!("{time_us:.3}us")
    }
}

/// A number of bytes, or a change of one.
///
/// ```
/// use plimsoll_profile::format_bytes;
/// assert_eq!(format_bytes(512), "512 B");
/// assert_eq!(format_bytes(-2048), "-2.00 KB");
/// assert_eq!(format_bytes(3 << 20), "3.00 MB");
/// ```
pub fn format_bytes(bytes: i64) -> String {
    let units = [(1u64 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    match units.iter().find(|(unit, _)| bytes.unsigned_abs() >= *unit) {
        Some((unit, word)) => format!("{:.2} {word}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// A part of a whole in percent; of nothing there are no parts.
pub(crate) fn share(part: f64, whole: f64) -> String {
    if whole == 0.0 { "NaN".to_string() } else { format!("{:.2}%", part * 100.0 / whole) }
}
