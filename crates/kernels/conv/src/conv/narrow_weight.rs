//! The weight's derivative where groups have a few channels: for each tap the dot product of the
//! gradient with what its windows saw, row by row. Threads take channels of the gradient, so that
//! each sum is one thread's, in one order.

use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::parallel;
use plimsoll_engine::simd::{self, Level, LevelKernel};

use super::rows::{LANES, Row};
use super::weight::{Operands, WeightGradient};

/// Taps whose sums are made at once.
const TAPS: usize = 16;

/// Computes.
///
/// # Safety
/// As for `WeightGradient::run`.
pub(super) unsafe fn run<E: Factor>(of: &WeightGradient, operands: &Operands<E>) {
    parallel::split_dynamic(of.grad.channels, 1, |range| {
        for channel in range {
            simd::dispatch_level(Channel { of, operands, channel });
        }
    });
}

/// The weights of one channel of the gradient.
struct Channel<'a, E> {
    of: &'a WeightGradient,
    operands: &'a Operands<E>,
    channel: usize,
}

impl<E: Factor> LevelKernel for Channel<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Channel { of, operands, channel } = self;
        let group = channel / of.grads_each;
        let taps: usize = of.weight.sizes.iter().product();
        for own in 0..of.channels_each {
            for start in (0..taps).step_by(TAPS) {
                let count = TAPS.min(taps - start);
                let mut lanes = [[E::Sum::ZERO; LANES]; TAPS];
                for image in 0..of.x.batch {
                    let x = of.x.at(image, group * of.channels_each + own);
                    let grad = of.grad.at(image, channel);
                    for (tap, lanes) in lanes.iter_mut().enumerate().take(count) {
                        self.tap::<L>(start + tap, x, grad, lanes);
                    }
                }
                for (tap, lanes) in lanes.iter().enumerate().take(count) {
                    let sum = lanes.iter().fold(E::Sum::ZERO, |sum, &lane| sum.add(lane));
                    let at = of.weight.at(channel, own) + self.place(start + tap);
                    // SAFETY: a weight of this channel, which is this thread's.
                    unsafe { *operands.weight.add(at) = E::narrow(sum) };
                }
            }
        }
    }
}

impl<E: Factor> Channel<'_, E> {
    /// The taps along each dimension that `tap` is.
    #[inline(always)]
    fn taps(&self, tap: usize) -> [usize; 3] {
        let [_, high, wide] = self.of.weight.sizes;
        [tap / wide / high, tap / wide % high, tap % wide]
    }

    #[inline(always)]
    fn place(&self, tap: usize) -> usize {
        let taps = self.taps(tap);
        (0..3).map(|d| taps[d] * self.of.weight.strides[d]).sum()
    }

    /// What one image adds to one tap.
    #[inline(always)]
    fn tap<L: Level>(&self, tap: usize, x: usize, grad: usize, lanes: &mut [E::Sum; LANES]) {
        let Channel { of, operands, .. } = *self;
        let [j, k, l] = self.taps(tap);
        let [depth, height, width] = &of.lines;
        let inside = width.inside(l, of.x.sizes[2], 0, of.grad.sizes[2]);
        if inside.is_empty() {
            return;
        }
        let first = (inside.start * width.pace + l * width.apart) as isize + width.offset;
        let stride = width.pace * of.x.strides[2];
        for plane in 0..of.grad.sizes[0] {
            let Some(at_plane) = depth.place(plane, j, of.x.sizes[0]) else { continue };
            for row in 0..of.grad.sizes[1] {
                let Some(at_row) = height.place(row, k, of.x.sizes[1]) else { continue };
                let x = x + of.x.row(at_plane, at_row) + first as usize * of.x.strides[2];
                let grad = grad + of.grad.row(plane, row) + inside.start * of.grad.strides[2];
                // SAFETY: rows of both operands, as long as windows look inside.
                unsafe {
                    let x = Row { first: operands.x.add(x), stride };
                    let grad = Row { first: operands.grad.add(grad), stride: of.grad.strides[2] };
                    grad.dot::<L>(x, inside.len(), lanes);
                }
            }
        }
    }
}
