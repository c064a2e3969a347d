//! Images whose channels lie side by side: when a tensor counts as such, and how a new one is laid
//! out. PyTorch's `suggest_memory_format`; a signal [batch, channels, length] is an image of one
//! row.

use plimsoll_core::{DType, Layout, Result};
use plimsoll_kernels::Meta;
use smallvec::SmallVec;

/// The dimensions from the innermost to the outermost, of tensors that have such a layout.
fn order(rank: usize) -> Option<&'static [usize]> {
    match rank {
        3 => Some(&[1, 2, 0]),
        4 => Some(&[1, 3, 2, 0]),
        5 => Some(&[1, 4, 3, 2, 0]),
        _ => None,
    }
}

/// A new tensor: channels last or row-major.
pub(super) fn laid_out(shape: &[usize], dtype: DType, channels_last: bool) -> Result<Meta> {
    let order = match order(shape.len()) {
        Some(order) if channels_last => order,
        _ => return Meta::contiguous(shape, dtype),
    };
    let mut strides: SmallVec<[usize; 5]> = smallvec::smallvec![0; shape.len()];
    let mut reach: usize = 1;
    for &dim in order {
        strides[dim] = reach;
        reach = reach.saturating_mul(shape[dim].max(1));
    }
    Ok(Meta { layout: Layout::strided(shape, &strides, 0)?, dtype })
}

/// Whether this is what PyTorch takes for channels last: dense in this order, whatever the strides
/// of dimensions of one element, or with strides that all grow in this order, gaps or none.
pub(crate) fn is_channels_last(layout: &Layout) -> bool {
    let Some(order) = order(layout.rank()) else { return false };
    let (shape, strides) = (layout.shape(), layout.strides());
    if layout.is_contiguous() || layout.numel() == 0 {
        return false;
    }
    let mut dense = 1;
    let is_dense = order.iter().all(|&dim| {
        let next = shape[dim] == 1 || strides[dim] == dense;
        dense *= shape[dim];
        next
    });
    let mut reach = 0;
    let grows = order.iter().all(|&dim| {
        // A batch of one image with one channel is row-major as well.
        let next = strides[dim] >= reach && (dim != 0 || reach != strides[1]);
        reach = strides[dim] * shape[dim];
        next
    });
    is_dense || (grows && strides[1] != 0)
}
