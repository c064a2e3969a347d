//! Conversions of a tensor: `to` in all its forms, a method for each dtype, `contiguous`.

use plimsoll_core::{DType, Device, MemoryFormat};
use plimsoll_tensor::To;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::call::fresh_of;
use crate::device::{DeviceArg, named};
use crate::dtype::DTypeArg;
use crate::memory_format::PyMemoryFormat;
use crate::tensor::{PyTensor, TensorObject};

/// A format by keyword.
type Format<'a, 'py> = Option<&'a Bound<'py, PyMemoryFormat>>;

fn format_of(given: Format<'_, '_>) -> Option<MemoryFormat> {
    given.map(|format| format.get().0)
}

/// In another dtype.
fn converted<'py>(
    slf: &Bound<'py, PyTensor>,
    dtype: DType,
    memory_format: Format<'_, 'py>,
) -> PyResult<Bound<'py, PyTensor>> {
    let to = To::new().dtype(dtype).memory_format(format_of(memory_format));
    fresh_of(slf, |this| this.to(to))
}

#[pymethods]
impl PyTensor {
    /// Another dtype or device, or another order in memory.
    #[pyo3(signature = (*target, dtype = None, device = None, other = None, non_blocking = false, copy = false, memory_format = None))]
    #[allow(clippy::too_many_arguments, reason = "PyTorch's")]
    fn to<'py>(
        slf: &Bound<'py, PyTensor>,
        target: &Bound<'py, PyTuple>,
        dtype: Option<DTypeArg>,
        device: Option<DeviceArg>,
        other: Option<&Bound<'py, PyTensor>>,
        non_blocking: bool,
        copy: bool,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let mut to = To {
            dtype: dtype.map(|d| d.0),
            device: device.map(|d| d.0),
            non_blocking,
            copy,
            memory_format: format_of(memory_format),
        };
        if let Some(other) = other {
            let other = &other.tensor();
            (to.dtype, to.device) = (Some(other.dtype()), Some(other.device()));
        }
        let mut flags = 0;
        for (place, argument) in target.iter().enumerate() {
            if argument.is_none() {
                continue;
            } else if let Ok(dtype) = argument.extract::<DTypeArg>() {
                to.dtype = Some(dtype.0);
            } else if let Ok(other) = argument.cast::<PyTensor>() {
                let other = &other.tensor();
                (to.dtype, to.device) = (Some(other.dtype()), Some(other.device()));
            } else if place > 0
                && let Ok(flag) = argument.extract::<bool>()
            {
                // `to(target, non_blocking, copy)`, by place.
                if flags == 0 {
                    to.non_blocking = flag;
                } else {
                    to.copy = flag;
                }
                flags += 1;
            } else {
                to.device = Some(argument.extract::<DeviceArg>()?.0);
            }
        }
        if target.is_empty()
            && to.dtype.is_none()
            && to.device.is_none()
            && memory_format.is_none()
            && !copy
        {
            return Err(PyTypeError::new_err("to(): give a dtype, a device or a tensor"));
        }
        fresh_of(slf, |this| this.to(to))
    }

    /// On the CPU.
    #[pyo3(signature = (*, memory_format = None))]
    fn cpu<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let to = To::new().device(Device::cpu()).memory_format(format_of(memory_format));
        fresh_of(slf, |this| this.to(to))
    }

    /// On a GPU: the one that is named, or the first.
    #[pyo3(signature = (device = None, non_blocking = false))]
    fn cuda<'py>(
        slf: &Bound<'py, PyTensor>,
        device: Option<&Bound<'py, PyAny>>,
        non_blocking: bool,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let device = match device {
            None => named(slf.py(), "cuda")?,
            Some(device) => match device.extract::<usize>() {
                Ok(ordinal) => named(slf.py(), &format!("cuda:{ordinal}"))?,
                Err(_) => device.extract::<DeviceArg>()?.0,
            },
        };
        if !device.answers_as_cuda() {
            return Err(PyRuntimeError::new_err(format!("cuda(): {device} is no GPU")));
        }
        let to = To { device: Some(device), non_blocking, ..To::new() };
        fresh_of(slf, |this| this.to(to))
    }

    /// In the dtype of another tensor, and beside it.
    fn type_as<'py>(
        slf: &Bound<'py, PyTensor>,
        other: &Bound<'py, PyTensor>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let other = other.tensor();
        let to = To::new().dtype(other.dtype()).device(other.device());
        fresh_of(slf, |this| this.to(to))
    }

    /// This tensor if it is dense in this order of dimensions, row-major unless another is named;
    /// else a copy that is.
    #[pyo3(signature = (*, memory_format = None))]
    fn contiguous<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let format = format_of(memory_format).unwrap_or(MemoryFormat::Contiguous);
        fresh_of(slf, |this| this.contiguous_with(format))
    }

    /// Whether it is dense in this order of dimensions: row-major unless another is named.
    #[pyo3(signature = (*, memory_format = None))]
    fn is_contiguous(&self, py: Python<'_>, memory_format: Format<'_, '_>) -> PyResult<bool> {
        match format_of(memory_format) {
            None => Ok(self.tensor(py).is_contiguous()),
            Some(MemoryFormat::Preserve) => {
                Err(PyRuntimeError::new_err("is_contiguous(): there is no order to preserve"))
            }
            Some(format) => Ok(self.with(py, |tensor| format.holds(tensor.layout()))),
        }
    }

    /// As float32.
    #[pyo3(signature = (memory_format = None))]
    fn float<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::F32, memory_format)
    }

    /// As float64.
    #[pyo3(signature = (memory_format = None))]
    fn double<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::F64, memory_format)
    }

    /// As float16.
    #[pyo3(signature = (memory_format = None))]
    fn half<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::F16, memory_format)
    }

    /// As bfloat16.
    #[pyo3(signature = (memory_format = None))]
    fn bfloat16<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::BF16, memory_format)
    }

    /// As int64.
    #[pyo3(signature = (memory_format = None))]
    fn long<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::I64, memory_format)
    }

    /// As int32.
    #[pyo3(signature = (memory_format = None))]
    fn int<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::I32, memory_format)
    }

    /// As int16.
    #[pyo3(signature = (memory_format = None))]
    fn short<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::I16, memory_format)
    }

    /// As int8.
    #[pyo3(signature = (memory_format = None))]
    fn char<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::I8, memory_format)
    }

    /// As uint8.
    #[pyo3(signature = (memory_format = None))]
    fn byte<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::U8, memory_format)
    }

    /// As bool: whether each element is not zero.
    #[pyo3(signature = (memory_format = None))]
    fn bool<'py>(
        slf: &Bound<'py, PyTensor>,
        memory_format: Format<'_, 'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        converted(slf, DType::Bool, memory_format)
    }
}
