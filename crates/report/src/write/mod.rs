//! Writing snapshots in PyTorch's layout, as a pickle or as JSON: for tests, for cutting and
//! converting files, and for whoever makes traces by other means. The memory crate keeps a writer
//! of its own, because it must not depend on this crate; both follow `docs/snapshot-format.md`, and
//! the tests read each with the other's reader.

mod json;
mod layout;
mod pickle;

use std::io::{self, Write};

use crate::snapshot::Snapshot;
use crate::stacks::StackId;
use crate::strings::TextId;

/// Writes a snapshot as a pickle of protocol 4 that PyTorch's tools open.
///
/// ```
/// use plimsoll_report::{read, write_pickle};
/// let snapshot = read(br#"{"segments": [], "device_traces": [[
///     {"action": "alloc", "addr": 4096, "size": 100, "stream": 0}]]}"#)?;
/// let mut pickle = Vec::new();
/// write_pickle(&snapshot, &mut pickle).unwrap();
/// assert_eq!(read(&pickle)?.events.size, [100]);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
pub fn write_pickle(snapshot: &Snapshot, out: impl Write) -> io::Result<()> {
    let mut sink = pickle::Pickle::new(out);
    layout::write(snapshot, &mut sink)?;
    sink.finish()
}

/// Writes a snapshot as JSON of the same layout; tuples are arrays.
pub fn write_json(snapshot: &Snapshot, out: impl Write) -> io::Result<()> {
    let mut sink = json::Json::new(out);
    layout::write(snapshot, &mut sink)?;
    sink.finish()
}

/// One output format. After `begin_dict` come keys and values in turn until `end_dict`; after
/// `begin_list` values until `end_list`.
trait Sink {
    fn begin_dict(&mut self) -> io::Result<()>;
    fn end_dict(&mut self) -> io::Result<()>;
    fn begin_list(&mut self) -> io::Result<()>;
    fn end_list(&mut self) -> io::Result<()>;
    fn key(&mut self, key: &'static str) -> io::Result<()>;
    fn number(&mut self, value: u64) -> io::Result<()>;
    fn signed(&mut self, value: i64) -> io::Result<()>;
    fn flag(&mut self, value: bool) -> io::Result<()>;
    fn pair(&mut self, pair: (i64, i64)) -> io::Result<()>;
    /// A text that is not in the snapshot's table.
    fn word(&mut self, text: &str) -> io::Result<()>;
    /// A text of the snapshot's table.
    fn text(&mut self, snapshot: &Snapshot, text: TextId) -> io::Result<()>;
    /// A list of frames; formats that can refer back write each stack once.
    fn stack(&mut self, snapshot: &Snapshot, stack: StackId) -> io::Result<()>;
}

/// The frames of a stack as a list of dictionaries.
fn write_frames(sink: &mut impl Sink, snapshot: &Snapshot, stack: StackId) -> io::Result<()> {
    sink.begin_list()?;
    for frame in snapshot.stacks.frames(stack) {
        sink.begin_dict()?;
        sink.key("name")?;
        sink.text(snapshot, frame.function)?;
        sink.key("filename")?;
        sink.text(snapshot, frame.file)?;
        sink.key("line")?;
        sink.number(frame.line.into())?;
        sink.end_dict()?;
    }
    sink.end_list()
}
