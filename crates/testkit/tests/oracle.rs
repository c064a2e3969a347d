//! Every operation agrees with the oracle: every case, in every dtype and arrangement, plainly and while
//! storages lose their memory between operations. Calls write nowhere but where they say, and leave no byte behind.

use plimsoll_core::Device;
use plimsoll_tensor::memory;
use plimsoll_testkit::cases;
use plimsoll_testkit::cases::Instance;
use plimsoll_testkit::compare::difference;
use plimsoll_testkit::failing::assert_balanced;
use plimsoll_testkit::failures::Failures;
use plimsoll_testkit::subject::{self, Stage};

/// What is wrong with `instance`, if anything.
fn wrong(instance: &Instance<'_>, device: Device) -> Option<String> {
    let case = instance.case;
    let stage = Stage::new(instance, device).expect("inputs can be made");
    let outputs = match case.call(&stage.inputs) {
        Ok(outputs) => outputs,
        // Which arrangements are refused is compared with PyTorch, in `golden.rs`.
        Err(_) if case.may_refuse || instance.writes_to_expanded() || !instance.taken => {
            return None;
        }
        Err(error) => return Some(format!("refused: {error}")),
    };
    if !instance.taken {
        return Some("computed, though it should be refused".to_string());
    }
    let expected = case.expected(&instance.arrays());
    if outputs.len() != expected.len() {
        return Some(format!("{} results instead of {}", outputs.len(), expected.len()));
    }
    for (output, expected) in outputs.iter().zip(&expected) {
        let actual = subject::read(output).expect("results can be read");
        if let Some(how) = difference(&actual, expected, case.tolerance) {
            return Some(how);
        }
    }
    stage.disturbed(&case.writes).expect("inputs can be read")
}

fn every_operation_agrees(device: Device) {
    let mut failures = Failures::default();
    for case in cases::all() {
        for instance in case.instances() {
            failures.note(&instance, wrong(&instance, device));
        }
    }
    failures.assert_none(16_000);
    assert_balanced(device);
    assert_eq!(memory::arena(device).live_bytes(), 0, "bytes are left over");
}

#[test]
fn every_operation_agrees_with_the_oracle() {
    every_operation_agrees(subject::plain_device());
}

#[test]
fn every_operation_agrees_with_the_oracle_in_chaos() {
    every_operation_agrees(subject::chaos_device(0x5EED));
}
