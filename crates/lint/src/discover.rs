//! Files to check: those named, and under the folders named every `.py` and `.ipynb` file. Links to
//! folders are not followed, so loops cannot occur; folders that hold no sources of the project
//! (environments, caches) are left out.

use std::path::{Path, PathBuf};

use crate::configuration::Configuration;
use crate::finding::Problem;

/// Folders that are never descended into.
const LEFT_OUT: &[&str] = &[
    "__pycache__",
    "node_modules",
    "site-packages",
    "venv",
    "env",
    "build",
    "dist",
    "target",
    "__pypackages__",
];

/// The files, sorted inside each folder, and what could not be read.
pub(crate) fn files(
    paths: &[PathBuf],
    configuration: &Configuration,
) -> (Vec<PathBuf>, Vec<Problem>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                walk(path, configuration, &mut files, &mut problems)
            }
            Ok(_) => files.push(path.clone()),
            Err(error) => problems.push(unreadable(path, &error)),
        }
    }
    (files, problems)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::whole(path.to_string_lossy(), format!("cannot be read: {error}"))
}

fn walk(
    root: &Path,
    configuration: &Configuration,
    files: &mut Vec<PathBuf>,
    problems: &mut Vec<Problem>,
) {
    // A list of its own instead of recursion: depth costs no stack.
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(unreadable(&folder, &error));
                continue;
            }
        };
        let mut here: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        here.sort();
        for path in here.iter().filter(|path| !configuration.excludes(path)) {
            // Of the link itself, not of what it leads to.
            let Ok(metadata) = std::fs::symlink_metadata(path) else { continue };
            let is_file = metadata.is_file() || metadata.is_symlink() && path.is_file();
            if metadata.is_dir() && !is_left_out(path) {
                folders.push(path.clone());
            } else if is_file && is_python(path) {
                files.push(path.clone());
            }
        }
    }
    // Folders come off the list in the wrong order.
    files.sort();
}

fn is_left_out(folder: &Path) -> bool {
    let name = folder.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.starts_with('.') || LEFT_OUT.contains(&&*name) || folder.join("pyvenv.cfg").exists()
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py" || extension == "ipynb")
}
