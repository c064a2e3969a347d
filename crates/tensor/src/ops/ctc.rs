//! Connectionist temporal classification: minus the log-likelihood of sequences of labels.

use std::sync::Arc;

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Properties, source_files};

use super::loss::info;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Promotion, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::ctc::{self as cpu, CtcArgs};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// [log-probabilities (steps, sequences, classes), labels] -> [loss of each sequence, logarithms of
/// the forward sums].
#[derive(Clone, Debug)]
pub(crate) struct CtcLoss {
    pub(crate) input_lengths: Vec<usize>,
    pub(crate) target_lengths: Vec<usize>,
    pub(crate) target_starts: Vec<usize>,
    pub(crate) blank: usize,
    pub(crate) zero_infinity: bool,
}

impl CtcLoss {
    fn args(&self) -> CtcArgs<'_> {
        CtcArgs {
            input_lengths: &self.input_lengths,
            target_lengths: &self.target_lengths,
            target_starts: &self.target_starts,
            blank: self.blank,
            zero_infinity: self.zero_infinity,
        }
    }
}

impl Operation for CtcLoss {
    fn info(&self) -> &'static OpInfo {
        &CTC_LOSS
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (steps, dtype) = (inputs[0].shape()[0], inputs[0].dtype);
        let sequences = self.input_lengths.len();
        let sums = Meta::contiguous(&[sequences, steps, self.args().states()], dtype)?;
        let losses = Meta::contiguous(&[sequences], dtype)?;
        Ok(Inferred::Exact(smallvec::smallvec![losses, sums]))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0).and(Saves::input(1)).and(Saves::output(0)).and(Saves::output(1))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::ctc_loss(launch, self.args())
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::ctc_loss(launch, self.args())
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?.contiguous()?;
        let inputs = [
            &grad,
            backward.input(0)?,
            backward.input(1)?,
            backward.output(0)?,
            backward.output(1)?,
        ];
        let own = apply_one(&CtcLossBackward(self.clone()), &inputs, Site::in_force())?;
        Ok(smallvec::smallvec![Some(own), None])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// [grad, log-probabilities, labels, losses, forward sums] -> the gradient. PyTorch's is not
/// differentiable either.
#[derive(Clone, Debug)]
struct CtcLossBackward(CtcLoss);

impl Operation for CtcLossBackward {
    fn info(&self) -> &'static OpInfo {
        &CTC_LOSS_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[1].shape(), inputs[1].dtype)?))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::ctc_backward_workspace_bytes(self.0.args(), inputs[1].shape()[2])
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::ctc_loss_backward(launch, self.0.args())
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cpu::ctc_backward_workspace_bytes(self.0.args(), inputs[1].shape()[2])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::ctc_loss_backward(launch, self.0.args())
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

pub(super) static CTC_LOSS: OpInfo = OpInfo {
    dtypes: DTypes::of(&[DType::F32, DType::F64]),
    cuda: OnCuda::Kernels(&source_files::CTC),
    inputs: &[Input::Given, Input::Index],
    promotion: Promotion::None,
    ..info(
        "ctc_loss",
        &[
            "ctc_loss(Tensor self, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor",
        ],
    )
};
/// Internal: reached only through the derivative. It stands in the graph, as PyTorch's, so that who
/// differentiates it hears that it has no derivative.
static CTC_LOSS_BACKWARD: OpInfo = OpInfo {
    dtypes: DTypes::of(&[DType::F32, DType::F64]),
    cuda: OnCuda::Kernels(&source_files::CTC),
    inputs: &[Input::Given],
    promotion: Promotion::None,
    ..info("ctc_loss_backward", &[])
};
