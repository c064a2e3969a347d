//! A tensor that a module keeps and does not train, such as a running mean: a cell, as a parameter
//! is, so that the module's tensor can be replaced while others look at it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use plimsoll_tensor::{NoGrad, Result, Tensor, To};

/// A tensor that a module keeps; clones share it.
///
/// ```
/// use plimsoll_nn::Buffer;
/// use plimsoll_tensor::{DType, Tensor};
/// let steps = Buffer::new(&Tensor::zeros(&[], DType::I64)?);
/// steps.tensor().add_(1)?;
/// assert_eq!(steps.tensor().item::<i64>()?, 1);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Buffer(Arc<Kept>);

struct Kept {
    tensor: Mutex<Tensor>,
    persistent: bool,
}

impl Buffer {
    /// A buffer over the memory of `tensor` that is part of the module's state.
    pub fn new(tensor: &Tensor) -> Buffer {
        Buffer::made(tensor, true)
    }

    /// A buffer that is not part of the state: what can be computed again, such as a mask.
    pub fn not_persistent(tensor: &Tensor) -> Buffer {
        Buffer::made(tensor, false)
    }

    fn made(tensor: &Tensor, persistent: bool) -> Buffer {
        Buffer(Arc::new(Kept { tensor: Mutex::new(tensor.detach()), persistent }))
    }

    /// The tensor that it is now.
    pub fn tensor(&self) -> Tensor {
        self.0.tensor.lock().clone()
    }

    /// Puts another tensor in its place.
    pub fn set(&self, tensor: &Tensor) {
        // The old one is dropped after the lock.
        let old = std::mem::replace(&mut *self.0.tensor.lock(), tensor.detach());
        drop(old);
    }

    /// Brings it to another dtype or device.
    #[track_caller]
    pub fn to(&self, target: impl Into<To>) -> Result<()> {
        let _plain = NoGrad::enter();
        self.set(&self.tensor().to(target)?);
        Ok(())
    }

    /// Whether it is part of the state.
    pub fn is_persistent(&self) -> bool {
        self.0.persistent
    }

    /// Whether both are one cell.
    pub fn is_same(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Buffer").field(&self.tensor()).finish()
    }
}
