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

/// Batch normalisation.
pub static BATCH_NORM: KernelSource = source!("batch_norm");
/// Arithmetic on two operands.
pub static BINARY: KernelSource = source!("binary");
/// Copies and conversions.
pub static COPY: KernelSource = source!("copy");
/// New elements.
pub static FILL: KernelSource = source!("fill");
/// Layer normalisation.
pub static LAYER_NORM: KernelSource = source!("layer_norm");
/// Losses of elements and targets.
pub static LOSS: KernelSource = source!("loss");
/// Steps of optimizers.
pub static OPTIM: KernelSource = source!("optim");
/// Reductions.
pub static REDUCE: KernelSource = source!("reduce");
/// Elementwise kernels of one input.
pub static UNARY: KernelSource = source!("unary");

/// Every source, for those who compile them all.
pub static ALL: &[&KernelSource] =
    &[&BATCH_NORM, &BINARY, &COPY, &FILL, &LAYER_NORM, &LOSS, &OPTIM, &REDUCE, &UNARY];
