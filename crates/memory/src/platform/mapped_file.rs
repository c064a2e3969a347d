//! Files whose bytes are seen where they lie, by `mmap`: pages come in as they are touched, and the
//! system takes them away as it likes, so a file may be larger than memory. The one place that maps
//! files, with the one argument why that is sound. Who makes tensors of the bytes is
//! `plimsoll-files` (`source.rs`), who makes samples of them `plimsoll-data` (`mapped.rs`).
//!
//! Note [A mapped file that shrinks]
//! Touching a page past the end of a file ends the process by a signal (SIGBUS). So somebody who
//! cuts a file short while it is mapped ends this process, and nothing here can prevent it: every
//! program that maps files relies on nobody doing so. A file that is replaced by renaming another
//! one onto it stays whole for those who have it mapped; saves of Plimsoll do that. Who reads a
//! file for long may ask [`MappedFile::file_len`] before each read, and so tell of a file that was
//! cut instead of dying of it, but for the moment between question and read.

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapMut, MmapOptions};

/// A file's bytes, mapped.
///
/// ```
/// # #[cfg(not(miri))] {
/// use plimsoll_memory::MappedFile;
/// use std::fs::File;
/// let path = std::env::temp_dir().join(format!("plimsoll-mapped-{}", std::process::id()));
/// std::fs::write(&path, b"depth")?;
/// let mapped = MappedFile::read_only(File::open(&path)?)?;
/// assert_eq!((mapped.bytes(), mapped.file_len()?), (&b"depth"[..], 5));
/// std::fs::remove_file(&path)?;
/// assert_eq!(mapped.bytes(), b"depth"); // the file is there as long as it is mapped
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MappedFile {
    file: File,
    pages: Pages,
}

#[derive(Debug)]
enum Pages {
    ReadOnly(Mmap),
    Private(MmapMut),
}

impl MappedFile {
    /// Maps a file to be read. It takes nothing of what the system has promised to others, however
    /// large the file is.
    pub fn read_only(file: File) -> io::Result<MappedFile> {
        // SAFETY: the pages are only read, through `bytes`, and live as long as this. Another
        // process that writes to the file changes bytes that nobody takes for anything but numbers.
        // That nobody cuts the file is Note [A mapped file that shrinks].
        let pages = Pages::ReadOnly(unsafe { Mmap::map(&file) }?);
        Ok(MappedFile { file, pages })
    }

    /// Maps a file so that its bytes may be written in this process alone: the file never changes.
    pub fn private(file: File) -> io::Result<MappedFile> {
        // SAFETY: as in `read_only`; a page that is written is this process's own from then on. Who
        // writes, through an address that `bytes` gives, sees to it that no slice is alive then.
        let pages = unsafe { MmapOptions::new().no_reserve_swap().map_copy(&file) }?;
        Ok(MappedFile { file, pages: Pages::Private(pages) })
    }

    /// All bytes that the file had when it was mapped.
    pub fn bytes(&self) -> &[u8] {
        match &self.pages {
            Pages::ReadOnly(pages) => pages,
            Pages::Private(pages) => pages,
        }
    }

    /// How many bytes the file has now; see Note [A mapped file that shrinks].
    pub fn file_len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

// Miri keeps programs from files.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    fn written(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path =
            std::env::temp_dir().join(format!("plimsoll-mapped-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_file_that_was_cut_is_told_by_its_length() {
        let path = written("cut", &[7; 100]);
        let mapped = MappedFile::read_only(File::open(&path).unwrap()).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(40).unwrap();
        assert_eq!((mapped.bytes().len(), mapped.file_len().unwrap()), (100, 40));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn writes_to_private_pages_leave_the_file_alone() {
        let path = written("private", &[7; 100]);
        let mut mapped = MappedFile::private(File::open(&path).unwrap()).unwrap();
        let Pages::Private(pages) = &mut mapped.pages else {
            panic!("it was asked for as private")
        };
        pages[0] = 8;
        assert_eq!(mapped.bytes()[..2], [8, 7]);
        assert_eq!(std::fs::read(&path).unwrap(), [7; 100]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_empty_file_has_no_bytes() {
        let path = written("empty", &[]);
        assert!(MappedFile::read_only(File::open(&path).unwrap()).unwrap().bytes().is_empty());
        std::fs::remove_file(path).unwrap();
    }
}
