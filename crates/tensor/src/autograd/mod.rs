//! Autograd: recording what happened, keeping exactly what backward needs, and running it.
//!
//! The life of a gradient, file by file: `record` makes a `node` for an operation whose inputs need
//! gradients and lets `saved` hold what the operation declares; `backward` is what users call,
//! from and to the places of `place`;
//! `engine` walks the nodes from an output, newest first (`tasks` says which are ready), calls each
//! operation's `vjp`, and frees what it used (`fit` holds each gradient to the shape of its
//! target); `parts` lays the gradients of a split tensor's parts together; `accumulate` writes the
//! leaves' gradients; `hooks`
//! lets users look on (`multi_grad` at several tensors at once), `grad_fn` shows them the nodes,
//! `saved_hooks` lets them keep saved tensors their way, `runs` says which backward is going on,
//! and `custom` takes functions with derivatives of their own. `slot` is a tensor's place in all
//! this, `views` keeps views and their base consistent under in-place writes, `rules` refuses what
//! would give wrong gradients, `release` drops graphs of any depth without recursion, `walk` lists
//! what a live graph holds, `graph_text` writes that down, and `anomaly` finds where gradients stop
//! being numbers. `functional` has derivatives of functions.

mod accumulate;
mod anomaly;
mod backward;
mod custom;
mod engine;
mod fit;
mod functional;
mod grad_fn;
mod graph_text;
pub(crate) mod hooks;
pub(crate) mod inherit;
pub(crate) mod mode;
mod multi_grad;
pub(crate) mod node;
mod node_names;
mod parts;
mod place;
pub(crate) mod record;
pub(crate) mod release;
pub(crate) mod rules;
pub(crate) mod runs;
pub(crate) mod saved;
mod saved_hooks;
pub(crate) mod slot;
mod tasks;
pub(crate) mod views;
mod walk;

pub(crate) use accumulate::is_free_to_take;
pub use anomaly::{is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly};
pub use backward::{BackwardOptions, GradOptions, backward, backward_between, grad, grad_between};
pub use custom::{BackwardContext, Context, Function, apply_function};
pub use functional::{hessian, hvp, jacobian, vjp};
pub use grad_fn::{GradFn, WeakGradFn};
pub use graph_text::{graph_dot, graph_text};
pub use hooks::{Hook, HookHandle};
pub use mode::{
    EnableGrad, InferenceMode, NoGrad, enable_grad, inference_mode, is_grad_enabled,
    is_inference_mode_enabled, no_grad, set_grad_enabled,
};
pub use multi_grad::{
    AllGrads, FirstGrad, MultiGradHandle, MultiGradHook, register_multi_grad_hook,
};
pub use place::GradientPlace;
pub(crate) use place::is_one;
pub use runs::queue_callback;
pub use saved_hooks::{
    Packed, SavedTensorsHooks, SavedTensorsScope, save_on_host, saved_tensors_hooks,
};
pub use walk::{GraphInput, GraphNode, walk};
