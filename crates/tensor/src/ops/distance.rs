//! Distances of every row of one matrix to every row of another.

use std::sync::Arc;

use plimsoll_core::{DType, Result};
use plimsoll_cuda::source_files;

use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Needs, OnCuda, OpInfo, Operation, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::distance as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Inputs [x of [batch, p, m], y of [batch, r, m]], contiguous: [batch, p, r].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cdist {
    pub(crate) order: f64,
}

impl Operation for Cdist {
    fn info(&self) -> &'static OpInfo {
        &CDIST
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (x, y) = (inputs[0].shape(), inputs[1].shape());
        Ok(Inferred::one(Meta::contiguous(&[x[0], x[1], y[1]], inputs[0].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0).and(Saves::input(1)).and(Saves::output(0))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::cdist(launch, self.order)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::cdist(launch, self.order)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, distances) = (backward.grad()?.contiguous()?, backward.output(0)?);
        let (x, y) = (backward.input(0)?, backward.input(1)?);
        if is_grad_enabled() {
            return self.in_parts(backward, &grad, [x, y, distances]);
        }
        let op = CdistBackward { order: self.order };
        let site = Site::in_force();
        let left = backward.for_input(0, || apply_one(&op, &[&grad, x, y, distances], site))?;
        let right = backward.for_input(1, || {
            let turned = |t: &Tensor| t.transpose(1, 2)?.contiguous();
            apply_one(&op, &[&turned(&grad)?, y, x, &turned(distances)?], site)
        })?;
        Ok(smallvec::smallvec![left, right])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl Cdist {
    /// The gradients by operations that have derivatives of their own, at the cost of all
    /// differences side by side.
    fn in_parts(
        &self,
        backward: &Backward<'_>,
        grad: &Tensor,
        [x, y, distances]: [&Tensor; 3],
    ) -> Result<Grads> {
        let apart = x.unsqueeze(2)?.sub(&y.unsqueeze(1)?)?;
        let distances = distances.unsqueeze(3)?;
        let nothing = distances.eq(0.0)?;
        // Where there is no distance there is no direction.
        let safe = Tensor::where_(&nothing, 1.0, &distances)?;
        let p = self.order;
        let slope = if p == 0.0 {
            apart.zeros_like()?
        } else if p == 1.0 {
            apart.sign()?
        } else if p == 2.0 {
            apart.div(&safe)?
        } else if p.is_infinite() {
            apart.sign()?.mul(&apart.abs()?.eq(&distances)?.to(apart.dtype())?)?
        } else {
            let equal = apart.eq(0.0)?;
            let size = Tensor::where_(&equal, 1.0, &apart.abs()?)?;
            let slope = apart.sign()?.mul(&size.div(&safe)?.pow(p - 1.0)?)?;
            Tensor::where_(&equal, 0.0, &slope)?
        };
        let parts = grad.unsqueeze(3)?.mul(&Tensor::where_(&nothing, 0.0, &slope)?)?;
        let left = backward.for_input(0, || parts.sum_over(&[2], false))?;
        let right = backward.for_input(1, || parts.sum_over(&[1], false)?.neg())?;
        Ok(smallvec::smallvec![left, right])
    }
}

/// Inputs [grad, x, y, distances]: the gradient of x in one kernel, for backward passes that nobody
/// differentiates again.
#[derive(Clone, Copy, Debug)]
struct CdistBackward {
    order: f64,
}

impl Operation for CdistBackward {
    fn info(&self) -> &'static OpInfo {
        &CDIST_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[1].shape(), inputs[1].dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::cdist_backward(launch, self.order)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::cdist_backward(launch, self.order)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "distance",
        signatures,
        differentiable: true,
        dtypes: DTypes::of(&[DType::F32, DType::F64]),
        cuda: OnCuda::Kernels(&source_files::DISTANCE),
        ..OpInfo::BARE
    }
}

static CDIST: OpInfo = info(
    "cdist",
    &[
        "cdist(Tensor x1, Tensor x2, float p=2, str compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
    ],
);
static CDIST_BACKWARD: OpInfo = OpInfo { differentiable: false, ..info("cdist_backward", &[]) };
static PDIST: OpInfo = OpInfo {
    home: Home::Functional,
    cuda: OnCuda::Composed,
    ..info("pdist", &["pdist(Tensor input, float p=2) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] = &[&CDIST, &PDIST];
