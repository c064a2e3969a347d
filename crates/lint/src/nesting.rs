//! How deeply a text could nest, found by one pass over its characters. Walking and dropping a
//! syntax tree recurse, so a file that nests past `DEEPEST` is refused before it is parsed; Python
//! itself refuses far less. Not a lexer: strings and comments are skipped, everything else is
//! counted generously.

/// Refused above this. The checks run on threads whose stacks hold it with room to spare.
pub(crate) const DEEPEST: usize = 1000;

/// Whether a syntax tree of the text may be deeper than `DEEPEST`.
pub(crate) fn too_deep(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut scan =
        Scan { levels: vec![0], total: 0, blocks: Vec::new(), line_has_text: false, line_start: 0 };
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if !scan.line_has_text && !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'#' | b'\x0c') {
            scan.start_line(at);
        }
        at = match byte {
            b'#' => end_of_line(bytes, at),
            b'\'' | b'"' => end_of_string(bytes, at),
            // Words nest nothing by themselves, and most of a text is words.
            _ if is_word(byte) => {
                let word = bytes[at..].iter().position(|byte| !is_word(*byte));
                word.map_or(bytes.len(), |length| at + length)
            }
            _ => {
                scan.count(at, byte, bytes.get(at.wrapping_sub(1)).copied().unwrap_or(b' '));
                at + 1
            }
        };
        if scan.depth() > DEEPEST {
            return true;
        }
    }
    false
}

struct Scan {
    /// Operators since the last comma or line end, for each open bracket.
    levels: Vec<usize>,
    /// Their sum.
    total: usize,
    /// Columns of the blocks that are open.
    blocks: Vec<usize>,
    line_has_text: bool,
    /// Where the present line begins; kept only as long as the line has no text.
    line_start: usize,
}

impl Scan {
    fn depth(&self) -> usize {
        self.levels.len() + self.total + self.blocks.len()
    }

    fn start_line(&mut self, at: usize) {
        self.line_has_text = true;
        if self.levels.len() > 1 {
            return;
        }
        let column = at - self.line_start;
        while self.blocks.last().is_some_and(|open| *open >= column) {
            self.blocks.pop();
        }
        if column > 0 {
            self.blocks.push(column);
        }
    }

    fn count(&mut self, at: usize, byte: u8, before: u8) {
        match byte {
            b'(' | b'[' | b'{' => {
                self.add();
                self.levels.push(0);
            }
            b')' | b']' | b'}' if self.levels.len() > 1 => {
                self.total -= self.levels.pop().unwrap_or_default();
            }
            b',' => self.reset(),
            b'\n' => {
                (self.line_has_text, self.line_start) = (false, at + 1);
                // A backslash joins lines; inside brackets line ends mean nothing.
                if self.levels.len() == 1 && before != b'\\' {
                    self.reset();
                }
            }
            b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^' | b'~' | b'<' | b'>'
            | b'.' | b'=' | b':' => self.add(),
            // Words that nest (not, lambda, if, await, in) end in a blank.
            b' ' if before.is_ascii_alphabetic() => self.add(),
            _ => {}
        }
    }

    fn add(&mut self) {
        self.total += 1;
        if let Some(level) = self.levels.last_mut() {
            *level += 1;
        }
    }

    fn reset(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            self.total -= *level;
            *level = 0;
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

pub(crate) fn end_of_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end)
}

/// Past the string that begins with the quote at `at`; an unclosed one ends with its line, or with
/// the text if tripled.
pub(crate) fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let tripled = bytes.get(at + 1) == Some(&quote) && bytes.get(at + 2) == Some(&quote);
    let mut at = if tripled { at + 3 } else { at + 1 };
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\n' if !tripled => return at,
            byte if byte == quote && !tripled => return at + 1,
            byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => return at + 3,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nesting_of_every_kind_is_seen() {
        let deep = 5000;
        assert!(too_deep(&"(".repeat(deep)));
        assert!(too_deep(&format!("x = {}1", "-".repeat(deep))));
        assert!(too_deep(&format!("x = {}1", "not ".repeat(deep))));
        assert!(too_deep(&format!("x = 1{}", " + 1".repeat(deep))));
        assert!(too_deep(&format!("x = 1{}", "\\\n + 1".repeat(deep))));
        assert!(too_deep(&format!("x = y{}", ".y".repeat(deep))));
        assert!(too_deep(
            &(0..deep).map(|depth| " ".repeat(depth) + "if x:\n").collect::<String>()
        ));
    }

    #[test]
    fn long_flat_files_are_not_deep() {
        let table = format!("x = [{}]\n", "(1, -2.5, 'a.b(c)'),\n".repeat(50_000));
        assert!(!too_deep(&table));
        assert!(!too_deep(&"x = f(a.b) + 1  # (((((\n".repeat(50_000)));
        assert!(!too_deep(&format!("\"\"\"{}\"\"\"\n", "a - b. (\n".repeat(50_000))));
        assert!(!too_deep(&"if x:\n    y = 1\n".repeat(50_000)));
    }
}
