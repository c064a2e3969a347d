//! Losses of elements and targets, and their slopes.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::loss::Loss;
use smallvec::smallvec;

use super::strided::Strided;
use super::{Arguments, CudaLaunch, address, type_name, whole};

/// The kernel's name and the number that it takes.
fn kernel(loss: Loss) -> (&'static str, f64) {
    match loss {
        Loss::Mse => ("mse", 0.0),
        Loss::SmoothL1(beta) => ("smooth_l1", beta),
        Loss::Huber(delta) => ("huber", delta),
        Loss::BinaryCrossEntropy => ("binary_cross_entropy", 0.0),
        Loss::BinaryCrossEntropyWithLogits => ("binary_cross_entropy_with_logits", 0.0),
    }
}

/// [x, target] -> the loss of each element.
pub(crate) fn loss(launch: &CudaLaunch<'_>, loss: Loss) -> Result<()> {
    run(launch, loss, "loss", &[&launch.inputs[0], &launch.inputs[1]])
}

/// [grad, x, target] -> the gradient of x.
pub(crate) fn loss_backward(launch: &CudaLaunch<'_>, loss: Loss) -> Result<()> {
    run(launch, loss, "slope", &[&launch.inputs[1], &launch.inputs[2], &launch.inputs[0]])
}

fn run(
    launch: &CudaLaunch<'_>,
    loss: Loss,
    ending: &'static str,
    inputs: &[&Operand<'_>],
) -> Result<()> {
    let out = &launch.outputs[0];
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    launch.check_dtypes(out.dtype(), inputs)?;
    let operands: Vec<&Operand<'_>> = std::iter::once(out).chain(inputs.iter().copied()).collect();
    let strided = Strided::broadcast(&operands)?;
    let (name, number) = kernel(loss);
    let mut arguments: Arguments = smallvec![whole(n), strided.argument(launch.operation)?];
    arguments.extend(operands.iter().map(|operand| address(operand)));
    arguments.push(Argument::F64(number));
    let kernel = (name, ending, type_name(out.dtype()));
    launch.run(&source_files::LOSS, kernel, launch.grid(n, 1), &arguments)
}
