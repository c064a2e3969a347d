//! Programs whose results on a device are compared with the CPU's.

use plimsoll_tensor::{AddOptions, DType, Device, LayerNormOptions, Result, SumOptions, Tensor};

use super::{compare, values};

/// Arithmetic in every float dtype and on views of every sort.
pub fn arithmetic_agrees_with_the_cpu_on_every_layout(device: Device) -> Result<()> {
    let x = values(6000).view(&[60, 100])?;
    let y = values(60 * 100).mul(0.5)?.add(3.0)?.view(&[60, 100])?;
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let inputs = [x.to(dtype)?, y.to(dtype)?];
        let tolerance = match dtype {
            DType::BF16 => 1e-2,
            DType::F16 => 2e-3,
            _ => 1e-6,
        };
        compare(device, "arithmetic", &inputs, tolerance, |t| {
            let (a, b) = (&t[0], &t[1]);
            // Rows of whole packs of 16 bytes, from the start of one and from between.
            let packs =
                [a.reshape(&[75, 80])?, a.reshape(&[-1])?.narrow(0, 1, 5920)?.view(&[74, 80])?];
            let row = b.reshape(&[75, 80])?.select(0, 7)?;
            Ok(vec![
                packs[0].add(&row)?,
                packs[1].add(&row)?,
                row.sub(&packs[0].slice(0, 0, 75, 2)?)?,
                packs[0].clone_tensor()?.mul_(&row)?.clone(),
                a.add(b)?,
                a.sub(b)?,
                a.mul(b)?,
                a.div(b)?,
                a.add(1.5)?,
                a.rsub(2.0)?,
                a.add_with(b, AddOptions::new().alpha(0.25))?,
                a.t()?.add(1.0)?,
                a.add(&b.select(0, 3)?)?,
                a.add(&b.narrow(1, 7, 1)?)?,
                a.slice(0, 1, 60, 3)?.mul(&b.slice(0, 0, 59, 3)?)?,
                a.expand(&[2, 60, 100])?.add(b)?,
                a.narrow(0, 0, 0)?.add(1.0)?,
                a.select(0, 1)?.select(0, 2)?.add(1.0)?,
            ])
        })?;
    }
    let whole = [x.mul(100.0)?.to(DType::I64)?, y.mul(100.0)?.to(DType::I64)?];
    compare(device, "integers", &whole, 0.0, |t| {
        Ok(vec![t[0].add(&t[1])?, t[0].mul(&t[1])?, t[0].sub(7)?, t[0].div(&t[1])?])
    })?;
    Ok(())
}

/// Functions of one element.
pub fn functions_agree_with_the_cpu(device: Device) -> Result<()> {
    let x = values(5000).view(&[50, 100])?;
    compare(device, "functions", &[x], 2e-6, |t| {
        let x = &t[0];
        Ok(vec![
            x.exp()?,
            x.relu()?,
            x.neg()?,
            x.tanh()?,
            x.gelu()?,
            x.t()?.exp()?,
            x.abs()?.sqrt()?,
        ])
    })?;
    Ok(())
}

/// Copies between layouts and dtypes, there and back.
pub fn copies_and_casts_agree_with_the_cpu(device: Device) -> Result<()> {
    let x = values(64 * 33 * 5).view(&[64, 33, 5])?;
    compare(device, "copies", std::slice::from_ref(&x), 0.0, |t| {
        let x = &t[0];
        Ok(vec![
            x.transpose(0, 1)?.contiguous()?,
            x.transpose(1, 2)?.contiguous()?,
            x.permute(&[2, 1, 0])?.contiguous()?,
            x.select(2, 1)?.t()?.contiguous()?,
            x.slice(1, 0, 33, 2)?.clone_tensor()?,
            x.to(DType::F64)?,
            x.to(DType::I64)?,
            x.to(DType::U8)?,
            x.to(DType::Bool)?,
        ])
    })?;
    for dtype in DType::ALL {
        let there = x.to(dtype)?.to(device)?;
        assert_eq!(there.cpu()?.to_f64_vec()?, x.to(dtype)?.to_f64_vec()?, "{dtype}");
    }
    let target = Tensor::zeros(&[4, 3], (DType::F32, device))?;
    target.narrow(0, 1, 2)?.fill_(2.5)?;
    target.select(1, 0)?.copy_(&Tensor::arange(0, 4, 1, DType::I64)?)?;
    let expected = [0.0, 0.0, 0.0, 1.0, 2.5, 2.5, 2.0, 2.5, 2.5, 3.0, 0.0, 0.0];
    assert_eq!(target.to_f64_vec()?, expected);
    Ok(())
}

/// Reductions over every choice of dimensions, and long ones.
pub fn reductions_agree_with_the_cpu(device: Device) -> Result<()> {
    let x = values(24 * 1000 * 3).view(&[24, 1000, 3])?;
    compare(device, "reductions", std::slice::from_ref(&x), 1e-4, |t| {
        let x = &t[0];
        Ok(vec![
            x.sum()?,
            x.mean()?,
            x.sum_with([0])?,
            x.sum_with(SumOptions::from(&[1]).keepdim(true))?,
            x.sum_with([-1])?,
            x.sum_with([0, 2])?,
            x.amax_with([1])?,
            x.amin_with([0, 1])?,
            x.transpose(0, 1)?.sum_with([0])?,
            x.slice(1, 0, 1000, 7)?.sum()?,
            x.narrow(0, 0, 0)?.sum()?,
        ])
    })?;
    let long = values(3_000_001);
    compare(device, "a long sum", &[long], 1e-3, |t| {
        let (x, from_the_second) = (&t[0], t[0].narrow(0, 1, 3_000_000)?);
        Ok(vec![x.sum()?, x.amax()?, x.add(x)?, x.exp()?, from_the_second.sum()?])
    })?;
    Ok(())
}

/// Matrix products and layer norms.
pub fn products_and_norms_agree_with_the_cpu(device: Device) -> Result<()> {
    let (a, b) = (values(64 * 96).view(&[64, 96])?, values(96 * 40).view(&[96, 40])?);
    for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::F64, 1e-9), (DType::BF16, 3e-2)] {
        compare(device, "matmul", &[a.to(dtype)?, b.to(dtype)?], tolerance, |t| {
            let batch = t[0].view(&[4, 16, 96])?;
            Ok(vec![
                t[0].matmul(&t[1])?,
                t[0].matmul(&t[1].t()?.contiguous()?.t()?)?,
                t[0].t()?.contiguous()?.t()?.matmul(&t[1])?,
                batch.matmul(&t[1])?,
            ])
        })?;
    }
    // Rows of whole packs of 16 bytes, of none, and longer than a block keeps.
    for (rows, length) in [(40i64, 96i64), (7, 99), (3, 20_000)] {
        let x = values(rows * length).view(&[rows, length])?;
        let (w, c) = (values(length).add(2.0)?, values(length));
        for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::F64, 1e-9), (DType::BF16, 3e-2)] {
            let inputs = [x.to(dtype)?, w.to(dtype)?, c.to(dtype)?];
            compare(device, "layer_norm", &inputs, tolerance, |t| {
                Ok(vec![
                    t[0].layer_norm_with(
                        &[length],
                        LayerNormOptions::new().weight(&t[1]).bias(&t[2]),
                    )?,
                    t[0].layer_norm(&[length])?,
                ])
            })?;
        }
    }
    Ok(())
}

/// The gradients of a training step.
pub fn gradients_agree_with_the_cpu(device: Device) -> Result<()> {
    let (x, w) = (values(32 * 48).view(&[32, 48])?, values(48 * 16).view(&[48, 16])?);
    let (scale, shift) = (values(16).add(1.5)?, values(16));
    compare(device, "a training step", &[x, w, scale, shift], 1e-3, |t| {
        let leaves: Vec<Tensor> =
            t.iter().map(|t| t.clone_tensor()?.requires_grad_(true)).collect::<Result<_>>()?;
        let hidden = leaves[0].matmul(&leaves[1])?.relu()?;
        let normed = hidden
            .layer_norm_with(&[16], LayerNormOptions::new().weight(&leaves[2]).bias(&leaves[3]))?;
        normed.mul(&normed)?.mul(-0.1)?.exp()?.add(1.0)?.mean()?.backward()?;
        Ok(leaves.iter().map(|leaf| leaf.grad().unwrap()).collect())
    })?;
    Ok(())
}
