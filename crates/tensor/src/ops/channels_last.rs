//! Images whose channels lie side by side: when a tensor counts as such, and how a new one is laid
//! out. PyTorch's `suggest_memory_format`; a signal [batch, channels, length] is an image of one
//! row.

use crate::Tensor;
use plimsoll_core::{DType, Layout, MemoryFormat, Result};
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

/// A new tensor in the format of images or volumes that are all channels last; others are
/// row-major. Signals are too: PyTorch has no such format for them.
pub(super) fn laid_out_like(inputs: &[&Meta], shape: &[usize], dtype: DType) -> Result<Meta> {
    let is_last =
        !inputs.is_empty() && inputs.iter().all(|meta| is_image_of_channels(&meta.layout));
    laid_out(shape, dtype, is_last)
}

/// The format's name for images, or for volumes.
fn channels_last_of(x: &Tensor) -> MemoryFormat {
    match x.rank() {
        5 => MemoryFormat::ChannelsLast3d,
        _ => MemoryFormat::ChannelsLast,
    }
}

/// The tensor as kernels take it that know two orders: channels last if it is an image or a volume
/// of that order, row-major otherwise.
#[track_caller]
pub(crate) fn in_order(x: &Tensor) -> Result<Tensor> {
    in_order_of(x, x)
}

/// `x` in the order that [`in_order`] gives `other`.
#[track_caller]
pub(crate) fn in_order_of(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    match is_image_of_channels(other.layout()) {
        true => x.contiguous_with(channels_last_of(x)),
        false => x.contiguous(),
    }
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
    is_dense || grows(layout, order)
}

/// Whether this is an image or a volume whose strides say channels last, those of dimensions of one
/// element too: what PyTorch lays new tensors out by.
pub(crate) fn is_image_of_channels(layout: &Layout) -> bool {
    let order = order(layout.rank()).filter(|_| layout.rank() > 3);
    order.is_some_and(|order| !layout.is_contiguous() && layout.numel() > 0 && grows(layout, order))
}

/// Whether the strides all grow in this order.
fn grows(layout: &Layout, order: &[usize]) -> bool {
    let (shape, strides) = (layout.shape(), layout.strides());
    let mut reach = 0;
    let grows = order.iter().all(|&dim| {
        // A batch of one image with one channel is row-major as well.
        let next = strides[dim] >= reach && (dim != 0 || reach != strides[1]);
        reach = strides[dim] * shape[dim];
        next
    });
    grows && strides[1] != 0
}
