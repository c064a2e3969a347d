//! Filling an output with numbers that no input gives: a constant, a range, the identity matrix.
//! Random numbers are in `random.rs`.

use plimsoll_core::{Error, Result, Scalar};

use plimsoll_engine::CpuLaunch;
use plimsoll_engine::generate::{Generate, generate};
use plimsoll_engine::iterate::{self, Tile};
use plimsoll_engine::map::operands;
use plimsoll_engine::number::Number;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{Element, match_dtype};

/// Every element becomes `value`.
pub fn fill(launch: &CpuLaunch<'_>, value: Scalar) -> Result<()> {
    let out = operands::<1>(launch)?;
    match_dtype!(out[0].dtype(), T => {
        let value = T::from_scalar(value);
        iterate::run(out, |tile| simd::dispatch_level(Constant(tile, value)));
    });
    Ok(())
}

struct Constant<'a, T>(&'a Tile<1>, T);

impl<T: Element> LevelKernel for Constant<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Constant(tile, value) = self;
        for row in 0..tile.rows {
            let out = tile.row(row)[0].cast::<T>();
            // SAFETY: the tile covers elements that the output's layout reaches (the engine's
            // promise).
            unsafe {
                if tile.inner[0] == size_of::<T>() {
                    for i in 0..tile.len {
                        *out.add(i) = value;
                    }
                } else {
                    for i in 0..tile.len {
                        *out.byte_add(i * tile.inner[0]) = value;
                    }
                }
            }
        }
    }
}

/// Element i (row-major) becomes `start + i * step`: wrapping in i64 when the output holds integers
/// and both are whole, otherwise in f64 rounded once.
pub fn arange(launch: &CpuLaunch<'_>, start: Scalar, step: Scalar) -> Result<()> {
    let [out] = operands::<1>(launch)?;
    let whole = !matches!((start, step), (Scalar::Float(_), _) | (_, Scalar::Float(_)));
    match_dtype!(out.dtype(), T => if whole && !T::DTYPE.is_float() {
        generate::<T, _>(out, &WholeRange(start.to_i64(), step.to_i64()));
    } else {
        generate::<T, _>(out, &FloatRange(start.to_f64(), step.to_f64()));
    });
    Ok(())
}

struct WholeRange(i64, i64);
struct FloatRange(f64, f64);

impl<T: Number> Generate<T> for WholeRange {
    #[inline(always)]
    fn generate<L: Level>(&self, first: usize, out: &mut [T]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = T::from_number(self.0.wrapping_add(self.1.wrapping_mul((first + i) as i64)));
        }
    }
}

impl<T: Number> Generate<T> for FloatRange {
    #[inline(always)]
    fn generate<L: Level>(&self, first: usize, out: &mut [T]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = T::from_number(self.0 + self.1 * (first + i) as f64);
        }
    }
}

/// A matrix with ones on its main diagonal and zeros elsewhere.
pub fn eye(launch: &CpuLaunch<'_>) -> Result<()> {
    let [out] = operands::<1>(launch)?;
    let &[_, columns] = out.shape() else {
        return Err(Error::shape(
            launch.operation,
            format!(
                "an identity matrix has two dimensions, but the output has shape {:?}",
                out.shape()
            ),
        ));
    };
    match_dtype!(out.dtype(), T => generate::<T, _>(out, &Diagonal { columns }));
    Ok(())
}

struct Diagonal {
    columns: usize,
}

impl<T: Element> Generate<T> for Diagonal {
    #[inline(always)]
    fn generate<L: Level>(&self, first: usize, out: &mut [T]) {
        // Ones lie `columns + 1` apart in row-major order, until the columns run out.
        let (apart, end) = (self.columns + 1, self.columns.saturating_mul(self.columns));
        out.fill(T::ZERO);
        let mut at = first.next_multiple_of(apart);
        while at < first + out.len() && at < end {
            out[at - first] = T::ONE;
            at += apart;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::testing::{Held, Lot, launch, launch_all, rounded, shapes};

    #[test]
    fn fills_every_layout() {
        let mut lot = Lot(4);
        for dtype in DType::ALL {
            for shape in shapes() {
                let mut out = [Held::output(&mut lot, dtype, &shape)];
                launch_all(
                    &[],
                    &mut out,
                    0,
                    |l| fill(l, Scalar::Float(3.7)),
                    |out| {
                        assert!(out[0].values().iter().all(|&v| v == rounded(dtype, 3.7)));
                    },
                );
            }
        }
    }

    #[test]
    fn ranges_count_in_logical_order() {
        let mut lot = Lot(6);
        for dtype in [DType::I32, DType::I64, DType::F16, DType::F32, DType::F64] {
            for len in [0, 1, 5, 1500] {
                let mut out = [Held::output(&mut lot, dtype, &[len])];
                let kernel = |l: &CpuLaunch<'_>| arange(l, Scalar::Int(-3), Scalar::Int(2));
                let want: Vec<f64> =
                    (0..len).map(|i| rounded(dtype, 2.0 * i as f64 - 3.0)).collect();
                launch_all(&[], &mut out, 0, kernel, |out| assert_eq!(out[0].values(), want));
                let kernel = |l: &CpuLaunch<'_>| arange(l, Scalar::Float(0.5), Scalar::Float(0.25));
                let want: Vec<f64> =
                    (0..len).map(|i| rounded(dtype, 0.25 * i as f64 + 0.5)).collect();
                launch_all(&[], &mut out, 0, kernel, |out| assert_eq!(out[0].values(), want));
            }
        }
    }

    #[test]
    fn whole_ranges_are_exact_past_two_to_the_53() {
        let mut out = [Held::of(DType::I64, &[3], &[0.0; 3])];
        let start = (1i64 << 53) + 1;
        launch(&[], &mut out, 0, |l| arange(l, Scalar::Int(start), Scalar::Int(1))).unwrap();
        assert_eq!(out[0].elements::<i64>(), [start, start + 1, start + 2]);
    }

    #[test]
    fn identities_of_every_shape() {
        let mut lot = Lot(8);
        for (rows, columns) in [(0, 0), (3, 0), (1, 1), (4, 4), (2, 5), (5, 2), (90, 70)] {
            let mut out = [Held::output(&mut lot, DType::F32, &[rows, columns])];
            let want: Vec<f64> =
                (0..rows * columns).map(|i| f64::from(i / columns == i % columns)).collect();
            launch_all(&[], &mut out, 0, eye, |out| assert_eq!(out[0].values(), want));
        }
        let mut vector = [Held::of(DType::F32, &[2], &[0.0; 2])];
        assert!(launch(&[], &mut vector, 0, eye).unwrap_err().is_shape());
    }
}
