//! A layout says where a tensor's elements lie in its storage: sizes, strides and an offset, all in
//! elements. It owns no memory. How one layout becomes another (views) is in `views.rs`.
//!
//! ```text
//! storage   0 1 2 3 4 5 6 7 8 9 10 11        shape [3, 2], strides [4, 1], offset 1:
//!             ^ ^     ^ ^     ^  ^           columns 1 and 2 of a 3 x 4 matrix
//! ```

use std::fmt;
use std::sync::Arc;

use crate::shape::ELEMENTS_MAX;
use crate::{Dims, Error, Result, checked_numel};

/// Sizes, strides and offset in elements.
///
/// Shared, because most results are laid out like an operand: a handle is copied, not two lists,
/// and whoever compares the two need not look at them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout(Arc<Parts>);

/// Invariant: `shape` and `strides` have the same length, and every element's position (`offset +
/// sum(index * stride)`) fits in an `isize`. The rest follows from them; every operation asks for
/// it several times.
#[derive(PartialEq, Eq, Hash)]
struct Parts {
    shape: Dims,
    strides: Dims,
    offset: usize,
    numel: usize,
    contiguous: bool,
    /// Whether [`Layout::contiguous`] gives just this, in the strides that nothing steps by too.
    plain: bool,
}

impl Layout {
    /// The row-major layout of `shape` from offset 0.
    #[inline]
    pub fn contiguous(shape: &[usize]) -> Result<Layout> {
        // No element lies past the number of elements, so that is all there is to check.
        let numel = checked_numel(shape)?;
        Ok(Layout::row_major(Dims::from_slice(shape), numel))
    }

    fn row_major(shape: Dims, numel: usize) -> Layout {
        let strides = contiguous_strides(&shape);
        let parts = Parts { shape, strides, offset: 0, numel, contiguous: true, plain: true };
        Layout(Arc::new(parts))
    }

    /// A layout from its parts, refused if an element's position would overflow.
    ///
    /// ```
    /// use plimsoll_core::Layout;
    /// let column = Layout::strided(&[3], &[4], 1).unwrap();
    /// assert_eq!(column.span(), 10);
    /// assert!(Layout::strided(&[usize::MAX, 2], &[4, 1], 0).is_err());
    /// ```
    pub fn strided(shape: &[usize], strides: &[usize], offset: usize) -> Result<Layout> {
        if shape.len() != strides.len() {
            return Err(Error::invalid_argument(format!(
                "a layout needs as many strides as sizes, but has shape {shape:?} and strides {strides:?}"
            )));
        }
        let empty = checked_numel(shape)? == 0;
        let layout = Layout::inside(shape.into(), strides.into(), offset);
        if offset > ELEMENTS_MAX || !empty && layout.checked_span().is_none() {
            return Err(Error::invalid_argument(format!(
                "Storage size calculation overflowed: shape {shape:?} with strides {strides:?} at offset {offset} \
                 reaches past the address space"
            )));
        }
        Ok(layout)
    }

    /// For view rules whose result is inside a layout that was already checked. A stride that
    /// nothing steps by (of a size of 1, or without elements) may come in at any length, and is cut
    /// to one that cannot overflow later.
    pub(crate) fn inside(shape: Dims, mut strides: Dims, offset: usize) -> Layout {
        debug_assert_eq!(shape.len(), strides.len(), "a layout has as many strides as sizes");
        let empty = shape.contains(&0);
        for (stride, &size) in strides.iter_mut().zip(&shape) {
            if empty || size < 2 {
                *stride = (*stride).min(ELEMENTS_MAX / size.max(1));
            }
        }
        let numel = if empty { 0 } else { shape.iter().product() };
        let contiguous = empty || is_row_major(&shape, &strides);
        let plain = contiguous && offset == 0 && strides == contiguous_strides(&shape);
        Layout(Arc::new(Parts { shape, strides, offset, numel, contiguous, plain }))
    }

    /// The sizes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// The distance in elements between neighbours along each dimension; 0 where it is expanded.
    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.0.strides
    }

    /// Where the first element lies, in elements from the start of the storage.
    #[inline]
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// Whether both have the same sizes. A loop, because a call of the library's comparison costs
    /// more than most shapes.
    #[inline]
    pub fn same_shape(&self, other: &Layout) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.rank() == other.rank()
                && self.shape().iter().zip(other.shape()).all(|(a, b)| a == b)
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.0.shape.len()
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.0.numel
    }

    /// How many elements of storage, counted from its start, this layout reaches: one past the
    /// farthest element, or 0 if it has none.
    #[inline]
    pub fn span(&self) -> usize {
        match self.0.numel {
            0 => 0,
            numel if self.0.contiguous => self.0.offset + numel,
            _ => self.checked_span().unwrap_or(0),
        }
    }

    #[inline]
    fn checked_span(&self) -> Option<usize> {
        if self.0.numel == 0 {
            return Some(0);
        }
        let mut last = self.0.offset;
        for (&size, &stride) in self.shape().iter().zip(self.strides()) {
            last = last.checked_add((size - 1).checked_mul(stride)?)?;
        }
        (last < ELEMENTS_MAX).then(|| last + 1)
    }

    /// Row-major without holes: iff every dimension of size above 1 has the stride that the sizes
    /// after it imply. Tensors of no elements are contiguous.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.0.contiguous
    }

    /// Dense in some order of dimensions, neither holes nor overlap: iff its elements are exactly
    /// `numel` consecutive positions. A transposed matrix is; a column of one is not.
    pub fn is_dense(&self) -> bool {
        self.numel() == 0 || {
            let mut order: Dims = (0..self.rank()).filter(|&d| self.0.shape[d] != 1).collect();
            order.sort_by_key(|&d| self.0.strides[d]);
            let mut expected = 1;
            order.iter().all(|&d| {
                let fits = self.0.strides[d] == expected;
                expected *= self.0.shape[d];
                fits
            })
        }
    }

    /// Whether two indices can name the same element (sufficient for safe writes when false). Exact
    /// for layouts that views produce; conservative for exotic `as_strided` ones.
    pub fn may_overlap_itself(&self) -> bool {
        if self.numel() <= 1 {
            return false;
        }
        let mut order: Dims = (0..self.rank()).filter(|&d| self.0.shape[d] != 1).collect();
        order.sort_by_key(|&d| self.0.strides[d]);
        // Each stride must clear everything that the smaller strides can reach.
        let mut reach = 0usize;
        order.iter().any(|&d| {
            let collides = self.0.strides[d] <= reach;
            reach = reach.saturating_add((self.0.shape[d] - 1).saturating_mul(self.0.strides[d]));
            collides
        })
    }

    /// The row-major layout of the same sizes from offset 0: what [`Layout::contiguous`] gives.
    ///
    /// ```
    /// use plimsoll_core::Layout;
    /// let row = Layout::strided(&[1, 3], &[7, 1], 5).unwrap(); // nothing steps by the 7
    /// assert_eq!(row.made_contiguous(), Layout::contiguous(&[1, 3]).unwrap());
    /// ```
    #[must_use]
    #[inline]
    pub fn made_contiguous(&self) -> Layout {
        match self.0.plain {
            true => self.clone(),
            false => Layout::row_major(self.0.shape.clone(), self.0.numel),
        }
    }

    /// The same sizes and strides from the start of a storage.
    #[must_use]
    #[inline]
    pub fn at_start(&self) -> Layout {
        if self.0.offset == 0 { self.clone() } else { self.moved_to_start() }
    }

    #[cold]
    fn moved_to_start(&self) -> Layout {
        Layout::inside(self.0.shape.clone(), self.0.strides.clone(), 0)
    }

    /// The same sizes and strides at another offset, refused if an element's position would
    /// overflow.
    pub fn with_offset(&self, offset: usize) -> Result<Layout> {
        Layout::strided(self.shape(), self.strides(), offset)
    }
}

/// Whether every size above 1 has the stride that the sizes after it imply.
fn is_row_major(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if size != 1 {
            if stride != expected {
                return false;
            }
            expected *= size;
        }
    }
    true
}

/// Row-major strides; a size of 0 counts as 1, as in PyTorch.
#[inline]
pub(crate) fn contiguous_strides(shape: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, shape.len());
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d].saturating_mul(shape[d].max(1));
    }
    strides
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} strides {:?} offset {}",
            &self.0.shape[..],
            &self.0.strides[..],
            self.0.offset
        )
    }
}
