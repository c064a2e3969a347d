//! Layer normalization: `(x - mean) / sqrt(variance + eps)` over the last dimensions, scaled and
//! shifted.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result};
use plimsoll_cuda::Properties;
use smallvec::SmallVec;

use super::nn::{check_float, info, sum_leading};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{Backward, Grads, Inferred, Metas, Needs, OnCuda, OpInfo, Operation, Saves};
use crate::prepare::apply;
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::layer_norm::{self as cpu, LayerNormArgs, LayerNormGrads};
use plimsoll_kernels::{CpuLaunch, Meta, Operand};
use plimsoll_memory::Site;

/// What weight and bias are beside rows of this dtype.
fn parameter_dtype(dtype: DType, wide: bool) -> DType {
    if wide { DType::F32 } else { dtype }
}

/// Inputs [x, weight?, bias?]. Outputs [y], and [mean, 1 / deviation] of each row if backward will
/// want them.
#[derive(Clone, Debug)]
pub(crate) struct LayerNorm {
    pub(crate) normalized: Dims,
    pub(crate) weight: bool,
    pub(crate) bias: bool,
    /// Whether they are float32 beside halves.
    pub(crate) wide: bool,
    pub(crate) eps: f64,
}

impl LayerNorm {
    pub(super) fn rank(&self) -> usize {
        self.normalized.len()
    }

    pub(super) fn args(&self) -> LayerNormArgs {
        let LayerNorm { weight, bias, eps, .. } = *self;
        LayerNormArgs { normalized_rank: self.rank(), weight, bias, eps }
    }

    /// Where the bias is among the inputs, behind one input or two summands.
    pub(super) fn bias_at(&self, summands: usize) -> usize {
        summands + usize::from(self.weight)
    }

    /// Mean and 1 / deviation of each row. Half types would lose in them what the gradient needs.
    pub(super) fn moments(&self, x: &Meta) -> Result<[Meta; 2]> {
        let rows = &x.shape()[..x.shape().len() - self.rank()];
        let dtype = if x.dtype.size_bytes() < 4 { DType::F32 } else { x.dtype };
        Ok([Meta::contiguous(rows, dtype)?, Meta::contiguous(rows, dtype)?])
    }

    pub(super) fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let name = LAYER_NORM.name;
        check_float(&LAYER_NORM, inputs[0])?;
        let shape = inputs[0].shape();
        if self.normalized.is_empty() || !shape.ends_with(&self.normalized) {
            return Err(Error::shape(
                name,
                format!(
                    "the normalized shape {:?} must be the last dimensions of the input, whose shape is {shape:?}",
                    self.normalized
                ),
            ));
        }
        for (meta, role) in inputs[1..]
            .iter()
            .zip([(self.weight, "weight"), (self.bias, "bias")].iter().filter(|(given, _)| *given))
        {
            if meta.shape() != self.normalized.as_slice() {
                return Err(Error::shape(
                    name,
                    format!(
                        "the {} has shape {:?}, but the normalized shape is {:?}",
                        role.1,
                        meta.shape(),
                        self.normalized
                    ),
                ));
            }
            if meta.dtype != parameter_dtype(inputs[0].dtype, self.wide) {
                return Err(Error::dtype(
                    name,
                    format!(
                        "the {} is {} and the input {}; convert one with `to` (weight and bias may \
                         both be float32 beside halves)",
                        role.1, meta.dtype, inputs[0].dtype
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl Operation for LayerNorm {
    fn info(&self) -> &'static OpInfo {
        &LAYER_NORM
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        self.check(inputs)?;
        let (shape, dtype) = (inputs[0].shape(), inputs[0].dtype);
        let mut outputs: Metas = smallvec::smallvec![Meta::contiguous(shape, dtype)?];
        if needs.any() {
            outputs.extend(self.moments(inputs[0])?);
        }
        Ok(Inferred::Exact(outputs))
    }

    fn saves(&self, needs: Needs) -> Saves {
        // The bias alone needs no values.
        let values = needs.has(0) || (self.weight && needs.has(1));
        let statistics = Saves::output(1).and(Saves::output(2));
        Saves::input(0)
            .and(statistics)
            .when(values)
            .and(Saves::input(1).when(self.weight && needs.has(0)))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::layer_norm_workspace_bytes(inputs, outputs, self.rank())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::layer_norm(launch, self.args())
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
        let weight = launch.inputs.get(1).filter(|_| self.weight);
        let bias = launch.inputs.get(self.bias_at(1)).filter(|_| self.bias);
        cuda::layer_norm(launch, self.normalized.iter().product(), self.eps, weight, bias, false)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        Ok(self.placed(backward, 1, self.gradients(backward, 1, None)?))
    }

    fn adds_to_input(&self) -> bool {
        true
    }

    fn vjp_onto(&self, backward: &Backward<'_>, total: &Tensor) -> Result<Grads> {
        Ok(self.placed(backward, 1, self.gradients(backward, 1, Some(total))?))
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

impl LayerNorm {
    /// The gradients of what is normalized, of the weight and of the bias, of a norm of one input,
    /// or of the sum of two, which then is the second output. That of the input is added to `total`
    /// if there is one, and is not among them then.
    pub(super) fn gradients(
        &self,
        backward: &Backward<'_>,
        summands: usize,
        total: Option<&Tensor>,
    ) -> Result<[Option<Tensor>; 3]> {
        let (needs, grad) = (backward.needs, backward.grad()?);
        let wanted = LayerNormGrads {
            input: (0..summands).any(|summand| needs.has(summand)),
            weight: self.weight && needs.has(summands),
            bias: self.bias && needs.has(self.bias_at(summands)),
            added: total.is_some(),
        };
        if !(wanted.input || wanted.weight) {
            return Ok([None, None, Some(sum_leading(&self.widened(grad)?, self.rank())?)]);
        }
        let x = if summands == 1 { backward.input(0)? } else { backward.output(1)? };
        let weighs = self.weight && wanted.input;
        let weight = if weighs { Some(backward.input(summands)?) } else { None };
        if is_grad_enabled() {
            let [grad, wide_x] = [self.widened(grad)?, self.widened(x)?];
            let mut found = self.composite(&grad, &wide_x, weight, wanted)?;
            if let Some(input) = &mut found[0] {
                *input = input.to(x.dtype())?;
            }
            return Ok(found);
        }
        let (mean, rstd) = (backward.output(summands)?, backward.output(summands + 1)?);
        let op = LayerNormBackward { rank: self.rank(), wide: self.wide, wanted };
        let mut inputs: SmallVec<[&Tensor; 5]> = smallvec::smallvec![grad, x, mean, rstd];
        inputs.extend(weight);
        let dest = total.as_slice();
        let dest = if dest.is_empty() { Dest::New } else { Dest::Mutating(dest) };
        let mut results = apply(&op, &inputs, dest, Site::in_force())?.into_iter();
        let made = [wanted.input && !wanted.added, wanted.weight, wanted.bias];
        Ok(made.map(|wanted| if wanted { results.next() } else { None }))
    }

    /// Halves as what their weight is, if that is wider.
    fn widened(&self, x: &Tensor) -> Result<Tensor> {
        if self.wide { x.to(DType::F32) } else { Ok(x.clone()) }
    }

    /// The gradients where the inputs are: every summand that wants one has the same.
    pub(super) fn placed(
        &self,
        backward: &Backward<'_>,
        summands: usize,
        [input, weight, bias]: [Option<Tensor>; 3],
    ) -> Grads {
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        for summand in (0..summands).filter(|&summand| backward.needs.has(summand)) {
            grads[summand] = input.clone();
        }
        for (at, gradient) in [(summands, weight), (self.bias_at(summands), bias)] {
            if gradient.is_some() {
                grads[at] = gradient;
            }
        }
        grads
    }

    /// The gradients from differentiable operations. Mean and deviation are computed again from x,
    /// so that they can be differentiated too.
    fn composite(
        &self,
        grad: &Tensor,
        x: &Tensor,
        weight: Option<&Tensor>,
        wanted: LayerNormGrads,
    ) -> Result<[Option<Tensor>; 3]> {
        let dims: SmallVec<[i64; 5]> = (1..=self.rank() as i64).map(|dim| -dim).collect();
        let mean = |x: &Tensor| x.mean_over(&dims, true);
        let centered = x.sub(&mean(x)?)?;
        let rstd = mean(&centered.mul(&centered)?)?.add(self.eps)?.rsqrt()?;
        let normal = centered.mul(&rstd)?;
        let mut grads = [const { None }; 3];
        if wanted.input {
            let scaled = match weight {
                Some(weight) => grad.mul(weight)?,
                None => grad.clone(),
            };
            let along = normal.mul(&mean(&scaled.mul(&normal)?)?)?;
            grads[0] = Some(scaled.sub(&mean(&scaled)?)?.sub(&along)?.mul(&rstd)?);
        }
        if wanted.weight {
            grads[1] = Some(sum_leading(&grad.mul(&normal)?, self.rank())?);
        }
        if wanted.bias {
            grads[2] = Some(sum_leading(grad, self.rank())?);
        }
        Ok(grads)
    }
}

/// The gradients in one kernel from [grad, x, mean, 1 / deviation, weight?], for backward passes
/// that nobody differentiates again. What the input's is added to stands behind the new ones.
#[derive(Clone, Copy, Debug)]
struct LayerNormBackward {
    rank: usize,
    /// Whether weight and bias are float32 beside halves.
    wide: bool,
    wanted: LayerNormGrads,
}

impl LayerNormBackward {
    /// The order of the kernels: input, weight, bias.
    fn put_input_first<T>(&self, outputs: &mut [T]) {
        if self.wanted.added {
            outputs.rotate_right(1);
        }
    }
}

impl Operation for LayerNormBackward {
    fn info(&self) -> &'static OpInfo {
        &LAYER_NORM_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (shape, dtype) = (inputs[1].shape(), inputs[1].dtype);
        let row = &shape[shape.len() - self.rank..];
        let mut outputs = Metas::new();
        if self.wanted.input && !self.wanted.added {
            outputs.push(Meta::contiguous(shape, dtype)?);
        }
        for _ in 0..usize::from(self.wanted.weight) + usize::from(self.wanted.bias) {
            outputs.push(Meta::contiguous(row, parameter_dtype(dtype, self.wide))?);
        }
        Ok(Inferred::Exact(outputs))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        let mut outputs: SmallVec<[Meta; 3]> = outputs.iter().cloned().collect();
        self.put_input_first(&mut outputs);
        cpu::layer_norm_backward_workspace_bytes(inputs, &outputs, self.rank, self.wanted)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let mut outputs: SmallVec<[Operand<'_>; 3]> = launch.outputs.iter().copied().collect();
        self.put_input_first(&mut outputs);
        let launch = CpuLaunch { outputs: &outputs, ..*launch };
        cpu::layer_norm_backward(&launch, self.rank, self.wanted)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        let x = inputs[1].shape();
        let length = x[x.len() - self.rank..].iter().product();
        let sums = self.wanted.weight || self.wanted.bias;
        cuda::layer_norm_backward_workspace_bytes(inputs, length, sums)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let x = launch.inputs[1].shape();
        let length = x[x.len() - self.rank..].iter().product();
        let LayerNormGrads { input, weight, bias, added } = self.wanted;
        let mut outputs: SmallVec<[Operand<'_>; 3]> = launch.outputs.iter().copied().collect();
        self.put_input_first(&mut outputs);
        let mut outputs = outputs.iter();
        let outputs =
            [input, weight, bias].map(|wanted| if wanted { outputs.next() } else { None });
        cuda::layer_norm_backward(launch, length, launch.inputs.get(4), outputs, added)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

pub(super) static LAYER_NORM: OpInfo = OpInfo {
    cuda: OnCuda::Kernels(&source_files::LAYER_NORM),
    ..info(
        "layer_norm",
        &[
            "layer_norm(Tensor self, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
        ],
    )
};
/// Internal: reached only through the derivative.
static LAYER_NORM_BACKWARD: OpInfo = OpInfo {
    differentiable: false,
    cuda: OnCuda::Kernels(&source_files::LAYER_NORM),
    ..info("layer_norm_backward", &[])
};
