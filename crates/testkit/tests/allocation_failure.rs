//! Every operation, forward and backward, with the source failing at its n-th allocation for every n: a clean error,
//! inputs untouched, the ledger balanced, and the same call succeeds once there is memory again.

use plimsoll_core::{Device, Error, Result};
use plimsoll_tensor::{GradOptions, LayerNormOptions, Tensor, device, grad, memory};
use plimsoll_testkit::cases;
use plimsoll_testkit::cases::{Case, Inputs, Instance};
use plimsoll_testkit::compare::difference;
use plimsoll_testkit::failing::{
    Tap, assert_balanced, failing_device, for_every_allocation_failure,
};
use plimsoll_testkit::subject::{self, Stage};

/// One instance of a case is enough here: the last one, whose inputs are mixed or moved, in the widest dtype.
fn chosen(case: &Case) -> Option<Instance<'_>> {
    let fit = |i: &Instance<'_>| i.taken && !i.writes_to_expanded();
    case.instances().into_iter().rfind(fit)
}

/// A device whose memory can be made to fail.
struct Bench {
    device: Device,
    tap: Tap,
    /// Whether storages lose their memory at random; what is alive then changes by itself.
    chaos: bool,
}

impl Bench {
    fn new(chaos: bool) -> Bench {
        let (device, tap) = failing_device();
        device::set_chaos(device, chaos.then_some(0x5EED));
        Bench { device, tap, chaos }
    }

    fn live_bytes(&self) -> usize {
        memory::arena(self.device).live_bytes()
    }

    /// After a failed allocation: a clean error, the ledger balanced, no more alive than before.
    fn check_failure(&self, instance: &Instance<'_>, error: &Error, live_before: usize) {
        assert!(error.is_out_of_memory(), "{}: {error}", instance.name());
        assert_balanced(self.device);
        if !self.chaos {
            assert_eq!(self.live_bytes(), live_before, "{}: bytes left over", instance.name());
        }
    }
}

/// Runs the call with every one of its allocations failing, on the same inputs each time, and lets it succeed
/// right after each failure.
fn fail_forward(instance: &Instance<'_>, bench: &Bench) -> Result<usize> {
    let (case, tap) = (instance.case, &bench.tap);
    let expected = case.expected(&instance.arrays());
    for n in 1.. {
        let stage = Stage::new(instance, bench.device)?;
        let live_before = bench.live_bytes();
        tap.fail_from(n);
        let result = case.call(&stage.inputs);
        let refused = tap.open();
        let Err(error) = result else {
            assert_eq!(refused, 0, "{}: hid a failed allocation", instance.name());
            return Ok(n - 1);
        };
        if refused == 0 && case.may_refuse {
            return Ok(n - 1);
        }
        bench.check_failure(instance, &error, live_before);
        let disturbed = stage.disturbed(&[])?;
        assert_eq!(disturbed, None, "{}: a failed call wrote", instance.name());

        let outputs = case.call(&stage.inputs)?;
        for (output, expected) in outputs.iter().zip(&expected) {
            let how = difference(&subject::read(output)?, expected, case.tolerance);
            assert_eq!(how, None, "{}: retried after failure {n}", instance.name());
        }
    }
    unreachable!("a call makes finitely many allocations")
}

/// Runs backward of the call with every one of its allocations failing, on the same graph, which must still work.
fn fail_backward(instance: &Instance<'_>, bench: &Bench) -> Result<usize> {
    let (case, device, tap) = (instance.case, bench.device, &bench.tap);
    let stage = Stage::new(instance, device)?;
    let mut tensors = Vec::new();
    let mut leaves = Vec::new();
    for (i, staged) in stage.inputs.tensors.iter().enumerate() {
        if !case.gradients.contains(&i) {
            tensors.push(staged.clone());
            continue;
        }
        let leaf = staged.detach().requires_grad_(true)?;
        tensors.push(if case.writes.contains(&i) { leaf.clone_tensor()? } else { leaf.clone() });
        leaves.push(leaf);
    }
    let (dtype, other) = (instance.dtype, instance.other);
    let outputs = case.call(&Inputs { tensors, device, dtype, other })?;
    let connected: Vec<&Tensor> = outputs.iter().filter(|o| o.requires_grad()).collect();
    if connected.is_empty() {
        return Ok(0);
    }
    let ones: Vec<_> =
        connected.iter().map(|o| o.detach().ones_like().map(Some)).collect::<Result<_>>()?;
    let run = || {
        let options = GradOptions {
            grad_outputs: ones.clone(),
            retain_graph: true,
            allow_unused: true,
            ..GradOptions::default()
        };
        grad(&connected, &leaves.iter().collect::<Vec<_>>(), options)
    };
    let read = |found: &[Option<Tensor>]| {
        found.iter().flatten().map(subject::read).collect::<Result<Vec<_>>>()
    };
    let expected = read(&run()?)?;
    let live_before = bench.live_bytes();
    for n in 1.. {
        tap.fail_from(n);
        let result = run();
        let refused = tap.open();
        let Err(error) = result else {
            assert_eq!(refused, 0, "{}: hid a failed allocation", instance.name());
            return Ok(n - 1);
        };
        bench.check_failure(instance, &error, live_before);
        assert_eq!(read(&run()?)?, expected, "{}: retried after failure {n}", instance.name());
    }
    unreachable!("backward makes finitely many allocations")
}

fn every_operation_survives(bench: &Bench) {
    let (mut forward, mut backward, mut problems) = (0, 0, Vec::new());
    for case in cases::all() {
        let Some(instance) = chosen(&case) else { continue };
        match fail_forward(&instance, bench) {
            Ok(failures) => forward += failures,
            Err(error) => problems.push(format!("{}: forward: {error}", instance.name())),
        }
        if !case.gradients.is_empty() && instance.dtype.is_float() && instance.other.is_float() {
            match fail_backward(&instance, bench) {
                Ok(failures) => backward += failures,
                Err(_) if case.may_refuse => {}
                Err(error) => problems.push(format!("{}: backward: {error}", instance.name())),
            }
        }
        assert_eq!(bench.live_bytes(), 0, "{}: bytes left over", instance.name());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(forward > 400, "only {forward} forward allocations failed");
    assert!(backward > 450, "only {backward} backward allocations failed");
    assert_balanced(bench.device);
}

#[test]
fn every_operation_survives_every_failed_allocation() {
    every_operation_survives(&Bench::new(false));
}

#[test]
fn every_operation_survives_every_failed_allocation_in_chaos() {
    every_operation_survives(&Bench::new(true));
}

#[test]
fn a_training_step_survives_every_failed_allocation() {
    let failures = for_every_allocation_failure(|device| {
        let values: Vec<f32> = (0..24).map(|i| (i as f32 * 0.37).sin()).collect();
        let x = Tensor::from_slice(&values, &[4, 6], device)?;
        let w = Tensor::from_slice(&values, &[6, 4], device)?.requires_grad_(true)?;
        let gain = Tensor::ones(&[4], device)?.requires_grad_(true)?;
        let hidden =
            x.matmul(&w)?.layer_norm_with(&[4], LayerNormOptions::new().weight(&gain))?.gelu()?;
        hidden.dropout(0.5, true)?.log_softmax(1)?.mean()?.neg()?.backward()?;
        let step =
            |p: &Tensor| p.detach().sub_(&p.grad().expect("a gradient").mul(0.1)?).map(|_| ());
        step(&w)?;
        step(&gain)
    });
    assert!(failures > 12, "only {failures} allocations failed");
}
