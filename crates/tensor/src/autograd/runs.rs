//! Which backward is going on, on this thread. What is computed again for one (`checkpoint/`)
//! serves that one alone and ends with it; a group makes several count as one.

use std::cell::RefCell;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::{Error, Result};

use super::tasks::Target;

/// A backward, or whatever else reads saved values, that has begun.
struct Open {
    id: u64,
    /// Whether gradients go to every leaf, and not only to chosen tensors.
    every_leaf: bool,
    /// Whether those inside count as this one.
    group: bool,
    /// The nodes and leaves that run from here on; known once one of them has hooks.
    running: Option<HashSet<Target>>,
    at_end: Vec<Box<dyn FnOnce()>>,
    /// What the program wants to happen when its gradients are there.
    callbacks: Vec<Callback>,
}

type Callback = Box<dyn FnOnce() -> Result<()>>;

thread_local! {
    static OPEN: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, this thread is in a run; what was left to [`at_end`] happens when it goes.
#[derive(Debug)]
#[must_use = "the run ends when the guard is dropped"]
pub(crate) struct RunScope {
    // The list is the thread's.
    not_send: PhantomData<*const ()>,
}

impl RunScope {
    fn open(every_leaf: bool, group: bool) -> RunScope {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let open = Open {
            id,
            every_leaf,
            group,
            running: None,
            at_end: Vec::new(),
            callbacks: Vec::new(),
        };
        OPEN.with_borrow_mut(|list| list.push(open));
        RunScope { not_send: PhantomData }
    }

    /// Backward begins.
    pub(crate) fn enter(every_leaf: bool) -> RunScope {
        RunScope::open(every_leaf, false)
    }

    /// Saved values are read: within backward that is its business, else a run of its own.
    pub(crate) fn enter_if_none() -> Option<RunScope> {
        let none = OPEN.with_borrow(Vec::is_empty);
        none.then(|| RunScope::open(true, false))
    }

    /// What runs inside counts as one.
    pub(crate) fn enter_group() -> RunScope {
        RunScope::open(true, true)
    }
}

impl Drop for RunScope {
    fn drop(&mut self) {
        let ended = OPEN.try_with(|list| list.borrow_mut().pop()).ok().flatten();
        // Outside the borrow: what goes may be the last hold on other graphs.
        ended.into_iter().flat_map(|open| open.at_end).for_each(|work| work());
    }
}

/// The run that a value read now counts for: the group's around it, or the innermost.
fn counting<R>(look: impl FnOnce(&mut Open) -> R) -> Option<R> {
    OPEN.with_borrow_mut(|list| {
        let group = list.iter().position(|open| open.group);
        let at = group.or(list.len().checked_sub(1))?;
        list.get_mut(at).map(look)
    })
}

/// A number that tells runs apart; none outside of any.
pub(crate) fn current() -> Option<u64> {
    counting(|open| open.id)
}

/// Leaves `work` for the end of the run.
pub(crate) fn at_end(work: impl FnOnce() + 'static) {
    counting(|open| open.at_end.push(Box::new(work)));
}

/// Whether the backward that is going on reaches every leaf.
pub(crate) fn reaches_every_leaf() -> bool {
    OPEN.with_borrow(|list| list.last().is_none_or(|open| open.every_leaf))
}

/// Whether a group is open.
pub(crate) fn in_group() -> bool {
    OPEN.with_borrow(|list| list.iter().any(|open| open.group))
}

/// The number of the run itself, also in a group.
pub(super) fn innermost() -> Option<u64> {
    OPEN.with_borrow(|list| list.last().map(|open| open.id))
}

/// As [`at_end`], for the run itself also in a group.
pub(super) fn at_end_of_innermost(work: impl FnOnce() + 'static) {
    OPEN.with_borrow_mut(|list| {
        if let Some(open) = list.last_mut() {
            open.at_end.push(Box::new(work));
        }
    });
}

/// Calls `work` when the backward that is going on has computed its gradients; an error outside of
/// any. What it raises, backward raises.
///
/// ```
/// # use plimsoll_tensor::*;
/// let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
/// x.register_hook(|_| {
///     queue_callback(|| Ok(println!("all gradients are there")))?;
///     Ok(None)
/// })?;
/// x.mul(2)?.backward()?;
/// assert!(queue_callback(|| Ok(())).is_err());
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn queue_callback(work: impl FnOnce() -> Result<()> + 'static) -> Result<()> {
    OPEN.with_borrow_mut(|list| {
        let open = list.last_mut().ok_or_else(|| {
            let why = "Final callbacks can only be installed during backward pass";
            Error::autograd("queue_callback", why)
        })?;
        open.callbacks.push(Box::new(work));
        Ok(())
    })
}

/// Does what [`queue_callback`] left for the run, and what that leaves in turn.
pub(super) fn run_callbacks() -> Result<()> {
    loop {
        let queued = OPEN.with_borrow_mut(|list| {
            list.last_mut().map(|open| std::mem::take(&mut open.callbacks)).unwrap_or_default()
        });
        if queued.is_empty() {
            return Ok(());
        }
        queued.into_iter().try_for_each(|work| work())?;
    }
}

/// Says which nodes and leaves run from here on, if nobody did in this run.
pub(super) fn announce(running: impl FnOnce() -> HashSet<Target>) {
    OPEN.with_borrow_mut(|list| {
        if let Some(open) = list.last_mut() {
            open.running.get_or_insert_with(running);
        }
    });
}

/// Whether `target` is among those that were announced.
pub(super) fn will_run(target: &Target) -> bool {
    let among = |open: &Open| open.running.as_ref().is_some_and(|running| running.contains(target));
    OPEN.with_borrow(|list| list.last().is_some_and(among))
}
