//! Every dtype, level, layout and odd size against a naive loop in `f64` (or exact integers).

use half::{bf16, f16};
use plimsoll_core::DType;
use proptest::prelude::*;

use super::*;
use plimsoll_engine::parallel;
use plimsoll_engine::simd::Isa;

/// What the naive loop needs to know of a type.
trait Value: Copy + PartialEq + std::fmt::Debug + Send {
    const DTYPE: DType;
    /// Relative error of the sums, and of the final rounding; 0 means exact.
    const SUM_ERROR: f64;
    const ROUNDING: f64;
    fn from_i32(value: i32) -> Self;
    fn to_f64(self) -> f64;
    /// A value that must never be read or overwritten.
    fn canary() -> Self;
}

macro_rules! value {
    ($($value:ty, $dtype:ident, $sum_error:expr, $rounding:expr, $from:expr, $to:expr, $canary:expr;)*) => {$(
        impl Value for $value {
            const DTYPE: DType = DType::$dtype;
            const SUM_ERROR: f64 = $sum_error;
            const ROUNDING: f64 = $rounding;
            fn from_i32(value: i32) -> Self {
                $from(value)
            }
            fn to_f64(self) -> f64 {
                $to(self)
            }
            fn canary() -> Self {
                $canary
            }
        }
    )*};
}
value! {
    f32, F32, 1.2e-7, 1.2e-7, |v| v as f32 / 16.0, f64::from, f32::NAN;
    f64, F64, 2.3e-16, 2.3e-16, |v| f64::from(v) / 16.0, |v| v, f64::NAN;
    f16, F16, 1.2e-7, 4.9e-4, |v| f16::from_f32(v as f32 / 16.0), f16::to_f64, f16::NAN;
    bf16, BF16, 1.2e-7, 4.0e-3, |v| bf16::from_f32(v as f32 / 16.0), bf16::to_f64, bf16::NAN;
    i32, I32, 0.0, 0.0, |v| v, f64::from, 0x5a5a_5a5a;
    i64, I64, 0.0, 0.0, i64::from, |v| v as f64, 0x5a5a_5a5a_5a5a;
    i16, I16, 0.0, 0.0, |v| v as i16, f64::from, 0x5a5a;
    i8, I8, 0.0, 0.0, |v| v as i8, f64::from, 0x5a;
    u8, U8, 0.0, 0.0, |v: i32| v.unsigned_abs() as u8, f64::from, 0x5a;
}

/// Small deterministic pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }
    fn value<T: Value>(&mut self) -> T {
        T::from_i32((self.next() >> 33) as i32 % 33 - 16)
    }
}

/// The layouts of a factor of `rows` x `columns`.
fn factor_layout(kind: usize, rows: usize, columns: usize) -> Strides {
    let (r, c) = (rows as isize, columns as isize);
    match kind {
        0 => Strides { row: c, column: 1 },
        1 => Strides { row: 1, column: r },
        2 => Strides { row: c + 3, column: 1 },
        3 => Strides { row: 2, column: 2 * r + 5 },
        4 => Strides { row: 3 * c, column: 3 },
        5 => Strides { row: 0, column: 1 },
        _ => Strides { row: 1, column: 0 },
    }
}
const FACTOR_LAYOUTS: usize = 7;
/// The first five have no two elements in one place.
const RESULT_LAYOUTS: usize = 5;

fn extent(strides: Strides, rows: usize, columns: usize) -> usize {
    if rows == 0 || columns == 0 {
        return 0;
    }
    ((rows - 1) as isize * strides.row + (columns - 1) as isize * strides.column) as usize + 1
}

#[derive(Clone, Debug)]
struct Case {
    isa: Isa,
    amx: bool,
    threads: usize,
    batch: Vec<usize>,
    m: usize,
    n: usize,
    k: usize,
    layouts: [usize; 3],
    alpha: f64,
    beta: f64,
    seed: u64,
}

/// A filled operand whose unused places and end are canaries.
fn operand<T: Value>(numbers: &mut Numbers, positions: &[usize], len: usize) -> Vec<T> {
    let mut values = vec![T::canary(); len + 8];
    for &position in positions {
        values[position] = numbers.value();
    }
    values
}

fn positions(strides: Strides, rows: usize, columns: usize, bases: &[usize]) -> Vec<usize> {
    let at = |i: usize, j: usize| (i as isize * strides.row + j as isize * strides.column) as usize;
    let one = |base: usize| (0..rows).flat_map(move |i| (0..columns).map(move |j| base + at(i, j)));
    bases.iter().flat_map(|&base| one(base)).collect()
}

fn check<T: Value>(case: &Case) {
    let &Case { isa, threads, m, n, k, layouts, alpha, beta, .. } = case;
    let mut numbers = Numbers(case.seed | 1);
    let (a, b) = (factor_layout(layouts[0], m, k), factor_layout(layouts[1], k, n));
    let c = factor_layout(layouts[2], m, n);
    let sizes = [extent(a, m, k), extent(b, k, n), extent(c, m, n)];
    // Batches lie one after another; the second batch dimension broadcasts B.
    let mut batch = Vec::new();
    let (mut a_step, mut c_step) = (sizes[0] + 1, sizes[2] + 1);
    for (index, &size) in case.batch.iter().enumerate().rev() {
        let b_step = if index == 0 { sizes[1] + 2 } else { 0 };
        batch.push(BatchDim { size, a: a_step as isize, b: b_step as isize, c: c_step as isize });
        (a_step, c_step) = (a_step * size, c_step * size);
    }
    batch.reverse();
    let shape = GemmShape { dtype: T::DTYPE, batch: &batch, m, n, k, a, b, c };
    let bases: Vec<[usize; 3]> =
        (0..shape.products()).map(|i| shape.offsets(i).map(|offset| offset as usize)).collect();
    let of = |operand: usize| bases.iter().map(|base| base[operand]).collect::<Vec<_>>();
    let spread = |operand: usize| of(operand).into_iter().max().unwrap_or(0) + sizes[operand];
    let left = operand::<T>(&mut numbers, &positions(a, m, k, &of(0)), spread(0));
    let right = operand::<T>(&mut numbers, &positions(b, k, n, &of(1)), spread(1));
    let c_positions = positions(c, m, n, &of(2));
    let before = match beta == 0.0 {
        // C full of canaries: with beta 0 none may be read.
        true => vec![T::canary(); spread(2) + 8],
        false => operand::<T>(&mut numbers, &c_positions, spread(2)),
    };
    let mut after = before.clone();
    parallel::with_threads(threads, || {
        let plan = Plan::with_units(&shape, isa, case.amx);
        // Canaries behind the workspace; NaN bytes inside, so that unwritten parts show.
        let bytes = plan.workspace_bytes();
        let mut workspace = vec![0xffu8; bytes + 64 + 64];
        let skip = workspace.as_ptr().align_offset(64);
        let problem = Gemm {
            shape,
            a: left.as_ptr().cast(),
            b: right.as_ptr().cast(),
            c: after.as_mut_ptr().cast(),
            alpha,
            beta,
        };
        // SAFETY: the vectors cover the shape by construction, and the workspace what the plan asks
        // for.
        unsafe { plan.run(&problem, workspace.as_mut_ptr().add(skip)) };
        assert!(
            workspace[skip + bytes..].iter().all(|&byte| byte == 0xff),
            "{case:?}: workspace end"
        );
    });
    let mut wanted = before.iter().map(|value| value.to_f64()).collect::<Vec<_>>();
    let mut tolerance = vec![0.0; wanted.len()];
    for base in &bases {
        for i in 0..m {
            for j in 0..n {
                let at = |base: usize, s: Strides, i: usize, j: usize| {
                    base + (i as isize * s.row + j as isize * s.column) as usize
                };
                let (mut sum, mut size) = (0.0, 0.0);
                for p in 0..k {
                    let product =
                        left[at(base[0], a, i, p)].to_f64() * right[at(base[1], b, p, j)].to_f64();
                    sum += product;
                    size += product.abs();
                }
                let place = at(base[2], c, i, j);
                let old = if beta == 0.0 { 0.0 } else { beta * before[place].to_f64() };
                let value = alpha * sum + old;
                wanted[place] = wrapped(T::DTYPE, value);
                tolerance[place] =
                    T::SUM_ERROR * (k as f64 + 4.0) * (size * alpha.abs() + old.abs())
                        + T::ROUNDING * value.abs();
            }
        }
    }
    let written: std::collections::HashSet<usize> = c_positions.into_iter().collect();
    for (place, value) in after.iter().enumerate() {
        if written.contains(&place) {
            let error = (value.to_f64() - wanted[place]).abs();
            assert!(
                error <= tolerance[place],
                "{case:?} at {place}: {value:?}, wanted {} +- {}",
                wanted[place],
                tolerance[place]
            );
        } else {
            assert!(
                *value == before[place] || value.to_f64().is_nan(),
                "{case:?}: place {place} between C's elements was written"
            );
        }
    }
}

/// A whole number as a narrow integer keeps it.
fn wrapped(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::U8 => f64::from(value as i64 as u8),
        DType::I8 => f64::from(value as i64 as i8),
        DType::I16 => f64::from(value as i64 as i16),
        _ => value,
    }
}

fn check_dtype(dtype: DType, case: &Case) {
    match dtype {
        DType::F32 => check::<f32>(case),
        DType::F64 => check::<f64>(case),
        DType::F16 => check::<f16>(case),
        DType::BF16 => {
            check::<bf16>(case);
            check::<bf16>(&Case { amx: false, ..case.clone() });
        }
        DType::I32 => check::<i32>(case),
        DType::I64 => check::<i64>(case),
        DType::I16 => check::<i16>(case),
        DType::I8 => check::<i8>(case),
        DType::U8 => check::<u8>(case),
        DType::Bool => unreachable!("bool has no products"),
    }
}

const DTYPES: [DType; 9] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
];
const SIZES: [usize; 18] = [0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129];

fn plain(m: usize, n: usize, k: usize) -> Case {
    Case {
        isa: Isa::detected(),
        amx: true,
        threads: 2,
        batch: vec![],
        m,
        n,
        k,
        layouts: [0; 3],
        alpha: 1.0,
        beta: 0.0,
        seed: 7,
    }
}

#[test]
fn all_small_sizes_on_every_level() {
    let sizes = &SIZES[..12];
    for isa in Isa::available() {
        for dtype in DTYPES {
            for (step, &m) in sizes.iter().enumerate() {
                for (other, &n) in sizes.iter().enumerate() {
                    let k = sizes[(step * 5 + other * 7) % sizes.len()];
                    let layouts =
                        [(m + n) % FACTOR_LAYOUTS, (m + 2 * n) % FACTOR_LAYOUTS, (m * n) % 5];
                    check_dtype(dtype, &Case { isa, layouts, ..plain(m, n, k) });
                }
            }
        }
    }
}

#[test]
fn every_layout_pair_at_sizes_that_straddle_tiles() {
    for isa in Isa::available() {
        for dtype in DTYPES {
            for a in 0..FACTOR_LAYOUTS {
                for b in 0..FACTOR_LAYOUTS {
                    let c = (a + 2 * b) % RESULT_LAYOUTS;
                    for (m, n, k) in [(33, 65, 17), (1, 129, 33), (65, 1, 64), (15, 16, 127)] {
                        check_dtype(dtype, &Case { isa, layouts: [a, b, c], ..plain(m, n, k) });
                    }
                }
            }
        }
    }
}

#[test]
fn large_odd_sizes_and_deep_sums() {
    let mut numbers = Numbers(11);
    for isa in Isa::available() {
        for dtype in DTYPES {
            for _ in 0..12 {
                let pick = |numbers: &mut Numbers| SIZES[1 + numbers.below(SIZES.len() - 1)];
                let (m, n) = (pick(&mut numbers), pick(&mut numbers));
                let k = 1 + numbers.below(1000);
                let layouts = [
                    numbers.below(FACTOR_LAYOUTS),
                    numbers.below(FACTOR_LAYOUTS),
                    numbers.below(5),
                ];
                let beta = [0.0, 1.0, -2.0][numbers.below(3)];
                let alpha = [1.0, 3.0, -1.0][numbers.below(3)];
                let threads = 1 + numbers.below(4);
                let case = Case { isa, layouts, beta, alpha, threads, ..plain(m, n, k) };
                check_dtype(dtype, &case);
            }
        }
    }
}

#[test]
fn batches_with_broadcast() {
    for dtype in DTYPES {
        for batch in [vec![1], vec![5], vec![3, 2], vec![2, 0], vec![4, 3]] {
            for (m, n, k) in [(3, 5, 7), (33, 65, 33), (64, 64, 64), (1, 40, 40)] {
                let case = Case { batch: batch.clone(), layouts: [1, 2, 2], ..plain(m, n, k) };
                check_dtype(dtype, &case);
            }
        }
    }
}

#[test]
fn nothing_to_sum_scales_c() {
    for dtype in DTYPES {
        for beta in [0.0, 1.0, 3.0] {
            check_dtype(dtype, &Case { beta, layouts: [0, 0, 2], ..plain(9, 17, 0) });
        }
    }
}

#[test]
fn the_same_shape_and_threads_give_the_same_bits() {
    let (m, n, k) = (129, 257, 700);
    let mut numbers = Numbers(3);
    let mut random = |len| (0..len).map(|_| numbers.below(1000) as f32 / 7.0).collect::<Vec<f32>>();
    let (a, b) = (random(m * k), random(k * n));
    let (sa, sb, sc) = (Strides::row_major(k), Strides::row_major(n), Strides::row_major(n));
    let shape = GemmShape { dtype: DType::F32, batch: &[], m, n, k, a: sa, b: sb, c: sc };
    let multiply = || {
        let mut c = vec![0f32; m * n];
        let mut workspace = vec![0u8; workspace_bytes(&shape) + 64];
        let problem = Gemm {
            shape,
            a: a.as_ptr().cast(),
            b: b.as_ptr().cast(),
            c: c.as_mut_ptr().cast(),
            alpha: 1.0,
            beta: 0.0,
        };
        let skip = workspace.as_ptr().align_offset(64);
        // SAFETY: the vectors cover the shape, the workspace what was asked for.
        unsafe { gemm(&problem, workspace.as_mut_ptr().add(skip)) };
        c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    parallel::with_threads(3, || {
        let first = multiply();
        for _ in 0..10 {
            assert!(multiply() == first, "timing changed a result");
        }
        // With the pool taken by somebody else the product runs inline, to the same bits.
        parallel::fork(2, |_| assert!(multiply() == first, "a busy pool changed a result"));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]
    #[test]
    fn any_product_agrees_with_the_naive_loop(
        dtype in 0..DTYPES.len(),
        level in 0usize..3,
        threads in 1usize..4,
        (m, n, k) in (0usize..70, 0usize..70, 0usize..300),
        (a, b, c) in (0..FACTOR_LAYOUTS, 0..FACTOR_LAYOUTS, 0..RESULT_LAYOUTS),
        batch in proptest::collection::vec(0usize..4, 0..3),
        alpha in prop_oneof![Just(1.0), Just(2.0), Just(0.0)],
        beta in prop_oneof![Just(0.0), Just(1.0), Just(-1.0)],
        seed: u64,
    ) {
        let isa = Isa::available().nth(level).unwrap_or(Isa::Scalar);
        let case = Case { isa, amx: true, threads, batch, m, n, k, layouts: [a, b, c], alpha, beta, seed };
        check_dtype(DTYPES[dtype], &case);
    }
}
