//! Which elements of an operand an element of the result looks at, along one dimension.
//!
//! Forward, result `t` looks at `t * stride + k * dilation - padding` for each tap `k` of the
//! kernel. Backward, `x[i]` looks at those gradients whose windows it was in: `(i + padding - k *
//! dilation) / stride`, where that is whole. Which taps those are depends on `i` modulo the stride
//! alone, so backward is one forward-like line for each such phase, with part of the taps each.

/// The results of one phase along a dimension, and their taps, ascending by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Result `t` of the phase is element `first + t * step`.
    pub(super) first: usize,
    pub(super) step: usize,
    /// Results of the phase.
    pub(super) len: usize,
    /// Result `t` looks at `t * pace + offset + j * apart` for each of its `taps` taps `j`.
    pub(super) pace: usize,
    pub(super) taps: usize,
    pub(super) offset: isize,
    pub(super) apart: usize,
    /// Tap `j` is element `kernel_first + j * kernel_step` of the kernel.
    pub(super) kernel_first: usize,
    pub(super) kernel_step: isize,
}

/// One dimension of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    /// Elements of the kernel.
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    pub(super) dilation: usize,
    /// Elements of the result.
    pub(super) results: usize,
    pub(super) backward: bool,
}

impl Dimension {
    pub(super) fn phases(&self) -> usize {
        if self.backward { self.stride.min(self.results).max(1) } else { 1 }
    }

    /// Results of the longest phase.
    pub(super) fn longest(&self) -> usize {
        if self.backward { self.results.div_ceil(self.stride) } else { self.results }
    }

    pub(super) fn line(&self, phase: usize) -> Line {
        if self.backward { self.backward_line(phase) } else { self.forward_line() }
    }

    fn forward_line(&self) -> Line {
        Line {
            first: 0,
            step: 1,
            len: self.results,
            pace: self.stride,
            taps: self.kernel,
            offset: -(self.padding as isize),
            apart: self.dilation,
            kernel_first: 0,
            kernel_step: 1,
        }
    }

    fn backward_line(&self, phase: usize) -> Line {
        let Dimension { kernel, stride, padding, dilation, results, .. } = *self;
        let common = gcd(dilation, stride);
        let (cycle, apart) = (stride / common, dilation / common);
        // The first tap of the phase, and how many follow it, a cycle apart.
        let meets = |k: usize| (phase + padding) % stride == k * dilation % stride;
        let first = (0..kernel.min(cycle)).find(|&k| meets(k));
        let taps = first.map_or(0, |first| (kernel - 1 - first) / cycle + 1);
        let last = first.unwrap_or(0) + taps.saturating_sub(1) * cycle;
        let place = (phase + padding) as isize - (last * dilation) as isize;
        Line {
            first: phase,
            step: stride,
            len: results.saturating_sub(phase).div_ceil(stride),
            pace: 1,
            taps,
            offset: place.div_euclid(stride as isize),
            apart,
            kernel_first: last,
            kernel_step: -(cycle as isize),
        }
    }

    /// Taps of the phases before this one.
    pub(super) fn taps_before(&self, phase: usize) -> usize {
        (0..phase).map(|phase| self.line(phase).taps).sum()
    }

    /// Taps of all phases: fewer than the kernel has where no result reaches some.
    pub(super) fn all_taps(&self) -> usize {
        self.taps_before(self.phases())
    }

    /// The most taps that a phase has.
    pub(super) fn most_taps(&self) -> usize {
        (0..self.phases()).map(|phase| self.line(phase).taps).max().unwrap_or(0)
    }
}

impl Line {
    /// The element of the operand that result `t` looks at through tap `j`, if it is one of `size`.
    #[inline]
    pub(super) fn place(&self, t: usize, j: usize, size: usize) -> Option<usize> {
        let place = (t * self.pace + j * self.apart) as isize + self.offset;
        usize::try_from(place).ok().filter(|&place| place < size)
    }

    /// The results from `start` to `end` that look at one of `size` elements through tap `j`.
    #[inline]
    pub(super) fn inside(
        &self,
        j: usize,
        size: usize,
        start: usize,
        end: usize,
    ) -> std::ops::Range<usize> {
        let shift = self.offset + (j * self.apart) as isize;
        // The first t with t * pace + shift >= 0, and the first with t * pace + shift >= size.
        let reaches = |bound: isize| {
            let distance = bound - shift;
            if distance <= 0 { 0 } else { (distance as usize).div_ceil(self.pace) }
        };
        let from = reaches(0).clamp(start, end);
        from..reaches(size as isize).clamp(from, end)
    }

    /// The element of the kernel that tap `j` is.
    #[inline]
    pub(super) fn kernel(&self, j: usize) -> usize {
        (self.kernel_first as isize + j as isize * self.kernel_step) as usize
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair (result, operand, tap) of a dimension.
    fn pairs(of: Dimension, operands: usize) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for phase in 0..of.phases() {
            let line = of.line(phase);
            for t in 0..line.len {
                for j in 0..line.taps {
                    let place = line.place(t, j, operands);
                    assert_eq!(place.is_some(), line.inside(j, operands, 0, line.len).contains(&t));
                    found.extend(place.map(|p| (line.first + t * line.step, p, line.kernel(j))));
                }
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn backward_looks_back_along_the_same_pairs() {
        for (kernel, stride, padding, dilation) in
            [(3, 1, 1, 1), (3, 2, 1, 1), (1, 3, 0, 1), (4, 2, 3, 3), (2, 4, 1, 2), (5, 3, 2, 2)]
        {
            let size = 13;
            let windows = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
            let forward =
                Dimension { kernel, stride, padding, dilation, results: windows, backward: false };
            let backward = Dimension { results: size, backward: true, ..forward };
            let mut there: Vec<_> =
                pairs(forward, size).into_iter().map(|(y, x, k)| (x, y, k)).collect();
            there.sort_unstable();
            assert_eq!(pairs(backward, windows), there);
            assert!(backward.all_taps() <= kernel);
        }
    }

    #[test]
    fn taps_go_up() {
        let of =
            Dimension { kernel: 3, stride: 1, padding: 1, dilation: 1, results: 5, backward: true };
        let line = of.line(0);
        assert_eq!((line.offset, line.apart, line.kernel(0), line.kernel(2)), (-1, 1, 2, 0));
    }
}
