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

/// A source of the long tail over keys that were sorted.
macro_rules! sorted_source {
    ($name:literal) => {
        KernelSource {
            name: $name,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                include_str!("../kernels/tail.cuh"),
                include_str!("../kernels/key.cuh"),
                include_str!("../kernels/sorted.cuh"),
                include_str!(concat!("../kernels/", $name, ".cu"))
            ),
        }
    };
}

/// Attention on a dtype by tensor cores, for rows of up to so many elements.
macro_rules! attention_source {
    ($name:literal, $instance:literal) => {
        KernelSource {
            name: $name,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                include_str!("../kernels/tail.cuh"),
                include_str!("../kernels/attention.cuh"),
                include_str!("../kernels/attention_halves.cu"),
                $instance
            ),
        }
    };
}

/// Attention of float16 in rows of up to 64 elements.
pub static ATTENTION_F16_64: KernelSource =
    attention_source!("attention_f16_64", "ATTENTION(f16, 64)");
/// Attention of float16 in rows of up to 128 elements.
pub static ATTENTION_F16_128: KernelSource =
    attention_source!("attention_f16_128", "ATTENTION(f16, 128)");
/// Attention of bfloat16 in rows of up to 64 elements.
pub static ATTENTION_BF16_64: KernelSource =
    attention_source!("attention_bf16_64", "ATTENTION(bf16, 64)");
/// Attention of bfloat16 in rows of up to 128 elements.
pub static ATTENTION_BF16_128: KernelSource =
    attention_source!("attention_bf16_128", "ATTENTION(bf16, 128)");
/// A source that is compiled once for f32 and the half types.
macro_rules! halves_source {
    ($name:literal) => {
        KernelSource {
            name: $name,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                include_str!("../kernels/halves.cuh"),
                include_str!(concat!("../kernels/", $name, ".cu"))
            ),
        }
    };
}

/// A source of convolutions, with what those share.
macro_rules! conv_source {
    ($name:literal) => {
        KernelSource {
            name: $name,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                include_str!("../kernels/halves.cuh"),
                include_str!("../kernels/conv.cuh"),
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
pub static CONV: KernelSource = conv_source!("conv");
/// Convolutions with few channels a group.
pub static CONV_DEPTHWISE: KernelSource = conv_source!("conv_depthwise");
/// Copies and conversions.
pub static COPY: KernelSource = source!("copy");
/// The likelihood of target classes.
pub static CROSS_ENTROPY: KernelSource = halves_source!("cross_entropy");
/// New elements.
pub static FILL: KernelSource = source!("fill");
/// Group normalisation.
pub static GROUP_NORM: KernelSource = halves_source!("group_norm");
/// Cross entropy of a linear map's results.
pub static LINEAR_CROSS_ENTROPY: KernelSource = source!("linear_cross_entropy");
/// Distances of rows.
pub static DISTANCE: KernelSource = source!("distance");
/// Connectionist temporal classification.
pub static CTC: KernelSource = source!("ctc");
/// Pooling of contiguous planes by the largest.
pub static POOL_PLANES: KernelSource = halves_source!("pool_planes");
/// Reading where indices say.
pub static INDEX: KernelSource = source!("index");
/// The cells of recurrent layers.
pub static RECURRENT: KernelSource = source!("recurrent");
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
/// Bags of rows of a table.
pub static EMBEDDING_BAG: KernelSource = sorted_source!("embedding_bag");
/// Writing where indices say.
pub static SCATTER: KernelSource = sorted_source!("scatter");
/// Special functions.
pub static SPECIAL: KernelSource = tail_source!("special");
/// Attention.
pub static ATTENTION: KernelSource = KernelSource {
    name: "attention",
    text: concat!(
        include_str!("../kernels/prelude.cuh"),
        include_str!("../kernels/tail.cuh"),
        include_str!("../kernels/attention.cuh"),
        include_str!("../kernels/attention.cu")
    ),
};
/// Products of integer matrices.
pub static MATMUL: KernelSource = tail_source!("matmul");
/// Resampling of spatial dimensions.
pub static INTERPOLATE: KernelSource = tail_source!("interpolate");
/// Sampling at the places of a grid.
pub static GRID: KernelSource = tail_source!("grid");
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
    &ATTENTION,
    &ATTENTION_BF16_128,
    &ATTENTION_BF16_64,
    &ATTENTION_F16_128,
    &ATTENTION_F16_64,
    &BATCH_NORM,
    &BINARY,
    &BITWISE,
    &COMPARE,
    &CONV,
    &CONV_DEPTHWISE,
    &COPY,
    &CROSS_ENTROPY,
    &CTC,
    &DISTANCE,
    &EMBEDDING_BAG,
    &FILL,
    &FUNCTIONS,
    &GRID,
    &GROUP_NORM,
    &INDEX,
    &INTERPOLATE,
    &LAYER_NORM,
    &LINEAR_CROSS_ENTROPY,
    &LOSS,
    &MATMUL,
    &NONZERO,
    &OPTIM,
    &ORDER,
    &POOL,
    &POOL_PLANES,
    &RANDOM,
    &REARRANGE,
    &RECURRENT,
    &REDUCE,
    &RUNS,
    &SCAN,
    &SCATTER,
    &SEARCH,
    &SELECT,
    &SOFTMAX,
    &SORT,
    &SPECIAL,
    &TERNARY,
    &TOPK,
    &UNARY,
];

#[cfg(test)]
mod tests {
    use super::ALL;

    /// Or it would be compiled with every other kernel of its file.
    #[test]
    fn every_kernel_can_be_compiled_alone() {
        for source in ALL {
            let prelude = include_str!("../kernels/prelude.cuh");
            let own = source.text.strip_prefix(prelude).unwrap_or(source.text);
            assert!(!own.contains("__global__"), "{}.cu has kernels without KERNEL()", source.name);
        }
    }
}
