//! Tensors by sizes and bounds, or like another: filled, counted or random. Their arguments are
//! matched like those of operations (`function.rs`); what makes tensors of given values is in
//! `create.rs`.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_tensor::{Other, Tensor, TensorOptions, default_dtype};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bound_arguments::Arguments;
use crate::defaults;
use crate::function::{Function, New, Out, Overload, Results};
use crate::tensor::PyTensor;

/// A function for each entry: its name, and the parameters and Rust call of each signature. All
/// take behind these what [`options`] reads.
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
                        ", *, DType? dtype=None, Device? device=None, bool requires_grad=False, \
                         Layout? layout=None, bool? pin_memory=False, MemoryFormat? memory_format=None) -> Tensor"
                    ),
                    new: New::Tensors($run),
                    in_place: None,
                    out: Out::CopiedExact,
                }),+]);
                FUNCTION.function(args, named_out(kwargs)?.as_ref())
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
    empty { "int[] size" => |a| one(a, 1, Tensor::empty(a.ints(0)?, options(a, 1)?)) }
    /// Memory in given strides that nothing was written to yet.
    empty_strided {
        "int[] size, int[] stride" =>
            |a| one(a, 2, Tensor::empty_strided(a.ints(0)?, a.ints(1)?, options(a, 2)?))
    }
    /// Memory with dimensions in a given order that nothing was written to yet.
    empty_permuted {
        "int[] size, int[] physical_layout" =>
            |a| one(a, 2, Tensor::empty_permuted(a.ints(0)?, a.ints(1)?, options(a, 2)?))
    }
    /// Zeros.
    zeros { "int[] size" => |a| one(a, 1, Tensor::zeros(a.ints(0)?, options(a, 1)?)) }
    /// Ones.
    ones { "int[] size" => |a| one(a, 1, Tensor::ones(a.ints(0)?, options(a, 1)?)) }
    /// Random numbers, evenly spread from 0 to 1.
    rand { "int[] size, *, Generator? generator=None" => |a| one(a, 2, Tensor::rand(a.ints(0)?, options(a, 2)?)) }
    /// Random numbers from the normal distribution.
    randn { "int[] size, *, Generator? generator=None" => |a| one(a, 2, Tensor::randn(a.ints(0)?, options(a, 2)?)) }
    /// Memory like another tensor's that nothing was written to yet.
    empty_like { "Tensor input" => |a| one(a, 1, a.tensor(0)?.empty_like_with(like_options(a, 1)?)) }
    /// Zeros like another tensor.
    zeros_like { "Tensor input" => |a| one(a, 1, a.tensor(0)?.zeros_like_with(like_options(a, 1)?)) }
    /// Ones like another tensor.
    ones_like { "Tensor input" => |a| one(a, 1, a.tensor(0)?.ones_like_with(like_options(a, 1)?)) }
    /// One number everywhere, like another tensor.
    full_like {
        "Tensor input, Scalar fill_value" =>
            |a| one(a, 2, a.tensor(0)?.full_like_with(a.number(1)?, like_options(a, 2)?))
    }
    /// Random numbers from 0 to 1 like another tensor.
    rand_like { "Tensor input, *, Generator? generator=None" => |a| one(a, 2, a.tensor(0)?.rand_like_with(like_options(a, 2)?)) }
    /// Random numbers from the normal distribution like another tensor.
    randn_like { "Tensor input, *, Generator? generator=None" => |a| one(a, 2, a.tensor(0)?.randn_like_with(like_options(a, 2)?)) }
    /// Random whole numbers from `low` (0 if it is left out) up to but not including `high`, like
    /// another tensor.
    randint_like {
        "Tensor input, int high, *, Generator? generator=None" =>
            |a| one(a, 3, a.tensor(0)?.randint_like_with(0, a.int(1)?, like_options(a, 3)?)),
        "Tensor input, int low, int high, *, Generator? generator=None" =>
            |a| one(a, 4, a.tensor(0)?.randint_like_with(a.int(1)?, a.int(2)?, like_options(a, 4)?)),
    }
    /// One number everywhere.
    full {
        "int[] size, Scalar fill_value" =>
            |a| one(a, 2, Tensor::full(a.ints(0)?, a.number(1)?, options(a, 2)?))
    }
    /// A tensor without dimensions.
    scalar_tensor {
        "Scalar s" => |a| {
            let mut options = options(a, 1)?;
            options.dtype = options.dtype.or(Some(default_dtype()));
            one(a, 1, Tensor::scalar(a.number(0)?, options))
        }
    }
    /// Numbers from `start` up to but not including `end`.
    arange {
        "Scalar end" => |a| range(a, 1, [Scalar::Int(0), a.number(0)?, Scalar::Int(1)]),
        "Scalar start, Scalar end, Scalar step=1" =>
            |a| range(a, 3, [a.number(0)?, a.number(1)?, a.number(2)?]),
    }
    /// So many numbers from `start` to `end`, evenly spaced.
    linspace {
        "Scalar start, Scalar end, int steps" =>
            |a| one(a, 3, Tensor::linspace(a.number(0)?, a.number(1)?, a.int(2)?, options(a, 3)?)),
        "Tensor|Scalar start, Tensor|Scalar end, int steps" =>
            |a| one(a, 3, Tensor::linspace(bound(a, 0)?, bound(a, 1)?, a.int(2)?, options(a, 3)?)),
    }
    /// So many powers of `base`, their exponents evenly spaced from `start` to `end`.
    logspace {
        "Scalar start, Scalar end, int steps, float base=10.0" =>
            |a| one(a, 4, Tensor::logspace(a.number(0)?, a.number(1)?, a.int(2)?, a.float(3)?, options(a, 4)?)),
        "Tensor|Scalar start, Tensor|Scalar end, int steps, float base=10.0" =>
            |a| one(a, 4, Tensor::logspace(bound(a, 0)?, bound(a, 1)?, a.int(2)?, a.float(3)?, options(a, 4)?)),
    }
    /// The identity matrix.
    eye {
        "int n" => |a| one(a, 1, Tensor::eye([a.int(0)?; 2], options(a, 1)?)),
        "int n, int m" => |a| one(a, 2, Tensor::eye([a.int(0)?, a.int(1)?], options(a, 2)?)),
    }
    /// Rows and columns of the elements of a matrix on and below a diagonal.
    tril_indices {
        "int row, int col, int offset=0" =>
            |a| one(a, 3, Tensor::tril_indices(a.int(0)?, a.int(1)?, a.int(2)?, options(a, 3)?))
    }
    /// Rows and columns of the elements of a matrix on and above a diagonal.
    triu_indices {
        "int row, int col, int offset=0" =>
            |a| one(a, 3, Tensor::triu_indices(a.int(0)?, a.int(1)?, a.int(2)?, options(a, 3)?))
    }
    /// Random whole numbers from `low` (0 if it is left out) up to but not including `high`.
    randint {
        "int high, int[] size, *, Generator? generator=None" =>
            |a| one(a, 3, Tensor::randint(0, a.int(0)?, a.ints(1)?, options(a, 3)?)),
        "int low, int high, int[] size, *, Generator? generator=None" =>
            |a| one(a, 4, Tensor::randint(a.int(0)?, a.int(1)?, a.ints(2)?, options(a, 4)?)),
    }
    /// The numbers from 0 to before `n` in random order.
    randperm {
        "int n, *, Generator? generator=None" => |a| one(a, 2, Tensor::randperm(a.int(0)?, options(a, 2)?))
    }
}

/// `out=None` is as good as none.
fn named_out<'py>(kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(kwargs) = kwargs else { return Ok(None) };
    let kwargs = kwargs.copy()?;
    if kwargs.get_item("out")?.is_some_and(|out| out.is_none()) {
        kwargs.del_item("out")?;
    }
    // A target says the dtype, unless it is named.
    if let Some(out) = kwargs.get_item("out")?
        && kwargs.get_item("dtype")?.is_none_or(|dtype| dtype.is_none())
        && let Ok(out) = out.cast::<PyTensor>()
    {
        kwargs.set_item("dtype", out.getattr("dtype")?)?;
    }
    Ok(Some(kwargs))
}

/// The tensor that was made; in memory that GPUs reach if the argument after the options from
/// `first` on says so.
fn one(a: &Arguments, first: usize, made: Result<Tensor>) -> Result<Results> {
    let made = made?;
    let pinned = a.optional_bool(first + 4).unwrap_or(false);
    Ok(smallvec::smallvec![if pinned { made.pin_memory()? } else { made }])
}

/// What all constructors take, the first of it being argument `first`.
fn options(a: &Arguments, first: usize) -> Result<TensorOptions> {
    let mut options = like_options(a, first)?;
    options.device = options.device.or_else(defaults::said);
    Ok(options)
}

/// The same for those that make a tensor like another, on its device unless another is named.
fn like_options(a: &Arguments, first: usize) -> Result<TensorOptions> {
    Ok(TensorOptions {
        dtype: a.optional_dtype(first),
        device: a.optional_device(first + 1),
        requires_grad: a.bool(first + 2)?,
        memory_format: a.optional_memory_format(first + 5),
    })
}

/// A bound that may be a tensor of one element.
fn bound(a: &Arguments, index: usize) -> Result<Scalar> {
    match a.other(index)? {
        Other::Scalar(value) => Ok(value),
        Other::Tensor(tensor) if tensor.rank() == 0 => tensor.to_scalar(),
        Other::Tensor(tensor) => Err(plimsoll_core::Error::shape(
            "linspace",
            format!("a bound has no dimensions, and this one has shape {:?}", tensor.shape()),
        )),
    }
}

/// As in PyTorch: whole numbers give int64, and one fraction among them the default float.
fn range(a: &Arguments, first: usize, bounds: [Scalar; 3]) -> Result<Results> {
    let mut options = options(a, first)?;
    let fraction = bounds.iter().any(|bound| matches!(bound, Scalar::Float(_)));
    options.dtype = options.dtype.or(Some(if fraction { default_dtype() } else { DType::I64 }));
    let [start, end, step] = bounds;
    one(a, first, Tensor::arange(start, end, step, options))
}
