//! What a block of memory is for. Kinds are set by whoever knows the role (a parameter, a gradient,
//! a tensor saved for backward); the rules of precedence between roles live with the tensors, not
//! here.

use std::fmt;

/// What a block of memory is for.
///
/// ```
/// use plimsoll_memory::Kind;
/// assert_eq!(Kind::OptimizerState.category(), "optimizer_state");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A trained weight.
    Parameter = 0,
    /// What an optimizer keeps beside a weight.
    OptimizerState = 1,
    /// A gradient.
    Gradient = 2,
    /// What the program brought in: batches, targets.
    Input = 3,
    /// An intermediate result that backward needs.
    Activation = 4,
    /// An intermediate result that nothing needs for long.
    Temporary = 5,
    /// Scratch memory of a kernel or library.
    Workspace = 6,
    /// Nobody said.
    #[default]
    Unknown = 7,
    /// What Plimsoll itself keeps on the host: how dropped tensors are made again.
    Record = 8,
}

impl Kind {
    /// How many kinds there are; `kind as usize` is below it.
    pub const COUNT: usize = 9;

    /// Every kind, in the order of its number.
    pub const ALL: [Kind; Kind::COUNT] = [
        Kind::Parameter,
        Kind::OptimizerState,
        Kind::Gradient,
        Kind::Input,
        Kind::Activation,
        Kind::Temporary,
        Kind::Workspace,
        Kind::Unknown,
        Kind::Record,
    ];

    /// PyTorch's word for it, as its snapshot viewer colours by. It has none for workspaces, which
    /// it would call temporary, and none for records.
    pub const fn category(self) -> &'static str {
        match self {
            Kind::Parameter => "parameter",
            Kind::OptimizerState => "optimizer_state",
            Kind::Gradient => "gradient",
            Kind::Input => "input",
            Kind::Activation => "activation",
            Kind::Temporary | Kind::Workspace => "temporary",
            Kind::Unknown | Kind::Record => "unknown",
        }
    }

    /// The kind numbered `number`; numbers past the last one are [`Kind::Unknown`].
    pub(crate) const fn from_number(number: u8) -> Kind {
        if (number as usize) < Kind::COUNT { Kind::ALL[number as usize] } else { Kind::Unknown }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Parameter => "parameter",
            Kind::OptimizerState => "optimizer state",
            Kind::Gradient => "gradient",
            Kind::Input => "input",
            Kind::Activation => "activation",
            Kind::Temporary => "temporary",
            Kind::Workspace => "workspace",
            Kind::Unknown => "unknown",
            Kind::Record => "record",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_kinds_agree() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(Kind::from_number(number as u8), kind);
        }
        assert_eq!(Kind::from_number(200), Kind::Unknown);
    }
}
