//! Scaled gradients on a device: unscaling against plain arithmetic, with every dtype and layout
//! and every value that is not finite; and the scale after steps.

use plimsoll_tensor::{DType, Device, Result, Tensor, memory};

use plimsoll::nn::{Parameter, clip_grad_norm_};

use super::values;

/// Gradients of odd sizes: dense, transposed, with gaps, single and empty.
fn grads(dtype: DType, device: Device) -> Result<Vec<Tensor>> {
    let flat = values(40_000).to(dtype)?.to(device)?;
    let wide = Tensor::zeros(&[20, 16], (dtype, device))?;
    let gaps = wide.slice(1, 0, 16, 2)?;
    gaps.copy_(&flat.narrow(0, 5, 160)?.view(&[20, 8])?)?;
    Ok(vec![
        flat.narrow(0, 3, 37)?.clone_tensor()?,
        flat.narrow(0, 100, 33_000)?.clone_tensor()?,
        flat.narrow(0, 1, 600)?.clone_tensor()?.view(&[20, 30])?.t()?,
        gaps,
        flat.narrow(0, 7, 1)?.clone_tensor()?,
        flat.narrow(0, 0, 0)?.clone_tensor()?,
        // From an element that no four begin at.
        flat.clone_tensor()?.narrow(0, 1, 1001)?,
    ])
}

fn number(value: f64, device: Device) -> Result<Tensor> {
    Tensor::full(&[], value, (DType::F32, device))
}

/// All gradients are multiplied in one operation, and what is not finite is found wherever it is.
pub fn gradients_are_unscaled_and_looked_at(device: Device) -> Result<()> {
    let inverse = number(0.25, device)?;
    let dtypes = [DType::F32, DType::F64, DType::F16, DType::BF16];
    let mut all = Vec::new();
    for dtype in dtypes {
        all.extend(grads(dtype, device)?);
    }
    let before: Vec<Vec<f64>> = all.iter().map(Tensor::to_f64_vec).collect::<Result<_>>()?;
    let unscale = |all: &[Tensor], inverse: &Tensor| -> Result<f64> {
        let found = number(0.0, device)?;
        let list: Vec<&Tensor> = all.iter().collect();
        Tensor::amp_foreach_non_finite_check_and_unscale_(&list, &found, inverse)?;
        Ok(found.to_f64_vec()?[0])
    };
    assert_eq!(unscale(&all, &inverse)?, 0.0, "all are finite");
    for (found, before) in all.iter().zip(&before) {
        // A quarter is exact in every dtype.
        let expected: Vec<f64> = before.iter().map(|x| x * 0.25).collect();
        assert_eq!(found.to_f64_vec()?, expected, "{} on {device}", found.dtype());
    }
    assert_eq!(unscale(&all, &number(1.0, device)?)?, 0.0);
    for (found, before) in all.iter().zip(&before) {
        let expected: Vec<f64> = before.iter().map(|x| x * 0.25).collect();
        assert_eq!(found.to_f64_vec()?, expected, "by 1 nothing changes");
    }
    for (at, grad) in all.iter().enumerate().filter(|(_, grad)| grad.numel() > 0) {
        let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][at % 3];
        // The first, the last, and one between.
        for place in [0, grad.numel() / 2, grad.numel() - 1] {
            let (mut element, mut rest) = (grad.clone(), place);
            for dim in (0..grad.rank()).rev() {
                let size = grad.shape()[dim];
                element = element.select(dim as i64, (rest % size) as i64)?;
                rest /= size;
            }
            let kept = element.clone_tensor()?;
            element.fill_(bad)?;
            let found = unscale(&all, &number(1.0, device)?)?;
            assert_eq!(found, 1.0, "{bad} at {place} of gradient {at}, {}", grad.dtype());
            element.copy_(&kept)?;
        }
    }
    assert_eq!(unscale(&all, &inverse)?, 0.0);
    Ok(())
}

/// Unscaling takes no memory, not even for a moment.
pub fn unscaling_allocates_nothing(device: Device) -> Result<()> {
    let (found, inverse) = (number(0.0, device)?, number(0.25, device)?);
    let all = grads(DType::F32, device)?;
    let list: Vec<&Tensor> = all.iter().collect();
    let allocated = memory::memory_allocated(device);
    memory::reset_peak_memory_stats(device);
    Tensor::amp_foreach_non_finite_check_and_unscale_(&list, &found, &inverse)?;
    assert_eq!(memory::max_memory_allocated(device), allocated, "no temporaries");
    Ok(())
}

/// The scale after each step, written out by hand: it doubles after three in a row, halves after a
/// skipped one, and never becomes infinite.
pub fn scales_grow_and_back_off(device: Device) -> Result<()> {
    let (scale, tracker) = (number(8.0, device)?, Tensor::zeros(&[], (DType::I32, device))?);
    let steps = [
        (0.0, 8.0, 1),
        (0.0, 8.0, 2),
        (0.0, 16.0, 0),
        (0.0, 16.0, 1),
        (1.0, 8.0, 0),
        // Several devices found something.
        (2.0, 4.0, 0),
        (0.0, 4.0, 1),
    ];
    for (at, (found, expected, count)) in steps.into_iter().enumerate() {
        scale.amp_update_scale_(&tracker, &number(found, device)?, 2.0, 0.5, 3)?;
        assert_eq!(scale.to_f64_vec()?, [expected], "step {at} on {device}");
        assert_eq!(tracker.to_f64_vec()?, [f64::from(count)], "step {at} on {device}");
    }
    let largest = f64::from(f32::MAX);
    let (scale, tracker) = (number(largest, device)?, Tensor::zeros(&[], (DType::I32, device))?);
    scale.amp_update_scale_(&tracker, &number(0.0, device)?, 2.0, 0.5, 1)?;
    assert_eq!(scale.to_f64_vec()?, [largest], "it stops before it is infinite");
    Ok(())
}

/// The norms of many tensors are those of each, of every dtype and layout, and clipping by the norm
/// of all multiplies every gradient by the same number.
pub fn norms_of_many_are_those_of_each(device: Device) -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let all = grads(dtype, device)?;
        let norms = Tensor::foreach_norm(&all.iter().collect::<Vec<_>>())?;
        assert_eq!((norms.dtype(), norms.shape()), (dtype, &[all.len()][..]));
        let near = match dtype {
            DType::F64 => 1e-12,
            DType::F32 => 1e-6,
            DType::F16 => 1e-3,
            _ => 8e-3,
        };
        for (found, one) in norms.to_f64_vec()?.iter().zip(&all) {
            let squares: f64 = one.to_f64_vec()?.iter().map(|x| x * x).sum();
            let error = (found - squares.sqrt()).abs();
            assert!(error <= near * squares.sqrt(), "{found} for {} on {device}", squares.sqrt());
        }
        let parameters = all.iter().map(|grad| {
            let parameter = Parameter::new(&grad.zeros_like()?)?;
            parameter.tensor().set_grad(Some(grad))?;
            Ok(parameter)
        });
        let parameters = parameters.collect::<Result<Vec<_>>>()?;
        let before: Vec<Vec<f64>> = all.iter().map(Tensor::to_f64_vec).collect::<Result<_>>()?;
        let whole = before.iter().flatten().map(|x| x * x).sum::<f64>().sqrt();
        let found = clip_grad_norm_(&parameters, whole / 4.0)?.to_f64_vec()?[0];
        // The norm of norms, each rounded; then the factor and the product.
        assert!((found - whole).abs() <= 2.0 * near * whole, "{found} for {whole} on {device}");
        // PyTorch's: a norm of 0 divides nothing by 0.
        let factor = whole / 4.0 / (whole + 1e-6);
        for (grad, before) in all.iter().zip(&before) {
            for (found, before) in grad.to_f64_vec()?.iter().zip(before) {
                let error = (found - before * factor).abs();
                assert!(error <= 4.0 * near * before.abs(), "{found} of {before} on {device}");
            }
        }
        drop(parameters);
        // A vector that is not finite has no other norm.
        all[1].narrow(0, 20_000, 1)?.fill_(f64::NAN)?;
        let norms = Tensor::foreach_norm(&all.iter().collect::<Vec<_>>())?.to_f64_vec()?;
        assert!(norms.iter().enumerate().all(|(at, norm)| norm.is_nan() == (at == 1)), "{norms:?}");
    }
    let mixed = [(DType::BF16, 3.0), (DType::F32, 4.0), (DType::BF16, 12.0), (DType::F32, 84.0)];
    let parameters = mixed.into_iter().map(|(dtype, value)| {
        let parameter = Parameter::new(&Tensor::zeros(&[1], (dtype, device))?)?;
        parameter.tensor().set_grad(Some(&Tensor::full(&[1], value, (dtype, device))?))?;
        Ok(parameter)
    });
    let parameters = parameters.collect::<Result<Vec<_>>>()?;
    let found = clip_grad_norm_(&parameters, 17.0)?;
    assert_eq!((found.dtype(), found.to_f64_vec()?), (DType::F32, vec![85.0]));
    for (parameter, (dtype, value)) in parameters.iter().zip(mixed) {
        let grad = parameter.tensor().grad().expect("it was set");
        let found = grad.to_f64_vec()?[0];
        assert_eq!(grad.dtype(), dtype);
        assert!((found / (value / 5.0) - 1.0).abs() < 4e-3, "{found} of {value} on {device}");
    }
    Ok(())
}
