//! Batch normalisation of any layout: a block to a part of a channel, whose sums another kernel
//! joins.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, Words, source_files};
use plimsoll_kernels::cpu::batch_norm::{BatchNormArgs, BatchNormBackwardArgs, BatchNormGrads};
use plimsoll_kernels::{Meta, Operand};
use smallvec::smallvec;

use super::in_workspace::Space;
use super::strided::Strided;
use super::{Arguments, CudaLaunch, THREADS, address, type_name, whole};

/// Elements that one block goes over before another one helps.
const PART: usize = 1 << 14;

/// Parts together with channels: more blocks than a GPU runs at once.
const MOST_PARTS: usize = 1024;

/// The workspace begins with what is done to each channel: up to four doubles.
const CHANNEL_BYTES: usize = 4 * size_of::<f64>();

/// Sums of a part: up to three doubles.
const PART_BYTES: usize = 3 * size_of::<f64>();

/// Into how many parts each channel of `count` elements is cut.
fn parts(channels: usize, count: usize) -> usize {
    count.div_ceil(PART).min(MOST_PARTS.div_ceil(channels.max(1))).max(1)
}

fn sizes(x: &Meta) -> (usize, usize) {
    let channels = x.shape().get(1).copied().unwrap_or(0);
    (channels, x.layout.numel().checked_div(channels).unwrap_or(0))
}

/// Bytes of what is done to each channel and of the parts' sums.
pub(crate) fn batch_norm_workspace_bytes(x: &Meta) -> usize {
    let (channels, count) = sizes(x);
    channels * (CHANNEL_BYTES + parts(channels, count) * PART_BYTES)
}

/// What all kernels over a tensor share.
struct Work {
    channels: usize,
    count: usize,
    parts: usize,
    jobs: Argument,
    inner: Argument,
    grid: Grid,
    /// Addresses in the workspace.
    of_channels: Argument,
    of_parts: Argument,
}

impl Work {
    fn new<const N: usize>(launch: &CudaLaunch<'_>, operands: [&Operand<'_>; N]) -> Result<Work> {
        launch.check_dtypes(operands[0].dtype(), &operands)?;
        let (channels, count) = sizes(operands[0].meta());
        let parts = parts(channels, count);
        let strides =
            |dim: usize| -> [usize; N] { operands.map(|operand| operand.layout().strides()[dim]) };
        let shape = operands[0].shape();
        let dims = (0..shape.len()).filter(|&dim| dim != 1);
        let inner = Strided::in_order(dims.map(|dim| (shape[dim], strides(dim))));
        let mut jobs: Words = smallvec![channels as u64, parts as u64, count as u64, 0, 0, 0];
        for (word, stride) in jobs[3..].iter_mut().zip(strides(1)) {
            *word = stride as u64;
        }
        let threads = if count >= 2048 { 512 } else { 128 };
        let blocks = ((channels * parts).clamp(1, 1 << 20) as u32, 1, 1);
        let mut space = Space::new(&launch.workspace);
        let of_channels = whole(space.take(channels * CHANNEL_BYTES));
        Ok(Work {
            channels,
            count,
            parts,
            jobs: Argument::Words(jobs),
            inner: inner.argument(launch.operation)?,
            grid: Grid { blocks, threads, shared_bytes: 0 },
            of_channels,
            of_parts: whole(space.take(channels * parts * PART_BYTES)),
        })
    }

    /// A kernel over the elements of channels.
    fn over_elements(
        &self,
        launch: &CudaLaunch<'_>,
        kernel: &'static str,
        dtype: DType,
        rest: impl IntoIterator<Item = Argument>,
    ) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let arguments: Arguments =
            [self.jobs.clone(), self.inner.clone()].into_iter().chain(rest).collect();
        let name = (kernel, type_name(dtype));
        launch.run(&source_files::BATCH_NORM, name, self.grid, &arguments)
    }

    /// A kernel with a thread a channel.
    fn over_channels(
        &self,
        launch: &CudaLaunch<'_>,
        kernel: &'static str,
        rest: impl IntoIterator<Item = Argument>,
    ) -> Result<()> {
        let arguments: Arguments = std::iter::once(whole(self.channels)).chain(rest).collect();
        let blocks = (self.channels.div_ceil(THREADS as usize) as u32, 1, 1);
        let grid = Grid { blocks, threads: THREADS, shared_bytes: 0 };
        launch.run(&source_files::BATCH_NORM, kernel, grid, &arguments)
    }
}

/// A tensor with an element a channel: mirrors `Parameter` in the kernels.
fn parameter(operand: Option<&Operand<'_>>) -> Argument {
    let Some(operand) = operand else { return Argument::Words(smallvec![0; 3]) };
    let kind = match operand.dtype() {
        DType::F16 => 0,
        DType::BF16 => 1,
        DType::F32 => 2,
        _ => 3,
    };
    let stride = operand.layout().strides().first().copied().unwrap_or(0);
    Argument::Words(smallvec![operand.first_byte().addr() as u64, kind, stride as u64])
}

/// Inputs and outputs as the CPU kernel of the same name takes them.
pub(crate) fn batch_norm(launch: &CudaLaunch<'_>, args: BatchNormArgs) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let work = Work::new(launch, [x, out])?;
    if work.channels == 0 {
        return Ok(());
    }
    let (running, kept) = if args.training {
        let given = launch.outputs.len() - if args.running { 2 } else { 0 };
        (&launch.outputs[given..], &launch.outputs[1..given])
    } else {
        (&launch.inputs[1..3], &launch.outputs[1..1])
    };
    let mut affine = launch.inputs[if args.training { 1 } else { 3 }..].iter();
    let weight = if args.weight { affine.next() } else { None };
    let bias = if args.bias { affine.next() } else { None };
    if args.training {
        if work.count == 0 {
            // No values: running statistics stay, and there is nothing to write.
            return fill_kept(launch, kept);
        }
        let rest = [address(x), work.of_parts.clone()];
        work.over_elements(launch, "batch_norm_measure", x.dtype(), rest)?;
    }
    work.over_channels(
        launch,
        "batch_norm_settle",
        [
            whole(work.parts),
            Argument::I32(i32::from(args.training)),
            Argument::F64(args.momentum),
            Argument::F64(args.eps),
            parameter(weight),
            parameter(bias),
            parameter(running.first()),
            parameter(running.get(1)),
            parameter(kept.first()),
            parameter(kept.get(1)),
            work.of_parts.clone(),
            work.of_channels.clone(),
        ],
    )?;
    let rest = [address(x), address(out), work.of_channels.clone()];
    work.over_elements(launch, "batch_norm_apply", x.dtype(), rest)
}

/// Mean and deviation without values are 0, so that gradients are.
fn fill_kept(launch: &CudaLaunch<'_>, kept: &[Operand<'_>]) -> Result<()> {
    let zero = plimsoll_core::Scalar::Int(0);
    kept.iter().try_for_each(|out| super::fill::fill_operand(launch, out, zero))
}

/// Inputs and outputs as the CPU kernel of the same name takes them.
pub(crate) fn batch_norm_backward(
    launch: &CudaLaunch<'_>,
    args: BatchNormBackwardArgs,
) -> Result<()> {
    let [grad, x, mean, spread] = [0, 1, 2, 3].map(|index| &launch.inputs[index]);
    let BatchNormGrads { input, weight, bias } = args.wanted;
    let mut outputs = launch.outputs.iter();
    let [out, weight_out, bias_out] =
        [input, weight, bias].map(|wanted| if wanted { outputs.next() } else { None });
    let work = Work::new(launch, [x, grad, out.unwrap_or(x)])?;
    if work.channels == 0 {
        return Ok(());
    }
    let training = Argument::I32(i32::from(args.training));
    let slopes = work.of_channels.clone();
    work.over_channels(
        launch,
        "batch_norm_backward_prepare",
        [
            training.clone(),
            Argument::F64(args.eps),
            parameter(Some(mean)),
            parameter(Some(spread)),
            parameter(launch.inputs.get(4)),
            slopes.clone(),
        ],
    )?;
    let sums = args.training || weight || bias;
    if sums {
        let rest = [address(x), address(grad), slopes.clone(), work.of_parts.clone()];
        work.over_elements(launch, "batch_norm_backward_measure", x.dtype(), rest)?;
    }
    // Without elements or sums there are no parts to join.
    let parts = if sums && work.count > 0 { work.parts } else { 0 };
    work.over_channels(
        launch,
        "batch_norm_backward_settle",
        [
            whole(parts),
            whole(work.count),
            training.clone(),
            parameter(weight_out),
            parameter(bias_out),
            work.of_parts.clone(),
            slopes.clone(),
        ],
    )?;
    let Some(out) = out else { return Ok(()) };
    let rest = [training, address(x), address(grad), address(out), slopes];
    work.over_elements(launch, "batch_norm_backward_apply", x.dtype(), rest)
}
