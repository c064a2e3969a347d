//! Tensors as kernels of this crate see them: [batch, channels, depth, height, width], where
//! dimensions that a tensor lacks have one element.

use plimsoll_engine::Meta;

/// Sizes and strides, in elements, of [batch, channels, depth, height, width].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Depth, height, width.
    pub sizes: [usize; 3],
    /// From one image to the next.
    pub batch_stride: usize,
    /// From one channel to the next.
    pub channel_stride: usize,
    /// From one plane, row, element to the next.
    pub strides: [usize; 3],
}

impl Volume {
    /// A tensor [batch, channels, up to three dimensions].
    pub fn of(meta: &Meta) -> Volume {
        let (shape, strides) = (meta.shape(), meta.layout.strides());
        let at = |dim: usize| {
            let size = shape.get(dim).copied().unwrap_or(1);
            (size, strides.get(dim).copied().unwrap_or(0))
        };
        let space = shape.len().saturating_sub(2);
        let spatial: [(usize, usize); 3] =
            std::array::from_fn(|d| match (d + space).checked_sub(3) {
                Some(own) if own < space => at(own + 2),
                _ => (1, 0),
            });
        let ((batch, batch_stride), (channels, channel_stride)) = (at(0), at(1));
        Volume {
            batch,
            channels,
            sizes: spatial.map(|(size, _)| size),
            batch_stride,
            channel_stride,
            strides: spatial.map(|(_, stride)| stride),
        }
    }

    /// Elements of one channel of one image.
    pub fn space(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The place of the first element of a channel of an image.
    #[inline]
    pub fn at(&self, image: usize, channel: usize) -> usize {
        image * self.batch_stride + channel * self.channel_stride
    }

    /// The place of a row beside the start of its channel.
    #[inline]
    pub fn row(&self, plane: usize, row: usize) -> usize {
        plane * self.strides[0] + row * self.strides[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;

    #[test]
    fn missing_dimensions_have_one_element() {
        let volume = |shape: &[usize]| Volume::of(&Meta::contiguous(shape, DType::F32).unwrap());
        assert_eq!(volume(&[2, 3, 4]).sizes, [1, 1, 4]);
        assert_eq!(volume(&[2, 3, 4, 5]).sizes, [1, 4, 5]);
        assert_eq!(volume(&[2, 3, 4, 5, 6]).strides, [30, 6, 1]);
        assert_eq!(volume(&[2, 3, 4, 5, 6]).at(1, 2), 600);
        assert_eq!(volume(&[2, 3, 4, 5, 6]).row(1, 2), 42);
    }
}
