//! Where values live while a file is read: a stack of small values, and a table of the containers
//! that they refer to. Both the pickle machine and the JSON reader fill it.
//!
//! A container is settled as soon as its keys tell what it is: an event goes into the columns, a
//! frame and a list of frames become numbers, a block a row. So a trace of ten million events never
//! exists as ten million dictionaries, and nothing here is recursive: containers refer to each
//! other by number.

use std::collections::HashMap;
use std::ops::Range;

use super::keys::{self, bit};
use super::limits::Limits;
use crate::events::Events;
use crate::segments::Block;
use crate::stacks::{FrameId, StackId, Stacks};
use crate::strings::{Strings, TextId};

/// A value on the stack: 16 bytes, and copied freely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Flag(bool),
    Int(i64),
    /// From 2^63 to 2^64 - 1.
    Wide(u64),
    /// An integer that no field of a snapshot can hold.
    Huge,
    Float(f64),
    Text(TextId),
    /// Two integers, a place in `Heap::pairs`.
    Pair(u32),
    /// A container, a place in `Heap::objects`.
    Object(u32),
}

/// A container, or what it was settled into. Boxes keep it at 16 bytes: there is one for every
/// event of a file.
#[derive(Debug)]
#[expect(
    clippy::box_collection,
    reason = "most objects are small numbers; a Vec inside would double them all"
)]
pub(super) enum Object {
    EmptyList,
    EmptyDict,
    List(Box<Vec<Value>>),
    /// Keys and values in turn.
    Dict(Box<Vec<Value>>),
    Frame(FrameId),
    Stack(StackId),
    Event(u32),
    /// A list of events, as ranges of rows.
    Events(Box<Vec<Range<u32>>>),
    Block(u32),
}

/// What is wrong with a file, without the place; the reader adds it.
pub(super) type Fault = String;

pub(super) struct Heap {
    pub(super) strings: Strings,
    pub(super) stacks: Stacks,
    pub(super) events: Events,
    pub(super) blocks: Vec<Block>,
    pub(super) stack: Vec<Value>,
    /// Heights of the stack where open containers begin.
    pub(super) marks: Vec<usize>,
    pub(super) objects: Vec<Object>,
    pub(super) pairs: Vec<(i64, i64)>,
    pair_ids: HashMap<(i64, i64), u32>,
    pub(super) stream_ids: HashMap<u64, u32>,
    /// Frames of the list being settled, kept to save an allocation each time.
    scratch: Vec<FrameId>,
    depth_limit: usize,
    /// Bytes that may still be taken; see `Limits`.
    budget: usize,
}

/// Bytes charged for a value that stays: its own and the growth of the vector that holds it.
const VALUE_BYTES: usize = size_of::<Value>();
const OBJECT_BYTES: usize = size_of::<Object>();
const _: () = assert!(VALUE_BYTES == 16 && OBJECT_BYTES == 16);

impl Heap {
    pub(super) fn new(len: usize, limits: &Limits) -> Heap {
        let mut strings = Strings::default();
        keys::intern(&mut strings);
        Heap {
            strings,
            stacks: Stacks::default(),
            events: Events::default(),
            blocks: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            objects: Vec::new(),
            pairs: Vec::new(),
            pair_ids: HashMap::new(),
            stream_ids: HashMap::new(),
            scratch: Vec::new(),
            depth_limit: limits.depth,
            budget: limits.budget(len),
        }
    }

    /// Takes bytes from the budget.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err("the values take more memory than a snapshot of this size can need".into()),
        }
    }

    pub(super) fn push(&mut self, value: Value) -> Result<(), Fault> {
        // The stack's own growth is charged when it grows, not at each push: it shrinks again.
        if self.stack.len() == self.stack.capacity() {
            self.charge(self.stack.len() * VALUE_BYTES)?;
        }
        self.stack.push(value);
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Result<Value, Fault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => Ok(self.stack.pop().unwrap_or(Value::None)),
            false => Err("a value is missing".into()),
        }
    }

    pub(super) fn open(&mut self) -> Result<(), Fault> {
        if self.marks.len() >= self.depth_limit {
            return Err(format!("containers are nested more than {} deep", self.depth_limit));
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Ends the innermost open container; its values are the stack from the answer on.
    pub(super) fn close(&mut self) -> Result<usize, Fault> {
        self.marks.pop().ok_or_else(|| "a container ends that never began".into())
    }

    pub(super) fn new_object(&mut self, object: Object) -> Result<Value, Fault> {
        self.charge(OBJECT_BYTES)?;
        let at = u32::try_from(self.objects.len()).map_err(|_| "too many containers")?;
        self.objects.push(object);
        Ok(Value::Object(at))
    }

    /// A text, new or known.
    pub(super) fn text_value(&mut self, text: &str) -> Result<Value, Fault> {
        let count = self.strings.len();
        let id = self.strings.intern(text);
        if self.strings.len() > count {
            // Kept twice, in the table and in its index.
            self.charge(2 * text.len() + 64)?;
        }
        Ok(Value::Text(id))
    }

    /// A tuple of the stack from `start` on. Pairs of integers are common (pools); other tuples are
    /// lists.
    pub(super) fn tuple(&mut self, start: usize) -> Result<Value, Fault> {
        if let [Value::Int(a), Value::Int(b)] = self.stack[start..] {
            self.stack.truncate(start);
            let next = self.pairs.len() as u32;
            let id = *self.pair_ids.entry((a, b)).or_insert(next);
            if id == next {
                self.charge(64)?;
                self.pairs.push((a, b));
            }
            return Ok(Value::Pair(id));
        }
        let list = self.new_object(Object::EmptyList)?;
        self.append(list, start)?;
        Ok(list)
    }

    /// Appends the stack from `start` on to a list.
    pub(super) fn append(&mut self, list: Value, start: usize) -> Result<(), Fault> {
        let Value::Object(at) = list else {
            return Err("items for something that is no list".into());
        };
        for place in start..self.stack.len() {
            if let Value::Object(item) = self.stack[place]
                && matches!(self.objects[item as usize], Object::Dict(_))
            {
                self.settle(item)?;
            }
        }
        let (empty, events) = match &self.objects[at as usize] {
            Object::EmptyList => (true, true),
            Object::Events(_) => (false, true),
            Object::List(_) | Object::Stack(_) => (false, false),
            _ => return Err("items for something that is no list".into()),
        };
        let settled =
            empty && self.settle_as_stack(at, start)? || events && self.append_events(at, start)?;
        if !settled {
            self.append_values(at, start)?;
        }
        self.stack.truncate(start);
        Ok(())
    }

    /// Frames only: the list is a stack. A later append takes this back.
    fn settle_as_stack(&mut self, at: u32, start: usize) -> Result<bool, Fault> {
        self.scratch.clear();
        for value in &self.stack[start..] {
            match value {
                Value::Object(item) => match self.objects[*item as usize] {
                    Object::Frame(frame) => self.scratch.push(frame),
                    _ => return Ok(false),
                },
                _ => return Ok(false),
            }
        }
        if self.scratch.is_empty() {
            return Ok(true);
        }
        let before = (self.stacks.len(), self.stacks.member_count());
        let stack = self.stacks.intern(&self.scratch);
        if self.stacks.len() > before.0 {
            self.charge(64 + 4 * (self.stacks.member_count() - before.1))?;
        }
        self.objects[at as usize] = Object::Stack(stack);
        Ok(true)
    }

    /// Events only: the list is ranges of rows, one range as long as the rows follow each other.
    fn append_events(&mut self, at: u32, start: usize) -> Result<bool, Fault> {
        let row_of = |heap: &Heap, value: &Value| match value {
            Value::Object(item) => match heap.objects[*item as usize] {
                Object::Event(row) => Some(row),
                _ => None,
            },
            _ => None,
        };
        if !self.stack[start..].iter().all(|value| row_of(self, value).is_some()) {
            return Ok(false);
        }
        let mut ranges = match std::mem::replace(&mut self.objects[at as usize], Object::EmptyList)
        {
            Object::Events(ranges) => ranges,
            _ => Box::default(),
        };
        for place in start..self.stack.len() {
            let Some(row) = row_of(self, &self.stack[place]) else { continue };
            match ranges.last_mut() {
                Some(last) if last.end == row => last.end = row + 1,
                _ => {
                    self.charge(2 * size_of::<Range<u32>>())?;
                    ranges.push(row..row + 1);
                }
            }
        }
        self.objects[at as usize] = Object::Events(ranges);
        Ok(true)
    }

    fn append_values(&mut self, at: u32, start: usize) -> Result<(), Fault> {
        self.charge((self.stack.len() - start) * VALUE_BYTES)?;
        let mut values = match std::mem::replace(&mut self.objects[at as usize], Object::EmptyList)
        {
            Object::List(values) => values,
            Object::Stack(stack) => {
                let frames = self.stacks.frame_ids(stack).to_vec();
                let mut values = Vec::with_capacity(frames.len());
                for frame in frames {
                    values.push(self.new_object(Object::Frame(frame))?);
                }
                Box::new(values)
            }
            Object::Events(_) => return Err("a list of events holds something else too".into()),
            _ => Box::default(),
        };
        values.extend_from_slice(&self.stack[start..]);
        self.objects[at as usize] = Object::List(values);
        Ok(())
    }

    /// Puts keys and values, the stack from `start` on, into a dictionary. `whole` says that these
    /// are all its items, so that it can be settled at once.
    pub(super) fn set_items(
        &mut self,
        dict: Value,
        start: usize,
        whole: bool,
    ) -> Result<(), Fault> {
        let Value::Object(at) = dict else {
            return Err("keys for something that is no dict".into());
        };
        if !(self.stack.len() - start).is_multiple_of(2) {
            return Err("a key has no value".into());
        }
        match &mut self.objects[at as usize] {
            Object::EmptyDict => {
                if whole && let Some(settled) = self.settle_items(start)? {
                    self.objects[at as usize] = settled;
                } else {
                    self.charge((self.stack.len() - start) * VALUE_BYTES)?;
                    self.objects[at as usize] =
                        Object::Dict(Box::new(self.stack[start..].to_vec()));
                }
            }
            Object::Dict(items) => {
                items.extend_from_slice(&self.stack[start..]);
                self.charge((self.stack.len() - start) * VALUE_BYTES)?;
            }
            Object::Event(_) | Object::Frame(_) | Object::Block(_) => {
                return Err("an event, frame or block changes after it was complete".into());
            }
            _ => return Err("keys for something that is no dict".into()),
        }
        self.stack.truncate(start);
        Ok(())
    }

    /// Settles a dictionary that was filled key by key.
    pub(super) fn settle(&mut self, at: u32) -> Result<(), Fault> {
        let Object::Dict(items) = &mut self.objects[at as usize] else { return Ok(()) };
        let items = std::mem::take(&mut **items);
        let start = self.stack.len();
        self.stack.extend_from_slice(&items);
        let settled = self.settle_items(start);
        self.stack.truncate(start);
        self.objects[at as usize] = settled?.unwrap_or_else(|| Object::Dict(Box::new(items)));
        Ok(())
    }

    /// What the items from `start` on are, if their keys tell.
    fn settle_items(&mut self, start: usize) -> Result<Option<Object>, Fault> {
        const FRAME: u64 = bit(keys::NAME) | bit(keys::FILENAME) | bit(keys::LINE);
        const BLOCK: u64 = bit(keys::SIZE) | bit(keys::STATE);
        let mut present = 0u64;
        for item in self.stack[start..].chunks_exact(2) {
            if let Value::Text(TextId(key)) = item[0]
                && key < 64
            {
                present |= bit(key);
            }
        }
        if present & bit(keys::ACTION) != 0 {
            self.event(start).map(|row| Some(Object::Event(row)))
        } else if present & FRAME == FRAME {
            self.frame(start).map(|frame| Some(Object::Frame(frame)))
        } else if present & BLOCK == BLOCK {
            self.block(start).map(|row| Some(Object::Block(row)))
        } else {
            Ok(None)
        }
    }
}
