//! Whether operations are recorded, per thread: `no_grad`, `enable_grad` and `inference_mode`, as
//! closures and guards, and `set_grad_enabled`.

use std::cell::Cell;
use std::marker::PhantomData;

#[derive(Clone, Copy)]
struct Mode {
    grad: bool,
    inference: bool,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode { grad: true, inference: false }) };
}

/// Whether operations on this thread are recorded.
///
/// ```
/// # use plimsoll_tensor::*;
/// assert!(is_grad_enabled() && !no_grad(is_grad_enabled));
/// # Ok::<(), Error>(())
/// ```
pub fn is_grad_enabled() -> bool {
    MODE.get().grad
}

/// Whether operations on this thread enter graphs: in inference mode none do, whatever is enabled.
#[inline]
pub(super) fn records() -> bool {
    let mode = MODE.get();
    mode.grad && !mode.inference
}

/// Has operations on this thread recorded, or not, until that is changed again; gives back what was
/// in force. [`no_grad`] and [`enable_grad`] end by themselves.
///
/// ```
/// # use plimsoll_tensor::*;
/// let before = set_grad_enabled(false);
/// assert!(before && !is_grad_enabled());
/// set_grad_enabled(before);
/// # Ok::<(), Error>(())
/// ```
pub fn set_grad_enabled(enabled: bool) -> bool {
    let mode = MODE.get();
    MODE.set(Mode { grad: enabled, ..mode });
    mode.grad
}

/// Whether this thread is in inference mode.
///
/// ```
/// # use plimsoll_tensor::*;
/// assert!(inference_mode(is_inference_mode_enabled));
/// # Ok::<(), Error>(())
/// ```
pub fn is_inference_mode_enabled() -> bool {
    MODE.get().inference
}

/// Restores the thread's mode when it goes; not `Send`, because the mode is the thread's.
#[derive(Debug)]
struct Restore {
    before: (bool, bool),
    _thread: PhantomData<*const ()>,
}

impl Restore {
    fn enter(mode: Mode) -> Restore {
        let before = MODE.replace(mode);
        Restore { before: (before.grad, before.inference), _thread: PhantomData }
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        MODE.set(Mode { grad: self.before.0, inference: self.before.1 });
    }
}

macro_rules! mode_guard {
    ($(#[$doc:meta])* $name:ident, $mode:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the mode ends when the guard is dropped"]
        pub struct $name {
            _restore: Restore,
        }

        impl $name {
            /// Enters the mode until the guard drops.
            pub fn enter() -> $name {
                $name { _restore: Restore::enter($mode) }
            }
        }
    };
}

mode_guard!(
    /// While alive, operations on this thread are not recorded.
    NoGrad,
    Mode { grad: false, ..MODE.get() }
);
mode_guard!(
    /// While alive, operations on this thread are recorded again.
    EnableGrad,
    Mode { grad: true, ..MODE.get() }
);
mode_guard!(
    /// While alive, operations are not recorded and new tensors can never enter a graph.
    InferenceMode,
    Mode { grad: false, inference: true }
);

impl InferenceMode {
    /// As [`InferenceMode::enter`]; with `false` it ends the mode around it for a while, and
    /// operations are recorded.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let _inside = InferenceMode::enter();
    /// let _outside = InferenceMode::enter_with(false);
    /// assert!(is_grad_enabled() && !Tensor::ones(&[2], DType::F32)?.is_inference());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn enter_with(mode: bool) -> InferenceMode {
        InferenceMode { _restore: Restore::enter(Mode { grad: !mode, inference: mode }) }
    }
}

/// Runs `body` without recording.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, no_grad};
/// let w = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
/// let y = no_grad(|| w.mul(2.0))?;
/// assert!(!y.requires_grad());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn no_grad<R>(body: impl FnOnce() -> R) -> R {
    let _guard = NoGrad::enter();
    body()
}

/// Runs `body` with recording on, inside a `no_grad`.
///
/// ```
/// # use plimsoll_tensor::*;
/// assert!(no_grad(|| enable_grad(is_grad_enabled)));
/// # Ok::<(), Error>(())
/// ```
pub fn enable_grad<R>(body: impl FnOnce() -> R) -> R {
    let _guard = EnableGrad::enter();
    body()
}

/// Runs `body` in inference mode: as `no_grad`, and its new tensors can never enter a graph.
///
/// ```
/// # use plimsoll_tensor::*;
/// let x = inference_mode(|| Tensor::ones(&[2], DType::F32))?;
/// assert!(x.is_inference());
/// # Ok::<(), Error>(())
/// ```
pub fn inference_mode<R>(body: impl FnOnce() -> R) -> R {
    let _guard = InferenceMode::enter();
    body()
}

/// Runs `body` with recording set to `enabled`, as the engine does for `create_graph`.
pub(crate) fn with_grad<R>(enabled: bool, body: impl FnOnce() -> R) -> R {
    let _restore = Restore::enter(Mode { grad: enabled, ..MODE.get() });
    body()
}
