//! A tensor's companion: one value that a binding to another language keeps beside a tensor for as
//! long as the tensor lives, such as what Python knows of its object. This crate never looks into
//! it.
//!
//! It is set once and shared by all handles of the tensor; views have companions of their own. Most
//! tensors need no more than a word, which takes no memory of its own: where their object is.

use std::any::Any;
use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, OnceLock};

use crate::Tensor;

/// Empty for tensors that no other language has seen.
#[derive(Default)]
pub(crate) struct Companion {
    word: AtomicPtr<()>,
    value: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Companion {
    pub(crate) const fn new() -> Companion {
        Companion { word: AtomicPtr::new(std::ptr::null_mut()), value: OnceLock::new() }
    }

    /// The same companion for a tensor that takes this one's place; its word is its own.
    pub(crate) fn share(&self) -> Companion {
        let shared = self.value.get().cloned();
        Companion { value: shared.map_or_else(OnceLock::new, OnceLock::from), ..Companion::new() }
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
        self.companion_slot().value.get()
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
        self.companion_slot().value.get_or_init(make)
    }

    /// A word of the binding's that keeps a companion, null at first. What it means, and who may
    /// write it when, is the binding's affair.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// use std::sync::atomic::Ordering;
    /// let x = Tensor::zeros(&[2], DType::F32)?;
    /// let mut object = ();
    /// x.companion_word().store(&raw mut object, Ordering::Relaxed);
    /// assert_eq!(x.clone().companion_word().load(Ordering::Relaxed), &raw mut object);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn companion_word(&self) -> &AtomicPtr<()> {
        &self.companion_slot().word
    }
}
