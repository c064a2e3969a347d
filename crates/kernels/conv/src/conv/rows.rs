//! Rows of elements as the narrow kernels go through them: a start and a stride, widened on the
//! way.

use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::simd::Level;

/// Elements that lie evenly apart.
#[derive(Clone, Copy)]
pub(super) struct Row<E> {
    pub(super) first: *const E,
    pub(super) stride: usize,
}

/// Sums that are made side by side.
pub(super) const LANES: usize = 16;

impl<E: Factor> Row<E> {
    /// The row from its element `at` on.
    ///
    /// # Safety
    /// The row has that element.
    #[inline(always)]
    pub(super) unsafe fn from(self, at: usize) -> Row<E> {
        // SAFETY: by the contract above.
        Row { first: unsafe { self.first.add(at * self.stride) }, stride: self.stride }
    }

    #[inline(always)]
    unsafe fn get(self, at: usize) -> E::Sum {
        // SAFETY: the callers' contracts.
        unsafe { *self.first.add(at * self.stride) }.widen()
    }

    /// `sums`i` += factor * self`i``.
    ///
    /// # Safety
    /// The row has as many elements as there are sums.
    #[inline(always)]
    pub(super) unsafe fn add_times<L: Level>(self, factor: E::Sum, sums: &mut [E::Sum]) {
        if self.stride == 1 {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: by the contract above.
                let x = unsafe { *self.first.add(i) }.widen();
                *sum = x.multiply_add::<L>(factor, *sum);
            }
            return;
        }
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: by the contract above.
            *sum = unsafe { self.get(i) }.multiply_add::<L>(factor, *sum);
        }
    }

    /// `sums`i` += factors[0] * self`i` + factors[1] * self[i + 1] + factors[2] * self[i + 2]`.
    ///
    /// # Safety
    /// The row is dense and has two elements more than there are sums.
    #[inline(always)]
    pub(super) unsafe fn add_three<L: Level>(self, factors: [E::Sum; 3], sums: &mut [E::Sum]) {
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: by the contract above.
            let [a, b, c] = [0, 1, 2].map(|k| unsafe { *self.first.add(i + k) }.widen());
            let two = b.multiply_add::<L>(factors[1], a.multiply_add::<L>(factors[0], *sum));
            *sum = c.multiply_add::<L>(factors[2], two);
        }
    }

    /// `lanes[i % LANES] += self`i` * other`i`` for `len` elements.
    ///
    /// # Safety
    /// Both rows have that many elements.
    #[inline(always)]
    pub(super) unsafe fn dot<L: Level>(
        self,
        other: Row<E>,
        len: usize,
        lanes: &mut [E::Sum; LANES],
    ) {
        let whole = if self.stride == 1 && other.stride == 1 { len / LANES * LANES } else { 0 };
        // SAFETY: by the contract above.
        unsafe {
            for start in (0..whole).step_by(LANES) {
                for (lane, sum) in lanes.iter_mut().enumerate() {
                    let a = (*self.first.add(start + lane)).widen();
                    let b = (*other.first.add(start + lane)).widen();
                    *sum = a.multiply_add::<L>(b, *sum);
                }
            }
            for at in whole..len {
                let sum = &mut lanes[at % LANES];
                *sum = self.get(at).multiply_add::<L>(other.get(at), *sum);
            }
        }
    }
}
