//! A walk of a live graph: which operations it remembers and how many bytes each keeps alive. This
//! is the answer to "what holds my memory" when no variable does. How it is written down is
//! `graph_text.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plimsoll_memory::{OriginId, Site};

use super::node::{Edge, Node};
use crate::Tensor;

/// One recorded operation of a live graph.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// The operation's name.
    pub operation: &'static str,
    /// Who ran it.
    pub origin: OriginId,
    /// The line that ran it.
    pub site: Site,
    /// Bytes of the storages that it saved and that no node before it in this list already counted.
    pub held_bytes: usize,
    /// How many storages that are.
    pub held_storages: usize,
    /// Where the gradients of its inputs go, for those that need one.
    pub inputs: Vec<GraphInput>,
}

/// What a recorded operation was computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphInput {
    /// The operation at this place of the list.
    Node(usize),
    /// A leaf of this shape; no shape if nobody holds it any more.
    Leaf(Option<Vec<usize>>),
}

/// Lists the graph behind `tensor`, newest operation first, each storage counted once.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, walk};
/// let x = Tensor::ones(&[256], DType::F32)?.requires_grad_(true)?;
/// let y = x.exp()?.sum()?;
/// let graph = walk(&y);
/// assert_eq!(graph.iter().map(|node| node.operation).collect::<Vec<_>>(), ["sum", "exp"]);
/// assert_eq!(graph[1].held_bytes, 1024);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn walk(tensor: &Tensor) -> Vec<GraphNode> {
    let mut seen = HashSet::new();
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    let mut stack: Vec<Edge> = tensor.edge().into_iter().collect();
    while let Some(edge) = stack.pop() {
        if let Edge::Node(node, _) = edge
            && seen.insert(Arc::as_ptr(&node).addr())
        {
            stack.extend(node.edges.iter().flatten().cloned());
            nodes.push(node);
        }
    }
    nodes.sort_unstable_by_key(|node| std::cmp::Reverse(node.sequence));
    let address = |node: &Arc<Node>| Arc::as_ptr(node).addr();
    let places: HashMap<usize, usize> =
        nodes.iter().enumerate().map(|(place, node)| (address(node), place)).collect();
    let input = |edge: &Edge| match edge {
        Edge::Node(node, _) => GraphInput::Node(places[&address(node)]),
        Edge::Leaf(leaf) => GraphInput::Leaf(leaf.leaf().map(|leaf| leaf.shape().to_vec())),
    };
    let mut counted = HashSet::new();
    nodes
        .iter()
        .map(|node| {
            let saved = node.saved.lock();
            let fresh: Vec<usize> = saved
                .storages()
                .filter(|storage| counted.insert(Arc::as_ptr(storage).addr()))
                .map(|storage| storage.nbytes())
                .collect();
            GraphNode {
                operation: node.name(),
                origin: node.origin,
                site: node.site,
                held_bytes: fresh.iter().sum(),
                held_storages: fresh.len(),
                inputs: node.edges.iter().flatten().map(input).collect(),
            }
        })
        .collect()
}
