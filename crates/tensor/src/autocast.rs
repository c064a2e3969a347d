//! Mixed precision: which dtype float operands are cast to before an operation, per thread and kind
//! of device. What each operation does under it is in PyTorch's lists (`autocast/lists.rs`), and is
//! applied to single operations by `prepare.rs`, and to those made of others where they are called
//! (`autocast/listed.rs`). Casts of leaves are remembered until the outermost region ends, as in
//! PyTorch, so that a weight used ten times is cast once.

mod listed;
mod lists;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use plimsoll_core::{DType, DeviceKind, Error, Result};
use plimsoll_memory::Site;

use crate::autograd::is_grad_enabled;
use crate::{Tensor, WeakTensor};
pub use listed::ListedCall;
pub(crate) use listed::{as_given, enter_composed};
use lists::{Cast, Casts, casts};

/// What is in force on this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// For CUDA and the stand-in accelerator.
    cuda: Setting,
    cpu: Setting,
    caches: bool,
    /// What is done inside the listed operation that runs; its own list decides, not its parts'.
    inside: Option<Casts>,
}

/// What is in force for devices of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting {
    enabled: bool,
    lower: DType,
}

impl Setting {
    fn target(self) -> Option<DType> {
        self.enabled.then_some(self.lower)
    }
}

impl State {
    const OFF: State = State {
        cuda: Setting { enabled: false, lower: DType::F16 },
        cpu: Setting { enabled: false, lower: DType::BF16 },
        caches: true,
        inside: None,
    };

    fn of(&mut self, kind: DeviceKind) -> &mut Setting {
        match kind {
            DeviceKind::Cpu => &mut self.cpu,
            _ => &mut self.cuda,
        }
    }
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::OFF) };
    /// Leaves in float32 and their casts.
    static CASTS: RefCell<Vec<(WeakTensor, Tensor)>> = const { RefCell::new(Vec::new()) };
}

/// Whether any operation on this thread may have to be cast.
#[inline]
pub(crate) fn is_on() -> bool {
    let state = STATE.get();
    state.cuda.enabled || state.cpu.enabled
}

/// How [`autocast_with`] casts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutocastOptions {
    /// The lower precision; `None` is the one in force ([`autocast_dtype`]): float16 on CUDA and
    /// bfloat16 on the CPU, unless it was set.
    pub dtype: Option<DType>,
    /// Whether casting is on inside; `false` switches it off inside a region where it is on.
    pub enabled: bool,
    /// Whether casts of leaves are remembered for the region.
    pub cache_enabled: bool,
}

impl Default for AutocastOptions {
    fn default() -> AutocastOptions {
        AutocastOptions { dtype: None, enabled: true, cache_enabled: true }
    }
}

/// Runs `body` in mixed precision for devices of `kind`: products in the lower precision, what
/// would lose too much in float32.
///
/// ```
/// use plimsoll_tensor::{DType, DeviceKind, Tensor, autocast};
/// let x = Tensor::ones(&[2, 2], DType::F32)?;
/// let y = autocast(DeviceKind::Cpu, || x.matmul(&x))?;
/// assert_eq!(y.dtype(), DType::BF16);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn autocast<R>(kind: DeviceKind, body: impl FnOnce() -> R) -> R {
    autocast_with(kind, AutocastOptions::default(), body)
}

/// As [`autocast`], with a dtype, switched off, or without remembering casts.
///
/// ```
/// use plimsoll_tensor::*;
/// let x = Tensor::ones(&[2, 2], DType::F32)?;
/// let off = AutocastOptions { enabled: false, ..Default::default() };
/// let y = autocast(DeviceKind::Cpu, || autocast_with(DeviceKind::Cpu, off, || x.matmul(&x)))?;
/// assert_eq!(y.dtype(), DType::F32);
/// # Ok::<(), Error>(())
/// ```
pub fn autocast_with<R>(kind: DeviceKind, options: AutocastOptions, body: impl FnOnce() -> R) -> R {
    let _region = AutocastRegion::enter(kind, options);
    body()
}

/// While alive, operations on this thread are cast; see [`autocast`].
#[derive(Debug)]
#[must_use = "the region ends when the guard is dropped"]
pub struct AutocastRegion {
    before: State,
    // The state is the thread's.
    not_send: PhantomData<*const ()>,
}

impl AutocastRegion {
    /// Starts a region, until the guard drops.
    pub fn enter(kind: DeviceKind, options: AutocastOptions) -> AutocastRegion {
        let before = STATE.get();
        let mut state = State { caches: options.cache_enabled, ..before };
        let setting = state.of(kind);
        setting.enabled = options.enabled;
        setting.lower = options.dtype.unwrap_or(setting.lower);
        STATE.set(state);
        AutocastRegion { before, not_send: PhantomData }
    }
}

/// What is in force on this thread, to be put in force again later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AutocastState(State);

impl AutocastState {
    pub(crate) fn current() -> AutocastState {
        AutocastState(STATE.get())
    }

    /// Puts it in force until the guard drops.
    pub(crate) fn resume(self) -> AutocastRegion {
        AutocastRegion { before: STATE.replace(self.0), not_send: PhantomData }
    }
}

impl Drop for AutocastRegion {
    fn drop(&mut self) {
        STATE.set(self.before);
        if !is_on() {
            clear_autocast_cache();
        }
    }
}

/// Forgets the casts of leaves that are remembered; the end of the outermost region does.
///
/// ```
/// # use plimsoll_tensor::*;
/// let w = Tensor::ones(&[2, 2], DType::F32)?.requires_grad_(true)?;
/// autocast(DeviceKind::Cpu, || {
///     let total = || Ok::<_, Error>(w.matmul(&w)?.sum()?.to_scalar()?.to_f64());
///     assert_eq!(total()?, 8.0);
///     no_grad(|| w.zero_().map(drop))?;
///     assert_eq!(total()?, 8.0);
///     clear_autocast_cache();
///     assert_eq!(total()?, 0.0);
///     Ok::<(), Error>(())
/// })?;
/// # Ok::<(), Error>(())
/// ```
pub fn clear_autocast_cache() {
    // Taken out first: dropping casts may run code of other tensors' owners.
    drop(CASTS.try_with(|casts| std::mem::take(&mut *casts.borrow_mut())));
}

/// Whether this thread casts for devices of `kind`.
pub fn is_autocast_enabled(kind: DeviceKind) -> bool {
    STATE.get().of(kind).enabled
}

/// Has this thread cast for devices of `kind`, or not, without a region that ends.
///
/// ```
/// # use plimsoll_tensor::*;
/// let x = Tensor::ones(&[2, 2], DType::F32)?;
/// set_autocast_enabled(DeviceKind::Cpu, true);
/// assert!(is_autocast_enabled(DeviceKind::Cpu));
/// assert_eq!(x.matmul(&x)?.dtype(), autocast_dtype(DeviceKind::Cpu));
/// set_autocast_enabled(DeviceKind::Cpu, false);
/// assert_eq!(x.matmul(&x)?.dtype(), DType::F32);
/// # Ok::<(), Error>(())
/// ```
pub fn set_autocast_enabled(kind: DeviceKind, enabled: bool) {
    change(|state| state.of(kind).enabled = enabled);
}

/// The lower precision of this thread for devices of `kind`.
pub fn autocast_dtype(kind: DeviceKind) -> DType {
    STATE.get().of(kind).lower
}

/// Sets what [`autocast_dtype`] gives.
pub fn set_autocast_dtype(kind: DeviceKind, dtype: DType) {
    change(|state| state.of(kind).lower = dtype);
}

/// Whether this thread remembers casts of leaves.
pub fn is_autocast_cache_enabled() -> bool {
    STATE.get().caches
}

/// Sets what [`is_autocast_cache_enabled`] gives.
pub fn set_autocast_cache_enabled(enabled: bool) {
    change(|state| state.caches = enabled);
}

fn change(change: impl FnOnce(&mut State)) {
    let mut state = STATE.get();
    change(&mut state);
    STATE.set(state);
}

/// The dtype that float operands of an operation on devices of `kind` are cast to; `None` leaves
/// them as they are.
pub(crate) fn target<'a>(
    name: &'static str,
    kind: DeviceKind,
    inputs: impl Iterator<Item = &'a Tensor>,
) -> Result<Option<DType>> {
    let mut state = STATE.get();
    // First, because looking a name up in the lists takes longer than most small operations' rest.
    if !state.of(kind).enabled {
        return Ok(None);
    }
    let outer = state.inside.filter(|outer| outer.on(kind) != Cast::Parts);
    state.dtype(outer.unwrap_or_else(|| casts(name)), name, kind, inputs)
}

impl State {
    fn dtype<'a>(
        mut self,
        casts: Casts,
        name: &str,
        kind: DeviceKind,
        inputs: impl Iterator<Item = &'a Tensor>,
    ) -> Result<Option<DType>> {
        let Some(lower) = self.of(kind).target() else { return Ok(None) };
        match casts.on(kind) {
            Cast::AsGiven | Cast::Parts => Ok(None),
            Cast::Lower => Ok(Some(lower)),
            Cast::Float32 => Ok(Some(DType::F32)),
            Cast::Widest => {
                let eligible = inputs.map(Tensor::dtype).filter(|dtype| is_eligible(*dtype));
                // float16 beside bfloat16 is float32, as everywhere.
                Ok(eligible.reduce(plimsoll_core::promote_dtypes))
            }
            Cast::Second => {
                Ok(inputs.map(Tensor::dtype).filter(|dtype| is_eligible(*dtype)).nth(1))
            }
            Cast::Refused => Err(Error::unsupported(
                name,
                "it is unsafe in mixed precision: its gradients do not fit float16; use \
                 binary_cross_entropy_with_logits, or leave the region for it",
            )),
        }
    }
}

/// float64 is never cast: who asked for it means it.
pub(crate) fn is_eligible(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::F64
}

/// `tensor` in `dtype`. A leaf's cast to the lower precision is made once in a region.
pub(crate) fn cast(tensor: &Tensor, dtype: DType, site: Site) -> Result<Tensor> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    let remembers = STATE.get().caches
        && tensor.dtype() == DType::F32
        && tensor.requires_grad()
        && tensor.is_leaf()
        && tensor.view_of().is_none()
        && is_grad_enabled();
    if !remembers {
        return tensor.to_dtype(dtype, site);
    }
    let known = CASTS.with(|casts| {
        let casts = casts.borrow();
        let same = |(leaf, cast): &&(WeakTensor, Tensor)| {
            leaf.upgrade().is_some_and(|leaf| leaf.is(tensor)) && cast.dtype() == dtype
        };
        casts.iter().find(same).map(|(_, cast)| cast.clone())
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let made = tensor.to_dtype(dtype, site)?;
    CASTS.with(|casts| casts.borrow_mut().push((tensor.downgrade(), made.clone())));
    Ok(made)
}
