//! JSON: everything is written out each time, tuples as arrays.

use std::io::{self, Write};

use super::{Sink, write_frames};
use crate::snapshot::Snapshot;
use crate::stacks::StackId;
use crate::strings::TextId;

pub(super) struct Json<W: Write> {
    out: io::BufWriter<W>,
    /// For each open container, whether it already has an item.
    filled: Vec<bool>,
    after_key: bool,
}

impl<W: Write> Json<W> {
    pub(super) fn new(out: W) -> Json<W> {
        Json { out: io::BufWriter::new(out), filled: Vec::new(), after_key: false }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    fn comma(&mut self) -> io::Result<()> {
        if let Some(filled) = self.filled.last_mut()
            && std::mem::replace(filled, true)
        {
            return self.out.write_all(b",");
        }
        Ok(())
    }

    fn begin_value(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.after_key) {
            true => Ok(()),
            false => self.comma(),
        }
    }

    fn begin(&mut self, bracket: &[u8]) -> io::Result<()> {
        self.begin_value()?;
        self.filled.push(false);
        self.out.write_all(bracket)
    }

    fn end(&mut self, bracket: &[u8]) -> io::Result<()> {
        self.filled.pop();
        self.out.write_all(bracket)
    }
}

impl<W: Write> Sink for Json<W> {
    fn begin_dict(&mut self) -> io::Result<()> {
        self.begin(b"{")
    }

    fn end_dict(&mut self) -> io::Result<()> {
        self.end(b"}")
    }

    fn begin_list(&mut self) -> io::Result<()> {
        self.begin(b"[")
    }

    fn end_list(&mut self) -> io::Result<()> {
        self.end(b"]")
    }

    fn key(&mut self, key: &'static str) -> io::Result<()> {
        self.comma()?;
        self.after_key = true;
        write!(self.out, "\"{key}\":")
    }

    fn number(&mut self, value: u64) -> io::Result<()> {
        self.begin_value()?;
        write!(self.out, "{value}")
    }

    fn signed(&mut self, value: i64) -> io::Result<()> {
        self.begin_value()?;
        write!(self.out, "{value}")
    }

    fn flag(&mut self, value: bool) -> io::Result<()> {
        self.begin_value()?;
        write!(self.out, "{value}")
    }

    fn pair(&mut self, pair: (i64, i64)) -> io::Result<()> {
        self.begin_value()?;
        write!(self.out, "[{},{}]", pair.0, pair.1)
    }

    fn word(&mut self, text: &str) -> io::Result<()> {
        self.begin_value()?;
        serde_json::to_writer(&mut self.out, text)?;
        Ok(())
    }

    fn text(&mut self, snapshot: &Snapshot, text: TextId) -> io::Result<()> {
        self.word(snapshot.strings.get(text))
    }

    fn stack(&mut self, snapshot: &Snapshot, stack: StackId) -> io::Result<()> {
        write_frames(self, snapshot, stack)
    }
}
