//! Causes of leaks that no sample has: what stays is told from the lines that made it.

#[allow(dead_code, reason = "each test file takes what it needs of this")]
mod support;

use plimsoll_report::{Finding, FindingKind};
use support::made_trace::{MIB, Made};

/// The only finding of a trace, which is a leak.
fn leak(made: &Made) -> Finding {
    let [finding] = &made.findings()[..] else { panic!("{:?}", made.findings()) };
    assert_eq!(finding.kind, FindingKind::Leak);
    finding.clone()
}

/// A recurrence written by hand: each step's input and state stay for backward, the products in
/// between do not.
#[test]
fn values_of_several_lines_may_be_kept_by_a_graph() {
    let mut made = Made::default();
    for _ in 0..20 {
        made.make(MIB, &["chain.py main"]);
        let product = made.make(4 * MIB, &["chain.py cell", "chain.py main"]);
        made.make(4 * MIB, &["chain.py tanh", "chain.py cell", "chain.py main"]);
        made.free(product);
    }
    let found = leak(&made);
    assert!(found.cause.contains("or by a graph"), "{}", found.cause);
    assert!(found.message.contains("chain.py:10 and at"), "{}", found.message);
    assert!(found.advice.contains(".detach()"), "{}", found.advice);
    assert_eq!(found.bytes_per_step, Some(5 * MIB));
}

/// The inputs were made ahead, and each gets its gradient when its turn comes.
#[test]
fn inputs_made_ahead_keep_their_gradients() {
    let mut made = Made::default();
    for _ in 0..20 {
        made.make(2 * MIB, &["ahead.py load", "ahead.py main"]);
    }
    for _ in 0..20 {
        let hidden = made.make(MIB, &["ahead.py model", "ahead.py step", "ahead.py main"]);
        let loss =
            made.make(4, &["ahead.py loss", "ahead.py sum", "ahead.py step", "ahead.py main"]);
        made.make(2 * MIB, &[]);
        made.free(hidden);
        made.free(loss);
    }
    let found = leak(&made);
    assert_eq!(found.cause, "kept inputs keep their gradients");
    assert!(found.message.contains("the tensors of ahead.py:10 "), "{}", found.message);
}

/// Only what backward made stays: its threads have no Python frames.
#[test]
fn gradients_may_be_kept_without_their_inputs() {
    let mut made = Made::default();
    for _ in 0..20 {
        let input = made.make(2 * MIB, &["grads.py batch", "grads.py main"]);
        let loss = made.make(4, &["grads.py main"]);
        made.make(2 * MIB, &[]);
        made.free(input);
        made.free(loss);
    }
    let found = leak(&made);
    assert_eq!(found.cause, "gradients are kept");
    assert_eq!(found.bytes_per_step, Some(2 * MIB));
}
