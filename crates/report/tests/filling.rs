//! Loops that only keep what they make: a leak if they go on to the end of the trace, and not if they load or build something.

use plimsoll_report::{Finding, FindingKind, Report, read};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

/// A frame as snapshots have it; `code` is `FILE FUNCTION`.
fn frame(code: &str, line: u32) -> Value {
    let (file, function) = code.split_once(' ').unwrap();
    json!({"filename": file, "name": function, "line": line})
}

/// A trace that is written event by event.
#[derive(Default)]
struct Made {
    events: Vec<Value>,
    blocks: Vec<(u64, u64, Value)>,
    next: u64,
}

impl Made {
    /// One allocation at these lines, innermost first; returns where it lies.
    fn make(&mut self, bytes: u64, codes: &[&str]) -> u64 {
        let frames: Vec<Value> = codes.iter().zip(10..).map(|(code, at)| frame(code, at)).collect();
        self.next += 4096 * MIB;
        self.events.push(
            json!({"action": "alloc", "addr": self.next, "size": bytes, "stream": 0, "frames": frames}),
        );
        self.blocks.push((self.next, bytes, json!(frames)));
        self.next
    }

    fn free(&mut self, addr: u64) {
        let at = self.blocks.iter().position(|block| block.0 == addr).unwrap();
        let (_, bytes, frames) = self.blocks.remove(at);
        for action in ["free_requested", "free_completed"] {
            self.events.push(
                json!({"action": action, "addr": addr, "size": bytes, "stream": 0, "frames": frames}),
            );
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let segment = |(addr, bytes, frames): &(u64, u64, Value)| {
            let block = json!({"address": addr, "size": bytes, "requested_size": bytes,
                "state": "active_allocated", "frames": frames});
            json!({"device": 0, "address": addr, "total_size": bytes, "stream": 0, "blocks": [block]})
        };
        let segments: Vec<Value> = self.blocks.iter().map(segment).collect();
        let file = json!({"segments": segments, "device_traces": [self.events]});
        Report::of(read(file.to_string().as_bytes()).unwrap(), "made").findings
    }
}

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
