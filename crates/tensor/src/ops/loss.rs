//! Losses that compare each element with its target: one kernel for the values, one for the
//! gradient. Backward reads the operands and nothing else; the methods reduce the values.

use std::sync::Arc;

use plimsoll_core::Result;

use super::elementwise;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Promotion,
    Saves,
};
use crate::prepare::apply_one;
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::loss as cpu;
pub(crate) use plimsoll_kernels::cpu::loss::Loss;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// The loss of each element of [x, target].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementLoss(pub(crate) Loss);

impl ElementLoss {
    /// The derivative by x times `grad`, in differentiable operations.
    fn slope(&self, grad: &Tensor, x: &Tensor, target: &Tensor) -> Result<Tensor> {
        let difference = x.sub(target)?;
        let slope = match self.0 {
            Loss::Mse => difference.mul(2.0)?,
            Loss::SmoothL1(beta) => {
                let near = difference.abs()?.lt(beta)?;
                Tensor::where_(&near, &difference.div(beta)?, &difference.sign()?)?
            }
            Loss::Huber(delta) => {
                let near = difference.abs()?.le(delta)?;
                Tensor::where_(&near, &difference, &difference.sign()?.mul(delta)?)?
            }
            Loss::BinaryCrossEntropy => {
                difference.div(&x.neg()?.add(1.0)?.mul(x)?.maximum(1e-12)?)?
            }
            Loss::BinaryCrossEntropyWithLogits => x.sigmoid()?.sub(target)?,
        };
        grad.mul(&slope)
    }

    /// The derivative by the target times `grad`.
    fn target_slope(&self, grad: &Tensor, x: &Tensor, target: &Tensor) -> Result<Tensor> {
        match self.0 {
            Loss::Mse | Loss::SmoothL1(_) | Loss::Huber(_) => self.slope(grad, x, target)?.neg(),
            Loss::BinaryCrossEntropy => {
                let no = x.neg()?.log1p()?.maximum(-100.0)?;
                grad.mul(&no.sub(&x.log()?.maximum(-100.0)?)?)
            }
            Loss::BinaryCrossEntropyWithLogits => grad.mul(&x.neg()?),
        }
    }
}

impl Operation for ElementLoss {
    fn info(&self) -> &'static OpInfo {
        match self.0 {
            Loss::Mse => &MSE_LOSS,
            Loss::SmoothL1(_) => &SMOOTH_L1_LOSS,
            Loss::Huber(_) => &HUBER_LOSS,
            Loss::BinaryCrossEntropy => &BINARY_CROSS_ENTROPY,
            Loss::BinaryCrossEntropyWithLogits => &BINARY_CROSS_ENTROPY_WITH_LOGITS,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        if self.0 != Loss::BinaryCrossEntropyWithLogits {
            return elementwise::infer(self.info().name, inputs, inputs[0].dtype);
        }
        // PyTorch writes over 1 - target.
        elementwise::infer(self.info().name, &[inputs[1], inputs[0]], inputs[0].dtype)
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0).and(Saves::input(1))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::loss(launch, self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::loss(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, x, target) = (backward.grad()?, backward.input(0)?, backward.input(1)?);
        let own = backward.for_input(0, || {
            let slope = if is_grad_enabled() {
                self.slope(grad, x, target)?
            } else {
                apply_one(&ElementLossBackward(*self), &[grad, x, target], Site::in_force())?
            };
            slope.sum_to(x.shape())
        })?;
        let targets =
            backward.for_input(1, || self.target_slope(grad, x, target)?.sum_to(target.shape()))?;
        Ok(smallvec::smallvec![own, targets])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The gradient of x from [grad, x, target] in one kernel, for backward passes that nobody
/// differentiates again.
#[derive(Clone, Copy, Debug)]
struct ElementLossBackward(ElementLoss);

impl Operation for ElementLossBackward {
    fn info(&self) -> &'static OpInfo {
        &LOSS_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.0.info().name, &[inputs[1], inputs[2], inputs[0]], inputs[1].dtype)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::loss_backward(launch, self.0.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::loss_backward(launch, self.0.0)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

pub(super) const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        home: Home::Functional,
        family: "loss",
        signatures,
        differentiable: true,
        dtypes: DTypes::FLOATS,
        cuda: OnCuda::Kernels(&source_files::LOSS),
        inputs: &[Input::Operand],
        promotion: Promotion::Common,
        ..OpInfo::BARE
    }
}

static MSE_LOSS: OpInfo =
    info("mse_loss", &["mse_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor"]);
static SMOOTH_L1_LOSS: OpInfo = info(
    "smooth_l1_loss",
    &["smooth_l1_loss(Tensor self, Tensor target, str reduction='mean', float beta=1.0) -> Tensor"],
);
static HUBER_LOSS: OpInfo = info(
    "huber_loss",
    &["huber_loss(Tensor self, Tensor target, str reduction='mean', float delta=1.0) -> Tensor"],
);
static BINARY_CROSS_ENTROPY: OpInfo = info(
    "binary_cross_entropy",
    &[
        "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, str reduction='mean') -> Tensor",
    ],
);
static BINARY_CROSS_ENTROPY_WITH_LOGITS: OpInfo = info(
    "binary_cross_entropy_with_logits",
    &[
        "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, str reduction='mean') -> Tensor",
    ],
);
static L1_LOSS: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    ..info("l1_loss", &["l1_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor"])
};
/// Internal: reached only through the derivatives.
static LOSS_BACKWARD: OpInfo = OpInfo { differentiable: false, ..info("loss_backward", &[]) };

pub(crate) static OPS: &[&OpInfo] = &[
    &MSE_LOSS,
    &SMOOTH_L1_LOSS,
    &HUBER_LOSS,
    &BINARY_CROSS_ENTROPY,
    &BINARY_CROSS_ENTROPY_WITH_LOGITS,
    &L1_LOSS,
    &super::cross_entropy::NLL_LOSS,
    &super::cross_entropy::CROSS_ENTROPY,
    &super::ctc::CTC_LOSS,
];
