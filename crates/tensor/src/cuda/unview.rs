//! The derivative of views that show a part of their input: zeros, with the gradient where the view
//! looks. What falls on one element is added up in order, as by a scatter.

use plimsoll_core::{Layout, Result, Scalar};
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::index::Combine;
use plimsoll_kernels::{Meta, Operand};

use super::in_workspace::Space;
use super::order::Order;
use super::scatter::Sorted;
use super::strided::Strided;
use super::{CudaLaunch, whole};

/// The sort of a gradient whose view shows elements several times: keys are elements of the output.
fn order(view: &Layout, output: &Meta) -> Order {
    Order { count: view.numel(), highest: output.layout.numel() }
}

/// Workspace of [`unview`].
pub(crate) fn unview_workspace_bytes(view: &Layout, output: &Meta) -> usize {
    let sorts = view.may_overlap_itself() && view.numel() > 0;
    if sorts { order(view, output).workspace_bytes() } else { 0 }
}

/// Inputs [grad]; output contiguous. `view` lies within the output and has the gradient's shape.
pub(crate) fn unview(launch: &CudaLaunch<'_>, view: Layout) -> Result<()> {
    let output = &launch.outputs[0];
    super::fill(launch, Scalar::Int(0))?;
    if view.may_overlap_itself() {
        return add_each(launch, &view);
    }
    let meta = Meta { layout: view, dtype: output.dtype() };
    // SAFETY: the output is claimed for writing and starts where the view's offset counts from; the
    // view lies within it.
    let part = unsafe { Operand::new(output.first_byte(), &meta) };
    super::copy(launch, &launch.inputs[0], &part)
}

/// Adds the gradient's elements to zeros where `view` shows one several times.
fn add_each(launch: &CudaLaunch<'_>, view: &Layout) -> Result<()> {
    let (grad, out) = (&launch.inputs[0], launch.contiguous_output()?);
    if view.numel() == 0 {
        return Ok(());
    }
    let order = order(view, out.meta());
    let keys = order.keys_in(&mut Space::new(&launch.workspace));
    let in_order = |strides: &[usize]| {
        let dims = view.shape().iter().zip(strides);
        Strided::in_order(dims.map(|(&size, &stride)| (size, [stride])))
    };
    let arguments = [
        whole(order.count),
        in_order(view.strides()).argument(launch.operation)?,
        whole(view.offset()),
        whole(keys),
    ];
    let kernel = ("view_targets", order.key_type());
    launch.run(&source_files::SCATTER, kernel, launch.grid(order.count, 1), &arguments)?;
    let places = in_order(grad.layout().strides());
    let sorted = Sorted { order, found: order.run(launch, keys)?, places };
    sorted.combine_elements(launch, Combine::Add, grad, out)
}
