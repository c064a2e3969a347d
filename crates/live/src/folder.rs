//! Where sockets lie: `plimsoll` in the user's runtime folder (`XDG_RUNTIME_DIR`), or
//! `plimsoll-UID` in the temporary folder where there is none. The folder has mode 0700 and belongs
//! to the user, or it is not used: somebody else could put sockets into it. A program and the one
//! that asks may have been started with different environments, so all places are looked at.

use std::path::PathBuf;

/// The places where the sockets of this user's programs may lie, the preferred one first. They need
/// not exist.
///
/// ```
/// let folders = plimsoll_live::folders();
/// # #[cfg(unix)]
/// assert!(folders.iter().all(|folder| folder.to_string_lossy().contains("plimsoll")));
/// ```
pub fn folders() -> Vec<PathBuf> {
    places()
}

#[cfg(not(unix))]
fn places() -> Vec<PathBuf> {
    Vec::new()
}

#[cfg(unix)]
fn places() -> Vec<PathBuf> {
    let user = crate::system::user_id();
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = set("XDG_RUNTIME_DIR").filter(|folder| folder.is_dir());
    let usual = Some(PathBuf::from(format!("/run/user/{user}"))).filter(|folder| folder.is_dir());
    let mut found = Vec::new();
    for runtime in runtime.into_iter().chain(usual) {
        found.push(runtime.join("plimsoll"));
    }
    for temporary in set("TMPDIR").into_iter().chain([PathBuf::from("/tmp")]) {
        found.push(temporary.join(format!("plimsoll-{user}")));
    }
    let mut once = Vec::new();
    found.retain(|folder| {
        !once.contains(folder) && {
            once.push(folder.clone());
            true
        }
    });
    found
}

#[cfg(unix)]
pub(crate) use unix::{check, opened};

#[cfg(unix)]
mod unix {
    use std::fs::{self, DirBuilder};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    use std::path::{Path, PathBuf};

    use plimsoll_core::{Error, ErrorKind, Result};

    use crate::system::user_id;

    /// The first folder that can be used, made if it is not there.
    pub(crate) fn opened() -> Result<PathBuf> {
        let mut why = Vec::new();
        for folder in super::folders() {
            match made(&folder).and_then(|()| check(&folder)) {
                Ok(()) => return Ok(folder),
                Err(error) => why.push(error.to_string()),
            }
        }
        Err(Error::new(ErrorKind::Io, why.join("; ")))
    }

    fn made(folder: &Path) -> Result<()> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(cause) if cause.kind() != std::io::ErrorKind::AlreadyExists => {
                let message = format!("cannot make the folder `{}`: {cause}", folder.display());
                Err(Error::new(ErrorKind::Io, message))
            }
            _ => Ok(()),
        }
    }

    /// An error unless the folder is this user's, and only this user's.
    pub(crate) fn check(folder: &Path) -> Result<()> {
        let refuse = |why: String| {
            let folder = folder.display();
            Err(Error::new(ErrorKind::Io, format!("`{folder}` is not used: {why}")))
        };
        // A link could lead anywhere.
        let facts = match fs::symlink_metadata(folder) {
            Ok(facts) => facts,
            Err(error) => return refuse(error.to_string()),
        };
        match facts.mode() & 0o7777 {
            _ if !facts.is_dir() => refuse("it is no folder".to_string()),
            _ if facts.uid() != user_id() => {
                refuse(format!("it belongs to another user ({})", facts.uid()))
            }
            mode if mode & 0o077 != 0 => {
                refuse(format!("others may enter it (mode {mode:03o}); make it 700"))
            }
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::{PermissionsExt, symlink};

        use super::*;

        #[test]
        fn only_a_folder_of_our_own_is_used() {
            let name = format!("plimsoll-live-folder-{}", std::process::id());
            let scratch = std::env::temp_dir().join(name);
            made(&scratch).unwrap();
            check(&scratch).unwrap();
            let said = |path: &Path| check(path).unwrap_err().to_string();
            let (open, link, file) =
                (scratch.join("open"), scratch.join("link"), scratch.join("file"));
            made(&open).unwrap();
            fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
            assert!(said(&open).contains("others may enter it (mode 755)"));
            symlink(&scratch, &link).unwrap();
            assert!(said(&link).contains("it is no folder"));
            fs::write(&file, "").unwrap();
            assert!(said(&file).contains("it is no folder"));
            if user_id() != 0 {
                assert!(said(Path::new("/")).contains("belongs to another user (0)"));
            }
            fs::remove_dir_all(&scratch).unwrap();
        }
    }
}
