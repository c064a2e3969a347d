//! Windows of channels, and going through them: results that lie side by side (of one row, or of
//! neighbouring channels where those are contiguous) are made at once, tap by tap.

use std::ops::Range;

use plimsoll_engine::parallel;

use crate::volume::Volume;

/// The windows along one dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Window {
    /// Of one size, evenly apart.
    Even {
        /// Elements of a window.
        kernel: usize,
        /// From one window to the next.
        stride: usize,
        /// What lies before the first element.
        padding: usize,
        /// From one element of a window to the next.
        dilation: usize,
    },
    /// As many as there are results, sharing out the elements.
    Adaptive,
    /// Of one size, from a place to `from` that grows by `alpha` a result, rounded down: fractional
    /// pooling.
    Fractional {
        /// Elements of a window.
        kernel: usize,
    },
}

impl Window {
    /// One element to a window: of a dimension that there is not.
    pub const NONE: Window = Window::Even { kernel: 1, stride: 1, padding: 0, dilation: 1 };

    /// The elements of window `result` of `results` over `size` elements: the first, how many, and
    /// how far apart, all inside. `sample` shifts fractional windows.
    #[inline(always)]
    pub(super) fn inside(
        self,
        result: usize,
        results: usize,
        size: usize,
        sample: Sample,
    ) -> (usize, usize, usize) {
        match self {
            Window::Even { kernel, stride, padding, dilation } => {
                let at = result * stride;
                let skipped = padding.saturating_sub(at).div_ceil(dilation);
                let first = (at + skipped * dilation).saturating_sub(padding);
                let room = size.saturating_sub(first).div_ceil(dilation);
                (first, kernel.saturating_sub(skipped).min(room), dilation)
            }
            Window::Adaptive => {
                let first = (result as u128 * size as u128 / results as u128) as usize;
                let end = ((result as u128 + 1) * size as u128).div_ceil(results as u128) as usize;
                (first, end - first, 1)
            }
            Window::Fractional { kernel } => {
                (sample.first(result, results, size, kernel), kernel, 1)
            }
        }
    }
}

/// The random number of a fractional window, in the precision that its places are computed in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sample {
    /// Of windows that are not fractional.
    None,
    Single(f32),
    Double(f64),
}

impl Sample {
    /// Where window `result` starts.
    fn first(self, result: usize, results: usize, size: usize, kernel: usize) -> usize {
        let room = size.saturating_sub(kernel);
        if result + 1 >= results {
            return room;
        }
        // Samples are the user's, and may be negative.
        let at = match self {
            Sample::None => 0,
            Sample::Single(sample) => {
                let alpha = room as f32 / (results - 1) as f32;
                (((result as f32 + sample) * alpha) as i64).wrapping_sub((sample * alpha) as i64)
            }
            Sample::Double(sample) => {
                let alpha = room as f64 / (results - 1) as f64;
                (((result as f64 + sample) * alpha) as i64).wrapping_sub((sample * alpha) as i64)
            }
        };
        at.clamp(0, room as i64) as usize
    }
}

/// Results that are made at once, at most.
pub(super) const LANES: usize = 128;

/// A pooling's sizes: x, its results, its windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pooling {
    pub(super) x: Volume,
    pub(super) y: Volume,
    pub(super) windows: [Window; 3],
    /// Whether neighbouring channels are made at once, instead of a row's elements.
    across: bool,
    runs: usize,
}

/// Results that are made at once: elements of a row of a channel, or channels of an element.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub(super) image: usize,
    pub(super) channel: usize,
    pub(super) plane: usize,
    pub(super) row: usize,
    pub(super) element: usize,
    pub(super) count: usize,
}

/// What some lanes look at through one tap.
pub(super) struct Tap {
    /// The lanes that look inside.
    pub(super) lanes: Range<usize>,
    /// The place in x that the first of them looks at, and from one to the next.
    pub(super) from: usize,
    pub(super) stride: usize,
    /// The same as places in a row-major channel.
    pub(super) index: usize,
    pub(super) index_step: usize,
}

impl Pooling {
    pub(super) fn new(x: Volume, y: Volume, windows: [Window; 3]) -> Pooling {
        let fractional = windows.iter().any(|window| matches!(window, Window::Fractional { .. }));
        let across = !fractional && x.channel_stride == 1 && x.strides[2] > 1 && x.channels > 1;
        let along = if across { y.channels } else { y.sizes[2] };
        Pooling { x, y, windows, across, runs: along.div_ceil(LANES) }
    }

    /// Calls `body` on all results, some lanes at a time, on several threads.
    pub(super) fn each(&self, body: impl Fn(Lanes) + Sync) {
        let y = &self.y;
        let [planes, rows, elements] = y.sizes;
        let (inner, outer) = if self.across { (elements, 1) } else { (1, y.channels) };
        let units = y.batch * outer * planes * rows * inner * self.runs;
        let lanes = if self.across { y.channels } else { elements };
        let work = self.windows.map(|window| match window {
            Window::Even { kernel, .. } | Window::Fractional { kernel } => kernel,
            Window::Adaptive => 4,
        });
        let work = work.iter().product::<usize>().saturating_mul(lanes.min(LANES)).max(1);
        parallel::split(units, (32_768 / work).max(1), |range| {
            for unit in range {
                let (unit, run) = (unit / self.runs, unit % self.runs);
                let (unit, element) = (unit / inner, unit % inner);
                let (unit, row) = (unit / rows, unit % rows);
                let (unit, plane) = (unit / planes, unit % planes);
                let first = run * LANES;
                let count = LANES.min(lanes - first);
                let (channel, element) =
                    if self.across { (first, element) } else { (unit % outer, first) };
                body(Lanes { image: unit / outer, channel, plane, row, element, count });
            }
        });
    }

    /// The place of the first lane's result in a tensor of y's shape, and from one to the next.
    pub(super) fn result(&self, tensor: &Volume, lanes: &Lanes) -> (usize, usize) {
        let at = tensor.at(lanes.image, lanes.channel)
            + tensor.row(lanes.plane, lanes.row)
            + lanes.element * tensor.strides[2];
        (at, if self.across { tensor.channel_stride } else { tensor.strides[2] })
    }

    /// The plane, row and element of a lane's result.
    #[inline(always)]
    pub(super) fn place(&self, lanes: &Lanes, lane: usize) -> [usize; 3] {
        [lanes.plane, lanes.row, lanes.element + if self.across { 0 } else { lane }]
    }

    /// The first element of each lane's window, as a place in a row-major channel.
    pub(super) fn first_index(&self, lanes: &Lanes, lane: usize, samples: [Sample; 3]) -> usize {
        let at = self.place(lanes, lane);
        (0..3).fold(0, |index, d| {
            let (first, ..) =
                self.windows[d].inside(at[d], self.y.sizes[d], self.x.sizes[d], samples[d]);
            index * self.x.sizes[d] + first
        })
    }

    /// Calls `body` on every tap of the lanes' windows, in the order of the elements.
    #[inline(always)]
    pub(super) fn taps(&self, lanes: &Lanes, samples: [Sample; 3], mut body: impl FnMut(Tap)) {
        let (x, y) = (&self.x, &self.y);
        let window =
            |d: usize, at: usize| self.windows[d].inside(at, y.sizes[d], x.sizes[d], samples[d]);
        let (plane, planes, plane_step) = window(0, lanes.plane);
        let (row, rows, row_step) = window(1, lanes.row);
        let channel = x.at(lanes.image, lanes.channel);
        for plane in (0..planes).map(|j| plane + j * plane_step) {
            for row in (0..rows).map(|k| row + k * row_step) {
                let from = channel + x.row(plane, row);
                let index = (plane * x.sizes[1] + row) * x.sizes[2];
                if self.across {
                    let (first, count, step) = window(2, lanes.element);
                    for at in (0..count).map(|l| first + l * step) {
                        body(Tap {
                            lanes: 0..lanes.count,
                            from: from + at * x.strides[2],
                            stride: x.channel_stride,
                            index: index + at,
                            index_step: 0,
                        });
                    }
                } else {
                    self.row_taps(lanes, from, index, samples[2], &mut body);
                }
            }
        }
    }

    /// The taps of one row of x.
    #[inline(always)]
    fn row_taps(
        &self,
        lanes: &Lanes,
        from: usize,
        index: usize,
        sample: Sample,
        body: &mut impl FnMut(Tap),
    ) {
        let (size, stride) = (self.x.sizes[2], self.x.strides[2]);
        if let Window::Even { kernel, stride: pace, padding, dilation } = self.windows[2] {
            for l in 0..kernel {
                // Lanes from the first that reaches element 0 to the last that stays inside.
                let base = lanes.element * pace + l * dilation;
                let start = padding.saturating_sub(base).div_ceil(pace).min(lanes.count);
                let end = (size + padding).saturating_sub(base).div_ceil(pace).min(lanes.count);
                if start < end {
                    let at = base + start * pace - padding;
                    body(Tap {
                        lanes: start..end,
                        from: from + at * stride,
                        stride: pace * stride,
                        index: index + at,
                        index_step: pace,
                    });
                }
            }
            return;
        }
        for lane in 0..lanes.count {
            let result = lanes.element + lane;
            let (first, count, step) =
                self.windows[2].inside(result, self.y.sizes[2], size, sample);
            for at in (0..count).map(|l| first + l * step) {
                body(Tap {
                    lanes: lane..lane + 1,
                    from: from + at * stride,
                    stride: 0,
                    index: index + at,
                    index_step: 0,
                });
            }
        }
    }
}
