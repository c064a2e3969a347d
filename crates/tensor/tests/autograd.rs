//! What autograd promises beyond right gradients (those are checked for every operation by the
//! testkit): in-place writes, views, hooks, freed graphs, depth, and which bytes a graph holds.

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

#[test]
fn gradients_add_up_until_they_are_taken_away() -> Outcome {
    let x = leaf(&[1.0, 2.0]);
    for _ in 0..3 {
        x.mul(&x)?.sum()?.backward()?;
    }
    assert_eq!(grad_of(&x), [6.0, 12.0]);
    x.set_grad(None)?;
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn later_gradients_are_added_to_the_same_memory() -> Outcome {
    let x = leaf(&[1.0, 2.0]);
    x.mul(3.0)?.sum()?.backward()?;
    let first = x.grad().unwrap().data_ptr()?;
    x.mul(3.0)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().data_ptr()?, first);
    Ok(())
}

#[test]
fn a_saved_value_that_was_overwritten_is_an_error_that_names_the_writer() -> Outcome {
    let x = leaf(&[1.0, 2.0]);
    let y = x.exp()?; // saves its output
    y.add_(1.0)?;
    let error = y.sum()?.backward().unwrap_err();
    assert!(error.is_autograd(), "{error}");
    let text = error.to_string();
    assert!(text.contains("exp") && text.contains("add") && text.contains("autograd.rs"), "{text}");
    Ok(())
}

#[test]
fn an_overwritten_value_that_nobody_saved_is_fine() -> Outcome {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(2.0)?;
    y.add_(1.0)?;
    y.sum()?.backward()?;
    assert_eq!(grad_of(&x), [2.0, 2.0]);
    Ok(())
}

#[test]
fn a_product_with_itself_in_place_is_refused_at_backward() -> Outcome {
    let x = leaf(&[2.0]);
    let y = x.mul(1.0)?;
    y.mul_(&y)?;
    assert!(y.sum()?.backward().unwrap_err().is_autograd());
    Ok(())
}

#[test]
fn in_place_products_save_what_they_overwrite() -> Outcome {
    let (x, w) = (leaf(&[2.0]), leaf(&[5.0]));
    let y = x.mul(1.0)?;
    y.mul_(&w)?;
    y.sum()?.backward()?;
    assert_eq!((grad_of(&x), grad_of(&w)), (vec![5.0], vec![2.0]));
    Ok(())
}

#[test]
fn leaves_are_not_written_in_place_while_recording() -> Outcome {
    let x = leaf(&[1.0, 2.0]);
    assert!(x.add_(1.0).unwrap_err().is_autograd());
    assert!(x.narrow(0, 0, 1)?.zero_().unwrap_err().is_autograd());
    no_grad(|| x.add_(1.0).map(drop))?;
    assert_eq!(x.to_vec::<f64>()?, [2.0, 3.0]);
    Ok(())
}

#[test]
fn a_write_through_a_view_reaches_the_gradient_of_its_base() -> Outcome {
    let (x, w) = (leaf(&[1.0, 2.0, 3.0]), leaf(&[10.0]));
    let y = x.mul(2.0)?;
    y.narrow(0, 1, 1)?.mul_(&w)?;
    y.sum()?.backward()?;
    assert_eq!(grad_of(&x), [2.0, 20.0, 2.0]);
    assert_eq!(grad_of(&w), [4.0]);
    Ok(())
}

#[test]
fn a_view_follows_a_write_to_its_base() -> Outcome {
    let (x, w) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let y = x.mul(1.0)?;
    let view = y.narrow(0, 0, 1)?;
    y.mul_(&w)?;
    view.sum()?.backward()?;
    assert_eq!((grad_of(&x), grad_of(&w)), (vec![3.0, 0.0], vec![1.0, 0.0]));
    Ok(())
}

#[test]
fn a_view_pulls_a_base_without_history_into_the_graph() -> Outcome {
    let w = leaf(&[3.0]);
    let buffer = Tensor::zeros(&[4], DType::F64)?;
    buffer.narrow(0, 2, 1)?.copy_(&w)?;
    assert!(buffer.requires_grad());
    buffer.mul(2.0)?.sum()?.backward()?;
    assert_eq!(grad_of(&w), [2.0]);
    Ok(())
}

#[test]
fn overlapping_writes_are_refused() -> Outcome {
    let x = Tensor::arange(0, 8, 1, DType::F32)?;
    let (low, high) = (x.narrow(0, 0, 5)?, x.narrow(0, 1, 5)?);
    assert!(low.add_(&high).unwrap_err().is_shape());
    assert!(Tensor::zeros(&[1], DType::F32)?.expand(&[4])?.add_(1).unwrap_err().is_shape());
    x.slice(0, 0, 8, 2)?.add_(&x.slice(0, 1, 8, 2)?)?;
    assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0, 5.0, 3.0, 9.0, 5.0, 13.0, 7.0]);
    Ok(())
}

#[test]
fn a_graph_runs_once_unless_it_is_kept() -> Outcome {
    let x = leaf(&[1.0]);
    let y = x.exp()?.sum()?;
    y.backward_with(BackwardOptions { retain_graph: true, ..Default::default() })?;
    y.backward()?;
    let error = y.backward().unwrap_err();
    assert!(error.is_autograd() && error.to_string().contains("second time"), "{error}");
    Ok(())
}

#[test]
fn modes_decide_what_is_recorded() -> Outcome {
    let x = leaf(&[1.0]);
    assert!(!no_grad(|| x.mul(2.0))?.requires_grad());
    assert!(no_grad(|| enable_grad(|| x.mul(2.0)))?.requires_grad());
    let inferred = inference_mode(|| x.mul(2.0))?;
    assert!(inferred.is_inference());
    assert!(inferred.requires_grad_(true).unwrap_err().is_autograd());
    assert!(x.mul(&inferred).unwrap_err().is_autograd(), "cannot be saved for backward");
    assert!(inferred.add_(1.0).unwrap_err().is_autograd());
    let plain = Tensor::ones(&[1], DType::F64)?;
    for write in [enable_grad(|| plain.exp_out(&inferred)), no_grad(|| plain.exp_out(&inferred))] {
        assert!(write.unwrap_err().is_autograd(), "written as out=");
    }
    inference_mode(|| plain.exp_out(&inferred))?;
    x.add(&inferred)?.sum()?.backward()?;
    let view = no_grad(|| x.mul(1.0))?;
    assert!(!view.requires_grad());
    Ok(())
}

#[test]
fn hooks_see_and_change_gradients() -> Outcome {
    let x = leaf(&[1.0, 1.0]);
    let y = x.mul(2.0)?;
    let handle = y.register_hook(|grad| grad.mul(3.0).map(Some))?;
    y.retain_grad()?;
    let z = y.sum()?;
    z.backward_with(BackwardOptions { retain_graph: true, ..Default::default() })?;
    assert_eq!((grad_of(&x), grad_of(&y)), (vec![6.0, 6.0], vec![3.0, 3.0]));
    handle.remove();
    x.set_grad(None)?;
    z.backward()?;
    assert_eq!(grad_of(&x), [2.0, 2.0]);
    Ok(())
}

#[test]
fn only_what_leads_to_the_inputs_is_computed() -> Outcome {
    let (x, w) = (leaf(&[2.0]), leaf(&[3.0]));
    let y = x.mul(&w)?;
    let grads = grad(&[&y.sum()?], &[&w], GradOptions::default())?;
    assert_eq!(grads[0].as_ref().unwrap().to_vec::<f64>()?, [2.0]);
    assert!(x.grad().is_none() && w.grad().is_none());
    let z = x.mul(&w)?.sum()?;
    z.backward_with(BackwardOptions { inputs: vec![x.clone()], ..Default::default() })?;
    assert_eq!(grad_of(&x), [3.0]);
    assert!(w.grad().is_none());
    Ok(())
}

#[test]
fn gradients_of_intermediate_tensors_can_be_asked_for() -> Outcome {
    let x = leaf(&[2.0]);
    let y = x.mul(&x)?;
    let z = y.mul(5.0)?.sum()?;
    let grads = grad(&[&z], &[&y, &x], GradOptions::default())?;
    assert_eq!(grads[0].as_ref().unwrap().to_vec::<f64>()?, [5.0]);
    assert_eq!(grads[1].as_ref().unwrap().to_vec::<f64>()?, [20.0]);
    Ok(())
}

#[test]
fn a_million_nodes_run_and_drop_without_recursion() -> Outcome {
    let x = leaf(&[1.0]);
    let mut y = x.clone();
    for _ in 0..1_000_000 {
        y = y.add(1.0)?;
    }
    y.backward()?;
    assert_eq!(grad_of(&x), [1.0]);
    drop(y);
    let mut saved = x.clone();
    for _ in 0..1_000_000 {
        saved = saved.tanh()?;
    }
    drop(saved);
    Ok(())
}

#[test]
fn a_graph_holds_exactly_what_its_operations_save() -> Outcome {
    let own = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[1024], (DType::F32, own))?.requires_grad_(true)?;
    let before = memory::memory_allocated(own);
    let y = x.add(1.0)?.add(2.0)?.add(3.0)?; // saves nothing, so only the last result lives
    assert_eq!(memory::memory_allocated(own) - before, 4096);
    let z = y.exp()?.exp()?; // each saves its output; `y` is still held here
    assert_eq!(memory::memory_allocated(own) - before, 3 * 4096);
    z.sum()?.backward()?;
    assert_eq!(walk(&z).iter().map(|node| node.held_bytes).sum::<usize>(), 0);
    drop((y, z));
    assert_eq!(memory::memory_allocated(own), 2 * 4096, "the leaf and its gradient");
    Ok(())
}

#[test]
fn a_tensor_written_by_what_was_computed_from_it_does_not_hold_itself() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    // The product saves `x`, and `x` then depends on the product.
    let w = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
    let x = Tensor::ones(&[256], (DType::F32, own))?;
    let y = w.mul(&x)?;
    x.add_(&y)?;
    drop((w, x, y));
    assert_eq!(memory::memory_allocated(own), 0);
    // A leaf that stops being one.
    let leaf = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
    let y = leaf.exp()?;
    leaf.requires_grad_(false)?;
    leaf.mul_(&y)?;
    drop((leaf, y));
    assert_eq!(memory::memory_allocated(own), 0);
    Ok(())
}

#[test]
fn a_graph_does_not_keep_its_leaves() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let leaf = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
    let sum = leaf.add(1.0)?.sum()?; // saves nothing
    drop(leaf);
    assert_eq!(memory::memory_allocated(own), 512);
    sum.backward()?; // the gradient goes nowhere
    assert_eq!(memory::memory_allocated(own), 512);
    Ok(())
}

#[test]
fn a_gradient_of_another_dtype_becomes_the_tensors_and_one_elsewhere_is_refused() -> Outcome {
    let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    let y = x.mul(3.0)?;
    let wide = Tensor::full(&[2], 0.5, DType::F64)?;
    y.backward_with(BackwardOptions { gradient: Some(wide.clone()), ..Default::default() })?;
    let found = x.grad().expect("backward left a gradient");
    assert_eq!((found.dtype(), found.to_vec::<f32>()?), (DType::F32, vec![1.5, 1.5]));

    let options = GradOptions { grad_outputs: vec![Some(wide)], ..Default::default() };
    let found = grad(&[&x.exp()?], &[&x], options)?.remove(0).expect("it depends on x");
    assert_eq!(found.dtype(), DType::F32);

    let other = device::private_cpu(&Default::default())?;
    let elsewhere = Tensor::ones(&[2], (DType::F32, other))?;
    let options = BackwardOptions { gradient: Some(elsewhere), ..Default::default() };
    let error = x.mul(3.0)?.backward_with(options).unwrap_err();
    assert!(error.is_autograd() && error.to_string().contains("move it with `to`"), "{error}");
    Ok(())
}

#[test]
fn a_leaf_that_is_a_view_and_its_views_are_not_written_in_place() -> Outcome {
    let x = leaf(&[1.0, 1.0]);
    let base = Tensor::ones(&[4], DType::F64)?;
    let w = base.view(&[2, 2])?.requires_grad_(true)?;
    let row = w.select(0, 0)?;
    for written in [row.mul_(&x), row.mul_(3.0), row.fill_(7.0), w.mul_(3.0)] {
        let said = written.map(drop).unwrap_err().to_string();
        assert!(said.contains("a view of a leaf Variable that requires grad"), "{said}");
    }
    assert_eq!(base.to_vec::<f64>()?, [1.0; 4], "nothing was written");
    assert!(!base.requires_grad() && base.add_(1.0).is_ok(), "the base is no part of a graph");

    no_grad(|| row.mul_(3.0).map(drop))?;
    w.mul(&w)?.sum()?.backward()?;
    assert_eq!(grad_of(&w), [12.0, 12.0, 4.0, 4.0]);
    Ok(())
}

#[test]
fn what_to_do_about_a_saved_value_is_said_in_words_of_no_language() -> Outcome {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(1.0)?;
    let z = y.mul(&y)?;
    y.add_(1.0)?;
    let said = z.sum()?.backward().unwrap_err().to_string();
    assert!(said.contains("write to a clone") && !said.contains("clone_tensor"), "{said}");
    Ok(())
}

#[test]
fn views_that_one_function_returned_are_not_written_in_place() -> Outcome {
    type Cut = fn(&Tensor) -> Result<Vec<Tensor>>;
    let cuts: [Cut; 4] =
        [|x| x.unbind(0), |x| x.split(1, 0), |x| x.split_with_sizes(&[1, 1], 0), |x| x.chunk(2, 0)];
    let x = leaf(&[1.0, 2.0]);
    for cut in cuts {
        let y = x.mul(1.0)?;
        let parts = cut(&y)?;
        let flat = parts[1].view(&[-1])?;
        for written in [parts[0].mul_(3.0), flat.mul_(3.0)] {
            let said = written.map(drop).unwrap_err().to_string();
            assert!(said.contains("function that returns multiple views"), "{said}");
        }
        parts[0].detach().add_(0.0)?;
        no_grad(|| y.mul_(3.0).map(drop))?;
        let said = parts[1].mul(2.0).map(drop).unwrap_err().to_string();
        assert!(said.contains("its base or another view of its base"), "{said}");

        let plain = Tensor::ones(&[2], DType::F64)?;
        let parts = cut(&plain)?;
        parts[0].mul_(3.0)?;
        assert_eq!(plain.to_vec::<f64>()?, [3.0, 1.0]);
        assert!(parts[0].mul_(&x.sum()?).is_err(), "it would come into a graph");
    }
    let y = x.mul(1.0)?;
    y.tensor_split(2, 0)?[0].mul_(3.0)?;
    y.unsafe_chunk(2, 0)?[1].mul_(5.0)?;
    y.sum()?.backward()?;
    assert_eq!(grad_of(&x), [3.0, 5.0]);
    Ok(())
}
