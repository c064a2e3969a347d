//! An instance as a graph: its leaves, and the results that depend on them.

use plimsoll_core::{Device, Result};
use plimsoll_tensor::{GradOptions, Tensor, grad};

use crate::cases::{Inputs, Instance};
use crate::subject::Stage;

/// What [`Graph::record`] recorded.
pub(super) struct Graph {
    leaves: Vec<Tensor>,
    /// The results that depend on a leaf.
    connected: Vec<Tensor>,
    /// The gradient that comes in to each of them.
    ones: Vec<Option<Tensor>>,
}

impl Graph {
    /// Calls the operation with leaves in place of the inputs that have gradients.
    pub(super) fn record(instance: &Instance<'_>, device: Device) -> Result<Graph> {
        let case = instance.case;
        let stage = Stage::new(instance, device)?;
        let mut tensors = Vec::new();
        let mut leaves = Vec::new();
        for (i, staged) in stage.inputs.tensors.iter().enumerate() {
            if !case.gradients.contains(&i) || !staged.dtype().is_float() {
                tensors.push(staged.clone());
                continue;
            }
            let leaf = staged.detach().requires_grad_(true)?;
            // A leaf may not be written in place; a copy of it may.
            let written = case.writes.contains(&i);
            tensors.push(if written { leaf.clone_tensor()? } else { leaf.clone() });
            leaves.push(leaf);
        }
        let (dtype, other) = (instance.dtype, instance.other);
        let outputs = case.call(&Inputs { tensors, device, dtype, other })?;
        let connected: Vec<Tensor> = outputs.into_iter().filter(Tensor::requires_grad).collect();
        let ones = connected.iter().map(|output| output.detach().ones_like().map(Some));
        let ones = ones.collect::<Result<_>>()?;
        Ok(Graph { leaves, connected, ones })
    }

    /// The leaves' gradients; the graph stays.
    pub(super) fn gradients(&self) -> Result<Vec<Option<Tensor>>> {
        if self.connected.is_empty() {
            return Ok(Vec::new());
        }
        let options = GradOptions {
            grad_outputs: self.ones.clone(),
            retain_graph: true,
            allow_unused: true,
            ..GradOptions::default()
        };
        let connected: Vec<&Tensor> = self.connected.iter().collect();
        grad(&connected, &self.leaves.iter().collect::<Vec<_>>(), options)
    }
}
