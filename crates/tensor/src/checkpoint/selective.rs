//! Selective checkpoints: results of chosen operations are kept, here or in the host's memory, and
//! stand in for them when the function is run again. Dispatch asks for every operation; with no
//! selection in force anywhere that is one load.
//!
//! Results are found again by the operation's name and how often it ran before, so that operations
//! that run only the second time (a cast that was remembered the first time) do no harm.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::{Device, Error, Result};
use plimsoll_kernels::Meta;
use plimsoll_memory::{OriginId, Site};

use super::failure::OP;
use crate::Tensor;
use crate::autograd::no_grad;
use crate::autograd::saved::{Held, Saver};
use crate::device;
use crate::lock::Mutex;
use crate::operation::Outputs;

/// What happens to the results of an operation in a checkpointed function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointPolicy {
    /// They are kept, and the operation does not run again.
    Save,
    /// They are not kept: the operation runs again.
    Recompute,
    /// They are kept in the host's memory, brought back when the function runs again.
    OffloadToHost,
}

/// An operation that a policy decides about.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckpointedOperation<'a> {
    /// Its name in the registry.
    pub name: &'static str,
    /// What it was computed from.
    pub inputs: &'a [&'a Tensor],
    /// What it computed.
    pub outputs: &'a [Tensor],
}

type Policy = dyn Fn(&CheckpointedOperation<'_>) -> Result<CheckpointPolicy> + Send + Sync;

/// What a checkpointed function keeps: a policy, and what it chose of one call.
#[derive(Clone)]
pub struct SelectiveCheckpoint(Arc<Selection>);

struct Selection {
    policy: Box<Policy>,
    allows_writes: bool,
    kept: Mutex<HashMap<&'static str, Vec<Entry>>>,
}

/// The results of one operation.
enum Entry {
    Recomputed,
    Saved(Vec<Kept>),
    Used,
}

enum Kept {
    Here(Held),
    OnHost(Device, Tensor),
    /// Of a dry run, which has no values: only what was there.
    Nowhere(Device, Meta),
}

impl fmt::Debug for SelectiveCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectiveCheckpoint").finish_non_exhaustive()
    }
}

impl SelectiveCheckpoint {
    /// Asks `policy` for each operation of the function.
    pub fn new(
        policy: impl Fn(&CheckpointedOperation<'_>) -> Result<CheckpointPolicy> + Send + Sync + 'static,
    ) -> SelectiveCheckpoint {
        SelectiveCheckpoint::with_writes(policy, false)
    }

    /// Keeps the results of these operations, by their names in the registry, and no others.
    ///
    /// ```
    /// use plimsoll_tensor::*;
    /// use plimsoll_tensor::observe::{LaunchCounts, observe};
    /// use std::sync::Arc;
    /// let x = Tensor::ones(&[4, 4], DType::F32)?.requires_grad_(true)?;
    /// let options = CheckpointOptions {
    ///     selective: Some(SelectiveCheckpoint::saving(&["matmul"])),
    ///     ..CheckpointOptions::default()
    /// };
    /// let y = checkpoint_with(&[&x], options, |i| i[0].matmul(&i[0])?.tanh()?.sin()?.sum())?;
    /// let counts = Arc::new(LaunchCounts::default());
    /// let _observing = observe(counts.clone());
    /// y.backward()?;
    /// // Two of its derivative, and none to make the product again.
    /// assert_eq!((counts.of("matmul").launches, counts.of("tanh").launches), (2, 1));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn saving(operations: &[&str]) -> SelectiveCheckpoint {
        let chosen: Vec<String> = operations.iter().map(|name| (*name).to_string()).collect();
        SelectiveCheckpoint::new(move |operation| {
            let saves = chosen.iter().any(|name| name == operation.name);
            Ok(if saves { CheckpointPolicy::Save } else { CheckpointPolicy::Recompute })
        })
    }

    /// As [`SelectiveCheckpoint::new`]; with `allows_writes`, what is kept may be overwritten, and
    /// the function gets the new values.
    pub fn with_writes(
        policy: impl Fn(&CheckpointedOperation<'_>) -> Result<CheckpointPolicy> + Send + Sync + 'static,
        allows_writes: bool,
    ) -> SelectiveCheckpoint {
        let policy = Box::new(policy);
        SelectiveCheckpoint(Arc::new(Selection { policy, allows_writes, kept: Mutex::default() }))
    }

    /// The same policy for another call, of which nothing is kept yet.
    pub(super) fn fresh(&self) -> SelectiveCheckpoint {
        let (selection, allows_writes) = (self.0.clone(), self.0.allows_writes);
        SelectiveCheckpoint::with_writes(
            move |operation| (selection.policy)(operation),
            allows_writes,
        )
    }

    /// The function runs for the first time, until the guard drops.
    pub fn record(&self) -> SelectiveScope {
        SelectiveScope::enter(Some(Active { selection: self.0.clone(), replayed: None }))
    }

    /// The function runs again, until the guard drops.
    pub fn replay(&self) -> SelectiveScope {
        let replayed = Some(HashMap::new());
        SelectiveScope::enter(Some(Active { selection: self.0.clone(), replayed }))
    }
}

/// A selection in force.
struct Active {
    selection: Arc<Selection>,
    /// How often each operation ran, when the function runs again.
    replayed: Option<HashMap<&'static str, usize>>,
}

static IN_FORCE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The innermost counts; none hides those below it.
    static STACK: RefCell<Vec<Option<Active>>> = const { RefCell::new(Vec::new()) };
    /// What a region decides, whatever the policy says.
    static REGION: RefCell<Vec<CheckpointPolicy>> = const { RefCell::new(Vec::new()) };
}

/// A selection is in force while it lives.
#[derive(Debug)]
#[must_use = "the selection is in force only while the guard lives"]
pub struct SelectiveScope {
    // The stack is the thread's.
    not_send: PhantomData<*const ()>,
}

impl SelectiveScope {
    fn enter(active: Option<Active>) -> SelectiveScope {
        IN_FORCE.fetch_add(1, Ordering::Relaxed);
        STACK.with_borrow_mut(|stack| stack.push(active));
        SelectiveScope { not_send: PhantomData }
    }
}

impl Drop for SelectiveScope {
    fn drop(&mut self) {
        IN_FORCE.fetch_sub(1, Ordering::Relaxed);
        drop(STACK.try_with(|stack| stack.borrow_mut().pop()));
    }
}

/// Runs a part of a checkpointed function under one policy, whatever operations it is made of. The
/// function must have a selection ([`CheckpointOptions::selective`](super::CheckpointOptions)).
///
/// ```
/// use plimsoll_tensor::*;
/// let x = Tensor::ones(&[4], DType::F32)?.requires_grad_(true)?;
/// let selective = Some(SelectiveCheckpoint::saving(&[]));
/// let options = CheckpointOptions { selective, ..CheckpointOptions::default() };
/// let y = checkpoint_with(&[&x], options, |inputs| {
///     let costly = checkpoint_region(CheckpointPolicy::Save, || inputs[0].exp()?.sin());
///     costly?.tanh()?.sum()
/// })?;
/// y.backward()?; // runs `tanh` again, and neither `exp` nor `sin`
/// # Ok::<(), Error>(())
/// ```
pub fn checkpoint_region<R>(policy: CheckpointPolicy, body: impl FnOnce() -> R) -> R {
    /// Ends the region, however `body` ends.
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            let _ = REGION.try_with(|region| region.borrow_mut().pop());
        }
    }
    REGION.with_borrow_mut(|region| region.push(policy));
    let _ends = Ends;
    body()
}

/// Whether any thread has a selection in force.
#[inline]
pub(crate) fn is_on() -> bool {
    IN_FORCE.load(Ordering::Relaxed) != 0
}

/// The results of operation `name` if they were kept, when a function runs again.
pub(crate) fn take(name: &'static str, site: Site) -> Result<Option<Outputs>> {
    let found = STACK.with_borrow_mut(|stack| {
        let active = stack.last_mut()?.as_mut()?;
        let count = active.replayed.as_mut()?.entry(name).or_default();
        *count += 1;
        Some((active.selection.clone(), *count - 1))
    });
    let Some((selection, index)) = found else { return Ok(None) };
    let entry = {
        let mut kept = selection.kept.lock();
        match kept.get_mut(name).and_then(|entries| entries.get_mut(index)) {
            // It did not run the first time; if it should have, what is saved tells.
            None | Some(Entry::Recomputed) => return Ok(None),
            Some(entry) => std::mem::replace(entry, Entry::Used),
        }
    };
    let Entry::Saved(values) = entry else {
        return Err(Error::autograd(
            OP,
            "Trying to backward an extra time. You are only allowed to backward once on any region computed under \
             selective activation checkpoint.",
        ));
    };
    let saver = Saver { name: OP, origin: OriginId::intern(name, site), node: None };
    let _hidden = SelectiveScope::enter(None);
    let restore = |(index, kept): (usize, Kept)| match kept {
        Kept::OnHost(device, host) => no_grad(|| host.to(device)),
        Kept::Nowhere(device, meta) => Tensor::zeros_on(device::entry(device), &meta),
        Kept::Here(held) => {
            if !selection.allows_writes {
                held.check(
                    &saver,
                    "Tensor cached during selective activation checkpoint has been mutated: result",
                    index,
                )?;
            }
            Ok(held.tensor())
        }
    };
    values.into_iter().enumerate().map(restore).collect::<Result<_>>().map(Some)
}

/// Has the policy decide about the results of an operation, when a function runs for the first
/// time.
pub(crate) fn offer(name: &'static str, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
    let selection = STACK.with_borrow(|stack| match stack.last() {
        Some(Some(Active { selection, replayed: None })) => Some(selection.clone()),
        _ => None,
    });
    let Some(selection) = selection else { return Ok(()) };
    // What the policy and the copies run is none of the function's operations.
    let _hidden = SelectiveScope::enter(None);
    let region = REGION.with_borrow(|region| region.last().copied());
    let policy = match region {
        Some(policy) => policy,
        None => (selection.policy)(&CheckpointedOperation { name, inputs, outputs })?,
    };
    let entry = match policy {
        CheckpointPolicy::Recompute => Entry::Recomputed,
        CheckpointPolicy::Save => {
            Entry::Saved(outputs.iter().map(|output| Kept::Here(Held::of(output))).collect())
        }
        CheckpointPolicy::OffloadToHost => {
            let copy = |output: &Tensor| {
                let device = output.device();
                if device.is_dry() {
                    return Ok(Kept::Nowhere(device, output.meta().clone()));
                }
                let host = no_grad(|| match device {
                    Device::CPU => output.clone_tensor(),
                    _ => output.to(Device::CPU),
                })?;
                Ok(Kept::OnHost(device, host))
            };
            Entry::Saved(outputs.iter().map(copy).collect::<Result<_>>()?)
        }
    };
    selection.kept.lock().entry(name).or_default().push(entry);
    Ok(())
}
