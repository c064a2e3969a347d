//! A node of the graph as users see it: its name, what lies behind it, and hooks on it. The node
//! itself is `node.rs`.

use std::any::Any;
use std::sync::{Arc, Weak};

use plimsoll_core::Result;

use super::custom::Function;
use super::hooks::HookHandle;
use super::mode;
use super::node::{Edge, Node};
use super::place::{GradientPlace, Wanted};
use super::saved::{self, Unpacked};
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

/// A node that somebody else keeps alive.
#[derive(Clone, Debug)]
pub struct WeakGradFn(Weak<Node>);

impl WeakGradFn {
    /// The node, if it is still there.
    pub fn upgrade(&self) -> Option<GradFn> {
        self.0.upgrade().map(|node| GradFn(Edge::Node(node, 0)))
    }
}

impl GradFn {
    pub(super) fn of(node: &Arc<Node>) -> GradFn {
        GradFn(Edge::Node(node.clone(), 0))
    }

    /// The operation's node; none for a leaf's.
    pub(crate) fn node(&self) -> Option<&Arc<Node>> {
        match &self.0 {
            Edge::Node(node, _) => Some(node),
            Edge::Leaf(_) => None,
        }
    }

    /// The same node without keeping it alive; none for a leaf's.
    pub fn downgrade(&self) -> Option<WeakGradFn> {
        match &self.0 {
            Edge::Node(node, _) => Some(WeakGradFn(Arc::downgrade(node))),
            Edge::Leaf(_) => None,
        }
    }

    /// The edge to one of its outputs, if it has that many.
    pub(super) fn output(&self, output: u32) -> Option<Edge> {
        match &self.0 {
            Edge::Node(node, _) if (output as usize) < node.outputs.len() => {
                Some(Edge::Node(node.clone(), output))
            }
            Edge::Leaf(_) if output == 0 => Some(self.0.clone()),
            _ => None,
        }
    }

    /// A number that is this node's as long as somebody holds it.
    pub fn id(&self) -> u64 {
        self.0.target().number()
    }

    /// Its place in the order in which nodes are made; a leaf's, which backward reaches last, comes
    /// after all.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// let (y, z) = (x.exp()?, x.sin()?);
    /// let (first, second) = (y.grad_fn().unwrap(), z.grad_fn().unwrap());
    /// assert!(first.sequence() < second.sequence());
    /// assert_eq!(x.gradient_edge().unwrap().0.sequence(), u64::MAX);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn sequence(&self) -> u64 {
        match &self.0 {
            Edge::Node(node, _) => node.sequence,
            Edge::Leaf(_) => u64::MAX,
        }
    }

    /// The leaf whose gradients arrive here, if this is a leaf's place and someone holds the leaf.
    pub fn variable(&self) -> Option<Tensor> {
        match &self.0 {
            Edge::Node(..) => None,
            Edge::Leaf(accumulator) => accumulator.leaf(),
        }
    }

    /// The user's own function, if it is one.
    pub fn function(&self) -> Option<&dyn Function> {
        match &self.0 {
            Edge::Node(node, _) => node.function(),
            Edge::Leaf(_) => None,
        }
    }

    /// What the operation or custom function saved, in its order; an error if it was freed or
    /// overwritten since.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// let y = x.exp()?;
    /// let saved = y.grad_fn().unwrap().saved_tensors()?;
    /// assert_eq!(saved[0].to_vec::<f32>()?, y.to_vec::<f32>()?);
    /// y.sum()?.backward()?;
    /// assert!(y.grad_fn().unwrap().saved_tensors().is_err());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn saved_tensors(&self) -> Result<Vec<Tensor>> {
        match &self.0 {
            Edge::Node(node, _) => {
                let Unpacked { inputs, outputs, .. } = saved::unpack(node)?;
                Ok(inputs.into_iter().chain(outputs).flatten().collect())
            }
            Edge::Leaf(_) => Ok(Vec::new()),
        }
    }

    /// The same by place: for each input and each output of the operation what was saved of it.
    /// Lists end with the last one that could be saved.
    #[track_caller]
    pub fn saved_by_place(&self) -> Result<[Vec<Option<Tensor>>; 2]> {
        match &self.0 {
            Edge::Node(node, _) => {
                let Unpacked { inputs, outputs, .. } = saved::unpack(node)?;
                Ok([inputs.into_vec(), outputs.into_vec()])
            }
            Edge::Leaf(_) => Ok([Vec::new(), Vec::new()]),
        }
    }

    /// Has the node keep something of another language as long as it lives, of which
    /// [`GradFn::each_foreign`] tells; see [`GradFn::kept`].
    pub fn keep(&self, value: Arc<dyn Any + Send + Sync>) {
        self.0.hooks().keep(value);
    }

    /// What the node was given to [`GradFn::keep`], the first of type `T`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// let y = x.exp()?;
    /// y.grad_fn().unwrap().keep(std::sync::Arc::new("a note"));
    /// assert_eq!(y.grad_fn().unwrap().kept::<&str>().as_deref(), Some(&"a note"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn kept<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.hooks().kept()
    }

    /// As [`Tensor::each_foreign_hook`] for the hooks of this node and the function behind it, if
    /// nobody else holds the node.
    pub fn each_foreign(&self, look: &mut dyn FnMut(&dyn Any)) {
        if self.0.holders() == 1 {
            self.0.each_own(&mut |place| place.each_foreign(look));
        }
    }

    /// Removes the hooks that [`GradFn::each_foreign`] looks at.
    pub fn remove_own_hooks(&self) {
        if self.0.holders() == 1 {
            let mut removed = Vec::new();
            self.0.each_own(&mut |place| removed.push(place.take_foreign()));
            drop(removed);
        }
    }

    /// The operation's name; `AccumulateGrad` for a leaf's.
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Edge::Node(node, _) => node.name(),
            Edge::Leaf(_) => "AccumulateGrad",
        }
    }

    /// The name of what it computes in backward, as PyTorch builds it: `MulBackward0`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// assert_eq!(x.exp()?.grad_fn().unwrap().backward_name(), "ExpBackward0");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn backward_name(&self) -> String {
        match &self.0 {
            Edge::Node(node, _) => node.backward_name(),
            Edge::Leaf(_) => "torch::autograd::AccumulateGrad".to_string(),
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

    /// How many outputs it has, each with a gradient of its own.
    pub fn outputs(&self) -> usize {
        match &self.0 {
            Edge::Node(node, _) => node.outputs.len(),
            Edge::Leaf(_) => 1,
        }
    }

    /// A tensor like one of its outputs: of its shape, dtype and device, zeros that share one
    /// element. At a leaf's place it is the leaf. An error if there is no such output, or nobody
    /// holds the leaf any more.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// let (node, output) = x.mul(3)?.gradient_edge().unwrap();
    /// let like = node.output_like(output)?; // the product itself is gone
    /// assert_eq!((like.shape(), like.dtype()), (&[2][..], DType::F32));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn output_like(&self, output: u32) -> Result<Tensor> {
        if let (Some(leaf), 0) = (self.variable(), output) {
            return Ok(leaf);
        }
        let Wanted { shape, dtype, device } =
            GradientPlace::Edge(self, output).wanted("output_like")?;
        let sizes: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
        mode::with_grad(false, || Tensor::zeros(&[], (dtype, device))?.expand(&sizes))
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
        self.0.hooks().add_pre(Arc::new(hook), None)
    }

    /// As [`GradFn::register_prehook`], for a hook that owns something in another language.
    #[track_caller]
    pub fn register_prehook_owning(
        &self,
        hook: impl Fn(&[Option<Tensor>]) -> Result<Option<Vec<Option<Tensor>>>> + Send + Sync + 'static,
        owned: Arc<dyn Any + Send + Sync>,
    ) -> HookHandle {
        self.0.hooks().add_pre(Arc::new(hook), Some(owned))
    }

    /// Calls `hook` with the gradients of the operation's inputs and of its outputs after it ran in
    /// backward. What it returns takes the place of the former.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?.requires_grad_(true)?;
    /// let y = x.mul(2.0)?;
    /// let nothing =
    ///     |inputs: &[Option<Tensor>], _: &[Option<Tensor>]| Ok(Some(vec![None; inputs.len()]));
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
        self.0.hooks().add_post(Arc::new(hook), None)
    }

    /// As [`GradFn::register_hook`], for a hook that owns something in another language.
    #[track_caller]
    pub fn register_hook_owning(
        &self,
        hook: impl Fn(&[Option<Tensor>], &[Option<Tensor>]) -> Result<Option<Vec<Option<Tensor>>>>
        + Send
        + Sync
        + 'static,
        owned: Arc<dyn Any + Send + Sync>,
    ) -> HookHandle {
        self.0.hooks().add_post(Arc::new(hook), Some(owned))
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

    /// Where this tensor's gradient goes: a node, or a leaf's own place, and which output of it.
    /// `None` if it needs no gradient.
    pub fn gradient_edge(&self) -> Option<(GradFn, u32)> {
        self.edge().map(|edge| (GradFn(edge.clone()), edge.output()))
    }
}
