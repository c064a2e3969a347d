//! Whose memory a gradient is, and of which shape: what `grad` returns and hooks see is nobody
//! else's to change by accident, and a tensor that got other memory between forward and backward is
//! an error that names the node. The comments say what PyTorch 2.15 answers to the same program.

use std::sync::{Arc, Mutex};

use plimsoll_tensor::*;

type Outcome = Result<()>;

fn counting(count: i64) -> Result<Tensor> {
    Tensor::arange(0, count, 1, DType::F64)
}

fn leaf(count: i64) -> Result<Tensor> {
    counting(count)?.requires_grad_(true)
}

/// `grad` of outputs with their gradients, with the graph kept.
fn gradients(outputs: &[&Tensor], inputs: &[&Tensor], given: &[&Tensor]) -> Result<Vec<Tensor>> {
    let grad_outputs = given.iter().map(|&given| Some(given.clone())).collect();
    let options = GradOptions { grad_outputs, retain_graph: true, ..GradOptions::default() };
    Ok(grad(outputs, inputs, options)?.into_iter().flatten().collect())
}

#[test]
fn a_gradient_laid_together_of_parts_is_not_the_callers_memory() -> Outcome {
    let x = leaf(4)?;
    let y = Tensor::cat(&[&x.narrow(0, 0, 2)?, &x.narrow(0, 2, 2)?], 0)?;
    let given = Tensor::ones(&[4], DType::F64)?;
    for _ in 0..2 {
        let found = gradients(&[&y], &[&x], &[&given])?.remove(0);
        found.add_(1)?;
        // PyTorch: 2 both times, and the given one is 1 still.
        assert_eq!(found.to_vec::<f64>()?, [2.0; 4]);
        assert_eq!(given.to_vec::<f64>()?, [1.0; 4]);
    }
    let (a, b) = (x.narrow(0, 0, 2)?, x.narrow(0, 2, 2)?);
    let whole = counting(4)?;
    let parts = [whole.narrow(0, 0, 2)?, whole.narrow(0, 2, 2)?];
    let found = gradients(&[&a, &b], &[&x], &[&parts[0], &parts[1]])?.remove(0);
    assert_eq!(found.to_vec::<f64>()?, [0.0, 1.0, 2.0, 3.0]);
    found.fill_(7)?;
    assert_eq!(whole.to_vec::<f64>()?, [0.0, 1.0, 2.0, 3.0]);
    Ok(())
}

#[test]
fn gradients_of_a_whole_and_of_its_parts_are_apart() -> Outcome {
    let x = leaf(8)?;
    let h = x.mul(1.0)?;
    let (a, b) = (h.narrow(0, 0, 4)?, h.narrow(0, 4, 4)?);
    let y = Tensor::cat(&[&a, &b], 0)?.exp()?;
    let found = gradients(&[&y], &[&a, &b, &h], &[&Tensor::ones(&[8], DType::F64)?])?;
    let expected: Vec<f64> = (0..8).map(|k| f64::from(k).exp()).collect();
    found[0].zero_()?;
    assert_eq!(found[2].to_vec::<f64>()?, expected);
    found[2].fill_(9)?;
    assert_eq!(found[1].to_vec::<f64>()?, expected[4..]);
    Ok(())
}

/// Nobody else holds what the parts' gradients lie in: it is the whole's without a copy.
#[test]
fn gradients_that_nobody_holds_are_laid_together_without_a_copy() -> Outcome {
    const BYTES: usize = 1 << 20;
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::zeros(&[1 << 17], (DType::F64, device))?.requires_grad_(true)?;
    let h = x.mul(1.0)?;
    let y = Tensor::cat(&[&h.narrow(0, 0, 1 << 16)?, &h.narrow(0, 1 << 16, 1 << 16)?], 0)?;
    let loss = y.exp()?.sum()?;
    drop((h, y));
    let before = memory::memory_allocated(device);
    let scope = memory::peak_scope(device);
    loss.backward()?;
    let peak = scope.allocated_bytes_peak() - before;
    // The gradient of `exp` is that of `cat`'s parts and of `h`; with `mul`'s there are two.
    assert!(peak <= 2 * BYTES + 4096, "{peak}");
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, vec![1.0; 1 << 17]);
    Ok(())
}

#[test]
fn a_gradient_that_a_hook_keeps_stays_as_it_was() -> Outcome {
    let x = leaf(4)?;
    let h = x.mul(1.0)?;
    h.register_hook(|grad| grad.fill_(5).map(|_| None))?;
    let y = Tensor::cat(&[&h.narrow(0, 0, 2)?, &h.narrow(0, 2, 2)?], 0)?;
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    y.register_hook(move |grad| {
        *keep.lock().unwrap() = Some(grad.clone());
        Ok(None)
    })?;
    y.mul(3.0)?.sum()?.backward()?;
    let kept = kept.lock().unwrap().take().unwrap();
    assert_eq!(kept.to_vec::<f64>()?, [3.0; 4]);
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [5.0; 4]);
    Ok(())
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("this must be refused").to_string()
}

#[test]
fn a_gradient_that_does_not_fit_is_refused_by_the_node_that_made_it() -> Outcome {
    let x = leaf(4)?;
    let mut y = x.clone_tensor()?;
    y.set_data(&Tensor::ones(&[2], DType::F64)?)?;
    let said = message(y.sum()?.backward());
    let expected = "Function SumBackward0 returned an invalid gradient at index 0 - got [2] but expected shape \
                    compatible with [4]";
    assert!(said.contains(expected), "{said}");
    let options = GradOptions { grad_outputs: vec![Some(y.detach())], ..GradOptions::default() };
    let said = message(grad(&[&y], &[&x], options));
    assert!(said.contains("invalid gradient at index 0 - got [2]"), "{said}");
    // A part of it, which would be laid together with others.
    let part = y.narrow(0, 0, 1)?.add(&y.narrow(0, 1, 1)?)?;
    assert!(message(part.sum()?.backward()).contains("got [2] but expected"));
    Ok(())
}

#[test]
fn a_wider_gradient_is_summed_and_another_dtype_converted() -> Outcome {
    let x = leaf(4)?;
    let mut y = x.clone_tensor()?;
    y.set_data(&Tensor::ones(&[3, 4], DType::F64)?)?;
    y.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [3.0; 4]);
    let x = leaf(4)?;
    let mut y = x.clone_tensor()?;
    y.set_data(&Tensor::ones(&[4], DType::F32)?)?;
    y.mul(2.0)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0; 4]);
    Ok(())
}

#[test]
fn a_leaf_that_got_another_shape_refuses_the_gradient_of_the_old_one() -> Outcome {
    let mut x = leaf(4)?;
    let y = x.sum()?;
    x.set_data(&Tensor::ones(&[2], DType::F64)?)?;
    assert!(message(y.backward()).contains("[4]"));
    assert!(x.grad().is_none());
    // A gradient that is free to take is left as it is, whatever the leaf is now.
    let mut x = leaf(1)?;
    let y = x.mul(2.0)?;
    x.set_data(&Tensor::ones(&[3], DType::F64)?)?;
    y.backward_with(BackwardOptions {
        gradient: Some(Tensor::ones(&[1], DType::F64)?),
        ..BackwardOptions::default()
    })?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0]);
    // One that retains its gradient, and is no leaf, gets that of what it was.
    let x = leaf(4)?;
    let mut h = x.mul(1.0)?;
    h.retain_grad()?;
    let y = h.mul(2.0)?.sum()?;
    h.set_data(&Tensor::ones(&[2], DType::F64)?)?;
    y.backward()?;
    assert_eq!(h.grad().unwrap().to_vec::<f64>()?, [2.0; 4]);
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0; 4]);
    Ok(())
}

/// Rows, weight, and the loss over four classes, whose gradients forward makes.
fn loss_of_rows() -> Result<[Tensor; 3]> {
    let rows = counting(6)?.reshape(&[2, 3])?.div(4.0)?.requires_grad_(true)?;
    let weight = counting(12)?.sub(5.0)?.reshape(&[4, 3])?.div(8.0)?.requires_grad_(true)?;
    let target = Tensor::from_slice(&[1i64, 3], &[2], Device::cpu())?;
    let loss = rows.linear_cross_entropy(&weight, &target)?;
    Ok([rows, weight, loss])
}

#[test]
fn a_hook_that_writes_to_the_losss_gradient_is_obeyed() -> Outcome {
    let [_, weight, loss] = loss_of_rows()?;
    loss.backward()?;
    let plain = weight.grad().unwrap().mul(128.0)?.to_vec::<f64>()?;
    let writes: [fn(&Tensor) -> Result<()>; 2] =
        [|grad| grad.mul_(128.0).map(drop), |grad| grad.data().mul_(128.0).map(drop)];
    for write in writes {
        let [_, weight, loss] = loss_of_rows()?;
        loss.register_hook(move |grad| write(grad).map(|_| None))?;
        loss.backward()?;
        assert_eq!(weight.grad().unwrap().to_vec::<f64>()?, plain);
    }
    Ok(())
}

#[test]
fn the_gradient_of_an_earlier_backward_is_a_gradient_like_any_other() -> Outcome {
    let kept = Arc::new(Mutex::new(None));
    let [_, _, first] = loss_of_rows()?;
    let keep = kept.clone();
    first.register_hook(move |grad| {
        *keep.lock().unwrap() = Some(grad.clone());
        Ok(None)
    })?;
    first.backward()?;
    let one = kept.lock().unwrap().take().unwrap();
    let [_, weight, loss] = loss_of_rows()?;
    let found = gradients(&[&loss], &[&weight], &[&one])?.remove(0);
    let plain = found.to_vec::<f64>()?;
    found.mul_(0.1)?;
    // The graph was kept: it still has what it saved.
    loss.backward()?;
    assert_eq!(weight.grad().unwrap().to_vec::<f64>()?, plain);
    Ok(())
}
