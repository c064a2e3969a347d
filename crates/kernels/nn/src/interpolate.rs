//! Resampling of one to three spatial dimensions: nearest, linear, cubic and by area. Every output
//! is a weighted sum over a few places along each dimension; backward adds the gradient back to the
//! same places. A plane is one thread's, so gradients are the same bits in every run.

use plimsoll_core::{DType, Error, Result};

use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Element, Meta, input_dtype, match_float, parallel};

use crate::planes::Planes;
use crate::rows::operand;

/// How places between pixels are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterpolateMode {
    /// The pixel whose place is at or before.
    Nearest,
    /// The pixel whose centre is nearest.
    NearestExact,
    /// Between two pixels along each dimension.
    Linear,
    /// By a cubic through four pixels along each dimension.
    Cubic,
    /// The mean of all pixels that an output covers.
    Area,
}

impl std::str::FromStr for InterpolateMode {
    type Err = Error;

    fn from_str(word: &str) -> Result<InterpolateMode> {
        match word {
            "nearest" => Ok(InterpolateMode::Nearest),
            "nearest-exact" => Ok(InterpolateMode::NearestExact),
            "linear" | "bilinear" | "trilinear" => Ok(InterpolateMode::Linear),
            "bicubic" => Ok(InterpolateMode::Cubic),
            "area" => Ok(InterpolateMode::Area),
            _ => Err(Error::invalid_argument(format!(
                "the mode is \"nearest\", \"nearest-exact\", \"linear\", \"bilinear\", \"trilinear\", \"bicubic\" or \
                 \"area\", and not {word:?}"
            ))),
        }
    }
}

/// What the kernels go by.
#[derive(Clone, Copy, Debug)]
pub struct InterpolateArgs {
    /// How places between pixels are filled.
    pub mode: InterpolateMode,
    /// Whether the outermost pixels' centres stay where they are.
    pub align_corners: bool,
    /// Output sizes over input sizes along the spatial dimensions, 0 where only the sizes tell.
    pub scales: [f64; 3],
}

/// One spatial dimension: sizes, and input places to an output place.
#[derive(Clone, Copy)]
struct Axis<R> {
    from: usize,
    to: usize,
    step: R,
}

/// The places along a dimension that an output is made of.
#[derive(Clone, Copy)]
struct Taps<R> {
    first: isize,
    count: usize,
    /// Unused by areas, whose pixels all count alike.
    weights: [R; 4],
    alike: Option<R>,
}

impl<R: Real> Taps<R> {
    #[inline(always)]
    fn weight(&self, tap: usize) -> R {
        match self.alike {
            Some(weight) => weight,
            None => self.weights[tap],
        }
    }

    /// The place of a tap, which past the ends is the end.
    #[inline(always)]
    fn place(&self, tap: usize, size: usize) -> usize {
        (self.first + tap as isize).clamp(0, size as isize - 1) as usize
    }
}

fn axis<R: Real>(args: InterpolateArgs, from: usize, to: usize, scale: f64) -> Axis<R> {
    let ratio = || R::of(from as f64) / R::of(to as f64);
    let nearest = matches!(args.mode, InterpolateMode::Nearest | InterpolateMode::NearestExact);
    let step = if args.align_corners && !nearest {
        match to > 1 {
            true => R::of((from - 1) as f64) / R::of((to - 1) as f64),
            false => R::ZERO,
        }
    } else if scale > 0.0 {
        R::of(1.0 / scale)
    } else {
        ratio()
    };
    Axis { from, to, step }
}

/// The convolution of Keys with slope -0.75 at distance 1, for the four pixels around `t`.
#[inline(always)]
fn cubic<R: Real>(t: R) -> [R; 4] {
    let a = R::of(-0.75);
    let (one, two, three) = (R::ONE, R::of(2.0), R::of(3.0));
    let (four, five, eight) = (R::of(4.0), R::of(5.0), R::of(8.0));
    let near = |x: R| ((a + two) * x - (a + three)) * x * x + one;
    let far = |x: R| ((a * x - five * a) * x + eight * a) * x - four * a;
    [far(t + one), near(t), near(one - t), far(two - t)]
}

impl<R: Real> Axis<R> {
    #[inline(always)]
    fn taps(self, args: InterpolateArgs, at: usize) -> Taps<R> {
        let (zero, one, half) = (R::ZERO, R::ONE, R::of(0.5));
        let mut taps = Taps { first: 0, count: 1, weights: [one, zero, zero, zero], alike: None };
        let place = R::of(at as f64);
        let last = self.from as isize - 1;
        let centre =
            if args.align_corners { self.step * place } else { self.step * (place + half) - half };
        match args.mode {
            InterpolateMode::Nearest | InterpolateMode::NearestExact => {
                // PyTorch finds the pixel in single precision, whatever the input is.
                let place =
                    if args.mode == InterpolateMode::Nearest { at as f32 } else { at as f32 + 0.5 };
                taps.first = ((place * self.step.to_f64() as f32).floor() as isize).min(last);
            }
            InterpolateMode::Linear => {
                let source = if centre < zero { zero } else { centre };
                let floor = source.floor();
                taps.first = (floor.to_f64() as isize).min(last);
                let part = source - R::of(taps.first as f64);
                let part = if part > one { one } else { part };
                taps.count = 2;
                taps.weights = [one - part, part, zero, zero];
            }
            InterpolateMode::Cubic => {
                let floor = centre.floor();
                taps.first = floor.to_f64() as isize - 1;
                taps.count = 4;
                taps.weights = cubic(centre - floor);
            }
            InterpolateMode::Area => {
                let first = at * self.from / self.to;
                let end = ((at + 1) * self.from).div_ceil(self.to);
                taps.first = first as isize;
                taps.count = end - first;
                taps.alike = Some(one / R::of(taps.count as f64));
            }
        }
        taps
    }
}

/// The three axes of shapes [batch, channels, 1 to 3 spatial dimensions], and the number of planes.
fn axes<R: Real>(args: InterpolateArgs, from: &[usize], to: &[usize]) -> ([Axis<R>; 3], usize) {
    let spatial = from.len() - 2;
    let axes = std::array::from_fn(|index| match index.checked_sub(3 - spatial) {
        Some(dim) => axis(args, from[2 + dim], to[2 + dim], args.scales[dim]),
        None => Axis { from: 1, to: 1, step: R::ONE },
    });
    (axes, from[0] * from[1])
}

/// Taps of a dimension that is not there.
fn through<R: Real>(axis: Axis<R>, args: InterpolateArgs, at: usize, exists: bool) -> Taps<R> {
    if exists {
        return axis.taps(args, at);
    }
    let weights = [R::ONE, R::ZERO, R::ZERO, R::ZERO];
    Taps { first: 0, count: 1, weights, alike: None }
}

/// Calls `visit(output place, input place, weight)` for everything that a plane's outputs are made
/// of, outputs in order; `done(output place)` after each.
#[inline(always)]
fn plane<R: Real>(
    axes: [Axis<R>; 3],
    args: InterpolateArgs,
    spatial: usize,
    mut visit: impl FnMut(usize, usize, R),
) {
    let [depth, height, width] = axes;
    let mut out = 0;
    for z in 0..depth.to {
        let in_depth = through(depth, args, z, spatial > 2);
        for y in 0..height.to {
            let in_height = through(height, args, y, spatial > 1);
            for x in 0..width.to {
                let in_width = width.taps(args, x);
                for a in 0..in_depth.count {
                    let plane = in_depth.place(a, depth.from) * height.from;
                    for b in 0..in_height.count {
                        let row = (plane + in_height.place(b, height.from)) * width.from;
                        let weight = in_depth.weight(a) * in_height.weight(b);
                        for c in 0..in_width.count {
                            let place = row + in_width.place(c, width.from);
                            visit(out, place, weight * in_width.weight(c));
                        }
                    }
                }
                out += 1;
            }
        }
    }
}

/// `x` -> x at other sizes; both are [batch, channels, 1 to 3 spatial dimensions], row-major
/// or channels last.
pub fn interpolate(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    if input_dtype(launch)? == DType::U8 {
        return bytes(launch, args);
    }
    match_float!(launch, input_dtype(launch)?, T => forward::<T>(launch, args))
}

fn forward<T: Float>(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    let (x, out) = (operand(launch, launch.inputs, 0)?, operand(launch, launch.outputs, 0)?);
    let (from, to) = (Planes::<T>::of(launch, &x)?, Planes::<T>::of(launch, &out)?);
    let (axes, _) = axes::<T::Wide>(args, x.shape(), out.shape());
    let job = Resample { axes, args, spatial: x.shape().len() - 2, batch: x.shape()[0], from, to };
    match from.is_last() && to.is_last() {
        true => job.forward::<BLOCK>(),
        false => job.forward::<1>(),
    }
    Ok(())
}

/// Channels that are computed together where they are neighbours.
const BLOCK: usize = 16;

/// What both passes go by. `from` is what is read, `to` what is written.
struct Resample<T: Float> {
    axes: [Axis<T::Wide>; 3],
    args: InterpolateArgs,
    spatial: usize,
    batch: usize,
    from: Planes<T>,
    to: Planes<T>,
}

impl<T: Float> Resample<T> {
    /// Blocks of at most `N` channels of all samples.
    fn units<const N: usize>(&self) -> usize {
        self.batch * self.from.channels.div_ceil(N)
    }

    /// The first plane of a unit, and how many neighbours it has.
    #[inline(always)]
    fn planes<const N: usize>(&self, unit: usize) -> (usize, usize) {
        let blocks = self.from.channels.div_ceil(N);
        let first = unit % blocks * N;
        let count = if N == 1 { 1 } else { N.min(self.from.channels - first) };
        (unit / blocks * self.from.channels + first, count)
    }

    fn forward<const N: usize>(&self) {
        let outputs = lengths(self.axes)[1];
        parallel::split(self.units::<N>(), (GRAIN / (4 * outputs * N).max(1)).max(1), |units| {
            for unit in units {
                let (first, count) = self.planes::<N>(unit);
                // SAFETY: places of the unit's own planes.
                unsafe {
                    let x = self.from.first.add(self.from.start(first));
                    let to = self.to.first.add(self.to.start(first));
                    let (mut at, mut sums) = (0, [T::Wide::ZERO; N]);
                    let write = |at: usize, sums: &[T::Wide; N]| {
                        for (channel, &sum) in sums.iter().enumerate().take(count) {
                            *to.add(at * self.to.place + channel) = T::narrow(sum);
                        }
                    };
                    plane(self.axes, self.args, self.spatial, |out, place, weight| {
                        if out != at {
                            write(at, &sums);
                            (at, sums) = (out, [T::Wide::ZERO; N]);
                        }
                        for (channel, sum) in sums.iter_mut().enumerate().take(count) {
                            let value = (*x.add(place * self.from.place + channel)).widen();
                            *sum = *sum + value * weight;
                        }
                    });
                    if outputs > 0 {
                        write(at, &sums);
                    }
                }
            }
        });
    }

    /// Adds the gradients back to the places that outputs are made of. `scratch` has a plane of
    /// sums for each of a unit's channels, `threads` times.
    fn backward<const N: usize>(&self, scratch: Shared<T::Wide>, threads: usize) {
        let inputs = lengths(self.axes)[0];
        let units = self.units::<N>();
        parallel::fork(threads, |part| {
            for unit in parallel::part_range(units, threads, part) {
                let (first, count) = self.planes::<N>(unit);
                // SAFETY: this part's scratch, and the unit's own planes.
                unsafe {
                    let sums = scratch.add(part * inputs * N);
                    let grad = self.from.first.add(self.from.start(first));
                    let to = self.to.first.add(self.to.start(first));
                    std::slice::from_raw_parts_mut(sums, inputs * N).fill(T::Wide::ZERO);
                    plane(self.axes, self.args, self.spatial, |out, place, weight| {
                        for channel in 0..count {
                            let sum = sums.add(place * N + channel);
                            let slope = (*grad.add(out * self.from.place + channel)).widen();
                            *sum = *sum + slope * weight;
                        }
                    });
                    for place in 0..inputs {
                        for channel in 0..count {
                            let sum = *sums.add(place * N + channel);
                            *to.add(place * self.to.place + channel) = T::narrow(sum);
                        }
                    }
                }
            }
        });
    }
}

/// Bytes are computed in single precision, rounded and kept in range.
fn bytes(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    let (x, out) = (operand(launch, launch.inputs, 0)?, operand(launch, launch.outputs, 0)?);
    let (from, to) = (Planes::<u8>::of(launch, &x)?, Planes::<u8>::of(launch, &out)?);
    let (axes, planes) = axes::<f32>(args, x.shape(), out.shape());
    let outputs = lengths(axes)[1];
    let spatial = x.shape().len() - 2;
    for index in 0..planes {
        let (mut at, mut sum) = (0, 0.0f32);
        let write = |at: usize, sum: f32| {
            let byte = (sum + 0.5).floor().clamp(0.0, 255.0) as u8;
            // SAFETY: a place of the plane's own outputs.
            unsafe { *to.first.add(to.start(index) + at * to.place) = byte };
        };
        plane(axes, args, spatial, |out, place, weight| {
            if out != at {
                write(at, sum);
                (at, sum) = (out, 0.0);
            }
            // SAFETY: a place of the plane's own inputs.
            let byte = unsafe { *from.first.add(from.start(index) + place * from.place) };
            sum += f32::from(byte) * weight;
        });
        if outputs > 0 {
            write(at, sum);
        }
    }
    Ok(())
}

fn lengths<R: Real>(axes: [Axis<R>; 3]) -> [usize; 2] {
    [axes.iter().map(|axis| axis.from).product(), axes.iter().map(|axis| axis.to).product()]
}

/// `grad` -> the gradient of x, whose shape is the output's.
pub fn interpolate_backward(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => backward::<T>(launch, args))
}

/// Scratch of [`interpolate_backward`]: sums of half types are kept in single precision, a plane a
/// thread, or one for each of the channels that are computed together.
pub fn interpolate_backward_workspace_bytes(out: &Meta) -> usize {
    let inputs: usize = out.shape()[2..].iter().product();
    let wide = if out.dtype == DType::F64 { 8 } else { 4 };
    let together = if out.layout.is_contiguous() { 1 } else { BLOCK };
    parallel::threads() * inputs * together * wide
}

fn backward<T: Float>(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    let (grad, out) = (operand(launch, launch.inputs, 0)?, operand(launch, launch.outputs, 0)?);
    let (from, to) = (Planes::<T>::of(launch, &grad)?, Planes::<T>::of(launch, &out)?);
    let (axes, _) = axes::<T::Wide>(args, out.shape(), grad.shape());
    if launch.workspace.bytes() < interpolate_backward_workspace_bytes(out.meta()) {
        return Err(Error::invalid_argument("the kernel needs a workspace of a plane a thread")
            .in_operation(launch.operation));
    }
    let spatial = out.shape().len() - 2;
    let job = Resample { axes, args, spatial, batch: out.shape()[0], from, to };
    let scratch = Shared(launch.workspace.pointer().cast());
    match from.is_last() && to.is_last() && !out.layout().is_contiguous() {
        true => job.backward::<BLOCK>(scratch, parallel::threads()),
        false => job.backward::<1>(scratch, parallel::threads()),
    }
    Ok(())
}
