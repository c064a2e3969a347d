//! Where what this crate finds out is kept for the next run: kernels that were compiled
//! (`kernel.rs`) and which algorithms are the fastest (`algorithms.rs`).

use std::ffi::OsString;
use std::path::PathBuf;

/// The folder for `what` in the user's cache; nothing where the user has none.
pub(crate) fn folder(what: &str) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|path: &OsString| !path.is_empty());
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
    Some(cache?.join("plimsoll").join(what))
}
