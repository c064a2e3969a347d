//! Ranges of a program under names of its own: PyTorch's `record_function`. They lie in each other,
//! and operations in them, on their thread. Steps of a schedule are ranges too. Those that loaders
//! and optimizers open, in crates below this one, come by `plimsoll_tensor::observe::range`.

use std::borrow::Cow;
use std::marker::PhantomData;

use plimsoll_memory::{OriginId, Site};

use crate::log::{Enter, Entry, What};
use crate::session::{active, is_on};

/// A range of the program, open until it is dropped.
#[derive(Debug)]
#[must_use = "the range ends when this is dropped"]
pub struct Range {
    /// The session that heard of its beginning.
    session: Option<u64>,
    // Ranges lie in each other on one thread.
    not_send: PhantomData<*const ()>,
}

/// Opens a range under a name, PyTorch's `record_function`. Costs one load while no profiler runs.
///
/// ```
/// use plimsoll_profile::{EventKind, Profile, range};
/// use plimsoll_tensor::{DType, Tensor};
/// let recording = Profile::new().run(|| {
///     let _range = range("load");
///     Tensor::ones(&[8], DType::F32).map(drop)
/// })?;
/// let load = &recording.events()[0];
/// assert_eq!((load.name.as_str(), load.kind), ("load", EventKind::Range));
/// assert_eq!(recording.events()[1].parent, Some(0));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[inline]
pub fn range(name: impl Into<Cow<'static, str>>) -> Range {
    let session = if is_on() { begin_range(name.into()) } else { None };
    Range { session, not_send: PhantomData }
}

/// For bindings, whose ranges are objects that no thread owns: begins a range, and says in which
/// session.
#[doc(hidden)]
#[cold]
pub fn begin_range(name: Cow<'static, str>) -> Option<u64> {
    let active = active()?;
    let origin = OriginId::intern("range", Site::in_force());
    let stack = active.stack(origin, false);
    active.write(Entry::Enter(Box::new(Enter {
        at_ns: active.now_ns(),
        name,
        what: What::Range,
        origin,
        inputs: Vec::new(),
        stack,
    })));
    Some(active.number)
}

/// Ends the innermost range of this thread, if its session still runs.
#[doc(hidden)]
pub fn end_range(session: u64) {
    if let Some(active) = active().filter(|active| active.number == session) {
        active.write(Entry::Leave { at_ns: active.now_ns(), outputs: Vec::new() });
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if let Some(session) = self.session {
            end_range(session);
        }
    }
}
