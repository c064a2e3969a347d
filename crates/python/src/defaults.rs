//! Where tensors are made that name no device: the CPU, or what the program said with
//! `set_default_device` or `with device(...)`, for its thread. And the other settings of PyTorch
//! that hold until they are changed: the default dtype, and how tensors are printed.

use std::cell::RefCell;

use plimsoll_core::Device;
use plimsoll_tensor::{PrintOptions, print_options, set_print_options};
use pyo3::prelude::*;

use crate::device::{DeviceArg, PyDevice};
use crate::dtype::{self, DTypeArg, PyDType};
use crate::error::to_python;

thread_local! {
    /// The newest counts; blocks end in the order in which they began.
    static DEFAULT: RefCell<Vec<Device>> = const { RefCell::new(Vec::new()) };
}

/// The device that this thread's program said, if it did.
pub(crate) fn said() -> Option<Device> {
    DEFAULT.with_borrow(|devices| devices.last().copied())
}

/// The device of tensors that name none.
pub(crate) fn current() -> Device {
    said().unwrap_or(Device::cpu())
}

pub(crate) fn push(device: Device) {
    DEFAULT.with_borrow_mut(|devices| devices.push(device));
}

pub(crate) fn pop() {
    DEFAULT.with_borrow_mut(Vec::pop);
}

/// The device of tensors that name none.
#[pyfunction]
fn get_default_device() -> PyDevice {
    PyDevice::of(current())
}

/// Makes tensors that name no device there from now on, in this thread; None is the CPU again.
#[pyfunction]
fn set_default_device(device: Option<DeviceArg>) {
    DEFAULT.with_borrow_mut(|devices| {
        devices.pop();
        devices.extend(device.map(|device| device.0));
    });
}

/// The dtype of floats that nobody names one for.
#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> PyResult<Bound<'_, PyDType>> {
    dtype::object(py, plimsoll_tensor::default_dtype())
}

/// Changes the dtype of floats that nobody names one for; it must be a float.
#[pyfunction]
fn set_default_dtype(py: Python<'_>, d: DTypeArg) -> PyResult<()> {
    plimsoll_tensor::set_default_dtype(d.0).map(drop).map_err(|error| to_python(py, error))
}

/// How tensors are printed: precision, threshold, edge items, line width, and whether numbers have
/// exponents.
#[pyfunction]
fn _print_options() -> (usize, usize, usize, usize, Option<bool>) {
    let PrintOptions { precision, threshold, edge_items, line_width, scientific } = print_options();
    (precision, threshold, edge_items, line_width, scientific)
}

/// Changes how tensors are printed.
#[pyfunction]
#[pyo3(signature = (precision, threshold, edge_items, line_width, scientific))]
fn _set_print_options(
    precision: usize,
    threshold: usize,
    edge_items: usize,
    line_width: usize,
    scientific: Option<bool>,
) {
    set_print_options(PrintOptions { precision, threshold, edge_items, line_width, scientific });
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(get_default_device, module)?)?;
    module.add_function(wrap_pyfunction!(set_default_device, module)?)?;
    module.add_function(wrap_pyfunction!(get_default_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(set_default_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(_print_options, module)?)?;
    module.add_function(wrap_pyfunction!(_set_print_options, module)?)
}
