//! Every operation of the registry has cases that the other tests run: a plain one, its in-place
//! and `out=` forms where it has them, every dtype that it says it takes, a gradient where it has a
//! derivative, and golden results (which `golden.rs` demands of every case).

use std::collections::BTreeSet;

use plimsoll_tensor::operation::{OnCuda, Out};
use plimsoll_testkit::cases;

/// Operations that are in graphs and refuse to be differentiated, as in PyTorch.
const WITHOUT_DERIVATIVE: [&str; 1] = ["nextafter"];

#[test]
fn every_operation_has_its_cases() {
    let all = cases::all();
    let mut missing = Vec::new();
    for op in plimsoll_tensor::ops() {
        let rows: Vec<_> = all.iter().filter(|case| case.op == op.name).collect();
        let in_place = rows.iter().any(|case| case.writes.contains(&0));
        let out = rows.iter().any(|case| case.writes.iter().any(|&target| target > 0));
        let dtypes: BTreeSet<_> = rows
            .iter()
            .flat_map(|case| case.instances())
            .filter(|i| i.taken)
            .map(|i| i.dtype)
            .collect();
        let mut need = |holds: bool, what: String| {
            if !holds {
                missing.push(format!("{} has no {what}", op.name));
            }
        };
        need(!rows.is_empty(), "case".to_string());
        // Forms of composed operations are copies of the result, made by the bindings.
        let composed = matches!(op.cuda, OnCuda::Composed) || op.out == Out::Copied;
        need(composed || !op.in_place || in_place, "case of its in-place form".to_string());
        need(composed || !op.out.exists() || out, "case of its out= form".to_string());
        let gradient = rows.iter().any(|case| !case.gradients.is_empty());
        let refused = WITHOUT_DERIVATIVE.contains(&op.name);
        need(refused || !op.differentiable || gradient, "gradient case".to_string());
        for dtype in op.dtypes.iter() {
            need(dtypes.contains(&dtype), format!("case in {dtype}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_case_names_an_operation_or_a_composition() {
    // Methods that PyTorch has too, but that are made of other operations here.
    const COMPOSED: [&str; 8] =
        ["contiguous", "detach", "full_like", "ones", "ones_like", "zero_", "zeros", "zeros_like"];
    let known: BTreeSet<&str> = plimsoll_tensor::ops().map(|op| op.name).chain(COMPOSED).collect();
    let strangers: BTreeSet<&str> =
        cases::all().iter().map(|case| case.op).filter(|op| !known.contains(op)).collect();
    assert!(strangers.is_empty(), "cases for operations that do not exist: {strangers:?}");
}
