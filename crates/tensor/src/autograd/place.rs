//! Where gradients start from and where they are asked for: at a tensor, or at an edge of the graph
//! whose tensor may be gone.

use std::cell::RefCell;

use plimsoll_core::{DType, Device, Error, Result};
use smallvec::SmallVec;

use super::grad_fn::GradFn;
use super::node::Edge;
use super::rules;
use crate::{Tensor, WeakTensor};

/// A tensor, or the place in the graph where its gradient arrives. The place lives as long as the
/// graph, and holds no bytes of the tensor.
///
/// ```
/// use plimsoll_tensor::{DType, GradOptions, GradientPlace, Tensor, grad_between};
/// let x = Tensor::full(&[], 3.0, DType::F64)?.requires_grad_(true)?;
/// let y = x.mul(&x)?;
/// let (node, output) = y.gradient_edge().unwrap();
/// let z = y.mul(5.0)?;
/// drop(y);
/// let places = [GradientPlace::Edge(&node, output)];
/// let grads = grad_between(&[(&z).into()], &places, GradOptions::default())?;
/// assert_eq!(grads[0].as_ref().unwrap().item::<f64>()?, 5.0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum GradientPlace<'a> {
    /// Where this tensor's gradient arrives.
    Tensor(&'a Tensor),
    /// Where the gradient of this output of the node arrives; see [`Tensor::gradient_edge`].
    Edge(&'a GradFn, u32),
}

impl<'a> From<&'a Tensor> for GradientPlace<'a> {
    fn from(tensor: &'a Tensor) -> GradientPlace<'a> {
        GradientPlace::Tensor(tensor)
    }
}

/// What a gradient must look like to start from a place.
pub(super) struct Wanted {
    pub(super) shape: SmallVec<[usize; 5]>,
    pub(super) dtype: DType,
    pub(super) device: Device,
}

impl Wanted {
    /// The gradient of a place with one element. `frees`: the graph is gone after this backward.
    pub(super) fn ones(&self, place: GradientPlace<'_>, frees: bool) -> Result<Tensor> {
        let ones = match place {
            GradientPlace::Tensor(tensor) => tensor.ones_like()?,
            GradientPlace::Edge(..) => {
                let sizes: SmallVec<[i64; 5]> = self.shape.iter().map(|_| 1).collect();
                Tensor::ones(&sizes, (self.dtype, self.device))?
            }
        };
        ONE.set(frees.then(|| (ones.downgrade(), ones.storage().writes())));
        Ok(ones)
    }
}

thread_local! {
    /// The gradient that the backward under way in this thread started from by itself, and the
    /// writes to its memory until then, if that backward frees its graph.
    static ONE: RefCell<Option<(WeakTensor, u32)>> = const { RefCell::new(None) };
}

/// A backward of this thread, from its roots to its end. Within a hook of another one it says
/// nothing of that one's gradient, nor that one's of its own.
pub(super) struct OneScope(Option<(WeakTensor, u32)>);

impl OneScope {
    pub(super) fn enter() -> OneScope {
        OneScope(ONE.take())
    }
}

impl Drop for OneScope {
    fn drop(&mut self) {
        let outer = self.0.take();
        let _ = ONE.try_with(|one| one.replace(outer));
    }
}

/// Whether `grad` is known to be 1 without a look at its memory: it is what the backward under way
/// started from by itself, nobody wrote to it since, and nobody outside could. That backward frees
/// its graph, so what a node saved may be handed out as it is.
pub(crate) fn is_one(grad: &Tensor) -> bool {
    ONE.with_borrow(|one| match one {
        Some((one, writes)) => {
            let storage = grad.storage();
            one.upgrade().is_some_and(|one| one.is(grad))
                && !storage.is_exposed()
                && storage.writes() == *writes
        }
        None => false,
    })
}

impl GradientPlace<'_> {
    /// The edge; none if the tensor needs no gradient.
    pub(super) fn edge(&self, op: &'static str) -> Result<Option<Edge>> {
        match self {
            GradientPlace::Tensor(tensor) => {
                rules::check_up_to_date(op, tensor)?;
                Ok(tensor.edge())
            }
            GradientPlace::Edge(node, output) => node.output(*output).map(Some).ok_or_else(|| {
                let outputs = node.outputs();
                Error::autograd(
                    op,
                    format!("{} has {outputs} outputs, and no output {output}", node.name()),
                )
            }),
        }
    }

    /// The shape, dtype and device of the gradient.
    pub(super) fn wanted(&self, op: &'static str) -> Result<Wanted> {
        let of = |tensor: &Tensor| Wanted {
            shape: tensor.shape().into(),
            dtype: tensor.dtype(),
            device: tensor.device(),
        };
        match self {
            GradientPlace::Tensor(tensor) => Ok(of(tensor)),
            GradientPlace::Edge(node, output) => match node.output(*output) {
                Some(Edge::Node(node, _)) => {
                    let meta = &node.outputs[*output as usize];
                    Ok(Wanted {
                        shape: meta.shape().into(),
                        dtype: meta.dtype,
                        device: node.entry.device(),
                    })
                }
                _ => node.variable().as_ref().map(of).ok_or_else(|| {
                    Error::autograd(op, "nobody holds the leaf whose gradient arrives there")
                }),
            },
        }
    }
}
