//! Matrix products by cuBLASLt, with a workspace from the arena.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{BlasType, Matmul};
use plimsoll_kernels::Operand;

use super::CudaLaunch;

/// What NVIDIA advises for Hopper; taken for every product, so that a dry run knows it.
pub(crate) const WORKSPACE_BYTES: usize = 32 << 20;

/// Inputs [a, b] of shapes [..., m, k] and [..., k, n], the output contiguous.
pub(crate) fn matmul(launch: &CudaLaunch<'_>) -> Result<()> {
    let (a, b, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let dtype = match out.dtype() {
        DType::F32 => BlasType::F32,
        DType::F64 => BlasType::F64,
        DType::F16 => BlasType::F16,
        DType::BF16 => BlasType::BF16,
        other => return Err(launch.unsupported(format!("a matrix product of {other}"))),
    };
    let rank = out.shape().len();
    let (m, n, k) = (out.shape()[rank - 2], out.shape()[rank - 1], a.shape()[a.shape().len() - 1]);
    if out.layout().numel() == 0 {
        return Ok(());
    }
    if k == 0 {
        return super::fill(launch, plimsoll_core::Scalar::Int(0));
    }
    let batch = out.layout().numel() / (m * n);
    let (a_side, b_side) = (Side::of(launch, a, out, m, k)?, Side::of(launch, b, out, k, n)?);
    let matmul = Matmul {
        dtype,
        m,
        n,
        k,
        batch,
        a_stride: a_side.stride,
        a_transposed: a_side.transposed,
        a_batch: a_side.batch,
        b_stride: b_side.stride,
        b_transposed: b_side.transposed,
        b_batch: b_side.batch,
    };
    let address = |operand: &Operand<'_>| operand.first_byte().addr();
    // SAFETY: the operands are this launch's, laid out as `matmul` says, and the workspace has the size that was asked for.
    unsafe {
        launch.context.matmul(
            launch.stream,
            &matmul,
            address(a),
            address(b),
            address(out),
            launch.workspace.pointer.addr(),
            launch.workspace.bytes,
        )
    }
    .map_err(|e| e.in_operation(launch.operation))
}

/// How one factor lies.
struct Side {
    stride: usize,
    transposed: bool,
    batch: usize,
}

impl Side {
    fn of(
        launch: &CudaLaunch<'_>,
        operand: &Operand<'_>,
        out: &Operand<'_>,
        rows: usize,
        columns: usize,
    ) -> Result<Side> {
        let rank = out.shape().len();
        let mut shape = out.shape().to_vec();
        (shape[rank - 2], shape[rank - 1]) = (rows, columns);
        let layout = operand.layout().broadcast_to(&shape)?;
        let (row, column) = (layout.strides()[rank - 2], layout.strides()[rank - 1]);
        let (stride, transposed) = if (column == 1 || columns == 1) && (rows == 1 || row >= columns)
        {
            (row.max(columns), false)
        } else if (row == 1 || rows == 1) && (columns == 1 || column >= rows) {
            (column.max(rows), true)
        } else {
            return Err(
                launch.unsupported("a matrix product of factors with steps in both dimensions")
            );
        };
        let batch =
            even_step(&shape[..rank - 2], &layout.strides()[..rank - 2]).ok_or_else(|| {
                launch.unsupported("a matrix product over batches that do not lie evenly")
            })?;
        Ok(Side { stride, transposed, batch })
    }
}

/// The one step between neighbours of all batch dimensions taken together; 0 where there is one matrix.
fn even_step(sizes: &[usize], strides: &[usize]) -> Option<usize> {
    let mut step = None;
    let mut expected = 0;
    for (&size, &stride) in sizes.iter().zip(strides).rev().filter(|(size, _)| **size != 1) {
        match step {
            None => step = Some(stride),
            Some(_) if stride == expected => {}
            Some(_) => return None,
        }
        expected = stride * size;
    }
    Some(step.unwrap_or(0))
}
