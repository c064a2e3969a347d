//! Orders of dimensions in memory that have a name: row-major, and channels last for images.

use crate::{Dims, Error, Layout, Result};

/// In which order a new tensor's dimensions lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous,
    /// As the tensor it is made from, if that is dense.
    Preserve,
    /// Of `[N, C, H, W]`, the channels innermost.
    ChannelsLast,
    /// Of `[N, C, D, H, W]`, the channels innermost.
    ChannelsLast3d,
}

impl MemoryFormat {
    /// Its name in PyTorch.
    pub fn name(self) -> &'static str {
        match self {
            MemoryFormat::Contiguous => "contiguous_format",
            MemoryFormat::Preserve => "preserve_format",
            MemoryFormat::ChannelsLast => "channels_last",
            MemoryFormat::ChannelsLast3d => "channels_last_3d",
        }
    }

    /// The dense layout of `shape`; nothing if it is to be preserved.
    ///
    /// ```
    /// use plimsoll_core::MemoryFormat;
    /// let layout = MemoryFormat::ChannelsLast.layout(&[2, 3, 4, 5])?;
    /// assert_eq!(layout.unwrap().strides(), [60, 1, 15, 3]);
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn layout(self, shape: &[usize]) -> Result<Option<Layout>> {
        let rank = match self {
            MemoryFormat::Preserve => return Ok(None),
            MemoryFormat::Contiguous => return Layout::contiguous(shape).map(Some),
            MemoryFormat::ChannelsLast => 4,
            MemoryFormat::ChannelsLast3d => 5,
        };
        if shape.len() != rank {
            return Err(Error::shape(
                self.name(),
                format!("it orders {rank} dimensions, and shape {shape:?} has {}", shape.len()),
            ));
        }
        let row_major = Layout::contiguous(shape)?;
        let mut strides = Dims::from(row_major.strides());
        strides[1] = 1;
        let mut step = shape[1].max(1);
        for dim in (2..rank).rev().chain([0]) {
            strides[dim] = step;
            step *= shape[dim].max(1);
        }
        Layout::strided(shape, &strides, 0).map(Some)
    }

    /// Whether a layout lies so. Strides that nothing steps by do not count.
    pub fn holds(self, layout: &Layout) -> bool {
        let Ok(Some(dense)) = self.layout(layout.shape()) else { return false };
        layout.numel() == 0 && self == MemoryFormat::Contiguous
            || (0..layout.rank()).all(|dim| {
                layout.shape()[dim] == 1 || layout.strides()[dim] == dense.strides()[dim]
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_the_strides_that_matter() -> Result<()> {
        let plain = Layout::contiguous(&[2, 3, 4, 5])?;
        assert!(MemoryFormat::Contiguous.holds(&plain));
        assert!(!MemoryFormat::ChannelsLast.holds(&plain));
        // One channel: both orders are the same.
        let one = Layout::contiguous(&[2, 1, 4, 5])?;
        assert!(MemoryFormat::ChannelsLast.holds(&one) && MemoryFormat::Contiguous.holds(&one));
        assert!(!MemoryFormat::ChannelsLast.holds(&Layout::contiguous(&[2, 3])?));
        assert!(MemoryFormat::ChannelsLast3d.layout(&[2, 3]).unwrap_err().is_shape());
        let volume = MemoryFormat::ChannelsLast3d.layout(&[2, 3, 4, 5, 6])?.unwrap();
        assert_eq!(volume.strides(), [360, 1, 90, 18, 3]);
        Ok(())
    }
}
