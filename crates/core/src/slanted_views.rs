//! View rules that join two dimensions' strides or use one twice: diagonals and sliding windows.
//! The plain ones are in `views.rs`.

use crate::{Dims, Error, Layout, Result, normalize_dim};

impl Layout {
    /// `diagonal`: the elements where index `dim2` is index `dim1` plus `offset`, as a new last
    /// dimension in place of the two.
    ///
    /// ```
    /// use plimsoll_core::Layout;
    /// let x = Layout::contiguous(&[3, 4])?.diagonal(1, 0, 1)?;
    /// assert_eq!((x.shape(), x.strides(), x.offset()), (&[3][..], &[5][..], 1));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Layout> {
        let op = "diagonal";
        if self.rank() == 0 {
            normalize_dim(op, dim1, 0)?;
            normalize_dim(op, dim2, 0)?;
        }
        let row = normalize_dim(op, dim1, self.rank())?;
        let column = normalize_dim(op, dim2, self.rank())?;
        if row == column {
            return Err(Error::shape(
                op,
                format!("a diagonal runs through two dimensions, and both are {dim1}"),
            ));
        }
        let (rows, columns) = (self.shape()[row] as i64, self.shape()[column] as i64);
        let length = if offset >= 0 {
            rows.min(columns.saturating_sub(offset))
        } else {
            rows.saturating_add(offset).min(columns)
        };
        let length = length.max(0) as usize;
        let (mut shape, mut strides) = (Dims::from(self.shape()), Dims::from(self.strides()));
        let along = strides[row].saturating_add(strides[column]);
        // No element: no need to move, and perhaps no place to move to.
        let moved = match length {
            0 => 0,
            _ if offset >= 0 => offset as usize * strides[column],
            _ => offset.unsigned_abs() as usize * strides[row],
        };
        for dim in [row.max(column), row.min(column)] {
            shape.remove(dim);
            strides.remove(dim);
        }
        shape.push(length);
        strides.push(along);
        Ok(Layout::inside(shape, strides, self.offset() + moved))
    }

    /// `unfold`: windows of `size` elements of a dimension, `step` apart, as a new last dimension.
    ///
    /// ```
    /// use plimsoll_core::Layout;
    /// let x = Layout::contiguous(&[7])?.unfold(0, 3, 2)?;
    /// assert_eq!((x.shape(), x.strides()), (&[3, 3][..], &[2, 1][..]));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn unfold(&self, dim: i64, size: i64, step: i64) -> Result<Layout> {
        let op = "unfold";
        let dim = normalize_dim(op, dim, self.rank())?;
        let (mut shape, mut strides) = (Dims::from(self.shape()), Dims::from(self.strides()));
        // A tensor without dimensions counts as one of one element.
        let (have, stride) =
            (shape.get(dim).copied().unwrap_or(1), strides.get(dim).copied().unwrap_or(1));
        if size < 0 || size as u64 > have as u64 || step <= 0 {
            return Err(Error::shape(
                op,
                format!(
                    "windows of {size}, {step} apart, do not fit dimension {dim} of size {have}: windows are at most \
                     as long, and the step is positive"
                ),
            ));
        }
        if let Some(count) = shape.get_mut(dim) {
            *count = (have - size as usize) / step as usize + 1;
            strides[dim] = stride.saturating_mul(step as usize);
        }
        shape.push(size as usize);
        strides.push(stride);
        Ok(Layout::inside(shape, strides, self.offset()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonals_above_below_and_beside_the_matrix() -> Result<()> {
        let x = Layout::contiguous(&[2, 3, 4])?;
        let below = x.diagonal(-1, 0, 2)?;
        assert_eq!(
            (below.shape(), below.strides(), below.offset()),
            (&[3, 1][..], &[4, 13][..], 12)
        );
        assert_eq!(x.diagonal(9, 0, 1)?.shape(), [4, 0]);
        assert_eq!(x.diagonal(i64::MIN, 0, 1)?.shape(), [4, 0]);
        assert!(x.diagonal(0, 1, -2).unwrap_err().is_shape());
        assert!(x.diagonal(0, 0, 3).unwrap_err().is_index());
        Ok(())
    }

    #[test]
    fn windows_of_numbers_and_those_that_do_not_fit() -> Result<()> {
        let number = Layout::contiguous(&[])?;
        assert_eq!(number.unfold(0, 1, 1)?.shape(), [1]);
        let x = Layout::contiguous(&[2, 5])?;
        assert_eq!(x.unfold(1, 2, 3)?.shape(), [2, 2, 2]);
        for (size, step) in [(6, 1), (-1, 1), (2, 0)] {
            assert!(x.unfold(1, size, step).unwrap_err().is_shape());
        }
        Ok(())
    }
}
