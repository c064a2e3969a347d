//! Planes of images: tensors [batch, channels, places..] that are row-major, or whose channels lie
//! side by side at each place. Kernels that take both go by the steps between places and channels.

use plimsoll_core::{Error, Result};

use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Element, Operand};

/// Where the elements of a tensor of planes lie, in elements from its first.
#[derive(Clone, Copy)]
pub(crate) struct Planes<T> {
    pub(crate) first: Shared<T>,
    pub(crate) channels: usize,
    /// Places of a plane.
    pub(crate) places: usize,
    /// From a channel to the next.
    pub(crate) channel: usize,
    /// From a place to the next.
    pub(crate) place: usize,
}

impl<T: Element> Planes<T> {
    /// The planes of an operand of type `T`, in one of the two orders.
    pub(crate) fn of(launch: &CpuLaunch<'_>, operand: &Operand<'_>) -> Result<Planes<T>> {
        plimsoll_engine::map::check::<T>(launch, operand)?;
        let &[_, channels, ref space @ ..] = operand.shape() else {
            return Err(Error::shape(launch.operation, "the kernel needs channels and a batch"));
        };
        let places = space.iter().product();
        let first = Shared(operand.first());
        if operand.layout().is_contiguous() {
            return Ok(Planes { first, channels, places, channel: places, place: 1 });
        }
        let mut dense = 1;
        let inward = std::iter::once(1).chain((2..operand.shape().len()).rev()).chain([0]);
        for dim in inward {
            let size = operand.shape()[dim];
            if size != 1 && operand.layout().strides()[dim] != dense {
                return Err(Error::invalid_argument(
                    "the kernel needs operands that are row-major or channels last",
                )
                .in_operation(launch.operation));
            }
            dense *= size;
        }
        Ok(Planes { first, channels, places, channel: 1, place: channels })
    }

    /// Where a plane starts; planes are counted over all samples.
    #[inline(always)]
    pub(crate) fn start(self, plane: usize) -> usize {
        plane / self.channels * self.channels * self.places + plane % self.channels * self.channel
    }

    /// Whether the channels of a place are neighbours.
    pub(crate) fn is_last(self) -> bool {
        self.channel == 1 && self.place == self.channels
    }
}
