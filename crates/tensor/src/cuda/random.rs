//! Random numbers and dropout, from the CPU's words: the elements of an output in row-major order,
//! whatever its layout.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::random::{Formula, Stream};
use smallvec::smallvec;

use super::strided::Strided;
use super::tail::code;
use super::{Arguments, CudaLaunch, NOTHING, address, whole};

/// Where a launch's numbers come from: a stream, or the launch's last input and what the stream's
/// offset adds to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    pub(crate) stream: Stream,
    pub(crate) from_memory: bool,
}

/// Every element uniform in [low, high).
pub(crate) fn uniform(launch: &CudaLaunch<'_>, low: f64, high: f64, draw: Draw) -> Result<()> {
    fill(launch, "uniform", draw, [Argument::F64(low), Argument::F64(high)])
}

/// Every element from the normal distribution of this mean and standard deviation.
pub(crate) fn normal(launch: &CudaLaunch<'_>, mean: f64, deviation: f64, draw: Draw) -> Result<()> {
    fill(launch, "normal", draw, [Argument::F64(mean), Argument::F64(deviation)])
}

/// Every element a whole number in [low, high); `low` itself if the range is empty.
pub(crate) fn randint(launch: &CudaLaunch<'_>, low: i64, high: i64, draw: Draw) -> Result<()> {
    let range = if high > low { high.wrapping_sub(low) as u64 } else { 0 };
    fill(launch, "integer", draw, [Argument::U64(low as u64), Argument::U64(range)])
}

/// Every element by a formula of a uniform number of its own.
pub(crate) fn by_formula(launch: &CudaLaunch<'_>, formula: Formula, draw: Draw) -> Result<()> {
    let (which, a, b) = match formula {
        Formula::Exponential(lambda) => (0, lambda, 0.0),
        Formula::Cauchy { median, sigma } => (1, median, sigma),
        Formula::Geometric(p) => (2, p, 0.0),
        Formula::Bernoulli(p) => (3, p, 0.0),
    };
    fill(launch, "formula", draw, [Argument::I32(which), Argument::F64(a), Argument::F64(b)])
}

/// Input [x]: zeros with probability `p`, other elements over 1 - p.
pub(crate) fn dropout(launch: &CudaLaunch<'_>, p: f64, draw: Draw) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    launch.check_dtypes(x.dtype(), &[out])?;
    let (threshold, scale) = ((p * 16_777_216.0).ceil() as u64, 1.0 / (1.0 - p));
    let numbers = [Argument::U64(threshold), Argument::F64(scale), address(x)];
    run(launch, "dropout", draw, [out, x], numbers)
}

fn fill<const N: usize>(
    launch: &CudaLaunch<'_>,
    kernel: &'static str,
    draw: Draw,
    numbers: [Argument; N],
) -> Result<()> {
    run(launch, kernel, draw, [&launch.outputs[0]], numbers)
}

/// Runs a kernel over operands of one shape, the output first.
fn run<const N: usize, const OPERANDS: usize>(
    launch: &CudaLaunch<'_>,
    kernel: &'static str,
    draw: Draw,
    operands: [&Operand<'_>; OPERANDS],
    numbers: [Argument; N],
) -> Result<()> {
    let out = operands[0];
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let dims = out.shape().iter().enumerate();
    let strides = |dim: usize| operands.map(|operand| operand.layout().strides()[dim]);
    let strided = Strided::in_order(dims.map(|(dim, &size)| (size, strides(dim))));
    let memory = launch.inputs.last().filter(|_| draw.from_memory);
    let mut arguments: Arguments = smallvec![
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(i32::from(strided.is_dense())),
        Argument::I32(code(out.dtype()) as i32),
        Argument::U64(draw.stream.seed),
        Argument::U64(draw.stream.offset),
        memory.map_or(NOTHING, address),
    ];
    arguments.extend(numbers);
    arguments.push(address(out));
    launch.run(&source_files::RANDOM, kernel, launch.grid(n, 4), &arguments)
}
