//! Compiling the CUDA sources on a machine without a GPU: NVRTC comes from PyPI, and an example of
//! the `cuda` crate drives it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python_env::{self, Purpose};
use crate::run;

/// A command that compiles every source into `folder`.
pub(crate) fn compile_into(folder: &Path) -> Result<Command, String> {
    let library = library_folder()?;
    let mut command = run::command(
        env!("CARGO"),
        &["run", "--quiet", "--package", "plimsoll-cuda", "--example", "compile_kernels", "--"],
    );
    command.arg(folder).env("LD_LIBRARY_PATH", library);
    Ok(command)
}

/// Where the cubins of the present sources are kept between runs.
pub(crate) fn cubins() -> PathBuf {
    run::target().join("cubins")
}

/// The folder with NVRTC's library in the environment made for it.
fn library_folder() -> Result<PathBuf, String> {
    let environment = python_env::prepare(Purpose::Nvrtc)?;
    let script = "import glob, os, sysconfig; \
                  found = glob.glob(os.path.join(sysconfig.get_path('purelib'), 'nvidia', '*', 'lib')); \
                  print(found[0])";
    let output = python_env::program(&environment, "python")
        .args(["-c", script])
        .output()
        .map_err(|e| format!("python: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
