//! The text that is learnt: a file, or by default this project's own documentation and source,
//! compressed in the crate (`cargo xtask text` renews it). Its last part is kept for validation.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::read::GzDecoder;
use plimsoll_core::{Error, ErrorKind, Result};

const OWN: &[u8] = include_bytes!("../../text/plimsoll.txt.gz");
/// One part in so many is never learnt.
const VALIDATION_PART: usize = 10;

/// A text in bytes.
pub(crate) struct Text {
    pub(crate) bytes: Vec<u8>,
    /// The file that it is from; without one it is this project's own.
    pub(crate) file: Option<PathBuf>,
}

/// What tells a text from others: its length and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) bytes: u64,
    pub(crate) crc32: u64,
}

impl Text {
    /// A file's, or this project's own.
    pub(crate) fn read(file: Option<&Path>) -> Result<Text> {
        match file {
            Some(file) => {
                let bytes = std::fs::read(file).map_err(|error| {
                    Error::new(ErrorKind::Io, format!("{}: {error}", file.display()))
                })?;
                // A run may be resumed in another folder.
                let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
                Ok(Text { bytes, file: Some(file) })
            }
            None => {
                let mut bytes = Vec::new();
                GzDecoder::new(OWN).read_to_end(&mut bytes).map_err(|error| {
                    Error::new(ErrorKind::Io, format!("the text of this command: {error}"))
                })?;
                Ok(Text { bytes, file: None })
            }
        }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => "Plimsoll's own documentation and source".to_string(),
        }
    }

    /// What tells it from others.
    pub(crate) fn mark(&self) -> Mark {
        let mut checksum = Crc::new();
        checksum.update(&self.bytes);
        Mark { bytes: self.bytes.len() as u64, crc32: checksum.sum().into() }
    }

    /// What is learnt, and what is only predicted.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.bytes.len() - self.bytes.len() / VALIDATION_PART)
    }
}

/// What is left to guess of a byte by who knows the one before it, in nats: the entropy of pairs
/// less that of single bytes.
pub(crate) fn bigram_entropy(bytes: &[u8]) -> f64 {
    let mut pairs = vec![0u32; 1 << 16];
    let mut singles = [0u32; 256];
    for pair in bytes.windows(2) {
        pairs[usize::from(pair[0]) << 8 | usize::from(pair[1])] += 1;
        singles[usize::from(pair[0])] += 1;
    }
    let total = bytes.len().saturating_sub(1).max(1) as f64;
    let entropy = |counts: &[u32]| -> f64 {
        let used = counts.iter().filter(|count| **count > 0);
        used.map(|count| f64::from(*count) / total).map(|share| -share * share.ln()).sum()
    };
    entropy(&pairs) - entropy(&singles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_text_is_about_a_megabyte_of_words() {
        let text = Text::read(None).unwrap();
        assert!((800_000..1_500_000).contains(&text.bytes.len()), "{}", text.bytes.len());
        let words = String::from_utf8(text.bytes.clone()).expect("it is text");
        assert!(words.contains("every byte"));
        let (learnt, kept) = text.parts();
        assert_eq!(learnt.len() + kept.len(), text.bytes.len());
        assert_eq!(kept.len(), text.bytes.len() / 10);
    }

    #[test]
    fn bigram_entropy_is_that_of_pairs() {
        // Whoever sees the byte before knows the next.
        assert!(bigram_entropy(&b"ab".repeat(1000)).abs() < 1e-12);
        // Each of two bytes follows each equally often: a coin.
        let coin = b"aabb".repeat(1000);
        assert!((bigram_entropy(&coin) - std::f64::consts::LN_2).abs() < 1e-3);
        assert_eq!(bigram_entropy(b""), 0.0);
    }

    #[test]
    fn a_mark_tells_texts_of_one_length_apart() {
        let text = |bytes: &[u8]| Text { bytes: bytes.to_vec(), file: None };
        assert_eq!(text(b"123456789").mark(), Mark { bytes: 9, crc32: 0xcbf4_3926 });
        assert_ne!(text(b"123456798").mark(), text(b"123456789").mark());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Text::read(Some(Path::new("no/such/text"))).err().unwrap();
        assert!(error.to_string().contains("no/such/text"));
    }
}
