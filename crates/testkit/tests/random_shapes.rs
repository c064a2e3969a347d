//! Shapes, dims, dtypes and arrangements that nobody chose: random programs of one or two
//! operations against the oracle, to catch what the rows of the case list do not think of.

use plimsoll_core::{DType, Device, Result};
use plimsoll_tensor::{ArgOptions, ReduceOptions, SortOptions, SumOptions, Tensor};
use plimsoll_testkit::cases::{Input, Tolerance, Values, Wanted};
use plimsoll_testkit::compare::difference;
use plimsoll_testkit::layouts::{Arrangement, Placed, arrangements, dtypes, shapes};
use plimsoll_testkit::oracle::{Array, binary, copy, index, join, linalg, reduce, unary, views};
use plimsoll_testkit::subject;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// An input with small values of any kind, laid out as asked.
fn input(shape: &[usize], dtype: DType, how: Arrangement, seed: u64) -> Placed {
    let input = Input { shape: shape.to_vec(), values: Values::Any, wanted: Wanted::Same };
    let how = if how.applies_to(shape) { how } else { Arrangement::Contiguous };
    Placed::new(&input.array(dtype, seed), how)
}

fn on(device: Device, placed: &Placed) -> Tensor {
    subject::place(placed, device).expect("inputs can be made").1
}

fn same(actual: Result<Tensor>, expected: &Array, floor: f64) -> Result<(), TestCaseError> {
    let actual = actual.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let actual = subject::read(&actual).map_err(|error| TestCaseError::fail(error.to_string()))?;
    match difference(&actual, expected, Tolerance { ulps: 16.0, floor }) {
        None => Ok(()),
        Some(how) => Err(TestCaseError::fail(how)),
    }
}

/// Runs a property on one device of its own; the seed is proptest's, printed with a failure.
fn check<S: Strategy>(
    strategy: S,
    property: impl Fn(Device, S::Value) -> Result<(), TestCaseError>,
) {
    let device = subject::plain_device();
    let mut runner =
        TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    runner.run(&strategy, |value| property(device, value)).unwrap();
    assert_eq!(plimsoll_tensor::memory::arena(device).live_bytes(), 0, "bytes are left over");
}

/// A shape and one that broadcasts with it: some sizes 1, some leading ones gone.
fn broadcastable() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    (shapes(5), prop::collection::vec(any::<bool>(), 4), 0..=4usize).prop_map(
        |(shape, ones, cut)| {
            let other: Vec<usize> =
                shape.iter().zip(&ones).map(|(&size, &one)| if one { 1 } else { size }).collect();
            let cut = cut.min(other.len());
            (shape, other[cut..].to_vec())
        },
    )
}

#[test]
fn elementwise_of_any_two_layouts() {
    check(
        (broadcastable(), dtypes(), dtypes(), arrangements(), arrangements(), any::<u64>()),
        |device, ((a, b), first, second, how, other, seed)| {
            let (a, b) = (input(&a, first, how, seed), input(&b, second, other, !seed));
            let (x, y) = (on(device, &a), on(device, &b));
            let (a, b) = (a.array(), b.array());
            same(x.add(&y), &binary::add(&a, &b, 1.0), 6.0)?;
            same(y.mul(&x), &binary::mul(&b, &a), 0.0)?;
            same(x.maximum(&y), &binary::maximum(&a, &b), 0.0)?;
            same(x.ne(&y), &binary::ne(&a, &b), 0.0)?;
            let mask = x.gt(0).and_then(|mask| Tensor::where_(&mask, &x, &y));
            let expected = binary::compare(&a, &Array::host(0i64), |o| o.is_gt());
            same(mask, &binary::where_(&expected, &a, &b), 0.0)
        },
    );
}

#[test]
fn unary_and_copies_of_any_layout() {
    check(
        (shapes(6), dtypes(), dtypes(), arrangements(), any::<u64>()),
        |device, (shape, dtype, to, how, seed)| {
            let placed = input(&shape, dtype, how, seed);
            let x = on(device, &placed);
            let a = placed.array();
            same(x.tanh(), &unary::float(&a, f64::tanh), 0.0)?;
            same(x.contiguous(), &a, 0.0)?;
            same(x.clone_tensor(), &a, 0.0)?;
            // What a negative float becomes in uint8 is not defined.
            if to != DType::U8 || !dtype.is_float() {
                same(x.to(to), &copy::to(&a, to), 0.0)?;
            }
            Ok(())
        },
    );
}

#[test]
fn reductions_over_any_dims() {
    let dims = prop::collection::btree_set(0..4usize, 0..=4);
    check(
        (shapes(6), dtypes(), arrangements(), dims, any::<bool>(), any::<u64>()),
        |device, (shape, dtype, how, dims, keepdim, seed)| {
            let placed = input(&shape, dtype, how, seed);
            let x = on(device, &placed);
            let a = placed.array();
            // Counted from the end where the set's own number is odd, so that both ways are met.
            let rank = shape.len() as i64;
            let dims: Vec<i64> = dims
                .into_iter()
                .filter(|&d| d < shape.len())
                .map(|d| if d % 2 == 1 { d as i64 - rank } else { d as i64 })
                .collect();
            same(
                x.sum_with(SumOptions::from(&dims).keepdim(keepdim)),
                &reduce::sum(&a, &dims, keepdim),
                64.0,
            )?;
            if !shape.contains(&0) {
                same(
                    x.amax_with(ReduceOptions::from(&dims).keepdim(keepdim)),
                    &reduce::amax(&a, &dims, keepdim),
                    0.0,
                )?;
                if dtype != DType::Bool {
                    let dim = dims.first().copied();
                    same(
                        x.argmin_with(ArgOptions::new().dim(dim).keepdim(keepdim)),
                        &reduce::argmin(&a, dim, keepdim),
                        0.0,
                    )?;
                }
            }
            Ok(())
        },
    );
}

#[test]
fn products_of_any_matrices() {
    check(
        (0..=3usize, 0..=9usize, 0..=20usize, 0..=9usize, dtypes(), arrangements(), any::<u64>()),
        |device, (batch, m, k, n, dtype, how, seed)| {
            if dtype == DType::Bool {
                return Ok(());
            }
            let a = input(&[batch, m, k], dtype, how, seed);
            let b = input(&[k, n], dtype, how, !seed);
            let product = on(device, &a).matmul(&on(device, &b));
            same(product, &linalg::matmul(&a.array(), &b.array()), 40.0)
        },
    );
}

#[test]
fn sorting_and_joining_any_layout() {
    check(
        (shapes(7), dtypes(), arrangements(), 0..4usize, any::<bool>(), any::<u64>()),
        |device, (shape, dtype, how, dim, descending, seed)| {
            let placed = input(&shape, dtype, how, seed);
            let x = on(device, &placed);
            let a = placed.array();
            let dim = if shape.is_empty() { 0 } else { (dim % shape.len()) as i64 };
            let (values, order) = x
                .sort_with(SortOptions::new().dim(dim).descending(descending))
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            let (expected, expected_order) = index::sort(&a, dim, descending);
            same(Ok(values), &expected, 0.0)?;
            same(Ok(order), &expected_order, 0.0)?;
            same(x.nonzero(), &index::nonzero(&a), 0.0)?;
            if !shape.is_empty() {
                same(Tensor::cat(&[&x, &x], dim), &join::cat(&[&a, &a], dim), 0.0)?;
            }
            Ok(())
        },
    );
}

#[test]
fn views_of_views_read_and_write_the_right_elements() {
    check(
        (shapes(6), dtypes(), arrangements(), 0..4usize, 0..6usize, 1..4usize, any::<u64>()),
        |device, (shape, dtype, how, dim, start, step, seed)| {
            if shape.is_empty() || how == Arrangement::Expanded {
                return Ok(());
            }
            let placed = input(&shape, dtype, how, seed);
            let x = on(device, &placed);
            let a = placed.array();
            let rank = shape.len() as i64;
            let dim = (dim % shape.len()) as i64;
            let order: Vec<i64> = (0..rank).map(|d| (d + 1) % rank).collect();
            let part = x
                .permute(&order)
                .and_then(|x| x.slice(dim, start as i64, i64::MAX, step as i64))
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            let part_of = |a: &Array| {
                views::slice(&views::permute(a, &order), dim, start as i64, i64::MAX, step)
            };
            same(Ok(part.clone()), &part_of(&a), 0.0)?;
            // Written through the view, the base shows it in those places and nowhere else.
            let places =
                Array::new(DType::I64, &shape, (0..a.numel() as i64).map(Into::into).collect());
            let written = part_of(&places);
            part.fill_(1).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let expected = Array::new(
                dtype,
                &shape,
                (0..a.numel() as i64)
                    .map(|i| match written.values().iter().any(|w| w.to_i64() == i) {
                        true => 1i64.into(),
                        false => a.values()[i as usize],
                    })
                    .collect(),
            );
            same(Ok(x), &expected, 0.0)
        },
    );
}
