//! Modules that run again in backward instead of keeping what they computed. The mechanism is
//! `plimsoll_tensor::checkpoint`; what is added is the module's path.
//!
//! A call finds its path by the module that is running around it (`frames.rs`). In backward nobody
//! is: the second run has only the path that was in force when the checkpoint was made. So the
//! module is entered first, outside of the function that runs twice.

use std::sync::Arc;

use plimsoll_memory::{Site, SiteScope};
use plimsoll_tensor::{CheckpointOptions, Result, Tensor};

use crate::frames::Entered;
use crate::{Forward, Layer};

/// Calls a module and keeps only its input; backward calls it again for the rest. What both runs
/// ask for is booked under the module's path.
///
/// ```
/// use std::sync::Arc;
/// use plimsoll_nn::{Forward, GELU, Linear, Module, Sequential, checkpoint, sequential};
/// use plimsoll_tensor::{DType, Result, Tensor};
///
/// #[derive(Module)]
/// struct Net {
///     blocks: Vec<Arc<Sequential>>,
/// }
///
/// impl Forward<&Tensor> for Net {
///     type Output = Tensor;
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         let mut x = x.clone();
///         for block in &self.blocks {
///             x = checkpoint(block, &x)?;
///         }
///         Ok(x)
///     }
/// }
///
/// let block = || Ok::<_, plimsoll_tensor::Error>(sequential![Linear::new(4, 4)?, GELU::new()]);
/// let net = Net { blocks: vec![Arc::new(block()?), Arc::new(block()?)] };
/// net.call(&Tensor::ones(&[2, 4], DType::F32)?)?.sum()?.backward()?;
/// assert!(net.parameters().iter().all(|parameter| parameter.tensor().grad().is_some()));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn checkpoint<M: Layer + ?Sized>(module: &Arc<M>, input: &Tensor) -> Result<Tensor> {
    checkpoint_with(module, input, CheckpointOptions::default())
}

/// [`checkpoint`] with options: without an early end, or with results that are kept.
#[track_caller]
pub fn checkpoint_with<M: Layer + ?Sized>(
    module: &Arc<M>,
    input: &Tensor,
    options: CheckpointOptions,
) -> Result<Tensor> {
    let site = Site::caller();
    let _entered = Entered::enter(module.as_dyn());
    let module = module.clone();
    plimsoll_tensor::checkpoint_with(&[input], options, move |inputs| {
        // In both runs, as in a call through a pointer: Note [The user's own line] in `call.rs`.
        let is_ours = module.is_builtin();
        let _site = if is_ours { SiteScope::enter(site) } else { SiteScope::lift() };
        module.call(&inputs[0])
    })
}
