//! Arithmetic on two operands, of which one may be a host number.

use plimsoll_core::{Result, Scalar};
use plimsoll_cuda::{Argument, source_files};
use plimsoll_kernels::{Operand, Second};

use super::strided::Strided;
use super::{CudaLaunch, NOTHING, address, type_name, whole};

/// The widest load.
const PACK_BYTES: usize = 16;

/// Kernel `name` over [a, b], or over [a] and a number.
pub(crate) fn binary(
    launch: &CudaLaunch<'_>,
    name: &'static str,
    second: Second,
    alpha: Scalar,
) -> Result<()> {
    over(launch, name, launch.inputs, &launch.outputs[0], second, alpha)
}

/// `out` times a number, in place.
pub(crate) fn scale_in_place(launch: &CudaLaunch<'_>, out: &Operand<'_>, by: f64) -> Result<()> {
    let by = Second::Right(Scalar::Float(by));
    over(launch, "mul", std::slice::from_ref(out), out, by, Scalar::Int(1))
}

/// Kernel `name` over these inputs, which need not be the launch's own.
fn over(
    launch: &CudaLaunch<'_>,
    name: &'static str,
    inputs: &[Operand<'_>],
    out: &Operand<'_>,
    second: Second,
    alpha: Scalar,
) -> Result<()> {
    let a = &inputs[0];
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let (side, number) = match second {
        Second::Tensor => (0, Scalar::Int(0)),
        Second::Right(number) => (1, number),
        Second::Left(number) => (2, number),
    };
    let strided = match second {
        Second::Tensor => {
            let b = &inputs[1];
            launch.check_dtypes(out.dtype(), &[a, b])?;
            Strided::broadcast(&[out, a, b])?
        }
        _ => {
            launch.check_dtypes(out.dtype(), &[a])?;
            Strided::broadcast(&[out, a])?
        }
    };
    let lies = match side {
        _ if strided.is_dense() => 1,
        0 if strided.has_runs_of(PACK_BYTES / out.dtype().size_bytes()) => 2,
        _ => 0,
    };
    let arguments = [
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(lies),
        address(a),
        if side == 0 { address(&inputs[1]) } else { NOTHING },
        address(out),
        Argument::I32(side),
        Argument::F64(number.to_f64()),
        Argument::U64(number.to_i64() as u64),
        Argument::F64(alpha.to_f64()),
        Argument::U64(alpha.to_i64() as u64),
    ];
    let grid = launch.elementwise_grid(n, out.dtype().size_bytes(), lies == 1);
    let kernel = (name, type_name(out.dtype()));
    launch.run(&source_files::BINARY, kernel, grid, &arguments)
}
