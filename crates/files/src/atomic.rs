//! Replacing a file as a whole: whoever reads it, at whatever moment, finds the old one or the new
//! one. The new bytes go to a file beside it, reach the disk, and take the name by one rename.
//!
//! Note [One temporary file]
//! The file beside it has one name for each target, and whoever writes it holds its lock. So a
//! program that is killed while it saves leaves at most one such file, however often that happens,
//! and the next save takes it over. Refused: names with a process's number, of which every kill
//! would leave one the size of a checkpoint; and files without a name (`O_TMPFILE`), which can get
//! a name but not one that is taken.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use plimsoll_core::{Error, Result};

use crate::fault;

/// Small writes are gathered; parts of tensors are larger and go straight to the file.
const BUFFER_BYTES: usize = 64 << 10;

/// Links are followed no further than Linux does: a longer chain is taken for a circle.
const MOST_LINKS: usize = 40;

/// Writes a file by `write`, and puts it in place of `path` once all of it is on disk. After an
/// error, a full disk's among them, the old file is as it was and nothing is left beside it.
///
/// ```
/// use std::io::Write;
/// let path = std::env::temp_dir().join(format!("plimsoll-atomic-{}", std::process::id()));
/// plimsoll_files::replace(&path, |out| Ok(out.write_all(b"old")?))?;
/// let failed = plimsoll_files::replace(&path, |out| {
///     out.write_all(b"ne")?;
///     Err(plimsoll_tensor::Error::invalid_argument("no more ink"))
/// });
/// assert!(failed.is_err());
/// assert_eq!(std::fs::read(&path)?, b"old");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn replace(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    let failed = |cause| fault::io(path, "write", cause);
    // A link stays one: what it leads to is replaced.
    let target = led_to(path).map_err(failed)?;
    match fs::metadata(&target) {
        Ok(about) if about.is_dir() => return Err(failed(ErrorKind::IsADirectory.into())),
        // A pipe or a device is written to, not replaced.
        Ok(about) if !about.is_file() => return write_through(path, write),
        _ => {}
    }
    let beside = name_beside(&target).map_err(failed)?;
    let file = take(&beside).map_err(failed)?;
    let done = fill(&file, write).and_then(|()| in_place(&beside, &target, &file));
    match done {
        Ok(()) => Ok(()),
        Err(error) => {
            // Under the lock, so that it is still this save's own.
            let _ = fs::remove_file(&beside);
            Err(kept(path, error))
        }
    }
}

/// Where `path` leads. A link may lead to a file that is not there yet: `canonicalize` finds none.
fn led_to(path: &Path) -> std::io::Result<PathBuf> {
    if let Ok(found) = fs::canonicalize(path) {
        return Ok(found);
    }
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&target) else { return Ok(target) };
        // From the link's own folder, unless it says where from the root.
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(std::io::Error::other("too many levels of symbolic links"))
}

/// Into something that is no plain file.
fn write_through(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let open = OpenOptions::new().write(true).open(path);
    let mut out = BufWriter::new(open.map_err(|cause| fault::io(path, "write", cause))?);
    write(&mut out).map_err(|error| {
        Error::new(error.kind(), format!("cannot write `{}`", path.display())).because(error)
    })?;
    out.flush().map_err(|cause| fault::io(path, "write", cause))
}

/// `.name.saving` in the same folder, so that a rename stays within one file system.
fn name_beside(target: &Path) -> std::io::Result<PathBuf> {
    let name = target.file_name().ok_or(ErrorKind::InvalidInput)?;
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(".saving");
    Ok(target.with_file_name(beside))
}

/// The file beside, empty and locked. See Note [One temporary file].
fn take(beside: &Path) -> std::io::Result<File> {
    loop {
        // No save makes a link of that name; followed, it would lead this one elsewhere.
        if fs::symlink_metadata(beside).is_ok_and(|about| about.is_symlink()) {
            fs::remove_file(beside)?;
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(beside)?;
        match file.lock() {
            // File systems without locks (some of networks) have one writer at a time by custom.
            Err(cause) if cause.kind() != ErrorKind::Unsupported => return Err(cause),
            _ => {}
        }
        // Whoever held the lock may have given this very file its final name, or removed it.
        if same_file(&file, beside)? {
            file.set_len(0)?;
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

#[cfg(not(unix))]
fn same_file(_file: &File, path: &Path) -> std::io::Result<bool> {
    // An open file cannot be renamed or removed there.
    Ok(path.exists())
}

/// Writes everything, and waits until it is on disk.
fn fill(file: &File, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let written = write(&mut out);
    match written {
        Ok(()) => out.flush()?,
        Err(error) => {
            // What is still in the buffer is not wanted.
            drop(out.into_parts());
            return Err(error);
        }
    }
    drop(out);
    Ok(file.sync_all()?)
}

/// Gives the file its name, and waits until the folder that says so is on disk.
fn in_place(beside: &Path, target: &Path, file: &File) -> Result<()> {
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    fs::rename(beside, target)?;
    // From here on the new file is in place; that its name is on disk too cannot be undone, and a
    // folder that cannot be synced (some file systems have no such call) is no failure.
    #[cfg(unix)]
    {
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            let _ = folder.sync_all();
        }
    }
    Ok(())
}

/// What is said of a save that failed.
fn kept(path: &Path, error: Error) -> Error {
    let kind = error.kind();
    let hint = match std::error::Error::source(&error)
        .and_then(|cause| cause.downcast_ref::<std::io::Error>())
        .map(std::io::Error::kind)
    {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            "; free some space and save again"
        }
        _ => "",
    };
    let said = format!("cannot save `{}`, and left it as it was{hint}", path.display());
    Error::new(kind, said).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_failure_after_any_number_of_bytes_keeps_the_old_file() {
        let folder = folder("failure");
        let path = folder.join("state.pt");
        fs::write(&path, b"old").unwrap();
        for count in [0, 1, 100, BUFFER_BYTES, BUFFER_BYTES + 1, 3 * BUFFER_BYTES] {
            let failed = replace(&path, |out| {
                out.write_all(&vec![7; count])?;
                Err(std::io::Error::from(ErrorKind::StorageFull).into())
            });
            let said = failed.unwrap_err().to_string();
            assert!(said.contains("left it as it was") && said.contains("free some"), "{said}");
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names(&folder), ["state.pt"], "nothing is left beside it");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_killed_save_left_is_taken_over() {
        let folder = folder("left");
        let path = folder.join("state.pt");
        fs::write(folder.join(".state.pt.saving"), b"half of something longer").unwrap();
        replace(&path, |out| Ok(out.write_all(b"new")?)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(&folder), ["state.pt"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn saves_of_one_file_by_many_threads_are_one_after_the_other() {
        let folder = folder("threads");
        let path = folder.join("state.pt");
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..10 {
                        replace(path, |out| Ok(out.write_all(&[thread; 5000])?)).unwrap();
                        let read = fs::read(path).unwrap();
                        assert_eq!(read.len(), 5000);
                        assert!(read.iter().all(|byte| *byte == read[0]), "one save's, whole");
                    }
                });
            }
        });
        assert_eq!(names(&folder), ["state.pt"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_permissions_and_what_is_no_file_are_respected() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder("links");
        let path = folder.join("state.pt");
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, folder.join("latest.pt")).unwrap();
        replace(folder.join("latest.pt"), |out| Ok(out.write_all(b"new")?)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(folder.join("latest.pt").is_symlink());

        replace("/dev/null", |out| Ok(out.write_all(b"new")?)).unwrap();
        let full = replace("/dev/full", |out| Ok(out.write_all(b"new")?)).unwrap_err();
        assert!(full.to_string().contains("/dev/full"), "{full}");
        assert!(replace(&folder, |_| Ok(())).unwrap_err().to_string().contains("directory"));
        assert!(replace(folder.join("no/where.pt"), |_| Ok(())).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_no_file_yet_stays_a_link() {
        use std::os::unix::fs::symlink;
        let folder = folder("dangling");
        fs::create_dir(folder.join("runs")).unwrap();
        let real = folder.join("runs/real.pt");
        symlink(&real, folder.join("whole.pt")).unwrap();
        symlink("runs/real.pt", folder.join("relative.pt")).unwrap();
        symlink("relative.pt", folder.join("twice.pt")).unwrap();
        for name in ["whole.pt", "relative.pt", "twice.pt"] {
            let link = folder.join(name);
            replace(&link, |out| Ok(out.write_all(name.as_bytes())?)).unwrap();
            assert!(link.is_symlink(), "{name}");
            assert_eq!(fs::read(&real).unwrap(), name.as_bytes());
            fs::remove_file(&real).unwrap();
        }
        symlink("circle.pt", folder.join("circle.pt")).unwrap();
        assert!(replace(folder.join("circle.pt"), |_| Ok(())).is_err());
        assert!(folder.join("circle.pt").is_symlink());
        fs::remove_dir_all(folder).unwrap();
    }
}
