//! JSON, for the same values as the pickle. PyTorch's viewer tries JSON first, so such a file opens
//! there too; tuples are arrays, and shared values are written out each time.

use std::io::{self, Write};

use super::sink::Sink;

/// Writes one JSON value to `out`.
pub(super) struct Json<W: Write> {
    out: W,
    buffer: String,
    /// For each open container, whether it already has an item.
    filled: Vec<bool>,
    /// A key was just written, so the next value follows it directly.
    after_key: bool,
    failed: Option<io::Error>,
}

const BUFFER_BYTES: usize = 64 << 10;

impl<W: Write> Json<W> {
    pub(super) fn new(out: W) -> Json<W> {
        let buffer = String::with_capacity(BUFFER_BYTES + 1024);
        Json { out, buffer, filled: Vec::new(), after_key: false, failed: None }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.buffer.push('\n');
        self.drain();
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn drain(&mut self) {
        let written = self.out.write_all(self.buffer.as_bytes());
        if self.failed.is_none() {
            self.failed = written.err();
        }
        self.buffer.clear();
    }

    fn comma(&mut self) {
        if self.buffer.len() >= BUFFER_BYTES {
            self.drain();
        }
        if let Some(filled) = self.filled.last_mut()
            && std::mem::replace(filled, true)
        {
            self.buffer.push(',');
        }
    }

    fn begin_value(&mut self) {
        if !std::mem::replace(&mut self.after_key, false) {
            self.comma();
        }
    }

    fn put_text(&mut self, text: &str) {
        self.buffer.push('"');
        for c in text.chars() {
            match c {
                '"' => self.buffer.push_str("\\\""),
                '\\' => self.buffer.push_str("\\\\"),
                '\n' => self.buffer.push_str("\\n"),
                c if c < ' ' => self.buffer.push_str(&format!("\\u{:04x}", c as u32)),
                c => self.buffer.push(c),
            }
        }
        self.buffer.push('"');
    }
}

impl<W: Write> Sink for Json<W> {
    fn begin_dict(&mut self) {
        self.begin_value();
        self.buffer.push('{');
        self.filled.push(false);
    }

    fn end_dict(&mut self) {
        self.filled.pop();
        self.buffer.push('}');
    }

    fn begin_list(&mut self) {
        self.begin_value();
        self.buffer.push('[');
        self.filled.push(false);
    }

    fn end_list(&mut self) {
        self.filled.pop();
        self.buffer.push(']');
    }

    fn key(&mut self, name: &str) {
        self.comma();
        self.put_text(name);
        self.buffer.push(':');
        self.after_key = true;
    }

    fn text(&mut self, text: &str) {
        self.begin_value();
        self.put_text(text);
    }

    fn integer(&mut self, value: i128) {
        self.begin_value();
        self.buffer.push_str(&value.to_string());
    }

    fn float(&mut self, value: f64) {
        self.begin_value();
        // JSON has no infinities or NaN; a setting never is one.
        self.buffer.push_str(&if value.is_finite() { format!("{value:?}") } else { "null".into() });
    }

    fn flag(&mut self, value: bool) {
        self.begin_value();
        self.buffer.push_str(if value { "true" } else { "false" });
    }

    fn pair(&mut self, first: i128, second: i128) {
        self.begin_value();
        self.buffer.push_str(&format!("[{first},{second}]"));
    }

    fn again(&mut self, _shared: u32) -> bool {
        false
    }

    fn first(&mut self, _shared: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_nest_and_texts_are_escaped() {
        let mut out = Vec::new();
        let mut json = Json::new(&mut out);
        json.begin_dict();
        json.key("a");
        json.begin_list();
        json.integer(1);
        json.pair(2, 3);
        json.text("\"\\\n\u{1}é");
        json.end_list();
        json.key("b");
        json.begin_dict();
        json.end_dict();
        json.key("c");
        json.float(0.5);
        json.key("d");
        json.flag(false);
        json.end_dict();
        json.finish().unwrap();
        let expected = "{\"a\":[1,[2,3],\"\\\"\\\\\\n\\u0001é\"],\"b\":{},\"c\":0.5,\"d\":false}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
