//! Bytes to text as Python does it: a byte order mark, a `coding` comment in the first two lines, else UTF-8. Only the
//! encodings that occur in Python sources in practice; the rest is refused by name.

/// The text of a Python file, or why there is none.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<String, String> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return utf8(rest.to_vec());
    }
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return utf16(rest, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return utf16(rest, u16::from_be_bytes);
    }
    match declared(&bytes).as_deref() {
        None | Some("utf-8" | "utf8" | "utf-8-sig" | "ascii" | "us-ascii") => utf8(bytes),
        Some("latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "iso-8859-15" | "l1") => {
            Ok(bytes.iter().map(|byte| char::from(*byte)).collect())
        }
        Some("cp1252" | "windows-1252") => {
            Ok(bytes.iter().map(|byte| windows_1252(*byte)).collect())
        }
        // What is valid UTF-8 is UTF-8 whatever it declares, often enough.
        Some(other) => {
            String::from_utf8(bytes).map_err(|_| format!("the encoding `{other}` is not supported"))
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

    #[test]
    fn marks_and_comments_choose_the_encoding() {
        assert_eq!(decode(b"\xef\xbb\xbfx = 1".to_vec()).unwrap(), "x = 1");
        assert_eq!(decode(b"\xff\xfex\0".to_vec()).unwrap(), "x");
        assert_eq!(
            decode(b"# -*- coding: latin-1 -*-\n'\xe9'".to_vec()).unwrap().chars().last(),
            Some('\'')
        );
        assert!(decode(b"# coding: latin-1\n\xe9".to_vec()).unwrap().ends_with('é'));
        assert!(decode(b"# vim: set fileencoding=cp1252 :\n\x80".to_vec()).unwrap().ends_with('€'));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert!(decode(b"\xe9".to_vec()).unwrap_err().contains("byte 0"));
        assert!(decode(b"# coding: koi8-r\n\xe9".to_vec()).unwrap_err().contains("koi8-r"));
    }
}
