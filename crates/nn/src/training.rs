//! The mode of a module: training or evaluation.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a module trains, as a field of it. [`Module::train`](crate::Module::train) and
/// [`Module::eval`](crate::Module::eval) set it in the whole tree.
///
/// ```
/// use plimsoll_nn::{Forward, Module, Training};
/// use plimsoll_tensor::{Result, Tensor};
///
/// #[derive(Module)]
/// struct Noise {
///     training: Training,
/// }
///
/// impl Forward<&Tensor> for Noise {
///     type Output = Tensor;
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         if self.training.get() { x.add(&x.randn_like()?) } else { Ok(x.clone()) }
///     }
/// }
///
/// let noise = Noise { training: Training::default() };
/// noise.eval();
/// assert!(!noise.training.get() && !noise.is_training());
/// ```
#[derive(Debug)]
pub struct Training(AtomicBool);

impl Default for Training {
    fn default() -> Training {
        Training(AtomicBool::new(true))
    }
}

impl Clone for Training {
    fn clone(&self) -> Training {
        Training(AtomicBool::new(self.get()))
    }
}

impl Training {
    /// Whether it trains.
    #[inline]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the mode of this module alone.
    pub fn set(&self, training: bool) {
        self.0.store(training, Ordering::Relaxed);
    }
}
