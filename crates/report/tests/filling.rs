//! Loops that only keep what they make: a leak if they go on to the end of the trace, and not if
//! they load or build something.

#[allow(dead_code, reason = "each test file takes what it needs of this")]
mod support;

use plimsoll_report::FindingKind;
use support::made_trace::{MIB, Made};

/// Twenty turns that each keep 12 MiB.
fn filled(codes: &[&str]) -> Made {
    let mut made = Made::default();
    (0..20).for_each(|_| _ = made.make(12 * MIB, codes));
    made
}

const CROPS: &[&str] = &["crops.py load", "crops.py main"];

#[test]
fn what_piles_up_until_the_end_is_told() {
    let mut made = filled(CROPS);
    // A last look at what was gathered changes nothing.
    let sum = made.make(4, &["crops.py main"]);
    made.free(sum);
    let [finding] = &made.findings()[..] else { panic!("{:?}", made.findings()) };
    assert_eq!(finding.kind, FindingKind::Leak);
    assert_eq!(finding.bytes_per_step, Some(12 * MIB));
    assert!(finding.message.contains("no turn of that loop frees anything"), "{}", finding.message);
}

#[test]
fn what_is_loaded_and_then_used_is_not() {
    let mut made = filled(CROPS);
    for _ in 0..10 {
        let hidden = made.make(MIB, &["crops.py forward", "crops.py main"]);
        let loss = made.make(4, &["crops.py loss", "crops.py main"]);
        made.free(hidden);
        made.free(loss);
    }
    assert_eq!(made.findings(), []);
}

#[test]
fn what_is_filled_after_the_main_loop_is_not() {
    let mut made = Made::default();
    for _ in 0..30 {
        let hidden = made.make(MIB, &["work.py forward", "work.py main"]);
        let loss = made.make(4, &["work.py main"]);
        made.free(hidden);
        made.free(loss);
    }
    (0..10).for_each(|_| _ = made.make(12 * MIB, &["work.py load", "work.py get", "work.py main"]));
    assert_eq!(made.findings(), []);
}

#[test]
fn what_is_let_go_later_is_not() {
    let mut made = filled(CROPS);
    let halves: Vec<u64> = made.blocks.iter().step_by(2).map(|block| block.0).collect();
    halves.into_iter().for_each(|addr| made.free(addr));
    assert_eq!(made.findings(), []);
}

#[test]
fn what_is_built_or_loaded_as_a_whole_is_not() {
    for codes in [
        // A user's own module, written with bare parameters.
        &["model.py weight", "model.py __init__", "model.py main"][..],
        &["model.py __init__", "model.py main"],
        &["site-packages/torch/nn/modules/linear.py __init__", "model.py main"],
        // One call that reads a whole file.
        &["site-packages/torch/serialization.py load_tensor", "model.py main"],
    ] {
        assert_eq!(filled(codes).findings(), [], "{codes:?}");
    }
}

#[test]
fn a_small_part_of_what_is_alive_is_not() {
    let mut made = Made::default();
    made.make(2000 * MIB, &["model.py weights", "model.py main"]);
    (0..20).for_each(|_| _ = made.make(12 * MIB, CROPS));
    assert_eq!(made.findings(), []);
}
