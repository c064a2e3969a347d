//! The triangles of matrices: what lies on one side of a diagonal kept, the rest zero.

use plimsoll_core::{Error, Result};

use crate::copy::copy_between;
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::map::operands;
use plimsoll_engine::{CpuLaunch, Element, Operand, match_dtype, parallel};

/// Which side of a diagonal stays; the diagonal belongs to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// Below.
    Lower,
    /// Above.
    Upper,
}

impl Triangle {
    /// The columns of a row that become zero.
    fn cleared(self, row: usize, diagonal: i64, columns: usize) -> std::ops::Range<usize> {
        let bound = |at: i64| at.clamp(0, columns as i64) as usize;
        let on = (row as i64).saturating_add(diagonal);
        match self {
            Triangle::Lower => bound(on.saturating_add(1))..columns,
            Triangle::Upper => 0..bound(on),
        }
    }
}

/// `[x]` -> each matrix of x with zeros on the other side of a diagonal. The output may be x.
pub fn triangle(launch: &CpuLaunch<'_>, side: Triangle, diagonal: i64) -> Result<()> {
    let [out, input] = operands::<2>(launch)?;
    let Some(row_dim) = out.shape().len().checked_sub(2) else {
        return Err(Error::shape(launch.operation, "a matrix has two dimensions"));
    };
    let same = out.first_byte() == input.first_byte() && out.layout() == input.layout();
    if !same {
        copy_between(launch.operation, out, input)?;
    }
    match_dtype!(out.dtype(), T => clear::<T>(&out, row_dim, side, diagonal));
    Ok(())
}

/// Clears a part of each row of each matrix.
fn clear<T: Element>(out: &Operand<'_>, row_dim: usize, side: Triangle, diagonal: i64) {
    let (shape, strides) = (out.shape(), out.layout().strides());
    let (columns, step) = (shape[row_dim + 1], strides[row_dim + 1]);
    if out.layout().numel() == 0 {
        return;
    }
    let rows: usize = shape[..=row_dim].iter().product();
    parallel::split(rows, (GRAIN / columns).max(1), |range| {
        for row in range {
            let (mut rest, mut start) = (row, 0);
            for dim in (0..=row_dim).rev() {
                start += rest % shape[dim] * strides[dim];
                rest /= shape[dim];
            }
            for column in side.cleared(row % shape[row_dim], diagonal, columns) {
                // SAFETY: an element of this row of the output, which only this thread writes.
                unsafe { *out.first::<T>().add(start + column * step) = T::ZERO };
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::testing::{Held, Lot, launch_all};

    #[test]
    fn both_sides_of_every_diagonal() {
        let mut lot = Lot(12);
        for dtype in [DType::Bool, DType::I16, DType::F32, DType::F64] {
            for (rows, columns) in [(3, 4), (4, 3), (1, 5), (0, 3), (3, 0), (60, 70)] {
                for diagonal in [-2, 0, 1, 9, i64::MIN, i64::MAX] {
                    for side in [Triangle::Lower, Triangle::Upper] {
                        let shape = [2, rows, columns];
                        let x = Held::random(&mut lot, dtype, &shape, false);
                        let stays = |k: usize| {
                            let (i, j) = (k / columns % rows, k % columns);
                            let over = j as i128 - i as i128 - i128::from(diagonal);
                            if side == Triangle::Lower { over <= 0 } else { over >= 0 }
                        };
                        let values = x.values().into_iter().enumerate();
                        let want: Vec<f64> =
                            values.map(|(k, v)| if stays(k) { v } else { 0.0 }).collect();
                        let mut out = [Held::output(&mut lot, dtype, &shape)];
                        let run = |l: &CpuLaunch<'_>| triangle(l, side, diagonal);
                        launch_all(&[&x], &mut out, 0, run, |o| assert_eq!(o[0].values(), want));
                    }
                }
            }
        }
    }
}
