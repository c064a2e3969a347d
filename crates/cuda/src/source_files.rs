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

/// A source that puts elements in order, with the keys that they are ordered by.
macro_rules! key_source {
    ($name:literal) => {
        KernelSource {
            name: $name,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                include_str!("../kernels/tail.cuh"),
                include_str!("../kernels/key.cuh"),
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
/// Dimensions moved about, and triangles.
pub static REARRANGE: KernelSource = source!("rearrange");
/// Pooling, and windows as columns.
pub static POOL: KernelSource = source!("pool");
/// Softmax and its derivatives.
pub static SOFTMAX: KernelSource = source!("softmax");
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
/// Functions of one input of the long tail.
pub static FUNCTIONS: KernelSource = tail_source!("functions");
/// Random numbers.
pub static RANDOM: KernelSource = tail_source!("random");
/// Reductions.
pub static REDUCE: KernelSource = tail_source!("reduce");
/// Scans along a dimension.
pub static SCAN: KernelSource = tail_source!("scan");
/// Searches in sorted sequences, and histograms.
pub static SEARCH: KernelSource = tail_source!("search");
/// Special functions.
pub static SPECIAL: KernelSource = tail_source!("special");
/// Functions of three operands.
pub static TERNARY: KernelSource = tail_source!("ternary");
/// Runs of equal elements, and the order of rows.
pub static RUNS: KernelSource = key_source!("runs");
/// Sorting.
pub static SORT: KernelSource = key_source!("sort");
/// The greatest few.
pub static TOPK: KernelSource = key_source!("topk");

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
    &FILL,
    &FUNCTIONS,
    &INDEX,
    &LAYER_NORM,
    &LOSS,
    &NONZERO,
    &OPTIM,
    &POOL,
    &RANDOM,
    &REARRANGE,
    &REDUCE,
    &RUNS,
    &SCAN,
    &SEARCH,
    &SELECT,
    &SOFTMAX,
    &SORT,
    &SPECIAL,
    &TERNARY,
    &TOPK,
    &UNARY,
];
