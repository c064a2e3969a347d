//! Gradients of every differentiable operation, first and second order, against central differences, in every
//! arrangement; and no byte left behind.

use plimsoll_core::{DType, Device};
use plimsoll_tensor::memory;
use plimsoll_testkit::cases::{Instance, Values};
use plimsoll_testkit::failing::assert_balanced;
use plimsoll_testkit::failures::Failures;
use plimsoll_testkit::layouts::Arrangement;
use plimsoll_testkit::{cases, gradcheck, subject};

/// Distinct values that an expanded layout repeats are no longer distinct, and a maximum has no derivative at a tie.
fn has_ties(instance: &Instance<'_>) -> bool {
    let inputs = instance.case.inputs.iter().zip(&instance.arrangements);
    inputs
        .into_iter()
        .any(|(input, &how)| input.values == Values::Distinct && how == Arrangement::Expanded)
}

fn every_gradient_is_right(device: Device) {
    let mut failures = Failures::default();
    for case in cases::all().iter().filter(|case| !case.gradients.is_empty()) {
        for instance in case.instances() {
            let float64 = instance.dtype == DType::F64 && instance.other == DType::F64;
            if !float64 || !instance.taken || instance.writes_to_expanded() || has_ties(&instance) {
                continue;
            }
            let wrong = match gradcheck::check(&instance, device) {
                Ok(wrong) => wrong,
                Err(_) if case.may_refuse => None,
                Err(error) => Some(error.to_string()),
            };
            failures.note(&instance, wrong);
        }
    }
    failures.assert_none(1_200);
    assert_balanced(device);
    assert_eq!(memory::arena(device).live_bytes(), 0, "bytes are left over");
}

#[test]
fn every_gradient_agrees_with_differences() {
    every_gradient_is_right(subject::plain_device());
}

#[test]
fn every_gradient_agrees_with_differences_in_chaos() {
    every_gradient_is_right(subject::chaos_device(0x5EED));
}
