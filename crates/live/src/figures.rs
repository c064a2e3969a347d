//! What a program says of itself, and how that is written.
//!
//! Note [Protocol of live figures]: a client connects to the program's socket and writes a line of
//! JSON, `{"live": 1, "ask": "figures"}`. The program answers with one line of JSON, the object
//! below, or `{"live": 1, "error": "..."}`; then the client may ask again. `live` is the version:
//! fields may be added to a version, and a client passes over those that it does not know; a
//! version is raised when a field changes its meaning or goes. Bytes and seconds are numbers; what
//! is not known is null or left out. A line has at most [`MOST_BYTES`] bytes. The same is written
//! by `plimsoll/watch/_live.py`.

use serde::{Deserialize, Serialize};

/// The version of the protocol. See Note [Protocol of live figures].
pub const VERSION: u32 = 1;

/// The longest line that is read.
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) const MOST_BYTES: u64 = 4 << 20;

/// Rows of a part that are told; the rest is one row.
pub(crate) const MOST_ROWS: usize = 40;

/// A program at one moment.
///
/// ```
/// use plimsoll_live::{Figures, VERSION};
/// let read: Figures = serde_json::from_str(r#"{"live": 1, "step": 7, "of_later": []}"#)?;
/// assert_eq!((read.live, read.step), (VERSION, 7));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// The version of the protocol.
    pub live: u32,
    /// Whose figures these are.
    pub process: Process,
    /// The latest step.
    pub step: u64,
    /// What tells steps: `optimizer steps`.
    pub steps_of: String,
    /// The latest epoch, 0 if none is known.
    pub epoch: u64,
    /// How long a step takes at present.
    pub step_seconds: Option<f64>,
    /// The process's resident memory.
    pub resident_bytes: Option<u64>,
    /// The memories that tensors are in.
    pub levels: Vec<Level>,
    /// What tensors hold, divided in several ways.
    pub parts: Vec<Part>,
    /// What grows, with its line and holder, where that is known.
    pub growing: Vec<Growing>,
    /// What the reader should know of these figures.
    pub notes: Vec<String>,
}

/// The process that figures are of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The program's name: `train.py`.
    pub name: String,
    /// What runs it: `PyTorch 2.15.0`.
    pub runtime: String,
    /// How long it has been running, as far as it was watched.
    pub seconds: f64,
}

/// One memory: a device's, or another that has books of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Level {
    /// `cpu`, `cuda:0`, `cpu:pinned`.
    pub name: String,
    /// Bytes in tensors.
    pub allocated_bytes: Option<u64>,
    /// Bytes that the allocator has.
    pub reserved_bytes: Option<u64>,
    /// The highest of `allocated_bytes` so far.
    pub peak_bytes: Option<u64>,
    /// By how much what is allocated grows from the end of one step to that of the next.
    pub growth_per_step: Option<f64>,
}

/// Everything that tensors hold, divided in one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// `kind`, `line`, `module` or `holder`.
    pub by: String,
    /// The largest first.
    pub rows: Vec<Row>,
}

/// What one kind, line, module or holder has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// More of it in words, of a line the operation and kind.
    pub what: String,
    /// Bytes.
    pub bytes: u64,
    /// Blocks or storages.
    pub count: u64,
    /// By how much it grows from the end of one step to that of the next.
    pub growth_per_step: Option<f64>,
}

/// Something that grows, as the watch tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Growing {
    /// Bytes that each step adds.
    pub bytes_per_step: f64,
    /// The line that makes it.
    pub line: String,
    /// What it is.
    pub kind: String,
    /// The path that holds it.
    pub held_by: String,
}

/// The largest rows of a part; the others are one row.
pub(crate) fn largest(by: &str, mut rows: Vec<Row>) -> Part {
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    if rows.len() > MOST_ROWS {
        let rest = rows.split_off(MOST_ROWS - 1);
        let growth = rest.iter().map(|row| row.growth_per_step).sum::<Option<f64>>();
        rows.push(Row {
            name: format!("{} more", rest.len()),
            what: String::new(),
            bytes: rest.iter().map(|row| row.bytes).sum(),
            count: rest.iter().map(|row| row.count).sum(),
            growth_per_step: growth,
        });
    }
    Part { by: by.to_string(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_what_they_write() {
        let row =
            Row { name: "a".into(), bytes: 7, growth_per_step: Some(0.5), ..Default::default() };
        let figures = Figures {
            live: VERSION,
            step: 3,
            parts: vec![Part { by: "kind".into(), rows: vec![row] }],
            ..Default::default()
        };
        let text = serde_json::to_string(&figures).unwrap();
        assert!(!text.contains('\n'));
        assert_eq!(serde_json::from_str::<Figures>(&text).unwrap(), figures);
    }

    #[test]
    fn many_rows_end_in_one_that_sums_the_rest() {
        let row = |bytes: u64| Row { name: format!("{bytes}"), bytes, count: 1, ..Row::default() };
        let part = largest("line", (1..=MOST_ROWS as u64 + 4).map(row).collect());
        assert_eq!(part.rows.len(), MOST_ROWS);
        assert_eq!(part.rows[0].bytes, MOST_ROWS as u64 + 4);
        let rest = part.rows.last().unwrap();
        // The five smallest.
        assert_eq!((rest.name.as_str(), rest.bytes, rest.count), ("5 more", 15, 5));
        assert_eq!(rest.growth_per_step, None);
    }
}
