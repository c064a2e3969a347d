//! Which algorithm is the fastest for a product, as `blas.rs` timed it, kept in a file by GPU and
//! version of cuBLASLt: the choice, and with it the last bits of results, stays from run to run.
//!
//! A line is a product in words without spaces, and the eight numbers that the library describes an
//! algorithm by. Of several lines for a product the last counts; what is no such line is passed
//! over. Processes that time the same product at once both write, a line at a time.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;

use crate::cache;

/// What the library describes an algorithm by.
pub(crate) type Algorithm = [u64; 8];

/// As much of the file as is read: tens of thousands of products.
const MOST_BYTES: u64 = 16 << 20;

/// What is known of one GPU with one version of the library.
pub(crate) struct Algorithms {
    /// Nothing where nothing can be kept.
    file: Option<PathBuf>,
    known: HashMap<String, Algorithm>,
}

impl Algorithms {
    pub(crate) fn open(gpu: &str, version: usize) -> Algorithms {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name = format!("{}-{version}.txt", gpu.chars().map(plain).collect::<String>());
        Algorithms::read(cache::folder("products").map(|folder| folder.join(name)))
    }

    fn read(file: Option<PathBuf>) -> Algorithms {
        let mut bytes = Vec::new();
        if let Some(Ok(kept)) = file.as_ref().map(File::open) {
            // What was read before an error counts; the rest is timed again.
            let _ = kept.take(MOST_BYTES).read_to_end(&mut bytes);
        }
        let text = String::from_utf8_lossy(&bytes);
        Algorithms { file, known: text.split_inclusive('\n').filter_map(parse).collect() }
    }

    /// Whether a choice that is made now is there in the next run.
    pub(crate) fn can_keep(&self) -> bool {
        self.file.is_some()
    }

    /// The algorithm that was found for `product`.
    pub(crate) fn get(&self, product: &str) -> Option<Algorithm> {
        self.known.get(product).copied()
    }

    /// Keeps an algorithm. `false` where it cannot be written: from then on nothing can be kept.
    pub(crate) fn keep(&mut self, product: String, algorithm: Algorithm) -> bool {
        let Some(file) = &self.file else { return false };
        let numbers: Vec<_> = algorithm.iter().map(|number| format!("{number:x}")).collect();
        let line = format!("{product} {}\n", numbers.join(" "));
        let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        let opened = folder.and_then(|()| OpenOptions::new().create(true).append(true).open(file));
        if opened.and_then(|mut file| file.write_all(line.as_bytes())).is_err() {
            self.file = None;
            return false;
        }
        self.known.insert(product, algorithm);
        true
    }
}

/// The product and the algorithm of a whole line.
fn parse(line: &str) -> Option<(String, Algorithm)> {
    let mut words = line.strip_suffix('\n')?.split(' ');
    let product = words.next().filter(|product| !product.is_empty())?;
    let mut algorithm = Algorithm::default();
    for number in &mut algorithm {
        *number = u64::from_str_radix(words.next()?, 16).ok()?;
    }
    words.next().is_none().then(|| (product.to_string(), algorithm))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> PathBuf {
        let folder = format!("plimsoll-algorithms-{}-{name}", std::process::id());
        std::env::temp_dir().join(folder).join("of").join("gpu.txt")
    }

    #[test]
    fn what_is_kept_is_there_in_the_next_run() {
        let file = at("kept");
        let mut first = Algorithms::read(Some(file.clone()));
        assert!(first.can_keep() && first.get("a").is_none());
        assert!(first.keep("a".to_string(), [1, 2, 3, 4, 5, 6, 7, u64::MAX]));
        assert!(first.keep("b".to_string(), [0; 8]));
        assert!(first.keep("b".to_string(), [9; 8]));
        let next = Algorithms::read(Some(file.clone()));
        assert_eq!(next.get("a"), Some([1, 2, 3, 4, 5, 6, 7, u64::MAX]));
        assert_eq!(next.get("b"), Some([9; 8]));
        std::fs::remove_dir_all(file.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn what_is_no_line_is_passed_over() {
        let file = at("bad");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let few = "few 1 2 3 4 5 6 7\n";
        let many = "many 1 2 3 4 5 6 7 8 9\n";
        let wide = "wide 1 2 3 4 5 6 7 1ffffffffffffffff\n";
        let good = "good 1 2 3 4 5 6 7 ff\n";
        let cut = "cut 1 2 3 4 5 6 7 8";
        let mut bytes = vec![0xff, 0xfe, b'\n', b'\n'];
        for line in [few, many, wide, " 1 2 3 4 5 6 7 8\n", good, "good x\n", cut] {
            bytes.extend_from_slice(line.as_bytes());
        }
        std::fs::write(&file, bytes).unwrap();
        let mut read = Algorithms::read(Some(file.clone()));
        assert_eq!(read.known.len(), 1);
        assert_eq!(read.get("good"), Some([1, 2, 3, 4, 5, 6, 7, 255]));
        // The line that was cut short spoils the next one, and only that.
        assert!(read.keep("next".to_string(), [1; 8]) && read.keep("last".to_string(), [2; 8]));
        let next = Algorithms::read(Some(file.clone()));
        assert_eq!((next.get("next"), next.get("last")), (None, Some([2; 8])));
        std::fs::remove_dir_all(file.parent().unwrap().parent().unwrap()).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_not_kept() {
        let file = at("refused");
        std::fs::create_dir_all(&file).unwrap();
        let mut all = Algorithms::read(Some(file.clone()));
        assert!(!all.keep("a".to_string(), [1; 8]));
        assert!(!all.can_keep() && all.get("a").is_none());
        assert!(!Algorithms::read(None).can_keep());
        std::fs::remove_dir_all(file.parent().unwrap().parent().unwrap()).unwrap();
    }
}
