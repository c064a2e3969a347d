//! A step of training that is captured once and replayed as one launch: its batches lie where the
//! captured ones lay, its learning rate is in memory of the device.

use plimsoll_core::{Device, Error, Result};
use plimsoll_tensor::{Graph, Tensor, memory};

use super::batches::Batch;
use super::step::{Trainer, next};

pub(crate) struct CapturedStep {
    graph: Graph,
    parts: Vec<Batch>,
    loss: Tensor,
}

/// An error if a device has no graphs.
pub(crate) fn check(device: Device) -> Result<()> {
    if device.is_cpu() {
        let why =
            "--capture needs a GPU: the CPU has no graphs; leave it out, or give --device cuda";
        return Err(Error::invalid_argument(why).in_operation("train"));
    }
    Ok(())
}

impl CapturedStep {
    /// Captures a step with the next batches, which it keeps the places of; nothing runs yet.
    pub(super) fn capture(
        trainer: &mut Trainer,
        batches: &mut impl Iterator<Item = Result<Batch>>,
    ) -> Result<CapturedStep> {
        let parts: Vec<Batch> =
            (0..trainer.plan.accumulate).map(|_| next(batches)).collect::<Result<_>>()?;
        // The graph's pool shares nothing with what the steps before it left behind.
        memory::empty_cache(trainer.device);
        let (graph, loss) =
            Graph::capture(trainer.device, || trainer.learn(parts.iter().cloned().map(Ok)))?;
        Ok(CapturedStep { graph, parts, loss })
    }

    /// Puts the next batches where the graph reads them.
    pub(super) fn take(&self, batches: &mut impl Iterator<Item = Result<Batch>>) -> Result<()> {
        for (tokens, targets) in &self.parts {
            let (new_tokens, new_targets) = next(batches)?;
            tokens.copy_(&new_tokens)?;
            targets.copy_(&new_targets)?;
        }
        Ok(())
    }

    /// Queues the step; its loss.
    pub(super) fn replay(&self) -> Result<Tensor> {
        self.graph.replay()?;
        Ok(self.loss.clone())
    }
}
