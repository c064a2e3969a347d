//! Hooks: functions of the user that see gradients on their way and may replace them. One store
//! serves nodes and the accumulators of leaves. The order is PyTorch's: a tensor's hooks, its
//! retained gradient, the node's pre-hooks, the node itself, a leaf's post-accumulate hooks, the
//! node's post-hooks. All run outside every claim and lock.
//!
//! How they are registered on a tensor is here; on a node, in `grad_fn.rs`.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use plimsoll_core::{Error, Result};

use super::node::Edge;
use super::slot::State;
use crate::lock::Mutex;
use crate::operation::Grads;
use crate::{Tensor, WeakTensor};

/// A function that sees a tensor's gradient and may replace it. Closures are hooks.
pub trait Hook: Send + Sync {
    /// Sees a gradient; what it returns takes the gradient's place.
    fn run(&self, grad: &Tensor) -> Result<Option<Tensor>>;

    /// Hears that backward passed by without a gradient: it is zero everywhere, and was not made.
    fn pass(&self) -> Result<()> {
        Ok(())
    }

    /// What the hook owns in another language, for that language's garbage collector; see
    /// [`Tensor::each_foreign_hook`].
    fn foreign(&self) -> Option<&dyn Any> {
        None
    }
}

impl<F: Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync> Hook for F {
    fn run(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        self(grad)
    }
}

pub(super) type PreHook =
    dyn Fn(&[Option<Tensor>]) -> Result<Option<Vec<Option<Tensor>>>> + Send + Sync;
pub(super) type PostHook = dyn Fn(&[Option<Tensor>], &[Option<Tensor>]) -> Result<Option<Vec<Option<Tensor>>>>
    + Send
    + Sync;
type AccumulatedHook = dyn Fn(&Tensor) -> Result<()> + Send + Sync;

/// The hooks of a node or of a leaf's accumulator; nothing is allocated until there is one.
#[derive(Default)]
pub(crate) struct Hooks(OnceLock<Arc<Mutex<Lists>>>);

/// Hooks in the order of registration, each with a number of its own.
type List<F> = Vec<(u64, Arc<F>)>;

/// What a hook owns in another language, shared with the hook itself.
pub(super) type Owned = Option<Arc<dyn Any + Send + Sync>>;

#[derive(Default)]
struct Lists {
    outputs: Vec<OutputHooks>,
    pre: List<PreHook>,
    post: List<PostHook>,
    accumulated: List<AccumulatedHook>,
    /// What hooks other than tensors' own in another language, by their numbers.
    owned: Vec<(u64, Arc<dyn Any + Send + Sync>)>,
}

/// The hooks of one tensor that a node made.
struct OutputHooks {
    output: u32,
    hooks: List<dyn Hook>,
    /// Gets the gradient as its `.grad()` too.
    retained: Option<WeakTensor>,
}

impl Lists {
    fn output(&mut self, output: u32) -> &mut OutputHooks {
        let index = self.outputs.iter().position(|hooks| hooks.output == output);
        let index = index.unwrap_or_else(|| {
            self.outputs.push(OutputHooks { output, hooks: Vec::new(), retained: None });
            self.outputs.len() - 1
        });
        &mut self.outputs[index]
    }
}

impl Hooks {
    /// Whether there never was one.
    pub(super) fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    fn add(&self, push: impl FnOnce(&mut Lists, u64)) -> HookHandle {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let lists = self.0.get_or_init(Arc::default);
        push(&mut lists.lock(), id);
        HookHandle { id, lists: Arc::downgrade(lists) }
    }

    /// A copy of what `look` finds, so that hooks run outside the lock and may change the lists.
    fn copy<R: Default>(&self, look: impl FnOnce(&Lists) -> R) -> R {
        self.0.get().map_or_else(R::default, |lists| look(&lists.lock()))
    }

    /// What the hooks own in another language; nothing while somebody changes the lists.
    pub(super) fn each_foreign(&self, look: &mut dyn FnMut(&dyn Any)) {
        let Some(lists) = self.0.get().and_then(|lists| lists.try_lock()) else { return };
        let hooks = lists.outputs.iter().flat_map(|output| &output.hooks);
        hooks.filter_map(|(_, hook)| hook.foreign()).for_each(&mut *look);
        lists.owned.iter().for_each(|(_, owned)| look(&**owned));
    }

    /// Takes all hooks away, to be dropped outside of every lock.
    pub(super) fn take_all(&self) -> impl Sized + use<> {
        self.0.get().map(|lists| std::mem::take(&mut *lists.lock()))
    }

    /// Keeps something of another language that is no hook.
    pub(super) fn keep(&self, value: Arc<dyn Any + Send + Sync>) {
        self.add(|lists, id| lists.owned.push((id, value)));
    }

    /// The first that was kept of type `T`.
    pub(super) fn kept<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let mut owned = self.copy(|lists| lists.owned.clone()).into_iter();
        owned.find_map(|(_, value)| value.downcast().ok())
    }

    pub(super) fn add_pre(&self, hook: Arc<PreHook>, owned: Owned) -> HookHandle {
        self.add(|lists, id| {
            lists.pre.push((id, hook));
            lists.owned.extend(owned.map(|owned| (id, owned)));
        })
    }

    pub(super) fn add_post(&self, hook: Arc<PostHook>, owned: Owned) -> HookHandle {
        self.add(|lists, id| {
            lists.post.push((id, hook));
            lists.owned.extend(owned.map(|owned| (id, owned)));
        })
    }

    fn add_accumulated(&self, hook: Arc<AccumulatedHook>, owned: Owned) -> HookHandle {
        self.add(|lists, id| {
            lists.accumulated.push((id, hook));
            lists.owned.extend(owned.map(|owned| (id, owned)));
        })
    }

    /// Backward will leave the gradient of `output` on `tensor` too.
    pub(super) fn retain(&self, output: u32, tensor: WeakTensor) {
        self.0.get_or_init(Arc::default).lock().output(output).retained = Some(tensor);
    }

    /// Gives up what [`Hooks::retain`] noted for `output`.
    pub(super) fn stop_retaining(&self, output: u32) -> Option<WeakTensor> {
        self.0.get().and_then(|lists| lists.lock().output(output).retained.take())
    }

    /// Runs the hooks of the tensors on their gradients. A gradient that is zero everywhere may be
    /// missing.
    pub(super) fn run_on_tensors(&self, grads: &mut [Option<Tensor>]) -> Result<()> {
        let found: Vec<(u32, List<dyn Hook>, Option<WeakTensor>)> = self.copy(|lists| {
            let outputs = lists.outputs.iter();
            outputs.map(|o| (o.output, o.hooks.clone(), o.retained.clone())).collect()
        });
        for (output, hooks, _) in &found {
            let Some(slot) = grads.get_mut(*output as usize) else { continue };
            for (_, hook) in hooks {
                let Some(grad) = slot.as_ref() else {
                    hook.pass()?;
                    continue;
                };
                if let Some(replacement) = hook.run(grad)? {
                    check("a hook of a tensor", grad, &replacement)?;
                    *slot = Some(replacement);
                }
            }
        }
        for (output, _, retained) in &found {
            let grad = grads.get(*output as usize).and_then(Option::as_ref);
            let tensor = retained.as_ref().and_then(WeakTensor::upgrade);
            if let (Some(grad), Some(tensor)) = (grad, tensor) {
                super::accumulate::retain(&tensor, grad)?;
            }
        }
        Ok(())
    }

    /// Runs the node's pre-hooks on the gradients of its outputs.
    pub(super) fn run_pre(&self, grads: &mut [Option<Tensor>]) -> Result<()> {
        for (_, hook) in self.copy(|lists| lists.pre.clone()) {
            if let Some(replacement) = hook(grads)? {
                replace("a pre-hook of a node", grads, replacement)?;
            }
        }
        Ok(())
    }

    pub(super) fn has_post(&self) -> bool {
        self.copy(|lists| !lists.post.is_empty())
    }

    /// Runs the node's post-hooks on the gradients of its inputs, `from` being those of its
    /// outputs.
    pub(super) fn run_post(&self, grads: &mut Grads, from: &[Option<Tensor>]) -> Result<()> {
        for (_, hook) in self.copy(|lists| lists.post.clone()) {
            if let Some(replacement) = hook(grads, from)? {
                replace("a post-hook of a node", grads, replacement)?;
            }
        }
        Ok(())
    }

    /// Runs the hooks of a leaf whose gradient was just written.
    pub(super) fn run_accumulated(&self, leaf: &Tensor) -> Result<()> {
        self.copy(|lists| lists.accumulated.clone()).iter().try_for_each(|(_, hook)| hook(leaf))
    }
}

/// Puts a hook's gradients in the place of those that it saw.
fn replace(
    who: &str,
    grads: &mut [Option<Tensor>],
    replacement: Vec<Option<Tensor>>,
) -> Result<()> {
    if replacement.len() != grads.len() {
        return Err(Error::autograd(
            "hook",
            format!(
                "{who} returned {} gradients for {}; return as many as it was given, or None to change nothing",
                replacement.len(),
                grads.len()
            ),
        ));
    }
    for (grad, new) in grads.iter().zip(&replacement) {
        if let (Some(grad), Some(new)) = (grad, new) {
            check(who, grad, new)?;
        }
    }
    for (grad, new) in grads.iter_mut().zip(replacement) {
        *grad = new;
    }
    Ok(())
}

/// A hook may change a gradient's values and nothing else.
fn check(who: &str, grad: &Tensor, new: &Tensor) -> Result<()> {
    let same =
        new.shape() == grad.shape() && new.dtype() == grad.dtype() && new.device() == grad.device();
    if same {
        return Ok(());
    }
    Err(Error::autograd(
        "hook",
        format!(
            "{who} replaced a gradient of shape {:?}, {} on {}, by one of shape {:?}, {} on {}; return a tensor \
             that is like the one it was given",
            grad.shape(),
            grad.dtype(),
            grad.device(),
            new.shape(),
            new.dtype(),
            new.device()
        ),
    ))
}

/// Takes its hook away again. Dropping it leaves the hook in place.
#[derive(Debug)]
pub struct HookHandle {
    id: u64,
    lists: Weak<Mutex<Lists>>,
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hooks")
    }
}

impl HookHandle {
    /// Removes the hook.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
    /// x.register_hook(|grad| grad.mul(10.0).map(Some))?.remove();
    /// x.mul(2.0)?.backward()?;
    /// assert_eq!(x.grad().unwrap().item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn remove(self) {
        fn take<F: ?Sized>(list: &mut List<F>, id: u64) -> Option<Arc<F>> {
            let index = list.iter().position(|hook| hook.0 == id)?;
            Some(list.remove(index).1)
        }
        let Some(lists) = self.lists.upgrade() else { return };
        let id = self.id;
        // What is found is dropped after the lock: a hook may hold the last handle of a graph.
        let mut guard = lists.lock();
        let tensor = guard.outputs.iter_mut().find_map(|output| take(&mut output.hooks, id));
        let pre = take(&mut guard.pre, id);
        let post = take(&mut guard.post, id);
        let accumulated = take(&mut guard.accumulated, id);
        let owned = take(&mut guard.owned, id);
        drop(guard);
        drop((tensor, pre, post, accumulated, owned));
    }
}

impl Tensor {
    /// Calls `hook` with this tensor's gradient whenever backward computes it; a returned tensor
    /// replaces it.
    ///
    /// The hook belongs to the value that the tensor has now: after an in-place write it still sees
    /// the gradient of the value before.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// x.register_hook(|grad| grad.mul(10.0).map(Some))?;
    /// x.mul(2.0)?.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [20.0, 20.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        self.register_hook_object(Arc::new(hook))
    }

    /// [`Tensor::register_hook`] for a hook that is more than a closure, as in
    /// [`Tensor::each_foreign_hook`].
    #[track_caller]
    pub fn register_hook_object(&self, hook: Arc<dyn Hook>) -> Result<HookHandle> {
        const OP: &str = "register_hook";
        super::rules::check_up_to_date(OP, self)?;
        let edge = self.edge().ok_or_else(|| {
            Error::autograd(
                OP,
                "cannot register a hook on a tensor that doesn't require gradient: it would never run",
            )
        })?;
        Ok(edge.hooks().add(|lists, id| lists.output(edge.output()).hooks.push((id, hook))))
    }

    /// Calls `hook` with this leaf after each time that backward wrote its gradient: the place for
    /// an optimizer step that frees the gradient at once.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor, no_grad};
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// x.register_post_accumulate_grad_hook(|x| {
    ///     no_grad(|| x.sub_(&x.grad().unwrap()).map(drop))?;
    ///     x.set_grad(None)
    /// })?;
    /// x.mul(3.0)?.sum()?.backward()?;
    /// assert_eq!(x.to_vec::<f32>()?, [-2.0, -2.0]);
    /// assert!(x.grad().is_none());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        self.register_post_accumulate_grad_hook_owning(hook, None)
    }

    /// As [`Tensor::register_post_accumulate_grad_hook`], for a hook that owns something in another
    /// language; see [`Tensor::each_foreign_hook`].
    #[track_caller]
    pub fn register_post_accumulate_grad_hook_owning(
        &self,
        hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
        owned: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Result<HookHandle> {
        let Some(Edge::Leaf(accumulator)) = self.edge() else {
            return Err(Error::autograd(
                "register_post_accumulate_grad_hook",
                "post accumulate grad hooks cannot be registered on non-leaf tensors, nor on leaves that don't require \
                 gradient; for other tensors use `register_hook`",
            ));
        };
        Ok(accumulator.hooks.add_accumulated(Arc::new(hook), owned))
    }

    /// Shows `look` what the hooks on this tensor's gradient and the custom functions behind it own
    /// in another language ([`Hook::foreign`]), as far as this tensor alone keeps them. It waits
    /// for nobody, so that a garbage collector can call it: while another thread changes the hooks,
    /// it shows none. It looks at the nearest nodes of the graph only.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Hook, Result, Tensor};
    /// struct Named(&'static str);
    /// impl Hook for Named {
    ///     fn run(&self, _: &Tensor) -> Result<Option<Tensor>> { Ok(None) }
    ///     fn foreign(&self) -> Option<&dyn std::any::Any> { Some(&self.0) }
    /// }
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// x.register_hook_object(std::sync::Arc::new(Named("a")))?;
    /// let mut seen = Vec::new();
    /// x.each_foreign_hook(&mut |it| seen.extend(it.downcast_ref::<&str>().copied()));
    /// assert_eq!(seen, ["a"]);
    /// x.remove_own_hooks();
    /// x.each_foreign_hook(&mut |_| unreachable!());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn each_foreign_hook(&self, look: &mut dyn FnMut(&dyn Any)) {
        self.slot().try_read(|state| state.each_own(&mut |place| place.each_foreign(look)));
    }

    /// Shows `look` the tensors that this one alone keeps: its gradient, and what it is a view of.
    /// For a garbage collector, as [`Tensor::each_foreign_hook`].
    pub fn each_own_tensor(&self, look: &mut dyn FnMut(&Tensor)) {
        self.slot().try_read(|state| {
            let grad = state.grad.as_ref().map(|grad| &grad.0);
            grad.filter(|grad| grad.is_sole_handle()).into_iter().for_each(&mut *look);
        });
        if let Some(view) = self.view_of().filter(|view| Arc::strong_count(view) == 1) {
            Some(view.base()).filter(|base| base.is_sole_handle()).into_iter().for_each(look);
        }
    }

    /// Removes the hooks that [`Tensor::each_foreign_hook`] looks at.
    pub fn remove_own_hooks(&self) {
        let mut removed = Vec::new();
        self.slot().read(|state| {
            state.each_own(&mut |place| removed.push(place.take_foreign()));
        });
        // They are dropped after the locks: a hook may own anything.
        drop(removed);
    }
}

impl State {
    /// The nodes and accumulators that this tensor alone keeps: others may hold its node or, in
    /// graphs that it is a leaf of, its accumulator.
    fn each_own(&self, look: &mut dyn FnMut(&Edge)) {
        let node = self.node.as_ref().map(|(node, output)| Edge::Node(node.clone(), *output));
        let leaf = self.accumulator.as_ref().map(|leaf| Edge::Leaf(leaf.clone()));
        // One more for the copy here.
        for place in [node, leaf].into_iter().flatten().filter(|place| place.holders() == 2) {
            place.each_own(look);
        }
    }
}
