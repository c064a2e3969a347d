//! Gradients of every differentiable operation, first and second order, against central
//! differences, in every arrangement; and no byte left behind.

use plimsoll_core::{DType, Device};
use plimsoll_tensor::memory;

use super::{Tally, is_without_kernel};
use crate::cases::{self, Instance, Values};
use crate::failing::assert_balanced;
use crate::gradcheck::Truth;
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

/// Checks every gradient of each case whose number is `part.0` modulo `part.1`, on each of
/// `devices`, which must be the test's own: their bytes are counted.
pub fn every_gradient_is_right(devices: &[Device], part: (usize, usize)) -> Tally {
    let mut tally = Tally::default();
    let host = subject::plain_device();
    let cases = cases::all().into_iter().filter(|case| !case.gradients.is_empty());
    for (_, case) in cases.enumerate().filter(|(number, _)| number % part.1 == part.0) {
        for instance in case.instances() {
            let float64 = instance.dtype == DType::F64 && instance.other == DType::F64;
            if !float64 || !instance.taken || instance.writes_to_expanded() || has_ties(&instance) {
                continue;
            }
            let truth = Truth::of(&instance, host);
            for &device in devices {
                let found = truth
                    .as_ref()
                    .map_err(ToString::to_string)
                    .map(|truth| truth.check(&instance, device));
                match found {
                    Ok(Ok(wrong)) => {
                        tally.note(&instance, wrong.map(|why| format!("{device}: {why}")))
                    }
                    Ok(Err(_)) | Err(_) if case.may_refuse => tally.note(&instance, None),
                    Ok(Err(error)) if device.is_cuda() && is_without_kernel(&error) => {
                        tally.note_without_kernel(&instance);
                    }
                    Ok(Err(error)) => tally.note(&instance, Some(format!("{device}: {error}"))),
                    Err(error) => tally.note(&instance, Some(error)),
                }
            }
        }
    }
    for &device in devices {
        plimsoll_tensor::device::synchronize(device).expect("the device still works");
        assert_balanced(device);
        assert_eq!(memory::arena(device).live_bytes(), 0, "bytes are left over on {device}");
    }
    tally
}
