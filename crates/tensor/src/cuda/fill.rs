//! New elements: one value, counting up, the identity.

use plimsoll_core::{Result, Scalar};
use plimsoll_cuda::{Argument, source_files};
use plimsoll_kernels::Operand;

use super::strided::Strided;
use super::{CudaLaunch, address, type_name, whole};

/// One value everywhere in the first output.
pub(crate) fn fill(launch: &CudaLaunch<'_>, value: Scalar) -> Result<()> {
    fill_operand(launch, &launch.outputs[0], value)
}

/// One value everywhere in `out`, one of the launch's outputs.
pub(super) fn fill_operand(
    launch: &CudaLaunch<'_>,
    out: &Operand<'_>,
    value: Scalar,
) -> Result<()> {
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let strided = Strided::broadcast(&[out])?;
    let arguments = [
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(i32::from(strided.is_dense())),
        address(out),
        Argument::F64(value.to_f64()),
        Argument::U64(value.to_i64() as u64),
        Argument::I32(i32::from(matches!(value, Scalar::Float(_)))),
    ];
    let kernel = ("fill", type_name(out.dtype()));
    let grid = launch.once_grid(n, 16 / out.dtype().size_bytes(), strided.is_dense());
    launch.run(&source_files::FILL, kernel, grid, &arguments)
}

/// `start`, `start + step`, ... into a contiguous output.
pub(crate) fn arange(launch: &CudaLaunch<'_>, start: Scalar, step: Scalar) -> Result<()> {
    let out = launch.contiguous_output()?;
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let real = matches!(start, Scalar::Float(_)) || matches!(step, Scalar::Float(_));
    let arguments = [
        whole(n),
        address(out),
        Argument::F64(start.to_f64()),
        Argument::F64(step.to_f64()),
        Argument::U64(start.to_i64() as u64),
        Argument::U64(step.to_i64() as u64),
        Argument::I32(i32::from(real)),
    ];
    let kernel = ("arange", type_name(out.dtype()));
    launch.run(&source_files::FILL, kernel, launch.grid(n, 4), &arguments)
}

/// The identity into a contiguous output.
pub(crate) fn eye(launch: &CudaLaunch<'_>) -> Result<()> {
    let out = launch.contiguous_output()?;
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let arguments = [whole(out.shape()[0]), whole(out.shape()[1]), address(out)];
    let kernel = ("eye", type_name(out.dtype()));
    launch.run(&source_files::FILL, kernel, launch.grid(n, 4), &arguments)
}
