//! Choosing between two operands by a third.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, source_files};
use plimsoll_kernels::Operand;

use super::strided::Strided;
use super::{CudaLaunch, address, whole};

/// The output is `a` where the condition (bool) holds, else `b`.
pub(crate) fn where_(launch: &CudaLaunch<'_>, [condition, a, b]: [&Operand<'_>; 3]) -> Result<()> {
    let out = &launch.outputs[0];
    launch.check_dtypes(DType::Bool, &[condition])?;
    launch.check_dtypes(out.dtype(), &[a, b])?;
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let strided = Strided::broadcast(&[out, condition, a, b])?;
    let step = |operand: usize| strided.strides(operand).first().copied().unwrap_or(0);
    // One run, or one element for all.
    let flat = strided.sizes().len() == 1
        && step(0) == 1
        && step(1) == 1
        && [2, 3].iter().all(|&operand| step(operand) <= 1);
    let bytes = out.dtype().size_bytes();
    let arguments = [
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(i32::from(flat)),
        address(condition),
        address(a),
        whole(step(2)),
        address(b),
        whole(step(3)),
        address(out),
    ];
    let grid = launch.elementwise_grid(n, bytes, flat);
    launch.run(&source_files::SELECT, ("where", bytes), grid, &arguments)
}
