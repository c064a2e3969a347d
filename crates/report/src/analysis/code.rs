//! Whose code a file is: the user's, a library's, or none in Python at all. Told from its name,
//! once for each name.

use crate::snapshot::Snapshot;
use crate::strings::TextId;

/// Whose code a frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The user's own.
    User,
    /// `torch/nn/modules` and its parameters: a model being built, copied, moved or run.
    Module,
    /// `torch/optim`, or another package's optimizers.
    Optimizer,
    /// `torch/autograd` and the methods that start backward.
    Autograd,
    /// `torch/utils/checkpoint.py`.
    Checkpoint,
    /// Any other installed package, or Python itself.
    Library,
    /// C++ or another compiled language, or a frame without a file.
    Native,
}

/// The code of every text that is a file's name.
pub(crate) struct CodeOf(Vec<Code>);

impl CodeOf {
    pub(crate) fn new(snapshot: &Snapshot) -> CodeOf {
        let texts = (0..snapshot.strings.len() as u32).map(TextId);
        CodeOf(texts.map(|text| classify(snapshot.strings.get(text))).collect())
    }

    pub(crate) fn of(&self, file: TextId) -> Code {
        self.0.get(file.0 as usize).copied().unwrap_or(Code::Native)
    }
}

fn classify(file: &str) -> Code {
    const PACKAGES: [&str; 2] = ["site-packages/", "dist-packages/"];
    let packaged = PACKAGES.iter().find_map(|mark| file.split_once(mark).map(|(_, rest)| rest));
    if let Some(inner) = packaged {
        return match inner {
            _ if inner.starts_with("torch/nn/modules/") => Code::Module,
            _ if inner == "torch/nn/parameter.py" => Code::Module,
            _ if inner.contains("optim/") || inner.contains("optimizers/") => Code::Optimizer,
            _ if inner.starts_with("torch/autograd/") || inner == "torch/_tensor.py" => {
                Code::Autograd
            }
            _ if inner == "torch/utils/checkpoint.py" => Code::Checkpoint,
            _ if is_native(inner) => Code::Native,
            _ => Code::Library,
        };
    }
    // `plimsoll`, `module` and `phase` are Plimsoll's own frames around the user's line.
    const PSEUDO: [&str; 5] = ["", "??", "plimsoll", "module", "phase"];
    if PSEUDO.contains(&file) || is_native(file) {
        return Code::Native;
    }
    let library = file.starts_with('<')
        || file.contains("lib/python3")
        || file.contains("/.cargo/registry/")
        || file.starts_with("/rustc/");
    if library { Code::Library } else { Code::User }
}

fn is_native(file: &str) -> bool {
    const ENDS: [&str; 9] = [".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".cuh", ".S", ".inc"];
    ENDS.iter().any(|end| file.ends_with(end)) || file.contains(".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_whom_they_say() {
        for (file, code) in [
            ("train/scenarios.py", Code::User),
            ("project/site_packages_like.py", Code::User),
            ("src/train.rs", Code::User),
            ("/x/lib/python3.11/site-packages/torch/nn/modules/linear.py", Code::Module),
            ("site-packages/torch/nn/functional.py", Code::Library),
            ("site-packages/torch/optim/adam.py", Code::Optimizer),
            ("site-packages/bitsandbytes/optim/adam.py", Code::Optimizer),
            ("site-packages/torch/_tensor.py", Code::Autograd),
            ("/usr/lib/python3.12/threading.py", Code::Library),
            ("<frozen runpy>", Code::Library),
            ("/build/aten/src/ATen/Native.cpp", Code::Native),
            ("??", Code::Native),
            ("", Code::Native),
        ] {
            assert_eq!(classify(file), code, "{file}");
        }
    }
}
