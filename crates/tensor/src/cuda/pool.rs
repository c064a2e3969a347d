//! Pooling, and windows as columns, on operands in any layout: a thread a result. Of contiguous
//! planes the largest are found by kernels of their own.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::pool::{MeanArgs, Window};
use plimsoll_kernels::cpu::unfold::UnfoldArgs;
use plimsoll_kernels::cpu::volume::Volume;

use super::fill::fill_operand;
use super::tail::half_width;
use super::{CudaLaunch, NOTHING, address, type_name, whole};

/// Mirrors `Volume` in the kernels.
fn volume(operand: &Operand<'_>) -> Vec<usize> {
    let v = Volume::of(operand.meta());
    let mut words = vec![v.batch, v.channels];
    words.extend(v.sizes);
    words.extend([v.batch_stride, v.channel_stride]);
    words.extend(v.strides);
    words
}

/// Mirrors `Window` in the kernels.
fn window(window: Window) -> [usize; 5] {
    match window {
        Window::Even { kernel, stride, padding, dilation } => {
            [0, kernel, stride, padding, dilation]
        }
        Window::Adaptive => [1, 0, 1, 0, 1],
        Window::Fractional { kernel } => [2, kernel, 1, 0, 1],
    }
}

fn words(words: Vec<usize>) -> Argument {
    Argument::Words(words.into_iter().map(|word| word as u64).collect())
}

/// Mirrors `Pooling` in the kernels.
fn pooling(x: &Operand<'_>, y: &Operand<'_>, windows: [Window; 3]) -> Argument {
    let mut all = volume(x);
    all.extend(volume(y));
    windows.into_iter().for_each(|own| all.extend(window(own)));
    words(all)
}

/// Queues a kernel with a thread for each element of `over`.
fn run(
    launch: &CudaLaunch<'_>,
    name: &'static str,
    over: &Operand<'_>,
    arguments: &[Argument],
) -> Result<()> {
    let count = over.layout().numel();
    if count == 0 {
        return Ok(());
    }
    let kernel = (name, type_name(launch.inputs[0].dtype()));
    launch.run(&source_files::POOL, kernel, launch.grid(count, 1), arguments)
}

/// The structure `Planes` of the kernels, if these operands are such; `operands` are x, y and
/// places.
fn planes(operands: &[&Operand<'_>], windows: [Window; 3]) -> Option<Vec<usize>> {
    let [x, y] = [operands[0], operands[1]].map(|operand| Volume::of(operand.meta()));
    let dtype = operands[0].dtype();
    if !matches!(dtype, DType::F32 | DType::F16 | DType::BF16) {
        return None;
    }
    let mut even = [[0; 3]; 4];
    for (d, own) in windows.into_iter().enumerate() {
        let Window::Even { kernel, stride, padding, dilation } = own else { return None };
        for (list, number) in even.iter_mut().zip([kernel, stride, padding, dilation]) {
            list[d] = number;
        }
    }
    // The kernels divide by floats, which are exact so far.
    let most = 1 << 20;
    let reaches = (0..3).map(|d| even[0][d].saturating_mul(even[3][d]));
    let mut numbers = even.iter().flatten().copied().chain(reaches).chain([x.space(), y.space()]);
    let contiguous = operands.iter().all(|operand| operand.layout().is_contiguous());
    if !contiguous || !numbers.all(|number| number < most) {
        return None;
    }
    let mut words = vec![x.batch * x.channels, half_width(dtype)];
    words.extend(x.sizes.iter().chain(&y.sizes).chain(even.iter().flatten()));
    Some(words)
}

/// Blocks for `count` planes of `space` elements.
fn planes_grid(count: usize, space: usize) -> Grid {
    let blocks = (count.min(1 << 20) as u32, space.div_ceil(2048).max(1) as u32, 1);
    Grid { blocks, threads: 256, shared_bytes: 0 }
}

/// Inputs [x, samples?]; outputs [y] or [y, places].
pub(crate) fn max_pool(
    launch: &CudaLaunch<'_>,
    windows: [Window; 3],
    order: [usize; 3],
) -> Result<()> {
    let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
    let samples = launch.inputs.get(1);
    let strides = match samples {
        Some(samples) => samples.layout().strides().to_vec(),
        None => vec![0; 3],
    };
    let places = launch.outputs.get(1);
    let all: Vec<&Operand<'_>> = [x, y].into_iter().chain(places).collect();
    if let Some(own) = planes(&all, windows).filter(|_| y.layout().numel() > 0) {
        let grid = planes_grid(own[0], y.layout().numel() / own[0]);
        let arguments = [words(own), address(x), address(y), places.map_or(NOTHING, address)];
        return launch.run(&source_files::POOL_PLANES, "max_pool_planes", grid, &arguments);
    }
    let arguments = [
        pooling(x, y, windows),
        words(strides.into_iter().chain(order).collect()),
        words(volume(places.unwrap_or(y))),
        address(x),
        samples.map_or(NOTHING, address),
        address(y),
        places.map_or(NOTHING, address),
    ];
    run(launch, "max_pool", y, &arguments)
}

fn mean_arguments(args: MeanArgs) -> [Argument; 3] {
    let given = args.divisor.unwrap_or(0);
    [
        whole(usize::from(args.count_padding)),
        whole(usize::from(args.divisor.is_some())),
        Argument::U64(given as u64),
    ]
}

/// Input [x], output [y].
pub(crate) fn mean_pool(launch: &CudaLaunch<'_>, args: MeanArgs) -> Result<()> {
    let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
    let [padding, has, given] = mean_arguments(args);
    let arguments = [pooling(x, y, args.windows), padding, has, given, address(x), address(y)];
    run(launch, "mean_pool", y, &arguments)
}

/// Input [grad], output [x].
pub(crate) fn mean_pool_backward(launch: &CudaLaunch<'_>, args: MeanArgs) -> Result<()> {
    let (grad, x) = (&launch.inputs[0], &launch.outputs[0]);
    let [padding, has, given] = mean_arguments(args);
    let arguments =
        [pooling(x, grad, args.windows), padding, has, given, address(grad), address(x)];
    run(launch, "mean_pool_backward", x, &arguments)
}

/// Inputs [values, places], output [to]. With the windows that the places came from, each element
/// of the target looks for its own; otherwise a thread goes through a channel.
pub(crate) fn scatter_places(
    launch: &CudaLaunch<'_>,
    accumulate: bool,
    windows: Option<[Window; 3]>,
) -> Result<()> {
    let (values, places, to) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    if let (Some(windows), true) = (windows, accumulate) {
        let n = to.layout().numel();
        if let Some(own) = planes(&[to, values, places], windows).filter(|_| n > 0) {
            let grid = planes_grid(own[0], n / own[0]);
            let arguments = [words(own), address(values), address(places), address(to)];
            let kernel = "max_pool_planes_backward";
            return launch.run(&source_files::POOL_PLANES, kernel, grid, &arguments);
        }
        let arguments = [
            pooling(to, values, windows),
            words(volume(places)),
            address(values),
            address(places),
            address(to),
        ];
        return run(launch, "max_pool_backward", to, &arguments);
    }
    fill_operand(launch, to, Scalar::Int(0))?;
    let arguments = [
        pooling(to, values, [Window::NONE; 3]),
        words(volume(places)),
        whole(usize::from(accumulate)),
        address(values),
        address(places),
        address(to),
        launch.fault(),
    ];
    run(launch, "scatter_places", values, &arguments)
}

/// Inputs [from, places], output [values].
pub(crate) fn gather_places(launch: &CudaLaunch<'_>) -> Result<()> {
    let (from, places, values) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let arguments = [
        pooling(from, values, [Window::NONE; 3]),
        words(volume(places)),
        address(from),
        address(places),
        address(values),
        launch.fault(),
    ];
    run(launch, "gather_places", values, &arguments)
}

fn columns(args: UnfoldArgs) -> [Window; 3] {
    let [height, width] = [0, 1].map(|d| Window::Even {
        kernel: args.kernel[d],
        stride: args.stride[d],
        padding: args.padding[d],
        dilation: args.dilation[d],
    });
    [Window::NONE, height, width]
}

/// Input [x], output [columns].
pub(crate) fn unfold(launch: &CudaLaunch<'_>, args: UnfoldArgs) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let [_, wide] = args.windows([x.shape()[2], x.shape()[3]]);
    let arguments = [pooling(x, out, columns(args)), whole(wide), address(x), address(out)];
    run(launch, "unfold", out, &arguments)
}

/// Input [columns], output [x].
pub(crate) fn fold(launch: &CudaLaunch<'_>, args: UnfoldArgs) -> Result<()> {
    let (given, x) = (&launch.inputs[0], &launch.outputs[0]);
    let [high, wide] = args.windows([x.shape()[2], x.shape()[3]]);
    let arguments =
        [pooling(x, given, columns(args)), whole(high), whole(wide), address(given), address(x)];
    run(launch, "fold", x, &arguments)
}
