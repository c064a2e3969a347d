//! The pixels along one dimension that a sample is made of, and how much of each: the modes, what
//! lies beyond the image, and the derivatives of the weights.

use plimsoll_core::{Error, Result};

use plimsoll_engine::real::Real;

/// How places between pixels are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridMode {
    /// Between two pixels along each dimension.
    Linear,
    /// By the nearest pixel.
    Nearest,
    /// By a cubic through four pixels along each dimension.
    Cubic,
}

/// What lies beyond the outermost pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridPadding {
    /// Zeros.
    Zeros,
    /// The outermost pixel.
    Border,
    /// The image, mirrored.
    Reflection,
}

impl std::str::FromStr for GridMode {
    type Err = Error;

    fn from_str(word: &str) -> Result<GridMode> {
        match word {
            "bilinear" => Ok(GridMode::Linear),
            "nearest" => Ok(GridMode::Nearest),
            "bicubic" => Ok(GridMode::Cubic),
            _ => Err(Error::invalid_argument(format!(
                "the mode is \"bilinear\", \"nearest\" or \"bicubic\", and not {word:?}"
            ))),
        }
    }
}

impl std::str::FromStr for GridPadding {
    type Err = Error;

    fn from_str(word: &str) -> Result<GridPadding> {
        match word {
            "zeros" => Ok(GridPadding::Zeros),
            "border" => Ok(GridPadding::Border),
            "reflection" => Ok(GridPadding::Reflection),
            _ => Err(Error::invalid_argument(format!(
                "the padding is \"zeros\", \"border\" or \"reflection\", and not {word:?}"
            ))),
        }
    }
}

/// What the kernels go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridArgs {
    /// How places between pixels are filled.
    pub mode: GridMode,
    /// What lies beyond.
    pub padding: GridPadding,
    /// Whether -1 and 1 are the centres of the outermost pixels, and not their edges.
    pub align_corners: bool,
    /// Whether weights are differentiated along a direction, the last operand.
    pub directed: bool,
}

/// A pixel's part along one dimension: its weight, and the first and second derivative of that by
/// the grid.
#[derive(Clone, Copy)]
pub(super) struct Tap<R> {
    pub(super) place: usize,
    pub(super) weight: R,
    pub(super) slope: R,
    pub(super) curve: R,
}

/// The pixels along one dimension that a sample is made of; those outside are left away.
#[derive(Clone, Copy)]
pub(super) struct Taps<R> {
    pub(super) taps: [Tap<R>; 4],
    pub(super) count: usize,
}

impl<R: Real> Taps<R> {
    /// Of a dimension that is not there.
    pub(super) fn through() -> Taps<R> {
        let tap = Tap { place: 0, weight: R::ONE, slope: R::ZERO, curve: R::ZERO };
        Taps { taps: [tap; 4], count: 1 }
    }

    #[inline(always)]
    fn push(&mut self, place: R, size: usize, [weight, slope, curve]: [R; 3]) {
        let place = place.to_f64();
        if place >= 0.0 && place < size as f64 {
            self.taps[self.count] = Tap { place: place as usize, weight, slope, curve };
            self.count += 1;
        }
    }
}

/// A place brought inside, and the factor that this has on slopes.
#[inline(always)]
fn inside<R: Real>(args: GridArgs, at: R, size: usize) -> (R, R) {
    let last = R::of(size as f64 - 1.0);
    let (mut at, mut factor) = (at, R::ONE);
    if args.padding == GridPadding::Zeros {
        return (at, factor);
    }
    if args.padding == GridPadding::Reflection {
        let (low, span) = match args.align_corners {
            true => (R::ZERO, last),
            false => (R::of(-0.5), R::of(size as f64)),
        };
        if span == R::ZERO {
            return (R::ZERO, R::ZERO);
        }
        at = at - low;
        if at < R::ZERO {
            (at, factor) = (-at, -factor);
        }
        let flips = (at / span).floor().to_f64() as i64;
        let rest = at.remainder(span);
        if flips % 2 == 0 {
            at = rest + low;
        } else {
            (at, factor) = (span - rest + low, -factor);
        }
    }
    if at > R::ZERO && at < last {
        (at, factor)
    } else {
        // What is no number counts as the first pixel.
        (if at >= last && at > R::ZERO { last } else { R::ZERO }, R::ZERO)
    }
}

/// The convolution of Keys with slope -0.75 at distance 1 for the four pixels around `t`, with its
/// derivatives.
#[inline(always)]
fn cubic<R: Real>(t: R) -> [[R; 3]; 4] {
    let of = R::of;
    let a = of(-0.75);
    let near = |x: R, sign: R| {
        let (p, q) = (a + of(2.0), a + of(3.0));
        let slope = (of(3.0) * p * x - of(2.0) * q) * x;
        [(p * x - q) * x * x + R::ONE, sign * slope, of(6.0) * p * x - of(2.0) * q]
    };
    let far = |x: R, sign: R| {
        let slope = (of(3.0) * a * x - of(10.0) * a) * x + of(8.0) * a;
        let weight = ((a * x - of(5.0) * a) * x + of(8.0) * a) * x - of(4.0) * a;
        [weight, sign * slope, of(6.0) * a * x - of(10.0) * a]
    };
    let (one, two) = (R::ONE, of(2.0));
    [far(t + one, one), near(t, one), near(one - t, -one), far(two - t, -one)]
}

/// The pixels along a dimension of `size` pixels for a place of the grid.
#[inline(always)]
pub(super) fn taps<R: Real>(args: GridArgs, grid: R, size: usize) -> Taps<R> {
    let (one, half, pixels) = (R::ONE, R::of(0.5), R::of(size as f64));
    let (mut at, mut scale) = match args.align_corners {
        true => ((grid + one) * half * (pixels - one), (pixels - one) * half),
        false => (((grid + one) * pixels - one) * half, pixels * half),
    };
    if args.mode != GridMode::Cubic {
        let (place, factor) = inside(args, at, size);
        (at, scale) = (place, scale * factor);
    }
    // A place that is no number, or far away, is outside.
    if at.is_nan() || at.abs() >= R::of(2147483648.0) {
        at = R::of(-100.0);
    }
    let mut taps = Taps { count: 0, ..Taps::through() };
    let floor = at.floor();
    match args.mode {
        GridMode::Nearest => taps.push(at.round_even(), size, [one, R::ZERO, R::ZERO]),
        GridMode::Linear => {
            let part = at - floor;
            taps.push(floor, size, [one - part, -scale, R::ZERO]);
            taps.push(floor + one, size, [part, scale, R::ZERO]);
        }
        GridMode::Cubic => {
            let parts = cubic(at - floor);
            for (index, [weight, slope, curve]) in parts.into_iter().enumerate() {
                let place = floor + R::of(index as f64 - 1.0);
                let (place, _) = inside(args, place, size);
                taps.push(place, size, [weight, slope * scale, curve * scale * scale]);
            }
        }
    }
    taps
}
