//! The derivative of views that show a part of their input: zeros, with the gradient added where
//! the view looks.

use plimsoll_core::{Layout, Result, Scalar};

use crate::{copy, fill};
use plimsoll_engine::{CpuLaunch, Meta, Operand};
use plimsoll_engine::{Element, match_dtype};

/// Inputs `[grad]`; output contiguous. `view` lies within the output and has the gradient's shape.
pub fn unview(launch: &CpuLaunch<'_>, view: Layout) -> Result<()> {
    fill::fill(launch, Scalar::Int(0))?;
    let output = &launch.outputs[0];
    let meta = Meta { layout: view, dtype: output.dtype() };
    if meta.layout.may_overlap_itself() {
        match_dtype!(output.dtype(), T => add_each::<T>(&launch.inputs[0], output.first::<T>(), &meta.layout));
        return Ok(());
    }
    // The output starts at its storage's start, so its first byte is where the view's offset counts
    // from.
    // SAFETY: the output is claimed for writing, and the view lies within it.
    let part = unsafe { Operand::new(output.first_byte(), &meta) };
    copy::copy(&CpuLaunch { outputs: &[part], ..*launch })
}

/// Adds element by element in row-major order; several may fall on one place.
fn add_each<T: Element>(grad: &Operand<'_>, storage: *mut T, view: &Layout) {
    let source = grad.first::<T>();
    let mut index = plimsoll_core::Dims::from_elem(0, view.rank());
    for _ in 0..view.numel() {
        let (mut from, mut to) = (0, view.offset());
        for (dim, &at) in index.iter().enumerate() {
            from += at * grad.layout().strides()[dim];
            to += at * view.strides()[dim];
        }
        // SAFETY: `from` is an element of the gradient, which has the view's shape, and `to` one of
        // the view, which lies within the output; the launch claims both.
        unsafe {
            let target = storage.add(to);
            let sum = (*target).to_f64() + (*source.add(from)).to_f64();
            *target = T::from_f64(sum);
        }
        for dim in (0..view.rank()).rev() {
            index[dim] += 1;
            if index[dim] < view.shape()[dim] {
                break;
            }
            index[dim] = 0;
        }
    }
}
