//! Joining tensors along a dimension: a copy for each.

use plimsoll_core::{Layout, Result};
use plimsoll_kernels::{Meta, Operand};

use super::{CudaLaunch, copy};

/// The inputs one after another along `dim`, converted; those without elements are skipped.
pub(crate) fn cat(launch: &CudaLaunch<'_>, dim: usize) -> Result<()> {
    let out = &launch.outputs[0];
    let mut at = 0;
    for input in launch.inputs.iter().filter(|input| input.layout().numel() > 0) {
        let strides = out.layout().strides();
        let layout = Layout::strided(input.shape(), strides, 0)?;
        let meta = Meta { layout, dtype: out.dtype() };
        let start = out.first_byte().wrapping_add(at * strides[dim] * out.dtype().size_bytes());
        // SAFETY: the part of the output from `at` on along `dim`; the shape rule made the output
        // as long there as all inputs together.
        let part = unsafe { Operand::new(start, &meta) };
        copy::copy(launch, input, &part)?;
        at += input.shape()[dim];
    }
    Ok(())
}
