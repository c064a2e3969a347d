//! Every dtype, direction and length against the standard library's stable sort with PyTorch's
//! order.

use std::cmp::Ordering;

use half::{bf16, f16};
use plimsoll_core::DType;
use proptest::prelude::*;

use super::*;

trait Sortable: Copy + std::fmt::Debug + 'static {
    const DTYPE: DType;
    fn from_random(random: u64) -> Self;
    /// PyTorch's order.
    fn order(&self, other: &Self) -> Ordering;
    fn bits(&self) -> u64;
}

macro_rules! sortable {
    ($($value:ty, $dtype:ident, $from:expr, $order:expr, $bits:expr;)*) => {$(
        impl Sortable for $value {
            const DTYPE: DType = DType::$dtype;
            fn from_random(random: u64) -> Self {
                $from(random)
            }
            fn order(&self, other: &Self) -> Ordering {
                $order(self, other)
            }
            fn bits(&self) -> u64 {
                $bits(self)
            }
        }
    )*};
}

fn float_order<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    // Only NaN does not equal itself.
    let (a_nan, b_nan) = (a.partial_cmp(a).is_none(), b.partial_cmp(b).is_none());
    a.partial_cmp(b).unwrap_or(a_nan.cmp(&b_nan))
}

/// Ordinary numbers, with the awkward ones often among them.
fn awkward(random: u64) -> f64 {
    match random % 16 {
        0 => 0.0,
        1 => -0.0,
        2 => f64::NAN,
        3 => -f64::NAN,
        4 => f64::INFINITY,
        5 => f64::NEG_INFINITY,
        6 => 1e-310,
        _ => (random >> 40) as f64 / 1000.0 - 8000.0,
    }
}

sortable! {
    f32, F32, |r| awkward(r) as f32, float_order, |v: &f32| u64::from(v.to_bits());
    f64, F64, awkward, float_order, |v: &f64| v.to_bits();
    f16, F16, |r| f16::from_f64(awkward(r)), float_order, |v: &f16| u64::from(v.to_bits());
    bf16, BF16, |r| bf16::from_f64(awkward(r)), float_order, |v: &bf16| u64::from(v.to_bits());
    i64, I64, |r: u64| if r.is_multiple_of(3) { (r % 100) as i64 - 50 } else { r as i64 }, Ord::cmp, |v: &i64| *v as u64;
    i32, I32, |r: u64| if r.is_multiple_of(3) { (r % 100) as i32 - 50 } else { r as i32 }, Ord::cmp, |v: &i32| *v as u32 as u64;
    i16, I16, |r: u64| (r >> 20) as i16, Ord::cmp, |v: &i16| *v as u16 as u64;
    i8, I8, |r: u64| (r >> 20) as i8, Ord::cmp, |v: &i8| *v as u8 as u64;
    u8, U8, |r: u64| (r >> 20) as u8, Ord::cmp, |v: &u8| u64::from(*v);
    bool, Bool, |r: u64| r.is_multiple_of(2), Ord::cmp, |v: &bool| u64::from(*v);
}

fn check<T: Sortable>(rows: usize, len: usize, descending: bool, threads: usize, seed: u64) {
    let mut random = seed | 1;
    let keys: Vec<T> = (0..rows * len)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            T::from_random(random.wrapping_mul(0x2545_f491_4f6c_dd1d))
        })
        .collect();
    let mut sorted = keys.clone();
    let mut positions = vec![-1i64; rows * len];
    parallel::with_threads(threads, || {
        let plan = SortPlan::new(T::DTYPE, rows, len);
        let words = plan.workspace_bytes() / 8;
        let mut workspace = vec![u64::MAX; words + 8];
        let (from, to) = (keys.as_ptr().cast(), sorted.as_mut_ptr().cast());
        let space = workspace.as_mut_ptr().cast();
        // SAFETY: the vectors have the plan's sizes.
        unsafe { plan.run(from, to, positions.as_mut_ptr(), descending, space) };
        assert!(workspace[words..].iter().all(|&word| word == u64::MAX), "workspace overrun");
    });
    for row in 0..rows {
        let keys = &keys[row * len..][..len];
        let mut wanted: Vec<usize> = (0..len).collect();
        wanted.sort_by(|&a, &b| {
            let order = keys[a].order(&keys[b]);
            if descending { order.reverse() } else { order }
        });
        for (place, &position) in wanted.iter().enumerate() {
            let at = row * len + place;
            assert_eq!(positions[at], position as i64, "{} row {row} place {place}", T::DTYPE);
            assert_eq!(sorted[at].bits(), keys[position].bits(), "the very bits, NaN and -0 too");
        }
    }
}

fn check_dtype(dtype: DType, rows: usize, len: usize, descending: bool, threads: usize, seed: u64) {
    match dtype {
        DType::F32 => check::<f32>(rows, len, descending, threads, seed),
        DType::F64 => check::<f64>(rows, len, descending, threads, seed),
        DType::F16 => check::<f16>(rows, len, descending, threads, seed),
        DType::BF16 => check::<bf16>(rows, len, descending, threads, seed),
        DType::I64 => check::<i64>(rows, len, descending, threads, seed),
        DType::I32 => check::<i32>(rows, len, descending, threads, seed),
        DType::I16 => check::<i16>(rows, len, descending, threads, seed),
        DType::I8 => check::<i8>(rows, len, descending, threads, seed),
        DType::U8 => check::<u8>(rows, len, descending, threads, seed),
        DType::Bool => check::<bool>(rows, len, descending, threads, seed),
    }
}

#[test]
fn every_dtype_length_and_direction() {
    for dtype in DType::ALL {
        for len in [0, 1, 2, 3, 7, 64, 255, 256, 257, 1000, 5000] {
            for descending in [false, true] {
                check_dtype(dtype, 3, len, descending, 2, 17 + len as u64);
            }
        }
        check_dtype(dtype, 0, 5, false, 2, 1);
    }
}

#[test]
fn long_rows_are_sorted_together() {
    for dtype in DType::ALL {
        for threads in [2, 3] {
            check_dtype(dtype, 1, 70_001, threads == 3, threads, 5);
        }
    }
}

#[test]
fn rows_of_equal_keys_keep_their_order() {
    let plan = SortPlan::new(DType::I32, 1, 1000);
    let mut workspace = vec![0u64; plan.workspace_bytes() / 8];
    let keys = vec![7i32; 1000];
    let (mut sorted, mut positions) = (vec![0i32; 1000], vec![0i64; 1000]);
    let (from, to) = (keys.as_ptr().cast(), sorted.as_mut_ptr().cast());
    // SAFETY: the vectors have the plan's sizes.
    unsafe { plan.run(from, to, positions.as_mut_ptr(), true, workspace.as_mut_ptr().cast()) };
    assert_eq!(sorted, keys);
    assert!(positions.iter().copied().eq(0..1000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]
    #[test]
    fn any_rows_sort_as_the_library_does(
        dtype in 0..DType::ALL.len(), rows in 0usize..6, len in 0usize..1500, descending: bool,
        threads in 1usize..4, seed: u64,
    ) {
        check_dtype(DType::ALL[dtype], rows, len, descending, threads, seed);
    }
}
