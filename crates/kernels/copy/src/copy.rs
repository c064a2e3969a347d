//! Copying between any two layouts and dtypes: what `contiguous`, `clone`, `to` and `copy_` come
//! down to. Equal dtypes move bits; different ones cast as C does (floats truncate toward zero,
//! anything but zero is true).

use std::marker::PhantomData;

use half::f16;
use plimsoll_core::Result;

use plimsoll_engine::iterate;
use plimsoll_engine::map::{Map1, map1, operands};
use plimsoll_engine::match_dtype;
use plimsoll_engine::number::Number;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Operand, Workspace};

/// `[x]` -> x in the output's dtype and layout; the input broadcasts.
pub fn copy(launch: &CpuLaunch<'_>) -> Result<()> {
    let [to, from] = operands::<2>(launch)?;
    copy_between(launch.operation, to, from)
}

/// Copies `from` to `to`, as [`copy`] does, for kernels that copy parts of their operands.
pub fn copy_between(operation: &'static str, to: Operand<'_>, from: Operand<'_>) -> Result<()> {
    let all = [to, from];
    let (to, from) = (to.dtype(), from.dtype());
    if to != from {
        let (outputs, inputs) = all.split_at(1);
        let workspace = Workspace::NONE;
        let launch = CpuLaunch { operation, inputs, outputs, workspace };
        return match_dtype!(from, A => match_dtype!(to, B => {
            map1(&launch, Cast::<A, B>(PhantomData))
        }));
    }
    // Moved as one type of each width, whatever the bits mean.
    match to.size_bytes() {
        1 => iterate::run(all, |tile| simd::dispatch_level(Move::<u8>(tile, PhantomData))),
        2 => iterate::run(all, |tile| simd::dispatch_level(Move::<f16>(tile, PhantomData))),
        4 => iterate::run(all, |tile| simd::dispatch_level(Move::<i32>(tile, PhantomData))),
        _ => iterate::run(all, |tile| simd::dispatch_level(Move::<i64>(tile, PhantomData))),
    }
    Ok(())
}

struct Cast<A, B>(PhantomData<fn(A) -> B>);

impl<A, B> Clone for Cast<A, B> {
    fn clone(&self) -> Cast<A, B> {
        *self
    }
}

impl<A, B> Copy for Cast<A, B> {}

impl<A: Number, B: Number> Map1 for Cast<A, B> {
    type A = A;
    type Out = B;
    #[inline(always)]
    fn call<L: Level>(self, a: A) -> B {
        B::from_number(a)
    }
}

/// Moves a tile of elements as wide as `T`.
struct Move<'a, T>(&'a iterate::Tile<2>, PhantomData<T>);

impl<T: Copy> LevelKernel for Move<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let tile = self.0;
        let [to_stride, from_stride] = tile.inner;
        let width = size_of::<T>();
        for row in 0..tile.rows {
            let [to, from] = tile.row(row).map(|p| p.cast::<T>());
            // SAFETY: the tile covers elements that its operands' layouts reach (the engine's
            // promise), all as wide as `T`; `copy` allows overlap, which an in-place copy of a view
            // onto itself has.
            unsafe {
                if to_stride == width && from_stride == width {
                    to.copy_from(from, tile.len);
                } else if to_stride == width && from_stride == 0 {
                    let value = *from;
                    for i in 0..tile.len {
                        *to.add(i) = value;
                    }
                } else {
                    for i in 0..tile.len {
                        *to.byte_add(i * to_stride) = *from.byte_add(i * from_stride);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::Element;
    use plimsoll_engine::testing::{Held, Lot, assert_close, launch_all, rounded, shapes};

    #[test]
    fn copies_between_all_dtypes_and_layouts() {
        let mut lot = Lot(1);
        for from in DType::ALL {
            for to in DType::ALL {
                for shape in shapes() {
                    let specials = to.is_float();
                    let x = Held::random(&mut lot, from, &shape, specials);
                    // C casts from f64 to a half type by way of f32.
                    let want: Vec<f64> = x
                        .values()
                        .into_iter()
                        .map(|v| {
                            if matches!(to, DType::F16 | DType::BF16) {
                                f64::from(v as f32)
                            } else {
                                v
                            }
                        })
                        .map(|v| rounded(to, v))
                        .collect();
                    let mut out = [Held::output(&mut lot, to, &shape)];
                    let what = format!("{from} {:?} to {to} {:?}", x.meta, out[0].meta);
                    launch_all(&[&x], &mut out, 0, copy, |out| {
                        assert_close(&out[0].values(), &want, 0.0, 0.0, &what);
                    });
                }
            }
        }
    }

    #[test]
    fn large_integers_reach_f32_with_one_rounding() {
        // Through f64 this would round twice, to 2^60 exactly.
        let value = (1i64 << 60) + (1 << 36) + 1;
        assert_eq!(f32::from_number(value), value as f32);
        assert_ne!(f32::from_number(value), f32::from_f64(value.to_f64()));
        assert_eq!(i64::from_number(-2.9f32), -2);
        assert!(plimsoll_engine::Truth::from_number(f32::NAN).get());
    }

    #[test]
    fn large_transposes_cover_whole_and_partial_blocks() {
        let mut lot = Lot(2);
        for dtype in [DType::U8, DType::BF16, DType::F32, DType::F64] {
            for (rows, columns) in [(200, 300), (64, 64), (65, 129), (8, 1000), (1000, 8)] {
                let layout =
                    plimsoll_core::Layout::strided(&[rows, columns], &[1, rows], 3).unwrap();
                let x = Held::new(dtype, layout, || lot.value(dtype, false));
                let mut out = [Held::of(dtype, &[rows, columns], &vec![0.0; rows * columns])];
                let want = x.values();
                launch_all(&[&x], &mut out, 0, copy, |out| assert_eq!(out[0].values(), want));
            }
        }
    }
}
