//! Byte counts for people. Counts themselves are plain `usize` whose names end in `_bytes`; this is
//! only how they are shown and read in messages, reports and configuration.

use std::fmt;

use crate::{Error, Result};

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// A number of bytes that prints as a person would write it, in binary units.
///
/// ```
/// use plimsoll_core::ByteSize;
/// assert_eq!(ByteSize(512).to_string(), "512 B");
/// assert_eq!(ByteSize(1536).to_string(), "1.50 KiB");
/// assert_eq!(ByteSize::parse("2 GiB").unwrap(), ByteSize(2 << 30));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub usize);

impl ByteSize {
    /// Reads `"512"`, `"20 MiB"`, `"1.5GiB"`, `"3 GB"` (decimal units are powers of 1000).
    pub fn parse(text: &str) -> Result<ByteSize> {
        let bad = || {
            Error::invalid_argument(format!(
                "`{text}` is not a byte size: write a number with an optional unit, as in `512`, \
                 `20 MiB` or `1.5 GiB`"
            ))
        };
        let trimmed = text.trim();
        let split =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let number: f64 = trimmed[..split].parse().map_err(|_| bad())?;
        let scale: f64 = match trimmed[split..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1024f64.powi(2),
            "g" | "gib" => 1024f64.powi(3),
            "t" | "tib" => 1024f64.powi(4),
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            _ => return Err(bad()),
        };
        let bytes = number * scale;
        // 2^53: past it the float no longer holds whole bytes, and no machine has that much.
        if bytes > 9_007_199_254_740_992.0 {
            return Err(bad());
        }
        Ok(ByteSize(bytes.round() as usize))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let text =
            if unit == 0 { format!("{} B", self.0) } else { format!("{value:.2} {}", UNITS[unit]) };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        for bytes in [0, 1, 512, 1024, 20 << 20, 3 << 30] {
            assert_eq!(ByteSize::parse(&ByteSize(bytes).to_string()).unwrap(), ByteSize(bytes));
        }
    }

    #[test]
    fn refuses_what_is_not_a_size() {
        for text in ["", "MiB", "-1", "1 parsec", "1e9", "..", "99999999 TiB", "1 é"] {
            assert!(ByteSize::parse(text).unwrap_err().is_invalid_argument(), "{text}");
        }
    }
}
