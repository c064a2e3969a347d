//! Hooks of tensors, nodes and accumulators beside PyTorch 2.15: their order, what they may
//! replace, and that nothing is lost when they fail. Which hooks run in backward over a part of a
//! graph is in `autograd_parts.rs`.

use std::sync::{Arc, Mutex};

use plimsoll_tensor::*;

type Outcome = Result<()>;

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as i64], Device::cpu())
        .and_then(|x| x.requires_grad_(true))
        .unwrap()
}

fn grad_of(x: &Tensor) -> Vec<f64> {
    x.grad().expect("backward left a gradient").to_vec().unwrap()
}

/// What hooks wrote down.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, who: &str, grads: &[&[Option<Tensor>]]) -> Result<()> {
        let mut line = who.to_string();
        for list in grads {
            line.push_str(" [");
            for grad in *list {
                match grad {
                    Some(grad) => line.push_str(&format!("{} ", grad.item::<f64>()?)),
                    None => line.push_str("None "),
                }
            }
            line = format!("{}]", line.trim_end());
        }
        self.0.lock().unwrap().push(line);
        Ok(())
    }

    fn on_tensor(&self, x: &Tensor, who: &'static str, factor: Option<f64>) -> Result<HookHandle> {
        let log = self.clone();
        x.register_hook(move |grad| {
            log.note(who, &[])?;
            factor.map(|factor| grad.mul(factor)).transpose()
        })
    }

    fn before(&self, node: &GradFn, who: &'static str, factor: Option<f64>) -> HookHandle {
        let log = self.clone();
        node.register_prehook(move |grads| {
            log.note(who, &[grads])?;
            let Some(factor) = factor else { return Ok(None) };
            let scaled: Result<Vec<_>> =
                grads.iter().map(|g| g.as_ref().map(|g| g.mul(factor)).transpose()).collect();
            scaled.map(Some)
        })
    }

    fn after(&self, node: &GradFn, who: &'static str) -> HookHandle {
        let log = self.clone();
        node.register_hook(move |inputs, outputs| {
            log.note(who, &[inputs, outputs])?;
            Ok(None)
        })
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn hooks_run_in_pytorchs_order() -> Outcome {
    let log = Log::default();
    let x = leaf(&[1.0]);
    let written = log.clone();
    x.register_post_accumulate_grad_hook(move |x| written.note("x written", &[&[x.grad()]]))?;
    log.on_tensor(&x, "x first", None)?;
    let accumulate = x.view(&[1])?.grad_fn().unwrap().next_functions().remove(0).unwrap().0;
    log.after(&accumulate, "accumulate after");
    log.before(&accumulate, "accumulate before", None);
    log.on_tensor(&x, "x second", None)?;
    let y = x.mul(2.0)?;
    y.retain_grad()?;
    log.on_tensor(&y, "y first", Some(5.0))?;
    log.after(&y.grad_fn().unwrap(), "mul after");
    log.before(&y.grad_fn().unwrap(), "mul before", Some(10.0));
    log.on_tensor(&y, "y second", None)?;
    y.sum()?.backward()?;
    let expected = [
        "y first",
        "y second",
        "mul before [5]",
        "mul after [100] [50]",
        "x first",
        "x second",
        "accumulate before [100]",
        "x written [100]",
        "accumulate after [] [100]",
    ];
    assert_eq!(log.take(), expected);
    assert_eq!((grad_of(&y), grad_of(&x)), (vec![5.0], vec![100.0]));
    Ok(())
}

#[test]
fn hooks_run_for_gradients_that_are_missing_too() -> Outcome {
    let log = Log::default();
    let x = leaf(&[1.0]);
    let h = x.mul(2.0)?;
    h.retain_grad()?;
    log.before(&h.grad_fn().unwrap(), "before", None);
    log.after(&h.grad_fn().unwrap(), "after");
    let written = log.clone();
    x.register_post_accumulate_grad_hook(move |x| written.note("written", &[&[x.grad()]]))?;
    let y = h.mul(3.0)?;
    y.grad_fn().unwrap().register_hook(|grads, _| Ok(Some(vec![None; grads.len()])));
    y.backward()?;
    // As PyTorch, apart from hooks of tensors: they have nothing to see here, and PyTorch hands
    // them None.
    assert_eq!(log.take(), ["before [None]", "after [None] [None]", "written [None]"]);
    assert!(h.grad().is_none() && x.grad().is_none());
    Ok(())
}

#[test]
fn a_step_in_backward_frees_each_gradient_at_once() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    let weights: Vec<Tensor> = (0..8)
        .map(|_| Tensor::ones(&[1024], (DType::F32, own))?.requires_grad_(true))
        .collect::<Result<_>>()?;
    for weight in &weights {
        weight.register_post_accumulate_grad_hook(|w| {
            no_grad(|| w.sub_(&w.grad().unwrap()).map(drop))?;
            w.set_grad(None)
        })?;
    }
    let mut h = weights[0].mul(1.0)?;
    for weight in &weights[1..] {
        h = h.add(weight)?;
    }
    let loss = h.sum()?;
    drop(h);
    let before = memory::memory_allocated(own);
    let peak = memory::peak_scope(own);
    loss.backward()?;
    assert!(weights.iter().all(|w| w.grad().is_none()));
    assert_eq!(weights[7].to_vec::<f32>()?, [0.0; 1024]);
    let most = peak.allocated_bytes_peak() - before;
    assert!(most <= 2 * 4096 + 1024, "{most} bytes for 8 gradients of 4096");
    Ok(())
}

#[test]
fn a_hook_may_change_values_and_nothing_else() -> Outcome {
    fn fails(register: impl Fn(&Tensor) -> Result<HookHandle>, word: &str) {
        let x = leaf(&[1.0, 1.0]);
        let y = x.mul(2.0).unwrap();
        register(&y).unwrap();
        let error = y.sum().unwrap().backward().unwrap_err();
        assert!(error.is_autograd() && error.to_string().contains(word), "{error}");
        assert!(x.grad().is_none());
    }
    let node = |y: &Tensor| y.grad_fn().unwrap();
    fails(|y| y.register_hook(|grad| grad.sum().map(Some)), "[2]");
    fails(|y| y.register_hook(|grad| grad.to(DType::F32).map(Some)), "float32");
    fails(|y| Ok(node(y).register_prehook(|_| Ok(Some(vec![])))), "0 gradients for 1");
    fails(
        |y| Ok(node(y).register_prehook(|g| Ok(Some(vec![Some(g[0].as_ref().unwrap().sum()?)])))),
        "[2]",
    );
    fails(|y| Ok(node(y).register_hook(|_, _| Ok(Some(vec![None, None, None])))), "3 gradients");
    fails(|y| y.register_hook(|_| Err(Error::autograd("mine", "boom"))), "boom");
    Ok(())
}

#[test]
fn a_hook_that_fails_or_panics_leaves_the_book_balanced() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    for panics in [false, true] {
        let x = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
        let y = x.exp()?;
        y.register_hook(move |_| {
            if panics { panic!("boom") } else { Err(Error::autograd("mine", "boom")) }
        })?;
        let loss = y.mul(2.0)?.sum()?;
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| loss.backward()));
        assert_eq!(outcome.is_err(), panics);
        assert!(outcome.unwrap_or(Err(Error::autograd("mine", "boom"))).is_err());
        assert!(is_grad_enabled() && x.grad().is_none());
        drop((x, y, loss));
        assert_eq!(memory::memory_allocated(own), 0);
    }
    Ok(())
}

#[test]
fn a_hook_may_run_backward_itself() -> Outcome {
    let (x, z) = (leaf(&[3.0]), leaf(&[2.0]));
    let inner = z.clone();
    x.register_hook(move |grad| {
        enable_grad(|| inner.mul(&inner)?.backward())?;
        grad.mul(&inner.grad().unwrap()).map(Some)
    })?;
    x.mul(2.0)?.backward()?;
    assert_eq!((grad_of(&z), grad_of(&x)), (vec![4.0], vec![8.0]));
    Ok(())
}

#[test]
fn hooks_can_be_removed_whatever_they_hang_on() -> Outcome {
    let log = Log::default();
    let x = leaf(&[1.0]);
    let y = x.mul(2.0)?;
    let node = y.grad_fn().unwrap();
    let written = log.clone();
    for handle in [
        log.on_tensor(&x, "x", None)?,
        log.on_tensor(&y, "y", None)?,
        log.before(&node, "before", None),
        log.after(&node, "after"),
        x.register_post_accumulate_grad_hook(move |_| written.note("written", &[]))?,
    ] {
        handle.remove();
    }
    y.backward()?;
    assert_eq!(log.take(), [""; 0]);
    assert!(y.register_post_accumulate_grad_hook(|_| Ok(())).unwrap_err().is_autograd());
    Ok(())
}

#[test]
fn a_long_chain_of_hooks_that_hold_tensors_drops_without_recursion() -> Outcome {
    let mut y = leaf(&[1.0]);
    for _ in 0..100_000 {
        let next = y.add(1.0)?;
        let held = y;
        next.register_hook(move |grad| grad.mul(&held).map(Some))?;
        y = next;
    }
    drop(y);
    Ok(())
}

/// Counts what it sees: gradients, and passes without one.
#[derive(Default)]
struct Counting(Mutex<(usize, usize)>);

impl Hook for Counting {
    fn run(&self, _: &Tensor) -> Result<Option<Tensor>> {
        self.0.lock().unwrap().0 += 1;
        Ok(None)
    }

    fn pass(&self) -> Result<()> {
        self.0.lock().unwrap().1 += 1;
        Ok(())
    }
}

/// Twice its input, and its input.
struct Two;

impl Function for Two {
    fn name(&self) -> &'static str {
        "Two"
    }

    fn forward(&self, _: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].mul(2.0)?, inputs[0].mul(1.0)?])
    }

    fn backward(
        &self,
        _: &BackwardContext<'_>,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![grads[0].clone()])
    }
}

#[test]
fn hooks_hear_of_results_without_a_gradient() -> Outcome {
    let x = leaf(&[1.0]);
    let results = Two.apply(&[&x])?;
    let hook = Arc::new(Counting::default());
    results[1].register_hook_object(hook.clone())?;
    let options = || GradOptions { retain_graph: true, allow_unused: true, ..Default::default() };
    // Where the node is only looked at, and where it runs.
    assert!(grad(&[&results[0]], &[&results[1]], options())?[0].is_none());
    assert_eq!(*hook.0.lock().unwrap(), (0, 1));
    results[0].backward()?;
    assert_eq!(*hook.0.lock().unwrap(), (0, 2));
    results[1].backward()?;
    assert_eq!(*hook.0.lock().unwrap(), (1, 2));
    Ok(())
}
