//! Writes a pickle of protocol 2, the one that PyTorch's files have and that its reader of weights
//! knows. Texts and globals are written once and referred to; a value that is to be referred to
//! again is remembered by its place in the memo.

use std::collections::HashMap;

use crate::opcode as op;

/// A pickle in the making.
///
/// ```
/// use plimsoll_pickle::Writer;
/// let mut pickle = Writer::new();
/// pickle.open();
/// pickle.int(3);
/// pickle.text("x");
/// pickle.tuple();
/// assert_eq!(pickle.finish(), b"\x80\x02(K\x03X\x01\0\0\0xq\0t.");
/// ```
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    texts: HashMap<String, u32>,
    globals: HashMap<(&'static str, &'static str), u32>,
    memoized: u32,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer::new()
    }
}

impl Writer {
    /// An empty one.
    pub fn new() -> Writer {
        Writer {
            out: vec![op::PROTO, 2],
            texts: HashMap::new(),
            globals: HashMap::new(),
            memoized: 0,
        }
    }

    /// The bytes: the value that was written last, and the end.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.push(op::STOP);
        self.out
    }

    /// `None`.
    pub fn none(&mut self) {
        self.out.push(op::NONE);
    }

    /// `True` or `False`.
    pub fn flag(&mut self, flag: bool) {
        self.out.push(if flag { op::NEWTRUE } else { op::NEWFALSE });
    }

    /// An `int`.
    pub fn int(&mut self, number: i128) {
        if let Ok(small) = u8::try_from(number) {
            self.out.extend([op::BININT1, small]);
        } else if let Ok(short) = u16::try_from(number) {
            self.out.push(op::BININT2);
            self.out.extend(short.to_le_bytes());
        } else if let Ok(int) = i32::try_from(number) {
            self.out.push(op::BININT);
            self.out.extend(int.to_le_bytes());
        } else {
            let bytes = number.to_le_bytes();
            // Bytes that only repeat the sign are left out.
            let sign = if number < 0 { 0xff } else { 0 };
            let mut len = bytes.len();
            while len > 1 && bytes[len - 1] == sign && (bytes[len - 2] ^ sign) & 0x80 == 0 {
                len -= 1;
            }
            self.out.extend([op::LONG1, len as u8]);
            self.out.extend(&bytes[..len]);
        }
    }

    /// A `float`.
    pub fn float(&mut self, number: f64) {
        self.out.push(op::BINFLOAT);
        self.out.extend(number.to_be_bytes());
    }

    /// A `str`; one that was written before is referred to.
    pub fn text(&mut self, text: &str) {
        if let Some(&place) = self.texts.get(text) {
            return self.again(place);
        }
        match u32::try_from(text.len()) {
            Ok(len) => {
                self.out.push(op::BINUNICODE);
                self.out.extend(len.to_le_bytes());
            }
            // Of protocol 4, as the older ones have no length for it.
            Err(_) => {
                self.out.push(op::BINUNICODE8);
                self.out.extend((text.len() as u64).to_le_bytes());
            }
        }
        self.out.extend(text.as_bytes());
        let place = self.remember();
        self.texts.insert(text.to_string(), place);
    }

    /// Something with a name in a module.
    pub fn global(&mut self, module: &'static str, name: &'static str) {
        if let Some(&place) = self.globals.get(&(module, name)) {
            return self.again(place);
        }
        self.out.push(op::GLOBAL);
        for line in [module, name] {
            self.out.extend(line.as_bytes());
            self.out.push(b'\n');
        }
        let place = self.remember();
        self.globals.insert((module, name), place);
    }

    /// A mark, before the values of a tuple or the items of a list or a dict.
    pub fn open(&mut self) {
        self.out.push(op::MARK);
    }

    /// A tuple of the values since the mark.
    pub fn tuple(&mut self) {
        self.out.push(op::TUPLE);
    }

    /// A tuple without values.
    pub fn empty_tuple(&mut self) {
        self.out.push(op::EMPTY_TUPLE);
    }

    /// A list without items.
    pub fn empty_list(&mut self) {
        self.out.push(op::EMPTY_LIST);
    }

    /// The values since the mark go into the list below it.
    pub fn append_all(&mut self) {
        self.out.push(op::APPENDS);
    }

    /// A dict without items.
    pub fn empty_dict(&mut self) {
        self.out.push(op::EMPTY_DICT);
    }

    /// The keys and values since the mark go into the dict below it.
    pub fn set_items(&mut self) {
        self.out.push(op::SETITEMS);
    }

    /// Calls the global below with the tuple on top.
    pub fn reduce(&mut self) {
        self.out.push(op::REDUCE);
    }

    /// Gives the state on top to the object below.
    pub fn build(&mut self) {
        self.out.push(op::BUILD);
    }

    /// What the tuple on top stands for outside the pickle.
    pub fn persistent_id(&mut self) {
        self.out.push(op::BINPERSID);
    }

    /// Remembers the value on top; the answer is its place.
    pub fn remember(&mut self) -> u32 {
        let place = self.memoized;
        self.memoized += 1;
        match u8::try_from(place) {
            Ok(place) => self.out.extend([op::BINPUT, place]),
            Err(_) => {
                self.out.push(op::LONG_BINPUT);
                self.out.extend(place.to_le_bytes());
            }
        }
        place
    }

    /// The value that was remembered at a place.
    pub fn again(&mut self, place: u32) {
        match u8::try_from(place) {
            Ok(place) => self.out.extend([op::BINGET, place]),
            Err(_) => {
                self.out.push(op::LONG_BINGET);
                self.out.extend(place.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instruction, Number, Reader};

    #[test]
    fn every_number_reads_back() {
        let powers = (0..127).map(|power| 1i128 << power);
        let numbers: Vec<i128> = powers
            .flat_map(|power| [power, power - 1, -power, -power - 1])
            .chain([0, i128::MAX, i128::MIN])
            .collect();
        for number in numbers {
            let mut writer = Writer::new();
            writer.int(number);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            reader.next().unwrap();
            let read = reader.next().unwrap();
            assert_eq!(read, Instruction::Number(Number::narrow(number)), "{bytes:?}");
        }
    }

    #[test]
    fn the_memo_outgrows_a_byte() {
        let mut writer = Writer::new();
        for number in 0..300 {
            writer.text(&format!("{number}"));
        }
        writer.text("299");
        let bytes = writer.finish();
        let end = [op::LONG_BINGET, 43, 1, 0, 0, op::STOP];
        assert!(bytes.ends_with(&end), "299 = 256 + 43");
    }
}
