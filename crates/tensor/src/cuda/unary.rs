//! Elementwise kernels of one input, and fused derivatives.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, source_files};

use super::strided::Strided;
use super::{CudaLaunch, address, type_name, whole};

/// Kernel `name` over [x].
pub(crate) fn unary(launch: &CudaLaunch<'_>, name: &'static str) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    launch.check_dtypes(out.dtype(), &[x])?;
    let strided = Strided::broadcast(&[out, x])?;
    let arguments = [
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(i32::from(strided.is_dense())),
        address(x),
        address(out),
    ];
    let grid = launch.elementwise_grid(n, out.dtype().size_bytes(), strided.is_dense());
    let kernel = (name, type_name(out.dtype()));
    launch.run(&source_files::UNARY, kernel, grid, &arguments)
}

/// Kernel `name` over [grad, saved].
pub(crate) fn unary_backward(launch: &CudaLaunch<'_>, name: &'static str) -> Result<()> {
    let (grad, saved, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    launch.check_dtypes(out.dtype(), &[grad, saved])?;
    let strided = Strided::broadcast(&[out, grad, saved])?;
    let arguments = [
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(i32::from(strided.is_dense())),
        address(grad),
        address(saved),
        address(out),
    ];
    let kernel = (name, type_name(out.dtype()));
    let grid = launch.once_grid(n, 16 / out.dtype().size_bytes(), strided.is_dense());
    launch.run(&source_files::UNARY, kernel, grid, &arguments)
}

/// Kernel `name` over [grad, x] -> [the gradient of x, the value].
pub(crate) fn gelu_both(launch: &CudaLaunch<'_>, name: &'static str) -> Result<()> {
    let (grad, x) = (&launch.inputs[0], &launch.inputs[1]);
    let (slope, value) = (&launch.outputs[0], &launch.outputs[1]);
    let n = slope.layout().numel();
    if n == 0 {
        return Ok(());
    }
    launch.check_dtypes(slope.dtype(), &[grad, x, value])?;
    let strided = Strided::broadcast(&[slope, value, grad, x])?;
    let arguments = [
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(i32::from(strided.is_dense())),
        address(grad),
        address(x),
        address(slope),
        address(value),
    ];
    let kernel = (name, type_name(slope.dtype()));
    let grid = launch.once_grid(n, 16 / slope.dtype().size_bytes(), strided.is_dense());
    launch.run(&source_files::UNARY, kernel, grid, &arguments)
}
