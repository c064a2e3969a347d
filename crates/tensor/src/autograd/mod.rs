//! Autograd: recording what happened, keeping exactly what backward needs, and running it.
//!
//! The life of a gradient, file by file: `record` makes a `node` for an operation whose inputs need
//! gradients and lets `saved` hold what the operation declares; `backward` is what users call;
//! `engine` walks the nodes from an output, newest first (`tasks` says which are ready), calls each
//! operation's `vjp`, and frees what it used; `accumulate` writes the leaves' gradients; `hooks`
//! lets users look on, `grad_fn` shows them the nodes, `saved_hooks` lets them keep saved tensors
//! their way, and `custom` takes functions with derivatives of their own. `slot` is a tensor's
//! place in all this, `views` keeps views and their base consistent under in-place writes, `rules`
//! refuses what would give wrong gradients, `release` drops graphs of any depth without recursion,
//! `walk` lists what a live graph holds.

mod accumulate;
mod backward;
mod custom;
mod engine;
mod grad_fn;
pub(crate) mod hooks;
pub(crate) mod inherit;
pub(crate) mod mode;
pub(crate) mod node;
pub(crate) mod record;
pub(crate) mod release;
pub(crate) mod rules;
pub(crate) mod saved;
mod saved_hooks;
pub(crate) mod slot;
mod tasks;
pub(crate) mod views;
mod walk;

pub use backward::{BackwardOptions, GradOptions, backward, grad};
pub use custom::{BackwardContext, Context, Function, apply_function};
pub use grad_fn::{GradFn, WeakGradFn};
pub use hooks::{Hook, HookHandle};
pub use mode::{
    EnableGrad, InferenceMode, NoGrad, enable_grad, inference_mode, is_grad_enabled,
    is_inference_mode_enabled, no_grad,
};
pub use saved_hooks::{
    Packed, SavedTensorsHooks, SavedTensorsScope, save_on_host, saved_tensors_hooks,
};
pub use walk::{GraphNode, walk};
