//! Custom functions and saved-tensor hooks beside PyTorch 2.15: what they may do, what is checked
//! of what they return, and that nothing is lost when they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_tensor::*;

type Outcome = Result<()>;
type Found = Result<Vec<Option<Tensor>>>;

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as i64], Device::cpu())
        .and_then(|x| x.requires_grad_(true))
        .unwrap()
}

fn grad_of(x: &Tensor) -> Vec<f64> {
    x.grad().expect("backward left a gradient").to_vec().unwrap()
}

fn values(x: &Tensor) -> Vec<f64> {
    x.to_vec().unwrap()
}

/// A function from two closures.
struct Pair<F, B> {
    forward: F,
    backward: B,
    once: bool,
}

impl<F, B> Function for Pair<F, B>
where
    F: Fn(&mut Context, &[&Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    B: Fn(&BackwardContext<'_>, &[Option<Tensor>]) -> Found + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        "Pair"
    }
    fn forward(&self, context: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        (self.forward)(context, inputs)
    }
    fn backward(&self, context: &BackwardContext<'_>, grads: &[Option<Tensor>]) -> Found {
        (self.backward)(context, grads)
    }
    fn once_differentiable(&self) -> bool {
        self.once
    }
}

fn pair<F, B>(forward: F, backward: B) -> Pair<F, B>
where
    F: Fn(&mut Context, &[&Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    B: Fn(&BackwardContext<'_>, &[Option<Tensor>]) -> Found + Send + Sync + 'static,
{
    Pair { forward, backward, once: false }
}

fn square() -> impl Function {
    pair(
        |context, inputs| {
            context.save_for_backward(inputs);
            Ok(vec![inputs[0].mul(inputs[0])?])
        },
        |context, grads| {
            let twice = context.saved_tensors()[0].mul(2.0)?;
            Ok(vec![Some(grads[0].as_ref().unwrap().mul(&twice)?)])
        },
    )
}

/// The sum of two tensors with this backward.
fn sum_with(backward: impl Fn(&Tensor) -> Found + Send + Sync + 'static) -> impl Function {
    pair(
        |_, inputs| Ok(vec![inputs[0].add(inputs[1])?]),
        move |_, grads| backward(grads[0].as_ref().unwrap()),
    )
}

#[test]
fn a_custom_function_is_differentiated_twice() -> Outcome {
    let x = leaf(&[3.0]);
    let y = square().apply(&[&x])?.remove(0);
    assert_eq!((values(&y), y.grad_fn_name()), (vec![9.0], Some("Pair")));
    let recorded = GradOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&y], &[&x], recorded)?.remove(0).unwrap();
    let second = grad(&[&first], &[&x], GradOptions::default())?.remove(0).unwrap();
    assert_eq!((values(&first), values(&second)), (vec![6.0], vec![2.0]));
    Ok(())
}

#[test]
fn what_it_saves_is_counted_checked_and_freed() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
    let h = x.mul(1.0)?;
    let y = square().apply(&[&h])?.remove(0);
    assert_eq!(walk(&y)[0].held_bytes, 1024);
    h.add_(1.0)?;
    let error = y.sum()?.backward().unwrap_err().to_string();
    assert!(
        error.contains("Pair") && error.contains("modified by an inplace operation"),
        "{error}"
    );
    drop((h, y));
    let y = square().apply(&[&x])?.remove(0).sum()?;
    y.backward()?;
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("second time") && error.contains("autograd_custom.rs"), "{error}");
    drop((x, y));
    assert_eq!(memory::memory_allocated(own), 0);
    Ok(())
}

#[test]
fn a_saved_result_leads_on_and_does_not_hold_itself() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    let exp = pair(
        |context, inputs| {
            let result = inputs[0].exp()?;
            context.save_for_backward(&[&result]);
            Ok(vec![result])
        },
        |context, grads| {
            Ok(vec![Some(grads[0].as_ref().unwrap().mul(&context.saved_tensors()[0])?)])
        },
    );
    let x = Tensor::zeros(&[1], (DType::F64, own))?.requires_grad_(true)?;
    let y = exp.apply(&[&x])?.remove(0);
    let recorded = GradOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&y], &[&x], recorded)?.remove(0).unwrap();
    let second = grad(&[&first], &[&x], GradOptions::default())?.remove(0).unwrap();
    assert_eq!(values(&second), [1.0]);
    drop((x, y, first, second));
    assert_eq!(memory::memory_allocated(own), 0);
    Ok(())
}

#[test]
fn values_of_any_kind_come_back() -> Outcome {
    let scale = pair(
        |context, inputs| {
            context.set_value(("by", 7.0));
            Ok(vec![inputs[0].mul(7.0)?])
        },
        |context, grads| {
            let &(word, factor) = context.value::<(&str, f64)>().expect("what forward set");
            assert_eq!((word, context.value::<f32>()), ("by", None));
            Ok(vec![Some(grads[0].as_ref().unwrap().mul(factor)?)])
        },
    );
    let x = leaf(&[1.0]);
    scale.apply(&[&x])?.remove(0).backward()?;
    assert_eq!(grad_of(&x), [7.0]);
    Ok(())
}

#[test]
fn gradients_are_fitted_to_their_inputs_or_refused() -> Outcome {
    fn run(
        backward: impl Fn(&Tensor) -> Found + Send + Sync + 'static,
    ) -> Result<(Tensor, Tensor)> {
        let (a, b) = (leaf(&[1.0, 1.0]), leaf(&[1.0, 1.0]));
        sum_with(backward).apply(&[&a, &b])?.remove(0).sum()?.backward()?;
        Ok((a, b))
    }
    let fits = |backward: fn(&Tensor) -> Found, expected: &[f64]| {
        let (a, b) = run(backward).unwrap();
        assert_eq!((grad_of(&a), a.grad().unwrap().dtype()), (expected.to_vec(), DType::F64));
        assert_eq!(grad_of(&b), [1.0, 1.0]);
    };
    let refused = |backward: fn(&Tensor) -> Found, word: &str| {
        let error = run(backward).unwrap_err();
        assert!(error.is_autograd() && error.to_string().contains(word), "{error}");
    };
    // PyTorch takes all of these.
    fits(|g| Ok(vec![Some(g.expand(&[3, 2])?), Some(g.clone())]), &[3.0, 3.0]);
    fits(|g| Ok(vec![Some(g.to(DType::F32)?), Some(g.clone())]), &[1.0, 1.0]);
    fits(|g| Ok(vec![Some(g.to(DType::I64)?), Some(g.clone())]), &[1.0, 1.0]);
    fits(|g| Ok(vec![Some(g.unsqueeze(0)?), Some(g.clone()), None]), &[1.0, 1.0]);
    // And refuses these.
    refused(|g| Ok(vec![Some(g.clone())]), "1 gradients for 2");
    refused(|g| Ok(vec![Some(g.clone()), Some(g.clone()), Some(g.clone())]), "3 gradients for 2");
    refused(|g| Ok(vec![Some(g.sum()?), Some(g.clone())]), "[2]");
    refused(|_| Ok(vec![Some(Tensor::ones(&[3], DType::F64)?), None]), "[3]");
    let elsewhere = |g: &Tensor| -> Found {
        Ok(vec![Some(g.to(device::private_cpu(&Default::default())?)?), None])
    };
    refused(elsewhere, "on");
    Ok(())
}

#[test]
fn gradients_that_nobody_wants_are_not_looked_at() -> Outcome {
    let (a, b) = (Tensor::ones(&[2], DType::F64)?, leaf(&[1.0, 1.0]));
    let wrong = |g: &Tensor| Ok(vec![Some(Tensor::ones(&[7], DType::F64)?), Some(g.clone())]);
    sum_with(wrong).apply(&[&a, &b])?.remove(0).sum()?.backward()?;
    assert_eq!(grad_of(&b), [1.0, 1.0]);
    // One that could be asked for is checked, asked for or not.
    let a = leaf(&[1.0, 1.0]);
    let y = sum_with(wrong).apply(&[&a, &b])?.remove(0).sum()?;
    let refused = grad(&[&y], &[&b], GradOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("[7]"), "{refused}");
    // `grad` by one input: the function is told.
    let asked = pair(
        |context, inputs| {
            assert!(context.needs_input_grad(0) && context.needs_input_grad(1));
            Ok(vec![inputs[0].add(inputs[1])?])
        },
        |context, grads| {
            assert!(!context.needs_input_grad(0) && context.needs_input_grad(1));
            Ok(vec![None, grads[0].clone()])
        },
    );
    let a = leaf(&[1.0, 1.0]);
    let y = asked.apply(&[&a, &b])?.remove(0).sum()?;
    assert_eq!(values(grad(&[&y], &[&b], GradOptions::default())?[0].as_ref().unwrap()), [1.0; 2]);
    Ok(())
}

#[test]
fn results_without_gradients_are_zeros_or_nothing() -> Outcome {
    for materialize in [true, false] {
        let two = pair(
            move |context, inputs| {
                context.set_materialize_grads(materialize);
                let (three, mask) = (inputs[0].mul(3.0)?, inputs[0].gt(0.0)?);
                let constant = inputs[0].mul(5.0)?;
                context.mark_non_differentiable(&[&constant]);
                Ok(vec![three, inputs[0].mul(2.0)?, mask, constant])
            },
            move |_, grads| {
                assert_eq!(
                    grads.iter().map(Option::is_some).collect::<Vec<_>>(),
                    match materialize {
                        true => [true; 4],
                        false => [false, true, false, false],
                    }
                );
                Ok(vec![Some(grads[1].as_ref().unwrap().mul(2.0)?)])
            },
        );
        let x = leaf(&[1.0]);
        let results = two.apply(&[&x])?;
        let wants: Vec<bool> = results.iter().map(Tensor::requires_grad).collect();
        assert_eq!(wants, [true, true, false, false]);
        results[1].backward()?;
        assert_eq!(grad_of(&x), [2.0]);
    }
    Ok(())
}

fn double_in_place() -> impl Function {
    pair(
        |context, inputs| {
            inputs[0].mul_(2.0)?;
            context.mark_dirty(inputs);
            Ok(vec![inputs[0].clone()])
        },
        |_, grads| Ok(vec![Some(grads[0].as_ref().unwrap().mul(2.0)?)]),
    )
}

#[test]
fn inputs_are_written_in_place() -> Outcome {
    let x = leaf(&[1.0, 1.0]);
    assert!(double_in_place().apply(&[&x]).unwrap_err().is_autograd(), "a leaf");
    let x = leaf(&[1.0, 1.0]);
    let h = x.mul(1.0)?;
    double_in_place().apply(&[&h])?;
    assert_eq!((values(&h), h.grad_fn_name()), (vec![2.0, 2.0], Some("Pair")));
    h.sum()?.backward()?;
    assert_eq!(grad_of(&x), [2.0, 2.0]);
    // Through a view: the base's history changes.
    x.set_grad(None)?;
    let h = x.mul(1.0)?;
    let v = h.narrow(0, 0, 1)?;
    double_in_place().apply(&[&v])?;
    h.sum()?.add(&v.sum()?)?.backward()?;
    assert_eq!(grad_of(&x), [4.0, 1.0]);
    // A gradient that the value before had goes with it.
    let y = x.mul(1.0)?;
    y.retain_grad()?;
    y.sum()?.backward()?;
    assert!(y.grad().is_some());
    double_in_place().apply(&[&y])?;
    assert!(y.grad().is_none());
    // Marked but not returned.
    let lost = pair(
        |context, inputs| {
            context.mark_dirty(inputs);
            Ok(vec![inputs[0].mul_(2.0)?.clone_tensor()?])
        },
        |_, grads| Ok(grads.to_vec()),
    );
    assert!(lost.apply(&[&x.mul(1.0)?]).unwrap_err().to_string().contains("dirty"));
    // Marked, and no input: there is nothing to be dirty of.
    let odd = pair(
        |context, inputs| {
            let result = inputs[0].mul(2.0)?;
            context.mark_dirty(&[&result]);
            Ok(vec![result])
        },
        |_, grads| Ok(grads.to_vec()),
    );
    assert!(odd.apply(&[&x])?.remove(0).requires_grad());
    Ok(())
}

#[test]
fn backward_runs_though_no_gradient_arrives() -> Outcome {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let looking = pair(
        |_, inputs| Ok(vec![inputs[0].mul(2.0)?]),
        move |_, grads| {
            counted.fetch_add(1, Ordering::Relaxed);
            assert_eq!(grads[0].as_ref().unwrap().to_vec::<f64>()?, [0.0]);
            Ok(grads.to_vec())
        },
    );
    let silent = pair(|_, inputs| Ok(vec![inputs[0].mul(2.0)?]), |_, _| Ok(vec![None]));
    let x = leaf(&[1.0]);
    let y = looking.apply(&[&x])?.remove(0).exp()?;
    silent.apply(&[&y])?.remove(0).backward()?;
    assert_eq!((runs.load(Ordering::Relaxed), grad_of(&x)), (1, vec![0.0]));
    Ok(())
}

#[test]
fn an_input_returned_as_it_is_becomes_a_view() -> Outcome {
    let identity = || {
        pair(
            |_, inputs| Ok(vec![inputs[0].clone()]),
            |_, grads| Ok(vec![Some(grads[0].as_ref().unwrap().mul(7.0)?)]),
        )
    };
    let x = leaf(&[1.0]);
    let h = x.mul(1.0)?;
    let y = identity().apply(&[&h])?.remove(0);
    assert!(y.shares_storage_with(&h) && h.grad_fn_name() == Some("mul"));
    assert!(y.add_(1.0).unwrap_err().is_autograd(), "PyTorch refuses it too");
    y.backward()?;
    assert_eq!(grad_of(&x), [7.0]);
    let y = no_grad(|| identity().apply(&[&h]))?.remove(0);
    assert!(y.shares_storage_with(&h));
    // Where nobody wants gradients it can be written.
    let plain = Tensor::ones(&[1], DType::F64)?;
    identity().apply(&[&plain])?.remove(0).add_(1.0)?;
    assert_eq!(values(&plain), [2.0]);
    // Without a derivative it leaves the graph, as in PyTorch.
    let fixed = pair(
        |context, inputs| {
            context.mark_non_differentiable(inputs);
            Ok(vec![inputs[0].clone(), inputs[0].mul(1.0)?])
        },
        |_, grads| Ok(grads[1..].to_vec()),
    );
    for y in [no_grad(|| identity().apply(&[&h]))?.remove(0), fixed.apply(&[&h])?.remove(0)] {
        assert!(y.shares_storage_with(&h) && !y.requires_grad() && y.base().is_none());
    }
    // Once the input was written, the derivative of the function is lost, and so is the result.
    let y = identity().apply(&[&h])?.remove(0);
    h.mul_(2.0)?;
    let refused = [y.exp().err(), y.retain_grad().err(), y.backward().err()];
    for error in refused {
        assert!(error.is_some_and(|error| error.to_string().contains("written since")));
    }
    Ok(())
}

#[test]
fn a_function_that_is_differentiable_once_says_so() -> Outcome {
    let once = || Pair {
        forward: |context: &mut Context, inputs: &[&Tensor]| {
            context.save_for_backward(inputs);
            Ok(vec![inputs[0].mul(inputs[0])?])
        },
        backward: |context: &BackwardContext<'_>, grads: &[Option<Tensor>]| -> Found {
            assert!(!is_grad_enabled());
            let twice = context.saved_tensors()[0].mul(2.0)?;
            Ok(vec![Some(grads[0].as_ref().unwrap().mul(&twice)?)])
        },
        once: true,
    };
    let x = leaf(&[3.0]);
    let recorded = || GradOptions { create_graph: true, ..Default::default() };
    // The gradient that it starts from is a constant, so nothing is recorded, as in PyTorch.
    let y = once().apply(&[&x])?.remove(0);
    assert!(!grad(&[&y], &[&x], recorded())?[0].as_ref().unwrap().requires_grad());
    // Here it depends on `x`.
    let z = once().apply(&[&x])?.remove(0).pow(2.0)?;
    let first = grad(&[&z], &[&x], recorded())?.remove(0).unwrap();
    assert_eq!(values(&first), [108.0]);
    assert!(first.backward().unwrap_err().to_string().contains("once"));
    Ok(())
}

#[test]
fn user_code_that_fails_or_panics_leaves_the_book_balanced() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    for (forward_fails, panics) in [(false, false), (false, true), (true, false), (true, true)] {
        let fail = move |here: bool| match (here, panics) {
            (false, _) => Ok(()),
            (true, false) => Err(Error::autograd("mine", "boom")),
            (true, true) => panic!("boom"),
        };
        let function = pair(
            move |context, inputs| {
                let result = inputs[0].exp()?;
                context.save_for_backward(&[&result]);
                fail(forward_fails)?;
                Ok(vec![result])
            },
            move |_, grads| fail(!forward_fails).map(|()| grads.to_vec()),
        );
        let x = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
        let run = || function.apply(&[&x])?.remove(0).sum()?.backward();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        assert_eq!(outcome.is_err(), panics);
        assert!(outcome.map_or(true, |result| result.is_err()));
        assert!(is_grad_enabled() && x.grad().is_none());
        drop(x);
        assert_eq!(memory::memory_allocated(own), 0);
    }
    Ok(())
}

#[test]
fn saved_tensors_go_through_the_innermost_hooks() -> Outcome {
    let x = leaf(&[3.0]);
    let (packs, unpacks) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (p, u) = (packs.clone(), unpacks.clone());
    let pack = move |tensor: &Tensor| {
        // The leaf, and what was computed from it with its place in the graph.
        assert!(!is_grad_enabled() && tensor.requires_grad());
        p.fetch_add(1, Ordering::Relaxed);
        tensor.clone_tensor()
    };
    let unpack = move |kept: &Tensor| {
        u.fetch_add(1, Ordering::Relaxed);
        Ok(kept.clone())
    };
    let outer_pack =
        |_: &Tensor| -> Result<u8> { Err(Error::autograd("mine", "the outer one ran")) };
    let outer_unpack = |_: &u8| Err(Error::autograd("mine", "the outer one ran"));
    let y = saved_tensors_hooks(outer_pack, outer_unpack, || {
        saved_tensors_hooks(pack, unpack, || square().apply(&[&x])?.remove(0).mul(&x))
    })?;
    assert_eq!((packs.load(Ordering::Relaxed), unpacks.load(Ordering::Relaxed)), (3, 0));
    // The way back into the graph is kept beside what the hooks keep.
    let recorded = GradOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&y], &[&x], recorded)?.remove(0).unwrap();
    let second = grad(&[&first], &[&x], GradOptions::default())?.remove(0).unwrap();
    assert_eq!((values(&first), values(&second)), (vec![27.0], vec![18.0]));
    assert!(unpacks.load(Ordering::Relaxed) >= 3);
    Ok(())
}

#[test]
fn hooks_on_saved_tensors_are_checked() -> Outcome {
    let x = leaf(&[3.0, 4.0]);
    let y = saved_tensors_hooks(|t: &Tensor| Ok(t.clone()), |t: &Tensor| t.sum(), || x.exp())?;
    let error = y.sum()?.backward().unwrap_err().to_string();
    assert!(error.contains("unpack") && error.contains("[2]"), "{error}");
    let nothing = saved_tensors_hooks(|_| Ok(()), |()| Tensor::ones(&[2], DType::F64), || x.exp());
    assert!(nothing.unwrap_err().to_string().contains("kept nothing"));
    let fails = |_: &Tensor| -> Result<u8> { Err(Error::autograd("mine", "boom")) };
    let failed = saved_tensors_hooks(fails, |_| Tensor::ones(&[2], DType::F64), || x.exp());
    assert!(failed.unwrap_err().to_string().contains("boom"));
    let writes = |t: &Tensor| t.add_(1.0).cloned();
    let written = saved_tensors_hooks(writes, |t: &Tensor| Ok(t.clone()), || x.mul(1.0)?.exp());
    assert!(written.unwrap_err().to_string().contains("modifying its input in place"));
    assert!(x.exp()?.sum()?.backward().is_ok(), "the hooks are gone");
    Ok(())
}

#[test]
fn a_graph_saved_on_the_host_leaves_the_device_empty_and_gives_the_same_gradients() -> Outcome {
    let gpu = device::stand_in(Default::default())?;
    // Bytes are counted here, so nothing may be taken away between operations.
    device::set_chaos(gpu, None);
    let run = |spill: bool| -> Result<(usize, Vec<f32>)> {
        let x = Tensor::full(&[1024], 0.5, (DType::F32, gpu))?.requires_grad_(true)?;
        let before = memory::memory_allocated(gpu);
        let forward = || x.tanh()?.exp()?.tanh()?.exp()?.sum();
        let loss = if spill { save_on_host(forward) } else { forward() }?;
        let held = memory::memory_allocated(gpu) - before;
        loss.backward()?;
        Ok((held, x.grad().unwrap().to_vec()?))
    };
    let ((plain, grads), (spilled, spilled_grads)) = (run(false)?, run(true)?);
    assert_eq!((plain, spilled), (4 * 4096 + 512, 512));
    assert_eq!(grads, spilled_grads);
    assert_eq!(memory::memory_allocated(gpu), 0);
    Ok(())
}
