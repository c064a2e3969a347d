//! Which training iteration is running, and which epoch: numbers of the process, not of a thread.
//! Blocks and events carry the step; the epoch follows from it, since steps count on through all
//! epochs.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::origin::annotations::{self, Stage};
use crate::platform::lock::Lock;

static STEP: AtomicU64 = AtomicU64::new(0);

/// An epoch, and the first step of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    first_step: u64,
    epoch: u64,
}

/// The epochs so far, in the order of their first steps.
pub(crate) static EPOCHS: Lock<Vec<Begun>> = Lock::new(Vec::new());

/// Says that training iteration `step` begins; returns the previous one. Process-wide. Steps count
/// on from one epoch to the next.
pub fn set_step(step: u64) -> u64 {
    let previous = STEP.swap(step, Ordering::Relaxed);
    annotations::mark(Stage::End, || format!("step {previous}").into());
    annotations::mark(Stage::Start, || format!("step {step}").into());
    previous
}

/// Says that the next training iteration begins, and returns its number, from 1.
///
/// ```
/// use plimsoll_memory::{current_step, next_step};
/// let step = next_step();
/// assert_eq!(current_step(), step);
/// ```
pub fn next_step() -> u64 {
    let step = current_step() + 1;
    set_step(step);
    step
}

/// The training iteration in force, 0 before any was set.
#[inline]
pub fn current_step() -> u64 {
    STEP.load(Ordering::Relaxed)
}

/// Says that epoch `epoch` begins with the next step; returns the previous one.
///
/// ```
/// use plimsoll_memory::{current_epoch, epoch_of_step, next_step, set_epoch};
/// let before = next_step();
/// set_epoch(7);
/// let step = next_step();
/// assert_eq!(current_epoch(), 7);
/// assert_eq!(epoch_of_step(step), 7);
/// assert_ne!(epoch_of_step(before), 7);
/// ```
pub fn set_epoch(epoch: u64) -> u64 {
    let first_step = current_step() + 1;
    let previous = {
        let mut epochs = EPOCHS.lock();
        let previous = epochs.last().map_or(0, |begun| begun.epoch);
        // One that never had a step, or a count that starts again, gives way.
        epochs.retain(|begun| begun.first_step < first_step);
        epochs.push(Begun { first_step, epoch });
        previous
    };
    annotations::mark(Stage::End, || format!("epoch {previous}").into());
    annotations::mark(Stage::Start, || format!("epoch {epoch}").into());
    previous
}

/// Says that the next epoch begins, and returns its number, from 1.
pub fn next_epoch() -> u64 {
    let epoch = current_epoch() + 1;
    set_epoch(epoch);
    epoch
}

/// The epoch in force, 0 before any was set.
pub fn current_epoch() -> u64 {
    EPOCHS.lock().last().map_or(0, |begun| begun.epoch)
}

/// The epoch that a step belongs to, 0 before the first.
pub fn epoch_of_step(step: u64) -> u64 {
    let epochs = EPOCHS.lock();
    let after = epochs.partition_point(|begun| begun.first_step <= step);
    after.checked_sub(1).map_or(0, |at| epochs[at].epoch)
}
