//! One instruction of a pickle with its argument, as the bytes say it. Different opcodes for the
//! same thing (a short and a long text, an integer of one byte or eight) are one instruction.

use std::borrow::Cow;

/// A whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// One that fits 64 bits with a sign.
    Int(i64),
    /// One that fits 128 bits with a sign.
    Wide(i128),
    /// A larger one, which is not kept.
    Huge,
}

impl Number {
    /// The smallest form of a number.
    ///
    /// ```
    /// use plimsoll_pickle::Number;
    /// assert_eq!(Number::narrow(7), Number::Int(7));
    /// assert_eq!(Number::narrow(1 << 64), Number::Wide(1 << 64));
    /// ```
    pub fn narrow(number: i128) -> Number {
        i64::try_from(number).map_or(Number::Wide(number), Number::Int)
    }

    /// A little-endian two's complement integer of any length.
    #[inline]
    pub(crate) fn from_le_bytes(bytes: &[u8]) -> Number {
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let sign = if negative { 0xff } else { 0 };
        if bytes.len() <= 8 {
            let mut filled = [sign; 8];
            filled[..bytes.len()].copy_from_slice(bytes);
            return Number::Int(i64::from_le_bytes(filled));
        }
        let (low, high) = bytes.split_at(bytes.len().min(16));
        if high.iter().any(|byte| *byte != sign) {
            return Number::Huge;
        }
        let mut filled = [sign; 16];
        filled[..low.len()].copy_from_slice(low);
        match i128::from_le_bytes(filled) {
            // The bytes above say another sign than the highest of the sixteen.
            number if (number < 0) != negative => Number::Huge,
            number => Number::narrow(number),
        }
    }
}

/// What an opcode and its argument say.
///
/// Values go on the stack; a mark remembers its height, and the instructions that end a container
/// take everything above the last mark.
#[derive(Clone, Debug, PartialEq)]
pub enum Instruction<'a> {
    /// The protocol's number.
    Protocol(u8),
    /// The end: the value on the stack is the pickle's.
    Stop,
    /// A mark.
    Mark,
    /// Takes a value, or a mark, off the stack.
    Pop,
    /// Takes everything above the last mark off.
    PopMark,
    /// The top once more.
    Dup,
    /// Nothing to do: where a frame of bytes begins.
    Frame,
    /// `None`.
    None,
    /// `True` or `False`.
    Flag(bool),
    /// An `int`.
    Number(Number),
    /// A `float`.
    Float(f64),
    /// A `str`.
    Text(Cow<'a, str>),
    /// `bytes`, and the `str` of Python 2.
    Bytes(&'a [u8]),
    /// A `bytearray`.
    ByteArray(&'a [u8]),
    /// Keeps the top in the memo.
    Put(usize),
    /// Keeps the top in the memo's next place.
    Memoize,
    /// A value of the memo.
    Get(usize),
    /// An empty list.
    EmptyList,
    /// The top goes into the list below it.
    Append,
    /// Everything above the mark goes into the list below it.
    Appends,
    /// A list of everything above the mark.
    List,
    /// A tuple of everything above the mark.
    Tuple,
    /// A tuple of the top values, so many.
    TupleOf(u8),
    /// An empty dict.
    EmptyDict,
    /// A key and its value go into the dict below.
    SetItem,
    /// Keys and values above the mark go into the dict below it.
    SetItems,
    /// A dict of keys and values above the mark.
    Dict,
    /// An empty set.
    EmptySet,
    /// Everything above the mark goes into the set below it.
    AddItems,
    /// Something with a name in a module.
    Global {
        /// The module.
        module: &'a str,
        /// The name.
        name: &'a str,
    },
    /// The same, module and name from the stack.
    StackGlobal,
    /// Calls what lies below with the tuple on top.
    Reduce,
    /// Gives the state on top to the object below.
    Build,
    /// What the id on top stands for outside the pickle.
    PersistentId,
    /// An opcode that has no instruction here: no data, or no opcode at all.
    Other(u8),
}
