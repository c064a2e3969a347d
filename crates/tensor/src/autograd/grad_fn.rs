//! A node of the graph as users see it: its name, what lies behind it, and hooks on it. The node
//! itself is `node.rs`.

use std::sync::Arc;

use plimsoll_core::Result;

use super::hooks::HookHandle;
use super::node::Edge;
use crate::Tensor;

/// A recorded operation, or the place where a leaf's gradients arrive. Holding it keeps the graph
/// behind it alive.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
/// let grad_fn = x.exp()?.grad_fn().unwrap();
/// assert_eq!(grad_fn.name(), "exp");
/// let (behind, output) = grad_fn.next_functions().remove(0).unwrap();
/// assert_eq!((behind.name(), output), ("AccumulateGrad", 0));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct GradFn(Edge);

impl GradFn {
    /// The operation's name; `AccumulateGrad` for a leaf's.
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Edge::Node(node, _) => node.name(),
            Edge::Leaf(_) => "AccumulateGrad",
        }
    }

    /// For each input of the operation, where its gradient goes: a node and which output of it.
    /// `None` for an input that needs no gradient.
    pub fn next_functions(&self) -> Vec<Option<(GradFn, u32)>> {
        match &self.0 {
            Edge::Node(node, _) => {
                let edges = node.edges.iter();
                edges.map(|e| e.clone().map(|e| (GradFn(e.clone()), e.output()))).collect()
            }
            Edge::Leaf(_) => Vec::new(),
        }
    }

    /// Calls `hook` with the gradients of the operation's outputs before it runs in backward, after
    /// the hooks of the tensors themselves. What it returns takes their place.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
    /// let y = x.mul(2.0)?;
    /// let tenfold = |grads: &[Option<Tensor>]| {
    ///     Ok(Some(vec![grads[0].as_ref().map(|grad| grad.mul(10.0)).transpose()?]))
    /// };
    /// y.grad_fn().unwrap().register_prehook(tenfold);
    /// y.backward()?;
    /// assert_eq!(x.grad().unwrap().item::<f32>()?, 20.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn register_prehook(
        &self,
        hook: impl Fn(&[Option<Tensor>]) -> Result<Option<Vec<Option<Tensor>>>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.0.hooks().add_pre(Arc::new(hook))
    }

    /// Calls `hook` with the gradients of the operation's inputs and of its outputs after it ran in
    /// backward. What it returns takes the place of the former.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
    /// let y = x.mul(2.0)?;
    /// let nothing = |inputs: &[Option<Tensor>], _: &[Option<Tensor>]| Ok(Some(vec![None; inputs.len()]));
    /// y.grad_fn().unwrap().register_hook(nothing);
    /// y.backward()?;
    /// assert!(x.grad().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn register_hook(
        &self,
        hook: impl Fn(&[Option<Tensor>], &[Option<Tensor>]) -> Result<Option<Vec<Option<Tensor>>>>
        + Send
        + Sync
        + 'static,
    ) -> HookHandle {
        self.0.hooks().add_post(Arc::new(hook))
    }
}

impl PartialEq for GradFn {
    fn eq(&self, other: &GradFn) -> bool {
        self.0.target() == other.0.target()
    }
}

impl std::fmt::Debug for GradFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GradFn({})", self.name())
    }
}

impl Tensor {
    /// The recorded operation that made this tensor; `None` for a leaf.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// assert!(x.grad_fn().is_none());
    /// assert_eq!(x.exp()?.grad_fn().unwrap().name(), "exp");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn grad_fn(&self) -> Option<GradFn> {
        match self.edge()? {
            edge @ Edge::Node(..) => Some(GradFn(edge)),
            Edge::Leaf(_) => None,
        }
    }
}
