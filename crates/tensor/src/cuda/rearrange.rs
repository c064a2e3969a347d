//! Whole dimensions moved about, and triangles of matrices.

use plimsoll_core::{Error, Result, Scalar};
use plimsoll_cuda::{Argument, Words, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::rearrange::Along;
use plimsoll_kernels::cpu::triangle::Triangle;
use smallvec::smallvec;

use super::{CudaLaunch, address, copy, type_name, whole};

/// The most dimensions that the kernels take.
const RANK: usize = 8;

/// Dimensions by their strides in what is written, the innermost first: neighbouring threads write
/// neighbouring elements.
fn by_strides(written: &Operand<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..written.shape().len()).rev().collect();
    order.sort_by_key(|&dim| written.layout().strides()[dim]);
    order
}

/// Mirrors `Ways` in `rearrange.cu`: for each dimension in `order`, how it is read, by what number,
/// and the sizes and strides of both sides. `wide` has the shape that was read into, `own` the one
/// that was read from.
fn ways(
    operation: &'static str,
    along: &[Along],
    order: &[usize],
    wide: &Operand<'_>,
    own: &Operand<'_>,
) -> Result<Argument> {
    if along.len() > RANK {
        return Err(Error::unsupported(
            operation,
            format!("CUDA kernels take {RANK} dimensions, and this has {}", along.len()),
        ));
    }
    let mut words: Words = smallvec![0u64; 1 + 6 * RANK];
    words[0] = along.len() as u64;
    for (dim, &from) in order.iter().enumerate() {
        let (kind, number) = match along[from] {
            Along::Pad(before) => (0, before),
            Along::Flip => (1, 0),
            Along::Wrap(before) => (2, before),
            Along::Each(times) => (3, times as i64),
            Along::Reflect(before) => (4, before),
            Along::Clamp(before) => (5, before),
        };
        let values = [
            kind,
            number as u64,
            wide.shape()[from] as u64,
            own.shape()[from] as u64,
            wide.layout().strides()[from] as u64,
            own.layout().strides()[from] as u64,
        ];
        for (field, value) in values.into_iter().enumerate() {
            words[1 + field * RANK + dim] = value;
        }
    }
    Ok(Argument::Words(words))
}

/// The input with every dimension read as `along` says.
pub(crate) fn rearrange(launch: &CudaLaunch<'_>, along: &[Along], value: Scalar) -> Result<()> {
    let (input, out) = (&launch.inputs[0], &launch.outputs[0]);
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let arguments = [
        whole(n),
        ways(launch.operation, along, &by_strides(out), out, input)?,
        address(input),
        address(out),
        Argument::F64(value.to_f64()),
        Argument::U64(value.to_i64() as u64),
        Argument::I32(i32::from(matches!(value, Scalar::Float(_)))),
    ];
    let kernel = ("rearrange", type_name(out.dtype()));
    launch.run(&source_files::REARRANGE, kernel, launch.grid(n, 4), &arguments)
}

/// For each element of the output, the sum of the gradient over the places where it stood.
pub(crate) fn unrearrange(launch: &CudaLaunch<'_>, along: &[Along]) -> Result<()> {
    let (grad, out) = (&launch.inputs[0], &launch.outputs[0]);
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    if !out.dtype().is_float() {
        return Err(launch.unsupported(format!("a gradient of {}", out.dtype())));
    }
    let arguments = [
        whole(n),
        ways(launch.operation, along, &by_strides(out), grad, out)?,
        address(grad),
        address(out),
    ];
    let kernel = ("unrearrange", type_name(out.dtype()));
    launch.run(&source_files::REARRANGE, kernel, launch.grid(n, 1), &arguments)
}

/// Matrices with zeros on one side of a diagonal.
pub(crate) fn triangle(launch: &CudaLaunch<'_>, side: Triangle, diagonal: i64) -> Result<()> {
    let (input, out) = (&launch.inputs[0], &launch.outputs[0]);
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let same = out.first_byte() == input.first_byte() && out.layout() == input.layout();
    if !same {
        copy::copy(launch, input, out)?;
    }
    let plain = vec![Along::Pad(0); out.shape().len()];
    let rows: Vec<usize> = (0..plain.len()).rev().collect();
    let arguments = [
        whole(n),
        ways(launch.operation, &plain, &rows, out, out)?,
        address(out),
        Argument::U64(diagonal as u64),
        Argument::I32(i32::from(side == Triangle::Lower)),
    ];
    let kernel = ("triangle", out.dtype().size_bytes());
    launch.run(&source_files::REARRANGE, kernel, launch.grid(n, 4), &arguments)
}
