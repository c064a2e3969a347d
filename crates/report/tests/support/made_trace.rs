//! Traces that are written event by event, for what no sample has.

use plimsoll_report::{Finding, Report, read};
use serde_json::{Value, json};

pub(crate) const MIB: u64 = 1 << 20;

/// A frame as snapshots have it; `code` is `FILE FUNCTION`.
fn frame(code: &str, line: u32) -> Value {
    let (file, function) = code.split_once(' ').unwrap();
    json!({"filename": file, "name": function, "line": line})
}

/// A trace that is written event by event.
#[derive(Default)]
pub(crate) struct Made {
    events: Vec<Value>,
    /// What is alive: where, how large, by whom.
    pub(crate) blocks: Vec<(u64, u64, Value)>,
    next: u64,
}

impl Made {
    /// One allocation at these lines, innermost first; returns where it lies.
    pub(crate) fn make(&mut self, bytes: u64, codes: &[&str]) -> u64 {
        let frames: Vec<Value> = codes.iter().zip(10..).map(|(code, at)| frame(code, at)).collect();
        self.next += 4096 * MIB;
        self.events.push(
            json!({"action": "alloc", "addr": self.next, "size": bytes, "stream": 0, "frames": frames}),
        );
        self.blocks.push((self.next, bytes, json!(frames)));
        self.next
    }

    pub(crate) fn free(&mut self, addr: u64) {
        let at = self.blocks.iter().position(|block| block.0 == addr).unwrap();
        let (_, bytes, frames) = self.blocks.remove(at);
        for action in ["free_requested", "free_completed"] {
            self.events.push(
                json!({"action": action, "addr": addr, "size": bytes, "stream": 0, "frames": frames}),
            );
        }
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
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
