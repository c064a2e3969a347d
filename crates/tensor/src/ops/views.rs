//! Views as operations: no kernel, only a layout rule from `core` and a derivative. `Unview` is the
//! derivative of those that show a part of their input: zeros, with the gradient in that part.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_core::{DType, Error, Layout, Result, normalize_dim};
use smallvec::SmallVec;

use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out};
use crate::prepare::apply_one;
use plimsoll_cuda::{Properties, source_files};
use plimsoll_kernels::cpu::unview as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

type Sizes = SmallVec<[i64; 6]>;

/// One view operation with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Sizes(Sizes),
    Transpose(i64, i64),
    Permute(Sizes),
    Narrow {
        dim: i64,
        start: i64,
        length: i64,
    },
    Slice {
        dim: i64,
        start: i64,
        end: i64,
        step: i64,
    },
    Select {
        dim: i64,
        index: i64,
    },
    Expand(Sizes),
    /// Those of these dimensions that have size 1.
    Squeeze(Sizes),
    Unsqueeze(i64),
    Diagonal {
        offset: i64,
        dim1: i64,
        dim2: i64,
    },
    /// Windows of `size` elements, `step` apart.
    Unfold {
        dim: i64,
        size: i64,
        step: i64,
    },
    /// `storage_numel` is how many elements the storage holds, which a layout does not know.
    AsStrided {
        sizes: Sizes,
        strides: Sizes,
        offset: i64,
        storage_numel: usize,
    },
}

impl View {
    fn layout(&self, input: &Layout) -> Result<Layout> {
        match self {
            View::Sizes(sizes) => input.view(sizes),
            View::Transpose(a, b) => input.transpose(*a, *b),
            View::Permute(dims) => input.permute(dims),
            View::Narrow { dim, start, length } => input.narrow(*dim, *start, *length),
            View::Slice { dim, start, end, step } => input.slice(*dim, *start, *end, *step),
            View::Select { dim, index } => input.select(*dim, *index),
            View::Expand(sizes) => input.expand(sizes),
            View::Squeeze(dims) => squeeze(input, dims),
            View::Unsqueeze(dim) => input.unsqueeze(*dim),
            View::Diagonal { offset, dim1, dim2 } => input.diagonal(*offset, *dim1, *dim2),
            View::Unfold { dim, size, step } => input.unfold(*dim, *size, *step),
            View::AsStrided { sizes, strides, offset, storage_numel } => {
                Layout::as_strided(sizes, strides, *offset, *storage_numel)
            }
        }
    }
}

impl Operation for View {
    fn info(&self) -> &'static OpInfo {
        match self {
            View::Sizes(_) => &VIEW,
            View::Transpose(..) => &TRANSPOSE,
            View::Permute(_) => &PERMUTE,
            View::Narrow { .. } => &NARROW,
            View::Slice { .. } => &SLICE,
            View::Select { .. } => &SELECT,
            View::Expand(_) => &EXPAND,
            View::Squeeze(_) => &SQUEEZE,
            View::Unsqueeze(_) => &UNSQUEEZE,
            View::Diagonal { .. } => &DIAGONAL,
            View::Unfold { .. } => &UNFOLD,
            View::AsStrided { .. } => &AS_STRIDED,
        }
    }

    fn node_name(&self, inputs: &[Meta]) -> Option<&'static str> {
        let rank = inputs.first().map_or(0, |x| x.shape().len());
        match self {
            // All dimensions are named if none was.
            View::Squeeze(dims) if dims.len() == rank => None,
            View::Squeeze(dims) if dims.len() == 1 => Some("SqueezeBackward1"),
            View::Squeeze(_) => Some("SqueezeBackward2"),
            _ => None,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let layout = self.layout(&inputs[0].layout)?;
        Ok(Inferred::View(Meta { layout, dtype: inputs[0].dtype }))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        Err(Error::unsupported(launch.operation, "a view has no kernel"))
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, input) = (backward.grad()?, &backward.inputs[0]);
        let sizes = || -> Sizes { input.shape().iter().map(|&size| size as i64).collect() };
        let result = match self {
            View::Sizes(_) | View::Squeeze(_) | View::Unsqueeze(_) => grad.reshape(&sizes())?,
            View::Transpose(a, b) => grad.transpose(*a, *b)?,
            View::Permute(dims) => {
                let mut inverse: Sizes = smallvec::smallvec![0; dims.len()];
                for (to, &from) in dims.iter().enumerate() {
                    inverse[from.rem_euclid(dims.len() as i64) as usize] = to as i64;
                }
                grad.permute(&inverse)?
            }
            View::Expand(_) => grad.sum_to(input.shape())?,
            View::Narrow { .. }
            | View::Slice { .. }
            | View::Select { .. }
            | View::Diagonal { .. }
            | View::Unfold { .. } => unview(self.clone(), input.shape(), grad)?,
            View::AsStrided { .. } => self.unstride(grad, input)?,
        };
        Ok(smallvec::smallvec![Some(result)])
    }

    /// Of what shows a part, each element once: zeros around every part of a split would be written
    /// and added as often as there are parts.
    fn adds_vjp(&self) -> bool {
        matches!(
            self,
            View::Narrow { .. } | View::Slice { .. } | View::Select { .. } | View::Diagonal { .. }
        )
    }

    fn add_vjp(&self, gradient: &Tensor, total: &Tensor) -> Result<()> {
        apply_one(self, &[total], Site::in_force())?.add_(gradient).map(drop)
    }

    fn shows(&self, input: &Meta) -> Option<(usize, Range<usize>)> {
        let (View::Narrow { dim, .. }
        | View::Slice { dim, step: 1, .. }
        | View::Select { dim, .. }) = self
        else {
            return None;
        };
        // The rule of the view says where it begins, in a layout whose strides tell.
        let whole = Layout::contiguous(input.shape()).ok().filter(|whole| whole.numel() > 0)?;
        let dim = normalize_dim(self.info().name, *dim, whole.rank()).ok()?;
        let part = self.layout(&whole).ok()?;
        let start = part.offset() / whole.strides()[dim];
        let length = if part.rank() < whole.rank() { 1 } else { part.shape()[dim] };
        Some((dim, start..start + length))
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

impl View {
    /// The derivative of `as_strided`, which sees the storage and not the input: the gradient is
    /// laid into a flat storage, and the input's own layout reads it from there.
    fn unstride(&self, grad: &Tensor, input: &Meta) -> Result<Tensor> {
        let View::AsStrided { sizes, strides, offset, .. } = self else {
            return Err(Error::autograd("as_strided", "not a strided view"));
        };
        if input.layout.may_overlap_itself() {
            return Err(Error::unsupported(
                "as_strided",
                "the gradient of as_strided on an expanded input is not supported; call `contiguous` on it first",
            ));
        }
        let own = Layout::as_strided(sizes, strides, *offset, usize::MAX / 32)?;
        let numel = own.span().max(input.layout.span());
        let flat = View::AsStrided {
            sizes: sizes.clone(),
            strides: strides.clone(),
            offset: *offset,
            storage_numel: numel,
        };
        let storage = unview(flat, &[numel], grad)?;
        let signed = |values: &[usize]| -> Sizes { values.iter().map(|&v| v as i64).collect() };
        storage.as_strided(
            &signed(input.shape()),
            &signed(input.layout.strides()),
            input.layout.offset() as i64,
        )
    }
}

/// Without those of `dims` that have size 1.
fn squeeze(input: &Layout, dims: &[i64]) -> Result<Layout> {
    let normal = |&dim: &i64| normalize_dim("squeeze", dim, input.rank());
    let mut dims = dims.iter().map(normal).collect::<Result<SmallVec<[usize; 6]>>>()?;
    // From the end, so that those before keep their numbers.
    dims.sort_unstable_by(|a, b| b.cmp(a));
    let mut layout = input.clone();
    for dim in dims {
        layout = layout.squeeze(dim as i64)?;
    }
    Ok(layout)
}

/// The same bytes read as another dtype: of the same size, or with the last dimension longer or
/// shorter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewDtype(pub(crate) DType);

impl Operation for ViewDtype {
    fn info(&self) -> &'static OpInfo {
        &VIEW_DTYPE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (from, to) = (inputs[0].dtype, self.0);
        let layout = inputs[0].layout.with_element_size(from.size_bytes(), to.size_bytes());
        let layout = layout.map_err(|error| error.in_operation(VIEW_DTYPE.name))?;
        Ok(Inferred::View(Meta { layout, dtype: to }))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        Err(Error::unsupported(launch.operation, "a view has no kernel"))
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

#[track_caller]
fn unview(view: View, shape: &[usize], grad: &Tensor) -> Result<Tensor> {
    apply_one(&Unview { view, shape: shape.into() }, &[grad], Site::in_force())
}

/// Zeros of `shape`, with input 0 added where `view` looks.
#[derive(Clone, Debug)]
struct Unview {
    view: View,
    shape: plimsoll_core::Dims,
}

impl Operation for Unview {
    fn info(&self) -> &'static OpInfo {
        &UNVIEW
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(&self.shape, inputs[0].dtype)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::unview(launch, self.view.layout(launch.outputs[0].layout())?)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        _inputs: &[&Meta],
        outputs: &[Meta],
    ) -> usize {
        let Some(output) = outputs.first() else { return 0 };
        let view = self.view.layout(&output.layout);
        view.map_or(0, |view| cuda::unview_workspace_bytes(&view, output))
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::unview(launch, self.view.layout(launch.outputs[0].layout())?)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = match self.view {
            // It looks at the storage, so that must be laid out as it was.
            View::AsStrided { .. } => backward.grad()?.contiguous()?,
            _ => backward.grad()?.clone(),
        };
        Ok(smallvec::smallvec![Some(apply_one(&self.view, &[&grad], Site::in_force())?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "views",
        signatures,
        cuda: OnCuda::Library,
        differentiable: true,
        in_place: false,
        out: Out::None,
        dtypes: DTypes::ALL,
        ..OpInfo::BARE
    }
}

static VIEW: OpInfo = info(
    "view",
    &["view(Tensor self, int[] size) -> Tensor", "view(Tensor self, DType dtype) -> Tensor"],
);
static TRANSPOSE: OpInfo =
    info("transpose", &["transpose(Tensor self, int dim0, int dim1) -> Tensor"]);
static PERMUTE: OpInfo = info("permute", &["permute(Tensor self, int[] dims) -> Tensor"]);
static NARROW: OpInfo = info(
    "narrow",
    &[
        "narrow(Tensor self, int dim, int start, int length) -> Tensor",
        "narrow(Tensor self, int dim, Tensor start, int length) -> Tensor",
    ],
);
static SLICE: OpInfo = info(
    "slice",
    &["slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor"],
);
static SELECT: OpInfo = info("select", &["select(Tensor self, int dim, int index) -> Tensor"]);
static EXPAND: OpInfo = info("expand", &["expand(Tensor self, int[] size) -> Tensor"]);
static SQUEEZE: OpInfo = info(
    "squeeze",
    &["squeeze(Tensor self) -> Tensor", "squeeze(Tensor self, int[] dim) -> Tensor"],
);
static UNSQUEEZE: OpInfo = info("unsqueeze", &["unsqueeze(Tensor self, int dim) -> Tensor"]);
static AS_STRIDED: OpInfo = info(
    "as_strided",
    &["as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor"],
);
static DIAGONAL: OpInfo =
    info("diagonal", &["diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor"]);
static UNFOLD: OpInfo =
    info("unfold", &["unfold(Tensor self, int dimension, int size, int step) -> Tensor"]);
/// Internal: `view` with a dtype. It has no derivative, as in PyTorch.
static VIEW_DTYPE: OpInfo = OpInfo { differentiable: false, ..info("view", &[]) };
/// Internal: reached only through the derivatives of views.
static UNVIEW: OpInfo =
    OpInfo { cuda: OnCuda::Kernels(&source_files::COPY), ..info("unview", &[]) };

pub(crate) static OPS: &[&OpInfo] = &[
    &VIEW,
    &TRANSPOSE,
    &PERMUTE,
    &NARROW,
    &SLICE,
    &SELECT,
    &EXPAND,
    &SQUEEZE,
    &UNSQUEEZE,
    &AS_STRIDED,
    &DIAGONAL,
    &UNFOLD,
];
