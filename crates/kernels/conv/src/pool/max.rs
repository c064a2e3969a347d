//! The largest element of each window, and where it is. A NaN counts as the largest.

use plimsoll_core::Result;
use plimsoll_engine::number::Number;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Operand, input_dtype, match_dtype};

use super::window::{LANES, Lanes, Pooling, Sample, Window};
use crate::volume::Volume;

/// Input `x`; outputs `y` or [y, places], int64 places in a row-major channel of x.
pub fn max_pool(launch: &CpuLaunch<'_>, windows: [Window; 3]) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => run::<T>(launch, windows, None));
    Ok(())
}

/// Inputs [x, samples]; outputs as [`max_pool`]'s. The samples, [batch, channels, dimensions], of
/// x's dtype, shift the windows of each channel; `order` says which of them is each dimension's.
pub fn max_pool_fractional(
    launch: &CpuLaunch<'_>,
    windows: [Window; 3],
    order: [usize; 3],
) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => run::<T>(launch, windows, Some(order)));
    Ok(())
}

fn run<T: Number>(launch: &CpuLaunch<'_>, windows: [Window; 3], order: Option<[usize; 3]>) {
    let (x, y) = (&launch.inputs[0], &launch.outputs[0]);
    let job = Job::<T> {
        pooling: Pooling::new(Volume::of(x.meta()), Volume::of(y.meta()), windows),
        x: x.first(),
        y: y.first(),
        places: launch.outputs.get(1).map(|places| (places.first(), Volume::of(places.meta()))),
        samples: order.map(|order| (launch.inputs[1], order)),
    };
    job.pooling.each(|lanes| simd::dispatch_level(SideBySide(&job, lanes)));
}

/// One pooling.
struct Job<'a, T> {
    pooling: Pooling,
    x: *const T,
    y: *mut T,
    places: Option<(*mut i64, Volume)>,
    samples: Option<(Operand<'a>, [usize; 3])>,
}

// SAFETY: addresses; what is done with them happens under the launch's claim, and threads write
// disjoint results.
unsafe impl<T> Send for Job<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Job<'_, T> {}

impl<T: Number> Job<'_, T> {
    /// The samples of a channel, by dimension.
    fn samples(&self, lanes: &Lanes) -> [Sample; 3] {
        let Some((operand, order)) = &self.samples else { return [Sample::None; 3] };
        let strides = operand.layout().strides();
        order.map(|at| {
            let at = lanes.image * strides[0] + lanes.channel * strides[1] + at * strides[2];
            // SAFETY: a sample of the channel, of x's dtype.
            let sample = unsafe { *operand.first::<T>().add(at) };
            match T::DTYPE {
                plimsoll_core::DType::F64 => Sample::Double(sample.as_f64()),
                _ => Sample::Single(sample.as_f32()),
            }
        })
    }
}

struct SideBySide<'a, 'b, T>(&'a Job<'b, T>, Lanes);

impl<T: Number> LevelKernel for SideBySide<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let SideBySide(job, lanes) = self;
        let pooling = &job.pooling;
        let samples = job.samples(&lanes);
        let mut best = [T::Compute::LOWEST; LANES];
        let mut places = [0i64; LANES];
        if job.places.is_some() {
            for (lane, place) in places.iter_mut().enumerate().take(lanes.count) {
                *place = pooling.first_index(&lanes, lane, samples) as i64;
            }
        }
        pooling.taps(&lanes, samples, |tap| {
            let (best, places) = (&mut best[tap.lanes.clone()], &mut places[tap.lanes]);
            let mut index = tap.index as i64;
            for (lane, (best, place)) in best.iter_mut().zip(places).enumerate() {
                // SAFETY: the lane's window has this element.
                let value = unsafe { *job.x.add(tap.from + lane * tap.stride) }.up();
                let larger = best.below(value) | value.is_nan();
                *best = if larger { value } else { *best };
                *place = if larger { index } else { *place };
                index += tap.index_step as i64;
            }
        });
        let (at, step) = pooling.result(&pooling.y, &lanes);
        for (lane, &value) in best.iter().enumerate().take(lanes.count) {
            // SAFETY: the lane's result, which is this thread's.
            unsafe { *job.y.add(at + lane * step) = T::down(value) };
        }
        if let Some((to, volume)) = &job.places {
            let (at, step) = pooling.result(volume, &lanes);
            for (lane, &place) in places.iter().enumerate().take(lanes.count) {
                // SAFETY: as above.
                unsafe { *to.add(at + lane * step) = place };
            }
        }
    }
}
