//! Recording: turns an operation that just ran into a node of the graph. Called by `dispatch` and
//! nobody else.

use std::sync::Arc;

use plimsoll_core::Result;
use plimsoll_memory::{OriginId, Site, current_module};

use super::hooks::Hooks;
use super::node::{Derivative, Edges, Node};
use super::saved::SavedTensors;
use super::{rules, views};
use crate::Tensor;
use crate::device::Entry;
use crate::lock::Mutex;
use crate::operation::{Needs, Operation, Saves};

/// For each input of an operation where its gradient goes. Before the operation runs: a write in
/// place moves views of what is written to a later place in the graph.
pub(crate) fn edges(name: &'static str, inputs: &[&Tensor], needs: Needs) -> Result<Edges> {
    let edge = |(index, input): (usize, &&Tensor)| {
        if !needs.has(index) {
            return Ok(None);
        }
        rules::check_up_to_date(name, input)?;
        Ok(input.edge())
    };
    inputs.iter().enumerate().map(edge).collect()
}

/// What dispatch knows of an operation that ran.
pub(crate) struct Recorded<'a> {
    pub(crate) op: &'a dyn Operation,
    pub(crate) entry: &'static Entry,
    pub(crate) inputs: &'a [&'a Tensor],
    pub(crate) needs: Needs,
    pub(crate) edges: Edges,
    pub(crate) saves: Saves,
    /// The inputs that backward needs, as they were before the operation ran.
    pub(crate) saved: SavedTensors,
    pub(crate) origin: OriginId,
    pub(crate) site: Site,
}

impl Recorded<'_> {
    fn node(&mut self, outputs: &[Tensor]) -> Result<Node> {
        let mut saved = std::mem::take(&mut self.saved);
        saved.keep_outputs(self.op.info().name, self.saves, outputs)?;
        Ok(Node {
            derivative: Derivative::Operation(self.op.share()),
            chain: None,
            sequence: Node::next_sequence(),
            origin: self.origin,
            site: self.site,
            module: current_module(),
            entry: self.entry,
            edges: std::mem::take(&mut self.edges),
            inputs: self.inputs.iter().map(|input| input.meta().clone()).collect(),
            outputs: outputs.iter().map(|output| output.meta().clone()).collect(),
            needs: self.needs,
            saved: Mutex::new(saved),
            hooks: Hooks::default(),
        })
    }

    /// The operation made new tensors.
    pub(crate) fn outputs(mut self, outputs: &[Tensor]) -> Result<()> {
        let node = Arc::new(self.node(outputs)?);
        for (index, output) in outputs.iter().enumerate().filter(|(_, o)| o.dtype().is_float()) {
            output.set_node(node.clone(), index as u32);
        }
        Ok(())
    }

    /// The operation wrote input 0 in place. Whatever can fail comes before the tensor's history
    /// changes.
    pub(crate) fn in_place(mut self, target: &Tensor) -> Result<()> {
        if !target.dtype().is_float() {
            // What was copied into integers has no gradient.
            return Ok(());
        }
        let node = self.node(std::slice::from_ref(target))?;
        match target.view_of() {
            Some(view) => drop(views::rebase(view, node)),
            None => target.set_node(Arc::new(node), 0),
        }
        Ok(())
    }
}
