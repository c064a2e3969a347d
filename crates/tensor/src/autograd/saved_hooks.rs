//! Hooks on what graphs save: `pack` turns a tensor into whatever is kept for backward (a copy on
//! the host, a file, a number from which it is computed again), `unpack` turns that back. Per
//! thread, innermost first, as in PyTorch. They run outside every claim and lock, and never on what
//! they compute themselves. What is saved and when is `saved.rs`.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use plimsoll_core::{Device, Error, Result};
use plimsoll_kernels::Meta;

use super::mode;
use crate::Tensor;

/// What a pack hook kept in a tensor's place.
pub type Packed = Box<dyn Any + Send + Sync>;

/// A pair of hooks; most programs use [`saved_tensors_hooks`], which takes closures.
pub trait SavedTensorsHooks: Send + Sync + 'static {
    /// Turns a tensor that an operation saves into what is kept. It must not be written to.
    fn pack(&self, tensor: &Tensor) -> Result<Packed>;

    /// Turns it back into a tensor of the same shape, dtype and device. Called once for each time
    /// that backward needs it.
    fn unpack(&self, packed: &Packed) -> Result<Tensor>;

    /// Whether a tensor of another shape, dtype or device is refused, and not passed on to a
    /// derivative that expects the one that was packed.
    fn is_checked(&self) -> bool {
        true
    }
}

thread_local! {
    static STACK: RefCell<Vec<Arc<dyn SavedTensorsHooks>>> = const { RefCell::new(Vec::new()) };
}

/// The hooks in force on this thread.
pub(super) fn in_force() -> Option<Arc<dyn SavedTensorsHooks>> {
    STACK.try_with(|stack| stack.borrow().last().cloned()).ok().flatten()
}

/// While alive, what operations on this thread save goes through its hooks.
#[must_use = "the hooks are in force only while the guard lives"]
#[derive(Debug)]
pub struct SavedTensorsScope {
    // Guards put thread-local state back, so they must not move to another thread.
    not_send: PhantomData<*const ()>,
}

impl SavedTensorsScope {
    /// Puts `hooks` in force until the guard drops; those in force before do not run meanwhile.
    pub fn enter(hooks: Arc<dyn SavedTensorsHooks>) -> SavedTensorsScope {
        STACK.with(|stack| stack.borrow_mut().push(hooks));
        SavedTensorsScope { not_send: PhantomData }
    }
}

impl Drop for SavedTensorsScope {
    fn drop(&mut self) {
        // Dropped outside the borrow: hooks are the user's.
        let hooks = STACK.try_with(|stack| stack.borrow_mut().pop());
        drop(hooks);
    }
}

/// A pair of closures, and what they keep.
struct Closures<T, P, U> {
    pack: P,
    unpack: U,
    kept: PhantomData<fn() -> T>,
}

impl<T, P, U> SavedTensorsHooks for Closures<T, P, U>
where
    T: Any + Send + Sync,
    P: Fn(&Tensor) -> Result<T> + Send + Sync + 'static,
    U: Fn(&T) -> Result<Tensor> + Send + Sync + 'static,
{
    fn pack(&self, tensor: &Tensor) -> Result<Packed> {
        (self.pack)(tensor).map(|kept| Box::new(kept) as Packed)
    }

    fn unpack(&self, packed: &Packed) -> Result<Tensor> {
        let kept = packed.downcast_ref().ok_or_else(|| {
            Error::autograd("saved_tensors_hooks", "unpack was handed what another hook packed")
        })?;
        (self.unpack)(kept)
    }
}

/// Runs `body` with hooks on what its operations save for backward.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, saved_tensors_hooks};
/// let x = Tensor::full(&[2], 3.0, DType::F64)?.requires_grad_(true)?;
/// // Half the bytes, and half the precision.
/// let pack = |tensor: &Tensor| tensor.to(DType::F32);
/// let unpack = |kept: &Tensor| kept.to(DType::F64);
/// let y = saved_tensors_hooks(pack, unpack, || x.mul(&x))?;
/// y.sum()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [6.0, 6.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn saved_tensors_hooks<T: Any + Send + Sync, R>(
    pack: impl Fn(&Tensor) -> Result<T> + Send + Sync + 'static,
    unpack: impl Fn(&T) -> Result<Tensor> + Send + Sync + 'static,
    body: impl FnOnce() -> R,
) -> R {
    let _scope = SavedTensorsScope::enter(Arc::new(Closures { pack, unpack, kept: PhantomData }));
    body()
}

/// Runs `body` and keeps what its operations save for backward in the host's memory; backward
/// brings it back to the device that it came from. PyTorch's `save_on_cpu`.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory, save_on_host};
/// let device = device::stand_in(Default::default())?;
/// let x = Tensor::ones(&[1024], (DType::F32, device))?.requires_grad_(true)?;
/// let y = save_on_host(|| x.exp()?.exp()?.exp()?.sum())?;
/// assert_eq!(memory::memory_allocated(device), 4096 + 512); // `x` and `y`
/// y.backward()?;
/// assert!(x.grad().is_some());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn save_on_host<R>(body: impl FnOnce() -> R) -> R {
    let pack = |tensor: &Tensor| -> Result<(Device, Tensor)> {
        // What is on the host already is copied too: nobody checks later whether it was
        // overwritten.
        let host = match tensor.device() {
            Device::CPU => tensor.clone_tensor()?,
            _ => tensor.to(Device::CPU)?,
        };
        Ok((tensor.device(), host))
    };
    saved_tensors_hooks(pack, |(device, host): &(Device, Tensor)| host.to(*device), body)
}

/// A tensor as a hook packed it, with the hooks to get it back.
pub(super) struct PackedTensor {
    hooks: Arc<dyn SavedTensorsHooks>,
    packed: Packed,
    meta: Meta,
    device: Device,
}

impl PackedTensor {
    /// Packs `tensor`, which the operation `name` saves.
    pub(super) fn pack(
        name: &'static str,
        hooks: Arc<dyn SavedTensorsHooks>,
        tensor: &Tensor,
    ) -> Result<PackedTensor> {
        let version = tensor.version();
        let packed = mode::with_grad(false, || hooks.pack(tensor))?;
        if tensor.version() != version {
            return Err(Error::autograd(
                name,
                "A saved tensor pack hook is modifying its input in place. Have it modify a clone",
            ));
        }
        if size_of_val(&*packed) == 0 {
            return Err(Error::autograd(
                name,
                format!(
                    "a pack hook kept nothing of a tensor of shape {:?}, which backward will need; return what \
                     unpack can make it from",
                    tensor.shape()
                ),
            ));
        }
        Ok(PackedTensor { hooks, packed, meta: tensor.meta().clone(), device: tensor.device() })
    }

    /// What the hook kept.
    pub(super) fn packed(&self) -> &dyn Any {
        &*self.packed
    }

    /// The tensor again, outside every graph.
    pub(super) fn unpack(&self, name: &'static str) -> Result<Tensor> {
        let tensor = mode::with_grad(false, || self.hooks.unpack(&self.packed))?;
        let like = tensor.shape() == self.meta.shape() && tensor.dtype() == self.meta.dtype;
        if (!like || tensor.device() != self.device) && self.hooks.is_checked() {
            return Err(Error::autograd(
                name,
                format!(
                    "an unpack hook gave a tensor of shape {:?}, {} on {}, where {:?}, {} on {}, was packed",
                    tensor.shape(),
                    tensor.dtype(),
                    tensor.device(),
                    self.meta.shape(),
                    self.meta.dtype,
                    self.device
                ),
            ));
        }
        Ok(tensor.detach())
    }
}
