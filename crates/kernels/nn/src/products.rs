//! Matrix products as parts of larger kernels, with workspace from theirs.

use plimsoll_core::{DType, Error, Result};

use plimsoll_engine::CpuLaunch;
use plimsoll_engine::real::Real;
use plimsoll_kernels_matmul::gemm::{self, Gemm, GemmShape, Strides};

/// The geometry of one product of `[m, n, k]`; strides of A, B and C.
pub(crate) fn shape(
    dtype: DType,
    [m, n, k]: [usize; 3],
    strides: [Strides; 3],
) -> GemmShape<'static> {
    let [a, b, c] = strides;
    GemmShape { dtype, batch: &[], m, n, k, a, b, c }
}

/// `c = a b + beta c`, in parallel.
///
/// # Safety
/// The matrices must be as large as the shape says, C apart from the others, and the workspace what
/// [`gemm::workspace_bytes`] says.
pub(crate) unsafe fn product<R: Real>(
    shape: GemmShape<'_>,
    a: *const R,
    b: *const R,
    c: *mut R,
    beta: f64,
    workspace: *mut u8,
) {
    if shape.m == 0 || shape.n == 0 {
        return;
    }
    if shape.k == 0 {
        for row in 0..shape.m as isize {
            for column in 0..shape.n as isize {
                // SAFETY: an element of C.
                let element =
                    unsafe { &mut *c.offset(row * shape.c.row + column * shape.c.column) };
                *element = if beta == 0.0 { R::ZERO } else { *element * R::of(beta) };
            }
        }
        return;
    }
    let problem = Gemm { shape, a: a.cast(), b: b.cast(), c: c.cast(), alpha: 1.0, beta };
    // SAFETY: the caller vouches for the matrices and the workspace.
    unsafe { gemm::gemm(&problem, workspace) }
}

/// A product of nothing needs no workspace, and is not planned.
pub(crate) fn product_bytes(shape: &GemmShape<'_>) -> usize {
    if shape.m * shape.n * shape.k == 0 { 0 } else { gemm::workspace_bytes(shape) }
}

/// Refuses a workspace that is too small.
pub(crate) fn check_workspace(launch: &CpuLaunch<'_>, bytes: usize) -> Result<()> {
    if launch.workspace.bytes() >= bytes {
        return Ok(());
    }
    Err(Error::invalid_argument("the kernel needs a larger workspace")
        .in_operation(launch.operation))
}
