//! The numbers of a device's streams. As in PyTorch there are 32 for each priority, handed out in
//! turn: a program that makes a stream for every batch has a fixed number of them all the same.

use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::{Error, Result};
use plimsoll_memory::StreamId;

/// Streams of one priority.
pub(super) const STREAMS: usize = 32;

/// Priorities that are told apart: 0 and three more urgent ones.
const PRIORITIES: usize = 4;

/// Whose turn it is, for each priority.
#[derive(Debug, Default)]
pub(super) struct StreamPool {
    turns: [AtomicUsize; PRIORITIES],
}

impl StreamPool {
    /// The next stream of `priority`: 0, or less for more urgent work; below -3 as -3. The default
    /// stream is none of them.
    pub(super) fn next(&self, priority: i32) -> Result<StreamId> {
        if priority > 0 {
            return Err(Error::invalid_argument(format!(
                "a stream's priority is 0 or less (less is more urgent), not {priority}"
            ))
            .in_operation("stream"));
        }
        let level = (priority.unsigned_abs() as usize).min(PRIORITIES - 1);
        let turn = self.turns[level].fetch_add(1, Ordering::Relaxed) % STREAMS;
        Ok(StreamId((level * STREAMS + turn + 1) as u64))
    }
}
