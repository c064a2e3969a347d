//! What bytes that grow are to the program: the words of findings, those of the watch of PyTorch's
//! programs too. The ledger's kinds (parameter, gradient, ...) say what a block was made for; these
//! say as what it stays.

use std::fmt;

use crate::causes::{self, Cause};

/// As what memory stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GrowthKind {
    /// A weight.
    Parameter,
    /// What an optimizer keeps.
    OptimizerState,
    /// The gradient of a weight.
    GradientOfParameter,
    /// The gradient of another leaf that is kept.
    GradientOfInput,
    /// A gradient that is kept by itself.
    KeptGradient,
    /// A leaf that takes gradients.
    Input,
    /// What a graph saved for backward.
    Activation,
    /// A view of a part that keeps all of it.
    Slice,
    /// Anything else that is kept.
    Value,
    /// Nodes of graphs, which take host memory.
    Nodes,
    /// Nobody that is known holds it.
    Library,
}

impl GrowthKind {
    /// Every kind.
    pub const ALL: [GrowthKind; 11] = [
        GrowthKind::Parameter,
        GrowthKind::OptimizerState,
        GrowthKind::GradientOfParameter,
        GrowthKind::GradientOfInput,
        GrowthKind::KeptGradient,
        GrowthKind::Input,
        GrowthKind::Activation,
        GrowthKind::Slice,
        GrowthKind::Value,
        GrowthKind::Nodes,
        GrowthKind::Library,
    ];

    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            GrowthKind::Parameter => "parameter",
            GrowthKind::OptimizerState => "optimizer state",
            GrowthKind::GradientOfParameter => "gradient of a parameter",
            GrowthKind::GradientOfInput => "gradient of an input that is kept",
            GrowthKind::KeptGradient => "gradient that is kept",
            GrowthKind::Input => "input that takes gradients",
            GrowthKind::Activation => "activation kept by a graph",
            GrowthKind::Slice => "slice that keeps its whole storage",
            GrowthKind::Value => "value",
            GrowthKind::Nodes => "graph nodes on the host",
            GrowthKind::Library => "cached by a library",
        }
    }

    /// Why it grows, where the kind alone tells; of graphs the holder decides, of values how they
    /// are held.
    pub const fn cause(self) -> Cause {
        match self {
            GrowthKind::Parameter => causes::MODELS,
            GrowthKind::OptimizerState => causes::OPTIMIZER_STATE,
            GrowthKind::GradientOfParameter => causes::MODEL_GRADIENTS,
            GrowthKind::GradientOfInput => causes::INPUT_GRADIENTS,
            GrowthKind::KeptGradient => causes::GRADIENTS,
            GrowthKind::Input => causes::INPUTS,
            GrowthKind::Activation | GrowthKind::Nodes => causes::RESULTS,
            GrowthKind::Slice => causes::SLICES,
            GrowthKind::Value => causes::VALUES,
            GrowthKind::Library => causes::LIBRARY,
        }
    }
}

impl fmt::Display for GrowthKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}
