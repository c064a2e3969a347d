//! Every operation agrees with PyTorch: values, dtype, shape, and where the result lies (strides
//! and offset), and what PyTorch refuses is refused.

use std::collections::HashMap;

use plimsoll_core::Device;
use plimsoll_tensor::{Tensor, memory};
use plimsoll_testkit::cases;
use plimsoll_testkit::cases::{Case, Instance, Tolerance};
use plimsoll_testkit::compare::difference;
use plimsoll_testkit::failures::Failures;
use plimsoll_testkit::golden::{Answer, Golden, Result as Expected};
use plimsoll_testkit::layouts::Arrangement;
use plimsoll_testkit::oracle::Array;
use plimsoll_testkit::subject::{self, Stage};

/// Strides where they mean something: a dimension of one element or an empty tensor has none to
/// speak of.
fn strides_that_count(shape: &[usize], strides: &[usize]) -> Vec<usize> {
    if shape.contains(&0) {
        return vec![];
    }
    (0..shape.len()).filter(|&d| shape[d] > 1).map(|d| strides[d]).collect()
}

fn compare(output: &Tensor, expected: &Expected, case: &Case) -> Option<String> {
    let actual = subject::read(output).expect("results can be read");
    // Both sides round; the oracle stands between them. Random numbers are the oracle's to tell.
    let both = Tolerance { ulps: case.tolerance.ulps * 2.0, ..case.tolerance };
    let values = if case.random { &actual } else { &expected.array };
    let told = Array::new(expected.array.dtype(), expected.array.shape(), values.values().to_vec());
    if let Some(how) = difference(&actual, &told, both) {
        return Some(how);
    }
    let ours = strides_that_count(output.shape(), output.strides());
    let row_major = Arrangement::Contiguous.strides(output.shape()).0;
    let theirs = if case.row_major { &row_major } else { &expected.strides };
    let theirs = strides_that_count(output.shape(), theirs);
    if ours != theirs {
        return Some(format!("strides {ours:?} instead of {theirs:?}"));
    }
    let (ours, theirs) = (output.storage_offset(), expected.offset);
    (ours != theirs && output.numel() > 0).then(|| format!("offset {ours} instead of {theirs}"))
}

fn wrong(instance: &Instance<'_>, answer: &Answer, device: Device) -> Option<String> {
    let stage = Stage::new(instance, device).expect("inputs can be made");
    match (instance.case.call(&stage.inputs), answer) {
        (Err(_), Answer::Refused) => None,
        (Err(error), Answer::Results(_)) => {
            Some(format!("refused, though PyTorch takes it: {error}"))
        }
        (Ok(_), Answer::Refused) => Some("computed, though PyTorch refuses it".to_string()),
        (Ok(outputs), Answer::Results(results)) => {
            if outputs.len() != results.len() {
                return Some(format!("{} results instead of {}", outputs.len(), results.len()));
            }
            let mut pairs = outputs.iter().zip(results);
            pairs.find_map(|(output, expected)| compare(output, expected, instance.case))
        }
    }
}

fn every_operation_agrees(device: Device) {
    let mut files: HashMap<&str, Golden> = HashMap::new();
    let mut failures = Failures::default();
    for case in cases::all() {
        let golden = files.entry(case.family).or_insert_with(|| Golden::read(case.family));
        assert!(golden.made_by.starts_with("PyTorch "), "{}", golden.made_by);
        for instance in case.instances() {
            let answer = golden.answer(&instance).unwrap_or_else(|| {
                panic!("PyTorch was never asked {}: run golden/make_golden.py", instance.name())
            });
            failures.note(&instance, wrong(&instance, answer, device));
        }
    }
    failures.assert_none(16_000);
    assert_eq!(memory::arena(device).live_bytes(), 0, "bytes are left over");
}

#[test]
fn every_operation_agrees_with_pytorch() {
    every_operation_agrees(subject::plain_device());
}

#[test]
fn every_operation_agrees_with_pytorch_in_chaos() {
    every_operation_agrees(subject::chaos_device(0x5EED));
}
