//! Resampling of one to three spatial dimensions: nearest, linear, cubic and by area. Every output
//! is a weighted sum over a few places along each dimension; backward adds the gradient back to the
//! same places. A plane is one thread's, so gradients are the same bits in every run.

use plimsoll_core::{DType, Error, Result};

use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::{CpuLaunch, Element, input_dtype, match_float, parallel};

use crate::rows::{operand, row_major};

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

/// `x` -> x at other sizes; both are [batch, channels, 1 to 3 spatial dimensions], row-major.
pub fn interpolate(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    if input_dtype(launch)? == DType::U8 {
        return bytes(launch, args);
    }
    match_float!(launch, input_dtype(launch)?, T => forward::<T>(launch, args))
}

fn forward<T: Float>(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    let (x, out) = (operand(launch, launch.inputs, 0)?, operand(launch, launch.outputs, 0)?);
    let (from, to) = (row_major::<T>(launch, &x)?, row_major::<T>(launch, &out)?);
    let (axes, planes) = axes::<T::Wide>(args, x.shape(), out.shape());
    let (inputs, outputs) = (lengths(axes)[0], lengths(axes)[1]);
    let spatial = x.shape().len() - 2;
    parallel::split(planes, (GRAIN / (4 * outputs).max(1)).max(1), |range| {
        for index in range {
            let (mut at, mut sum) = (0, T::Wide::ZERO);
            // SAFETY: places of the plane's own elements.
            unsafe {
                plane(axes, args, spatial, |out, place, weight| {
                    if out != at {
                        *to.add(index * outputs + at) = T::narrow(sum);
                        (at, sum) = (out, T::Wide::ZERO);
                    }
                    sum = sum + (*from.add(index * inputs + place)).widen() * weight;
                });
                if outputs > 0 {
                    *to.add(index * outputs + at) = T::narrow(sum);
                }
            }
        }
    });
    Ok(())
}

/// Bytes are computed in single precision, rounded and kept in range.
fn bytes(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    let (x, out) = (operand(launch, launch.inputs, 0)?, operand(launch, launch.outputs, 0)?);
    let (from, to) = (row_major::<u8>(launch, &x)?, row_major::<u8>(launch, &out)?);
    let (axes, planes) = axes::<f32>(args, x.shape(), out.shape());
    let (inputs, outputs) = (lengths(axes)[0], lengths(axes)[1]);
    let spatial = x.shape().len() - 2;
    for index in 0..planes {
        let (mut at, mut sum) = (0, 0.0f32);
        let write = |at: usize, sum: f32| {
            // SAFETY: a place of the plane's own outputs.
            unsafe { *to.add(index * outputs + at) = (sum + 0.5).floor().clamp(0.0, 255.0) as u8 };
        };
        plane(axes, args, spatial, |out, place, weight| {
            if out != at {
                write(at, sum);
                (at, sum) = (out, 0.0);
            }
            // SAFETY: a place of the plane's own inputs.
            sum += f32::from(unsafe { *from.add(index * inputs + place) }) * weight;
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
/// thread.
pub fn interpolate_backward_workspace_bytes(dtype: DType, shape: &[usize]) -> usize {
    let plane: usize = shape[2..].iter().product();
    let wide = if dtype == DType::F64 { 8 } else { 4 };
    parallel::threads() * (plane * wide).next_multiple_of(64)
}

fn backward<T: Float>(launch: &CpuLaunch<'_>, args: InterpolateArgs) -> Result<()> {
    let (grad, out) = (operand(launch, launch.inputs, 0)?, operand(launch, launch.outputs, 0)?);
    let (from, to) = (row_major::<T>(launch, &grad)?, row_major::<T>(launch, &out)?);
    let (axes, planes) = axes::<T::Wide>(args, out.shape(), grad.shape());
    let (inputs, outputs) = (lengths(axes)[0], lengths(axes)[1]);
    let bytes = interpolate_backward_workspace_bytes(out.dtype(), out.shape());
    if launch.workspace.bytes() < bytes {
        return Err(Error::invalid_argument("the kernel needs a workspace of a plane a thread")
            .in_operation(launch.operation));
    }
    let spatial = out.shape().len() - 2;
    let threads = parallel::threads();
    let scratch = plimsoll_engine::shared::Shared(launch.workspace.pointer());
    parallel::fork(threads, |part| {
        // SAFETY: each part has its own piece of the workspace.
        let sums = unsafe { scratch.add(part * (bytes / threads)) }.cast::<T::Wide>();
        for index in parallel::part_range(planes, threads, part) {
            // SAFETY: this part's scratch, and the plane's own elements.
            unsafe {
                std::slice::from_raw_parts_mut(sums, inputs).fill(T::Wide::ZERO);
                plane(axes, args, spatial, |out, place, weight| {
                    let slope = (*from.add(index * outputs + out)).widen() * weight;
                    *sums.add(place) = *sums.add(place) + slope;
                });
                for place in 0..inputs {
                    *to.add(index * inputs + place) = T::narrow(*sums.add(place));
                }
            }
        }
    });
    Ok(())
}
