//! Index kernels against naive loops over logical indices.

use plimsoll_core::{DType, Layout, Result};

use super::*;
use plimsoll_engine::testing::{
    Held, Lot, launch, launch_all, launch_in_place, random_layout, rounded, shapes,
};
use plimsoll_engine::{CpuLaunch, Meta};

/// The index of logical position `at` in `shape`.
fn unravel(shape: &[usize], mut at: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        index[d] = at % shape[d];
        at /= shape[d];
    }
    index
}

fn ravel(shape: &[usize], index: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (i, size)| at * size + i)
}

/// An index tensor of `shape` with values below `size` (from `-size` if `negative`).
fn indices(lot: &mut Lot, shape: &[usize], size: usize, negative: bool) -> Held {
    let layout = random_layout(lot, shape, true);
    Held::new(DType::I64, layout, || {
        let at = lot.below(size) as f64;
        if negative && lot.below(3) == 0 { at - size as f64 } else { at }
    })
}

fn sized_cases() -> impl Iterator<Item = (DType, Vec<usize>)> {
    DType::ALL.into_iter().flat_map(|dtype| {
        shapes().into_iter().filter(|s| s.iter().all(|&d| d > 0)).map(move |shape| (dtype, shape))
    })
}

#[test]
fn gather_reads_along_every_dimension() {
    let mut lot = Lot(71);
    for (dtype, shape) in sized_cases() {
        for dim in 0..shape.len().max(1) {
            let x = Held::random(&mut lot, dtype, &shape, false);
            let mut index_shape = shape.clone();
            for (d, size) in index_shape.iter_mut().enumerate() {
                *size = if d == dim { lot.below(2 * *size) } else { 1 + lot.below(*size) };
            }
            let index =
                indices(&mut lot, &index_shape, shape.get(dim).copied().unwrap_or(1), false);
            let (values, at) = (x.values(), index.values());
            let want: Vec<f64> = (0..at.len())
                .map(|i| {
                    let mut place = unravel(&index_shape, i);
                    if let Some(along) = place.get_mut(dim) {
                        *along = at[i] as usize;
                    }
                    values[ravel(&shape, &place)]
                })
                .collect();
            let mut out = [Held::output(&mut lot, dtype, &index_shape)];
            launch_all(
                &[&x, &index],
                &mut out,
                0,
                |l| gather(l, dim),
                |out| {
                    assert_eq!(out[0].values(), want, "gather {shape:?} along {dim}");
                },
            );
        }
    }
}

#[test]
fn scatter_add_adds_along_every_dimension() {
    let mut lot = Lot(72);
    for (dtype, shape) in sized_cases() {
        for dim in 0..shape.len().max(1) {
            let x = Held::random(&mut lot, dtype, &shape, false);
            let mut index_shape = shape.clone();
            for (d, size) in index_shape.iter_mut().enumerate() {
                *size = if d == dim { lot.below(2 * *size) } else { 1 + lot.below(*size) };
            }
            let index =
                indices(&mut lot, &index_shape, shape.get(dim).copied().unwrap_or(1), false);
            // The source may be larger than the index.
            let source_shape: Vec<usize> = index_shape.iter().map(|&s| s + lot.below(2)).collect();
            let source = Held::random(&mut lot, dtype, &source_shape, false);
            let (at, added) = (index.values(), source.values());
            let mut want = x.values();
            for (i, &index) in at.iter().enumerate() {
                let mut place = unravel(&index_shape, i);
                let from = ravel(&source_shape, &place);
                if let Some(along) = place.get_mut(dim) {
                    *along = index as usize;
                }
                let to = &mut want[ravel(&shape, &place)];
                *to = if dtype == DType::Bool {
                    to.max(added[from])
                } else {
                    rounded_sum(dtype, *to, added[from])
                };
            }
            let mut out = [Held::output(&mut lot, dtype, &shape)];
            let kernel = |l: &CpuLaunch<'_>| scatter(l, dim, Combine::Add);
            launch_all(&[&x, &index, &source], &mut out, 0, kernel, |out| {
                assert_eq!(out[0].values(), want, "scatter_add {shape:?} along {dim}");
            });
            let mut target = Held::of(dtype, &shape, &x.values());
            launch_in_place(&mut target, &[&index, &source], kernel).unwrap();
            assert_eq!(target.values(), want);
        }
    }
}

/// `a + b` as the dtype adds: u8 wraps, floats round after each addition.
fn rounded_sum(dtype: DType, a: f64, b: f64) -> f64 {
    match dtype {
        DType::U8 => (a + b) % 256.0,
        DType::F16 | DType::BF16 => rounded(dtype, f64::from(a as f32 + b as f32)),
        _ => rounded(dtype, a + b),
    }
}

/// Reads `x` as `x[i, :, j]` does, one result element at a time: positions of x in the result's
/// order.
fn advanced_positions(shape: &[usize], dims: &[usize], index: &[Held]) -> (Vec<usize>, Vec<usize>) {
    let shapes: Vec<&[usize]> = index.iter().map(Held::shape).collect();
    let common = plimsoll_core::broadcast_shapes("test", &shapes).unwrap();
    let adjacent = dims.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let start = if adjacent { dims[0] } else { 0 };
    let rest: Vec<usize> = (0..shape.len()).filter(|d| !dims.contains(d)).collect();
    let mut result: Vec<usize> = rest.iter().map(|&d| shape[d]).collect();
    for (i, &size) in common.iter().enumerate() {
        result.insert(start + i, size);
    }
    let positions = (0..result.iter().product())
        .map(|i| {
            let place = unravel(&result, i);
            let shared = &place[start..start + common.len()];
            let own: Vec<usize> =
                place[..start].iter().chain(&place[start + common.len()..]).copied().collect();
            let mut at = vec![0; shape.len()];
            for (d, own) in rest.iter().zip(own) {
                at[*d] = own;
            }
            for (&d, index) in dims.iter().zip(index) {
                let lead = common.len() - index.shape().len();
                let local: Vec<usize> = index
                    .shape()
                    .iter()
                    .zip(&shared[lead..])
                    .map(|(&size, &i)| if size == 1 { 0 } else { i })
                    .collect();
                let value = index.values()[ravel(index.shape(), &local)];
                at[d] =
                    if value < 0.0 { (value + shape[d] as f64) as usize } else { value as usize };
            }
            ravel(shape, &at)
        })
        .collect();
    (result, positions)
}

/// The input's shape, the indexed dimensions, and the shape of each index.
type AdvancedCase = (Vec<usize>, Vec<usize>, Vec<Vec<usize>>);

fn advanced_cases() -> Vec<AdvancedCase> {
    vec![
        (vec![7], vec![0], vec![vec![]]),
        (vec![7], vec![0], vec![vec![4, 3]]),
        (vec![50, 70], vec![0], vec![vec![90]]),
        (vec![50, 70], vec![1], vec![vec![3, 20]]),
        (vec![5, 6, 7], vec![0, 2], vec![vec![4], vec![1]]),
        (vec![5, 6, 7], vec![0, 1], vec![vec![4, 1], vec![3]]),
        (vec![5, 6, 7], vec![1, 2], vec![vec![8], vec![8]]),
        (vec![5, 6, 7], vec![0, 1, 2], vec![vec![2, 3], vec![3], vec![1, 1]]),
        (vec![4, 300, 2], vec![1], vec![vec![0]]),
    ]
}

#[test]
fn index_reads_lists_of_indices() {
    let mut lot = Lot(73);
    for dtype in DType::ALL {
        for (shape, dims, index_shapes) in advanced_cases() {
            let x = Held::random(&mut lot, dtype, &shape, false);
            let index: Vec<Held> = dims
                .iter()
                .zip(&index_shapes)
                .map(|(&d, of)| indices(&mut lot, of, shape[d], true))
                .collect();
            let (result, positions) = advanced_positions(&shape, &dims, &index);
            let values = x.values();
            let want: Vec<f64> = positions.iter().map(|&p| values[p]).collect();
            let mut inputs = vec![&x];
            inputs.extend(&index);
            let metas: Vec<&Meta> = inputs.iter().map(|held| &held.meta).collect();
            let bytes = index_workspace_bytes(&metas);
            let mut out = [Held::output(&mut lot, dtype, &result)];
            launch_all(
                &inputs,
                &mut out,
                bytes,
                |l| super::index(l, &dims),
                |out| {
                    assert_eq!(out[0].values(), want, "{shape:?} at {dims:?}");
                },
            );
        }
    }
}

#[test]
fn index_put_writes_and_adds_in_order() {
    let mut lot = Lot(74);
    for dtype in DType::ALL {
        for (shape, dims, index_shapes) in advanced_cases() {
            for accumulate in [false, true] {
                let x = Held::random(&mut lot, dtype, &shape, false);
                let index: Vec<Held> = dims
                    .iter()
                    .zip(&index_shapes)
                    .map(|(&d, of)| indices(&mut lot, of, shape[d], true))
                    .collect();
                let (result, positions) = advanced_positions(&shape, &dims, &index);
                let lead = lot.below(result.len() + 1);
                let values = Held::random(&mut lot, dtype, &result[lead..], false);
                let flat = values.values();
                let mut want = x.values();
                for (i, &p) in positions.iter().enumerate() {
                    let value = flat[i % flat.len()];
                    want[p] = match (accumulate, dtype) {
                        (false, _) => value,
                        (true, DType::Bool) => want[p].max(value),
                        (true, _) => rounded_sum(dtype, want[p], value),
                    };
                }
                let mut inputs = vec![&x, &values];
                inputs.extend(&index);
                let metas: Vec<&Meta> = inputs.iter().map(|held| &held.meta).collect();
                let bytes = index_put_workspace_bytes(&metas);
                let mut out = [Held::output(&mut lot, dtype, &shape)];
                let kernel = |l: &CpuLaunch<'_>| index_put(l, &dims, accumulate);
                launch_all(&inputs, &mut out, bytes, kernel, |out| {
                    assert_eq!(out[0].values(), want, "{shape:?} at {dims:?}");
                });
            }
        }
    }
}

#[test]
fn an_index_out_of_range_is_named_and_nothing_is_written() {
    let x = Held::of(DType::F32, &[2, 3], &[1.0; 6]);
    let bad = Held::of(DType::I64, &[1, 2], &[0.0, 3.0]);
    let mut out = [Held::of(DType::F32, &[1, 2], &[0.0; 2])];
    let error = launch(&[&x, &bad], &mut out, 0, |l| gather(l, 1)).unwrap_err();
    assert!(error.is_index());
    assert_eq!(error.to_string(), "test: index 3 is out of bounds for dimension 1 with size 3");
    let mut target = x.clone();
    let ones = Held::of(DType::F32, &[1, 2], &[1.0; 2]);
    let error =
        launch_in_place(&mut target, &[&bad, &ones], |l| scatter(l, 1, Combine::Add)).unwrap_err();
    assert!(error.is_index());
    assert_eq!(target.values(), x.values());
    let list = Held::of(DType::I64, &[2], &[0.0, -3.0]);
    let mut put = [x.clone()];
    let one = Held::of(DType::F32, &[], &[9.0]);
    let kernel = |l: &CpuLaunch<'_>| index_put(l, &[0], false);
    let bytes = index_put_workspace_bytes(&[&x.meta, &one.meta, &list.meta]);
    assert!(launch(&[&x, &one, &list], &mut put, bytes, kernel).unwrap_err().is_index());
    assert_eq!(put[0].values(), x.values());
    let mut out = [Held::of(DType::F32, &[2, 3], &[0.0; 6])];
    let kernel = |l: &CpuLaunch<'_>| super::index(l, &[0]);
    assert!(launch(&[&x, &list], &mut out, 64, kernel).unwrap_err().is_index());
    assert!(launch(&[&x, &list], &mut out, 0, kernel).unwrap_err().is_invalid_argument());
}

#[test]
fn nonzero_lists_places_in_row_major_order() {
    let mut lot = Lot(75);
    for dtype in DType::ALL {
        for shape in shapes().into_iter().chain([vec![300, 400]]) {
            let layout = random_layout(&mut lot, &shape, true);
            let x = Held::new(dtype, layout, || if lot.below(3) == 0 { 1.0 } else { 0.0 });
            let want: Vec<f64> = x
                .values()
                .iter()
                .enumerate()
                .filter(|(_, v)| **v != 0.0)
                .flat_map(|(i, _)| unravel(&shape, i))
                .map(|i| i as f64)
                .collect();
            let count = x.values().iter().filter(|v| **v != 0.0).count();
            let found: Result<()> = launch(&[&x], &mut [], 0, |l| {
                assert_eq!(nonzero_count(l)?, count);
                Ok(())
            });
            found.unwrap();
            let mut out = [Held::output(&mut lot, DType::I64, &[count, shape.len()])];
            launch_all(&[&x], &mut out, 0, nonzero, |out| assert_eq!(out[0].values(), want));
        }
    }
    let x = Held::new(DType::F32, Layout::contiguous(&[2]).unwrap(), || 1.0);
    let mut short = [Held::of(DType::I64, &[1, 1], &[0.0])];
    assert!(launch(&[&x], &mut short, 0, nonzero).unwrap_err().is_shape());
}
