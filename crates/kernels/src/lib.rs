//! CPU kernels: the loops that touch bytes. This crate only gathers the families, which are crates
//! of their own, so that a change compiles one of them anew: compiling every operation for every
//! dtype and instruction set takes minutes. What they are made of is `plimsoll-engine`.

pub use plimsoll_engine::{
    CpuLaunch, Element, Meta, Operand, Second, Truth, Workspace, chunked::Argument, match_dtype,
    parallel,
};

/// The kernels by family, as functions on a [`CpuLaunch`].
pub mod cpu {
    pub use plimsoll_engine::simd;
    pub use plimsoll_kernels_conv::{conv, pool, unfold, volume};
    pub use plimsoll_kernels_copy::{copy, fill, join, random, rearrange, triangle, unview};
    pub use plimsoll_kernels_elementwise::{
        activation, arithmetic, binary, bitwise, call, compare, divide, optim, pow, rounding,
        select, special, ternary, unary,
    };
    pub use plimsoll_kernels_index::{index, search, sort};
    pub use plimsoll_kernels_linalg::{cholesky, eigen, lu, qr, svd, triangular};
    pub use plimsoll_kernels_matmul::{gemm, matmul};
    pub use plimsoll_kernels_nn::{
        attention, cross_entropy, ctc, distance, embedding, embedding_bag, grid, group_norm,
        interpolate, linear_cross_entropy, loss, nll, recurrent,
    };
    pub use plimsoll_kernels_reduce::{batch_norm, layer_norm, logsumexp, reduce, scan, softmax};
}
