//! Sampling of images and volumes at places that a grid names, on contiguous operands.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::{Argument, Words, source_files};
use plimsoll_kernels::Meta;
use plimsoll_kernels::cpu::grid::{GridArgs, GridMode, GridPadding};
use smallvec::smallvec;

use super::fill::fill_operand;
use super::sort::Radix;
use super::tail::{code, computed_in};
use super::{CudaLaunch, NOTHING, contiguous, whole};

/// Channels that share the weights of a sample.
const CHANNELS: usize = 8;
/// Parts of the workspace start on multiples of this.
const ALIGNMENT: usize = 512;

/// What the kernels go by: [batch, channels, spatial..] at `places` a batch.
struct Job {
    args: GridArgs,
    spatial: usize,
    sizes: [usize; 3],
    batch: usize,
    channels: usize,
    places: usize,
    dtype: DType,
}

impl Job {
    fn of(args: GridArgs, image: &[usize], grid: &Meta) -> Job {
        let spatial = image.len() - 2;
        let mut sizes = [1; 3];
        sizes[3 - spatial..].copy_from_slice(&image[2..]);
        Job {
            args,
            spatial,
            sizes,
            batch: image[0],
            channels: image[1],
            places: grid.shape()[1..=spatial].iter().product(),
            dtype: grid.dtype,
        }
    }

    /// The structure of the kernels.
    fn argument(&self) -> Argument {
        let GridArgs { mode, padding, align_corners, directed } = self.args;
        let mode = match mode {
            GridMode::Linear => 0,
            GridMode::Nearest => 1,
            GridMode::Cubic => 2,
        };
        let padding = match padding {
            GridPadding::Zeros => 0,
            GridPadding::Border => 1,
            GridPadding::Reflection => 2,
        };
        let mut words: Words =
            smallvec![mode, padding, u64::from(align_corners), u64::from(directed)];
        words.push(self.spatial as u64);
        words.extend(self.sizes.map(|size| size as u64));
        words.extend([self.batch, self.channels, self.places].map(|size| size as u64));
        words.push(code(self.dtype));
        Argument::Words(words)
    }

    fn pixels(&self) -> usize {
        self.sizes.iter().product()
    }

    fn chunks(&self) -> usize {
        self.channels.div_ceil(CHANNELS)
    }

    /// The most pixels of a sample.
    fn most(&self) -> usize {
        let wide: usize = match self.args.mode {
            GridMode::Linear => 2,
            GridMode::Nearest => 1,
            GridMode::Cubic => 4,
        };
        wide.pow(self.spatial as u32)
    }

    /// The sort of what samples are made of by pixels; one past the last stands for none.
    fn radix(&self) -> Radix {
        let bits = (usize::BITS - self.pixels().leading_zeros()) as usize;
        Radix { rows: self.batch, len: self.places * self.most(), bits, positions: true }
    }

    /// Bytes of the sort, of the weights, and of where each pixel's samples start.
    fn scatter_bytes(&self) -> [usize; 3] {
        let wide = if self.dtype == DType::F64 { 8 } else { 4 };
        let weights = self.batch * self.places * self.most() * wide;
        let starts = self.batch * (self.pixels() + 1) * size_of::<u32>();
        [self.radix().workspace_bytes(), weights, starts]
            .map(|bytes| bytes.next_multiple_of(ALIGNMENT))
    }
}

/// The operand at `index`, if there is a direction.
fn direction(launch: &CudaLaunch<'_>, args: GridArgs, index: usize) -> Result<Argument> {
    match launch.inputs.get(index).filter(|_| args.directed) {
        Some(operand) => contiguous(launch, operand),
        None => Ok(NOTHING),
    }
}

/// Inputs [x, grid, direction if there is one]; output samples of x.
pub(crate) fn grid_sample(launch: &CudaLaunch<'_>, args: GridArgs) -> Result<()> {
    let (x, grid, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    if out.layout().numel() == 0 {
        return Ok(());
    }
    let job = Job::of(args, x.shape(), grid.meta());
    let arguments = [
        job.argument(),
        contiguous(launch, x)?,
        contiguous(launch, grid)?,
        direction(launch, args, 2)?,
        contiguous(launch, out)?,
    ];
    let kernel = ("grid_sample", computed_in(job.dtype));
    let threads = launch.grid(job.batch * job.chunks() * job.places, 1);
    launch.run(&source_files::GRID, kernel, threads, &arguments)
}

/// Inputs [gradient of the samples, x, grid, direction if there is one]; output the gradient of the
/// grid.
pub(crate) fn grid_slope(launch: &CudaLaunch<'_>, args: GridArgs) -> Result<()> {
    let [grads, x, grid] = [0, 1, 2].map(|index| &launch.inputs[index]);
    let out = &launch.outputs[0];
    if out.layout().numel() == 0 {
        return Ok(());
    }
    let job = Job::of(args, x.shape(), grid.meta());
    let arguments = [
        job.argument(),
        contiguous(launch, grads)?,
        contiguous(launch, x)?,
        contiguous(launch, grid)?,
        direction(launch, args, 3)?,
        contiguous(launch, out)?,
    ];
    let kernel = ("grid_slope", computed_in(job.dtype));
    launch.run(&source_files::GRID, kernel, launch.grid(job.batch * job.places, 1), &arguments)
}

/// Bytes of a sort of all samples' pixels and what goes with it.
pub(crate) fn grid_scatter_workspace_bytes(args: GridArgs, image: &[usize], grid: &Meta) -> usize {
    Job::of(args, image, grid).scatter_bytes().iter().sum()
}

/// Inputs [gradient of the samples, grid, direction if there is one]; output the gradient of the
/// image.
pub(crate) fn grid_scatter(launch: &CudaLaunch<'_>, args: GridArgs) -> Result<()> {
    let (grads, grid, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let job = Job::of(args, out.shape(), grid.meta());
    if out.layout().numel() == 0 {
        return Ok(());
    }
    if job.places == 0 {
        return fill_operand(launch, out, Scalar::Int(0));
    }
    if job.pixels().max(job.places * job.most()) >= u32::MAX as usize {
        return Err(launch.unsupported("an image or a grid of 2^32 places"));
    }
    let computed = computed_in(job.dtype);
    let [sort_bytes, weights_bytes, _] = job.scatter_bytes();
    let base = launch.workspace.pointer().addr();
    let (weights, starts) = (base + sort_bytes, base + sort_bytes + weights_bytes);
    let arguments = [
        job.argument(),
        contiguous(launch, grid)?,
        direction(launch, args, 2)?,
        whole(base),
        whole(weights),
    ];
    let samples = launch.grid(job.batch * job.places, 1);
    launch.run(&source_files::GRID, ("grid_keys", computed), samples, &arguments)?;
    let sorted = job.radix().run(launch, base)?;
    let length = job.places * job.most();
    let arguments = [
        whole(job.batch),
        whole(length),
        whole(job.pixels()),
        whole(sorted.keys[0]),
        whole(starts),
    ];
    let entries = launch.grid(job.batch * length, 1);
    launch.run(&source_files::GRID, "grid_starts", entries, &arguments)?;
    let arguments = [
        job.argument(),
        contiguous(launch, grads)?,
        whole(starts),
        whole(sorted.positions[0]),
        whole(weights),
        contiguous(launch, out)?,
    ];
    let threads = launch.grid(job.batch * job.chunks() * job.pixels(), 1);
    launch.run(&source_files::GRID, ("grid_scatter", computed), threads, &arguments)
}
