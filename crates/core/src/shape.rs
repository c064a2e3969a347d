//! Shapes: a short list of sizes, and the checked arithmetic on them. Sizes come from users as
//! `i64` (PyTorch's convention, where -1 can mean "the rest") and are `usize` from here on.

use smallvec::SmallVec;

use crate::{Error, Result};

/// How many dimensions are kept inline: those of a batch of volumes.
pub(crate) const INLINE_DIMS: usize = 5;

/// Sizes or strides, kept inline up to five dimensions.
pub type Dims = SmallVec<[usize; INLINE_DIMS]>;

/// The most elements that a tensor may have, and the most that a dimension may step over: 2^48
/// bytes are all that an address can name. Below it neither sizes in bytes nor sums of strides come
/// near an overflow, whatever a kernel multiplies.
pub(crate) const ELEMENTS_MAX: usize = 1 << 48;

/// The number of elements, or an error if no memory could hold them. Sizes of 0 count as 1 for that
/// bound, so that every product of sizes is small enough to compute with.
#[inline]
pub fn checked_numel(sizes: &[usize]) -> Result<usize> {
    let product = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size.max(1)));
    match product {
        Some(product) if product <= ELEMENTS_MAX => {
            Ok(if sizes.contains(&0) { 0 } else { product })
        }
        _ => Err(too_many_elements(sizes)),
    }
}

#[cold]
fn too_many_elements(sizes: &[usize]) -> Error {
    let why = "Storage size calculation overflowed: it has too many elements";
    Error::invalid_argument(format!("a tensor of shape {sizes:?}: {why}"))
}

/// Checks sizes that must all be known: none negative, the product in range.
pub fn sizes_from_i64(op: &str, sizes: &[i64]) -> Result<Dims> {
    let mut dims = Dims::new();
    for &size in sizes {
        dims.push(usize::try_from(size).map_err(|_| {
            Error::shape(op, format!("shape {sizes:?} has the negative size {size}"))
        })?);
    }
    checked_numel(&dims).map_err(|e| e.in_operation(op))?;
    Ok(dims)
}

/// Turns a possibly negative dimension into an index below `rank`; a scalar counts as one
/// dimension, as in PyTorch.
pub fn normalize_dim(op: &str, dim: i64, rank: usize) -> Result<usize> {
    let range = rank.max(1) as i64;
    if dim < -range || dim >= range {
        return Err(Error::index(
            op,
            format!(
                "Dimension out of range (expected to be in range of [{}, {}], but got {dim})",
                -range,
                range - 1
            ),
        ));
    }
    Ok(dim.rem_euclid(range) as usize)
}

/// Normalizes a list of dimensions and refuses duplicates; an empty list means all of them.
pub fn normalize_dims(op: &str, dims: &[i64], rank: usize) -> Result<Dims> {
    if dims.is_empty() {
        return Ok((0..rank).collect());
    }
    let mut seen = Dims::new();
    for &dim in dims {
        let dim = normalize_dim(op, dim, rank)?;
        if seen.contains(&dim) {
            return Err(Error::shape(op, format!("dimension {dim} appears twice in {dims:?}")));
        }
        seen.push(dim);
    }
    // Of a scalar only "dimension 0" can be named, and it has none to act on.
    if rank == 0 {
        seen.clear();
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_past_the_address_space_are_errors_even_if_empty() {
        assert!(checked_numel(&[usize::MAX, 2]).unwrap_err().is_invalid_argument());
        assert_eq!(checked_numel(&[1 << 24, 0, 1 << 24]).unwrap(), 0);
        assert!(checked_numel(&[1 << 25, 0, 1 << 24]).unwrap_err().is_invalid_argument());
        assert_eq!(checked_numel(&[ELEMENTS_MAX]).unwrap(), ELEMENTS_MAX);
        assert!(checked_numel(&[ELEMENTS_MAX + 1]).is_err());
        assert!(checked_numel(&[usize::MAX, 0]).unwrap_err().is_invalid_argument());
        assert!(sizes_from_i64("zeros", &[2, -1]).unwrap_err().is_shape());
    }

    #[test]
    fn negative_dimensions_count_from_the_end() {
        assert_eq!(normalize_dim("sum", -1, 3).unwrap(), 2);
        assert_eq!(normalize_dim("sum", -1, 0).unwrap(), 0);
        assert!(normalize_dim("sum", 3, 3).is_err());
        assert!(normalize_dims("sum", &[0, -3], 3).is_err());
    }
}
