//! Elementwise operations of one input: what their rows are made of. The rows, with the methods of
//! the API, are in `functions.rs` and the other files of this folder, one entry each. Those with
//! host numbers beside the input are in `ops/pointwise/`.

pub(crate) mod exponential;
pub(crate) mod functions;
pub(crate) mod gelu;
pub(crate) mod predicates;
pub(crate) mod rounding;
pub(crate) mod special;
pub(crate) mod special_module;
pub(crate) mod trigonometric;

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};

use super::elementwise;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Input, Needs, OnCuda, OpInfo, Operation, Out, Promotion,
    Saves,
};
use crate::prepare::{apply, apply_one};
use plimsoll_cuda::source_files;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

pub(crate) use functions::{GELU, GELU_TANH};

/// One unary operation.
#[derive(Debug)]
pub(crate) struct UnaryRow {
    pub(crate) info: OpInfo,
    /// The result's dtype, if that is not the input's.
    result: Option<DType>,
    /// What the derivative reads: the input, the output, or nothing.
    saves: Saves,
    cpu: fn(&CpuLaunch<'_>) -> Result<()>,
    /// The gradient of the input from the gradient of the output and the saved value (the gradient
    /// itself if none is saved).
    derivative: fn(grad: &Tensor, saved: &Tensor) -> Result<Tensor>,
}

impl UnaryRow {
    /// What entries leave out: a result of the input's dtype, that does not move with the input.
    pub(crate) const STEP: UnaryRow = UnaryRow {
        info: OpInfo::BARE,
        result: None,
        saves: Saves::NOTHING,
        cpu: |launch| Err(Error::unsupported(launch.operation, "its row names no kernel")),
        derivative: |grad, _| grad.zeros_like(),
    };
}

/// Declares rows and methods, and the list of the rows. Signatures are PyTorch's where they have
/// more than the input. What an entry leaves out is as in [`UnaryRow::STEP`].
macro_rules! unary {
    ($(
        $(#[$doc:meta])*
        $name:ident, $in_place:ident, $into:ident => $row:ident: $kind:ident $(, $signature:literal)? {
            $($field:ident: $value:expr,)*
        }
    )*) => {
        $(
            pub(crate) static $row: $crate::ops::unary::UnaryRow = $crate::ops::unary::UnaryRow {
                info: $crate::operation::OpInfo {
                    name: stringify!($name),
                    signatures: &[$crate::ops::unary::unary!(@signature $name $(, $signature)?)],
                    ..$kind
                },
                $($field: $value,)*
                ..$crate::ops::unary::UnaryRow::STEP
            };

            impl $crate::Tensor {
                $(#[$doc])*
                #[track_caller]
                pub fn $name(&self) -> plimsoll_core::Result<$crate::Tensor> {
                    $crate::ops::unary::new(&$row, self, plimsoll_memory::Site::caller())
                }

                #[doc = concat!("[`", stringify!($name), "`](crate::Tensor::", stringify!($name), ") in place.")]
                #[track_caller]
                pub fn $in_place(&self) -> plimsoll_core::Result<&$crate::Tensor> {
                    $crate::ops::unary::in_place(&$row, self, plimsoll_memory::Site::caller())
                }

                #[doc = concat!("[`", stringify!($name), "`](crate::Tensor::", stringify!($name), ") into `out`.")]
                #[track_caller]
                pub fn $into(&self, out: &$crate::Tensor) -> plimsoll_core::Result<()> {
                    $crate::ops::unary::into(&$row, self, out, plimsoll_memory::Site::caller())
                }
            }
        )*

        pub(crate) static OPS: &[&$crate::operation::OpInfo] = &[$(&$row.info),*];
    };
    (@signature $name:ident) => {
        concat!(stringify!($name), "(Tensor self) -> Tensor")
    };
    (@signature $name:ident, $signature:literal) => {
        $signature
    };
}
pub(crate) use unary;

/// A row as an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unary(pub(crate) &'static UnaryRow);

impl Operation for Unary {
    fn info(&self) -> &'static OpInfo {
        &self.0.info
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.0.info.name, inputs, self.0.result.unwrap_or(inputs[0].dtype))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        self.0.saves
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        (self.0.cpu)(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        match self.0.info.cuda {
            OnCuda::Kernels(source) if std::ptr::eq(source, &source_files::UNARY) => {
                cuda::unary(launch, self.0.info.name)
            }
            _ => {
                // `bitwise_not` of bools is another function than that of integers.
                let is_bool = f64::from(u8::from(launch.inputs[0].dtype() == DType::Bool));
                cuda::tail(launch, &self.0.info, None, [is_bool, 0.0, 0.0])
            }
        }
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let saved = match self.0.saves {
            Saves { inputs, .. } if inputs.any() => backward.input(0)?,
            Saves { outputs, .. } if outputs.any() => backward.output(0)?,
            _ => grad,
        };
        Ok(smallvec::smallvec![Some((self.0.derivative)(grad, saved)?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// A derivative in one kernel, for backward passes that nobody differentiates again. `kernel` takes
/// [grad, saved].
#[derive(Clone, Copy, Debug)]
struct Fused {
    info: &'static OpInfo,
    kernel: fn(&CpuLaunch<'_>) -> Result<()>,
}

impl Operation for Fused {
    fn info(&self) -> &'static OpInfo {
        self.info
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.info.name, inputs, inputs[0].dtype)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        (self.kernel)(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        match self.info.cuda {
            OnCuda::Kernels(source) if std::ptr::eq(source, &source_files::UNARY) => {
                cuda::unary_backward(launch, self.info.name)
            }
            _ => cuda::tail(launch, self.info, None, [0.0; 3]),
        }
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// A function of floats; integers become float32.
const FLOAT: OpInfo = OpInfo {
    family: "unary",
    differentiable: true,
    in_place: true,
    out: Out::Cast,
    elementwise: true,
    cuda: OnCuda::Kernels(&source_files::UNARY),
    dtypes: DTypes::FLOATS,
    inputs: &[Input::Operand],
    promotion: Promotion::Float,
    ..OpInfo::BARE
};

/// As [`FLOAT`], of floats alone.
const FLOAT_ONLY: OpInfo = OpInfo { promotion: Promotion::Common, ..FLOAT };

/// A function of every number, of its dtype.
const NUMBER: OpInfo =
    OpInfo { dtypes: DTypes::NUMBERS, promotion: Promotion::Common, out: Out::Exact, ..FLOAT };

/// A function of every dtype.
const ANY: OpInfo = OpInfo { dtypes: DTypes::ALL, ..NUMBER };

/// The same, with CUDA kernels of the long tail.
const fn tail(info: OpInfo) -> OpInfo {
    OpInfo { cuda: OnCuda::Kernels(&source_files::FUNCTIONS), ..info }
}

/// A derivative kernel: internal, reached only through its forward operation.
const fn fused(name: &'static str) -> OpInfo {
    OpInfo {
        name,
        differentiable: false,
        in_place: false,
        out: Out::None,
        inputs: &[Input::Given],
        promotion: Promotion::None,
        ..FLOAT
    }
}

#[track_caller]
fn run_fused(
    info: &'static OpInfo,
    kernel: fn(&CpuLaunch<'_>) -> Result<()>,
    grad: &Tensor,
    saved: &Tensor,
) -> Result<Tensor> {
    apply_one(&Fused { info, kernel }, &[grad, saved], Site::caller())
}

/// Runs the operation of `row`.
pub(crate) fn new(row: &'static UnaryRow, x: &Tensor, site: Site) -> Result<Tensor> {
    apply_one(&Unary(row), &[x], site)
}

/// Runs the operation of `row` over `x` itself. A result of another dtype is made apart and copied
/// in.
pub(crate) fn in_place<'a>(
    row: &'static UnaryRow,
    x: &'a Tensor,
    site: Site,
) -> Result<&'a Tensor> {
    if row.result.is_some() {
        return x.copy_from(&new(row, x, site)?, site);
    }
    apply(&Unary(row), &[x], Dest::InPlace, site)?;
    Ok(x)
}

/// Runs the operation of `row` into `out`.
pub(crate) fn into(row: &'static UnaryRow, x: &Tensor, out: &Tensor, site: Site) -> Result<()> {
    apply(&Unary(row), &[x], Dest::Out(&[out]), site).map(drop)
}
