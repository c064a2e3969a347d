//! The derivative of views that show a part of their input: zeros, with the gradient where the view
//! looks.

use plimsoll_core::{Layout, Result, Scalar};
use plimsoll_kernels::{Meta, Operand};

use super::CudaLaunch;

/// Inputs [grad]; output contiguous. `view` lies within the output and has the gradient's shape.
pub(crate) fn unview(launch: &CudaLaunch<'_>, view: Layout) -> Result<()> {
    let output = &launch.outputs[0];
    let meta = Meta { layout: view, dtype: output.dtype() };
    if meta.layout.may_overlap_itself() {
        return Err(launch.unsupported("the gradient of a view whose elements overlap"));
    }
    super::fill(launch, Scalar::Int(0))?;
    // SAFETY: the output is claimed for writing and starts where the view's offset counts from; the
    // view lies within it.
    let part = unsafe { Operand::new(output.first_byte(), &meta) };
    super::copy(launch, &launch.inputs[0], &part)
}
