//! Named columns in one buffer, which the page reads as typed arrays without copying:
//!
//! ```text
//! u32  bytes of the header, little endian
//!      header: JSON array of [name, type, byte offset in the data, length in elements]
//!      zeros up to a multiple of 8
//!      data: every column from a multiple of 8, little endian
//! ```

use serde_json::json;

/// A buffer under construction.
#[derive(Debug, Default)]
pub(crate) struct Container {
    header: Vec<serde_json::Value>,
    data: Vec<u8>,
}

impl Container {
    fn open(&mut self, name: &str, element: &str, len: usize) {
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        self.header.push(json!([name, element, self.data.len(), len]));
    }

    pub(crate) fn u8(&mut self, name: &str, values: &[u8]) {
        self.open(name, "u8", values.len());
        self.data.extend_from_slice(values);
    }

    pub(crate) fn u32(&mut self, name: &str, values: impl ExactSizeIterator<Item = u32>) {
        self.open(name, "u32", values.len());
        self.data.extend(values.flat_map(u32::to_le_bytes));
    }

    /// Whole numbers that the page must show exactly: addresses.
    pub(crate) fn u64(&mut self, name: &str, values: impl ExactSizeIterator<Item = u64>) {
        self.open(name, "u64", values.len());
        self.data.extend(values.flat_map(u64::to_le_bytes));
    }

    /// Bytes and times, as the page's own kind of number.
    pub(crate) fn f64(&mut self, name: &str, values: impl ExactSizeIterator<Item = f64>) {
        self.open(name, "f64", values.len());
        self.data.extend(values.flat_map(f64::to_le_bytes));
    }

    /// The whole buffer.
    pub(crate) fn finish(self) -> Vec<u8> {
        let header = serde_json::Value::Array(self.header).to_string();
        let mut bytes = Vec::with_capacity(self.data.len() + header.len() + 16);
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(self.data);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_lie_where_the_header_says() {
        let mut container = Container::default();
        container.u8("a", &[7, 8, 9]);
        container.u64("b", [1u64 << 60].into_iter());
        let bytes = container.finish();
        let header = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        assert_eq!(&bytes[4..4 + header], br#"[["a","u8",0,3],["b","u64",8,1]]"#);
        let data = &bytes[(4 + header).next_multiple_of(8)..];
        assert_eq!(data[..3], [7, 8, 9]);
        assert_eq!(data[8..], (1u64 << 60).to_le_bytes());
    }
}
