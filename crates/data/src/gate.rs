//! How far ahead workers may go: the counting behind a loader's two bounds, in batches and in
//! bytes. No threads, no locks; `workers.rs` waits by it.
//!
//! Note [Room for a batch]
//! A batch has three moments: a worker begins it, it is let in just before its memory is asked for,
//! and somebody takes it. Batches are let in strictly in their order, so what waits is always the
//! next ones to be taken, and taking always makes room: nothing can block for good. A batch is let
//! in if its bytes fit beside those that wait, or if none waits; so one that is larger than the
//! bound passes alone. Before a worker begins (and fetches samples, which are bytes too), it looks
//! whether a batch like the largest so far would be let in; it begins the first one alone, because
//! nothing is known yet.

use std::collections::VecDeque;

/// The counts of one epoch.
#[derive(Debug)]
pub(crate) struct Gate {
    most_batches: usize,
    most_bytes: Option<usize>,
    /// Batches that were begun, let in and taken so far.
    begun: u64,
    let_in: u64,
    taken: u64,
    /// Bytes of each batch that was let in and not taken, the oldest first.
    waiting: VecDeque<usize>,
    waiting_bytes: usize,
    largest_bytes: usize,
}

impl Gate {
    /// Before the first batch. At least one may be ahead, or nothing would ever be.
    pub(crate) fn new(most_batches: usize, most_bytes: Option<usize>) -> Gate {
        Gate {
            most_batches: most_batches.max(1),
            most_bytes,
            begun: 0,
            let_in: 0,
            taken: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            largest_bytes: 0,
        }
    }

    /// Whether another batch may be begun.
    pub(crate) fn may_begin(&self) -> bool {
        let ahead = self.begun - self.taken;
        if ahead == 0 {
            return true;
        }
        if ahead >= self.most_batches as u64 {
            return false;
        }
        let Some(most) = self.most_bytes else { return true };
        // Those that were begun and not let in will take some too, and so will this one.
        let coming = usize::try_from(self.begun - self.let_in + 1).unwrap_or(usize::MAX);
        let expected = self.largest_bytes.saturating_mul(coming);
        self.largest_bytes > 0 && self.waiting_bytes.saturating_add(expected) <= most
    }

    /// Begins a batch and gives its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun - 1
    }

    /// The batch that was begun last is none: the epoch is over.
    pub(crate) fn take_back(&mut self) {
        self.begun -= 1;
    }

    /// What a batch is taken to have if nobody knows.
    pub(crate) fn expected_bytes(&self) -> usize {
        self.largest_bytes
    }

    /// Whether batch `number` of `bytes` may be let in now.
    pub(crate) fn has_room(&self, number: u64, bytes: usize) -> bool {
        let fits = |most: usize| self.waiting_bytes.saturating_add(bytes) <= most;
        number == self.let_in && (self.waiting.is_empty() || self.most_bytes.is_none_or(fits))
    }

    /// Lets the next batch in.
    pub(crate) fn let_in(&mut self, bytes: usize) {
        self.let_in += 1;
        self.waiting.push_back(bytes);
        self.waiting_bytes += bytes;
        self.largest_bytes = self.largest_bytes.max(bytes);
    }

    /// Batch `number`, which was let in, turned out to have `bytes`.
    pub(crate) fn correct(&mut self, number: u64, bytes: usize) {
        let Some(place) = number.checked_sub(self.taken) else { return };
        if let Some(counted) = self.waiting.get_mut(place as usize) {
            self.waiting_bytes = self.waiting_bytes - *counted + bytes;
            *counted = bytes;
            self.largest_bytes = self.largest_bytes.max(bytes);
        }
    }

    /// The next batch is taken.
    pub(crate) fn take(&mut self) {
        self.taken += 1;
        self.waiting_bytes -= self.waiting.pop_front().unwrap_or(0);
    }

    /// The number of the batch that is taken next.
    pub(crate) fn next_taken(&self) -> u64 {
        self.taken
    }

    /// Bytes of the batches that wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_let_in_by_order_and_room_and_a_large_one_alone() {
        let mut gate = Gate::new(8, Some(100));
        assert!(gate.may_begin());
        assert_eq!(gate.begin(), 0);
        assert!(!gate.may_begin(), "no size is known yet");
        assert!(gate.has_room(0, 250) && !gate.has_room(1, 1), "strictly in order");
        gate.let_in(250);
        assert!(!gate.has_room(1, 1), "a batch past the bound waits alone");
        gate.take();
        assert!(gate.may_begin(), "nothing is ahead");
        assert_eq!((gate.begin(), gate.may_begin()), (1, false));
        gate.let_in(40);
        assert!(gate.has_room(2, 60) && !gate.has_room(2, 61));
    }

    #[test]
    fn the_bound_in_batches_counts_what_was_begun() {
        let mut gate = Gate::new(2, None);
        gate.begin();
        assert!(gate.may_begin());
        gate.begin();
        assert!(!gate.may_begin());
        gate.let_in(10);
        gate.take();
        assert!(gate.may_begin());
    }

    #[test]
    fn a_batch_that_turned_out_larger_counts_as_it_is() {
        let mut gate = Gate::new(4, Some(100));
        gate.begin();
        gate.let_in(0);
        gate.correct(0, 70);
        assert_eq!((gate.waiting_bytes(), gate.expected_bytes()), (70, 70));
        gate.take();
        assert_eq!(gate.waiting_bytes(), 0);
    }
}
