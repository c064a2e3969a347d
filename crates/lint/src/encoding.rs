//! Bytes to text as Python does it, and back: a byte order mark, a `coding` comment in the first
//! two lines, else UTF-8. Only the encodings that occur in Python sources in practice; the rest is
//! refused by name.

/// How a file writes its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// UTF-8 after a byte order mark.
    Utf8Mark,
    Utf16Little,
    Utf16Big,
    Latin1,
    Windows1252,
}

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const LITTLE_MARK: &[u8] = b"\xff\xfe";
const BIG_MARK: &[u8] = b"\xfe\xff";

/// The text of a Python file and how it is written, or why there is none.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<(String, Encoding), String> {
    if let Some(rest) = bytes.strip_prefix(UTF8_MARK) {
        return Ok((utf8(rest.to_vec())?, Encoding::Utf8Mark));
    }
    if let Some(rest) = bytes.strip_prefix(LITTLE_MARK) {
        return Ok((utf16(rest, u16::from_le_bytes)?, Encoding::Utf16Little));
    }
    if let Some(rest) = bytes.strip_prefix(BIG_MARK) {
        return Ok((utf16(rest, u16::from_be_bytes)?, Encoding::Utf16Big));
    }
    match declared(&bytes).as_deref() {
        None | Some("utf-8" | "utf8" | "utf-8-sig" | "ascii" | "us-ascii") => {
            Ok((utf8(bytes)?, Encoding::Utf8))
        }
        Some("latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "iso-8859-15" | "l1") => {
            Ok((bytes.iter().map(|byte| char::from(*byte)).collect(), Encoding::Latin1))
        }
        Some("cp1252" | "windows-1252") => {
            let text = bytes.iter().map(|byte| windows_1252(*byte)).collect();
            Ok((text, Encoding::Windows1252))
        }
        // What is valid UTF-8 is UTF-8 whatever it declares, often enough.
        Some(other) => match String::from_utf8(bytes) {
            Ok(text) => Ok((text, Encoding::Utf8)),
            Err(_) => Err(format!("the encoding `{other}` is not supported")),
        },
    }
}

/// The text written as the file was; nothing if it holds a character that the encoding has not.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    let units = |mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
        mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
    };
    match encoding {
        Encoding::Utf8 => Some(text.as_bytes().to_vec()),
        Encoding::Utf8Mark => Some([UTF8_MARK, text.as_bytes()].concat()),
        Encoding::Utf16Little => Some(units(LITTLE_MARK, u16::to_le_bytes)),
        Encoding::Utf16Big => Some(units(BIG_MARK, u16::to_be_bytes)),
        Encoding::Latin1 => text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect(),
        Encoding::Windows1252 => {
            let byte = |c: char| (0..=u8::MAX).find(|byte| windows_1252(*byte) == c);
            text.chars().map(byte).collect()
        }
    }
}

fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("not UTF-8 (byte {at}), and no `coding` comment says what it is")
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, String> {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16(&units).map_err(|_| "broken UTF-16".to_string())
}

/// What a `# -*- coding: NAME -*-` comment in the first two lines says, in lower case.
fn declared(bytes: &[u8]) -> Option<String> {
    for line in bytes.split(|byte| *byte == b'\n').take(2) {
        let line = String::from_utf8_lossy(line);
        let Some(comment) = line.trim_start().strip_prefix('#') else { continue };
        let Some((_, rest)) = comment.split_once("coding") else { continue };
        let Some(rest) = rest.strip_prefix([':', '=']) else { continue };
        let is_part = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
        let name: String = rest.trim_start().chars().take_while(is_part).collect();
        if !name.is_empty() {
            return Some(name.to_ascii_lowercase().replace('_', "-"));
        }
    }
    None
}

/// Windows-1252 where it differs from Latin-1: 0x80 to 0x9f.
fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        decode(bytes.to_vec()).unwrap().0
    }

    #[test]
    fn text_is_written_as_it_was_read() {
        let files: [&[u8]; 6] = [
            b"x = '\xc3\xa9'",
            b"\xef\xbb\xbfx = '\xc3\xa9'",
            b"\xff\xfex\0",
            b"\xfe\xff\0x",
            b"# coding: latin-1\n\xe9",
            b"# coding: cp1252\n\x80",
        ];
        for bytes in files {
            let (text, encoding) = decode(bytes.to_vec()).unwrap();
            assert_eq!(encode(&text, encoding).as_deref(), Some(bytes), "{encoding:?}");
        }
        assert_eq!(encode("ab\u{20ac}", Encoding::Latin1), None);
    }

    #[test]
    fn marks_and_comments_choose_the_encoding() {
        assert_eq!(text(b"\xef\xbb\xbfx = 1"), "x = 1");
        assert_eq!(text(b"\xff\xfex\0"), "x");
        assert_eq!(text(b"# -*- coding: latin-1 -*-\n'\xe9'").chars().last(), Some('\''));
        assert!(text(b"# coding: latin-1\n\xe9").ends_with('é'));
        assert!(text(b"# vim: set fileencoding=cp1252 :\n\x80").ends_with('€'));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert!(decode(b"\xe9".to_vec()).unwrap_err().contains("byte 0"));
        assert!(decode(b"# coding: koi8-r\n\xe9".to_vec()).unwrap_err().contains("koi8-r"));
    }
}
