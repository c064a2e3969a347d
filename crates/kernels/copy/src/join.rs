//! Joining tensors along a dimension.

use plimsoll_core::{Error, Layout, Result};

use crate::copy::copy_between;
use plimsoll_engine::map::operands;
use plimsoll_engine::{CpuLaunch, Meta, Operand};

/// [a, b, ...] -> one after another along `dim`, each cast to the output's dtype. Empty inputs are
/// skipped, whatever their shape, as in PyTorch.
pub fn cat(launch: &CpuLaunch<'_>, dim: usize) -> Result<()> {
    let [out] = operands::<1>(launch)?;
    let misfit = |why: &str| {
        let shapes: Vec<_> = launch.inputs.iter().map(|input| input.shape()).collect();
        Error::shape(
            launch.operation,
            format!("shapes {shapes:?} along dimension {dim} do not fill {:?}: {why}", out.shape()),
        )
    };
    let mut at = 0;
    for input in launch.inputs.iter().filter(|input| input.layout().numel() > 0) {
        let (shape, strides) = (input.shape(), out.layout().strides());
        let others_differ = shape.len() != out.shape().len()
            || shape.iter().zip(out.shape()).enumerate().any(|(d, (a, b))| d != dim && a != b);
        if others_differ || dim >= shape.len() || at + shape[dim] > out.shape()[dim] {
            return Err(misfit("sizes other than that dimension's must agree"));
        }
        let meta = Meta { layout: Layout::strided(shape, strides, 0)?, dtype: out.dtype() };
        let start = out.first_byte().wrapping_add(at * strides[dim] * out.dtype().size_bytes());
        // SAFETY: the part of the output from `at` on along `dim`, which is inside it as just
        // checked; the output was handed to this launch for writing.
        let part = unsafe { Operand::new(start, &meta) };
        copy_between(launch.operation, part, *input)?;
        at += shape[dim];
    }
    if out.layout().numel() > 0 && at != out.shape()[dim] {
        return Err(misfit("the sizes do not add up"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::testing::{Held, Lot, launch, launch_all, rounded, shapes};

    #[test]
    fn joins_every_dtype_along_every_dimension() {
        let mut lot = Lot(61);
        for dtype in DType::ALL {
            for shape in shapes().into_iter().filter(|shape| !shape.is_empty()) {
                for dim in 0..shape.len() {
                    let mut parts = Vec::new();
                    let mut total = 0;
                    for _ in 0..1 + lot.below(4) {
                        let mut part = shape.clone();
                        part[dim] = lot.below(shape[dim] + 2);
                        total += part[dim];
                        let from = if lot.below(4) == 0 { DType::U8 } else { dtype };
                        parts.push(Held::random(&mut lot, from, &part, false));
                    }
                    let mut whole = shape.clone();
                    whole[dim] = total;
                    let outer: usize = shape[..dim].iter().product();
                    let mut want = Vec::new();
                    for block in 0..outer {
                        for part in &parts {
                            let values = part.values();
                            let len = values.len().checked_div(outer).unwrap_or(0);
                            want.extend(
                                values[block * len..(block + 1) * len]
                                    .iter()
                                    .map(|&v| rounded(dtype, v)),
                            );
                        }
                    }
                    let inputs: Vec<&Held> = parts.iter().collect();
                    let mut out = [Held::output(&mut lot, dtype, &whole)];
                    launch_all(
                        &inputs,
                        &mut out,
                        0,
                        |l| cat(l, dim),
                        |out| {
                            assert_eq!(out[0].values(), want);
                        },
                    );
                }
            }
        }
    }

    #[test]
    fn parts_that_do_not_fill_the_output_are_errors() {
        let a = Held::of(DType::F32, &[2, 2], &[0.0; 4]);
        for shape in [[2, 5], [2, 3], [3, 2]] {
            let mut out = [Held::of(DType::F32, &shape, &vec![0.0; shape.iter().product()])];
            assert!(launch(&[&a, &a], &mut out, 0, |l| cat(l, 1)).unwrap_err().is_shape());
        }
    }
}
