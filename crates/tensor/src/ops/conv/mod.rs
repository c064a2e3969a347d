//! Convolutions. Three operations, each the derivative of the others: windows times weights
//! ([`Conv`]), what comes back to the input ([`ConvInput`], a transposed convolution when users
//! call it) and what comes back to the weight ([`ConvWeight`]). So there is no end to how often a
//! convolution can be differentiated.
//!
//! `shape.rs` has the rules for sizes; the methods that call these are in `api/conv.rs`.

pub(crate) mod shape;

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::channels_last::{is_channels_last, laid_out};
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::conv::{self as cpu, ConvArgs};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Spatial sizes: depth, height, width, of which the last `rank` count.
pub(crate) type Space = [usize; 3];

/// Inputs [x, weight, bias?] -> y.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conv {
    /// Spatial dimensions, 1 to 3.
    pub(crate) rank: usize,
    pub(crate) args: ConvArgs,
    /// The result's.
    pub(crate) results: Space,
    pub(crate) layout: Format,
    /// Whether it is reached through a derivative.
    pub(crate) internal: bool,
}

/// Inputs [grad, weight, bias?] -> x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvInput {
    pub(crate) rank: usize,
    pub(crate) args: ConvArgs,
    pub(crate) results: Space,
    pub(crate) layout: Format,
    pub(crate) internal: bool,
}

/// Inputs [x, grad] -> weight.
#[derive(Clone, Copy, Debug)]
struct ConvWeight {
    rank: usize,
    args: ConvArgs,
    kernel: Space,
    layout: Format,
}

/// How a result is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Channels last if an operand is.
    LikeOperands,
    /// As given: a gradient is laid out like what it belongs to.
    ChannelsLast(bool),
}

impl Format {
    fn of(meta: &Meta) -> Format {
        Format::ChannelsLast(is_channels_last(&meta.layout))
    }

    /// A new tensor, laid out as PyTorch lays it out: of signals by the weight alone, and row-major
    /// for volumes of float64 and integers whatever the operands are.
    fn lay_out(self, shape: &[usize], inputs: &[&Meta]) -> Result<Meta> {
        let dtype = inputs[0].dtype;
        let channels_last = match self {
            Format::ChannelsLast(given) => given,
            Format::LikeOperands => {
                let last = |meta: &&Meta| is_channels_last(&meta.layout);
                match shape.len() {
                    3 => last(&inputs[1]),
                    4 => inputs[..2].iter().any(last),
                    _ => inputs[..2].iter().any(last) && !matches!(dtype, DType::F64 | DType::I64),
                }
            }
        };
        laid_out(shape, dtype, channels_last)
    }
}

/// Refuses dtypes that differ or have no products.
fn check_dtypes(info: &OpInfo, inputs: &[&Meta]) -> Result<()> {
    let roles = ["input", "weight", "bias"];
    let dtype = inputs[0].dtype;
    for (role, meta) in roles.iter().zip(inputs).skip(1) {
        if meta.dtype != dtype {
            return Err(Error::dtype(
                info.name,
                format!(
                    "the input is {dtype} and the {role} {}: they should be the same; convert one with `to`",
                    meta.dtype
                ),
            ));
        }
    }
    if !info.dtypes.contains(dtype) {
        return Err(Error::dtype(
            info.name,
            format!("there is no convolution of {dtype}; convert the operands with `to` first"),
        ));
    }
    Ok(())
}

/// [batch, channels, the last `rank` of `space`].
fn full_shape(batch: usize, channels: usize, space: &Space, rank: usize) -> SmallVec<[usize; 5]> {
    [batch, channels].into_iter().chain(space[3 - rank..].iter().copied()).collect()
}

/// The spatial sizes of a tensor [batch, channels, ..].
pub(crate) fn space_of(shape: &[usize]) -> Space {
    let own = &shape[2..];
    let mut space = [1; 3];
    space[3 - own.len()..].copy_from_slice(own);
    space
}

/// The bias's gradient.
fn over_channels(grad: &Tensor) -> Result<Tensor> {
    let dims: SmallVec<[i64; 5]> = (0..grad.rank() as i64).filter(|&dim| dim != 1).collect();
    grad.sum_over(&dims, false)
}

impl Operation for Conv {
    fn info(&self) -> &'static OpInfo {
        if self.internal { &CONVOLUTION_RESULT } else { CONV[self.rank - 1] }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check_dtypes(self.info(), inputs)?;
        let (x, weight) = (inputs[0], inputs[1]);
        // Without channels there is nothing to add up; PyTorch gives a result without any too.
        let channels = if x.shape()[1] == 0 { 0 } else { weight.shape()[0] };
        let shape = full_shape(x.shape()[0], channels, &self.results, self.rank);
        Ok(Inferred::one(self.layout.lay_out(&shape, inputs)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(1).when(needs.has(0)).and(Saves::input(0).when(needs.has(1)))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::conv_workspace_bytes(inputs, &outputs[0], self.args)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::conv(launch, self.args)
    }

    fn cuda_workspace_bytes(&self, _gpu: &Properties, inputs: &[&Meta], out: &[Meta]) -> usize {
        cuda::conv_workspace_bytes(inputs, &out[0], self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::conv(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let site = Site::in_force();
        let (x, weight) = (&backward.inputs[0], &backward.inputs[1]);
        let Conv { rank, args, .. } = *self;
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        // The weight first: the input's gradient is not held beside the larger workspace.
        grads[1] = backward.for_input(1, || {
            if weight.layout.numel() == 0 {
                return empty_weight(weight, grad);
            }
            let kernel = space_of(weight.shape());
            let op = ConvWeight { rank, args, kernel, layout: Format::of(weight) };
            apply_one(&op, &[backward.input(0)?, grad], site)
        })?;
        grads[0] = backward.for_input(0, || {
            let results = space_of(x.shape());
            let op = ConvInput { rank, args, results, layout: Format::of(x), internal: true };
            apply_one(&op, &[grad, backward.input(1)?], site)
        })?;
        if backward.needs.has(2) && grads.len() > 2 {
            grads[2] = Some(over_channels(grad)?);
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The gradient of a weight without elements, whose shape the other operands do not tell.
fn empty_weight(weight: &Meta, beside: &Tensor) -> Result<Tensor> {
    let sizes: Vec<i64> = weight.shape().iter().map(|&size| size as i64).collect();
    Tensor::zeros(&sizes, (weight.dtype, beside.device()))
}

impl Operation for ConvInput {
    fn info(&self) -> &'static OpInfo {
        if self.internal { &CONVOLUTION_INPUT } else { CONV_TRANSPOSE[self.rank - 1] }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check_dtypes(self.info(), inputs)?;
        let (grad, weight) = (inputs[0], inputs[1]);
        let channels = weight.shape()[1] * self.args.groups;
        let shape = full_shape(grad.shape()[0], channels, &self.results, self.rank);
        Ok(Inferred::one(self.layout.lay_out(&shape, inputs)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(1).when(needs.has(0)).and(Saves::input(0).when(needs.has(1)))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::conv_input_workspace_bytes(inputs, &outputs[0], self.args)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::conv_input(launch, self.args)
    }

    fn cuda_workspace_bytes(&self, _gpu: &Properties, inputs: &[&Meta], out: &[Meta]) -> usize {
        cuda::conv_input_workspace_bytes(inputs, &out[0], self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::conv_input(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let back = backward.grad()?;
        let site = Site::in_force();
        let (grad, weight) = (&backward.inputs[0], &backward.inputs[1]);
        let ConvInput { rank, args, .. } = *self;
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        // The weight first: the input's gradient is not held beside the larger workspace.
        grads[1] = backward.for_input(1, || {
            if weight.layout.numel() == 0 {
                return empty_weight(weight, back);
            }
            let kernel = space_of(weight.shape());
            let op = ConvWeight { rank, args, kernel, layout: Format::of(weight) };
            apply_one(&op, &[back, backward.input(0)?], site)
        })?;
        grads[0] = backward.for_input(0, || {
            let results = space_of(grad.shape());
            let op = Conv { rank, args, results, layout: Format::of(grad), internal: true };
            apply_one(&op, &[back, backward.input(1)?], site)
        })?;
        if backward.needs.has(2) && grads.len() > 2 {
            grads[2] = Some(over_channels(back)?);
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl Operation for ConvWeight {
    fn info(&self) -> &'static OpInfo {
        &CONVOLUTION_WEIGHT
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check_dtypes(self.info(), inputs)?;
        let (x, grad) = (inputs[0].shape(), inputs[1].shape());
        let shape = full_shape(grad[1], x[1] / self.args.groups, &self.kernel, self.rank);
        Ok(Inferred::one(self.layout.lay_out(&shape, inputs)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(1).when(needs.has(0)).and(Saves::input(0).when(needs.has(1)))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::conv_weight_workspace_bytes(inputs, &outputs[0], self.args)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::conv_weight(launch, self.args)
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], out: &[Meta]) -> usize {
        cuda::conv_weight_workspace_bytes(gpu, inputs, &out[0], self.args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::conv_weight(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let back = backward.grad()?;
        let site = Site::in_force();
        let (x, grad) = (&backward.inputs[0], &backward.inputs[1]);
        let ConvWeight { rank, args, .. } = *self;
        let to_x = backward.for_input(0, || {
            let results = space_of(x.shape());
            let op = ConvInput { rank, args, results, layout: Format::of(x), internal: true };
            apply_one(&op, &[backward.input(1)?, back], site)
        })?;
        let to_grad = backward.for_input(1, || {
            let results = space_of(grad.shape());
            let op = Conv { rank, args, results, layout: Format::of(grad), internal: true };
            apply_one(&op, &[backward.input(0)?, back], site)
        })?;
        Ok(smallvec::smallvec![to_x, to_grad])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Floats, and int64 as PyTorch has it.
const DTYPES: DTypes = DTypes::of(&[DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64]);

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "conv",
        signatures,
        differentiable: true,
        dtypes: DTYPES,
        cuda: OnCuda::Kernels(&source_files::CONV),
        ..OpInfo::BARE
    }
}

macro_rules! conv_rows {
    ($($row:ident, $name:literal;)*) => {$(
        static $row: OpInfo = info($name, &[
            concat!($name, "(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1) -> Tensor"),
            concat!($name, "(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, str padding='valid', int[] dilation=1, int groups=1) -> Tensor"),
        ]);
    )*};
}
conv_rows!(CONV1D, "conv1d"; CONV2D, "conv2d"; CONV3D, "conv3d";);

macro_rules! transpose_rows {
    ($($row:ident, $name:literal;)*) => {$(
        static $row: OpInfo = info($name, &[
            concat!($name, "(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] output_padding=0, int groups=1, int[] dilation=1) -> Tensor"),
        ]);
    )*};
}
transpose_rows!(
    CONV_TRANSPOSE1D, "conv_transpose1d";
    CONV_TRANSPOSE2D, "conv_transpose2d";
    CONV_TRANSPOSE3D, "conv_transpose3d";
);

/// Made of the others, by its arguments.
static CONVOLUTION: OpInfo = OpInfo {
    cuda: OnCuda::Composed,
    ..info(
        "convolution",
        &[
            "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
        ],
    )
};

/// By the number of spatial dimensions.
static CONV: [&OpInfo; 3] = [&CONV1D, &CONV2D, &CONV3D];
static CONV_TRANSPOSE: [&OpInfo; 3] = [&CONV_TRANSPOSE1D, &CONV_TRANSPOSE2D, &CONV_TRANSPOSE3D];

/// Internal: reached only through derivatives.
static CONVOLUTION_RESULT: OpInfo = info("convolution_result", &[]);
static CONVOLUTION_INPUT: OpInfo = info("convolution_input", &[]);
static CONVOLUTION_WEIGHT: OpInfo = info("convolution_weight", &[]);

pub(crate) static OPS: &[&OpInfo] = &[
    &CONV1D,
    &CONV2D,
    &CONV3D,
    &CONV_TRANSPOSE1D,
    &CONV_TRANSPOSE2D,
    &CONV_TRANSPOSE3D,
    &CONVOLUTION,
];
