//! Connectionist temporal classification, a block a sequence. Lengths are known to the host and
//! travel with the launches, so many sequences at a time.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::ctc::CtcArgs;
use smallvec::smallvec;

use super::{Arguments, CudaLaunch, contiguous, type_name, whole};

/// Sequences of a launch.
const MOST: usize = 64;

/// The structure `Part` of the kernels, for the sequences from `first` on.
fn part(args: CtcArgs<'_>, x: &Operand<'_>, first: usize, count: usize) -> Argument {
    let [steps, sequences, classes] = [0, 1, 2].map(|dim| x.shape()[dim]);
    let mut words = vec![first, count, sequences, steps, classes, args.states(), args.blank];
    words.push(usize::from(args.zero_infinity));
    for lengths in [args.input_lengths, args.target_lengths, args.target_starts] {
        let end = words.len() + MOST;
        words.extend(&lengths[first..first + count]);
        words.resize(end, 0);
    }
    Argument::Words(words.into_iter().map(|word| word as u64).collect())
}

/// Runs `kernel` over all sequences of `x`, with `operands` after the part.
fn run(
    launch: &CudaLaunch<'_>,
    kernel: &'static str,
    args: CtcArgs<'_>,
    x: &Operand<'_>,
    operands: &[Argument],
) -> Result<()> {
    let kernel = match x.dtype() {
        DType::F32 | DType::F64 => (kernel, type_name(x.dtype())),
        other => return Err(launch.unsupported(other)),
    };
    let sequences = args.input_lengths.len();
    let threads = if args.states() > 128 { 256 } else { 128 };
    for first in (0..sequences).step_by(MOST) {
        let count = MOST.min(sequences - first);
        let mut arguments: Arguments = smallvec![part(args, x, first, count)];
        arguments.extend(operands.iter().cloned());
        let grid = Grid { blocks: (count as u32, 1, 1), threads, shared_bytes: 0 };
        launch.run(&source_files::CTC, kernel, grid, &arguments)?;
    }
    Ok(())
}

/// Inputs [log-probabilities (steps, sequences, classes), labels]; outputs [loss of each sequence,
/// logarithms of the forward sums (sequences, steps, states)].
pub(crate) fn ctc_loss(launch: &CudaLaunch<'_>, args: CtcArgs<'_>) -> Result<()> {
    let (x, labels) = (&launch.inputs[0], &launch.inputs[1]);
    let operands = [
        contiguous(launch, x)?,
        contiguous(launch, labels)?,
        contiguous(launch, &launch.outputs[0])?,
        contiguous(launch, &launch.outputs[1])?,
        launch.fault(),
    ];
    run(launch, "ctc_loss", args, x, &operands)
}

/// Inputs [grad, log-probabilities, labels, losses, forward sums]; output the gradient.
pub(crate) fn ctc_loss_backward(launch: &CudaLaunch<'_>, args: CtcArgs<'_>) -> Result<()> {
    let mut operands = Vec::with_capacity(7);
    for input in launch.inputs {
        operands.push(contiguous(launch, input)?);
    }
    operands.push(whole(launch.workspace.pointer().addr()));
    operands.push(contiguous(launch, &launch.outputs[0])?);
    if launch.outputs[0].layout().numel() == 0 {
        return Ok(());
    }
    run(launch, "ctc_loss_backward", args, &launch.inputs[1], &operands)
}
