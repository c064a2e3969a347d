//! `beta` times a tensor plus `alpha` times a product, in one pass over the result: `addmm` and its
//! kin. The tensor broadcasts to the product. With `beta` 0 it is not read, so that NaN in it does
//! not spread.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_cuda::Properties;

use super::{check_dtypes, check_ranks, left_gradient, product, product_shape, right_gradient};
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, Grads, Inferred, Needs, OpInfo, Operation, Saves};
use plimsoll_kernels::cpu::copy::copy_between;
use plimsoll_kernels::cpu::matmul as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Under which name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Two matrices.
    Addmm,
    /// A matrix and a vector.
    Addmv,
    /// Two batches, whose products are added up.
    Addbmm,
    /// Two batches.
    Baddbmm,
}

/// `beta * inputs[0] + alpha * inputs[1] @ inputs[2]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddProduct {
    pub(crate) form: Form,
    pub(crate) beta: Scalar,
    pub(crate) alpha: Scalar,
}

impl AddProduct {
    /// The product's shape from its factors'.
    fn shape(&self, a: &[usize], b: &[usize]) -> Result<plimsoll_core::Dims> {
        let op = self.info().name;
        let ranks = match self.form {
            Form::Addmm => [2, 2],
            Form::Addmv => [2, 1],
            Form::Addbmm | Form::Baddbmm => [3, 3],
        };
        check_ranks(op, [a, b], ranks)?;
        let mut shape = product_shape(op, a, b)?;
        if self.form == Form::Addbmm {
            shape.remove(0);
        }
        Ok(shape)
    }

    /// `[alpha, beta]` as numbers of the operands' dtype: for integers fractions are cut, as in
    /// PyTorch.
    fn factors(&self, dtype: DType) -> [f64; 2] {
        [self.alpha, self.beta].map(|number| match dtype.is_float() {
            true => number.to_f64(),
            false => number.to_f64().trunc(),
        })
    }

    fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let op = self.info().name;
        let [input, a, b] = [inputs[0], inputs[1], inputs[2]];
        check_dtypes(op, a.dtype, b.dtype)?;
        check_dtypes(op, input.dtype, a.dtype)
    }
}

impl Operation for AddProduct {
    fn info(&self) -> &'static OpInfo {
        match self.form {
            Form::Addmm => &ADDMM,
            Form::Addmv => &ADDMV,
            Form::Addbmm => &ADDBMM,
            Form::Baddbmm => &BADDBMM,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        self.check(inputs)?;
        let shape = self.shape(inputs[1].shape(), inputs[2].shape())?;
        inputs[0].layout.broadcast_to(&shape).map_err(|_| {
            Error::shape(
                self.info().name,
                format!(
                    "a tensor of shape {:?} cannot be added to a product of shape {shape:?}",
                    inputs[0].shape()
                ),
            )
        })?;
        Ok(Inferred::one(Meta::contiguous(&shape, inputs[1].dtype)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(2).when(needs.has(1)).and(Saves::input(1).when(needs.has(2)))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        match self.form {
            Form::Addbmm => cpu::summed_workspace_bytes(inputs[1], inputs[2], &outputs[0]),
            _ => cpu::matmul_workspace_bytes(inputs[1], inputs[2], &outputs[0]),
        }
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let (input, out) = (launch.inputs[0], launch.outputs[0]);
        let in_place =
            input.first_byte() == out.first_byte() && input.meta().is_same_view(out.meta());
        let [alpha, beta] = self.factors(out.dtype());
        if beta != 0.0 && !in_place {
            copy_between(launch.operation, out, input)?;
        }
        let product = CpuLaunch { inputs: &launch.inputs[1..], ..*launch };
        match self.form {
            Form::Addbmm => cpu::summed(&product, alpha, beta),
            _ => cpu::scaled(&product, alpha, beta),
        }
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        match self.form {
            Form::Addbmm => cuda::summed_workspace_bytes(gpu, inputs[1], inputs[2], &outputs[0]),
            _ => cuda::matmul_workspace_bytes(gpu, inputs[1], inputs[2], &outputs[0]),
        }
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let [alpha, beta] = self.factors(launch.outputs[0].dtype());
        let input = (beta != 0.0).then(|| &launch.inputs[0]);
        let scale = cuda::Scale { alpha, beta, input };
        let factors = [&launch.inputs[1], &launch.inputs[2]];
        match self.form {
            Form::Addbmm => cuda::summed(launch, factors, scale),
            _ => cuda::scaled_matmul(launch, factors, scale),
        }
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let [input, a, b] = [0, 1, 2].map(|index| &backward.inputs[index]);
        let scaled = |grad: Tensor, by: Scalar| match by {
            Scalar::Int(1) => Ok(grad),
            by => grad.mul(by),
        };
        let own = backward.for_input(0, || scaled(grad.sum_to(input.shape())?, self.beta))?;
        // Every product of a sum has the sum's gradient.
        let each = match self.form {
            Form::Addbmm => {
                let batch = a.shape()[0] as i64;
                let sizes: Vec<i64> =
                    [batch].into_iter().chain(grad.shape().iter().map(|&s| s as i64)).collect();
                grad.expand(&sizes)?
            }
            _ => grad.clone(),
        };
        let left = backward
            .for_input(1, || scaled(left_gradient(&each, a, b, backward.input(2)?)?, self.alpha))?;
        let right = backward.for_input(2, || {
            scaled(right_gradient(&each, a, b, backward.input(1)?)?, self.alpha)
        })?;
        Ok(smallvec::smallvec![own, left, right])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { in_place: true, ..product(name, signatures) }
}

pub(crate) static ADDMM: OpInfo = info(
    "addmm",
    &["addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"],
);
pub(crate) static ADDMV: OpInfo = info(
    "addmv",
    &["addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor"],
);
pub(crate) static ADDBMM: OpInfo = info(
    "addbmm",
    &[
        "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ],
);
pub(crate) static BADDBMM: OpInfo = info(
    "baddbmm",
    &[
        "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ],
);
