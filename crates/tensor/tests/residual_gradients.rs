//! The gradient of what goes both around a layer norm and through it: the norm's backward adds its
//! part to what came around, in one launch and without memory of its own. The truth is the same
//! gradient made of recorded operations.

mod counted;

use std::sync::{Arc, Mutex};

use counted::{devices, launches, numbers};
use plimsoll_tensor::*;

type Outcome = Result<()>;

const WIDTH: i64 = 48;

/// Leaves of a block: what goes in, and the norm's weight and bias.
fn leaves(to: impl Into<To> + Copy) -> Result<[Tensor; 3]> {
    let leaf = |sizes: &[i64]| numbers(sizes, to)?.requires_grad_(true);
    Ok([leaf(&[5, 7, WIDTH])?, leaf(&[WIDTH])?, leaf(&[WIDTH])?])
}

/// `x + tanh(norm(x))`, of something that is no leaf.
fn block([x, weight, bias]: &[Tensor; 3]) -> Result<Tensor> {
    let x = x.mul(3.0)?;
    let options = LayerNormOptions::new().weight(weight).bias(bias);
    x.add(&x.layer_norm_with(&[WIDTH], options)?.tanh()?)
}

#[test]
fn a_norms_backward_adds_to_what_came_around_it() -> Outcome {
    let mut all = Vec::new();
    for device in devices()? {
        let leaves = leaves((DType::F32, device))?;
        let y = block(&leaves)?;
        // What comes around the norm is memory of its own, which nobody else holds.
        let loss = y.exp()?.sum()?;
        drop(y);
        let before = memory::memory_allocated(device);
        let scope = memory::peak_scope(device);
        let found = launches(device, || loss.backward())?;
        all.push(scope.allocated_bytes_peak() - before);
        let count = |name: &str| found.iter().filter(|launch| **launch == name).count();
        assert_eq!((count("layer_norm_backward"), count("add")), (1, 0), "{device}: {found:?}");
        assert!(leaves.iter().all(|leaf| leaf.grad().is_some()));
    }
    assert!(all.iter().all(|peak| *peak == all[0]), "{all:?}");
    Ok(())
}

/// The gradients of `block` where backward is recorded or not: by operations one by one, or by the
/// norm's own kernel.
fn gradients(leaves: &[Tensor; 3], create_graph: bool) -> Result<Vec<Vec<f64>>> {
    let y = block(leaves)?;
    let sizes: Vec<i64> = y.shape().iter().map(|&size| size as i64).collect();
    let gradient = numbers(&sizes, y.dtype())?.cos()?;
    let loss = y.mul(&gradient)?.sum()?;
    let options = GradOptions { create_graph, ..Default::default() };
    let found = grad(&[&loss], &leaves.each_ref(), options)?;
    found.into_iter().map(|grad| grad.unwrap().double()?.to_vec::<f64>()).collect()
}

#[test]
fn the_sum_is_that_of_recorded_operations() -> Outcome {
    for (dtype, most) in [(DType::F64, 1e-12), (DType::F32, 1e-5), (DType::BF16, 0.05)] {
        let leaves = leaves(dtype)?;
        let (found, expected) = (gradients(&leaves, false)?, gradients(&leaves, true)?);
        for (found, expected) in found.iter().zip(&expected) {
            let largest = expected.iter().fold(1.0f64, |a, b| a.max(b.abs()));
            let error = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(error <= most * largest, "{dtype}: {error}");
        }
    }
    Ok(())
}

/// What came around is held by somebody else, or lies otherwise: it is added up and not written.
#[test]
fn a_gradient_that_is_held_is_not_added_to() -> Outcome {
    let [x, weight, bias] = leaves(DType::F64)?;
    let inner = x.mul(3.0)?;
    let options = LayerNormOptions::new().weight(&weight).bias(&bias);
    let normal = inner.layer_norm_with(&[WIDTH], options)?;
    let y = inner.add(&normal)?;
    let held = Arc::new(Mutex::new(None));
    let kept = held.clone();
    // The gradient of the sum is also what goes around the norm.
    y.register_hook(move |grad| {
        *kept.lock().unwrap() = Some(grad.clone());
        Ok(None)
    })?;
    y.mul(&y)?.sum()?.backward()?;
    let seen = held.lock().unwrap().take().unwrap();
    let expected = y.detach().mul(2.0)?;
    assert_eq!(seen.to_vec::<f64>()?, expected.to_vec::<f64>()?);
    Ok(())
}

/// A hook on the norm's node sees its own gradient, and not the sum.
#[test]
fn hooks_see_the_norms_own_gradient() -> Outcome {
    let run = |hooked: bool| -> Result<(Vec<f64>, Option<Vec<f64>>)> {
        let [x, weight, bias] = leaves(DType::F64)?;
        let inner = x.mul(3.0)?;
        let options = LayerNormOptions::new().weight(&weight).bias(&bias);
        let normal = inner.layer_norm_with(&[WIDTH], options)?;
        let seen = Arc::new(Mutex::new(None));
        let kept = seen.clone();
        if hooked {
            normal.grad_fn().unwrap().register_hook(move |grads, _| {
                *kept.lock().unwrap() = Some(grads[0].as_ref().unwrap().to_vec::<f64>()?);
                Ok(None)
            });
        }
        inner.exp()?.add(&normal.tanh()?)?.sum()?.backward()?;
        let found = seen.lock().unwrap().take();
        Ok((x.grad().unwrap().to_vec::<f64>()?, found))
    };
    let ((plain, _), (hooked, seen)) = (run(false)?, run(true)?);
    let error = plain.iter().zip(&hooked).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(error < 1e-12, "{error}");
    // What went around is positive everywhere; each row of the norm's own adds up to nothing.
    let rows = seen.unwrap();
    assert!(rows.chunks(WIDTH as usize).all(|row| row.iter().sum::<f64>().abs() < 1e-9));
    Ok(())
}
