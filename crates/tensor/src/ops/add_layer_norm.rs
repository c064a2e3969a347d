//! A sum and its layer normalization in one reading: what goes around a block of a network is added
//! to what comes out of it, and the next block begins with the norm of both.

use std::sync::Arc;

use plimsoll_core::Result;
use plimsoll_cuda::{Properties, source_files};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::layer_norm::LayerNorm;
use super::nn::info;
use crate::Tensor;
use crate::autograd::{is_free_to_take, is_grad_enabled};
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{Backward, Grads, Inferred, Metas, Needs, OnCuda, OpInfo, Operation, Saves};
use crate::prepare::apply;
use plimsoll_kernels::cpu::binary;
use plimsoll_kernels::cpu::layer_norm as cpu;
use plimsoll_kernels::{CpuLaunch, Meta, Operand};

/// Inputs [a, b, weight?, bias?]. Outputs [the norm of the sum, the sum], and [mean, 1 / deviation]
/// of each row if backward will want them.
#[derive(Clone, Debug)]
struct AddLayerNorm(LayerNorm);

impl AddLayerNorm {
    /// The inputs of the norm alone, with a sum in place of its first summand.
    fn of_norm<T: Copy>(&self, inputs: &[T], sum: T) -> SmallVec<[T; 3]> {
        std::iter::once(sum).chain(inputs[2..].iter().copied()).collect()
    }
}

impl Operation for AddLayerNorm {
    fn info(&self) -> &'static OpInfo {
        &ADD_LAYER_NORM
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        self.0.check(&self.of_norm(inputs, inputs[0]))?;
        let each = Meta::contiguous(inputs[0].shape(), inputs[0].dtype)?;
        let mut outputs: Metas = smallvec::smallvec![each.clone(), each];
        if needs.any() {
            outputs.extend(self.0.moments(inputs[0])?);
        }
        Ok(Inferred::Exact(outputs))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let weighs = self.0.weight;
        let summands = needs.has(0) || needs.has(1);
        let values = summands || (weighs && needs.has(2));
        let made = Saves::output(1).and(Saves::output(2)).and(Saves::output(3));
        made.when(values).and(Saves::input(2).when(weighs && summands))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        let normed: SmallVec<[Meta; 3]> =
            outputs[..1].iter().chain(&outputs[2..]).cloned().collect();
        let inputs = self.of_norm(inputs, &outputs[1]);
        cpu::layer_norm_workspace_bytes(&inputs, &normed, self.0.rank())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let (inputs, outputs) = (&launch.inputs[..2], &launch.outputs[1..2]);
        binary::add(&CpuLaunch { inputs, outputs, ..*launch }, 1.into())?;
        let inputs: SmallVec<[Operand<'_>; 3]> = self.of_norm(launch.inputs, launch.outputs[1]);
        let outputs: SmallVec<[Operand<'_>; 3]> =
            launch.outputs[..1].iter().chain(&launch.outputs[2..]).copied().collect();
        let launch = CpuLaunch { inputs: &inputs, outputs: &outputs, ..*launch };
        cpu::layer_norm(&launch, self.0.args())
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::layer_norm_workspace_bytes(inputs)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let weight = launch.inputs.get(2).filter(|_| self.0.weight);
        let bias = launch.inputs.get(self.0.bias_at(2)).filter(|_| self.0.bias);
        let length = self.0.normalized.iter().product();
        cuda::layer_norm(launch, length, self.0.eps, weight, bias, true)
    }

    /// Both summands have the sum's gradient: what came around, and the norm's, which is added to
    /// it where nobody else holds it.
    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let around = backward.grads.get(1).and_then(Option::as_ref);
        let summands = backward.needs.has(0) || backward.needs.has(1);
        let may_write = summands && !backward.seen && !is_grad_enabled();
        let total = match around {
            Some(around) if may_write && is_free_to_take(around, backward.output(1)?) => {
                Some(around)
            }
            _ => None,
        };
        let [own, weight, bias] = self.0.gradients(backward, 2, total)?;
        let both = match (own, around) {
            (None, around) => around.cloned(),
            (own, None) => own,
            (Some(own), Some(around)) if is_grad_enabled() => Some(own.add(around)?),
            (Some(own), Some(around)) => {
                own.add_(around)?;
                Some(own)
            }
        };
        Ok(self.0.placed(backward, 2, [both, weight, bias]))
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

static ADD_LAYER_NORM: OpInfo =
    OpInfo { cuda: OnCuda::Kernels(&source_files::LAYER_NORM), ..info("add_layer_norm", &[]) };

/// The norm of the sum of two tensors of one shape, dtype and device, and the sum.
pub(crate) fn add_layer_norm(
    a: &Tensor,
    b: &Tensor,
    norm: LayerNorm,
    [weight, bias]: [Option<&Tensor>; 2],
    site: Site,
) -> Result<(Tensor, Tensor)> {
    let inputs: SmallVec<[&Tensor; 4]> = [a, b].into_iter().chain(weight).chain(bias).collect();
    let mut results = apply(&AddLayerNorm(norm), &inputs, Dest::New, site)?.into_iter();
    let (Some(normed), Some(sum)) = (results.next(), results.next()) else {
        unreachable!("it has two results");
    };
    Ok((normed, sum))
}
