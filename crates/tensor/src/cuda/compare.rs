//! Comparisons of two operands of one dtype, or of an operand and a host number.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::{Argument, source_files};
use plimsoll_kernels::{Element, match_dtype};

use super::strided::Strided;
use super::tail::{code, computed_in};
use super::{CudaLaunch, NOTHING, address, whole};

/// Inputs [x, y], or [x] and a number; output [truths]. `comparison` is its number in the kernels.
pub(crate) fn compare(
    launch: &CudaLaunch<'_>,
    comparison: i32,
    number: Option<Scalar>,
) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let y = if number.is_some() { x } else { &launch.inputs[1] };
    launch.check_dtypes(DType::Bool, &[out])?;
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let strided = Strided::broadcast(&[out, x, y])?;
    let given = number.map_or(Scalar::Int(0), |number| held(x.dtype(), number));
    let arguments = [
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(i32::from(strided.is_dense())),
        Argument::I32(comparison),
        Argument::U64(code(x.dtype()) | code(y.dtype()) << 8),
        address(x),
        if number.is_some() { NOTHING } else { address(y) },
        address(out),
        Argument::F64(given.to_f64()),
        Argument::U64(given.to_i64() as u64),
    ];
    let kernel = ("compare", computed_in(x.dtype()));
    let grid = launch.once_grid(n, 4, strided.is_dense());
    launch.run(&source_files::COMPARE, kernel, grid, &arguments)
}

/// A number as integers of `dtype` hold it: cut to their bits, as on the host. Floats compare with
/// the number as they are computed.
fn held(dtype: DType, number: Scalar) -> Scalar {
    if dtype.is_float() {
        return number;
    }
    match_dtype!(dtype, T => T::from_scalar(number).to_scalar())
}
