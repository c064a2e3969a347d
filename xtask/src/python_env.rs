//! The Python environments that tests and benchmarks run in: virtual environments under the target
//! folder, made on first use from a list of packages and made again when the list changes.

use std::path::PathBuf;
use std::process::Command;

use crate::run;

/// What an environment is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Building and testing the Python package; no PyTorch, which is large.
    Tests,
    /// PyTorch from PyPI, to be compared with.
    Bench,
    /// PyTorch whose programs are watched, and the tests of the watch.
    Watch,
    /// PyTorch's own source checker, to be compared with.
    TorchFix,
    /// NVIDIA's run-time compiler, for checking CUDA sources without a GPU.
    Nvrtc,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Purpose::Tests => "tests",
            Purpose::Bench => "bench",
            Purpose::Watch => "watch",
            Purpose::TorchFix => "torchfix",
            Purpose::Nvrtc => "nvrtc",
        }
    }

    fn packages(self) -> &'static [&'static str] {
        match self {
            Purpose::Tests => &["maturin>=1.9.4,<2", "pytest>=8", "numpy>=1.26", "mypy>=1.18"],
            // PyTorch's operator database imports expecttest.
            Purpose::Bench => &["torch", "numpy", "expecttest"],
            Purpose::Watch => &["torch", "numpy", "pytest>=8"],
            Purpose::TorchFix => &["torchfix"],
            Purpose::Nvrtc => &["nvidia-cuda-nvrtc>=13,<14"],
        }
    }
}

/// The folder of the environment, ready to use.
pub(crate) fn prepare(purpose: Purpose) -> Result<PathBuf, String> {
    let folder = run::target().join("python").join(purpose.name());
    let stamp = folder.join("packages.txt");
    let wanted = purpose.packages().join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(folder);
    }
    let python = find_python()?;
    let path = folder.to_string_lossy();
    run::plain(&mut run::command(python, &["-m", "venv", "--clear", &path]))?;
    let mut install = program(&folder, "python");
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run::plain(install.args(purpose.packages()))?;
    std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(folder)
}

/// An interpreter that has PyTorch: the one that `PLIMSOLL_TORCH_PYTHON` names, else that of
/// [`Purpose::Bench`].
pub(crate) fn torch() -> Result<PathBuf, String> {
    match std::env::var_os("PLIMSOLL_TORCH_PYTHON") {
        Some(python) => Ok(PathBuf::from(python)),
        None => Ok(prepare(Purpose::Bench)?.join("bin").join("python")),
    }
}

/// Builds the Python module, optimised, into the package's own folder; the environment that has
/// the package.
pub(crate) fn released_module() -> Result<PathBuf, String> {
    let environment = prepare(Purpose::Tests)?;
    run::plain(program(&environment, "maturin").args(["develop", "--release"]))?;
    Ok(environment)
}

/// A program of the environment, which it also finds its own packages through.
pub(crate) fn program(folder: &std::path::Path, name: &str) -> Command {
    let mut command = run::command(folder.join("bin").join(name), &[]);
    command.env("VIRTUAL_ENV", folder).env_remove("PYTHONPATH").env_remove("PYTHONHOME");
    command
}

fn find_python() -> Result<&'static str, String> {
    const NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 10))";
    ["python3", "python"]
        .into_iter()
        .find(|python| run::answers(python, &["-c", NEW_ENOUGH]))
        .ok_or_else(|| "no Python of version 3.10 or newer was found on the path".to_string())
}
