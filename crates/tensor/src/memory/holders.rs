//! From a storage to its holders: who keeps these bytes alive. A registry of live tensors, off
//! unless it is asked for (it then costs each new tensor one load), from which everything else can
//! be reached: tensors own their graph nodes and gradients, nodes what they saved, dropped storages
//! their recipes.
//!
//! A hook is a function, and nobody can look into one. Tensors that a hook keeps are named if they
//! were given along with it ([`Tensor::register_hook_holding`]); those that a closure captured by
//! itself show as handles.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Weak};

use plimsoll_core::Result;
use plimsoll_memory::{OriginId, Site};

use crate::autograd::node::Node;
use crate::lock::Mutex;
use crate::storage::Storage;
use crate::tensor::registry;
use crate::{HookHandle, Tensor};

/// How somebody keeps a storage alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HolderKind {
    /// A tensor of its own, in a variable or inside something of the program's.
    Handle,
    /// A view of it.
    View,
    /// A recorded operation that needs it for backward.
    Saved,
    /// A tensor whose gradient it is.
    Gradient,
    /// A hook that was given it.
    Hook,
    /// A tensor without memory that is computed from it when somebody needs it.
    Recipe,
}

impl fmt::Display for HolderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            HolderKind::Handle => "handle",
            HolderKind::View => "view",
            HolderKind::Saved => "saved value",
            HolderKind::Gradient => "gradient",
            HolderKind::Hook => "hook",
            HolderKind::Recipe => "recipe",
        })
    }
}

/// Somebody who keeps a storage alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// How.
    pub kind: HolderKind,
    /// The operation by which it does: the one that made the handle or the view, that saved the
    /// value, that the recipe runs.
    pub operation: &'static str,
    /// Who made the holder: for a gradient the leaf that has it, for a hook the line that
    /// registered it.
    pub origin: OriginId,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} ({})", self.kind, self.operation, self.origin)
    }
}

/// Tensors that were given to hooks while the registry was on.
static HOOKS: Mutex<Vec<HookHold>> = Mutex::new(Vec::new());

/// The tensors that were given to a hook.
struct HookHold {
    held: Weak<[Tensor]>,
    origin: OriginId,
}

/// Registers every tensor that is made from now on, or stops; returns whether it was switched on
/// before. [`holders`] knows registered tensors, and what can be reached from them; so do
/// [`live_by_holder`](super::live_by_holder) and, while it is on, errors of running out of memory.
/// A [`LeakWatch`](super::LeakWatch) has tensors registered too, as long as it lives.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, memory, memory::HolderKind};
/// memory::track_holders(true);
/// let x = Tensor::ones(&[256], DType::F32)?.requires_grad_(true)?;
/// let y = x.exp()?;
/// let z = y.sum()?;
/// // The result of `exp` is held by its variable and by the graph behind `z`.
/// let kinds: Vec<HolderKind> = memory::holders(&y).iter().map(|holder| holder.kind).collect();
/// assert_eq!(kinds, [HolderKind::Handle, HolderKind::Saved]);
/// assert!(memory::track_holders(false));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn track_holders(on: bool) -> bool {
    registry::name_holders_by(super::leak::shares::with_holders);
    registry::switch(on)
}

/// Has every tensor registered as long as what it returns lives.
pub(super) fn tracked_holders() -> registry::User {
    registry::name_holders_by(super::leak::shares::with_holders);
    registry::User::new()
}

/// Who keeps the bytes of `tensor` alive, by kind. The tensor itself is among them, as a handle or
/// a view. Moves nothing; what other threads do meanwhile may or may not be seen.
pub fn holders(tensor: &Tensor) -> Vec<Holder> {
    let _alone = registry::look_alone();
    let storage = tensor.storage();
    let (tensors, mut found) = living(storage);
    for other in &tensors {
        found.extend(of_tensor(other, storage));
    }
    found.extend(nodes(&tensors).iter().filter(|node| node.saves(storage)).map(|node| Holder {
        kind: HolderKind::Saved,
        operation: node.name(),
        origin: node.origin(),
    }));
    for other in storage.entry().reclaimable().living() {
        if let Some((operation, origin)) = other.recipe_holding(storage) {
            found.push(Holder { kind: HolderKind::Recipe, operation, origin });
        }
    }
    found.sort_by_key(|holder| holder.kind);
    found
}

/// Every registered tensor that lives, and the hooks that hold `storage`.
fn living(storage: &Arc<Storage>) -> (Vec<Tensor>, Vec<Holder>) {
    let tensors = registry::living();
    let holds = |hook: &&HookHold| {
        let held = hook.held.upgrade();
        held.is_some_and(|held| held.iter().any(|tensor| Arc::ptr_eq(tensor.storage(), storage)))
    };
    let hook = |hook: &HookHold| Holder {
        kind: HolderKind::Hook,
        operation: "register_hook",
        origin: hook.origin,
    };
    (tensors, HOOKS.lock().iter().filter(holds).map(hook).collect())
}

/// How `tensor` holds `storage`: by lying in it, or by having it as its gradient.
fn of_tensor(tensor: &Tensor, storage: &Arc<Storage>) -> Vec<Holder> {
    let made = |tensor: &Tensor| tensor.storage().origin().unwrap_or(OriginId::UNKNOWN);
    let mut found = Vec::new();
    if Arc::ptr_eq(tensor.storage(), storage) {
        let origin = made(tensor);
        found.push(match tensor.view_of() {
            Some(view) => Holder { kind: HolderKind::View, operation: view.operation(), origin },
            None => Holder { kind: HolderKind::Handle, operation: origin.get().operation, origin },
        });
    }
    if let Some(grad) = tensor.grad()
        && Arc::ptr_eq(grad.storage(), storage)
    {
        let origin = made(tensor);
        found.push(Holder {
            kind: HolderKind::Gradient,
            operation: origin.get().operation,
            origin,
        });
    }
    found
}

/// Every node of a graph that one of `tensors` is in, once.
fn nodes(tensors: &[Tensor]) -> Vec<Arc<Node>> {
    let mut seen = HashSet::new();
    let mut found: Vec<Arc<Node>> = Vec::new();
    let mut stack: Vec<Arc<Node>> = tensors.iter().filter_map(Tensor::own_node).collect();
    while let Some(node) = stack.pop() {
        if seen.insert(Arc::as_ptr(&node).addr()) {
            stack.extend(node.parents().cloned());
            found.push(node);
        }
    }
    found
}

/// Shows `look` every tensor that was given to a hook, and who registered that.
pub(crate) fn each_given_to_hooks(look: &mut dyn FnMut(&Tensor, OriginId)) {
    let Some(hooks) = HOOKS.try_lock() else { return };
    let living: Vec<(Arc<[Tensor]>, OriginId)> =
        hooks.iter().filter_map(|hook| Some((hook.held.upgrade()?, hook.origin))).collect();
    drop(hooks);
    for (held, origin) in &living {
        held.iter().for_each(|tensor| look(tensor, *origin));
    }
}

impl Tensor {
    /// As [`Tensor::register_hook`], with tensors that the hook needs: it gets them at each call,
    /// and [`holders`] can name the hook that keeps them alive.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let scale = Tensor::full(&[2], 10.0, DType::F32)?;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// x.register_hook_holding(vec![scale], |held, grad| grad.mul(&held[0]).map(Some))?;
    /// x.mul(2.0)?.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [20.0, 20.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn register_hook_holding(
        &self,
        held: Vec<Tensor>,
        hook: impl Fn(&[Tensor], &Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        let held: Arc<[Tensor]> = held.into();
        let hold = HookHold {
            held: Arc::downgrade(&held),
            origin: OriginId::intern("register_hook", Site::caller()),
        };
        let handle = self.register_hook(move |grad| hook(&held, grad))?;
        let mut hooks = HOOKS.lock();
        hooks.retain(|hook| hook.held.strong_count() > 0);
        hooks.push(hold);
        Ok(handle)
    }
}
