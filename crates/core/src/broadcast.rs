//! Broadcasting: which shape two operands meet in. Sizes are compared from the last dimension;
//! equal sizes match, and a 1 stretches.

use crate::{Dims, Error, Result};

/// The shape that all of `shapes` broadcast to.
///
/// ```
/// use plimsoll_core::broadcast_shapes;
/// assert_eq!(broadcast_shapes("add", &[&[3, 1], &[4]]).unwrap().as_slice(), [3, 4]);
/// assert!(broadcast_shapes("add", &[&[3], &[4]]).unwrap_err().is_shape());
/// ```
pub fn broadcast_shapes(op: &str, shapes: &[&[usize]]) -> Result<Dims> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut out = Dims::from_elem(1, rank);
    for shape in shapes {
        for (axis, &size) in shape.iter().rev().enumerate() {
            let slot = &mut out[rank - 1 - axis];
            if *slot == 1 {
                *slot = size;
            } else if size != 1 && size != *slot {
                return Err(Error::shape(
                    op,
                    format!(
                        "shapes {} do not broadcast: size {size} meets size {slot} in dimension {} from \
                         the end; make them equal, or one of them 1",
                        shapes.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(" and "),
                        axis + 1
                    ),
                ));
            }
        }
    }
    Ok(out)
}
