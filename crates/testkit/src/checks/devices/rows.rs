//! Kernels that take rows whole, row after row: norms, softmax, losses, and sums of equal rows.

use plimsoll_core::{DType, Device, Result};
use plimsoll_tensor::{
    Approximate, BackwardOptions, CrossEntropyOptions, GeluOptions, LayerNormOptions, Reduction,
    SumOptions, Tensor,
};

use super::{compare, values};

/// Rows and lengths: those of a warp and of a block, whole packs of 16 bytes and not, more rows
/// than there are teams of threads, rows that a team's threads hold and longer ones.
const SHAPES: [(i64, i64); 7] =
    [(40, 96), (7, 99), (2000, 256), (1500, 1040), (4000, 40), (9, 8192), (3, 20_000)];

const DTYPES: [(DType, f64); 4] =
    [(DType::F32, 2e-4), (DType::F64, 1e-9), (DType::BF16, 3e-2), (DType::F16, 6e-3)];

/// Shapes for losses: more rows than blocks at once, of several pieces, and not of whole packs.
const LONG_SHAPES: [(i64, i64); 2] = [(1700, 4104), (1700, 1027)];

/// Different numbers, about as far from zero as activations are.
fn drawn(rows: i64, length: i64) -> Result<Tensor> {
    values(rows * length + 13).narrow(0, 13, rows * length)?.mul(0.7)?.view(&[rows, length])
}

fn leaf(x: &Tensor) -> Result<Tensor> {
    x.detach().requires_grad_(true)
}

/// Backward from `grad` as the gradient of `result`.
fn backward(result: &Tensor, grad: &Tensor) -> Result<()> {
    let gradient = Some(grad.clone());
    result.backward_with(BackwardOptions { gradient, ..BackwardOptions::default() })
}

fn gradients(leaves: &[&Tensor]) -> Vec<Tensor> {
    leaves.iter().map(|leaf| leaf.grad().expect("backward went through it")).collect()
}

/// Results and gradients of layer norm, with the gradient of what goes around it, and of softmax.
pub fn norms_and_softmax_of_rows_agree_with_the_cpu(device: Device) -> Result<()> {
    for (rows, length) in SHAPES {
        let x = drawn(rows, length)?;
        let slope = values(rows * length).mul(0.3)?.view(&[rows, length])?;
        let (weight, bias) = (values(length).mul(0.2)?.add(1.0)?, values(length).mul(0.1)?);
        // Weight and bias may be float32 beside halves.
        let halves = DTYPES.into_iter().filter(|(dtype, _)| dtype.size_bytes() == 2);
        let wider = halves.map(|own| (own, DType::F32));
        let same = DTYPES.into_iter().map(|own| (own, own.0));
        for ((dtype, tolerance), of_parameters) in same.chain(wider) {
            let inputs = [
                x.to(dtype)?,
                slope.to(dtype)?,
                weight.to(of_parameters)?,
                bias.to(of_parameters)?,
            ];
            let what = format!("rows {rows} x {length} of {dtype}, weights of {of_parameters}");
            // A sum over rows has the rounding of all of them.
            compare(device, &what, &inputs, tolerance * 4.0, |t| {
                let (x, weight, bias) = (leaf(&t[0])?, leaf(&t[2])?, leaf(&t[3])?);
                let options = LayerNormOptions::new().weight(&weight).bias(&bias);
                let normed = x.layer_norm_with(&[length], options)?;
                backward(&normed.add(&x)?, &t[1])?;
                let plain = leaf(&t[0])?;
                backward(&plain.layer_norm(&[length])?, &t[1])?;
                let (a, b) = (leaf(&t[0])?, leaf(&t[1])?);
                let options = LayerNormOptions::new().weight(&t[2]).bias(&t[3]);
                let (sum, of_sum) = a.add_layer_norm(&b, &[length], options)?;
                backward(&of_sum.add(&sum)?, &t[1])?;
                let mut results = vec![normed.detach(), sum.detach(), of_sum.detach()];
                results.extend(gradients(&[&a, &b]));
                let [of_weight, of_bias] = [&weight, &bias].map(|leaf| {
                    leaf.grad().expect("backward went through it").div((rows as f64).sqrt())
                });
                results.extend([of_weight?, of_bias?]);
                results.extend(gradients(&[&x, &plain]));
                Ok(results)
            })?;
        }
        for (dtype, tolerance) in DTYPES {
            let inputs = [x.to(dtype)?, slope.to(dtype)?];
            let what = format!("softmax of {rows} x {length} of {dtype}");
            compare(device, &what, &inputs, tolerance, |t| {
                let mut results = Vec::new();
                for logarithm in [false, true] {
                    let x = leaf(&t[0])?;
                    let y = if logarithm { x.log_softmax(-1)? } else { x.softmax(-1)? };
                    backward(&y, &t[1])?;
                    results.extend([y.detach(), x.grad().expect("backward went through it")]);
                }
                Ok(results)
            })?;
        }
    }
    Ok(())
}

/// Cross entropy of rows and its gradient, reduced or not, weighted, smoothed, with rows that count
/// for nothing.
pub fn losses_of_rows_agree_with_the_cpu(device: Device) -> Result<()> {
    for (rows, classes) in SHAPES.into_iter().chain(LONG_SHAPES) {
        let x = drawn(rows, classes)?;
        // Scores that count for nothing; in the last row, which has no target, all are such.
        let masked = Tensor::arange(0, rows * classes, 1, DType::I64)?.remainder(17)?.eq(3)?;
        let masked = masked.view(&[rows, classes])?;
        masked.narrow(0, rows - 1, 1)?.fill_(true)?;
        let with_masked = x.masked_fill(&masked, f64::NEG_INFINITY)?;
        let target = Tensor::arange(0, rows, 1, DType::I64)?.mul(7)?.remainder(classes)?;
        // No row is scored by a class of probability zero.
        let scores = with_masked.gather(1, &target.view(&[rows, 1])?)?.view(&[rows])?;
        let target = Tensor::where_(&target.remainder(11)?.eq(3)?, -100i64, &target)?;
        let target = Tensor::where_(&scores.eq(f64::NEG_INFINITY)?, -100i64, &target)?;
        let weight = values(classes).abs()?.add(0.5)?;
        for (dtype, tolerance) in DTYPES {
            let inputs = [x.to(dtype)?, target.clone(), weight.to(dtype)?, with_masked.to(dtype)?];
            let what = format!("losses of {rows} x {classes} of {dtype}");
            compare(device, &what, &inputs, tolerance, |t| {
                let mut results = Vec::new();
                for (reduction, weighted, smoothing) in [
                    (Reduction::Mean, false, 0.0),
                    (Reduction::None, true, 0.0),
                    (Reduction::Sum, false, 0.25),
                ] {
                    let mut options =
                        CrossEntropyOptions::new().reduction(reduction).label_smoothing(smoothing);
                    if weighted {
                        options = options.weight(&t[2]);
                    }
                    // Smoothing gives every class a share: one that cannot be costs infinity.
                    let x = leaf(&t[if smoothing == 0.0 { 3 } else { 0 }])?;
                    let loss = x.cross_entropy_with(&t[1], options)?;
                    // A sum of many is as exact as they are.
                    let by = if reduction == Reduction::Sum { 1.0 / rows as f64 } else { 1.0 };
                    let loss = loss.mul(by)?;
                    loss.sum()?.backward()?;
                    results.extend([loss.detach(), x.grad().expect("backward went through it")]);
                }
                Ok(results)
            })?;
        }
    }
    Ok(())
}

/// Cross entropy of rows of scores beyond what short formulas take: all masked by the least number,
/// far apart, infinite, or no numbers.
pub fn losses_of_extreme_rows_agree_with_the_cpu(device: Device) -> Result<()> {
    for (rows, classes) in [(300, 4104), (40, 96)] {
        let x = drawn(rows, classes)?;
        let row = |at: i64| x.narrow(0, at, 1);
        row(1)?.fill_(-3e38)?;
        let signs = Tensor::arange(0, classes, 1, DType::I64)?.remainder(2)?.eq(0)?;
        row(2)?.copy_(&Tensor::where_(&signs, 1e6, -1e6)?)?;
        row(3)?.narrow(1, 17, 1)?.fill_(f64::INFINITY)?;
        row(4)?.narrow(1, classes - 1, 1)?.fill_(f64::NAN)?;
        row(5)?.narrow(1, 0, classes - 1)?.fill_(-3e38)?;
        row(6)?.add_(7e4)?;
        let target = Tensor::arange(0, rows, 1, DType::I64)?.remainder(classes)?;
        let wide = DTYPES.into_iter().filter(|(dtype, _)| *dtype != DType::F16);
        for (dtype, tolerance) in wide {
            let inputs = [x.to(dtype)?, target.clone()];
            let what = format!("extreme losses of {rows} x {classes} of {dtype}");
            compare(device, &what, &inputs, tolerance, |t| {
                let x = leaf(&t[0])?;
                let options = CrossEntropyOptions::new().reduction(Reduction::None);
                let loss = x.cross_entropy_with(&t[1], options)?;
                loss.sum()?.backward()?;
                Ok(vec![loss.detach(), x.grad().expect("backward went through it")])
            })?;
        }
    }
    Ok(())
}

/// Sums of rows of halves that go to the same place, by index and by embedding.
pub fn sums_of_equal_rows_agree_with_the_cpu(device: Device) -> Result<()> {
    for (rows, width, count) in [(70i64, 96i64, 700i64), (5, 264, 3000), (900, 8, 500)] {
        let index = Tensor::arange(0, count, 1, DType::I64)?.mul(13)?.remainder(rows)?;
        // Most are the same one.
        let index = Tensor::where_(&index.remainder(3)?.eq(1)?, 2i64, &index)?;
        let source = drawn(count, width)?.div(8.0)?;
        for (dtype, tolerance) in DTYPES {
            let table = drawn(rows, width)?.to(dtype)?;
            let inputs = [table, index.clone(), source.to(dtype)?];
            let what = format!("{count} rows of {width} to {rows}, {dtype}");
            compare(device, &what, &inputs, tolerance, |t| {
                let table = leaf(&t[0])?;
                let shared = leaf(&t[0])?;
                backward(&table.embedding(&t[1])?, &t[2])?;
                // A table whose rows are used otherwise too: one gradient is added to the other.
                let scored = shared.embedding(&t[1])?.mul(&t[2])?.sum()?;
                scored.add(&shared.mul(3.0)?.sum()?)?.backward()?;
                let scale = 1.0 / (count as f64).sqrt();
                let of_table = table.grad().expect("backward went through it").mul(scale)?;
                let added = t[0].index_add(0, &t[1], &t[2], 1)?.mul(scale)?;
                let put = t[0].index_put(&[Some(&t[1])], &t[2], true)?.mul(scale)?;
                let both = shared.grad().expect("backward went through it").mul(scale)?;
                Ok(vec![of_table, both, added, put])
            })?;
        }
    }
    Ok(())
}

/// Sums down columns: of a few long rows, and of so many that they are cut into parts, of which
/// some have several rounds of rows and some none.
pub fn sums_down_columns_agree_with_the_cpu(device: Device) -> Result<()> {
    for (rows, columns) in [(9, 70_000), (1000, 776), (20_001, 768), (70_000, 8)] {
        let x = drawn(rows, columns)?;
        // The sum of many is as exact as their mean.
        let scale = 1.0 / rows as f64;
        for (dtype, tolerance) in DTYPES {
            let what = format!("{rows} x {columns} of {dtype}");
            compare(device, &what, &[x.to(dtype)?], tolerance, |t| {
                let odd = t[0].narrow(1, 8, columns - 8)?;
                let into_gaps = Tensor::zeros(&[2 * columns], (dtype, t[0].device()))?;
                let gaps = into_gaps.slice(0, 0, 2 * columns, 2)?;
                t[0].mean_with_out(SumOptions::from(0), &gaps)?;
                Ok(vec![
                    t[0].sum_with(SumOptions::from(0))?.mul(scale)?,
                    t[0].mean_with(SumOptions::from(0).keepdim(true))?,
                    odd.mean_with(SumOptions::from(0))?,
                    into_gaps,
                ])
            })?;
        }
    }
    Ok(())
}

/// GELU with its derivative, alone and before a linear map that keeps its input.
pub fn gelu_agrees_with_the_cpu(device: Device) -> Result<()> {
    let (x, weight, bias) = (drawn(70, 64)?, drawn(24, 64)?.mul(0.1)?, values(24));
    let slope = values(70 * 24).mul(0.3)?.view(&[70, 24])?;
    for approximate in [Approximate::None, Approximate::Tanh] {
        for (dtype, tolerance) in DTYPES {
            let inputs = [&x, &weight, &bias, &slope].map(|input| input.to(dtype));
            let inputs: Vec<Tensor> = inputs.into_iter().collect::<Result<_>>()?;
            let what = format!("gelu {approximate:?} of {dtype}");
            compare(device, &what, &inputs, tolerance, |t| {
                let options = GeluOptions::new().approximate(approximate);
                let alone = leaf(&t[0])?;
                let y = alone.gelu_with(options.clone())?;
                backward(&y, &t[0])?;
                let leaves = [leaf(&t[0])?, leaf(&t[1])?, leaf(&t[2])?];
                let mapped = leaves[0].gelu_linear(&leaves[1], Some(&leaves[2]), options)?;
                backward(&mapped, &t[3])?;
                let mut results = vec![y.detach(), mapped.detach()];
                results.extend(gradients(&[&alone, &leaves[0], &leaves[1], &leaves[2]]));
                Ok(results)
            })?;
        }
    }
    Ok(())
}
