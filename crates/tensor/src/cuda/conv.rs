//! Convolutions: by cuDNN where it is found and takes them (`dnn.rs`), else by kernels of our own
//! on operands in any layout, in tiles, or directly where groups have few channels.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::{Argument, Grid, KernelName, Pass, Properties, source_files};
use plimsoll_kernels::cpu::conv::ConvArgs;
use plimsoll_kernels::cpu::volume::Volume;
use plimsoll_kernels::{Meta, Operand};
use smallvec::smallvec;

use super::fill::fill_operand;
use super::tail::{computed_in, half_width};
use super::{Arguments, CudaLaunch, NOTHING, address, dnn, whole};
use crate::backends;

/// Rows and columns of a block's tile: pixels or columns of a weight, and channels.
const WIDE: usize = 128;
const SIDE: usize = 64;
/// Pixels that a part of a weight's sums has, at least.
const PART: usize = 1024;
/// Results that a thread of a depthwise convolution computes side by side.
const RESULTS: usize = 4;
/// Columns of a weight that a block sums directly.
const TAPS: usize = 9;
/// The most blocks in a grid's second and third dimension.
const MOST_BLOCKS: usize = 65_535;

/// What the kernels' `Geometry` is made of: [operand, weight, result].
struct Shapes {
    operand: Volume,
    weight: Volume,
    result: Volume,
    args: ConvArgs,
    /// Whether the weight's first dimension are the operand's channels.
    transposed: bool,
    dtype: DType,
}

impl Shapes {
    fn new(operand: &Meta, weight: &Meta, result: &Meta, args: ConvArgs, back: bool) -> Shapes {
        Shapes {
            operand: Volume::of(operand),
            weight: Volume::of(weight),
            result: Volume::of(result),
            args,
            transposed: back,
            dtype: operand.dtype,
        }
    }

    fn operands_each(&self) -> usize {
        self.operand.channels / self.args.groups
    }

    fn results_each(&self) -> usize {
        self.result.channels / self.args.groups
    }

    /// Whether groups have so few channels that tiles would be empty for the most part, or these
    /// are integers, which have no tiles.
    fn is_direct(&self) -> bool {
        let few = self.operands_each() <= 4 && self.results_each() <= 4;
        match self.dtype {
            DType::I64 => true,
            DType::F32 | DType::F16 | DType::BF16 => few && self.fits(),
            _ => false,
        }
    }

    /// Whether direct kernels, which reckon places of an image in 32 bits, can do it.
    fn fits(&self) -> bool {
        let ConvArgs { stride, padding, dilation, .. } = self.args;
        let sizes = [self.operand.space(), self.result.space()];
        let mut numbers = sizes.iter().chain(&stride).chain(&padding).chain(&dilation);
        numbers.all(|&number| number < 1 << 28)
    }

    /// Refuses what no kernel can do.
    fn check(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        if self.dtype == DType::I64 && !self.fits() {
            return Err(launch.unsupported("integer images of 2^28 elements a channel and more"));
        }
        if !self.is_direct() && self.args.groups > MOST_BLOCKS {
            return Err(launch.unsupported("more than 65,535 groups of this dtype and size"));
        }
        Ok(())
    }

    /// The side of a square kernel over single channels of flat images, if there are kernels for
    /// it.
    fn square(&self) -> Option<usize> {
        let flat = [&self.operand, &self.weight, &self.result].iter().all(|v| v.sizes[0] == 1);
        let [_, height, width] = self.weight.sizes;
        // Places of a channel are reckoned in 32 bits.
        let fits = |v: &Volume| v.sizes[1] * v.strides[1] + v.sizes[2] * v.strides[2] < 1 << 30;
        (self.is_direct()
            && self.dtype != DType::I64
            && self.operands_each() == 1
            && self.results_each() == 1
            && flat
            && self.args.padding[0] == 0
            && height == width
            && matches!(height, 3 | 5)
            && fits(&self.operand)
            && fits(&self.result))
        .then_some(height)
    }

    /// Blocks for the columns of a weight that is summed directly.
    fn direct_chunks(&self) -> usize {
        (self.operands_each() * self.weight.space()).div_ceil(TAPS)
    }

    /// Parts of the images that a weight's direct sums are cut into.
    fn direct_parts(&self, multiprocessors: usize) -> usize {
        let blocks = self.result.channels * self.direct_chunks();
        (8 * multiprocessors)
            .div_ceil(blocks.max(1))
            .clamp(1, self.result.batch.clamp(1, MOST_BLOCKS))
    }

    /// The structure that kernels take by value.
    fn argument(&self) -> Argument {
        let Shapes { operand, weight, result, args, transposed, dtype } = self;
        let strides = |v: &Volume| {
            let [depth, height, width] = v.strides;
            [v.batch_stride, v.channel_stride, depth, height, width]
        };
        let (first, second) = (weight.batch_stride, weight.channel_stride);
        let (of_result, of_operand) = if *transposed { (second, first) } else { (first, second) };
        let group = weight.batch / args.groups * first;
        let mut words: Vec<usize> =
            vec![operand.batch, args.groups, self.operands_each(), self.results_each()];
        for three in
            [operand.sizes, result.sizes, weight.sizes, args.stride, args.padding, args.dilation]
        {
            words.extend(three);
        }
        words.extend(strides(operand));
        words.extend(strides(result));
        words.extend([of_result, of_operand, group]);
        words.extend(weight.strides);
        words.push(half_width(*dtype));
        Argument::Words(words.into_iter().map(|word| word as u64).collect())
    }
}

/// Bytes of workspace. Inputs [x, weight, bias?], output y.
pub(crate) fn conv_workspace_bytes(inputs: &[&Meta], output: &Meta, args: ConvArgs) -> usize {
    dnn::workspace_bytes(Pass::Result, [inputs[0], inputs[1], output], &args)
}

/// Bytes of workspace. Inputs [grad, weight, bias?], output x.
pub(crate) fn conv_input_workspace_bytes(inputs: &[&Meta], output: &Meta, args: ConvArgs) -> usize {
    dnn::workspace_bytes(Pass::Input, [output, inputs[1], inputs[0]], &args)
}

/// Inputs [x, weight, bias?], output y.
pub(crate) fn conv(launch: &CudaLaunch<'_>, args: ConvArgs) -> Result<()> {
    check(launch)?;
    let operands = [&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]];
    if dnn::convolve(launch, Pass::Result, operands, launch.inputs.get(2), &args)? {
        return Ok(());
    }
    correlate(launch, args, "conv", false)
}

/// Inputs [grad, weight, bias?], output x.
pub(crate) fn conv_input(launch: &CudaLaunch<'_>, args: ConvArgs) -> Result<()> {
    check(launch)?;
    let operands = [&launch.outputs[0], &launch.inputs[1], &launch.inputs[0]];
    if dnn::convolve(launch, Pass::Input, operands, launch.inputs.get(2), &args)? {
        return Ok(());
    }
    correlate(launch, args, "conv_input", true)
}

/// Refuses operands of several dtypes.
fn check(launch: &CudaLaunch<'_>) -> Result<()> {
    let given: Vec<&Operand<'_>> = launch.inputs.iter().chain(launch.outputs).collect();
    launch.check_dtypes(launch.inputs[0].dtype(), &given)
}

fn correlate(
    launch: &CudaLaunch<'_>,
    args: ConvArgs,
    kernel: &'static str,
    back: bool,
) -> Result<()> {
    let (operand, weight, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    if out.layout().numel() == 0 {
        return Ok(());
    }
    let shapes = Shapes::new(operand.meta(), weight.meta(), out.meta(), args, back);
    shapes.check(launch)?;
    let bias = launch.inputs.get(2);
    let stride = bias.and_then(|bias| bias.layout().strides().first().copied()).unwrap_or(0);
    let read = [
        address(operand),
        address(weight),
        bias.map_or(NOTHING, address),
        whole(stride),
        address(out),
    ];
    let dtype = computed_in(out.dtype());
    if shapes.is_direct() {
        let (grid, side_by_side) = direct_grid(&shapes.result);
        let mut arguments: Arguments = smallvec![shapes.argument()];
        let in_order = !side_by_side && (!back || args.stride == [1; 3]);
        if let Some(side) = shapes.square().filter(|_| in_order) {
            arguments.extend(read);
            let is_dense = args.stride == [1; 3] && args.dilation == [1; 3];
            let (grid, kernel) = match is_dense {
                true => (rows_grid(&shapes.result), (kernel, "rows", side)),
                false => (grid, (kernel, "square", side)),
            };
            return launch.run(&source_files::CONV_DEPTHWISE, kernel, grid, &arguments);
        }
        arguments.push(whole(usize::from(side_by_side)));
        arguments.extend(read);
        let kernel = (kernel, "direct", dtype);
        return launch.run(&source_files::CONV_DEPTHWISE, kernel, grid, &arguments);
    }
    let pixels = shapes.result.batch * shapes.result.space();
    let blocks = (
        pixels.div_ceil(WIDE) as u32,
        shapes.results_each().div_ceil(SIDE) as u32,
        args.groups as u32,
    );
    let mut arguments: Arguments = smallvec![shapes.argument()];
    arguments.extend(read);
    let grid = Grid { blocks, threads: 256, shared_bytes: 0 };
    launch.run(&source_files::CONV, (kernel, dtype), grid, &arguments)
}

/// Blocks for each channel of each image, or for each row of pixels if the channels lie side by
/// side, and which of the two.
fn direct_grid(result: &Volume) -> (Grid, bool) {
    let Volume { batch, channels, sizes, .. } = *result;
    let side_by_side = result.channel_stride == 1 && channels > 1 && result.strides[2] != 1;
    let (jobs, inner) = match side_by_side {
        true => (batch * sizes[0] * sizes[1], sizes[2] * channels),
        false => (batch * channels, result.space()),
    };
    let blocks = (jobs.min(1 << 20) as u32, inner.div_ceil(2048).clamp(1, MOST_BLOCKS) as u32, 1);
    (Grid { blocks, threads: 256, shared_bytes: 0 }, side_by_side)
}

/// Blocks for each channel of each image, with as few idle threads as can be: a thread computes
/// some neighbours of a row.
fn rows_grid(result: &Volume) -> Grid {
    let jobs = result.sizes[1] * result.sizes[2].div_ceil(RESULTS);
    let idle = |threads: u32| jobs.next_multiple_of(threads as usize) - jobs;
    let threads = [256, 224, 192, 160, 128].into_iter().min_by_key(|&threads| idle(threads));
    let images = (result.batch * result.channels).min(1 << 20) as u32;
    let blocks = (images, jobs.div_ceil(2048).clamp(1, MOST_BLOCKS) as u32, 1);
    Grid { blocks, threads: threads.unwrap_or(256), shared_bytes: 0 }
}

/// How many multiprocessors the parts of a sum are for: those of the GPU, or as many on every GPU.
fn multiprocessors(gpu: &Properties) -> usize {
    const EVERYWHERE: usize = 128;
    match backends::DETERMINISTIC_ALGORITHMS.is_on() {
        true => EVERYWHERE,
        false => gpu.multiprocessors as usize,
    }
}

/// Parts that a weight's sums are cut into, so that small weights fill the GPU too.
fn parts(multiprocessors: usize, shapes: &Shapes) -> usize {
    let columns = shapes.operands_each() * shapes.weight.space();
    let tiles = shapes.results_each().div_ceil(SIDE) * columns.div_ceil(WIDE) * shapes.args.groups;
    let pixels = shapes.result.batch * shapes.result.space();
    let wanted = (4 * multiprocessors).div_ceil(tiles.max(1));
    wanted.min(pixels.div_ceil(PART)).clamp(1, (MOST_BLOCKS / shapes.args.groups.max(1)).max(1))
}

/// Bytes of workspace: of partial sums, or for cuDNN. Inputs [x, grad], output the weight.
pub(crate) fn conv_weight_workspace_bytes(
    gpu: &Properties,
    inputs: &[&Meta],
    output: &Meta,
    args: ConvArgs,
) -> usize {
    let shapes = Shapes::new(inputs[0], output, inputs[1], args, false);
    let multiprocessors = multiprocessors(gpu);
    let parts = match shapes.is_direct() {
        true => shapes.direct_parts(multiprocessors),
        // A single part is written where it belongs.
        false => Some(parts(multiprocessors, &shapes)).filter(|&parts| parts > 1).unwrap_or(0),
    };
    // No sum is wider than a double.
    let of_parts = parts * output.layout.numel() * 8;
    of_parts.max(dnn::workspace_bytes(Pass::Weight, [inputs[0], output, inputs[1]], &args))
}

/// Inputs [x, grad], output the weight.
pub(crate) fn conv_weight(launch: &CudaLaunch<'_>, args: ConvArgs) -> Result<()> {
    let (x, grad, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    launch.check_dtypes(x.dtype(), &[grad, out])?;
    if out.layout().numel() == 0 {
        return Ok(());
    }
    if grad.layout().numel() == 0 {
        return fill_operand(launch, out, Scalar::Int(0));
    }
    if dnn::convolve(launch, Pass::Weight, [x, out, grad], None, &args)? {
        return Ok(());
    }
    let shapes = Shapes::new(x.meta(), out.meta(), grad.meta(), args, false);
    shapes.check(launch)?;
    let multiprocessors = multiprocessors(launch.context.properties());
    if shapes.is_direct() {
        return direct_weight(launch, &shapes, shapes.direct_parts(multiprocessors));
    }
    let parts = parts(multiprocessors, &shapes);
    let pixels = shapes.result.batch * shapes.result.space();
    let columns = shapes.operands_each() * shapes.weight.space();
    let blocks = (
        columns.div_ceil(WIDE) as u32,
        shapes.results_each().div_ceil(SIDE) as u32,
        (args.groups * parts) as u32,
    );
    let partial = Argument::U64(launch.workspace.pointer().addr() as u64);
    let dtype = computed_in(out.dtype());
    let arguments = [
        shapes.argument(),
        address(x),
        address(grad),
        whole(parts),
        whole(pixels.div_ceil(parts)),
        partial.clone(),
        address(out),
    ];
    let grid = Grid { blocks, threads: 256, shared_bytes: 0 };
    launch.run(&source_files::CONV, ("conv_weight", dtype), grid, &arguments)?;
    if parts == 1 { Ok(()) } else { add_parts(launch, &shapes, parts) }
}

/// Adds up the parts of a weight's sums.
fn add_parts(launch: &CudaLaunch<'_>, shapes: &Shapes, parts: usize) -> Result<()> {
    let out = &launch.outputs[0];
    let partial = whole(launch.workspace.pointer().addr());
    let arguments = [shapes.argument(), whole(parts), partial, address(out)];
    let grid = launch.grid(out.layout().numel(), 1);
    let kernel = ("conv_weight_parts", computed_in(out.dtype()));
    launch.run(&source_files::CONV, kernel, grid, &arguments)
}

/// The weight's gradient where groups have few channels.
fn direct_weight(launch: &CudaLaunch<'_>, shapes: &Shapes, parts: usize) -> Result<()> {
    let (x, grad) = (&launch.inputs[0], &launch.inputs[1]);
    let chunks = shapes.direct_chunks();
    if chunks > MOST_BLOCKS {
        return Err(launch.unsupported("the gradient of a weight with so many taps"));
    }
    let (kernel, chunks) = match shapes.square() {
        Some(side) => (KernelName::from(("conv_weight_square", side)), 1),
        None => (KernelName::from(("conv_weight_direct", computed_in(x.dtype()))), chunks),
    };
    let blocks = (shapes.result.channels as u32, parts as u32, chunks as u32);
    let arguments = [
        shapes.argument(),
        address(x),
        address(grad),
        whole(parts),
        whole(launch.workspace.pointer().addr()),
    ];
    let grid = Grid { blocks, threads: 256, shared_bytes: 0 };
    launch.run(&source_files::CONV_DEPTHWISE, kernel, grid, &arguments)?;
    add_parts(launch, shapes, parts)
}
