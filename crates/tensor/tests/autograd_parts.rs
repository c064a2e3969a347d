//! Backward over parts of graphs, beside PyTorch 2.15: what runs, what is freed, who gets a
//! gradient, and whose memory and line it is. The comments say what PyTorch answers to the same
//! program.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

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

fn one(outputs: &[&Tensor], input: &Tensor) -> Result<Vec<f64>> {
    grad(outputs, &[input], GradOptions::default())?.remove(0).unwrap().to_vec()
}

/// Counts how often a hook ran.
fn counted(x: &Tensor) -> Result<Arc<AtomicUsize>> {
    let count = Arc::new(AtomicUsize::new(0));
    let hook = count.clone();
    x.register_hook(move |_| {
        hook.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    })?;
    Ok(count)
}

#[test]
fn nothing_behind_the_inputs_of_grad_runs_or_is_freed() -> Outcome {
    let x = leaf(&[0.0, 0.0]);
    let ran = counted(&x)?;
    let h = x.exp()?; // saves its output
    let loss = h.mul(2.0)?.sum()?;
    let g = grad(&[&loss], &[&h], GradOptions::default())?.remove(0).unwrap();
    assert_eq!((g.to_vec::<f64>()?, ran.load(Ordering::Relaxed)), (vec![2.0, 2.0], 0));
    h.backward_with(BackwardOptions { gradient: Some(g), ..Default::default() })?;
    assert_eq!((grad_of(&x), ran.load(Ordering::Relaxed)), (vec![2.0, 2.0], 1));
    Ok(())
}

#[test]
fn only_the_branch_that_leads_to_the_inputs_is_freed() -> Outcome {
    let (a, b) = (leaf(&[0.0]), leaf(&[0.0]));
    let (ea, eb) = (a.exp()?, b.exp()?);
    one(&[&ea.mul(&eb)?], &a)?;
    eb.backward()?;
    assert_eq!(grad_of(&b), [1.0]);
    assert!(ea.backward().unwrap_err().to_string().contains("second time"));
    Ok(())
}

#[test]
fn an_output_can_be_an_input() -> Outcome {
    let x = leaf(&[0.0, 0.0]);
    let loss = x.exp()?.sum()?;
    // PyTorch: 1, and the graph is left as it is.
    assert_eq!(one(&[&loss], &loss)?, [1.0]);
    loss.backward()?;
    assert_eq!(grad_of(&x), [1.0, 1.0]);
    let y = leaf(&[3.0]);
    assert_eq!(one(&[&y], &y)?, [1.0]);
    Ok(())
}

#[test]
fn grad_shows_what_the_hooks_of_its_inputs_made_unless_backward_goes_on_behind_them() -> Outcome {
    let hooked = |x: &Tensor| -> Result<Tensor> {
        let h = x.mul(1.0)?;
        h.register_hook(|grad| grad.mul(10.0).map(Some))?;
        h.retain_grad()?;
        Ok(h)
    };
    let x = leaf(&[1.0]);
    let h = hooked(&x)?;
    assert_eq!(one(&[&h.mul(2.0)?], &h)?, [20.0]);
    assert_eq!(grad_of(&h), [20.0]);
    // PyTorch 2.15 answers 2 for `h` here: a node that also runs is captured before its hooks.
    let h = hooked(&x)?;
    let grads = grad(&[&h.mul(2.0)?], &[&h, &x], GradOptions::default())?;
    let grads: Vec<f64> = grads.into_iter().map(|g| g.unwrap().item().unwrap()).collect();
    assert_eq!((grads, grad_of(&h)), (vec![2.0, 20.0], vec![20.0]));
    Ok(())
}

#[test]
fn backward_into_tensors_that_are_no_leaves_runs_their_node_and_leaves_a_gradient() -> Outcome {
    let x = leaf(&[0.0]);
    let ran = counted(&x)?;
    let h = x.exp()?;
    let loss = h.mul(2.0)?;
    loss.backward_with(BackwardOptions { inputs: vec![h.clone()], ..Default::default() })?;
    assert_eq!((grad_of(&h), ran.load(Ordering::Relaxed)), (vec![2.0], 0));
    assert!(x.grad().is_none());
    // PyTorch runs (and frees) the node of `h` itself.
    assert!(h.backward().unwrap_err().to_string().contains("second time"));
    Ok(())
}

#[test]
fn leaves_get_a_gradient_each_when_backward_is_recorded() -> Outcome {
    let (a, b) = (leaf(&[1.0, 1.0]), leaf(&[2.0, 2.0]));
    let recorded = || BackwardOptions { create_graph: true, ..Default::default() };
    a.add(&b)?.pow(2.0)?.sum()?.backward_with(recorded())?;
    let (ga, gb) = (a.grad().unwrap(), b.grad().unwrap());
    assert!(!ga.shares_storage_with(&gb) && ga.requires_grad());
    no_grad(|| ga.zero_().map(drop))?;
    assert_eq!(gb.to_vec::<f64>()?, [6.0, 6.0]);
    // A second recorded one makes a new sum; an unrecorded one adds to what is there.
    a.set_grad(None)?;
    a.mul(3.0)?.sum()?.backward_with(recorded())?;
    let first = a.grad().unwrap();
    a.mul(3.0)?.sum()?.backward_with(recorded())?;
    assert_eq!((first.to_vec::<f64>()?, grad_of(&a)), (vec![3.0; 2], vec![6.0; 2]));
    let second = a.grad().unwrap();
    a.mul(3.0)?.sum()?.backward()?;
    assert!(second.shares_storage_with(&a.grad().unwrap()));
    assert_eq!(second.to_vec::<f64>()?, [9.0, 9.0]);
    Ok(())
}

#[test]
fn a_retained_gradient_follows_in_place_writes_and_hooks_do_not() -> Outcome {
    let x = leaf(&[1.0]);
    let y = x.mul(3.0)?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = |y: &Tensor, when: &'static str| {
        let seen = seen.clone();
        y.register_hook(move |grad| {
            seen.lock().unwrap().push((when, grad.item::<f64>()?));
            Ok(None)
        })
    };
    see(&y, "before")?;
    y.retain_grad()?;
    y.mul_(2.0)?;
    see(&y, "after")?;
    y.sum()?.backward()?;
    assert_eq!((grad_of(&y), grad_of(&x)), (vec![1.0], vec![6.0]));
    assert_eq!(*seen.lock().unwrap(), [("after", 1.0), ("before", 2.0)]);
    Ok(())
}

#[test]
fn retained_gradients_of_views_and_their_base_follow_writes_to_either() -> Outcome {
    for through_view in [false, true] {
        let x = leaf(&[1.0; 4]);
        let y = x.mul(1.0)?;
        let v = y.narrow(0, 0, 2)?;
        v.retain_grad()?;
        y.retain_grad()?;
        if through_view {
            v.mul_(3.0)?
        } else {
            y.mul_(3.0)?
        };
        v.sum()?.add(&y.sum()?)?.backward()?;
        // PyTorch: the same for both.
        assert_eq!((grad_of(&v), grad_of(&y)), (vec![1.0; 2], vec![2.0, 2.0, 1.0, 1.0]));
    }
    Ok(())
}

#[test]
fn hooks_of_a_leaf_that_was_dropped_still_run() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
    let ran = counted(&x)?;
    let y = x.add(1.0)?.sum()?;
    drop(x);
    assert_eq!(memory::memory_allocated(own), 512, "the graph does not keep the leaf");
    y.backward()?;
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    Ok(())
}

#[test]
fn two_threads_first_gradients_for_one_leaf_are_both_there() {
    const ROUNDS: usize = 2000;
    for _ in 0..ROUNDS {
        let x = leaf(&[1.0]);
        let (left, right) = (x.mul(2.0).unwrap(), x.mul(3.0).unwrap());
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for y in [&left, &right] {
                scope.spawn(|| {
                    start.wait();
                    y.backward().unwrap();
                });
            }
        });
        assert_eq!(grad_of(&x), [5.0]);
    }
}

#[test]
fn a_gradient_that_is_set_counts_as_one_until_it_is_taken_away() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    let kinds = || -> Vec<_> {
        memory::live_by_kind(own).iter().map(|row| (row.kind, row.bytes)).collect()
    };
    let x = Tensor::ones(&[256], (DType::F32, own))?.mark_parameter().requires_grad_(true)?;
    let y = Tensor::ones(&[256], (DType::F32, own))?.mark_parameter().requires_grad_(true)?;
    let g = Tensor::ones(&[256], (DType::F32, own))?;
    let weights = (memory::Kind::Parameter, 2048);
    let sorted = |mut rows: Vec<(memory::Kind, usize)>| {
        rows.sort();
        rows
    };
    x.set_grad(Some(&g))?;
    y.set_grad(Some(&g))?;
    assert_eq!(sorted(kinds()), sorted(vec![weights, (memory::Kind::Gradient, 1024)]));
    x.set_grad(None)?;
    assert_eq!(sorted(kinds()), sorted(vec![weights, (memory::Kind::Gradient, 1024)]));
    drop(y);
    let weights = (memory::Kind::Parameter, 1024);
    assert_eq!(sorted(kinds()), sorted(vec![weights, (memory::Kind::Temporary, 1024)]));
    Ok(())
}

/// Origins of everything that is alive on `device`, as text.
fn origins(device: Device) -> Vec<String> {
    memory::live_by_origin(device).iter().map(|row| row.origin.to_string()).collect()
}

#[test]
fn backward_works_in_the_name_of_the_forward_module_and_grad_in_the_name_of_its_caller() -> Outcome
{
    let own = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
    let y = {
        let _module = plimsoll_memory::enter_module("encoder");
        x.exp()?
    };
    let line = line!() + 1;
    let g = grad(&[&y.sum()?], &[&x], GradOptions::default())?;
    let found = origins(own);
    let backward = found.iter().find(|origin| origin.contains("(backward)"));
    assert!(backward.is_some_and(|origin| origin.contains("in encoder")), "{found:?}");
    drop(g);
    // What belongs to no operation, here the first gradient itself, is the caller's.
    let g = grad(&[&y.sum()?.clone_tensor()?], &[&y], GradOptions::default());
    let ones = Tensor::full(&[], 1.0, (DType::F32, own))?.requires_grad_(true)?;
    let line_of_ones = line!() + 1;
    let own_gradient = grad(&[&ones], &[&ones], GradOptions::default())?;
    let found = origins(own);
    let expected = format!("autograd_parts.rs:{line_of_ones}");
    assert!(found.iter().any(|origin| origin.contains(&expected)), "{found:?}");
    assert!(found.iter().all(|origin| !origin.contains("/src/")), "{found:?}");
    drop((g, own_gradient, line));
    Ok(())
}

#[test]
fn operations_are_asked_only_for_gradients_that_are_on_the_way() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[1024], (DType::F32, own))?.requires_grad_(true)?;
    let w = Tensor::ones(&[1024], (DType::F32, own))?.requires_grad_(true)?;
    let y = x.mul(&w)?.sum()?;
    let before = memory::memory_allocated(own);
    let peak = memory::peak_scope(own);
    let gw = grad(&[&y], &[&w], GradOptions::default())?.remove(0).unwrap();
    assert_eq!(gw.to_vec::<f32>()?, [1.0; 1024]);
    // Both gradients would be 8192 bytes at once.
    let most = peak.allocated_bytes_peak() - before;
    assert!(most < 8192, "{most} bytes");
    Ok(())
}

#[test]
fn a_view_that_was_written_stands_behind_its_own_write() -> Outcome {
    let x = leaf(&[1.0; 4]);
    let y = x.mul(1.0)?;
    let (v, other) = (y.narrow(0, 0, 2)?, y.narrow(0, 2, 2)?);
    y.retain_grad()?;
    v.mul_(3.0)?;
    v.add_(&other)?;
    v.sum()?.add(&y.sum()?)?.add(&other.sum()?)?.backward()?;
    // PyTorch's answers.
    assert_eq!(grad_of(&y), [2.0; 4]);
    assert_eq!(grad_of(&x), [6.0, 6.0, 4.0, 4.0]);
    Ok(())
}

// What random programs beside PyTorch found (`cargo xtask conformance autograd`), one test each.

#[test]
fn a_view_from_outside_the_graph_is_refused_once_its_memory_is_in_it() -> Outcome {
    let x = leaf(&[1.0, 2.0]);
    let y = x.tanh()?;
    let view = no_grad(|| y.narrow(0, 0, 1))?;
    let view_of_view = view.unsqueeze(0)?;
    y.sub_(1.0)?;
    for stale in [&view, &view_of_view] {
        let error = stale.mul(&x).unwrap_err();
        assert!(error.is_autograd() && error.to_string().contains("no_grad"), "{error}");
    }
    // Written through a view of such a view.
    let constant = Tensor::zeros(&[1, 2], DType::F64)?;
    let inner = no_grad(|| constant.narrow(0, 0, 1))?.select(0, 0)?;
    assert!(inner.copy_(&x).unwrap_err().is_autograd());
    Ok(())
}

#[test]
fn a_leaf_that_stopped_wanting_gradients_gets_none() -> Outcome {
    let x = leaf(&[1.0]);
    let y = x.mul(2.0)?;
    x.requires_grad_(false)?;
    y.backward_with(BackwardOptions { retain_graph: true, ..Default::default() })?;
    assert!(x.grad().is_none());
    // Moved into the graph by a write, it cannot take the gradient that was meant for its old
    // value.
    x.mul_(&y)?;
    assert!(y.backward().unwrap_err().to_string().contains("leaf no more"));
    Ok(())
}

#[test]
fn the_hooks_of_a_single_output_run_even_if_nothing_behind_it_was_asked_for() -> Outcome {
    let (x, other) = (leaf(&[1.0]), leaf(&[1.0]));
    let y = x.mul(2.0)?;
    y.retain_grad()?;
    let behind = counted(&x)?;
    y.backward_with(BackwardOptions { inputs: vec![other], ..Default::default() })?;
    assert_eq!((grad_of(&y), behind.load(Ordering::Relaxed)), (vec![1.0], 0));
    Ok(())
}

#[test]
fn a_node_that_runs_looks_at_what_it_saved_even_if_nothing_is_wanted_of_it() -> Outcome {
    let x = leaf(&[1.0]);
    let y = x.abs()?; // saves its input
    no_grad(|| x.mul_(0.5).map(drop))?;
    let only_y = BackwardOptions { inputs: vec![y.clone()], ..Default::default() };
    assert!(
        y.backward_with(only_y)
            .unwrap_err()
            .to_string()
            .contains("modified by an inplace operation")
    );
    Ok(())
}

#[test]
fn a_write_through_a_view_is_differentiated_once() -> Outcome {
    let x = leaf(&[1.0, 2.0]);
    let y = x.add(1.0)?; // saves nothing, so it could run again
    y.narrow(0, 0, 1)?.add_(1.0)?;
    y.sum()?.backward()?;
    assert!(y.sum()?.backward().unwrap_err().to_string().contains("second time"));
    Ok(())
}

#[test]
fn the_gradient_of_relu_depends_on_its_input_by_steps() -> Outcome {
    let x = leaf(&[-1.0, 2.0]);
    let recorded = GradOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&x.relu()?.sum()?], &[&x], recorded)?.remove(0).unwrap();
    assert_eq!((first.to_vec::<f64>()?, first.requires_grad()), (vec![0.0, 1.0], true));
    assert_eq!(one(&[&first.sum()?], &x)?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn integers_that_a_node_saved_bring_no_history_along() -> Outcome {
    let x = leaf(&[3.0, 1.0]);
    let (sorted, _) = x.sort()?;
    let recorded = GradOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&sorted.sum()?], &[&x], recorded)?.remove(0).unwrap();
    assert_eq!((first.to_vec::<f64>()?, first.requires_grad()), (vec![1.0, 1.0], false));
    Ok(())
}

/// Slices, columns and a diagonal of one tensor that overlap, each times another number; the
/// gradient is the sum of the numbers at each element.
#[test]
fn gradients_of_parts_are_added_where_they_belong() -> Outcome {
    let x = Tensor::zeros(&[3, 4], DType::F64)?.requires_grad_(true)?;
    let y = x.mul(1.0)?;
    let parts = [
        y.narrow(1, 1, 2)?.mul(1.0)?,
        y.slice(0, 0, 3, 2)?.mul(10.0)?,
        y.select(1, 3)?.mul(100.0)?,
        y.diagonal(0, 0, 1)?.mul(1000.0)?,
        y.mul(10_000.0)?,
    ];
    let mut sum = parts[0].sum()?;
    for part in &parts[1..] {
        sum = sum.add(&part.sum()?)?;
    }
    sum.backward()?;
    let expected = [
        11_010.0, 10_011.0, 10_011.0, 10_110.0, // the first row: slice, diagonal, columns
        10_000.0, 11_001.0, 10_001.0, 10_100.0, //
        10_010.0, 10_011.0, 11_011.0, 10_110.0,
    ];
    assert_eq!(grad_of(&x), expected);
    Ok(())
}

/// However many parts a tensor is split into, its gradient is made once: 64 parts of 4096 bytes.
#[test]
fn the_gradient_of_a_split_tensor_is_made_once() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    let x = Tensor::zeros(&[64, 1024], (DType::F32, own))?.requires_grad_(true)?;
    let mut sum = Tensor::zeros(&[], (DType::F32, own))?;
    for part in x.split(1, 0)? {
        sum = sum.add(&part.sum()?)?;
    }
    let before = memory::memory_allocated(own);
    let peak = memory::peak_scope(own);
    sum.backward()?;
    let above = peak.allocated_bytes_peak() - before;
    assert!(above < (64 + 2) * 4096, "{above} bytes"); // it, and a part's
    assert_eq!(x.grad().unwrap().sum()?.item::<f32>()?, 65536.0);
    Ok(())
}

/// What hooks and recorded gradients see of a part is the whole, with zeros around it.
#[test]
fn gradients_of_parts_that_are_looked_at_are_made() -> Outcome {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let y = x.mul(&x)?;
    let (a, b) = (y.narrow(0, 0, 2)?, y.narrow(0, 1, 2)?);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = seen.clone();
    let node = b.grad_fn().expect("a recorded view");
    node.register_hook(move |grads, _| {
        hook.lock().unwrap().push(grads[0].as_ref().unwrap().to_vec::<f64>()?);
        Ok(None)
    });
    let loss = a.mul(&a)?.sum()?.add(&b.sum()?)?;
    let options = GradOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&loss], &[&x], options)?.remove(0).unwrap();
    // 4 x^3 of the first two, and 2 x of the last two.
    assert_eq!(first.to_vec::<f64>()?, [4.0, 36.0, 6.0]);
    assert_eq!(*seen.lock().unwrap(), [[0.0, 1.0, 1.0]]);
    assert_eq!(one(&[&first.sum()?], &x)?, [12.0, 50.0, 2.0]);
    Ok(())
}

/// Memory seen through `data` counts its own writes; also when it is saved a second time, by a
/// recorded backward.
#[test]
fn what_data_shows_keeps_its_own_count_through_a_recorded_backward() -> Outcome {
    let x = Tensor::from_slice(&[1.0, 2.0], &[2], Device::cpu())?;
    let (a, u) = (leaf(&[3.0, 4.0]), leaf(&[5.0, 6.0]));
    let product = a.mul(&x.data())?.mul(&u)?.sum()?;
    let options = GradOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&product], &[&a], options)?.remove(0).unwrap();
    x.add_(10.0)?;
    assert_eq!(one(&[&first.sum()?], &u)?, [11.0, 12.0]);
    Ok(())
}
