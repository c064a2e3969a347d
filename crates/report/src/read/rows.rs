//! Dictionaries into rows: an event, a frame and a block, from keys and values on the heap's stack.
//! Keys that are not named here are skipped, so that files of later versions open.

use super::heap::{Fault, Heap, Object, Value};
use super::keys;
use crate::events::{Action, TraceEvent};
use crate::kind::Kind;
use crate::segments::{Block, BlockState};
use crate::stacks::{Frame, FrameId, StackId};
use crate::strings::TextId;

impl Heap {
    /// The event of the items from `start` on, as a new row.
    pub(super) fn event(&mut self, start: usize) -> Result<u32, Fault> {
        let row = u32::try_from(self.events.len()).map_err(|_| "more than 2^32 events")?;
        let mut event = TraceEvent {
            action: Action::Other,
            addr: 0,
            size: 0,
            stream: 0,
            time_us: 0,
            stack: StackId::EMPTY,
            kind: Kind::Unknown,
        };
        let mut device_free = None;
        let mut stream = 0;
        for place in (start..self.stack.len()).step_by(2) {
            let value = self.stack[place + 1];
            let Value::Text(TextId(key)) = self.stack[place] else { continue };
            match key {
                keys::ACTION => {
                    let word = self.text_id(value, "action")?;
                    event.action = keys::action(word)
                        .unwrap_or_else(|| Action::from_word(self.strings.get(word)));
                }
                keys::ADDR => event.addr = self.number(value, "addr")?,
                keys::SIZE => event.size = self.number(value, "size")?,
                keys::STREAM => stream = self.number(value, "stream")?,
                keys::TIME_US => event.time_us = self.number(value, "time_us")?,
                keys::DEVICE_FREE => device_free = Some(self.number(value, "device_free")?),
                keys::FRAMES => event.stack = self.stack_of(value)?,
                keys::CATEGORY => event.kind = Kind::from_category(self.text(value, "category")?),
                keys::COMPILE_CONTEXT => {
                    if let Some(text) = self.said(value, "N/A") {
                        self.events.extras.compile_context.push((row, text));
                    }
                }
                keys::USER_METADATA => {
                    if let Some(text) = self.said(value, "") {
                        self.events.extras.user_metadata.push((row, text));
                    }
                }
                keys::POOL_ID => {
                    let pool = self.pair(value)?;
                    if pool != (0, 0) {
                        self.events.extras.pool_id.push((row, pool));
                    }
                }
                keys::FORWARD_FRAMES => {
                    let stack = self.stack_of(value)?;
                    if stack != StackId::EMPTY {
                        self.events.extras.forward_stack.push((row, stack));
                    }
                }
                _ => {}
            }
        }
        if event.action == Action::Oom {
            event.addr = device_free.unwrap_or(event.addr);
        }
        let moves = !matches!(event.action, Action::Oom | Action::Snapshot);
        if moves && event.addr.checked_add(event.size).is_none() {
            return Err("`addr` and `size` reach past the address space".into());
        }
        event.stream = self.stream_id(stream)?;
        self.events.push(event);
        Ok(row)
    }

    /// Streams by order of appearance; almost always the one of the event before.
    fn stream_id(&mut self, stream: u64) -> Result<u32, Fault> {
        if let Some(last) = self.events.stream.last()
            && self.events.streams[*last as usize] == stream
        {
            return Ok(*last);
        }
        let next = self.events.streams.len() as u32;
        let id = *self.stream_ids.entry(stream).or_insert(next);
        if id == next {
            self.charge(64)?;
            self.events.streams.push(stream);
        }
        Ok(id)
    }

    pub(super) fn frame(&mut self, start: usize) -> Result<FrameId, Fault> {
        let mut frame = Frame::default();
        for place in (start..self.stack.len()).step_by(2) {
            let value = self.stack[place + 1];
            match self.stack[place] {
                Value::Text(TextId(keys::NAME)) => frame.function = self.text_id(value, "name")?,
                Value::Text(TextId(keys::FILENAME)) => {
                    frame.file = self.text_id(value, "filename")?
                }
                // Compiled frames can carry a line below zero: it is no line.
                Value::Text(TextId(keys::LINE)) => {
                    frame.line = match value {
                        Value::Int(line) => u32::try_from(line.max(0)).unwrap_or(0),
                        Value::None => 0,
                        other => u32::try_from(self.number(other, "line")?).unwrap_or(0),
                    };
                }
                _ => {}
            }
        }
        let count = self.stacks.frame_count();
        let id = self.stacks.intern_frame(frame);
        if self.stacks.frame_count() > count {
            self.charge(64)?;
        }
        Ok(id)
    }

    pub(super) fn block(&mut self, start: usize) -> Result<u32, Fault> {
        let row = u32::try_from(self.blocks.len()).map_err(|_| "more than 2^32 blocks")?;
        let mut block = Block {
            // Old files give blocks no address: they follow each other from the segment's start.
            address: u64::MAX,
            bytes: 0,
            requested_bytes: u64::MAX,
            state: BlockState::Inactive,
            stack: StackId::EMPTY,
            kind: Kind::Unknown,
            step: None,
        };
        let mut history = None;
        for place in (start..self.stack.len()).step_by(2) {
            let value = self.stack[place + 1];
            let Value::Text(TextId(key)) = self.stack[place] else { continue };
            match key {
                keys::ADDRESS => block.address = self.number(value, "address")?,
                keys::SIZE => block.bytes = self.number(value, "size")?,
                keys::REQUESTED_SIZE => {
                    block.requested_bytes = self.number(value, "requested_size")?
                }
                keys::STATE => block.state = self.state(value)?,
                keys::FRAMES => block.stack = self.stack_of(value)?,
                keys::CATEGORY => block.kind = Kind::from_category(self.text(value, "category")?),
                keys::STEP => block.step = Some(self.number(value, "step")?),
                keys::HISTORY => history = Some(value),
                _ => {}
            }
        }
        if let Some(history) = history {
            self.read_history(history, &mut block)?;
        }
        if block.requested_bytes == u64::MAX {
            block.requested_bytes = block.bytes;
        }
        self.charge(size_of::<Block>())?;
        self.blocks.push(block);
        Ok(row)
    }

    /// Files before 2.1 keep a block's stack and its requested size in the first entry of its
    /// history.
    fn read_history(&mut self, history: Value, block: &mut Block) -> Result<(), Fault> {
        let Some(&Value::Object(first)) = self.list(history).and_then(|list| list.first()) else {
            return Ok(());
        };
        let size = self.field(first, keys::REAL_SIZE);
        if let Some(size) = size {
            block.requested_bytes = self.number(size, "real_size")?;
        }
        if let Some(frames) = self.field(first, keys::FRAMES) {
            block.stack = self.stack_of(frames)?;
        }
        Ok(())
    }

    fn state(&self, value: Value) -> Result<BlockState, Fault> {
        Ok(match self.text(value, "state")? {
            "active_allocated" | "active" => BlockState::Allocated,
            "active_pending_free" | "active_awaiting_free" => BlockState::PendingFree,
            "inactive" => BlockState::Inactive,
            other => return Err(format!("a block's state is `{}`", short(other))),
        })
    }

    /// The stack of a `frames` value: a list of frames, a list of texts (as `forward_frames` has),
    /// or nothing.
    pub(super) fn stack_of(&mut self, value: Value) -> Result<StackId, Fault> {
        let Value::Object(at) = value else {
            return match value {
                Value::None => Ok(StackId::EMPTY),
                _ => Err("`frames` is not a list".into()),
            };
        };
        let items = match &self.objects[at as usize] {
            Object::Stack(stack) => return Ok(*stack),
            Object::EmptyList => return Ok(StackId::EMPTY),
            Object::List(items) => (**items).clone(),
            _ => return Err("`frames` is not a list of frames".into()),
        };
        self.charge(items.len() * 4)?;
        let mut frames = Vec::with_capacity(items.len());
        for item in items {
            frames.push(match item {
                Value::Text(text) => {
                    self.stacks.intern_frame(Frame { function: text, file: TextId::EMPTY, line: 0 })
                }
                Value::Object(item) => match self.objects[item as usize] {
                    Object::Frame(frame) => frame,
                    _ => return Err("`frames` holds something that is no frame".into()),
                },
                _ => return Err("`frames` holds something that is no frame".into()),
            });
        }
        let stack = self.stacks.intern(&frames);
        self.objects[at as usize] = Object::Stack(stack);
        Ok(stack)
    }

    /// A text that says something: not empty and not the word for nothing.
    fn said(&self, value: Value, nothing: &str) -> Option<TextId> {
        match value {
            Value::Text(text) if text != TextId::EMPTY && self.strings.get(text) != nothing => {
                Some(text)
            }
            _ => None,
        }
    }

    pub(super) fn number(&self, value: Value, field: &str) -> Result<u64, Fault> {
        match value {
            Value::Int(number) => {
                u64::try_from(number).map_err(|_| format!("`{field}` is {number}"))
            }
            Value::Wide(number) => Ok(number),
            Value::Huge => Err(format!("`{field}` is larger than 2^64")),
            _ => Err(format!("`{field}` is not a whole number")),
        }
    }

    pub(super) fn text_id(&self, value: Value, field: &str) -> Result<TextId, Fault> {
        match value {
            Value::Text(text) => Ok(text),
            Value::None => Ok(TextId::EMPTY),
            _ => Err(format!("`{field}` is not a text")),
        }
    }

    pub(super) fn text(&self, value: Value, field: &str) -> Result<&str, Fault> {
        self.text_id(value, field).map(|text| self.strings.get(text))
    }

    /// Two integers: a tuple in a pickle, an array in JSON.
    pub(super) fn pair(&self, value: Value) -> Result<(i64, i64), Fault> {
        match value {
            Value::Pair(at) => Ok(self.pairs[at as usize]),
            _ => match self.list(value) {
                Some([Value::Int(a), Value::Int(b)]) => Ok((*a, *b)),
                _ => Err("a pool's name is not a pair of numbers".into()),
            },
        }
    }

    /// The items of a plain list.
    pub(super) fn list(&self, value: Value) -> Option<&[Value]> {
        match value {
            Value::Object(at) => match &self.objects[at as usize] {
                Object::List(items) => Some(items),
                Object::EmptyList => Some(&[]),
                _ => None,
            },
            _ => None,
        }
    }

    /// A field of a plain dictionary; the last one wins, as in Python.
    pub(super) fn field(&self, at: u32, key: u32) -> Option<Value> {
        match &self.objects[at as usize] {
            Object::Dict(items) => items
                .chunks_exact(2)
                .rev()
                .find(|item| item[0] == Value::Text(TextId(key)))
                .map(|item| item[1]),
            _ => None,
        }
    }
}

/// The start of a text from a file, for messages.
pub(super) fn short(text: &str) -> String {
    text.chars().take(40).collect()
}
