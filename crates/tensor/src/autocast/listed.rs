//! Operations that mixed precision casts as a whole though they are made of others, or written in
//! Python: their own list decides (`lists.rs`), and not those of their parts. A [`ListedCall`]
//! casts all arguments first and nothing inside, as PyTorch's dispatcher does; [`enter_composed`]
//! has the parts of a Rust method cast as the method is. Single operations need neither
//! (`prepare.rs`).

use std::marker::PhantomData;

use plimsoll_core::{DType, DeviceKind, Result};
use plimsoll_memory::Site;

use super::lists::{Cast, Casts, casts};
use super::{STATE, cast, change, is_eligible, is_on};
use crate::Tensor;

/// Runs `body` without casts: for operations that have cast their operands themselves.
pub(crate) fn as_given<R>(body: impl FnOnce() -> R) -> R {
    let _inside = Inside::enter(Casts::AS_GIVEN);
    body()
}

/// While alive, what runs on this thread is cast as a listed operation's parts.
#[derive(Debug)]
pub(crate) struct Inside {
    before: Option<Casts>,
    // The state is the thread's.
    not_send: PhantomData<*const ()>,
}

impl Inside {
    fn enter(casts: Casts) -> Inside {
        let before = STATE.get().inside;
        change(|state| state.inside = Some(casts));
        Inside { before, not_send: PhantomData }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        change(|state| state.inside = self.before);
    }
}

/// A call of an operation that is listed as a whole: its arguments are cast by
/// [`ListedCall::cast`], and nothing is cast inside it while this lives.
///
/// ```
/// use plimsoll_tensor::{DType, DeviceKind, ListedCall, Tensor, autocast};
/// let x = Tensor::ones(&[2, 2], DType::BF16)?;
/// autocast(DeviceKind::Cpu, || {
///     let call = ListedCall::enter("kl_div", DeviceKind::Cpu, [&x])?.expect("it is listed");
///     assert_eq!(call.cast(&x)?.dtype(), DType::F32);
///     Ok::<(), plimsoll_tensor::Error>(())
/// })?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct ListedCall {
    kind: DeviceKind,
    dtype: Option<DType>,
    inside: Inside,
}

impl ListedCall {
    /// Starts the call if this thread casts for devices of `kind`, the operation is in PyTorch's
    /// lists for them, and no other listed one runs; `inputs` are its tensors.
    pub fn enter<'a>(
        name: &str,
        kind: DeviceKind,
        inputs: impl IntoIterator<Item = &'a Tensor>,
    ) -> Result<Option<ListedCall>> {
        let mut state = STATE.get();
        let is_outer = |outer: Casts| outer.on(kind) != Cast::Parts;
        if !state.of(kind).enabled || state.inside.is_some_and(is_outer) {
            return Ok(None);
        }
        let listed = casts(name);
        if listed.on(kind) == Cast::Parts {
            return Ok(None);
        }
        let dtype = state.dtype(listed, name, kind, inputs.into_iter())?;
        Ok(Some(ListedCall { kind, dtype, inside: Inside::enter(Casts::AS_GIVEN) }))
    }

    /// An argument as the operation takes it.
    #[track_caller]
    pub fn cast(&self, tensor: &Tensor) -> Result<Tensor> {
        match self.dtype {
            Some(dtype) if is_eligible(tensor.dtype()) && is_like(tensor, self.kind) => {
                cast(tensor, dtype, Site::caller())
            }
            _ => Ok(tensor.clone()),
        }
    }

    /// Leaves the call running after this value is gone, until [`ListedCall::end`]: for callers
    /// that cannot hold it.
    pub fn go_on(self) {
        std::mem::forget(self.inside);
    }

    /// Ends the call that [`ListedCall::go_on`] left running.
    pub fn end() {
        change(|state| state.inside = None);
    }
}

fn is_like(tensor: &Tensor, kind: DeviceKind) -> bool {
    (tensor.device().kind() == DeviceKind::Cpu) == (kind == DeviceKind::Cpu)
}

/// Has the operations of a listed one be cast as its list says, until the guard drops; `None` if it
/// is not listed, or runs inside one that is.
#[inline]
pub(crate) fn enter_composed(name: &'static str) -> Option<Inside> {
    if is_on() { enter_listed(name) } else { None }
}

#[cold]
fn enter_listed(name: &'static str) -> Option<Inside> {
    let listed = casts(name);
    if STATE.get().inside.is_some() || listed == Casts::PARTS {
        return None;
    }
    Some(Inside::enter(listed))
}
