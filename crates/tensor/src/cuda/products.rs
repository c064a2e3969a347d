//! Matrix products as parts of larger operations, with a workspace from theirs.

use plimsoll_core::{DType, Layout, Result};
use plimsoll_cuda::Properties;
use plimsoll_kernels::{Meta, Operand, Workspace};

use super::CudaLaunch;
use super::matmul::{Scale, scaled, workspace_bytes};

/// A matrix somewhere in a launch's operands or its workspace.
pub(super) struct Matrix {
    address: usize,
    meta: Meta,
}

impl Matrix {
    /// `[rows, columns]` with `[row, column]` steps.
    pub(super) fn new(
        address: usize,
        dtype: DType,
        sizes: [usize; 2],
        steps: [usize; 2],
    ) -> Result<Matrix> {
        Ok(Matrix { address, meta: Meta { layout: Layout::strided(&sizes, &steps, 0)?, dtype } })
    }

    /// Rows of `columns` elements one after another.
    pub(super) fn rows(address: usize, dtype: DType, sizes: [usize; 2]) -> Result<Matrix> {
        Matrix::new(address, dtype, sizes, [sizes[1], 1])
    }

    /// The transpose of rows of `sizes[0]` elements one after another.
    pub(super) fn turned(address: usize, dtype: DType, sizes: [usize; 2]) -> Result<Matrix> {
        Matrix::new(address, dtype, sizes, [1, sizes[0]])
    }
}

/// Bytes of workspace of a product.
pub(super) fn product_bytes(gpu: &Properties, [a, b, c]: [&Matrix; 3]) -> usize {
    workspace_bytes(gpu, &a.meta, &b.meta, &c.meta)
}

/// `c = a b + beta c`, with the workspace that [`product_bytes`] says.
///
/// # Safety
/// The matrices must lie in this launch's operands or workspace, `c` apart from the others, and the
/// workspace be used by nobody else meanwhile.
pub(super) unsafe fn product(
    launch: &CudaLaunch<'_>,
    [a, b, c]: [&Matrix; 3],
    beta: f64,
    workspace: Workspace,
) -> Result<()> {
    // SAFETY: the caller vouches for the matrices.
    let [a, b, c] = [a, b, c].map(|of| unsafe { Operand::new(of.address as *mut u8, &of.meta) });
    let outputs = [c];
    let launch = CudaLaunch { inputs: &[], outputs: &outputs, workspace, ..*launch };
    scaled(&launch, [&a, &b], Scale { alpha: 1.0, beta, input: (beta != 0.0).then_some(&c) })
}
