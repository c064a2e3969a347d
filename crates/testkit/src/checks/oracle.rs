//! Every operation agrees with the oracle: every case, in every dtype and arrangement. Calls write
//! nowhere but where they say, and leave no byte behind.

use plimsoll_core::Device;
use plimsoll_tensor::memory;

use super::{Tally, is_without_kernel};
use crate::cases::{self, Instance};
use crate::compare::difference;
use crate::failing::assert_balanced;
use crate::subject::{self, Stage};

/// What came of an instance.
enum Came {
    Right,
    Wrong(String),
    /// The device has no kernel for it, and said so.
    WithoutKernel,
}

fn run(instance: &Instance<'_>, device: Device) -> Came {
    let case = instance.case;
    let stage = Stage::new(instance, device).expect("inputs can be made");
    let outputs = match case.call(&stage.inputs) {
        Ok(outputs) => outputs,
        // Which arrangements are refused is compared with PyTorch, in `tests/golden.rs`.
        Err(_) if case.may_refuse || instance.writes_to_expanded() || !instance.taken => {
            return Came::Right;
        }
        Err(error) if device.is_cuda() && is_without_kernel(&error) => {
            return match stage.disturbed(&[]).expect("inputs can be read") {
                None => Came::WithoutKernel,
                Some(how) => Came::Wrong(format!("refused, and yet {how}")),
            };
        }
        Err(error) => return Came::Wrong(format!("refused: {error}")),
    };
    if !instance.taken {
        return Came::Wrong("computed, though it should be refused".to_string());
    }
    let expected = case.expected(&instance.arrays());
    if outputs.len() != expected.len() {
        return Came::Wrong(format!("{} results instead of {}", outputs.len(), expected.len()));
    }
    for (output, expected) in outputs.iter().zip(&expected) {
        let actual = match subject::read(output) {
            Ok(actual) => actual,
            Err(error) => return Came::Wrong(format!("cannot be read: {error}")),
        };
        if let Some(how) = difference(&actual, expected, case.tolerance) {
            return Came::Wrong(how);
        }
    }
    match stage.disturbed(&case.writes) {
        Ok(None) => Came::Right,
        Ok(Some(how)) => Came::Wrong(how),
        Err(error) => Came::Wrong(format!("inputs cannot be read: {error}")),
    }
}

/// Runs every case on `device`, which must be one of the test's own: its bytes are counted.
pub fn every_operation_agrees(device: Device) -> Tally {
    let mut tally = Tally::default();
    for case in cases::all() {
        for instance in case.instances() {
            match run(&instance, device) {
                Came::Right => tally.note(&instance, None),
                Came::Wrong(how) => tally.note(&instance, Some(how)),
                Came::WithoutKernel => tally.note_without_kernel(&instance),
            }
        }
    }
    plimsoll_tensor::device::synchronize(device).expect("the device still works");
    assert_balanced(device);
    assert_eq!(memory::arena(device).live_bytes(), 0, "bytes are left over");
    tally
}
