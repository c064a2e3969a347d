//! A tensor's companion: one value that a binding to another language keeps beside a tensor for as
//! long as the tensor lives, such as Python's object for it. This crate never looks into it.
//!
//! It is set once and shared by all handles of the tensor; views have companions of their own.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use crate::Tensor;

/// Empty for tensors that no other language has seen.
#[derive(Default)]
pub(crate) struct Companion(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Companion {
    pub(crate) const fn new() -> Companion {
        Companion(OnceLock::new())
    }

    /// The same companion for a tensor that takes this one's place.
    pub(crate) fn share(&self) -> Companion {
        Companion(self.0.get().map_or_else(OnceLock::new, |value| OnceLock::from(value.clone())))
    }
}

impl Tensor {
    /// What was put beside this tensor, if anything was.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert!(Tensor::zeros(&[2], DType::F32)?.companion().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn companion(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.companion_slot().0.get()
    }

    /// What was put beside this tensor; `make` gives it the first time.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// use std::sync::Arc;
    /// let x = Tensor::zeros(&[2], DType::F32)?;
    /// let name = x.companion_or_init(|| Arc::new("weights"));
    /// assert_eq!(name.downcast_ref(), Some(&"weights"));
    /// assert_eq!(x.clone().companion_or_init(|| Arc::new(0)).downcast_ref(), Some(&"weights"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn companion_or_init(
        &self,
        make: impl FnOnce() -> Arc<dyn Any + Send + Sync>,
    ) -> &Arc<dyn Any + Send + Sync> {
        self.companion_slot().0.get_or_init(make)
    }
}
