//! Kinds of memory: what an allocation is for. Plimsoll writes them into its files; for PyTorch's
//! files they are inferred (see `kinds.rs`) and every report says so.

use std::fmt;

/// What an allocation is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Weights and buffers of the model.
    Parameter,
    /// Gradients of parameters or inputs.
    Gradient,
    /// What an optimizer keeps between steps.
    OptimizerState,
    /// Results of forward that backward needs, or that live as long.
    Activation,
    /// What a step starts from.
    Input,
    /// What lives within one phase of a step.
    Temporary,
    /// What a library works in, once for each thread and stream.
    Workspace,
    /// Not known.
    #[default]
    Unknown,
}

impl Kind {
    /// Every kind, in the order of reports and of stacked drawings.
    pub const ALL: [Kind; 8] = [
        Kind::Parameter,
        Kind::Gradient,
        Kind::OptimizerState,
        Kind::Activation,
        Kind::Input,
        Kind::Temporary,
        Kind::Workspace,
        Kind::Unknown,
    ];

    /// The word in files, as PyTorch's profiler and viewer spell it; they have none for workspaces.
    pub fn category(self) -> &'static str {
        match self {
            Kind::Parameter => "parameter",
            Kind::Gradient => "gradient",
            Kind::OptimizerState => "optimizer_state",
            Kind::Activation => "activation",
            Kind::Input => "input",
            Kind::Temporary => "temporary",
            Kind::Workspace => "workspace",
            Kind::Unknown => "unknown",
        }
    }

    /// The kind of a word in a file. `autograd_detail` is what backward makes and drops again.
    pub fn from_category(word: &str) -> Kind {
        match word {
            "autograd_detail" => Kind::Temporary,
            _ => Kind::ALL.into_iter().find(|kind| kind.category() == word).unwrap_or_default(),
        }
    }

    /// The place in [`Kind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::OptimizerState => "optimizer state",
            other => other.category(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_kinds_agree() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_category(kind.category()), kind);
            assert_eq!(Kind::ALL[kind.index()], kind);
        }
        assert_eq!(Kind::from_category("nonsense"), Kind::Unknown);
    }
}
