//! Tells one listener of the names under which users call things (`enter_operation` in
//! `context.rs`): the `tensor` crate, whose observers hear of calls. Off, it costs a named call one
//! load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is called at both ends of a named call, on its thread.
#[derive(Clone, Copy, Debug)]
pub struct CallHook {
    /// A call under this name begins.
    pub entered: fn(&'static str),
    /// The innermost one that was told of ends.
    pub left: fn(),
}

static ON: AtomicBool = AtomicBool::new(false);
static HOOK: OnceLock<CallHook> = OnceLock::new();

/// Turns telling on or off. The first hook given stays.
///
/// ```
/// use plimsoll_memory::{CallHook, enter_operation, hear_calls};
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// static OPEN: AtomicUsize = AtomicUsize::new(0);
/// let hook = CallHook {
///     entered: |_name| drop(OPEN.fetch_add(1, Ordering::Relaxed)),
///     left: || drop(OPEN.fetch_sub(1, Ordering::Relaxed)),
/// };
/// hear_calls(hook, true);
/// let call = enter_operation("zeros");
/// let inside = enter_operation("full"); // only the outermost is what the user wrote
/// assert_eq!(OPEN.load(Ordering::Relaxed), 1);
/// drop((inside, call));
/// assert_eq!(OPEN.load(Ordering::Relaxed), 0);
/// hear_calls(hook, false);
/// ```
pub fn hear_calls(hook: CallHook, on: bool) {
    HOOK.get_or_init(|| hook);
    ON.store(on, Ordering::Relaxed);
}

/// A named call begins. Whether that was told, and so its end must be.
#[inline(always)]
pub(crate) fn entered(name: &'static str) -> bool {
    ON.load(Ordering::Relaxed) && tell_entered(name)
}

#[cold]
fn tell_entered(name: &'static str) -> bool {
    HOOK.get().map(|hook| (hook.entered)(name)).is_some()
}

/// A named call that was told of ends.
#[cold]
pub(crate) fn left() {
    if let Some(hook) = HOOK.get() {
        (hook.left)();
    }
}
