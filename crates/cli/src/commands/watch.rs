//! `plimsoll watch`: becomes the Python that runs a PyTorch program under the watch. The watch is
//! Python, in the package's folder `watch`; its files travel in the executable, so that it works in
//! an environment where only PyTorch is installed. Options are read there.

use std::path::{Path, PathBuf};

use anstream::eprintln;

use super::python::{self, CANNOT_START};
use crate::args::Watch;

/// The files of the watch, as Python finds them in its folder.
const FILES: &[(&str, &str)] = &[
    ("__init__.py", include_str!("../../watch/__init__.py")),
    ("__main__.py", include_str!("../../watch/__main__.py")),
    ("_attributes.py", include_str!("../../watch/_attributes.py")),
    ("_census.py", include_str!("../../watch/_census.py")),
    ("_checker.py", include_str!("../../watch/_checker.py")),
    ("_command.py", include_str!("../../watch/_command.py")),
    ("_contained.py", include_str!("../../watch/_contained.py")),
    ("_copied.py", include_str!("../../watch/_copied.py")),
    ("_cost.py", include_str!("../../watch/_cost.py")),
    ("_cycles.py", include_str!("../../watch/_cycles.py")),
    ("_decorator.py", include_str!("../../watch/_decorator.py")),
    ("_errors.py", include_str!("../../watch/_errors.py")),
    ("_excluded.py", include_str!("../../watch/_excluded.py")),
    ("_findings.py", include_str!("../../watch/_findings.py")),
    ("_frames.py", include_str!("../../watch/_frames.py")),
    ("_gradients.py", include_str!("../../watch/_gradients.py")),
    ("_growth.py", include_str!("../../watch/_growth.py")),
    ("_holders.py", include_str!("../../watch/_holders.py")),
    ("_kinds.py", include_str!("../../watch/_kinds.py")),
    ("_lengthening.py", include_str!("../../watch/_lengthening.py")),
    ("_levels.py", include_str!("../../watch/_levels.py")),
    ("_live.py", include_str!("../../watch/_live.py")),
    ("_live_socket.py", include_str!("../../watch/_live_socket.py")),
    ("_looks.py", include_str!("../../watch/_looks.py")),
    ("_magic.py", include_str!("../../watch/_magic.py")),
    ("_making.py", include_str!("../../watch/_making.py")),
    ("_meant.py", include_str!("../../watch/_meant.py")),
    ("_naming.py", include_str!("../../watch/_naming.py")),
    ("_nodes.py", include_str!("../../watch/_nodes.py")),
    ("_others.py", include_str!("../../watch/_others.py")),
    ("_out_of_memory.py", include_str!("../../watch/_out_of_memory.py")),
    ("_page.py", include_str!("../../watch/_page.py")),
    ("_passing.py", include_str!("../../watch/_passing.py")),
    ("_phases.py", include_str!("../../watch/_phases.py")),
    ("_places.py", include_str!("../../watch/_places.py")),
    ("_program.py", include_str!("../../watch/_program.py")),
    ("_put_off.py", include_str!("../../watch/_put_off.py")),
    ("_render.py", include_str!("../../watch/_render.py")),
    ("_session.py", include_str!("../../watch/_session.py")),
    ("_slices.py", include_str!("../../watch/_slices.py")),
    ("_snapshot.py", include_str!("../../watch/_snapshot.py")),
    ("_stand_in.py", include_str!("../../watch/_stand_in.py")),
    ("_step_hooks.py", include_str!("../../watch/_step_hooks.py")),
    ("_steps.py", include_str!("../../watch/_steps.py")),
    ("_uncompiled.py", include_str!("../../watch/_uncompiled.py")),
    ("_undisturbed.py", include_str!("../../watch/_undisturbed.py")),
    ("_unseen.py", include_str!("../../watch/_unseen.py")),
    ("_watch.py", include_str!("../../watch/_watch.py")),
    ("_windows.py", include_str!("../../watch/_windows.py")),
    ("pytest_plugin.py", include_str!("../../watch/pytest_plugin.py")),
];

/// Runs the program; the status is its own.
pub(crate) fn run(options: &Watch) -> u8 {
    let folder = match cache_folder().and_then(|cache| unpacked(&cache)) {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!(
                "error: the watch cannot be unpacked: {error}; set XDG_CACHE_HOME to a folder that can \
                 be written"
            );
            return CANNOT_START;
        }
    };
    let arguments =
        std::iter::once(folder.into_os_string()).chain(options.arguments.iter().cloned());
    python::start(&arguments.collect::<Vec<_>>(), "the environment that has PyTorch")
}

/// Where files of the user's own may be kept; never a folder that others can write.
fn cache_folder() -> std::io::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = || set("HOME").or_else(|| set("USERPROFILE")).map(|home| home.join(".cache"));
    set("XDG_CACHE_HOME")
        .or_else(home)
        .ok_or_else(|| std::io::Error::other("no home folder is set"))
}

/// The folder with this version's files, written if it is not there. Its name tells the content,
/// and it appears as a whole: a second command beside this one finds all of it or nothing.
fn unpacked(cache: &Path) -> std::io::Result<PathBuf> {
    let folder = cache.join("plimsoll").join(format!("watch-{:016x}", content_hash()));
    if folder.join("__main__.py").exists() {
        return Ok(folder);
    }
    let partial = folder.with_extension(format!("partial-{}", std::process::id()));
    std::fs::create_dir_all(&partial)?;
    for (name, source) in FILES {
        std::fs::write(partial.join(name), source)?;
    }
    match std::fs::rename(&partial, &folder) {
        Err(error) if !folder.join("__main__.py").exists() => Err(error),
        renamed => {
            if renamed.is_err() {
                let _ = std::fs::remove_dir_all(&partial);
            }
            Ok(folder)
        }
    }
}

/// FNV-1a over names and sources: it only tells versions apart.
fn content_hash() -> u64 {
    let bytes = FILES.iter().flat_map(|(name, source)| name.bytes().chain(source.bytes()));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_watch_travels() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("watch");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .expect("the folder of the watch")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .filter(|name| name.ends_with(".py"))
            .collect();
        there.sort();
        let ours: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(there, ours);
    }

    #[test]
    fn unpacking_twice_gives_the_same_files() {
        let cache =
            std::env::temp_dir().join(format!("plimsoll-watch-test-{}", std::process::id()));
        let first = unpacked(&cache).expect("a folder that can be written");
        assert_eq!(unpacked(&cache).expect("the same folder"), first);
        for (name, source) in FILES {
            assert_eq!(&std::fs::read_to_string(first.join(name)).expect("a file"), source);
        }
        let beside = std::fs::read_dir(cache.join("plimsoll")).expect("a folder").count();
        assert_eq!(beside, 1, "nothing partial is left");
        std::fs::remove_dir_all(&cache).expect("the test's own folder");
    }
}
