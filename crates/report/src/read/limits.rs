//! What a reader accepts before it gives up. A hostile file can claim anything; these bound what
//! claims may cost.

/// Bounds on what reading a file may use.
///
/// ```
/// use plimsoll_report::{Limits, read_with};
/// let limits = Limits { depth: 2, ..Limits::default() };
/// let error = read_with(b"[[[[[]]]]]", &limits).unwrap_err();
/// assert!(error.to_string().contains("nested more than 2 deep"), "{error}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How deep containers may nest. Snapshots need seven.
    pub depth: usize,
    /// Bytes that reading may hold besides the file and its columns: a fixed part,
    pub fixed_bytes: usize,
    /// and so many for each byte of the file.
    pub bytes_per_byte: usize,
    /// Bytes that a compressed file may unfold into.
    pub unfolded_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            depth: 1000,
            fixed_bytes: 16 << 20,
            // Real pickles need one or two; a file that needs more than three is no snapshot.
            bytes_per_byte: 3,
            unfolded_bytes: 8 << 30,
        }
    }
}

impl Limits {
    /// What a file of `len` bytes may hold while it is read.
    pub(crate) fn budget(&self, len: usize) -> usize {
        self.fixed_bytes.saturating_add(len.saturating_mul(self.bytes_per_byte))
    }
}
