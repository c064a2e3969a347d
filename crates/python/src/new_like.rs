//! `x.new_zeros(...)` and the like: tensors by sizes, of this one's dtype and device unless others
//! are named.

use plimsoll_core::Result;
use plimsoll_tensor::{Tensor, TensorOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bound_arguments::Arguments;
use crate::function::{Function, New, Out, Overload, Results};
use crate::tensor::PyTensor;

/// A method for each entry: its name, its parameters and its Rust call.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident, $parameters:literal => $run:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                #[pyo3(signature = (*args, **kwargs))]
                fn $name<'py>(
                    slf: &Bound<'py, PyTensor>,
                    args: &Bound<'py, PyTuple>,
                    kwargs: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    static FUNCTION: Function = Function::new(stringify!($name), &[Overload {
                        signature: concat!(
                            stringify!($name), "(Tensor self, ", $parameters,
                            ", *, DType? dtype=None, Device? device=None, bool requires_grad=False, \
                             Layout? layout=None, bool? pin_memory=False) -> Tensor"
                        ),
                        new: New::Tensors($run),
                        in_place: None,
                        out: Out::None,
                    }]);
                    FUNCTION.method(slf, args, kwargs)
                }
            )*
        }
    };
}

methods! {
    /// Memory that nothing was written to yet, of this tensor's dtype and device.
    new_empty, "int[] size" => |a| one(Tensor::empty(a.ints(1)?, options(a, 2)?));
    /// Memory in given strides that nothing was written to yet, of this tensor's dtype and device.
    new_empty_strided, "int[] size, int[] stride" =>
        |a| one(Tensor::empty_strided(a.ints(1)?, a.ints(2)?, options(a, 3)?));
    /// Zeros of this tensor's dtype and device.
    new_zeros, "int[] size" => |a| one(Tensor::zeros(a.ints(1)?, options(a, 2)?));
    /// Ones of this tensor's dtype and device.
    new_ones, "int[] size" => |a| one(Tensor::ones(a.ints(1)?, options(a, 2)?));
    /// One number everywhere, of this tensor's dtype and device.
    new_full, "int[] size, Scalar fill_value" =>
        |a| one(Tensor::full(a.ints(1)?, a.number(2)?, options(a, 3)?));
}

fn one(made: Result<Tensor>) -> Result<Results> {
    Ok(smallvec::smallvec![made?])
}

fn options(a: &Arguments, first: usize) -> Result<TensorOptions> {
    let own = a.tensor(0)?;
    Ok(TensorOptions {
        dtype: a.optional_dtype(first).or(Some(own.dtype())),
        device: a.optional_device(first + 1).or(Some(own.device())),
        requires_grad: a.bool(first + 2)?,
        memory_format: None,
    })
}
