//! The pickle machine: runs the instructions of data over a byte slice and fills the heap. It makes
//! numbers, texts, lists, tuples and dictionaries, and nothing else: an instruction that would
//! import, call or build is an error with its name and place. There is no recursion; the crate
//! `pickle` takes the bytes apart.

use plimsoll_core::Result;
use plimsoll_pickle::{Instruction, Number, Reader};

use super::bad_file;
use super::heap::{Fault, Heap, Object, Value};
use super::limits::Limits;

/// Runs the pickle. The answer is the heap and its one value.
pub(super) fn run(bytes: &[u8], limits: &Limits) -> Result<(Heap, Value, u8)> {
    let mut reader = Reader::new(bytes);
    let heap = Heap::new(bytes.len(), limits);
    let mut machine = Machine { heap, memo: Vec::new(), protocol: 0 };
    loop {
        let stepped = reader.next().and_then(|instruction| match instruction {
            Instruction::Stop => machine.heap.pop().map(Some),
            instruction => machine.step(instruction).map(|()| None),
        });
        match stepped {
            Ok(None) => {}
            Ok(Some(value)) => return Ok((machine.heap, value, machine.protocol)),
            Err(fault) if reader.position() == bytes.len() => {
                return Err(bad_file(reader.position(), &fault));
            }
            Err(fault) => {
                let what = format!("opcode {}: {fault}", reader.opcode());
                return Err(bad_file(reader.position(), &what));
            }
        }
    }
}

struct Machine {
    heap: Heap,
    memo: Vec<Value>,
    protocol: u8,
}

impl Machine {
    /// Runs one instruction: what a snapshot is made of first, containers and rarer values in their
    /// own functions.
    #[inline]
    fn step(&mut self, instruction: Instruction<'_>) -> Result<(), Fault> {
        match instruction {
            Instruction::Get(at) => self.get(at),
            Instruction::Memoize => self.put(self.memo.len()),
            Instruction::Put(at) => self.put(at),
            Instruction::Number(number) => self.heap.push(value(number)),
            Instruction::Text(text) => self.push_text(&text),
            Instruction::Mark => self.heap.open(),
            Instruction::EmptyDict => self.new_object(Object::EmptyDict),
            Instruction::EmptyList => self.new_object(Object::EmptyList),
            Instruction::Tuple => {
                let start = self.heap.close()?;
                self.tuple(start)
            }
            Instruction::TupleOf(count) => {
                let start = self.top(count.into())?;
                self.tuple(start)
            }
            other => self.rarer(other),
        }
    }

    fn rarer(&mut self, instruction: Instruction<'_>) -> Result<(), Fault> {
        match instruction {
            Instruction::Protocol(protocol) => {
                self.protocol = protocol;
                Ok(())
            }
            Instruction::Frame => Ok(()),
            Instruction::None => self.heap.push(Value::None),
            Instruction::Flag(flag) => self.heap.push(Value::Flag(flag)),
            Instruction::Float(number) => self.heap.push(Value::Float(number)),
            Instruction::Bytes(bytes) | Instruction::ByteArray(bytes) => {
                self.push_text(&String::from_utf8_lossy(bytes))
            }
            Instruction::Pop => match self.heap.marks.last() == Some(&self.heap.stack.len()) {
                true => self.heap.close().map(|_| ()),
                false => self.heap.pop().map(|_| ()),
            },
            Instruction::PopMark => {
                let start = self.heap.close()?;
                self.heap.stack.truncate(start);
                Ok(())
            }
            Instruction::Dup => {
                let value = self.heap.pop()?;
                self.heap.push(value)?;
                self.heap.push(value)
            }
            other => self.container(&other),
        }
    }

    fn container(&mut self, instruction: &Instruction<'_>) -> Result<(), Fault> {
        match instruction {
            Instruction::Append => {
                let start = self.top(1)?;
                let list = self.below(start)?;
                self.heap.append(list, start)
            }
            Instruction::SetItem => {
                let start = self.top(2)?;
                let dict = self.below(start)?;
                self.heap.set_items(dict, start, false)
            }
            Instruction::Appends => {
                let start = self.heap.close()?;
                let list = self.below(start)?;
                self.heap.append(list, start)
            }
            Instruction::SetItems => {
                let start = self.heap.close()?;
                let dict = self.below(start)?;
                // CPython splits dictionaries after a thousand items; none of ours has that many.
                self.heap.set_items(dict, start, true)
            }
            Instruction::Dict => {
                let start = self.heap.close()?;
                let dict = self.heap.new_object(Object::EmptyDict)?;
                self.heap.set_items(dict, start, start < self.heap.stack.len())?;
                self.heap.push(dict)
            }
            Instruction::List => {
                let start = self.heap.close()?;
                let list = self.heap.new_object(Object::EmptyList)?;
                self.heap.append(list, start)?;
                self.heap.push(list)
            }
            _ => Err("this is not data; snapshots hold only data, and nothing here is run".into()),
        }
    }

    fn tuple(&mut self, start: usize) -> Result<(), Fault> {
        let value = self.heap.tuple(start)?;
        self.heap.push(value)
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

    fn push_text(&mut self, text: &str) -> Result<(), Fault> {
        let value = self.heap.text_value(text)?;
        self.heap.push(value)
    }
}

/// A whole number as the heap keeps it.
#[inline]
pub(super) fn value(number: Number) -> Value {
    match number {
        Number::Int(number) => Value::Int(number),
        Number::Wide(number) => u64::try_from(number).map_or(Value::Huge, Value::Wide),
        Number::Huge => Value::Huge,
    }
}
