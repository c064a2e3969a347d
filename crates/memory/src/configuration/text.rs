//! Text to values: the `key:value,key:[a:b,>:c]` form of the environment variable, TOML, and the
//! value grammar that both share. Nothing here knows what a key means.

use std::num::NonZeroUsize;

use plimsoll_core::{ByteSize, Error, Result};

use super::{MIB, ROUNDUP_SLOTS, SimdLevel};
use crate::configuration::HistoryLevel;

/// What a value should have looked like; the caller adds the key and the value.
pub(super) type Expected = String;

/// Whether the variable names a file instead of holding settings.
pub(super) fn is_file_name(value: &str) -> bool {
    value.trim().ends_with(".toml")
}

/// Splits `key:value,key:[a:b,c:d]` at the commas outside brackets. Blanks around keys and values
/// do not count; empty text has no pairs.
pub(super) fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => {
                depth = depth.checked_sub(1).ok_or_else(|| {
                    Error::configuration(format!("`{text}` closes a `]` that was not opened"))
                })?;
            }
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(Error::configuration(format!("`{text}` has a `[` without its `]`")));
    }
    parts.push(&text[start..]);
    // One trailing comma is forgiven, and empty text is no settings at all.
    if parts.last().is_some_and(|last| last.trim().is_empty()) {
        parts.pop();
    }
    parts
        .into_iter()
        .map(|part| match part.split_once(':') {
            Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
                Ok((key.trim().to_string(), value.trim().to_string()))
            }
            _ => Err(Error::configuration(format!(
                "`{}` is not a setting; write `key:value,key:value`",
                part.trim()
            ))),
        })
        .collect()
}

/// The flat keys of a TOML text, with values in the same form as the environment variable's.
pub(super) fn toml_pairs(text: &str) -> Result<Vec<(String, String)>> {
    let table: toml::Table = text.parse().map_err(|cause: toml::de::Error| {
        Error::configuration("the configuration is not valid TOML").because(cause)
    })?;
    table.into_iter().map(|(key, value)| Ok((key.clone(), toml_value(&key, &value)?))).collect()
}

fn toml_value(key: &str, value: &toml::Value) -> Result<String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(n) => Ok(n.to_string()),
        toml::Value::Float(x) => Ok(x.to_string()),
        toml::Value::Boolean(on) => Ok(on.to_string()),
        // Only `roundup_power2_divisions` takes one; others refuse the text that comes of it.
        toml::Value::Table(rows) => {
            let mut rows: Vec<(u64, String)> = rows
                .iter()
                .map(|(size, n)| {
                    // `>` sorts last.
                    let order = size.trim().parse().unwrap_or(u64::MAX);
                    Ok((order, format!("{size}:{}", toml_value(key, n)?)))
                })
                .collect::<Result<_>>()?;
            rows.sort();
            let rows: Vec<String> = rows.into_iter().map(|(_, row)| row).collect();
            Ok(format!("[{}]", rows.join(",")))
        }
        other => Err(Error::configuration(format!(
            "`{key}` cannot be a TOML {}; write a number, true or false, or a string",
            other.type_str()
        ))),
    }
}

pub(super) fn flag(value: &str) -> Result<bool, Expected> {
    match value {
        "true" | "True" => Ok(true),
        "false" | "False" => Ok(false),
        _ => Err("expected true or false".to_string()),
    }
}

pub(super) fn count(value: &str) -> Result<NonZeroUsize, Expected> {
    value.parse().map_err(|_| "expected a whole number, at least 1".to_string())
}

pub(super) fn count_or_auto(value: &str) -> Result<Option<NonZeroUsize>, Expected> {
    count_or_word(value, "auto")
}

pub(super) fn count_or_none(value: &str) -> Result<Option<NonZeroUsize>, Expected> {
    count_or_word(value, "none")
}

pub(super) fn count_or_off(value: &str) -> Result<Option<NonZeroUsize>, Expected> {
    count_or_word(value, "off")
}

fn count_or_word(value: &str, word: &str) -> Result<Option<NonZeroUsize>, Expected> {
    match value == word {
        true => Ok(None),
        false => count(value).map(Some).map_err(|expected| format!("{expected}, or {word}")),
    }
}

/// How many batches are on a device at once.
pub(super) fn buffers(value: &str) -> Result<usize, Expected> {
    let buffers = value.parse().ok().filter(|buffers: &usize| (1..=3).contains(buffers));
    buffers.ok_or_else(|| "expected 1, 2 or 3".to_string())
}

pub(super) fn seed_or_off(value: &str) -> Result<Option<u64>, Expected> {
    match value {
        "off" => Ok(None),
        value => value.parse().map(Some).map_err(|_| "expected a whole number, or off".to_string()),
    }
}

/// Whole MiB, as bytes.
pub(super) fn mebibytes(value: &str, at_least: usize) -> Result<usize, Expected> {
    let expected = || format!("expected a whole number of MiB, at least {at_least}");
    let n: usize = value.parse().map_err(|_| expected())?;
    n.checked_mul(MIB).filter(|_| n >= at_least && n <= 1 << 32).ok_or_else(expected)
}

pub(super) fn mebibytes_or_unlimited(
    value: &str,
    at_least: usize,
) -> Result<Option<usize>, Expected> {
    match value {
        "unlimited" => Ok(None),
        value => mebibytes(value, at_least)
            .map(Some)
            .map_err(|expected| format!("{expected}, or unlimited")),
    }
}

pub(super) fn bytes_or_none(value: &str) -> Result<Option<usize>, Expected> {
    match value {
        "none" => Ok(None),
        value => match ByteSize::parse(value) {
            Ok(ByteSize(0)) | Err(_) => {
                Err("expected a number of bytes above 0, as in 4GiB, or none".to_string())
            }
            Ok(ByteSize(bytes)) => Ok(Some(bytes)),
        },
    }
}

pub(super) fn fraction(value: &str) -> Result<f64, Expected> {
    value
        .parse()
        .ok()
        .filter(|share: &f64| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "expected a fraction above 0 and at most 1".to_string())
}

pub(super) fn threshold(value: &str) -> Result<Option<f64>, Expected> {
    match value {
        "off" => Ok(None),
        value => value
            .parse()
            .ok()
            .filter(|share: &f64| *share > 0.0 && *share < 1.0)
            .map(Some)
            .ok_or_else(|| "expected a fraction between 0 and 1, or off".to_string()),
    }
}

pub(super) fn history_level(value: &str) -> Result<HistoryLevel, Expected> {
    match value {
        "off" | "false" => Ok(HistoryLevel::Off),
        "state" => Ok(HistoryLevel::State),
        "alloc" => Ok(HistoryLevel::Alloc),
        "all" => Ok(HistoryLevel::All),
        _ => Err("expected off, state, alloc or all".to_string()),
    }
}

pub(super) fn simd_level(value: &str) -> Result<Option<SimdLevel>, Expected> {
    match value {
        "auto" => Ok(None),
        "scalar" => Ok(Some(SimdLevel::Scalar)),
        "avx2" => Ok(Some(SimdLevel::Avx2)),
        "avx512" => Ok(Some(SimdLevel::Avx512)),
        _ => Err("expected auto, scalar, avx2 or avx512".to_string()),
    }
}

pub(super) fn show_simd_level(level: Option<SimdLevel>) -> &'static str {
    match level {
        None => "auto",
        Some(SimdLevel::Scalar) => "scalar",
        Some(SimdLevel::Avx2) => "avx2",
        Some(SimdLevel::Avx512) => "avx512",
    }
}

/// `8`, or `[256:1,512:2,>:4]`: divisions by size in MiB. As in PyTorch the first row also holds
/// for all smaller sizes, each row for its own power of two, and `>` for everything above the last.
/// Unlike there a gap between rows is refused: it would switch rounding off unseen.
pub(super) fn divisions(value: &str) -> Result<[u32; ROUNDUP_SLOTS], Expected> {
    let Some(inner) = value.strip_prefix('[').and_then(|v| v.strip_suffix(']')) else {
        let n = division(value)?;
        return Ok([n; ROUNDUP_SLOTS]);
    };
    let mut slots = [0; ROUNDUP_SLOTS];
    let mut next: Option<usize> = None;
    let mut closed = false;
    for row in inner.split(',') {
        let (size, n) = row.split_once(':').ok_or("expected rows such as 256:1")?;
        let n = division(n.trim())?;
        if closed {
            return Err("expected `>` as the last row".to_string());
        }
        if size.trim() == ">" {
            let from = next.ok_or("expected a size in MiB before `>`")?;
            slots[from.min(ROUNDUP_SLOTS)..].fill(n);
            closed = true;
            continue;
        }
        let mib: usize = size.trim().parse().map_err(|_| "expected sizes in MiB".to_string())?;
        if !mib.is_power_of_two() || mib > 1 << (ROUNDUP_SLOTS - 1) {
            return Err("expected sizes that are powers of two up to 32768 MiB".to_string());
        }
        let slot = mib.trailing_zeros() as usize;
        if next.is_some_and(|next| next != slot) {
            return Err("expected each size to be twice the one before it".to_string());
        }
        slots[if next.is_some() { slot } else { 0 }..=slot].fill(n);
        next = Some(slot + 1);
    }
    Ok(slots)
}

fn division(value: &str) -> Result<u32, Expected> {
    let expected = || "expected a power of two up to 64, or 0 for off".to_string();
    let n: u32 = value.parse().map_err(|_| expected())?;
    if n == 0 || (n.is_power_of_two() && n <= 64) { Ok(n) } else { Err(expected()) }
}

/// The shortest form that `divisions` reads back to the same slots.
pub(super) fn show_divisions(slots: &[u32; ROUNDUP_SLOTS]) -> String {
    let last = slots[ROUNDUP_SLOTS - 1];
    let Some(differs) = slots.iter().rposition(|&n| n != last) else { return last.to_string() };
    let mut rows: Vec<String> = slots[..=differs]
        .iter()
        .enumerate()
        .map(|(at, n)| format!("{}:{n}", 1usize << at))
        .collect();
    rows.push(format!(">:{last}"));
    format!("[{}]", rows.join(","))
}

/// How many letters must change to turn one word into the other; for "did you mean".
pub(super) fn edit_distance(a: &str, b: &str) -> usize {
    // Keys are short; a long unknown word is not near any of them, and costs nothing here.
    if a.len() > 64 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
