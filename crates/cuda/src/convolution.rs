//! What a convolution is described by. Plain values, which need no driver; `dnn.rs` takes them to
//! cuDNN.

use crate::BlasType;

/// Which of the three tensors is computed from the other two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// `y`: windows of `x` times the weight.
    Result,
    /// `x`: what comes back to the input.
    Input,
    /// What comes back to the weight.
    Weight,
}

/// A convolution of packed tensors. Sizes are [batch, channels, depth, height, width]; dimensions
/// that there are not have one element, stride 1, padding 0, dilation 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// What is computed.
    pub pass: Pass,
    /// The element type of all three.
    pub dtype: BlasType,
    /// Whether all three lie with their channels last; else row by row.
    pub channels_last: bool,
    /// Sizes of the input.
    pub x: [usize; 5],
    /// Sizes of the weight: [channels of `y`, channels of `x` in a group, ..].
    pub weight: [usize; 5],
    /// Sizes of the result.
    pub y: [usize; 5],
    /// From one window to the next.
    pub stride: [usize; 3],
    /// Zeros before the first element.
    pub padding: [usize; 3],
    /// From one element of a window to the next.
    pub dilation: [usize; 3],
    /// Groups that the channels are cut into.
    pub groups: usize,
    /// Whether products of float32 may round their factors to TF32.
    pub allow_tf32: bool,
}

impl Convolution {
    /// Whether the library has words for it: no tensor is empty, places fit 32 bits, and there are
    /// as many zeros behind the last element as before the first.
    ///
    /// ```
    /// use plimsoll_cuda::{BlasType, Convolution, Pass};
    /// let even = Convolution {
    ///     pass: Pass::Result,
    ///     dtype: BlasType::F32,
    ///     channels_last: false,
    ///     x: [2, 3, 1, 8, 8],
    ///     weight: [4, 3, 1, 3, 3],
    ///     y: [2, 4, 1, 8, 8],
    ///     stride: [1; 3],
    ///     padding: [0, 1, 1],
    ///     dilation: [1; 3],
    ///     groups: 1,
    ///     allow_tf32: true,
    /// };
    /// assert!(even.is_regular());
    /// assert!(!Convolution { padding: [0, 2, 1], ..even }.is_regular());
    /// assert!(!Convolution { x: [0, 3, 1, 8, 8], y: [0, 4, 1, 8, 8], ..even }.is_regular());
    /// ```
    pub fn is_regular(&self) -> bool {
        const MOST: usize = i32::MAX as usize;
        let Convolution { x, weight, y, groups, .. } = self;
        let fits = |sizes: &[usize; 5]| {
            let count = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
            count.is_some_and(|count| (1..=MOST).contains(&count))
        };
        let small = |numbers: &[usize; 3]| numbers.iter().all(|&number| number <= MOST / 4);
        let channels = weight[0] == y[1] && weight[1].checked_mul(*groups) == Some(x[1]);
        [x, weight, y].into_iter().all(fits)
            && [&self.stride, &self.padding, &self.dilation].into_iter().all(small)
            && channels
            && x[0] == y[0]
            && (0..3).all(|dim| self.windows(dim) == Some(y[dim + 2]))
    }

    /// How many windows there are along a spatial dimension with the same padding on both sides.
    fn windows(&self, dim: usize) -> Option<usize> {
        let span = (self.weight[dim + 2] - 1) * self.dilation[dim] + 1;
        let padded = self.x[dim + 2] + 2 * self.padding[dim];
        Some(padded.checked_sub(span)?.checked_div(self.stride[dim])? + 1)
    }

    /// Whether the first spatial dimension is one that there is not.
    pub fn is_flat(&self) -> bool {
        [self.x, self.weight, self.y].iter().all(|sizes| sizes[2] == 1) && self.padding[0] == 0
    }
}

/// Where the tensors of a convolution are.
#[derive(Clone, Copy, Debug)]
pub struct ConvolutionMemory {
    /// The first element of the input.
    pub x: usize,
    /// The first element of the weight.
    pub weight: usize,
    /// The first element of the result.
    pub y: usize,
    /// Scratch of the library.
    pub workspace: usize,
    /// Its size.
    pub workspace_bytes: usize,
}
