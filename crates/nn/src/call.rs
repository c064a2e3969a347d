//! Calling a module: `forward` is what the user writes, `call` what the user calls. Between them
//! stand the hooks, and the module's path, which is in force while `forward` runs (`frames.rs`).
//!
//! Note [The user's own line]: operations inside a layer of this crate are booked at the line that
//! called the layer. `call` and the layers' `forward` are `#[track_caller]`, and a layer's
//! `forward` puts its caller's line in force (`at_caller`). The trait's `forward` is not: every
//! implementation would inherit it, and the operations in a `forward` of the user's would lose
//! their lines. A call through a pointer to a trait loses the line, so whoever makes one puts it in
//! force before, if the module is one of ours. Operations in the `forward` of the user's own module
//! have lines of their own, also where one of ours calls it.

use std::sync::Arc;

use plimsoll_memory::{Site, SiteScope};
use plimsoll_tensor::{Result, Tensor};

use crate::frames::Entered;
use crate::{Module, Values};

/// What a module computes. An input of several values is a tuple.
///
/// ```
/// use plimsoll_nn::{Forward, Linear, Module};
/// use plimsoll_tensor::{DType, Result, Tensor};
///
/// #[derive(Module)]
/// struct Blend {
///     gate: Linear,
/// }
///
/// impl Forward<(&Tensor, &Tensor)> for Blend {
///     type Output = Tensor;
///     fn forward(&self, (a, b): (&Tensor, &Tensor)) -> Result<Tensor> {
///         b.lerp(a, &self.gate.call(a)?.sigmoid()?)
///     }
/// }
///
/// let blend = Blend { gate: Linear::new(3, 3)? };
/// let x = Tensor::ones(&[2, 3], DType::F32)?;
/// assert_eq!(blend.call((&x, &x))?.to_vec::<f32>()?, [1.0; 6]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the module `{Self}` cannot be called with `{Input}`",
    note = "implement `Forward<{Input}>` for it"
)]
pub trait Forward<Input: Values>: Module {
    /// What comes out.
    type Output: Values;

    /// Computes. Call [`Forward::call`] instead, which runs hooks and books memory under the
    /// module's path.
    fn forward(&self, input: Input) -> Result<Self::Output>;

    /// Runs the module, as PyTorch's `module(input)`.
    #[track_caller]
    fn call(&self, input: Input) -> Result<Self::Output> {
        let module = self.as_dyn();
        let _entered = Entered::enter(module);
        let Some(hooks) = self.hooks().filter(|hooks| !hooks.is_empty()) else {
            return self.forward(input);
        };
        let inputs = hooks.run_before(module, &input)?;
        let mut output = self.forward(input)?;
        hooks.run_after(module, &inputs, &mut output)?;
        Ok(output)
    }
}

/// A module from one tensor to one, of whatever type: what a [`Sequential`](crate::Sequential) is
/// made of.
pub trait Layer: for<'a> Forward<&'a Tensor, Output = Tensor> {}

impl<M: for<'a> Forward<&'a Tensor, Output = Tensor>> Layer for M {}

/// For a call through a pointer; see Note [The user's own line].
#[track_caller]
pub(crate) fn site_for(module: &dyn Module) -> SiteScope {
    // Not by `then(at_caller)`: a function's pointer has lost its caller.
    if module.is_builtin() { at_caller() } else { SiteScope::lift() }
}

/// Books what follows at the caller's line, until the guard drops.
#[track_caller]
#[inline]
pub(crate) fn at_caller() -> SiteScope {
    SiteScope::enter(Site::caller())
}

/// Pointers to modules are called as what they point to.
macro_rules! pointers {
    ($($pointer:ident)*) => {
        $(impl<Input: Values, M: Forward<Input> + ?Sized> Forward<Input> for $pointer<M> {
            type Output = M::Output;

            #[track_caller]
            fn forward(&self, input: Input) -> Result<Self::Output> {
                let _site = site_for(self.as_dyn());
                (**self).forward(input)
            }

            fn call(&self, input: Input) -> Result<Self::Output> {
                let _site = site_for(self.as_dyn());
                (**self).call(input)
            }
        })*
    };
}

pointers!(Box Arc);
