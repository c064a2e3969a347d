//! No byte is counted for one of our own lines: whatever is called, directly, backward or from a
//! hook, the ledger names the line of the program that called. Shown for every operation of the
//! list, in all its forms, with its gradients to second order, and for what else makes tensors.

use std::collections::HashSet;

use plimsoll_core::{DType, Device};
use plimsoll_memory::{HistoryLevel, Origin, OriginId, ResolvedSite};
use plimsoll_tensor::{
    BackwardOptions, GradOptions, Result, Stream, Tensor, device, grad, memory, with_stream,
};
use plimsoll_testkit::subject::{self, Stage};
use plimsoll_testkit::{cases, gradcheck};

/// Every origin of this process so far.
fn origins() -> Vec<Origin> {
    let all = (1..).map(|number| OriginId::from_number(number).get());
    all.take_while(|origin| origin.operation != "unknown").collect()
}

/// Whether a line is in the runtime's own crates. A method that is called through a function
/// pointer, as rows of the list do, has no line of its caller: the compiler names the line of the
/// method's own `fn` then, and that is no mistake of the method's.
fn is_ours(site: &ResolvedSite) -> bool {
    let ours =
        ["core", "memory", "kernels", "cuda", "tensor"].map(|name| format!("crates/{name}/src/"));
    if !ours.iter().any(|folder| site.file.contains(folder)) {
        return false;
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&site.file);
    let text = std::fs::read_to_string(path).expect("the sources are there");
    let line = text.lines().nth(site.line as usize - 1).expect("the line exists");
    // Forms of a method that a macro writes have the line of the macro.
    !(line.trim().starts_with("pub fn ") || line.ends_with("! {"))
}

/// Every origin in the runtime's own crates, in words.
fn own_lines() -> Vec<String> {
    let inside = |origin: &Origin| origin.site.resolve().is_some_and(|site| is_ours(&site));
    origins().iter().filter(|origin| inside(origin)).map(Origin::to_string).collect()
}

fn assert_none() {
    let mut lines = own_lines();
    lines.sort();
    lines.dedup();
    assert!(
        lines.is_empty(),
        "{} origins lie in our own crates:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

#[test]
fn no_operation_counts_for_our_own_lines() {
    let device = subject::plain_device();
    for case in cases::all() {
        for instance in case.instances().iter().filter(|instance| instance.taken) {
            let stage = Stage::new(instance, device).expect("inputs can be made");
            // Refusals are other tests' business.
            let _ = case.call(&stage.inputs);
        }
    }
    let names: HashSet<_> = origins().iter().map(|origin| origin.operation).collect();
    assert!(names.len() > 60 && names.contains("matmul"), "the list was run: {names:?}");
    assert_none();
}

#[test]
fn no_gradient_counts_for_our_own_lines() {
    let device = subject::plain_device();
    for case in cases::all().iter().filter(|case| !case.gradients.is_empty()) {
        let instances = case.instances();
        let float64 = instances.iter().filter(|instance| {
            let floats = instance.dtype == DType::F64 && instance.other == DType::F64;
            floats && instance.taken && !instance.writes_to_expanded()
        });
        for instance in float64.take(2) {
            let _ = gradcheck::run(instance, device);
        }
    }
    assert_none();
}

/// What no operation of the list does: graphs by hand, hooks, views written in place, devices,
/// pinned memory, printing.
fn other_calls(device: Device) -> Result<()> {
    let options = (DType::F32, device);
    let x = Tensor::ones(&[4, 4], options)?.requires_grad_(true)?;
    let h = x.mul(&x)?;
    h.retain_grad()?;
    h.register_hook(|grad| grad.mul(2.0).map(Some))?;
    x.register_hook(|grad| grad.add(1.0).map(Some))?;
    let gradient = Some(Tensor::ones(&[4, 4], options)?);
    h.backward_with(BackwardOptions { gradient, create_graph: true, ..Default::default() })?;
    let y = x.mul(&x)?;
    y.select(0, 1)?.mul_(3.0)?;
    let base = y.t()?;
    let loss = base.sum()?.add(&x.grad().unwrap().sum()?)?;
    let first = grad(&[&loss], &[&x], GradOptions { create_graph: true, ..Default::default() })?;
    let second = first[0].as_ref().unwrap().sum()?;
    grad(&[&second], &[&x], GradOptions { allow_unused: true, ..Default::default() })?;
    x.set_grad(Some(&Tensor::zeros(&[4, 4], options)?))?;
    let there = x.to(device::stand_in(Default::default())?)?;
    there.sum()?.backward()?;
    let _ = (format!("{y:?}"), y.to_string());
    let pinned = y.detach().pin_memory()?;
    pinned.to_non_blocking(there.device())?.to_f64_vec()?;
    x.detach().data_ptr()?;
    drop(x.detach().lend()?);
    Tensor::from_bools(&[true], &[1], device)?.to_bools()?;
    Tensor::scalar(2, options)?.to_scalar()?;
    Ok(())
}

#[test]
fn nothing_else_counts_for_our_own_lines() -> Result<()> {
    let host = device::private_cpu(&Default::default())?;
    memory::record_memory_history(host, HistoryLevel::All, 10_000);
    other_calls(host)?;
    let stand_in = device::stand_in(Default::default())?;
    let side = Stream::new(stand_in)?;
    with_stream(&side, || other_calls(stand_in))?;
    other_calls(subject::chaos_device(0x0419))?;
    assert_none();
    Ok(())
}
