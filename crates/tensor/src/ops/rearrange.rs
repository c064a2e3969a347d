//! Whole dimensions moved about: turned around, rolled, repeated, padded. One operation, since each
//! dimension says by itself what it reads; `Unrearrange` is its derivative.

use std::sync::Arc;

use plimsoll_core::{Dims, Result, Scalar};
use smallvec::SmallVec;

use super::channels_last::laid_out_like;
use super::elementwise::output_layout;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, Grads, Home, Inferred, Needs, OnCuda, OpInfo, Operation, Out};
use crate::prepare::apply_one;
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::rearrange as cpu;
pub(crate) use plimsoll_kernels::cpu::rearrange::Along;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// One way for each dimension.
pub(crate) type Ways = SmallVec<[Along; 6]>;

/// Input 0 with every dimension read as `along` says, `value` where nothing is to be read.
#[derive(Clone, Debug)]
pub(crate) struct Rearrange {
    pub(crate) info: &'static OpInfo,
    pub(crate) along: Ways,
    pub(crate) shape: Dims,
    pub(crate) value: Scalar,
}

impl Rearrange {
    /// PyTorch makes repeats and circles row-major.
    fn keeps_channels_last(&self) -> bool {
        let is_circle = |along: &Along| matches!(along, Along::Wrap(_));
        let is_row_major =
            [&REPEAT, &REPEAT_INTERLEAVE].iter().any(|&i| std::ptr::eq(self.info, i))
                || (std::ptr::eq(self.info, &PAD) && self.along.iter().any(is_circle));
        !is_row_major
    }
}

impl Operation for Rearrange {
    fn info(&self) -> &'static OpInfo {
        self.info
    }

    fn node_name(&self, _inputs: &[Meta]) -> Option<&'static str> {
        if !std::ptr::eq(self.info, &PAD) {
            return None;
        }
        let is_constant = |along: &Along| matches!(along, Along::Pad(_));
        let Some(first) = self.along.iter().position(|along| !is_constant(along)) else {
            return Some("ConstantPadNdBackward0");
        };
        match (self.along[first], self.along.len() - first) {
            (Along::Reflect(_), 1) => Some("ReflectionPad1DBackward0"),
            (Along::Reflect(_), 2) => Some("ReflectionPad2DBackward0"),
            (Along::Reflect(_), _) => Some("ReflectionPad3DBackward0"),
            (Along::Clamp(_), 1) => Some("ReplicationPad1DBackward0"),
            (Along::Clamp(_), 2) => Some("ReplicationPad2DBackward0"),
            (Along::Clamp(_), _) => Some("ReplicationPad3DBackward0"),
            _ => None,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        if std::ptr::eq(self.info, &FLIP) {
            // Turned around where it lies, as in PyTorch.
            let layout = output_layout(self.info.name, inputs)?;
            return Ok(Inferred::one(Meta { layout, dtype: inputs[0].dtype }));
        }
        let dtype = inputs[0].dtype;
        let meta = match self.keeps_channels_last() {
            true => laid_out_like(inputs, &self.shape, dtype),
            false => Meta::contiguous(&self.shape, dtype),
        };
        Ok(Inferred::one(meta.map_err(|e| e.in_operation(self.info.name))?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::rearrange(launch, &self.along, self.value)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::rearrange(launch, &self.along, self.value)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, shape) = (backward.grad()?, Dims::from(backward.inputs[0].shape()));
        let inverse = self.along.iter().enumerate();
        let inverse: Option<Ways> =
            inverse.map(|(d, along)| along.inverse(shape[d], self.shape[d])).collect();
        let site = Site::in_force();
        let result = match inverse {
            Some(along) => {
                let value = Scalar::Int(0);
                let op = Rearrange { info: &UNREARRANGE, along, shape, value };
                apply_one(&op, &[grad], site)?
            }
            None => {
                let along = self.along.clone();
                apply_one(&Unrearrange { along, shape }, &[grad], site)?
            }
        };
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// For each element of a tensor of `shape`, the sum of input 0 over the places where `along` put
/// it.
#[derive(Clone, Debug)]
struct Unrearrange {
    along: Ways,
    shape: Dims,
}

impl Operation for Unrearrange {
    fn info(&self) -> &'static OpInfo {
        &UNREARRANGE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(laid_out_like(inputs, &self.shape, inputs[0].dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::unrearrange(launch, &self.along)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::unrearrange(launch, &self.along)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let op = Rearrange {
            info: &UNREARRANGE,
            along: self.along.clone(),
            shape: backward.inputs[0].shape().into(),
            value: Scalar::Int(0),
        };
        Ok(smallvec::smallvec![Some(apply_one(&op, &[backward.grad()?], Site::in_force())?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "rearrange",
        signatures,
        differentiable: true,
        cuda: OnCuda::Kernels(&source_files::REARRANGE),
        ..OpInfo::BARE
    }
}

const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { cuda: OnCuda::Composed, ..info(name, signatures) }
}

pub(crate) static FLIP: OpInfo = info("flip", &["flip(Tensor self, int[] dims) -> Tensor"]);
static FLIPLR: OpInfo = composed("fliplr", &["fliplr(Tensor self) -> Tensor"]);
static FLIPUD: OpInfo = composed("flipud", &["flipud(Tensor self) -> Tensor"]);
static ROT90: OpInfo =
    composed("rot90", &["rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor"]);
pub(crate) static ROLL: OpInfo =
    info("roll", &["roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor"]);
pub(crate) static REPEAT: OpInfo =
    info("repeat", &["repeat(Tensor self, int[] repeats) -> Tensor"]);
static TILE: OpInfo = composed("tile", &["tile(Tensor self, int[] dims) -> Tensor"]);
pub(crate) static REPEAT_INTERLEAVE: OpInfo = info(
    "repeat_interleave",
    &[
        "repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        "repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        "repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor",
    ],
);
pub(crate) static CONSTANT_PAD_ND: OpInfo =
    info("constant_pad_nd", &["constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor"]);
pub(crate) static PAD: OpInfo = OpInfo {
    home: Home::Functional,
    ..info(
        "pad",
        &["pad(Tensor input, int[] pad, str mode='constant', Scalar? value=None) -> Tensor"],
    )
};
/// Internal: reached only through the derivatives of the others.
static UNREARRANGE: OpInfo = OpInfo { out: Out::None, ..info("unrearrange", &[]) };

pub(crate) static OPS: &[&OpInfo] = &[
    &FLIP,
    &FLIPLR,
    &FLIPUD,
    &ROT90,
    &ROLL,
    &REPEAT,
    &TILE,
    &REPEAT_INTERLEAVE,
    &CONSTANT_PAD_ND,
    &PAD,
];
