//! Do two layouts over one storage share an element? Writes need the answer: an output may be
//! exactly an input, and must otherwise not touch one.
//!
//! Elements of `a` lie at `a.offset + sum(i * stride)`, those of `b` likewise, so they meet iff the
//! difference of the offsets is a sum of bounded multiples of all the strides. Strides are tried
//! from the largest; at each only the few multiples are possible from which the smaller strides can
//! still reach the rest.

use smallvec::SmallVec;

use crate::Layout;

/// A stride and the range of its multiple, `low..=high`.
type Term = (i128, i128, i128);

/// Layouts made to be hard (many equal strides) end in a conservative "yes" after this many steps.
const STEPS: usize = 10_000;

impl Layout {
    /// Whether some element of `self` is also an element of `other`, both over the same storage.
    ///
    /// ```
    /// use plimsoll_core::Layout;
    /// let x = Layout::contiguous(&[4, 4]).unwrap();
    /// let left = x.narrow(1, 0, 2).unwrap();
    /// let right = x.narrow(1, 2, 2).unwrap();
    /// assert!(!left.overlaps(&right));
    /// assert!(left.overlaps(&x.narrow(1, 1, 2).unwrap()));
    /// ```
    pub fn overlaps(&self, other: &Layout) -> bool {
        self.overlaps_as(1, other, 1)
    }

    /// Whether some byte of `self`, whose elements have `own` bytes, is also a byte of `other`,
    /// whose elements have `others`: a view of another dtype counts its storage in other units.
    ///
    /// ```
    /// use plimsoll_core::Layout;
    /// let doubles = Layout::contiguous(&[8]).unwrap().narrow(0, 4, 4).unwrap(); // bytes 32..64
    /// let bytes = Layout::contiguous(&[64]).unwrap();
    /// assert!(doubles.overlaps_as(8, &bytes.narrow(0, 63, 1).unwrap(), 1));
    /// assert!(!doubles.overlaps_as(8, &bytes.narrow(0, 4, 28).unwrap(), 1));
    /// ```
    pub fn overlaps_as(&self, own: usize, other: &Layout, others: usize) -> bool {
        if self.numel() == 0 || other.numel() == 0 {
            return false;
        }
        // Where all elements are of one size and start at its multiples, they meet whole.
        let (own, others) = if own == others { (1, 1) } else { (own as i128, others as i128) };
        let mut terms: SmallVec<[Term; 12]> = SmallVec::new();
        for (&size, &stride) in self.shape().iter().zip(self.strides()) {
            terms.push((stride as i128 * own, -(size as i128 - 1), 0));
        }
        for (&size, &stride) in other.shape().iter().zip(other.strides()) {
            terms.push((stride as i128 * others, 0, size as i128 - 1));
        }
        // The bytes of an element of each.
        terms.push((1, -(own - 1), others - 1));
        terms.retain(|&mut (stride, low, high)| stride != 0 && (low, high) != (0, 0));
        terms.sort_by_key(|&(stride, ..)| std::cmp::Reverse(stride));
        let mut steps = STEPS;
        let apart = self.offset() as i128 * own - other.offset() as i128 * others;
        reaches(&terms, apart, &mut steps)
    }
}

/// Whether `target` is a sum of one allowed multiple of each term.
fn reaches(terms: &[Term], target: i128, steps: &mut usize) -> bool {
    let Some((&(stride, low, high), rest)) = terms.split_first() else {
        return target == 0;
    };
    if *steps == 0 {
        return true;
    }
    *steps -= 1;
    let rest_low: i128 = rest.iter().map(|&(stride, low, _)| stride * low).sum();
    let rest_high: i128 = rest.iter().map(|&(stride, _, high)| stride * high).sum();
    // Only multiples with rest_low <= target - multiple * stride <= rest_high can work.
    let first = low.max((target - rest_high + stride - 1).div_euclid(stride));
    let last = high.min((target - rest_low).div_euclid(stride));
    (first..=last).any(|multiple| reaches(rest, target - multiple * stride, steps))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::Dims;

    fn positions(layout: &Layout) -> HashSet<usize> {
        let mut all = HashSet::from([layout.offset()]);
        for (&size, &stride) in layout.shape().iter().zip(layout.strides()) {
            all = (0..size).flat_map(|i| all.iter().map(move |p| p + i * stride)).collect();
        }
        all
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        (proptest::collection::vec((0usize..4, 0usize..9), 0..4), 0usize..20).prop_map(
            |(dims, offset)| {
                let shape: Dims = dims.iter().map(|d| d.0).collect();
                let strides: Dims = dims.iter().map(|d| d.1).collect();
                Layout::strided(&shape, &strides, offset).unwrap()
            },
        )
    }

    // Without a file for failures, and with fewer cases, miri runs it too.
    const CASES: u32 = if cfg!(miri) { 8 } else { 256 };

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: CASES, failure_persistence: None, ..ProptestConfig::default()
        })]

        #[test]
        fn agrees_with_listing_the_elements(a in layouts(), b in layouts()) {
            let shared = !positions(&a).is_disjoint(&positions(&b));
            prop_assert_eq!(a.overlaps(&b), shared);
            prop_assert_eq!(b.overlaps(&a), shared);
        }

        #[test]
        fn agrees_with_listing_the_bytes(
            a in layouts(), b in layouts(), own in 0usize..4, others in 0usize..4
        ) {
            let (own, others) = (1 << own, 1 << others);
            let bytes = |layout: &Layout, size: usize| -> HashSet<usize> {
                positions(layout).iter().flat_map(|p| p * size..(p + 1) * size).collect()
            };
            let shared = !bytes(&a, own).is_disjoint(&bytes(&b, others));
            prop_assert_eq!(a.overlaps_as(own, &b, others), shared);
            prop_assert_eq!(b.overlaps_as(others, &a, own), shared);
        }
    }
}
