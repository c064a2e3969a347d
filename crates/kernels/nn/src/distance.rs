//! Distances of every row of one matrix to every row of another, by a norm of any order; in
//! batches. Operands are contiguous; sums are in f64.

use plimsoll_core::{DType, Error, Result};
use plimsoll_engine::number::Number;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Operand, parallel};

/// Differences that pay for waking one more thread.
const GRAIN: usize = 1 << 14;

#[cold]
fn misfit(launch: &CpuLaunch<'_>) -> Error {
    Error::invalid_argument("the kernel needs contiguous matrices of one dtype, f32 or f64")
        .in_operation(launch.operation)
}

/// Rows and columns of a batch of matrices.
fn matrix(operand: &Operand<'_>) -> Option<[usize; 2]> {
    match *operand.shape() {
        [_, rows, columns] if operand.layout().is_contiguous() => Some([rows, columns]),
        _ => None,
    }
}

/// `[x of [batch, p, m], y of [batch, r, m]]` -> [batch, p, r].
pub fn cdist(launch: &CpuLaunch<'_>, order: f64) -> Result<()> {
    let ([x, y], [out]) = (launch.inputs, launch.outputs) else { return Err(misfit(launch)) };
    let dtypes = [x, y, out].map(|operand| operand.dtype());
    let (Some([p, m]), Some([r, _]), Some(_)) = (matrix(x), matrix(y), matrix(out)) else {
        return Err(misfit(launch));
    };
    match dtypes {
        [DType::F32, DType::F32, DType::F32] => forward::<f32>([x, y, out], [p, r, m], order),
        [DType::F64, DType::F64, DType::F64] => forward::<f64>([x, y, out], [p, r, m], order),
        _ => return Err(misfit(launch)),
    }
    Ok(())
}

fn forward<T: Number + Copy>([x, y, out]: [&Operand<'_>; 3], [p, r, m]: [usize; 3], order: f64) {
    let to = Shared(out.first::<T>());
    parallel::split(out.layout().numel(), (GRAIN / m.max(1)).max(1), |range| {
        for place in range {
            let (row, column) = (place / r, place % r);
            let other = row / p * r + column;
            // SAFETY: both matrices have `m` columns; the rows are below their number.
            let (a, b) = unsafe {
                (
                    std::slice::from_raw_parts(x.first::<T>().add(row * m), m),
                    std::slice::from_raw_parts(y.first::<T>().add(other * m), m),
                )
            };
            let apart =
                a.iter().zip(b).map(|(&a, &b)| (f64::from_number(a) - f64::from_number(b)).abs());
            // SAFETY: the result has this place, and no other thread writes it.
            unsafe { *to.add(place) = T::from_number(norm(apart, order)) };
        }
    });
}

/// The sum. That of nothing is +0, which the library's is not.
fn total(terms: impl Iterator<Item = f64>) -> f64 {
    terms.fold(0.0, |sum, term| sum + term)
}

/// The norm of distances that are not negative.
fn norm(apart: impl Iterator<Item = f64>, order: f64) -> f64 {
    if order == 0.0 {
        apart.filter(|&x| x != 0.0).count() as f64
    } else if order == 1.0 {
        total(apart)
    } else if order == 2.0 {
        total(apart.map(|x| x * x)).sqrt()
    } else if order.is_infinite() {
        // A NaN stays.
        apart.fold(0.0, |most, x| if x > most || x.is_nan() { x } else { most })
    } else {
        total(apart.map(|x| x.powf(order))).powf(1.0 / order)
    }
}

/// `[grad of [batch, p, r], x, y, distances]` -> the gradient of x.
pub fn cdist_backward(launch: &CpuLaunch<'_>, order: f64) -> Result<()> {
    let ([grad, x, y, distances], [out]) = (launch.inputs, launch.outputs) else {
        return Err(misfit(launch));
    };
    let all = [grad, x, y, distances, out];
    let alike = all.iter().all(|operand| operand.dtype() == x.dtype() && matrix(operand).is_some());
    let (Some([p, m]), Some([r, _]), true) = (matrix(x), matrix(y), alike) else {
        return Err(misfit(launch));
    };
    match x.dtype() {
        DType::F32 => backward::<f32>(all, [p, r, m], order),
        DType::F64 => backward::<f64>(all, [p, r, m], order),
        _ => return Err(misfit(launch)),
    }
    Ok(())
}

fn backward<T: Number + Copy>(
    [grad, x, y, distances, out]: [&Operand<'_>; 5],
    [p, r, m]: [usize; 3],
    order: f64,
) {
    let to = Shared(out.first::<T>());
    // SAFETY: `index` is below the number of the operand's elements, here and below.
    let at = |operand: &Operand<'_>, index: usize| unsafe {
        f64::from_number(*operand.first::<T>().add(index))
    };
    parallel::split(x.layout().numel(), (GRAIN / r.max(1)).max(1), |range| {
        for place in range {
            let (row, column) = (place / m, place % m);
            let own = at(x, place);
            let sum: f64 = (0..r)
                .map(|j| {
                    // Rounded as the distance was, so that the largest difference equals it.
                    let apart = T::from_number(own - at(y, (row / p * r + j) * m + column));
                    let apart = f64::from_number(apart);
                    at(grad, row * r + j) * slope(apart, at(distances, row * r + j), order)
                })
                .sum();
            // SAFETY: the result has the shape of x, and no other thread writes this place.
            unsafe { *to.add(place) = T::from_number(sum) };
        }
    });
}

/// The derivative of a distance by one difference; 0 where there is no direction, as in PyTorch.
fn slope(apart: f64, distance: f64, order: f64) -> f64 {
    let sign = if apart == 0.0 { 0.0 } else { apart.signum() };
    if order == 0.0 || distance == 0.0 || apart == 0.0 {
        0.0
    } else if order == 1.0 {
        sign
    } else if order == 2.0 {
        apart / distance
    } else if order.is_infinite() {
        if apart.abs() == distance { sign } else { 0.0 }
    } else {
        sign * (apart.abs() / distance).powf(order - 1.0)
    }
}
