//! Tensors by sizes and bounds, or like another: filled, counted or random. Their arguments are
//! matched like those of operations (`function.rs`); what makes tensors of given values is in
//! `create.rs`.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_tensor::{Tensor, TensorOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bound_arguments::Arguments;
use crate::function::{Function, New, Out, Overload, Results};

/// A function for each entry: its name, and the parameters and Rust call of each signature. All
/// take `dtype`, `device` and `requires_grad` behind these.
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident { $($parameters:literal => $run:expr),+ $(,)? })*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (*args, **kwargs))]
            fn $name<'py>(
                args: &Bound<'py, PyTuple>,
                kwargs: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                static FUNCTION: Function = Function::new(stringify!($name), &[$(Overload {
                    signature: concat!(
                        stringify!($name), "(", $parameters,
                        ", *, DType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor"
                    ),
                    new: New::Tensors($run),
                    in_place: None,
                    out: Out::None,
                }),+]);
                FUNCTION.function(args, kwargs)
            }
        )*

        pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

constructors! {
    /// Memory that nothing was written to yet.
    empty { "int[] size" => |a| one(Tensor::empty(a.ints(0)?, options(a, 1)?)) }
    /// Zeros.
    zeros { "int[] size" => |a| one(Tensor::zeros(a.ints(0)?, options(a, 1)?)) }
    /// Ones.
    ones { "int[] size" => |a| one(Tensor::ones(a.ints(0)?, options(a, 1)?)) }
    /// Random numbers, evenly spread from 0 to 1.
    rand { "int[] size, *, Generator? generator=None" => |a| one(Tensor::rand(a.ints(0)?, options(a, 2)?)) }
    /// Random numbers from the normal distribution.
    randn { "int[] size, *, Generator? generator=None" => |a| one(Tensor::randn(a.ints(0)?, options(a, 2)?)) }
    /// Memory like another tensor's that nothing was written to yet.
    empty_like { "Tensor input" => |a| one(a.tensor(0)?.empty_like_with(options(a, 1)?)) }
    /// Zeros like another tensor.
    zeros_like { "Tensor input" => |a| one(a.tensor(0)?.zeros_like_with(options(a, 1)?)) }
    /// Ones like another tensor.
    ones_like { "Tensor input" => |a| one(a.tensor(0)?.ones_like_with(options(a, 1)?)) }
    /// Random numbers from 0 to 1 like another tensor.
    rand_like { "Tensor input, *, Generator? generator=None" => |a| one(a.tensor(0)?.rand_like_with(options(a, 2)?)) }
    /// Random numbers from the normal distribution like another tensor.
    randn_like { "Tensor input, *, Generator? generator=None" => |a| one(a.tensor(0)?.randn_like_with(options(a, 2)?)) }
    /// One number everywhere.
    full {
        "int[] size, Scalar fill_value" =>
            |a| one(Tensor::full(a.ints(0)?, a.number(1)?, options(a, 2)?))
    }
    /// Numbers from `start` up to but not including `end`.
    arange {
        "Scalar end" => |a| range(Scalar::Int(0), a.number(0)?, Scalar::Int(1), options(a, 1)?),
        "Scalar start, Scalar end, Scalar step=1" =>
            |a| range(a.number(0)?, a.number(1)?, a.number(2)?, options(a, 3)?),
    }
    /// The identity matrix.
    eye {
        "int n" => |a| one(Tensor::eye([a.int(0)?; 2], options(a, 1)?)),
        "int n, int m" => |a| one(Tensor::eye([a.int(0)?, a.int(1)?], options(a, 2)?)),
    }
    /// Random whole numbers from `low` (0 if it is left out) up to but not including `high`.
    randint {
        "int high, int[] size, *, Generator? generator=None" =>
            |a| one(Tensor::randint(0, a.int(0)?, a.ints(1)?, options(a, 3)?)),
        "int low, int high, int[] size, *, Generator? generator=None" =>
            |a| one(Tensor::randint(a.int(0)?, a.int(1)?, a.ints(2)?, options(a, 4)?)),
    }
}

fn one(made: Result<Tensor>) -> Result<Results> {
    Ok(smallvec::smallvec![made?])
}

/// What all constructors take, the first of it being argument `first`.
fn options(a: &Arguments, first: usize) -> Result<TensorOptions> {
    Ok(TensorOptions {
        dtype: a.optional_dtype(first),
        device: a.optional_device(first + 1),
        requires_grad: a.bool(first + 2)?,
    })
}

/// As in PyTorch: whole numbers give int64, and one fraction among them float32.
fn range(start: Scalar, end: Scalar, step: Scalar, mut options: TensorOptions) -> Result<Results> {
    let fraction = [start, end, step].iter().any(|bound| matches!(bound, Scalar::Float(_)));
    options.dtype = options.dtype.or(Some(if fraction { DType::F32 } else { DType::I64 }));
    one(Tensor::arange(start, end, step, options))
}
