//! What is wrong with a file, as errors: which file, which entry, and what to do.

use std::fmt;
use std::path::Path;

use plimsoll_core::{Error, ErrorKind};

/// Behind an error (`Error::detail`) of a pickle that cannot be read: it is damaged, or asks for
/// something that only running code could make.
///
/// ```
/// use plimsoll_files::{Source, Unpickling, load_from};
/// use plimsoll_tensor::Device;
/// let error = load_from(Source::from(b"no file".to_vec()), false, &mut |_| Ok(Device::cpu()));
/// assert!(error.unwrap_err().detail::<Unpickling>().is_none(), "it is no pickle at all");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpickling {
    /// The global that is not in the list, as `module.name`.
    pub global: Option<String>,
}

impl fmt::Display for Unpickling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.global {
            Some(_) => f.write_str(
                "Nothing of it was run. Files may hold tensors, parameters, dicts, lists, tuples, sets, numbers, texts, \
                 bytes, dtypes, devices and sizes; save the object's `state_dict` instead of the object.",
            ),
            None => f.write_str("The file is damaged, or was not written by torch.save."),
        }
    }
}

impl std::error::Error for Unpickling {}

/// A file that does not hold what it should.
pub(crate) fn bad(what: impl Into<String>) -> Error {
    Error::invalid_argument(what)
}

/// A pickle that cannot be read.
pub(crate) fn unpickling(what: impl Into<String>, global: Option<String>) -> Error {
    Error::invalid_argument(what).because(Unpickling { global })
}

/// The same error, with the file's name before it.
pub(crate) fn in_file(path: &Path, error: Error) -> Error {
    let said = format!("`{}`: {error}", path.display());
    match error.detail::<Unpickling>() {
        // The cause is printed after the message, so it must not be in the message already.
        Some(cause) => {
            let cause = cause.clone();
            let printed = format!("\n{cause}");
            let said = said.strip_suffix(&printed).unwrap_or(&said).to_string();
            Error::new(error.kind(), said).because(cause)
        }
        // Memory that ran out keeps its report.
        None if error.is_out_of_memory() => error,
        None => Error::new(error.kind(), said),
    }
}

/// A file that could not be read or written.
pub(crate) fn io(path: &Path, verb: &str, cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot {verb} `{}`", path.display())).because(cause)
}
