//! Gradients of every differentiable operation, first and second order, against central
//! differences, in every arrangement; and no byte left behind.

use plimsoll_core::{DType, Device};
use plimsoll_tensor::memory;

use super::{Tally, is_without_kernel};
use crate::cases::{self, Instance, Values};
use crate::failing::assert_balanced;
use crate::gradcheck;
use crate::layouts::Arrangement;
use crate::subject;

/// Distinct values that an expanded layout repeats are no longer distinct, and a maximum has no
/// derivative at a tie.
fn has_ties(instance: &Instance<'_>) -> bool {
    let inputs = instance.case.inputs.iter().zip(&instance.arrangements);
    inputs
        .into_iter()
        .any(|(input, &how)| input.values == Values::Distinct && how == Arrangement::Expanded)
}

/// Checks every gradient on `device`, which must be one of the test's own: its bytes are counted.
pub fn every_gradient_is_right(device: Device) -> Tally {
    let mut tally = Tally::default();
    let host = subject::plain_device();
    for case in cases::all().iter().filter(|case| !case.gradients.is_empty()) {
        for instance in case.instances() {
            let float64 = instance.dtype == DType::F64 && instance.other == DType::F64;
            if !float64 || !instance.taken || instance.writes_to_expanded() || has_ties(&instance) {
                continue;
            }
            match gradcheck::check(&instance, device, host) {
                Ok(wrong) => tally.note(&instance, wrong),
                Err(_) if case.may_refuse => tally.note(&instance, None),
                Err(error) if device.is_cuda() && is_without_kernel(&error) => {
                    tally.note_without_kernel(&instance);
                }
                Err(error) => tally.note(&instance, Some(error.to_string())),
            }
        }
    }
    plimsoll_tensor::device::synchronize(device).expect("the device still works");
    assert_balanced(device);
    assert_eq!(memory::arena(device).live_bytes(), 0, "bytes are left over");
    tally
}
