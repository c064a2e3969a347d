//! A product and the sums of its left factor's rows in one operation: on the way back through a
//! linear layer the gradients of its weight and of its bias. cuBLASLt adds up what it reads for the
//! product anyway.

use std::sync::Arc;

use plimsoll_core::{DeviceKind, Result};
use plimsoll_cuda::Properties;
use plimsoll_memory::Site;

use super::{check_dtypes, product, product_shape};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch, Fold};
use crate::dispatch::Dest;
use crate::operation::{Inferred, Needs, OpInfo, Operation};
use crate::prepare::apply;
use plimsoll_kernels::cpu::{matmul, reduce};
use plimsoll_kernels::{CpuLaunch, Meta};

/// [a (m, k), b (k, n)] -> [a @ b, the sum of each row of a].
#[derive(Clone, Copy, Debug)]
struct ProductAndSums;

/// The dimension of the left factor that both the product and the sums run along.
const SUMMED: &[usize] = &[1];

/// Whether [`gradients`] serve for `row + a @ b`. On the CPU two operations are as well; those can
/// be recorded.
pub(super) fn serves(grad: &Tensor, [row, a, b]: [&Meta; 3]) -> bool {
    let lies_transposed = matches!(b.layout.strides(), [1, _]);
    let is_empty = [a, b].iter().any(|factor| factor.shape().contains(&0));
    let is_row = row.shape() == &b.shape()[1..];
    is_row && lies_transposed && !is_empty && serves_linear(grad)
}

/// The same where it is known that the factors are a linear layer's, and not empty.
pub(crate) fn serves_linear(grad: &Tensor) -> bool {
    grad.device().kind() != DeviceKind::Cpu && !is_grad_enabled()
}

/// The gradients of the right factor, which lies transposed, and of the row in `row + left @ b`
/// from the gradient of the sum.
pub(crate) fn gradients(grad: &Tensor, left: &Tensor) -> Result<(Tensor, Tensor)> {
    let inputs = [&grad.t()?, left];
    let mut results = apply(&ProductAndSums, &inputs, Dest::New, Site::in_force())?.into_iter();
    let (Some(product), Some(sums)) = (results.next(), results.next()) else {
        unreachable!("it has two results");
    };
    // The weight's own gradient lies as the weight, and is taken over instead of copied.
    Ok((product.t()?, sums))
}

impl Operation for ProductAndSums {
    fn info(&self) -> &'static OpInfo {
        &PRODUCT_AND_SUMS
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (a, b) = (inputs[0], inputs[1]);
        check_dtypes(PRODUCT_AND_SUMS.name, a.dtype, b.dtype)?;
        let shape = product_shape(PRODUCT_AND_SUMS.name, a.shape(), b.shape())?;
        Ok(Inferred::Exact(smallvec::smallvec![
            Meta::contiguous(&shape, a.dtype)?,
            Meta::contiguous(&shape[..1], a.dtype)?,
        ]))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        let product = matmul::matmul_workspace_bytes(inputs[0], inputs[1], &outputs[0]);
        product.max(reduce::workspace_bytes(&inputs[..1], &outputs[1..]))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        matmul::matmul(&CpuLaunch { outputs: &launch.outputs[..1], ..*launch })?;
        let (inputs, outputs) = (&launch.inputs[..1], &launch.outputs[1..]);
        reduce::sum(&CpuLaunch { inputs, outputs, ..*launch }, SUMMED)
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        let product = cuda::matmul_workspace_bytes(gpu, inputs[0], inputs[1], &outputs[0]);
        product.max(cuda::reduce_workspace_bytes(inputs[0], Fold::Sum, SUMMED))
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::matmul_and_sums(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Internal: reached only through the derivative of `addmm`.
static PRODUCT_AND_SUMS: OpInfo =
    OpInfo { differentiable: false, ..product("addmm_backward", &[]) };
