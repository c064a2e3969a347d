//! What lies behind a tensor in its graph, for walks that begin elsewhere: another language knows
//! the names that lead to a tensor, and asks here for the rest of the path.

use std::collections::HashSet;
use std::sync::Arc;

use super::growth_watch::GrowthWatch;
use crate::autograd::node::Node;
use crate::{GradFn, Tensor};

/// What tells a tensor's memory apart: a number for its arena and the address of its block, or, on
/// a device that takes memory back, 0 and a number that stays wherever the bytes go. `None` if they
/// are not the runtime's own.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, memory};
/// let x = Tensor::zeros(&[4], DType::F32)?;
/// assert_eq!(memory::block_of(&x), memory::block_of(&x.narrow(0, 1, 2)?));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn block_of(tensor: &Tensor) -> Option<(usize, usize)> {
    tensor.storage().watch_key()
}

/// What a walk found behind a tensor.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BehindTensor {
    /// The blocks of values that nodes saved.
    pub saved: Vec<(usize, usize)>,
    /// Nodes that have outlived their steps.
    pub old_nodes: u64,
}

/// Follows graphs, each node once.
#[derive(Debug, Default)]
pub struct GraphWalk {
    known: HashSet<usize>,
}

impl GraphWalk {
    /// What the graph behind `tensor` holds, without what was met before. Nothing is unpacked or
    /// computed.
    ///
    /// ```
    /// use plimsoll_tensor::memory::{GraphWalk, GrowthWatch, block_of};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let watch = GrowthWatch::new(None);
    /// let x = Tensor::ones(&[4], DType::F32)?.requires_grad_(true)?;
    /// let y = x.exp()?;
    /// let mut walk = GraphWalk::default();
    /// assert_eq!(walk.behind(&y.sum()?, &watch).saved, [block_of(&y).unwrap()]);
    /// assert!(walk.behind(&y, &watch).saved.is_empty());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn behind(&mut self, tensor: &Tensor, watch: &GrowthWatch) -> BehindTensor {
        match tensor.try_place_in_graph() {
            (_, _, Some(root)) => self.behind_root(&root, watch),
            _ => BehindTensor::default(),
        }
    }

    /// The same behind a node that is kept by itself, and of the node.
    ///
    /// ```
    /// use plimsoll_tensor::memory::{GraphWalk, GrowthWatch, block_of};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let watch = GrowthWatch::new(None);
    /// let y = Tensor::ones(&[4], DType::F32)?.requires_grad_(true)?.exp()?;
    /// let node = y.sum()?.grad_fn().unwrap();
    /// assert_eq!(GraphWalk::default().behind_node(&node, &watch).saved, [block_of(&y).unwrap()]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn behind_node(&mut self, node: &GradFn, watch: &GrowthWatch) -> BehindTensor {
        node.node().map_or_else(BehindTensor::default, |root| self.behind_root(root, watch))
    }

    fn behind_root(&mut self, root: &Arc<Node>, watch: &GrowthWatch) -> BehindTensor {
        let mut behind = BehindTensor::default();
        self.follow(root, &mut |node| {
            behind.old_nodes += u64::from(watch.is_old_node(node.sequence()));
            node.each_saved(&mut |storage| behind.saved.extend(storage.watch_key()));
        });
        behind
    }

    /// Shows `look` every node from `root` on that was not met before.
    pub(super) fn follow(&mut self, root: &Arc<Node>, look: &mut dyn FnMut(&Arc<Node>)) {
        /// Nodes that one walk follows before it gives up.
        const MOST_NODES: usize = 500_000;
        let mut stack: Vec<&Arc<Node>> = vec![root];
        while let Some(node) = stack.pop() {
            if self.known.len() < MOST_NODES && self.known.insert(Arc::as_ptr(node).addr()) {
                look(node);
                stack.extend(node.parents());
            }
        }
    }
}
