//! Every operation survives every failed allocation; see `checks/exhaustion.rs`.

use plimsoll_tensor::{LayerNormOptions, Tensor};
use plimsoll_testkit::checks::exhaustion::{Bench, every_operation_survives};
use plimsoll_testkit::checks::interrupted::{
    a_first_step_survives_each_failure, the_same_is_learnt,
};
use plimsoll_testkit::failing::{failing_device, for_every_allocation_failure};

fn survives(bench: &Bench) {
    let survived = every_operation_survives(bench);
    survived.tally.assert_right(200);
    assert_eq!(survived.tally.without_kernel.len(), 0, "the host has every kernel");
    assert!(survived.forward > 400, "only {} forward allocations failed", survived.forward);
    assert!(survived.backward > 450, "only {} backward allocations failed", survived.backward);
}

#[test]
fn every_operation_survives_every_failed_allocation() {
    survives(&Bench::host(false));
}

#[test]
fn every_operation_survives_every_failed_allocation_in_chaos() {
    survives(&Bench::host(true));
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

#[test]
fn training_that_runs_out_of_memory_again_and_again_learns_the_same() {
    let (device, tap) = failing_device();
    let failures = the_same_is_learnt(device, &tap, 300).unwrap();
    assert!(failures > 60, "only {failures} steps failed");
}

#[test]
fn a_first_step_that_runs_out_of_memory_anywhere_is_none() {
    let (device, tap) = failing_device();
    let failures = a_first_step_survives_each_failure(device, &tap).unwrap();
    // Forward and backward passes, then the optimizers' states of nine parameters in two groups.
    assert!(failures > 100, "only {failures} allocations failed");
}
