//! Takes a pickle apart into instructions. Every length is checked against the bytes that are
//! there, nothing is allocated for a claim, and nothing is recursive.

use std::borrow::Cow;

use crate::instruction::{Instruction, Number};
use crate::opcode as op;
use crate::{Fault, text_form};

/// Goes through a pickle once.
///
/// ```
/// use plimsoll_pickle::{Instruction, Number, Reader};
/// let mut reader = Reader::new(b"\x80\x02K\x07.");
/// assert_eq!(reader.next()?, Instruction::Protocol(2));
/// assert_eq!(reader.next()?, Instruction::Number(Number::Int(7)));
/// assert_eq!(reader.next()?, Instruction::Stop);
/// assert!(reader.next().unwrap_err().contains("the file ends"));
/// # Ok::<(), plimsoll_pickle::Fault>(())
/// ```
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    start: usize,
}

impl<'a> Reader<'a> {
    /// From the first byte on.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0, start: 0 }
    }

    /// Where the last instruction began.
    pub fn position(&self) -> usize {
        self.start
    }

    /// The last instruction's opcode, by name.
    pub fn opcode(&self) -> &'static str {
        self.bytes.get(self.start).map_or("the end", |opcode| op::name(*opcode))
    }

    /// The next instruction. What follows the end is not looked at unless it is asked for.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a pickle that just ends is a fault")]
    pub fn next(&mut self) -> Result<Instruction<'a>, Fault> {
        self.start = self.at;
        let Some(&opcode) = self.bytes.get(self.at) else {
            return Err("the file ends in the middle of the pickle".into());
        };
        self.at += 1;
        // What pickles are mostly made of comes first.
        Ok(match opcode {
            op::BINGET => Instruction::Get(self.byte()?.into()),
            op::LONG_BINGET => Instruction::Get(self.u32()? as usize),
            op::MEMOIZE => Instruction::Memoize,
            op::BINPUT => Instruction::Put(self.byte()?.into()),
            op::LONG_BINPUT => Instruction::Put(self.u32()? as usize),
            op::LONG1 => {
                let len = self.byte()?;
                Instruction::Number(Number::from_le_bytes(self.take(len.into())?))
            }
            op::BININT1 => int(self.byte()?.into()),
            op::BININT2 => {
                let value = self.take(2)?;
                int(u16::from_le_bytes([value[0], value[1]]).into())
            }
            op::BININT => int((self.u32()? as i32).into()),
            op::SHORT_BINUNICODE => {
                let len = self.byte()?;
                self.text(len.into())?
            }
            op::MARK => Instruction::Mark,
            op::EMPTY_DICT => Instruction::EmptyDict,
            op::EMPTY_LIST => Instruction::EmptyList,
            op::SETITEMS => Instruction::SetItems,
            op::APPENDS => Instruction::Appends,
            op::SETITEM => Instruction::SetItem,
            op::APPEND => Instruction::Append,
            op::DICT => Instruction::Dict,
            op::LIST => Instruction::List,
            op::TUPLE => Instruction::Tuple,
            op::EMPTY_TUPLE => Instruction::TupleOf(0),
            op::TUPLE1 => Instruction::TupleOf(1),
            op::TUPLE2 => Instruction::TupleOf(2),
            op::TUPLE3 => Instruction::TupleOf(3),
            _ => return self.rarer(opcode),
        })
    }

    fn rarer(&mut self, opcode: u8) -> Result<Instruction<'a>, Fault> {
        Ok(match opcode {
            op::STOP => Instruction::Stop,
            op::PROTO => match self.byte()? {
                known @ 0..=5 => Instruction::Protocol(known),
                other => {
                    return Err(format!("pickle protocol {other} is not known (0 to 5 are)"));
                }
            },
            op::FRAME => {
                self.take(8)?;
                Instruction::Frame
            }
            op::NONE => Instruction::None,
            op::NEWTRUE => Instruction::Flag(true),
            op::NEWFALSE => Instruction::Flag(false),
            op::BINFLOAT => {
                let bytes = self.take(8)?.try_into().unwrap_or_default();
                Instruction::Float(f64::from_be_bytes(bytes))
            }
            op::BINUNICODE => {
                let len = self.u32()?;
                self.text(len as usize)?
            }
            op::BINUNICODE8 => {
                let len = self.u64()?;
                self.text(len)?
            }
            op::BINSTRING | op::BINBYTES => {
                let len = self.u32()?;
                Instruction::Bytes(self.take(len as usize)?)
            }
            op::SHORT_BINSTRING | op::SHORT_BINBYTES => {
                let len = self.byte()?;
                Instruction::Bytes(self.take(len.into())?)
            }
            op::BINBYTES8 => {
                let len = self.u64()?;
                Instruction::Bytes(self.take(len)?)
            }
            op::BYTEARRAY8 => {
                let len = self.u64()?;
                Instruction::ByteArray(self.take(len)?)
            }
            op::LONG4 => {
                let len = self.u32()?;
                Instruction::Number(Number::from_le_bytes(self.take(len as usize)?))
            }
            op::POP => Instruction::Pop,
            op::POP_MARK => Instruction::PopMark,
            op::DUP => Instruction::Dup,
            op::EMPTY_SET => Instruction::EmptySet,
            op::ADDITEMS => Instruction::AddItems,
            op::STACK_GLOBAL => Instruction::StackGlobal,
            op::REDUCE => Instruction::Reduce,
            op::BUILD => Instruction::Build,
            op::BINPERSID => Instruction::PersistentId,
            _ => return self.written_out(opcode),
        })
    }

    /// Opcodes whose argument is a line of text: protocol 0, and globals.
    fn written_out(&mut self, opcode: u8) -> Result<Instruction<'a>, Fault> {
        Ok(match opcode {
            op::GLOBAL => {
                let module = text_form::ascii(self.line()?)?;
                let name = text_form::ascii(self.line()?)?;
                Instruction::Global { module, name }
            }
            op::PUT => Instruction::Put(text_form::index(self.line()?)?),
            op::GET => Instruction::Get(text_form::index(self.line()?)?),
            op::INT | op::LONG => text_form::integer(self.line()?)?,
            op::FLOAT => Instruction::Float(text_form::float(self.line()?)?),
            op::UNICODE => Instruction::Text(Cow::Owned(text_form::unicode(self.line()?))),
            op::STRING => Instruction::Text(Cow::Owned(text_form::quoted(self.line()?)?)),
            other => Instruction::Other(other),
        })
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let rest = &self.bytes[self.at..];
        if len > rest.len() {
            return Err(format!("{len} bytes should follow, but {} do", rest.len()));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Fault> {
        self.take(1).map(|bytes| bytes[0])
    }

    #[inline]
    fn u32(&mut self) -> Result<u32, Fault> {
        self.take(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn u64(&mut self) -> Result<usize, Fault> {
        let len = self.take(8)?.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
        Ok(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// A line without its end.
    fn line(&mut self) -> Result<&'a [u8], Fault> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|b| *b == b'\n').ok_or("the line has no end")?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    #[inline]
    fn text(&mut self, len: usize) -> Result<Instruction<'a>, Fault> {
        // Python writes lone surrogates as they are, which is no UTF-8; they are shown as
        // replacement characters.
        Ok(Instruction::Text(String::from_utf8_lossy(self.take(len)?)))
    }
}

#[inline]
fn int(value: i64) -> Instruction<'static> {
    Instruction::Number(Number::Int(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Instruction<'_>> {
        let mut reader = Reader::new(bytes);
        let mut found = Vec::new();
        loop {
            found.push(reader.next().unwrap());
            if found.last() == Some(&Instruction::Stop) {
                return found;
            }
        }
    }

    #[test]
    fn integers_of_every_length_are_numbers() {
        let of = |bytes: &[u8]| Number::from_le_bytes(bytes);
        assert_eq!(of(&[]), Number::Int(0));
        assert_eq!(of(&[0xff]), Number::Int(-1));
        assert_eq!(of(&[0, 0x80]), Number::Int(-32768));
        assert_eq!(
            of(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]),
            Number::Wide(u64::MAX.into())
        );
        let mut long = vec![0; 17];
        long[16] = 1;
        assert_eq!(of(&long), Number::Huge, "2^128");
        assert_eq!(of(&[0xff; 40]), Number::Int(-1), "as long as it likes to be");
        let mut high = vec![0; 16];
        high[15] = 0x80;
        assert_eq!(of(&high), Number::Wide(i128::MIN));
        high.push(0);
        assert_eq!(of(&high), Number::Huge, "2^127, which is no i128");
    }

    #[test]
    fn forms_of_protocol_0_and_globals_are_lines() {
        let found = all(b"(I01\nL12L\nF2.5\nVa\\u00e9\nS'b'\ncos\nsystem\ng3\n.");
        let expected = [
            Instruction::Mark,
            Instruction::Flag(true),
            int(12),
            Instruction::Float(2.5),
            Instruction::Text("a\u{e9}".into()),
            Instruction::Text("b".into()),
            Instruction::Global { module: "os", name: "system" },
            Instruction::Get(3),
            Instruction::Stop,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_length_beyond_the_end_is_a_fault_that_allocates_nothing() {
        for bytes in [
            &b"X\xff\xff\xff\xff"[..],
            b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
            b"\x8a\xff",
            b"\x80",
            b"cos",
            b"\x80\x09",
        ] {
            let mut reader = Reader::new(bytes);
            assert!(!reader.next().unwrap_err().is_empty(), "{bytes:?}");
            assert_eq!(reader.position(), 0);
        }
    }
}
