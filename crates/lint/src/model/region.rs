//! What surrounds an item inside its scope: a chain of regions from the inside out. A region is a
//! loop body, a `with` block, an arm of an `if`, or a part of a `try`.

use ruff_python_ast::Expr;

/// One link of the chain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Region<'a> {
    /// The scope itself; every chain ends here.
    Root,
    /// The body of the loop with this number in the scope.
    Loop(usize),
    /// A `with` block; what it means is found once imports are known.
    With {
        expr: &'a Expr,
        meaning: Meaning,
    },
    /// An arm of the `if` (or `match`) whose header is the item `branch`; without a test it is an
    /// `else`.
    Arm {
        branch: usize,
        test: Option<&'a Expr>,
    },
    /// Inside `try`; `catches` if a handler would catch a RuntimeError.
    Try {
        catches: bool,
    },
    Except,
}

/// What a `with` block does to autograd and to dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Other,
    GradOff,
    GradOn,
    /// `set_grad_enabled(expression)`.
    GradUnknown,
    Autocast,
    AutocastOff,
}
