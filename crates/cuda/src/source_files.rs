//! The CUDA sources, each with the shared prelude before it, named like their CPU twins in the
//! `kernels` crate.

use crate::KernelSource;

macro_rules! source {
    ($name:literal) => {
        KernelSource {
            name: $name,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                include_str!(concat!("../kernels/", $name, ".cu"))
            ),
        }
    };
}

/// A source of the long tail, with what those share.
macro_rules! tail_source {
    ($name:literal) => {
        KernelSource {
            name: $name,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                include_str!("../kernels/tail.cuh"),
                include_str!(concat!("../kernels/", $name, ".cu"))
            ),
        }
    };
}

/// A source of the long tail over keys that were sorted.
macro_rules! sorted_source {
    ($name:literal) => {
        KernelSource {
            name: $name,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                include_str!("../kernels/tail.cuh"),
                include_str!("../kernels/sorted.cuh"),
                include_str!(concat!("../kernels/", $name, ".cu"))
            ),
        }
    };
}

/// Batch normalisation.
pub static BATCH_NORM: KernelSource = source!("batch_norm");
/// Arithmetic on two operands.
pub static BINARY: KernelSource = source!("binary");
/// Convolutions.
pub static CONV: KernelSource = source!("conv");
/// Copies and conversions.
pub static COPY: KernelSource = source!("copy");
/// New elements.
pub static FILL: KernelSource = source!("fill");
/// Reading where indices say.
pub static INDEX: KernelSource = source!("index");
/// Layer normalisation.
pub static LAYER_NORM: KernelSource = source!("layer_norm");
/// Losses of elements and targets.
pub static LOSS: KernelSource = source!("loss");
/// Where a tensor is not zero.
pub static NONZERO: KernelSource = source!("nonzero");
/// Choosing by a condition.
pub static SELECT: KernelSource = source!("select");
/// Steps of optimizers.
pub static OPTIM: KernelSource = source!("optim");
/// Positions in the order of keys.
pub static ORDER: KernelSource = source!("order");
/// Dimensions moved about, and triangles.
pub static REARRANGE: KernelSource = source!("rearrange");
/// Pooling, and windows as columns.
pub static POOL: KernelSource = source!("pool");
/// Reductions.
pub static REDUCE: KernelSource = source!("reduce");
/// Elementwise kernels of one input.
pub static UNARY: KernelSource = source!("unary");
/// Activations and their derivatives.
pub static ACTIVATION: KernelSource = tail_source!("activation");
/// The rarer arithmetic on two operands.
pub static ARITHMETIC: KernelSource = tail_source!("arithmetic");
/// Operands as bits and truths.
pub static BITWISE: KernelSource = tail_source!("bitwise");
/// Comparisons.
pub static COMPARE: KernelSource = tail_source!("compare");
/// Bags of rows of a table.
pub static EMBEDDING_BAG: KernelSource = sorted_source!("embedding_bag");
/// Functions of one input of the long tail.
pub static FUNCTIONS: KernelSource = tail_source!("functions");
/// Writing where indices say.
pub static SCATTER: KernelSource = sorted_source!("scatter");
/// Special functions.
pub static SPECIAL: KernelSource = tail_source!("special");
/// Functions of three operands.
pub static TERNARY: KernelSource = tail_source!("ternary");

/// Every source, for those who compile them all.
pub static ALL: &[&KernelSource] = &[
    &ACTIVATION,
    &ARITHMETIC,
    &BATCH_NORM,
    &BINARY,
    &BITWISE,
    &COMPARE,
    &CONV,
    &COPY,
    &EMBEDDING_BAG,
    &FILL,
    &FUNCTIONS,
    &INDEX,
    &LAYER_NORM,
    &LOSS,
    &NONZERO,
    &OPTIM,
    &ORDER,
    &POOL,
    &REARRANGE,
    &REDUCE,
    &SCATTER,
    &SELECT,
    &SPECIAL,
    &TERNARY,
    &UNARY,
];
