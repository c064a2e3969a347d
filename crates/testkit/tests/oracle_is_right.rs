//! The oracle agrees with PyTorch on every instance of every case: it can be trusted where PyTorch
//! is not at hand, and the golden files hold what the rows say.

use std::collections::HashMap;

use plimsoll_testkit::cases;
use plimsoll_testkit::cases::Instance;
use plimsoll_testkit::compare::difference;
use plimsoll_testkit::failures::Failures;
use plimsoll_testkit::golden::{Answer, Golden};
use plimsoll_testkit::oracle::Array;

/// How PyTorch's answer differs from the oracle's, if it does.
fn wrong(instance: &Instance<'_>, answer: Option<&Answer>) -> Option<String> {
    let case = instance.case;
    match answer {
        None => Some("PyTorch was never asked; run golden/make_golden.py".to_string()),
        Some(Answer::Refused) => {
            let expected = case.may_refuse || instance.writes_to_expanded() || !instance.taken;
            (!expected).then(|| "PyTorch refuses it".to_string())
        }
        Some(Answer::Results(_)) if !instance.taken => Some("PyTorch takes it".to_string()),
        Some(Answer::Results(results)) => {
            let expected = case.expected(&instance.arrays());
            assert_eq!(expected.len(), results.len(), "{}", instance.name());
            let mut pairs = results.iter().zip(&expected);
            pairs.find_map(|(result, expected)| {
                // PyTorch draws other numbers: of those only dtype and shape can be compared.
                let drawn = Array::zeros(expected.dtype(), expected.shape());
                let expected = if case.random { &drawn } else { expected };
                let array = &result.array;
                let zeros = Array::zeros(array.dtype(), array.shape());
                difference(if case.random { &zeros } else { array }, expected, case.tolerance)
            })
        }
    }
}

#[test]
fn the_oracle_agrees_with_pytorch() {
    let mut files: HashMap<&str, Golden> = HashMap::new();
    let mut failures = Failures::default();
    for case in cases::all() {
        let golden = files.entry(case.family).or_insert_with(|| Golden::read(case.family));
        for instance in case.instances() {
            failures.note(&instance, wrong(&instance, golden.answer(&instance)));
        }
    }
    failures.assert_none(16_000);
}
