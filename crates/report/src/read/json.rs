//! The JSON reader: the same layout, tuples as arrays. It goes through the text once and fills the
//! heap as the pickle machine does, so no tree of values is built; nesting is kept on the heap, not
//! on the program's stack.

use plimsoll_core::Result;
use plimsoll_pickle::Number;

use super::bad_file;
use super::heap::{Fault, Heap, Object, Value};
use super::limits::Limits;
use super::pickle;

/// Items of a list that may wait on the stack before they are appended.
const BATCH: usize = 1024;

/// Reads one JSON value. The answer is the heap and the value.
pub(super) fn run(bytes: &[u8], limits: &Limits) -> Result<(Heap, Value)> {
    let heap = Heap::new(bytes.len(), limits);
    let mut reader = Reader { bytes, at: 0, heap, open: Vec::new(), scratch: String::new() };
    match reader.run() {
        Ok(value) => Ok((reader.heap, value)),
        Err(fault) => Err(bad_file(reader.at, &fault)),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    heap: Heap,
    /// Whether each open container is a dictionary.
    open: Vec<bool>,
    scratch: String,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<Value, Fault> {
        loop {
            self.value()?;
            // A value is complete: what follows belongs to the container around it.
            loop {
                let next = self.skip_space();
                match (self.open.last(), next) {
                    (None, None) => return self.heap.pop(),
                    (None, Some(_)) => return Err("something follows the end".into()),
                    (Some(false), Some(b',')) => {
                        self.at += 1;
                        self.append_batch()?;
                        break;
                    }
                    (Some(true), Some(b',')) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (Some(false), Some(b']')) => self.end_list()?,
                    (Some(true), Some(b'}')) => self.end_dict()?,
                    (_, None) => return Err("the file ends in the middle of the JSON".into()),
                    (Some(false), _) => return Err("expected `,` or `]`".into()),
                    (Some(true), _) => return Err("expected `,` or `}`".into()),
                }
            }
        }
    }

    /// Reads a value, or the start of one that holds others, up to the first value inside it.
    fn value(&mut self) -> Result<(), Fault> {
        loop {
            match self.skip_space() {
                Some(b'{') => {
                    self.begin(Object::EmptyDict, true)?;
                    if self.skip_space() == Some(b'}') {
                        return self.end_dict();
                    }
                    self.key()?;
                }
                Some(b'[') => {
                    self.begin(Object::EmptyList, false)?;
                    if self.skip_space() == Some(b']') {
                        return self.end_list();
                    }
                }
                Some(b'"') => {
                    let value = self.text()?;
                    return self.heap.push(value);
                }
                Some(b't') => return self.word("true", Value::Flag(true)),
                Some(b'f') => return self.word("false", Value::Flag(false)),
                Some(b'n') => return self.word("null", Value::None),
                Some(b'N') => return self.word("NaN", Value::Float(f64::NAN)),
                Some(b'I') => return self.word("Infinity", Value::Float(f64::INFINITY)),
                Some(b'-' | b'0'..=b'9') => return self.number(),
                Some(_) => return Err("expected a value".into()),
                None => return Err("the file ends in the middle of the JSON".into()),
            }
        }
    }

    fn begin(&mut self, object: Object, dict: bool) -> Result<(), Fault> {
        self.at += 1;
        let value = self.heap.new_object(object)?;
        self.heap.push(value)?;
        self.open.push(dict);
        self.heap.open()
    }

    fn end_list(&mut self) -> Result<(), Fault> {
        self.at += 1;
        self.open.pop();
        let start = self.heap.close()?;
        let list = self.heap.stack[start - 1];
        self.heap.append(list, start)
    }

    fn end_dict(&mut self) -> Result<(), Fault> {
        self.at += 1;
        self.open.pop();
        let start = self.heap.close()?;
        let dict = self.heap.stack[start - 1];
        let whole = start < self.heap.stack.len();
        self.heap.set_items(dict, start, whole)
    }

    /// Moves the waiting items into their list, so that a long list never lies on the stack as a
    /// whole.
    fn append_batch(&mut self) -> Result<(), Fault> {
        let start = self.heap.marks.last().copied().unwrap_or(0);
        if self.heap.stack.len() - start < BATCH {
            return Ok(());
        }
        let list = self.heap.stack[start - 1];
        self.heap.append(list, start)
    }

    fn key(&mut self) -> Result<(), Fault> {
        if self.skip_space() != Some(b'"') {
            return Err("expected a key in quotes".into());
        }
        let key = self.text()?;
        self.heap.push(key)?;
        match self.skip_space() {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            _ => Err("expected `:`".into()),
        }
    }

    fn skip_space(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                other => return Some(*other),
            }
        }
        None
    }

    fn word(&mut self, word: &str, value: Value) -> Result<(), Fault> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err("expected a value".into());
        }
        self.at += word.len();
        self.heap.push(value)
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let mut whole = true;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'0'..=b'9' | b'-' | b'+' => {}
                b'.' | b'e' | b'E' => whole = false,
                _ => break,
            }
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        let value = match text.parse::<i128>() {
            Ok(number) if whole => pickle::value(Number::narrow(number)),
            _ => match text.parse::<f64>() {
                Ok(_) if whole => Value::Huge,
                Ok(number) => Value::Float(number),
                Err(_) if text == "-" && self.bytes[self.at..].starts_with(b"Infinity") => {
                    self.at += "Infinity".len();
                    Value::Float(f64::NEG_INFINITY)
                }
                Err(_) => return Err("the number is no number".into()),
            },
        };
        self.heap.push(value)
    }

    fn text(&mut self) -> Result<Value, Fault> {
        self.at += 1;
        let start = self.at;
        let len = self.bytes[start..]
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\') || *byte < 0x20)
            .ok_or("the text has no end")?;
        if self.bytes[start + len] == b'"' {
            self.at = start + len + 1;
            let text = std::str::from_utf8(&self.bytes[start..start + len])
                .map_err(|_| "the text is not UTF-8")?;
            return self.heap.text_value(text);
        }
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        self.escaped_text(&mut text)?;
        let value = self.heap.text_value(&text);
        self.scratch = text;
        value
    }

    fn escaped_text(&mut self, text: &mut String) -> Result<(), Fault> {
        loop {
            let start = self.at;
            let rest = &self.bytes[start..];
            let plain = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\') || *byte < 0x20)
                .ok_or("the text has no end")?;
            let part = std::str::from_utf8(&rest[..plain]).map_err(|_| "the text is not UTF-8")?;
            text.push_str(part);
            self.at += plain + 1;
            match rest[plain] {
                b'"' => return Ok(()),
                b'\\' => {
                    let escape = self.bytes.get(self.at).copied().ok_or("the text has no end")?;
                    self.at += 1;
                    text.push(match escape {
                        b'"' | b'\\' | b'/' => char::from(escape),
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.unicode()?,
                        _ => return Err("an escape is not known".into()),
                    });
                }
                _ => return Err("a control character stands in a text".into()),
            }
        }
    }

    /// `XXXX` after `\u`, and the second half if it is the first of a pair; a lone half is shown as
    /// a replacement.
    fn unicode(&mut self) -> Result<char, Fault> {
        let first = self.hex()?;
        if (0xd800..0xdc00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or("the text has no end")?;
        self.at += 4;
        std::str::from_utf8(digits)
            .ok()
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| "an escape is not known".into())
    }
}
