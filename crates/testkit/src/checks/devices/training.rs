//! What training writes besides results, on a device and on the CPU: running statistics of a batch
//! norm, gradients of linear layers and of losses over many classes, and a step of AdamW over many
//! parameters.

use plimsoll_tensor::{
    AdamWOptions, BackwardOptions, BatchNormOptions, DType, Device, GradOptions, Result,
    SumOptions, Tensor, grad,
};

use super::{compare, values};

/// Forward, running statistics and gradients, in training and evaluation; channels of one part and
/// of many, in rows, columns and with gaps; and twice the same bits.
pub fn batch_norms_agree_with_the_cpu(device: Device) -> Result<()> {
    let flat = |shape: &[i64]| values(shape.iter().product()).view(shape);
    let inputs = [
        flat(&[3, 5, 7, 4])?,
        flat(&[2, 3, 70_000])?,
        flat(&[4, 6, 5, 130])?.permute(&[0, 3, 1, 2])?,
        flat(&[600, 70])?,
        flat(&[6, 8, 50])?.slice(0, 0, 6, 2)?.slice(2, 1, 50, 3)?,
    ];
    for x in inputs {
        let channels = x.shape()[1] as i64;
        let parameters = values(2 * channels).add(4.0)?.view(&[2, channels])?;
        let (weight, bias) = (parameters.select(0, 0)?, parameters.select(0, 1)?);
        let kinds = [
            (DType::F32, DType::F32, 1e-4),
            (DType::F64, DType::F64, 1e-9),
            (DType::BF16, DType::F32, 3e-2),
            (DType::F16, DType::F16, 1e-2),
        ];
        for (dtype, of, tolerance) in kinds {
            // Conversions keep dense layouts, and with that the channels' place.
            let given = [x.to(dtype)?, weight.to(of)?, bias.to(of)?];
            let step = |t: &[Tensor]| batch_norm(t, of);
            compare(device, "batch_norm", &given, tolerance, step)?;
            let there = given.iter().map(|t| t.to(device)).collect::<Result<Vec<_>>>()?;
            for (first, second) in step(&there)?.iter().zip(step(&there)?) {
                assert_eq!(first.to_f64_vec()?, second.to_f64_vec()?, "the same bits each time");
            }
        }
    }
    Ok(())
}

fn batch_norm(t: &[Tensor], of: DType) -> Result<Vec<Tensor>> {
    let leaves: Vec<Tensor> =
        t.iter().map(|t| t.detach().requires_grad_(true)).collect::<Result<_>>()?;
    let like = t[1].shape()[0] as i64;
    let (mean, var) =
        (Tensor::zeros(&[like], (of, t[0].device()))?, Tensor::ones(&[like], (of, t[0].device()))?);
    let mut all = Vec::new();
    for training in [true, false] {
        let options = BatchNormOptions::new().weight(&leaves[1]).bias(&leaves[2]);
        let y = leaves[0].batch_norm_with(&mean, &var, options.training(training))?;
        let given = t[0].mul(0.01)?;
        let options = GradOptions { grad_outputs: vec![Some(given)], ..GradOptions::default() };
        let found = grad(&[&y], &leaves.iter().collect::<Vec<_>>(), options)?;
        all.push(y.detach());
        all.extend(found.into_iter().flatten());
    }
    all.extend([mean, var]);
    Ok(all)
}

/// Three steps over parameters of odd sizes, some of them views of one storage, with steps in
/// tensors and as numbers, with AMSGrad and without.
pub fn steps_of_adamw_agree_with_the_cpu(device: Device) -> Result<()> {
    let flat = values(40_000);
    let inputs = [
        flat.narrow(0, 3, 17)?,
        flat.narrow(0, 100, 33_000)?,
        flat.narrow(0, 0, 600)?.view(&[20, 30])?.t()?,
        flat.narrow(0, 0, 600)?.view(&[20, 30])?.slice(1, 0, 30, 4)?,
        flat.narrow(0, 7, 1)?,
        flat.narrow(0, 0, 0)?,
    ];
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-12), (DType::BF16, 2e-2)] {
        let given: Vec<Tensor> = inputs.iter().map(|x| x.to(dtype)).collect::<Result<_>>()?;
        for amsgrad in [true, false] {
            compare(device, "adamw", &given, tolerance, |t| adamw(t, amsgrad))?;
            compare(device, "adamw", &given, tolerance, |t| adamw_by_tensors(t, amsgrad))?;
        }
    }
    Ok(())
}

/// Two steps whose numbers are in tensors: the first with scaled gradients, which are written, and
/// a second that must do nothing.
fn adamw_by_tensors(t: &[Tensor], amsgrad: bool) -> Result<Vec<Tensor>> {
    fn all(list: &[Tensor]) -> Vec<&Tensor> {
        list.iter().collect()
    }
    let params: Vec<Tensor> = t.iter().map(spread).collect::<Result<_>>()?;
    let zeros = || -> Result<Vec<Tensor>> { params.iter().map(Tensor::zeros_like).collect() };
    let (means, squares, largest) = (zeros()?, zeros()?, zeros()?);
    let grads: Vec<Tensor> = params.iter().map(|param| param.mul(0.6)).collect::<Result<_>>()?;
    let number = |value: f64| Tensor::full(&[], value, (DType::F32, t[0].device()));
    let (step, rate, scale) = (number(1.0)?, number(0.25)?, number(4.0)?);
    let kept = if amsgrad { all(&largest) } else { Vec::new() };
    for found in [number(0.0)?, number(1.0)?] {
        let options = AdamWOptions::new().tensor_lr(&rate).grad_scale(&scale).found_inf(&found);
        let (p, g, m, v) = (all(&params), all(&grads), all(&means), all(&squares));
        Tensor::fused_adamw_from_(&p, &g, &m, &v, &kept, &vec![&step; p.len()], options)?;
    }
    Ok([params, grads, means, squares, largest].concat())
}

fn adamw(t: &[Tensor], amsgrad: bool) -> Result<Vec<Tensor>> {
    fn all(list: &[Tensor]) -> Vec<&Tensor> {
        list.iter().collect()
    }
    let params: Vec<Tensor> = t.iter().map(spread).collect::<Result<_>>()?;
    let zeros = || -> Result<Vec<Tensor>> { params.iter().map(Tensor::zeros_like).collect() };
    let (means, squares, largest) = (zeros()?, zeros()?, zeros()?);
    let count = Tensor::zeros(&[], (DType::F32, t[0].device()))?;
    let steps = vec![&count; params.len()];
    for step in 1..=3 {
        count.add_(1.0)?;
        let grads: Vec<Tensor> =
            params.iter().map(|param| param.mul(0.3 / f64::from(step))).collect::<Result<_>>()?;
        let (p, g, m, v) = (all(&params), all(&grads), all(&means), all(&squares));
        let options = AdamWOptions::new().lr(0.1).beta2(0.7);
        if amsgrad {
            Tensor::fused_adamw_from_(&p, &g, &m, &v, &all(&largest), &steps, options)?;
        } else {
            Tensor::fused_adamw_(&p, &g, &m, &v, f64::from(step), options.maximize(true))?;
        }
    }
    Ok(params.into_iter().chain(means).chain(squares).chain(largest).collect())
}

/// A copy; of a matrix with gaps between its elements, so that not every layout is dense.
fn spread(t: &Tensor) -> Result<Tensor> {
    let &[rows, columns] = t.shape() else { return t.clone_tensor() };
    let wide = Tensor::zeros(&[rows as i64, 2 * columns as i64], (t.dtype(), t.device()))?;
    let copy = wide.slice(1, 0, 2 * columns as i64, 2)?;
    copy.copy_(t)?;
    Ok(copy)
}

/// A linear layer's gradients of weight and bias: of sizes that the library takes as they are and
/// of others, of a bias alone, and of a batch of rows.
pub fn gradients_of_linear_layers_agree_with_the_cpu(device: Device) -> Result<()> {
    let sizes = [[256, 64, 192], [64, 8, 16], [33, 7, 5], [1, 16, 16], [40, 1, 8], [24, 24, 1]];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for [rows, width, results] in sizes {
            let made = |shape: [i64; 2], from: i64| {
                let count = shape[0] * shape[1];
                values(60_000 + from).narrow(0, from, count)?.reshape(&shape)?.to(dtype)
            };
            let (x, w) = (made([rows, width], 3)?, made([results, width], 1000)?);
            let (bias, grad) = (made([1, results], 77)?.select(0, 0)?, made([rows, results], 19)?);
            let leaves = |to: Device| -> Result<[Tensor; 3]> {
                let leaf = |t: &Tensor| t.clone_tensor()?.to(to)?.detach().requires_grad_(true);
                Ok([leaf(&x)?, leaf(&w)?, leaf(&bias)?])
            };
            let [x, w, b] = leaves(device)?;
            let y = b.addmm(&x, &w.t()?)?;
            y.backward_with(BackwardOptions {
                gradient: Some(grad.to(device)?),
                ..Default::default()
            })?;
            // In float64, from the very numbers that the halves are.
            let exact = |t: &Tensor| t.detach().to(Device::cpu())?.to(DType::F64);
            let (x64, w64, grad64) = (exact(&x)?, exact(&w)?, exact(&grad)?);
            let expected = [
                grad64.matmul(&w64)?,
                grad64.t()?.matmul(&x64)?,
                grad64.sum_with(SumOptions::from(0))?,
            ];
            let tolerance = match dtype {
                DType::F64 => 1e-12,
                DType::F32 => 1e-4,
                DType::F16 => 4e-3,
                _ => 3e-2,
            };
            for (leaf, expected) in [&x, &w, &b].into_iter().zip(&expected) {
                let gradient = leaf.grad().expect("it is a leaf");
                assert_eq!(gradient.strides(), leaf.strides(), "it lies as its leaf does");
                let (found, expected) = (gradient.to_f64_vec()?, expected.to_f64_vec()?);
                let largest = expected.iter().fold(1.0, |most: f64, e| most.max(e.abs()));
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() <= tolerance * largest,
                        "{found} instead of {expected}: {dtype}, {rows} x {width} to {results}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Losses whose scores are made block by block, of rows that a GPU's block keeps in shared memory
/// whole, nearly not, and in part.
pub fn losses_of_wide_rows_agree_with_the_cpu(device: Device) -> Result<()> {
    let cases = [
        (DType::F32, 12_288),
        (DType::F64, 6_144),
        (DType::BF16, 24_576),
        (DType::F32, 30_000),
        (DType::BF16, 60_000),
        (DType::BF16, 1_003),
    ];
    let (rows, width) = (5, 4);
    for (dtype, classes) in cases {
        let made = |rows: i64, from: i64| {
            let count = rows * width;
            values(250_000).narrow(0, from, count)?.reshape(&[rows, width])?.to(dtype)
        };
        let (x, w) = (made(rows, 5)?, made(classes, 900)?);
        let target = Tensor::arange(0, rows, 1, DType::I64)?.mul(classes / rows)?;
        let leaf = |t: &Tensor| t.to(device)?.detach().requires_grad_(true);
        let (on_x, on_w) = (leaf(&x)?, leaf(&w)?);
        on_x.linear_cross_entropy(&on_w, &target.to(device)?)?.backward()?;
        let exact = |t: &Tensor| t.to(DType::F64)?.detach().requires_grad_(true);
        let (x, w) = (exact(&x)?, exact(&w)?);
        x.matmul(&w.t()?)?.cross_entropy(&target)?.backward()?;
        let tolerance = match dtype {
            DType::F64 => 1e-12,
            DType::F32 => 1e-4,
            _ => 3e-2,
        };
        for (leaf, expected) in [(on_x, x), (on_w, w)] {
            let gradient = |leaf: &Tensor| leaf.grad().expect("it is a leaf").to_f64_vec();
            let (found, expected) = (gradient(&leaf)?, gradient(&expected)?);
            let largest = expected.iter().fold(1e-9, |most: f64, e| most.max(e.abs()));
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= tolerance * largest,
                    "{found} instead of {expected}: {dtype}, {classes} classes"
                );
            }
        }
    }
    Ok(())
}
