//! Values that protocol 0 writes as lines of text: numbers and texts.

use crate::Fault;
use crate::instruction::{Instruction, Number};

/// A place in the memo.
pub(crate) fn index(line: &[u8]) -> Result<usize, Fault> {
    ascii(line)?.parse().map_err(|_| "the memo's place is no number".into())
}

/// `42`, `42L`, or `00` and `01`, which are the flags.
pub(crate) fn integer(line: &[u8]) -> Result<Instruction<'static>, Fault> {
    let text = ascii(line)?;
    match text {
        "00" => return Ok(Instruction::Flag(false)),
        "01" => return Ok(Instruction::Flag(true)),
        _ => {}
    }
    let digits = text.strip_suffix('L').unwrap_or(text);
    match digits.parse::<i128>() {
        Ok(number) => Ok(Instruction::Number(Number::narrow(number))),
        Err(_) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Ok(Instruction::Number(Number::Huge))
        }
        Err(_) => Err("the number is no number".into()),
    }
}

pub(crate) fn float(line: &[u8]) -> Result<f64, Fault> {
    ascii(line)?.parse().map_err(|_| "the number is no number".into())
}

/// Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
pub(crate) fn unicode(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        let digits = match line[at..] {
            [b'\\', b'u', ..] => 4,
            [b'\\', b'U', ..] => 8,
            _ => 0,
        };
        let escaped = line
            .get(at + 2..at + 2 + digits)
            .filter(|_| digits > 0)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match escaped {
            Some(code) => {
                text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                at += 2 + digits;
            }
            None => {
                text.push(char::from(line[at]));
                at += 1;
            }
        }
    }
    text
}

/// A Python 2 text in quotes. Escapes are kept as they stand: none of our texts needs them.
pub(crate) fn quoted(line: &[u8]) -> Result<String, Fault> {
    match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => {
            Ok(String::from_utf8_lossy(inner).into_owned())
        }
        _ => Err("the text has no quotes".into()),
    }
}

pub(crate) fn ascii(line: &[u8]) -> Result<&str, Fault> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    std::str::from_utf8(line).map_err(|_| "the line is no text".into())
}
