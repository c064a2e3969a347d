//! The norms of many tensors in one pass over all of them, for clipping: the root of each one's sum
//! of squares, added up in f64. The CUDA twin is `cuda/kernels/norms.cu`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::{DType, Error, Result};
use plimsoll_engine::iterate::{GRAIN, Ranges};
use plimsoll_engine::{CpuLaunch, Operand, parallel};

use super::blocks::{BLOCK, Lane, Wide};

/// Inputs: tensors of one float dtype. Output: a vector with the norm of each.
pub fn norms(launch: &CpuLaunch<'_>) -> Result<()> {
    let [out] = launch.outputs else {
        let why = "expected one vector of norms";
        return Err(Error::invalid_argument(why).in_operation(launch.operation));
    };
    let squares: Vec<f64> = match out.dtype() {
        DType::F64 => launch.inputs.iter().map(squares::<f64>).collect(),
        DType::F32 | DType::BF16 | DType::F16 => launch.inputs.iter().map(squares::<f32>).collect(),
        other => return Err(plimsoll_engine::wrong_dtype(launch.operation, other)),
    };
    let Ok(step) = <[usize; 1]>::try_from(out.layout().strides()) else {
        return Err(Error::shape(launch.operation, "the norms are a vector"));
    };
    for (place, sum) in squares.iter().enumerate() {
        let at = out.first_byte().wrapping_add(place * step[0] * out.dtype().size_bytes());
        let lane = Lane { at, stride: out.dtype().size_bytes(), dtype: Some(out.dtype()) };
        // SAFETY: the place is within the vector, which has an element for each input, and the
        // launch's claim lets this thread write it.
        unsafe {
            match out.dtype() {
                DType::F64 => f64::store(&lane, &[sum.sqrt()]),
                _ => f32::store(&lane, &[sum.sqrt() as f32]),
            }
        }
    }
    Ok(())
}

/// The sum of squares. Parts are of the same sizes whatever the threads, so that sums are too.
fn squares<R: Wide + Into<f64>>(x: &Operand<'_>) -> f64 {
    let ranges = Ranges::new([*x]);
    let count = ranges.numel();
    let parts: Vec<AtomicU64> = (0..count.div_ceil(GRAIN)).map(|_| AtomicU64::new(0)).collect();
    parallel::split(parts.len(), 1, |own| {
        for part in own {
            let range = part * GRAIN..count.min((part + 1) * GRAIN);
            let sum = of_range::<R>(&ranges, x.dtype(), range);
            parts[part].store(sum.to_bits(), Ordering::Relaxed);
        }
    });
    // Not `sum`, which is -0 of nothing.
    parts
        .into_iter()
        .map(|part| f64::from_bits(part.into_inner()))
        .fold(0.0, |sum, part| sum + part)
}

fn of_range<R: Wide + Into<f64>>(ranges: &Ranges<1>, dtype: DType, range: Range<usize>) -> f64 {
    let mut buffer = [R::ZERO; BLOCK];
    let mut sum = 0.0;
    ranges.run(range, |tile| {
        for row in 0..tile.rows {
            let [first] = tile.row(row);
            for start in (0..tile.len).step_by(BLOCK) {
                let values = &mut buffer[..BLOCK.min(tile.len - start)];
                let at = first.wrapping_add(start * tile.inner[0]);
                let lane = Lane { at, stride: tile.inner[0], dtype: Some(dtype) };
                // SAFETY: the tile's elements are within the tensor (the engine's promise) and of
                // its dtype; the launch's claim lets this thread read them.
                unsafe { R::load(&lane, values) };
                sum += values.iter().map(|&value| value.into() * value.into()).sum::<f64>();
            }
        }
    });
    sum
}
