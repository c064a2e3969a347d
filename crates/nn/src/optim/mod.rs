//! Optimizers, schedulers of their learning rates, and averages of models.
//!
//! An optimizer is [`Fused`] over the options of its rule: [`AdamW`] is `Fused<AdamWOptions>`. A
//! step is one operation over all parameters of a group, in place, without temporaries; what it
//! keeps is booked as optimizer state. [`LBFGS`] alone is made of many operations. Schedulers are
//! in [`lr_scheduler`], averages in [`swa_utils`], scaled gradients in [`crate::amp`].
//!
//! ```
//! use plimsoll_nn::{Forward, Linear, Module, optim};
//! use plimsoll_tensor::{DType, Tensor};
//!
//! let layer = Linear::new(3, 1)?;
//! let options = optim::AdamWOptions::new().lr(0.1);
//! let mut optimizer = optim::AdamW::new(layer.parameters(), options)?;
//! let x = Tensor::ones(&[4, 3], DType::F32)?;
//! let mut losses = Vec::new();
//! for _ in 0..20 {
//!     optimizer.zero_grad()?;
//!     let loss = layer.call(&x)?.square()?.mean()?;
//!     loss.backward()?;
//!     optimizer.step()?;
//!     losses.push(loss.item::<f32>()?);
//! }
//! assert!(losses[19] < 0.5 * losses[0]);
//! # Ok::<(), plimsoll_tensor::Error>(())
//! ```

mod adadelta;
mod adagrad;
mod adam;
mod adamax;
mod captured;
mod checks;
mod fused;
mod fused_state;
mod group;
mod hooks;
mod in_backward;
mod kept;
mod lbfgs;
mod lbfgs_state;
mod line_search;
mod lion;
pub mod lr_scheduler;
mod nadam;
mod optimizer;
mod radam;
mod rmsprop;
mod rprop;
mod rule;
mod sgd;
pub mod swa_utils;

pub use adadelta::{Adadelta, AdadeltaOptions};
pub use adagrad::{Adagrad, AdagradOptions};
pub use adam::{Adam, AdamOptions, AdamW, AdamWOptions};
pub use adamax::{Adamax, AdamaxOptions};
pub use fused::Fused;
pub use group::{GroupedParameter, ParamGroup};
pub use hooks::StepHook;
pub use in_backward::InBackward;
pub use lbfgs::{LBFGS, LBFGSOptions, LineSearchFn};
pub use lion::{Lion, LionOptions};
pub use nadam::{NAdam, NAdamOptions};
pub use optimizer::{Optimizer, OptimizerId, Scaling};
pub use radam::{RAdam, RAdamOptions};
pub use rmsprop::{RMSprop, RMSpropOptions};
pub use rprop::{Rprop, RpropOptions};
pub use rule::{FusedRule, Shared};
pub use sgd::{SGD, SGDOptions};
