//! Forms of calls that PyTorch still takes and calls deprecated: numbers by place before or between
//! the tensors, as in `x.add_(alpha, other)` and `addmm(beta, x, alpha, a, b)`. `function.rs` asks
//! here when no signature fits.

use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::Number;
use crate::said_once;
use crate::tensor::PyTensor;

/// Arguments and keywords of a call.
type Given<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

/// The names of the numbers of an old form, in order: `n` is a number, `t` a tensor, the one that a
/// method belongs to among them.
fn names(operation: &str, pattern: &str) -> Option<&'static [&'static str]> {
    match (operation, pattern) {
        ("add" | "sub", "tnt") => Some(&["alpha"]),
        ("addcmul" | "addcdiv", "tntt") => Some(&["value"]),
        ("addmm" | "addmv" | "addr" | "addbmm" | "baddbmm", "nttt") => Some(&["beta"]),
        ("addmm" | "addmv" | "addr" | "addbmm" | "baddbmm", "ntntt") => Some(&["beta", "alpha"]),
        _ => None,
    }
}

/// The same call in today's form, with the numbers as keywords; `None` if it is not an old form.
pub(crate) fn todays<'py>(
    operation: &str,
    is_method: bool,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Given<'py>>> {
    let is_tensor = |object: &Bound<'_, PyAny>| object.is_instance_of::<PyTensor>();
    let mut pattern = String::new();
    for object in args {
        if is_tensor(&object) {
            pattern.push('t');
        } else if object.extract::<Number>().is_ok() {
            pattern.push('n');
        } else {
            return Ok(None);
        }
    }
    if is_method {
        // A function of products has its own tensor after the first number, the others first.
        let place = usize::from(!pattern.is_empty() && !operation.starts_with("addc"));
        pattern.insert(if matches!(operation, "add" | "sub") { 0 } else { place }, 't');
    }
    let Some(names) = names(operation, &pattern) else { return Ok(None) };
    let py = args.py();
    let named = match kwargs {
        Some(kwargs) => kwargs.copy()?,
        None => PyDict::new(py),
    };
    let (tensors, numbers): (Vec<_>, Vec<_>) = args.iter().partition(is_tensor);
    for (name, number) in names.iter().zip(numbers) {
        if named.contains(name)? {
            return Ok(None);
        }
        named.set_item(name, number)?;
    }
    Ok(Some((PyTuple::new(py, tensors)?, named)))
}

/// Says once, as PyTorch does, that the form is an old one.
pub(crate) fn warn_once(py: Python<'_>, called: &str) -> PyResult<()> {
    static SAID: AtomicBool = AtomicBool::new(false);
    let message = format!(
        "This overload of {called} is deprecated: its numbers stand before tensors. Give them by name after the \
         tensors: `alpha=`, `beta=` or `value=`."
    );
    said_once::warn(py, &SAID, &message)
}

/// Says once that `meshgrid` is to be told its order.
pub(crate) fn warn_of_order(py: Python<'_>) -> PyResult<()> {
    static SAID: AtomicBool = AtomicBool::new(false);
    let message = "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.";
    said_once::warn(py, &SAID, message)
}
