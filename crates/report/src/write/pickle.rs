//! Pickle, protocol 4, in the opcodes that PyTorch's web viewer reads. Items go in batches of at
//! most 1000, because the viewer cannot take more at once; texts and stacks are written once and
//! referred to.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{Sink, write_frames};
use crate::snapshot::Snapshot;
use crate::stacks::StackId;
use crate::strings::TextId;

const BATCH: usize = 1000;

const PROTO: u8 = 0x80;
const STOP: u8 = b'.';
const MARK: u8 = b'(';
const EMPTY_DICT: u8 = b'}';
const SETITEMS: u8 = b'u';
const EMPTY_LIST: u8 = b']';
const APPENDS: u8 = b'e';
const TUPLE2: u8 = 0x86;
const MEMOIZE: u8 = 0x94;
const BINGET: u8 = b'h';
const LONG_BINGET: u8 = b'j';
const SHORT_BINUNICODE: u8 = 0x8c;
const BINUNICODE: u8 = b'X';
const BININT: u8 = b'J';
const BININT1: u8 = b'K';
const BININT2: u8 = b'M';
const LONG1: u8 = 0x8a;
const NEWTRUE: u8 = 0x88;
const NEWFALSE: u8 = 0x89;

pub(super) struct Pickle<W: Write> {
    out: io::BufWriter<W>,
    started: bool,
    /// Items in the present batch of each open container, and whether it is a dictionary.
    open: Vec<(usize, bool)>,
    words: HashMap<Box<str>, u32>,
    texts: HashMap<TextId, u32>,
    stacks: HashMap<StackId, u32>,
    memoized: u32,
}

impl<W: Write> Pickle<W> {
    pub(super) fn new(out: W) -> Pickle<W> {
        Pickle {
            out: io::BufWriter::new(out),
            started: false,
            open: Vec::new(),
            words: HashMap::new(),
            texts: HashMap::new(),
            stacks: HashMap::new(),
            memoized: 0,
        }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.put(&[STOP])?;
        self.out.flush()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Before a key, or a value of a list: opens a batch, after closing a full one.
    fn begin_item(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.started, true) {
            self.put(&[PROTO, 4])?;
        }
        let Some((items, is_dict)) = self.open.last_mut() else { return Ok(()) };
        let close = if *is_dict { SETITEMS } else { APPENDS };
        let full = *items == BATCH;
        let new = full || *items == 0;
        *items = if full { 1 } else { *items + 1 };
        if full {
            self.put(&[close])?;
        }
        if new {
            self.put(&[MARK])?;
        }
        Ok(())
    }

    /// Before a value: in a dictionary its item began with the key.
    fn begin_value(&mut self) -> io::Result<()> {
        match self.open.last() {
            Some((_, true)) => Ok(()),
            _ => self.begin_item(),
        }
    }

    fn begin(&mut self, empty: u8, is_dict: bool) -> io::Result<()> {
        self.begin_value()?;
        self.open.push((0, is_dict));
        self.put(&[empty])
    }

    fn end(&mut self, close: u8) -> io::Result<()> {
        match self.open.pop() {
            Some((items, _)) if items > 0 => self.put(&[close]),
            _ => Ok(()),
        }
    }

    fn get(&mut self, memo: u32) -> io::Result<()> {
        match u8::try_from(memo) {
            Ok(memo) => self.put(&[BINGET, memo]),
            Err(_) => {
                self.put(&[LONG_BINGET])?;
                self.put(&memo.to_le_bytes())
            }
        }
    }

    fn memoize(&mut self) -> io::Result<u32> {
        self.put(&[MEMOIZE])?;
        self.memoized += 1;
        Ok(self.memoized - 1)
    }

    fn new_text(&mut self, text: &str) -> io::Result<u32> {
        match u8::try_from(text.len()) {
            Ok(len) => self.put(&[SHORT_BINUNICODE, len])?,
            Err(_) => {
                self.put(&[BINUNICODE])?;
                self.put(&(text.len() as u32).to_le_bytes())?;
            }
        }
        self.put(text.as_bytes())?;
        self.memoize()
    }

    fn known_word(&mut self, text: &str) -> io::Result<()> {
        if let Some(memo) = self.words.get(text) {
            return self.get(*memo);
        }
        let memo = self.new_text(text)?;
        self.words.insert(text.into(), memo);
        Ok(())
    }

    fn integer(&mut self, value: i128) -> io::Result<()> {
        if let Ok(value) = u8::try_from(value) {
            self.put(&[BININT1, value])
        } else if let Ok(value) = u16::try_from(value) {
            let [low, high] = value.to_le_bytes();
            self.put(&[BININT2, low, high])
        } else if let Ok(value) = i32::try_from(value) {
            self.put(&[BININT])?;
            self.put(&value.to_le_bytes())
        } else {
            // As few bytes as hold it with its sign, at most nine.
            let bytes = value.to_le_bytes();
            let fits = |len: &usize| {
                let shift = 128 - 8 * *len as u32;
                value << shift >> shift == value
            };
            let len = (5..16).find(fits).unwrap_or(16);
            self.put(&[LONG1, len as u8])?;
            self.put(&bytes[..len])
        }
    }
}

impl<W: Write> Sink for Pickle<W> {
    fn begin_dict(&mut self) -> io::Result<()> {
        self.begin(EMPTY_DICT, true)
    }

    fn end_dict(&mut self) -> io::Result<()> {
        self.end(SETITEMS)
    }

    fn begin_list(&mut self) -> io::Result<()> {
        self.begin(EMPTY_LIST, false)
    }

    fn end_list(&mut self) -> io::Result<()> {
        self.end(APPENDS)
    }

    fn key(&mut self, key: &'static str) -> io::Result<()> {
        self.begin_item()?;
        self.known_word(key)
    }

    fn number(&mut self, value: u64) -> io::Result<()> {
        self.begin_value()?;
        self.integer(value.into())
    }

    fn signed(&mut self, value: i64) -> io::Result<()> {
        self.begin_value()?;
        self.integer(value.into())
    }

    fn flag(&mut self, value: bool) -> io::Result<()> {
        self.begin_value()?;
        self.put(&[if value { NEWTRUE } else { NEWFALSE }])
    }

    fn pair(&mut self, pair: (i64, i64)) -> io::Result<()> {
        self.begin_value()?;
        self.integer(pair.0.into())?;
        self.integer(pair.1.into())?;
        self.put(&[TUPLE2])
    }

    fn word(&mut self, text: &str) -> io::Result<()> {
        self.begin_value()?;
        self.known_word(text)
    }

    fn text(&mut self, snapshot: &Snapshot, text: TextId) -> io::Result<()> {
        self.begin_value()?;
        if let Some(memo) = self.texts.get(&text) {
            return self.get(*memo);
        }
        let memo = self.new_text(snapshot.strings.get(text))?;
        self.texts.insert(text, memo);
        Ok(())
    }

    fn stack(&mut self, snapshot: &Snapshot, stack: StackId) -> io::Result<()> {
        if let Some(memo) = self.stacks.get(&stack) {
            let memo = *memo;
            self.begin_value()?;
            return self.get(memo);
        }
        write_frames(self, snapshot, stack)?;
        // The list lies on top of the unpickler's stack, filled: that is where MEMOIZE looks.
        let memo = self.memoize()?;
        self.stacks.insert(stack, memo);
        Ok(())
    }
}
