//! The machine that goes through a file's pickle and makes data of it. A call in a pickle is only
//! ever of a global of the list, and what that makes is in `calls.rs`; nothing is run. No step
//! recurses, and every value costs a byte of the pickle or more, so memory is bounded by its size.

use std::collections::HashMap;

use plimsoll_core::Result;
use plimsoll_pickle::{Fault, Instruction, Number, Reader};

use super::globals::{self, Global};
use super::heap::{DictClass, Heap, Item, Object, StorageFacts};
use crate::fault::unpickling;

/// Runs the pickle. The answer is what it made, and its value.
pub(super) fn run(pickle: &[u8]) -> Result<(Heap, Item)> {
    let mut reader = Reader::new(pickle);
    let mut machine = Machine {
        heap: Heap::new(pickle.len()),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        refused: None,
    };
    loop {
        let stepped = reader.next().and_then(|instruction| match instruction {
            Instruction::Stop => machine.pop().map(Some),
            instruction => machine.step(instruction).map(|()| None),
        });
        match stepped {
            Ok(None) => {}
            Ok(Some(item)) => return Ok((machine.heap, item)),
            Err(fault) => {
                let (at, opcode) = (reader.position(), reader.opcode());
                let what = format!("data.pkl, byte {at}, opcode {opcode}: {fault}");
                return Err(unpickling(what, machine.refused));
            }
        }
    }
}

struct Machine {
    heap: Heap,
    stack: Vec<Item>,
    /// Heights of the stack where open containers begin.
    marks: Vec<usize>,
    /// By place, which a hostile pickle may choose as large as it likes.
    memo: HashMap<usize, Item>,
    /// The global that was not in the list.
    refused: Option<String>,
}

impl Machine {
    fn step(&mut self, instruction: Instruction<'_>) -> Result<(), Fault> {
        let item = match instruction {
            Instruction::Protocol(_) | Instruction::Frame => return Ok(()),
            Instruction::Mark => {
                self.marks.push(self.stack.len());
                return Ok(());
            }
            Instruction::Put(at) => {
                let item = self.pop()?;
                self.memo.insert(at, item);
                item
            }
            Instruction::Memoize => {
                let item = self.pop()?;
                self.memo.insert(self.memo.len(), item);
                item
            }
            Instruction::Get(at) => {
                *self.memo.get(&at).ok_or_else(|| format!("memo {at} was never stored"))?
            }
            Instruction::None => Item::None,
            Instruction::Flag(flag) => Item::Flag(flag),
            Instruction::Float(number) => Item::Float(number),
            Instruction::Number(Number::Int(number)) => Item::Int(number),
            Instruction::Number(Number::Wide(number)) => self.heap.add(Object::Wide(number))?,
            Instruction::Number(Number::Huge) => {
                return Err("an int of more than 128 bits".into());
            }
            Instruction::Text(text) => self.heap.add(Object::Text(text.into_owned()))?,
            Instruction::Bytes(bytes) => self.heap.add(Object::Bytes(bytes.to_vec()))?,
            Instruction::ByteArray(bytes) => self.heap.add(Object::ByteArray(bytes.to_vec()))?,
            Instruction::Global { module, name } => self.global(module, name)?,
            Instruction::Dup => {
                let item = self.pop()?;
                self.stack.push(item);
                item
            }
            Instruction::Pop => {
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
                return Ok(());
            }
            Instruction::PopMark => return self.above_mark().map(drop),
            other => return self.container(&other),
        };
        self.stack.push(item);
        Ok(())
    }

    fn container(&mut self, instruction: &Instruction<'_>) -> Result<(), Fault> {
        let item = match instruction {
            Instruction::EmptyList => self.heap.add(Object::List(Vec::new()))?,
            Instruction::EmptySet => self.heap.add(Object::Set(Vec::new()))?,
            Instruction::EmptyDict => self.heap.add_dict(Vec::new(), DictClass::Dict)?,
            Instruction::List => {
                let items = self.above_mark()?;
                self.heap.add(Object::List(items))?
            }
            Instruction::Dict => {
                let items = self.above_mark()?;
                self.new_dict(items)?
            }
            Instruction::Tuple => {
                let items = self.above_mark()?;
                self.heap.add(Object::Tuple(items))?
            }
            Instruction::TupleOf(count) => {
                let items = self.top((*count).into())?;
                self.heap.add(Object::Tuple(items))?
            }
            Instruction::Append => {
                let items = self.top(1)?;
                return self.extend(items);
            }
            Instruction::Appends | Instruction::AddItems => {
                let items = self.above_mark()?;
                return self.extend(items);
            }
            Instruction::SetItem => {
                let items = self.top(2)?;
                return self.set_items(items);
            }
            Instruction::SetItems => {
                let items = self.above_mark()?;
                return self.set_items(items);
            }
            Instruction::StackGlobal => self.stack_global()?,
            Instruction::PersistentId => {
                let id = self.pop()?;
                self.heap.persistent(id)?
            }
            Instruction::Reduce => {
                let arguments = self.pop()?;
                let callable = self.pop()?;
                self.heap.call(callable, arguments)?
            }
            Instruction::Build => {
                let state = self.pop()?;
                return self.build(state);
            }
            _ => return Err("this is not data, and nothing here is run".into()),
        };
        self.stack.push(item);
        Ok(())
    }

    fn new_dict(&mut self, items: Vec<Item>) -> Result<Item, Fault> {
        if !items.len().is_multiple_of(2) {
            return Err("a key has no value".into());
        }
        self.heap.add_dict(items, DictClass::Dict)
    }

    fn extend(&mut self, new: Vec<Item>) -> Result<(), Fault> {
        match self.container_below()? {
            Object::List(items) | Object::Set(items) => {
                items.extend(new);
                Ok(())
            }
            _ => Err("items for something that is no list".into()),
        }
    }

    fn set_items(&mut self, new: Vec<Item>) -> Result<(), Fault> {
        if !new.len().is_multiple_of(2) {
            return Err("a key has no value".into());
        }
        match self.container_below()? {
            Object::Dict { items, .. } => {
                items.extend(new);
                Ok(())
            }
            _ => Err("keys for something that is no dict".into()),
        }
    }

    /// Attributes of an `OrderedDict`; nothing else has any.
    fn build(&mut self, state: Item) -> Result<(), Fault> {
        match self.container_below()? {
            Object::Dict { class: DictClass::OrderedDict, attributes, .. } => {
                *attributes = Some(state);
                Ok(())
            }
            _ => Err("only an OrderedDict may have attributes".into()),
        }
    }

    fn stack_global(&mut self) -> Result<Item, Fault> {
        let (name, module) = (self.pop()?, self.pop()?);
        let texts = self.heap.text(module).zip(self.heap.text(name));
        let (module, name) = texts.ok_or("the global's name is no text")?;
        let (module, name) = (module.to_string(), name.to_string());
        self.global(&module, &name)
    }

    fn global(&mut self, module: &str, name: &str) -> Result<Item, Fault> {
        globals::find(module, name).map(Item::Global).inspect_err(|_| {
            self.refused = Some(format!("{}.{}", globals::short(module), globals::short(name)));
        })
    }

    fn pop(&mut self) -> Result<Item, Fault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => Ok(self.stack.pop().unwrap_or(Item::None)),
            false => Err("a value is missing".into()),
        }
    }

    /// The top values, taken off.
    fn top(&mut self, count: usize) -> Result<Vec<Item>, Fault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count) {
            Some(start) if start >= floor => Ok(self.stack.split_off(start)),
            _ => Err("a value is missing".into()),
        }
    }

    /// Everything above the last mark, taken off with it.
    fn above_mark(&mut self) -> Result<Vec<Item>, Fault> {
        let start = self.marks.pop().ok_or("a container ends that never began")?;
        Ok(self.stack.split_off(start))
    }

    /// The object that is now on top.
    fn container_below(&mut self) -> Result<&mut Object, Fault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.get(floor..).and_then(<[Item]>::last) {
            Some(Item::Object(at)) => {
                self.heap.objects.get_mut(*at as usize).ok_or_else(|| "no such object".into())
            }
            _ => Err("the container is missing".into()),
        }
    }
}

impl Heap {
    /// What a call of a global makes. Arguments are a tuple.
    fn call(&mut self, callable: Item, arguments: Item) -> Result<Item, Fault> {
        let Item::Global(global) = callable else {
            return Err("a call of something that is no global".into());
        };
        let arguments = self.tuple(arguments).ok_or("the arguments are no tuple")?.to_vec();
        self.make(global, &arguments)
    }

    /// A storage: `('storage', class, key, location, numel)`.
    fn persistent(&mut self, id: Item) -> Result<Item, Fault> {
        let wrong = "a persistent id that is no storage's";
        let parts = self.tuple(id).ok_or(wrong)?;
        let [word, Item::Global(Global::Storage(dtype)), key, location, numel] = *parts else {
            return Err(wrong.into());
        };
        if self.text(word) != Some("storage") {
            return Err(wrong.into());
        }
        let key = self.text(key).ok_or("a storage's key is no text")?.to_string();
        let location = self.text(location).ok_or("a storage's location is no text")?.to_string();
        let numel = self.count(numel).ok_or("a storage's size is no count")?;
        let facts = StorageFacts { key, dtype, numel, location };
        let at = u32::try_from(self.storages.len()).map_err(|_| "too many storages")?;
        self.storages.push(facts);
        self.add(Object::Storage(at))
    }
}
