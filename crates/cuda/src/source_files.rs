//! The CUDA sources, each with the shared prelude before it, named like their CPU twins in the
//! `kernels` crate.

use crate::KernelSource;

/// A source of that name: the prelude, then the file of its name; or the files that are listed, and
/// a last line. Before all that, the one compute capability that it is for.
macro_rules! source {
    ($name:literal) => {
        source!($name, [concat!($name, ".cu")])
    };
    ($name:literal, [$($file:expr),+] $(, $last:literal)?) => {
        source!(None, $name, [$($file),+] $(, $last)?)
    };
    ($only:expr, $name:literal, [$($file:expr),+] $(, $last:literal)?) => {
        KernelSource {
            name: $name,
            only_on: $only,
            text: concat!(
                include_str!("../kernels/prelude.cuh"),
                $(include_str!(concat!("../kernels/", $file)),)+
                $($last)?
            ),
        }
    };
}

/// Attention of float16 in rows of up to 64 elements.
pub static ATTENTION_F16_64: KernelSource = source!(
    "attention_f16_64",
    ["tail.cuh", "attention.cuh", "tensor_cores.cuh", "attention_halves.cu"],
    "ATTENTION(f16, 64)"
);
/// Attention of float16 in rows of up to 128 elements.
pub static ATTENTION_F16_128: KernelSource = source!(
    "attention_f16_128",
    ["tail.cuh", "attention.cuh", "tensor_cores.cuh", "attention_halves.cu"],
    "ATTENTION(f16, 128)"
);
/// Attention of bfloat16 in rows of up to 64 elements.
pub static ATTENTION_BF16_64: KernelSource = source!(
    "attention_bf16_64",
    ["tail.cuh", "attention.cuh", "tensor_cores.cuh", "attention_halves.cu"],
    "ATTENTION(bf16, 64)"
);
/// Attention of bfloat16 in rows of up to 128 elements.
pub static ATTENTION_BF16_128: KernelSource = source!(
    "attention_bf16_128",
    ["tail.cuh", "attention.cuh", "tensor_cores.cuh", "attention_halves.cu"],
    "ATTENTION(bf16, 128)"
);
/// Attention of float16 in packed rows of up to 64 elements, by warps.
pub static ATTENTION_PACKED_F16_64: KernelSource = source!(
    "attention_packed_f16_64",
    [
        "tail.cuh",
        "attention.cuh",
        "tensor_cores.cuh",
        "fetch.cuh",
        "attention_packed.cuh",
        "attention_warps.cuh",
        "attention_packed.cu"
    ],
    "ATTENTION(f16, 64)"
);
/// Attention of float16 in packed rows of up to 128 elements, by warps.
pub static ATTENTION_PACKED_F16_128: KernelSource = source!(
    "attention_packed_f16_128",
    [
        "tail.cuh",
        "attention.cuh",
        "tensor_cores.cuh",
        "fetch.cuh",
        "attention_packed.cuh",
        "attention_warps.cuh",
        "attention_packed.cu"
    ],
    "ATTENTION(f16, 128)"
);
/// Attention of float16 in packed rows of up to 64 elements, by groups of warps.
pub static ATTENTION_GROUPS_F16_64: KernelSource = source!(
    Some(90),
    "attention_groups_f16_64",
    [
        "tail.cuh",
        "attention.cuh",
        "tensor_cores.cuh",
        "fetch.cuh",
        "attention_packed.cuh",
        "attention_warpgroups.cuh",
        "attention_packed.cu"
    ],
    "ATTENTION(f16, 64)"
);
/// Attention of bfloat16 in packed rows of up to 64 elements, by warps.
pub static ATTENTION_PACKED_BF16_64: KernelSource = source!(
    "attention_packed_bf16_64",
    [
        "tail.cuh",
        "attention.cuh",
        "tensor_cores.cuh",
        "fetch.cuh",
        "attention_packed.cuh",
        "attention_warps.cuh",
        "attention_packed.cu"
    ],
    "ATTENTION(bf16, 64)"
);
/// Attention of bfloat16 in packed rows of up to 128 elements, by warps.
pub static ATTENTION_PACKED_BF16_128: KernelSource = source!(
    "attention_packed_bf16_128",
    [
        "tail.cuh",
        "attention.cuh",
        "tensor_cores.cuh",
        "fetch.cuh",
        "attention_packed.cuh",
        "attention_warps.cuh",
        "attention_packed.cu"
    ],
    "ATTENTION(bf16, 128)"
);
/// Attention of bfloat16 in packed rows of up to 64 elements, by groups of warps.
pub static ATTENTION_GROUPS_BF16_64: KernelSource = source!(
    Some(90),
    "attention_groups_bf16_64",
    [
        "tail.cuh",
        "attention.cuh",
        "tensor_cores.cuh",
        "fetch.cuh",
        "attention_packed.cuh",
        "attention_warpgroups.cuh",
        "attention_packed.cu"
    ],
    "ATTENTION(bf16, 64)"
);
/// Batch normalisation.
pub static BATCH_NORM: KernelSource = source!("batch_norm");
/// Arithmetic on two operands.
pub static BINARY: KernelSource = source!("binary");
/// Convolutions.
pub static CONV: KernelSource = source!("conv", ["halves.cuh", "conv.cuh", "conv.cu"]);
/// Convolutions with few channels a group.
pub static CONV_DEPTHWISE: KernelSource =
    source!("conv_depthwise", ["halves.cuh", "conv.cuh", "block.cuh", "conv_depthwise.cu"]);
/// Copies and conversions.
pub static COPY: KernelSource = source!("copy");
/// The likelihood of target classes.
pub static CROSS_ENTROPY: KernelSource = source!(
    "cross_entropy",
    [
        "halves.cuh",
        "block.cuh",
        "exponential.cuh",
        "fetch.cuh",
        "lines.cuh",
        "moments.cuh",
        "ahead.cuh",
        "cross_entropy.cu"
    ]
);
/// New elements.
pub static FILL: KernelSource = source!("fill");
/// Group normalisation.
pub static GROUP_NORM: KernelSource =
    source!("group_norm", ["halves.cuh", "block.cuh", "group_norm.cu"]);
/// Cross entropy of a linear map's results.
pub static LINEAR_CROSS_ENTROPY: KernelSource =
    source!("linear_cross_entropy", ["block.cuh", "exponential.cuh", "linear_cross_entropy.cu"]);
/// Distances of rows.
pub static DISTANCE: KernelSource = source!("distance");
/// Connectionist temporal classification.
pub static CTC: KernelSource = source!("ctc");
/// Pooling of contiguous planes by the largest.
pub static POOL_PLANES: KernelSource = source!("pool_planes", ["halves.cuh", "pool_planes.cu"]);
/// Reading where indices say.
pub static INDEX: KernelSource = source!("index");
/// The cells of recurrent layers.
pub static RECURRENT: KernelSource = source!("recurrent");
/// Layer normalisation.
pub static LAYER_NORM: KernelSource =
    source!("layer_norm", ["block.cuh", "fetch.cuh", "lines.cuh", "ahead.cuh", "layer_norm.cu"]);
/// Losses of elements and targets.
pub static LOSS: KernelSource = source!("loss");
/// Norms of many tensors.
pub static NORMS: KernelSource = source!("norms", ["block.cuh", "table.cuh", "norms.cu"]);
/// Where a tensor is not zero.
pub static NONZERO: KernelSource = source!("nonzero");
/// Choosing by a condition.
pub static SELECT: KernelSource = source!("select");
/// Steps of optimizers.
pub static OPTIM: KernelSource = source!("optim", ["table.cuh", "optim.cu"]);
/// Scaled gradients.
pub static UNSCALE: KernelSource = source!("unscale", ["table.cuh", "unscale.cu"]);
/// Dimensions moved about, and triangles.
pub static REARRANGE: KernelSource = source!("rearrange");
/// Pooling, and windows as columns.
pub static POOL: KernelSource = source!("pool");
/// Softmax and its derivatives.
pub static SOFTMAX: KernelSource =
    source!("softmax", ["block.cuh", "exponential.cuh", "lines.cuh", "moments.cuh", "softmax.cu"]);
/// Elementwise kernels of one input.
pub static UNARY: KernelSource = source!("unary", ["exponential.cuh", "unary.cu"]);
/// Activations and their derivatives.
pub static ACTIVATION: KernelSource = source!("activation", ["tail.cuh", "activation.cu"]);
/// The rarer arithmetic on two operands.
pub static ARITHMETIC: KernelSource = source!("arithmetic", ["tail.cuh", "arithmetic.cu"]);
/// Operands as bits and truths.
pub static BITWISE: KernelSource = source!("bitwise", ["tail.cuh", "bitwise.cu"]);
/// Comparisons.
pub static COMPARE: KernelSource = source!("compare", ["tail.cuh", "compare.cu"]);
/// Functions of one input of the long tail.
pub static FUNCTIONS: KernelSource = source!("functions", ["tail.cuh", "functions.cu"]);
/// Random numbers.
pub static RANDOM: KernelSource = source!("random", ["tail.cuh", "random.cu"]);
/// Reductions.
pub static REDUCE: KernelSource = source!("reduce", ["tail.cuh", "reduce.cu"]);
/// Scans along a dimension.
pub static SCAN: KernelSource = source!("scan", ["tail.cuh", "scan.cu"]);
/// Searches in sorted sequences, and histograms.
pub static SEARCH: KernelSource = source!("search", ["tail.cuh", "search.cu"]);
/// Bags of rows of a table.
pub static EMBEDDING_BAG: KernelSource =
    source!("embedding_bag", ["tail.cuh", "key.cuh", "sorted.cuh", "embedding_bag.cu"]);
/// Writing where indices say.
pub static SCATTER: KernelSource =
    source!("scatter", ["tail.cuh", "key.cuh", "sorted.cuh", "scatter.cu"]);
/// Special functions.
pub static SPECIAL: KernelSource = source!("special", ["tail.cuh", "special.cu"]);
/// Attention.
pub static ATTENTION: KernelSource =
    source!("attention", ["tail.cuh", "attention.cuh", "attention.cu"]);
/// Products of integer matrices.
pub static MATMUL: KernelSource = source!("matmul", ["tail.cuh", "matmul.cu"]);
/// Resampling of spatial dimensions.
pub static INTERPOLATE: KernelSource = source!("interpolate", ["tail.cuh", "interpolate.cu"]);
/// Sampling at the places of a grid.
pub static GRID: KernelSource = source!("grid", ["tail.cuh", "grid.cu"]);
/// Functions of three operands.
pub static TERNARY: KernelSource = source!("ternary", ["tail.cuh", "ternary.cu"]);
/// Runs of equal elements, and the order of rows.
pub static RUNS: KernelSource = source!("runs", ["tail.cuh", "key.cuh", "runs.cu"]);
/// Sorting.
pub static SORT: KernelSource = source!("sort", ["tail.cuh", "key.cuh", "sort.cu"]);
/// The greatest few.
pub static TOPK: KernelSource = source!("topk", ["tail.cuh", "key.cuh", "topk.cu"]);

/// Every source, for those who compile them all.
pub static ALL: &[&KernelSource] = &[
    &ACTIVATION,
    &ARITHMETIC,
    &ATTENTION,
    &ATTENTION_BF16_128,
    &ATTENTION_BF16_64,
    &ATTENTION_F16_128,
    &ATTENTION_F16_64,
    &ATTENTION_GROUPS_BF16_64,
    &ATTENTION_GROUPS_F16_64,
    &ATTENTION_PACKED_BF16_128,
    &ATTENTION_PACKED_BF16_64,
    &ATTENTION_PACKED_F16_128,
    &ATTENTION_PACKED_F16_64,
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
    &NORMS,
    &OPTIM,
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
    &UNSCALE,
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

    /// Or it would run beside the work that it follows: see Note [Launches that overlap].
    #[test]
    fn every_kernel_waits_for_its_turn_first() {
        for source in ALL {
            let prelude = include_str!("../kernels/prelude.cuh");
            let own = source.text.strip_prefix(prelude).expect("every source has the prelude");
            // What a kernel's head is written with, in files that have a word of their own for it.
            let heads = ["\nRANDOM(", "KERNEL(", "KERNEL_OF(", "KERNEL_BY("];
            let mut kernels = 0;
            for head in heads {
                for (at, _) in own.match_indices(head) {
                    let rest = &own[at..];
                    let shown: String = rest.chars().take(80).collect();
                    let Some(body) = body_of(rest) else {
                        // The definition of such a word has no body.
                        let before = own[..at].lines().rev().take(2);
                        let defines = before.filter(|line| line.starts_with("#define RANDOM("));
                        assert!(defines.count() == 1, "{}.cu: no body of {shown}", source.name);
                        continue;
                    };
                    let first = body.trim_start_matches([' ', '\\', '\n']);
                    assert!(first.starts_with("in_turn();"), "{}.cu: {shown}", source.name);
                    kernels += 1;
                }
            }
            assert!(
                kernels > 0 && own.matches("in_turn();").count() == kernels,
                "{}.cu",
                source.name
            );
        }
    }

    /// What follows the brace after a kernel's head, if there is one before the next word.
    fn body_of(head: &str) -> Option<&str> {
        let mut depth = 0;
        for (at, character) in head.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                '{' if depth == 0 => return Some(&head[at + 1..]),
                // The words of the head itself stand before its first parenthesis.
                _ if depth > 0 || !head[..at].contains('(') => {}
                ' ' | '\\' | '\n' => {}
                _ => return None,
            }
        }
        None
    }
}
