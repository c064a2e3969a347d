//! A tensor's place in autograd: whether it wants a gradient, the gradient, the node that made it,
//! its hooks.
//!
//! Most tensors have none of this, and dispatch asks on every operation, so one flag outside the
//! lock answers first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::{Error, Result};

use super::accumulate::Accumulator;
use super::node::{Edge, Node};
use super::{rules, views};
use crate::Tensor;
use crate::lock::{Mutex, MutexGuard};
use crate::storage::roles::Role;

/// Empty until the tensor takes part in autograd.
pub(crate) struct Slot {
    /// Whether the state says that a gradient is wanted or a node exists.
    in_graph: AtomicBool,
    state: Mutex<Option<Box<State>>>,
}

#[derive(Default)]
pub(crate) struct State {
    /// Set on leaves by the user.
    pub(super) requires_grad: bool,
    pub(super) retains_grad: bool,
    pub(super) grad: Option<Gradient>,
    /// The node that made this tensor, and which of its outputs this is.
    pub(super) node: Option<(Arc<Node>, u32)>,
    /// For views: the storage's version when `node` was made; see `views.rs`.
    pub(super) node_version: u32,
    /// Where a leaf's gradients arrive; made when the first operation is recorded on it.
    pub(super) accumulator: Option<Arc<Accumulator>>,
}

/// A gradient in its place: counts its storage as one for as long.
pub(super) struct Gradient(pub(super) Tensor);

impl Gradient {
    fn new(grad: &Tensor) -> Gradient {
        grad.storage().take_role(Role::Gradient);
        Gradient(grad.clone())
    }
}

impl Drop for Gradient {
    fn drop(&mut self) {
        // Memory that goes with this needs no new kind first.
        if !self.0.is_sole_owner() {
            self.0.storage().leave_role(Role::Gradient);
        }
    }
}

impl Slot {
    pub(crate) const fn new() -> Slot {
        Slot { in_graph: AtomicBool::new(false), state: Mutex::new(None) }
    }

    pub(super) fn is_tracked(&self) -> bool {
        self.in_graph.load(Ordering::Acquire)
    }

    /// Reads or changes the state, which is made if need be. No operation may run inside.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut guard: MutexGuard<'_, Option<Box<State>>> = self.state.lock();
        let state = guard.get_or_insert_default();
        let result = change(state);
        self.in_graph.store(state.requires_grad || state.node.is_some(), Ordering::Release);
        result
    }

    /// Takes the state away, as if the tensor had never taken part in autograd.
    pub(super) fn take(&self) -> Option<Box<State>> {
        let mut guard = self.state.lock();
        self.in_graph.store(false, Ordering::Release);
        guard.take()
    }

    /// Reads the state if there is one.
    pub(super) fn read<R>(&self, look: impl FnOnce(&State) -> R) -> Option<R> {
        self.state.lock().as_deref().map(look)
    }

    /// Reads the state if there is one and nobody is changing it: for callers that must not wait.
    pub(super) fn try_read<R>(&self, look: impl FnOnce(&State) -> R) -> Option<R> {
        self.state.try_lock()?.as_deref().map(look)
    }
}

impl Tensor {
    /// Whether operations on this tensor are recorded: it is a leaf that wants a gradient, or came
    /// from one.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// assert!(x.requires_grad() && x.exp()?.requires_grad());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn requires_grad(&self) -> bool {
        self.slot().is_tracked()
            // In-place writes can pull a base, and with it all its views, into a graph later on.
            || self.view_of().is_some_and(|view| view.base().slot().is_tracked())
    }

    /// Whether no recorded operation made this tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// assert!(x.is_leaf() && !x.exp()?.is_leaf());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_leaf(&self) -> bool {
        self.edge().is_none_or(|edge| matches!(edge, Edge::Leaf(_)))
    }

    /// The name of the operation that made it, if one was recorded.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// assert_eq!((x.grad_fn_name(), x.exp()?.grad_fn_name()), (None, Some("exp")));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn grad_fn_name(&self) -> Option<&'static str> {
        match self.edge()? {
            Edge::Node(node, _) => Some(node.name()),
            Edge::Leaf(_) => None,
        }
    }

    /// Asks for a gradient (or no longer does). Only leaves can be changed; only floats have
    /// gradients.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// x.sum()?.backward()?;
    /// assert!(x.grad().is_some());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn requires_grad_(&self, requires_grad: bool) -> Result<Tensor> {
        const OP: &str = "requires_grad_";
        if requires_grad && !self.dtype().is_float() {
            return Err(Error::autograd(
                OP,
                format!(
                    "only Tensors of floating point dtype can require gradients, and this one is {}",
                    self.dtype()
                ),
            ));
        }
        if requires_grad && self.is_inference() && !super::is_inference_mode_enabled() {
            return Err(Error::autograd(
                OP,
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed; clone it first",
            ));
        }
        if !requires_grad && !self.is_leaf() {
            return Err(Error::autograd(
                OP,
                "you can only change requires_grad flags of leaf variables; use `detach` for a tensor outside the graph",
            ));
        }
        if self.is_leaf() {
            self.slot().with(|state| state.requires_grad = requires_grad);
            if requires_grad {
                self.storage().take_role(Role::Leaf);
            } else {
                self.storage().leave_role(Role::Leaf);
            }
        }
        Ok(self.clone())
    }

    /// The gradient that backward left here.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// assert!(x.grad().is_none());
    /// x.mul(2)?.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn grad(&self) -> Option<Tensor> {
        self.slot().read(|state| state.grad.as_ref().map(|grad| grad.0.clone())).flatten()
    }

    /// Replaces the gradient; `None` frees it, as `zero_grad(set_to_none=True)` does.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// x.sum()?.backward()?;
    /// x.set_grad(None)?; // frees it; the next backward makes it anew
    /// assert!(x.grad().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn set_grad(&self, grad: Option<&Tensor>) -> Result<()> {
        if grad.is_some_and(|grad| grad.is(self)) {
            return Err(Error::autograd(
                "set_grad",
                "a tensor cannot be its own gradient: it would keep itself alive for ever; clone it",
            ));
        }
        if let Some(grad) = grad
            && (grad.shape() != self.shape()
                || grad.dtype() != self.dtype()
                || grad.device() != self.device())
        {
            return Err(Error::autograd(
                "set_grad",
                format!(
                    "a gradient must match its tensor: {:?} {} on {} for {:?} {} on {}",
                    grad.shape(),
                    grad.dtype(),
                    grad.device(),
                    self.shape(),
                    self.dtype(),
                    self.device()
                ),
            ));
        }
        self.put_grad(grad);
        Ok(())
    }

    /// [`Tensor::set_grad`] of whatever shape.
    pub(super) fn put_grad(&self, grad: Option<&Tensor>) {
        // The old gradient is dropped after the lock: its memory goes back through the allocator.
        let new = grad.map(Gradient::new);
        let old = self.slot().with(|state| std::mem::replace(&mut state.grad, new));
        drop(old);
    }

    /// Keeps the gradient of a tensor that is not a leaf. It follows in-place writes: the gradient
    /// is that of the value that the tensor has when backward runs.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
    /// let y = x.mul(2)?;
    /// y.retain_grad()?;
    /// y.mul(5)?.sum()?.backward()?;
    /// assert_eq!(y.grad().unwrap().item::<f32>()?, 5.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn retain_grad(&self) -> Result<()> {
        const OP: &str = "retain_grad";
        rules::check_up_to_date(OP, self)?;
        match self.edge() {
            None => Err(Error::autograd(
                OP,
                "this tensor does not require gradients, so it never gets one",
            )),
            Some(Edge::Leaf(_)) => Ok(()),
            Some(Edge::Node(node, output)) => {
                let first =
                    self.slot().with(|state| !std::mem::replace(&mut state.retains_grad, true));
                if first {
                    node.hooks.retain(output, self.downgrade());
                }
                Ok(())
            }
        }
    }

    /// Whether backward keeps the gradient of this tensor, which is no leaf.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
    /// let y = x.mul(2)?;
    /// y.retain_grad()?;
    /// x.retain_grad()?;
    /// assert!(y.retains_grad() && !x.retains_grad());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn retains_grad(&self) -> bool {
        self.slot().read(|state| state.retains_grad).unwrap_or(false)
    }

    /// Takes this tensor out of the graph, for everybody who holds it; its gradient stays. A view
    /// cannot: its base would not know.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
    /// let y = x.mul(2)?;
    /// y.detach_()?;
    /// assert!(y.is_leaf() && !y.requires_grad() && x.narrow(0, 0, 1)?.detach_().is_err());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn detach_(&self) -> Result<()> {
        if self.base().is_some() {
            return Err(Error::autograd(
                "detach_",
                "Can't detach views in-place: use `detach`, or detach what it is a view of",
            ));
        }
        // The old node is dropped after the lock: it may be the last hold on a whole graph.
        let (was_leaf, node, accumulator, retains) = self.slot().with(|state| {
            let was_leaf = std::mem::replace(&mut state.requires_grad, false);
            let retains = std::mem::replace(&mut state.retains_grad, false);
            (was_leaf, state.node.take(), state.accumulator.take(), retains)
        });
        if was_leaf {
            self.storage().leave_role(Role::Leaf);
        }
        if retains && let Some((node, output)) = &node {
            node.hooks.stop_retaining(*output);
        }
        drop((node, accumulator));
        Ok(())
    }

    /// Where this tensor's gradient flows to; `None` if it needs none.
    pub(crate) fn edge(&self) -> Option<Edge> {
        if let Some(view) = self.view_of()
            && let Some(edge) = views::edge(self, view)
        {
            return Some(edge);
        }
        if !self.slot().is_tracked() {
            return None;
        }
        Some(self.slot().with(|state| match &state.node {
            Some((node, output)) => Edge::Node(node.clone(), *output),
            None => {
                let make = || Arc::new(Accumulator::new(self));
                Edge::Leaf(state.accumulator.get_or_insert_with(make).clone())
            }
        }))
    }

    /// Makes this tensor stand for a leaf that nobody holds any more.
    pub(super) fn set_accumulator(&self, accumulator: Arc<Accumulator>) {
        self.slot().with(|state| {
            state.requires_grad = true;
            state.accumulator = Some(accumulator);
        });
    }

    /// The node that made this tensor, as far as its own state says.
    pub(crate) fn own_node(&self) -> Option<Arc<Node>> {
        self.slot().read(|state| state.node.as_ref().map(|(node, _)| node.clone())).flatten()
    }

    /// Whether this is a leaf that wants a gradient, its gradient and its node, without waiting
    /// for whoever changes them.
    pub(crate) fn try_place_in_graph(&self) -> (bool, Option<Tensor>, Option<Arc<Node>>) {
        let read = self.slot().try_read(|state| {
            let grad = state.grad.as_ref().map(|grad| grad.0.clone());
            let node = state.node.as_ref().map(|(node, _)| node.clone());
            (state.requires_grad, grad, node)
        });
        read.unwrap_or_default()
    }

    /// Makes this tensor the output `output` of `node`.
    pub(crate) fn set_node(&self, node: Arc<Node>, output: u32) {
        let version = self.version();
        let new = node.clone();
        // The old node is dropped after the lock: it may be the last hold on a whole graph.
        let (was_leaf, old, accumulator, retains) = self.slot().with(|state| {
            let was_leaf = std::mem::replace(&mut state.requires_grad, false);
            state.node_version = version;
            let old = state.node.replace((node, output));
            (was_leaf, old, state.accumulator.take(), state.retains_grad)
        });
        if was_leaf {
            self.storage().leave_role(Role::Leaf);
        }
        if retains && let Some((old, output_before)) = &old {
            // Hooks stay with the value that they were registered on; a retained gradient is the
            // tensor's.
            if let Some(tensor) = old.hooks.stop_retaining(*output_before) {
                new.hooks.retain(output, tensor);
            }
        }
        drop((old, accumulator));
    }
}
