//! The pickle machine: runs the data opcodes of protocols 0 to 5 over a byte slice and fills the
//! heap. It makes numbers, texts, lists, tuples and dictionaries, and nothing else: an opcode that
//! would import, call or build is an error with its name and place. There is no recursion; text
//! forms of numbers (protocol 0) are in `text_form.rs`.

use plimsoll_core::{Error, Result};

use super::bad_file;
use super::heap::{Fault, Heap, Object, Value};
use super::limits::Limits;
use super::opcode as op;
use super::text_form;

/// Runs the pickle. The answer is the heap and its one value.
pub(super) fn run(bytes: &[u8], limits: &Limits) -> Result<(Heap, Value, u8)> {
    let mut machine = Machine {
        bytes,
        at: 0,
        heap: Heap::new(bytes.len(), limits),
        memo: Vec::new(),
        protocol: 0,
    };
    machine.run().map(|value| (machine.heap, value, machine.protocol))
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    heap: Heap,
    memo: Vec<Value>,
    protocol: u8,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Value> {
        loop {
            let start = self.at;
            let Some(&opcode) = self.bytes.get(self.at) else {
                return Err(bad_file(start, "the file ends in the middle of the pickle"));
            };
            self.at += 1;
            if opcode == op::STOP {
                return self.heap.pop().map_err(|fault| self.error(start, opcode, &fault));
            }
            self.step(opcode).map_err(|fault| self.error(start, opcode, &fault))?;
        }
    }

    fn error(&self, at: usize, opcode: u8, fault: &str) -> Error {
        bad_file(at, &format!("opcode {}: {fault}", op::name(opcode)))
    }

    /// Runs one opcode: what a snapshot is made of first, containers and rarer values in their own
    /// functions.
    fn step(&mut self, opcode: u8) -> Result<(), Fault> {
        match opcode {
            op::BINGET => {
                let at = self.byte()?;
                self.get(at.into())
            }
            op::LONG_BINGET => {
                let at = self.u32()?;
                self.get(at as usize)
            }
            op::MEMOIZE => self.put(self.memo.len()),
            op::LONG1 => {
                let len = self.byte()?;
                let value = long(self.take(len.into())?);
                self.heap.push(value)
            }
            op::BININT1 => {
                let value = self.byte()?;
                self.heap.push(Value::Int(value.into()))
            }
            op::BININT2 => {
                let value = self.take(2)?;
                let value = u16::from_le_bytes([value[0], value[1]]);
                self.heap.push(Value::Int(value.into()))
            }
            op::BININT => {
                let value = self.u32()? as i32;
                self.heap.push(Value::Int(value.into()))
            }
            op::SHORT_BINUNICODE => {
                let len = self.byte()?;
                self.text(len.into())
            }
            op::MARK => self.heap.open(),
            op::EMPTY_DICT => self.new_object(Object::EmptyDict),
            op::EMPTY_LIST => self.new_object(Object::EmptyList),
            op::SETITEMS | op::APPENDS | op::SETITEM | op::APPEND | op::DICT | op::LIST => {
                self.container(opcode)
            }
            op::TUPLE | op::EMPTY_TUPLE | op::TUPLE1 | op::TUPLE2 | op::TUPLE3 => {
                self.tuple(opcode)
            }
            _ => self.rarer(opcode),
        }
    }

    fn container(&mut self, opcode: u8) -> Result<(), Fault> {
        match opcode {
            op::APPEND => {
                let start = self.top(1)?;
                let list = self.below(start)?;
                self.heap.append(list, start)
            }
            op::SETITEM => {
                let start = self.top(2)?;
                let dict = self.below(start)?;
                self.heap.set_items(dict, start, false)
            }
            op::APPENDS => {
                let start = self.heap.close()?;
                let list = self.below(start)?;
                self.heap.append(list, start)
            }
            op::SETITEMS => {
                let start = self.heap.close()?;
                let dict = self.below(start)?;
                // CPython splits dictionaries after a thousand items; none of ours has that many.
                self.heap.set_items(dict, start, true)
            }
            op::DICT => {
                let start = self.heap.close()?;
                let dict = self.heap.new_object(Object::EmptyDict)?;
                self.heap.set_items(dict, start, start < self.heap.stack.len())?;
                self.heap.push(dict)
            }
            _ => {
                let start = self.heap.close()?;
                let list = self.heap.new_object(Object::EmptyList)?;
                self.heap.append(list, start)?;
                self.heap.push(list)
            }
        }
    }

    fn tuple(&mut self, opcode: u8) -> Result<(), Fault> {
        let start = match opcode {
            op::TUPLE => self.heap.close()?,
            op::EMPTY_TUPLE => self.heap.stack.len(),
            _ => self.top(usize::from(opcode - op::TUPLE1) + 1)?,
        };
        let value = self.heap.tuple(start)?;
        self.heap.push(value)
    }

    fn rarer(&mut self, opcode: u8) -> Result<(), Fault> {
        match opcode {
            op::PROTO => {
                self.protocol = self.byte()?;
                match self.protocol {
                    0..=5 => Ok(()),
                    other => Err(format!("pickle protocol {other} is not known (0 to 5 are)")),
                }
            }
            op::FRAME => self.take(8).map(|_| ()),
            op::NONE => self.heap.push(Value::None),
            op::NEWTRUE => self.heap.push(Value::Flag(true)),
            op::NEWFALSE => self.heap.push(Value::Flag(false)),
            op::BINFLOAT => {
                let bytes = self.take(8)?.try_into().unwrap_or_default();
                self.heap.push(Value::Float(f64::from_be_bytes(bytes)))
            }
            op::BINUNICODE | op::BINSTRING | op::BINBYTES => {
                let len = self.u32()?;
                self.text(len as usize)
            }
            op::SHORT_BINSTRING | op::SHORT_BINBYTES => {
                let len = self.byte()?;
                self.text(len.into())
            }
            op::BINUNICODE8 | op::BINBYTES8 | op::BYTEARRAY8 => {
                let len = self.take(8)?.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
                self.text(usize::try_from(len).unwrap_or(usize::MAX))
            }
            op::LONG4 => {
                let len = self.u32()?;
                let value = long(self.take(len as usize)?);
                self.heap.push(value)
            }
            op::BINPUT => {
                let at = self.byte()?;
                self.put(at.into())
            }
            op::LONG_BINPUT => {
                let at = self.u32()?;
                self.put(at as usize)
            }
            op::POP => match self.heap.marks.last() == Some(&self.heap.stack.len()) {
                true => self.heap.close().map(|_| ()),
                false => self.heap.pop().map(|_| ()),
            },
            op::POP_MARK => {
                let start = self.heap.close()?;
                self.heap.stack.truncate(start);
                Ok(())
            }
            op::DUP => {
                let value = self.heap.pop()?;
                self.heap.push(value)?;
                self.heap.push(value)
            }
            _ => self.written_out(opcode),
        }
    }

    /// Opcodes whose argument is a line of text: protocol 0.
    fn written_out(&mut self, opcode: u8) -> Result<(), Fault> {
        match opcode {
            op::PUT => {
                let at = text_form::index(self.line()?)?;
                self.put(at)
            }
            op::GET => {
                let at = text_form::index(self.line()?)?;
                self.get(at)
            }
            op::INT | op::LONG => {
                let value = text_form::integer(self.line()?)?;
                self.heap.push(value)
            }
            op::FLOAT => {
                let value = text_form::float(self.line()?)?;
                self.heap.push(value)
            }
            op::UNICODE => {
                let text = text_form::unicode(self.line()?);
                self.push_text(&text)
            }
            op::STRING => {
                let text = text_form::quoted(self.line()?)?;
                self.push_text(&text)
            }
            _ => Err("this is not data; snapshots hold only data, and nothing here is run".into()),
        }
    }

    fn new_object(&mut self, object: Object) -> Result<(), Fault> {
        let value = self.heap.new_object(object)?;
        self.heap.push(value)
    }

    /// The height of the stack below the top `count` values, which must not reach past an open
    /// container.
    fn top(&self, count: usize) -> Result<usize, Fault> {
        let floor = self.heap.marks.last().copied().unwrap_or(0);
        match self.heap.stack.len().checked_sub(count) {
            Some(start) if start >= floor => Ok(start),
            _ => Err("a value is missing".into()),
        }
    }

    /// The container that lies right below `start`.
    fn below(&self, start: usize) -> Result<Value, Fault> {
        let floor = self.heap.marks.last().copied().unwrap_or(0);
        match start > floor {
            true => Ok(self.heap.stack[start - 1]),
            false => Err("the container is missing".into()),
        }
    }

    fn put(&mut self, at: usize) -> Result<(), Fault> {
        let value = self.heap.pop()?;
        self.heap.push(value)?;
        if at >= self.memo.len() {
            let new = (at - self.memo.len()).saturating_add(1);
            self.heap.charge(new.saturating_mul(size_of::<Value>()))?;
            self.memo.resize(at + 1, Value::None);
        }
        self.memo[at] = value;
        Ok(())
    }

    fn get(&mut self, at: usize) -> Result<(), Fault> {
        match self.memo.get(at) {
            Some(value) => self.heap.push(*value),
            None => Err(format!("memo {at} was never stored")),
        }
    }

    fn take(&mut self, len: usize) -> Result<&[u8], Fault> {
        let rest = &self.bytes[self.at..];
        if len > rest.len() {
            return Err(format!("{len} bytes should follow, but {} do", rest.len()));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.take(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// A line without its end.
    fn line(&mut self) -> Result<&[u8], Fault> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| *b == b'\n').ok_or("the line has no end")?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    fn text(&mut self, len: usize) -> Result<(), Fault> {
        let start = self.at;
        self.take(len)?;
        // Python writes lone surrogates as they are, which is no UTF-8; they are shown as
        // replacement characters.
        match std::str::from_utf8(&self.bytes[start..start + len]) {
            Ok(text) => self.push_text(text),
            Err(_) => {
                let text = String::from_utf8_lossy(&self.bytes[start..start + len]).into_owned();
                self.push_text(&text)
            }
        }
    }

    fn push_text(&mut self, text: &str) -> Result<(), Fault> {
        let value = self.heap.text_value(text)?;
        self.heap.push(value)
    }
}

/// A little-endian two's complement integer of any length.
fn long(bytes: &[u8]) -> Value {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    if bytes.len() <= 8 {
        let mut filled = [if negative { 0xff } else { 0 }; 8];
        filled[..bytes.len()].copy_from_slice(bytes);
        return Value::Int(i64::from_le_bytes(filled));
    }
    let (low, high) = bytes.split_at(8);
    let number = u64::from_le_bytes(low.try_into().unwrap_or_default());
    if high.iter().all(|byte| *byte == 0) {
        return i64::try_from(number).map_or(Value::Wide(number), Value::Int);
    }
    match number as i64 {
        number if number < 0 && high.iter().all(|byte| *byte == 0xff) => Value::Int(number),
        _ => Value::Huge,
    }
}
