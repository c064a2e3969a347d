//! Where a command's file goes: to the path that was given, or to the screen.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use plimsoll_core::{Error, ErrorKind, Result};

/// Writes to `path`, or to standard output if there is none.
pub(crate) fn write(
    path: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let name = path.map_or("standard output".to_string(), |path| path.display().to_string());
    let written = match path {
        Some(path) => File::create(path).and_then(|file| finish(BufWriter::new(file), content)),
        None => finish(BufWriter::new(io::stdout().lock()), content),
    };
    match written {
        // Whoever reads our output has enough of it, as `head` does.
        Err(error) if path.is_none() && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(Error::new(ErrorKind::Io, format!("cannot write `{name}`")).because(error))
        }
        Ok(()) => Ok(()),
    }
}

fn finish(
    mut out: impl Write,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    content(&mut out)?;
    out.flush()
}
