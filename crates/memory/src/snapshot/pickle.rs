//! Python's pickle format, protocol 4, as far as a snapshot needs it. The subset of opcodes is the
//! one that PyTorch's web viewer reads, and its limits shape the writing:
//!
//! * items are appended in batches of at most 1000 (the viewer spreads a batch over the JavaScript
//!   stack and dies of a long one);
//! * integers past 32 bits are LONG1, never LONG4;
//! * repeated texts and frame lists are memoized, or a trace of a million events would repeat each
//!   stack a million times.
//!
//! There is no reader here, and nothing that runs code on loading can be written.

use std::collections::HashMap;
use std::io::{self, Write};

use super::sink::Sink;

const BATCH_ITEMS: usize = 1000;
/// A frame is closed at the first opcode past this size, as CPython does. Miri, which is slow, sees
/// several in a short output.
const FRAME_BYTES: usize = if cfg!(miri) { 4 << 10 } else { 64 << 10 };

mod opcode {
    pub(super) const PROTO: u8 = 0x80;
    pub(super) const FRAME: u8 = 0x95;
    pub(super) const STOP: u8 = b'.';
    pub(super) const MARK: u8 = b'(';
    pub(super) const EMPTY_DICT: u8 = b'}';
    pub(super) const SETITEMS: u8 = b'u';
    pub(super) const EMPTY_LIST: u8 = b']';
    pub(super) const APPENDS: u8 = b'e';
    pub(super) const TUPLE2: u8 = 0x86;
    pub(super) const MEMOIZE: u8 = 0x94;
    pub(super) const BINGET: u8 = b'h';
    pub(super) const LONG_BINGET: u8 = b'j';
    pub(super) const SHORT_BINUNICODE: u8 = 0x8c;
    pub(super) const BINUNICODE: u8 = b'X';
    pub(super) const BININT: u8 = b'J';
    pub(super) const BININT1: u8 = b'K';
    pub(super) const BININT2: u8 = b'M';
    pub(super) const LONG1: u8 = 0x8a;
    pub(super) const BINFLOAT: u8 = b'G';
    pub(super) const NEWTRUE: u8 = 0x88;
    pub(super) const NEWFALSE: u8 = 0x89;
}

/// An open dictionary or list: how many items the current batch holds.
struct Open {
    is_dict: bool,
    batch_items: usize,
}

/// Writes one pickled value to `out`.
pub(super) struct Pickle<W: Write> {
    out: W,
    /// Opcodes of the frame being filled.
    frame: Vec<u8>,
    open: Vec<Open>,
    /// Positions in the unpickler's memo, which numbers MEMOIZE opcodes from 0.
    texts: HashMap<String, u32>,
    shared: HashMap<u32, u32>,
    memoized: u32,
    /// The first failed write; everything after it is dropped, and `finish` reports it.
    failed: Option<io::Error>,
}

impl<W: Write> Pickle<W> {
    pub(super) fn new(mut out: W) -> Pickle<W> {
        let failed = out.write_all(&[opcode::PROTO, 4]).err();
        Pickle {
            out,
            frame: Vec::with_capacity(FRAME_BYTES + 1024),
            open: Vec::new(),
            texts: HashMap::new(),
            shared: HashMap::new(),
            memoized: 0,
            failed,
        }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.frame.push(opcode::STOP);
        self.close_frame();
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn close_frame(&mut self) {
        let length = self.frame.len() as u64;
        let written = self
            .out
            .write_all(&[opcode::FRAME])
            .and_then(|()| self.out.write_all(&length.to_le_bytes()))
            .and_then(|()| self.out.write_all(&self.frame));
        if self.failed.is_none() {
            self.failed = written.err();
        }
        self.frame.clear();
    }

    /// Called between opcodes: an opcode must not cross frames.
    fn between_opcodes(&mut self) {
        if self.frame.len() >= FRAME_BYTES {
            self.close_frame();
        }
    }

    /// Before an item of the innermost container: opens a batch, and closes a full one.
    fn begin_item(&mut self) {
        self.between_opcodes();
        let Some(open) = self.open.last_mut() else { return };
        if open.batch_items == BATCH_ITEMS {
            self.frame.push(if open.is_dict { opcode::SETITEMS } else { opcode::APPENDS });
            open.batch_items = 0;
        }
        if open.batch_items == 0 {
            self.frame.push(opcode::MARK);
        }
        open.batch_items += 1;
    }

    /// Before any value: in a dictionary the item began with its key.
    fn begin_value(&mut self) {
        match self.open.last() {
            Some(Open { is_dict: true, .. }) => self.between_opcodes(),
            _ => self.begin_item(),
        }
    }

    fn begin(&mut self, empty: u8, is_dict: bool) {
        self.begin_value();
        self.frame.push(empty);
        self.open.push(Open { is_dict, batch_items: 0 });
    }

    fn end(&mut self, close: u8) {
        let open = self.open.pop();
        if open.is_some_and(|open| open.batch_items > 0) {
            self.frame.push(close);
        }
    }

    fn memoize(&mut self) -> u32 {
        self.frame.push(opcode::MEMOIZE);
        self.memoized += 1;
        self.memoized - 1
    }

    fn get(&mut self, memo: u32) {
        match u8::try_from(memo) {
            Ok(memo) => self.frame.extend([opcode::BINGET, memo]),
            Err(_) => {
                self.frame.push(opcode::LONG_BINGET);
                self.frame.extend(memo.to_le_bytes());
            }
        }
    }

    fn put_text(&mut self, text: &str) {
        if let Some(&memo) = self.texts.get(text) {
            return self.get(memo);
        }
        match u8::try_from(text.len()) {
            Ok(length) => self.frame.extend([opcode::SHORT_BINUNICODE, length]),
            Err(_) => {
                self.frame.push(opcode::BINUNICODE);
                // No file name or operation comes near 4 GiB; a longer text is cut, not corrupted.
                let length = u32::try_from(text.len()).unwrap_or(0);
                self.frame.extend(length.to_le_bytes());
                if length == 0 {
                    return;
                }
            }
        }
        self.frame.extend(text.as_bytes());
        let memo = self.memoize();
        self.texts.insert(text.to_string(), memo);
    }

    fn put_integer(&mut self, value: i128) {
        if let Ok(small) = u8::try_from(value) {
            self.frame.extend([opcode::BININT1, small]);
        } else if let Ok(short) = u16::try_from(value) {
            self.frame.push(opcode::BININT2);
            self.frame.extend(short.to_le_bytes());
        } else if let Ok(int) = i32::try_from(value) {
            self.frame.push(opcode::BININT);
            self.frame.extend(int.to_le_bytes());
        } else {
            // Two's complement, little-endian, as few bytes as keep the sign.
            let bytes = value.to_le_bytes();
            let sign = if value < 0 { 0xff } else { 0 };
            let mut length = bytes.iter().rposition(|&b| b != sign).map_or(1, |last| last + 1);
            if (bytes[length - 1] ^ sign) & 0x80 != 0 {
                length += 1;
            }
            self.frame.extend([opcode::LONG1, length as u8]);
            self.frame.extend(&bytes[..length]);
        }
    }
}

impl<W: Write> Sink for Pickle<W> {
    fn begin_dict(&mut self) {
        self.begin(opcode::EMPTY_DICT, true);
    }

    fn end_dict(&mut self) {
        self.end(opcode::SETITEMS);
    }

    fn begin_list(&mut self) {
        self.begin(opcode::EMPTY_LIST, false);
    }

    fn end_list(&mut self) {
        self.end(opcode::APPENDS);
    }

    fn key(&mut self, name: &str) {
        self.begin_item();
        self.put_text(name);
    }

    fn text(&mut self, text: &str) {
        self.begin_value();
        self.put_text(text);
    }

    fn integer(&mut self, value: i128) {
        self.begin_value();
        self.put_integer(value);
    }

    fn float(&mut self, value: f64) {
        self.begin_value();
        self.frame.push(opcode::BINFLOAT);
        self.frame.extend(value.to_be_bytes());
    }

    fn flag(&mut self, value: bool) {
        self.begin_value();
        self.frame.push(if value { opcode::NEWTRUE } else { opcode::NEWFALSE });
    }

    fn pair(&mut self, first: i128, second: i128) {
        self.begin_value();
        self.put_integer(first);
        self.put_integer(second);
        self.frame.push(opcode::TUPLE2);
    }

    fn again(&mut self, shared: u32) -> bool {
        let Some(&memo) = self.shared.get(&shared) else { return false };
        self.begin_value();
        self.get(memo);
        true
    }

    fn first(&mut self, shared: u32) {
        let memo = self.memoize();
        self.shared.insert(shared, memo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Pickle<&mut Vec<u8>>)) -> Vec<u8> {
        let mut out = Vec::new();
        let mut pickle = Pickle::new(&mut out);
        write(&mut pickle);
        pickle.finish().unwrap();
        out
    }

    /// The one frame's opcodes, without header and STOP.
    fn opcodes(bytes: &[u8]) -> &[u8] {
        assert_eq!(bytes[..3], [0x80, 4, 0x95]);
        let length = u64::from_le_bytes(bytes[3..11].try_into().unwrap()) as usize;
        assert_eq!(bytes.len(), 11 + length);
        assert_eq!(bytes[bytes.len() - 1], b'.');
        &bytes[11..bytes.len() - 1]
    }

    #[test]
    fn integers_take_the_shortest_form_that_the_viewer_reads() {
        // Right-hand sides are what CPython's `pickle.dumps(n, 4)` writes.
        for (value, expected) in [
            (0i128, vec![b'K', 0]),
            (255, vec![b'K', 255]),
            (256, vec![b'M', 0, 1]),
            (65_536, vec![b'J', 0, 0, 1, 0]),
            (-1, vec![b'J', 255, 255, 255, 255]),
            (1 << 31, vec![0x8a, 5, 0, 0, 0, 0x80, 0]),
            (139_678_988_632_064, vec![0x8a, 6, 0, 0, 0x80, 0x8c, 0x09, 0x7f]),
            (-(1i128 << 31) - 1, vec![0x8a, 5, 0xff, 0xff, 0xff, 0x7f, 0xff]),
            (u64::MAX as i128, vec![0x8a, 9, 255, 255, 255, 255, 255, 255, 255, 255, 0]),
        ] {
            let bytes = written(|pickle| pickle.integer(value));
            assert_eq!(opcodes(&bytes), expected, "{value}");
        }
    }

    #[test]
    fn repeated_texts_and_shared_values_are_references() {
        let bytes = written(|pickle| {
            pickle.begin_list();
            pickle.text("a");
            pickle.text("a");
            for _ in 0..2 {
                if !pickle.again(7) {
                    pickle.begin_list();
                    pickle.end_list();
                    pickle.first(7);
                }
            }
            pickle.end_list();
        });
        assert_eq!(opcodes(&bytes), b"](\x8c\x01a\x94h\x00]\x94h\x01e");
    }

    #[test]
    fn batches_hold_at_most_a_thousand_items() {
        let bytes = written(|pickle| {
            pickle.begin_list();
            (0..2001).for_each(|_| pickle.flag(true));
            pickle.end_list();
        });
        let batches: Vec<usize> =
            opcodes(&bytes)[1..].split(|&b| b == b'e').map(|batch| batch.len()).collect();
        // A mark and a thousand items, twice; a mark and one item; nothing after the last.
        assert_eq!(batches, [1001, 1001, 2, 0]);
    }

    #[test]
    fn long_output_is_cut_into_frames_between_opcodes() {
        let bytes = written(|pickle| {
            pickle.begin_list();
            (0..if cfg!(miri) { 4000 } else { 100_000 }).for_each(|n| pickle.integer(n));
            pickle.end_list();
        });
        let (mut at, mut frames) = (2, 0);
        while at < bytes.len() {
            assert_eq!(bytes[at], 0x95);
            at += 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
            frames += 1;
        }
        assert_eq!(at, bytes.len());
        assert!(frames > 2);
    }

    #[test]
    fn a_failed_write_is_reported_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("disk full"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut pickle = Pickle::new(Full);
        pickle.text("x");
        assert_eq!(pickle.finish().unwrap_err().to_string(), "disk full");
    }
}
