//! The gradient of what goes both around a layer norm and through it: the norm's backward adds its
//! part to what came around, in one launch and without memory of its own. The truth is the same
//! gradient made of recorded operations. And the sum and its norm in one operation, whose truth are
//! the two operations.

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

/// A sum and its norm, in one operation or two, and a value of both.
fn summed(one: bool, a: &Tensor, b: &Tensor, [weight, bias]: [&Tensor; 2]) -> Result<[Tensor; 2]> {
    let options = LayerNormOptions::new().weight(weight).bias(bias);
    if one {
        return a.add_layer_norm(b, &[WIDTH], options).map(Into::into);
    }
    let sum = a.add(b)?;
    let normed = sum.layer_norm_with(&[WIDTH], options)?;
    Ok([sum, normed])
}

#[test]
fn a_sum_and_its_norm_are_those_of_two_operations() -> Outcome {
    for (dtype, most) in [(DType::F64, 1e-12), (DType::F32, 1e-5), (DType::BF16, 0.05)] {
        let [a, weight, bias] = leaves(dtype)?;
        let b = numbers(&[5, 7, WIDTH], dtype)?.cos()?.detach().requires_grad_(true)?;
        let slope = numbers(&[5, 7, WIDTH], dtype)?;
        let run = |one: bool, uses: [f64; 2], create_graph: bool| -> Result<Vec<Vec<f64>>> {
            let [sum, normed] = summed(one, &a, &b, [&weight, &bias])?;
            let value = sum.mul(uses[0])?.tanh()?.add(&normed.mul(uses[1])?)?.mul(&slope)?;
            let leaves = [&a, &b, &weight, &bias];
            let options = GradOptions { create_graph, allow_unused: true, ..Default::default() };
            let found = grad(&[&value.sum()?], &leaves, options)?;
            let mut results = vec![sum.to_f64_vec()?, normed.to_f64_vec()?];
            for (found, leaf) in found.into_iter().zip(leaves) {
                results.push(found.unwrap_or(leaf.zeros_like()?).to_f64_vec()?);
            }
            Ok(results)
        };
        for uses in [[1.0, 1.0], [0.5, 0.0], [0.0, 2.0]] {
            let expected = run(false, uses, false)?;
            for create_graph in [false, true] {
                for (found, expected) in run(true, uses, create_graph)?.iter().zip(&expected) {
                    let largest = expected.iter().fold(1.0f64, |a, b| a.max(b.abs()));
                    let errors = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
                    let error = errors.fold(0.0, f64::max);
                    assert!(error <= most * largest, "{dtype} {uses:?}: {error}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_sum_and_its_norm_take_one_launch_each_way() -> Outcome {
    let mut all = Vec::new();
    for device in devices()? {
        let [a, weight, bias] = leaves((DType::F32, device))?;
        let b = numbers(&[5, 7, WIDTH], (DType::F32, device))?.requires_grad_(true)?;
        let mut value = None;
        let found = launches(device, || {
            let [sum, normed] = summed(true, &a, &b, [&weight, &bias])?;
            value = Some(sum.exp()?.add(&normed.exp()?)?);
            Ok(())
        })?;
        assert_eq!(found, ["add_layer_norm", "exp", "exp", "add"], "{device}");
        let loss = value.unwrap().sum()?;
        let before = memory::memory_allocated(device);
        let scope = memory::peak_scope(device);
        let found = launches(device, || loss.backward())?;
        all.push(scope.allocated_bytes_peak() - before);
        let count = |name: &str| found.iter().filter(|launch| **launch == name).count();
        assert_eq!((count("layer_norm_backward"), count("add")), (1, 0), "{device}: {found:?}");
        assert_eq!(a.grad().unwrap().shape(), b.grad().unwrap().shape());
    }
    assert!(all.iter().all(|peak| *peak == all[0]), "{all:?}");
    Ok(())
}

/// Two summands that are leaves, their sum and its norm in one operation.
fn summed_leaves() -> Result<([Tensor; 2], [Tensor; 2])> {
    let [a, weight, bias] = leaves(DType::F64)?;
    let b = numbers(&[5, 7, WIDTH], DType::F64)?.requires_grad_(true)?;
    let results = summed(true, &a, &b, [&weight, &bias])?;
    Ok(([a, b], results))
}

/// The sum's gradient is held by somebody else: the norm's is not added to it.
#[test]
fn a_sums_gradient_that_is_held_is_left_alone() -> Outcome {
    let ([a, b], [sum, normed]) = summed_leaves()?;
    let given = sum.ones_like()?;
    let options = GradOptions {
        grad_outputs: vec![Some(given.clone()), Some(given.clone())],
        ..GradOptions::default()
    };
    let found = grad(&[&sum, &normed], &[&a, &b], options)?;
    assert_eq!(given.to_vec::<f64>()?, vec![1.0; given.numel()]);
    let [own, other] = [0, 1].map(|at| found[at].as_ref().unwrap());
    assert_eq!(own.to_vec::<f64>()?, other.to_vec::<f64>()?);
    Ok(())
}

#[test]
fn summands_of_other_shapes_are_two_operations() -> Outcome {
    let [a, weight, bias] = leaves(DType::F64)?;
    let row = numbers(&[WIDTH], DType::F64)?;
    let [sum, normed] = summed(true, &a, &row, [&weight, &bias])?;
    let [expected_sum, expected] = summed(false, &a, &row, [&weight, &bias])?;
    assert!(sum.equal(&expected_sum)? && normed.equal(&expected)?);
    Ok(())
}

/// A hook on the node sees the gradients that arrived, and not what was added to one of them.
#[test]
fn hooks_see_what_arrived_at_a_sum_and_its_norm() -> Outcome {
    let (_leaves, [sum, normed]) = summed_leaves()?;
    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    sum.grad_fn().unwrap().register_hook(move |_, arrived| {
        *kept.lock().unwrap() = Some(arrived[1].as_ref().unwrap().to_vec::<f64>()?);
        Ok(None)
    });
    sum.mul(2.0)?.sum()?.add(&normed.mul(&normed)?.sum()?)?.backward()?;
    assert_eq!(seen.lock().unwrap().take().unwrap(), vec![2.0; sum.numel()]);
    Ok(())
}
