//! How Python calls an operation: the caller's line is noted, the interpreter released while Rust
//! works (unless that is over sooner), and an error turned into an exception. Everything that
//! allocates or computes goes through here, so that no byte is without a line.

use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::{Error, Result};
use plimsoll_memory::with_site;
use plimsoll_tensor::Tensor;
use pyo3::prelude::*;

pub(crate) use crate::companion::wrap;
use crate::error::to_python;
use crate::frames;
use crate::subclass::{self, Class};
use crate::tensor::{PyTensor, TensorObject};

/// How many calls run. It changes only while attached, so a
/// collection sees one value throughout.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

struct InFlight;

impl InFlight {
    fn enter() -> InFlight {
        // Attached threads take turns: no locked instruction is needed.
        IN_FLIGHT.store(IN_FLIGHT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        InFlight
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        IN_FLIGHT.store(IN_FLIGHT.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }
}

/// Whether some thread works on tensors.
pub(crate) fn in_flight() -> bool {
    IN_FLIGHT.load(Ordering::Relaxed) > 0
}

/// Elements of all operands together up to which work is small.
const SMALL_ELEMENTS: usize = 512;
/// What operands make that are broadcast with each other, at most, for work to be small: a slow
/// function of so many takes a few milliseconds, what Python gives a thread before it lets another
/// one run.
const SMALL_COMBINATIONS: usize = 1 << 14;

/// How long work takes, as far as one can tell before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Less than to let go of the interpreter and take it again is worth.
    ///
    /// Such work may wait for a lock of the tensor crate, as the drop of any object may, and for
    /// another thread's work on the same storage. It runs none of the user's code and waits for no
    /// device: its bytes are at hand, and nobody listens.
    Small,
    /// Perhaps long.
    Any,
}

impl Effort {
    /// Of work whose results have no more elements than the operands' shapes together make.
    #[inline]
    pub(crate) fn of<'a>(operands: impl IntoIterator<Item = &'a Tensor>) -> Effort {
        if plimsoll_tensor::calls_foreign_code() {
            return Effort::Any;
        }
        let (mut elements, mut combinations) = (0usize, 1usize);
        for operand in operands {
            if !operand.is_at_hand() || operand.requires_grad() {
                return Effort::Any;
            }
            elements = elements.saturating_add(operand.numel());
            combinations = combinations.saturating_mul(operand.numel().max(1));
        }
        let is_small = elements <= SMALL_ELEMENTS && combinations <= SMALL_COMBINATIONS;
        if is_small { Effort::Small } else { Effort::Any }
    }
}

/// Runs `work` without the interpreter, under the caller's line.
pub(crate) fn call<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    call_of(py, Effort::Any, work)
}

/// The same of work that may be small, which keeps the interpreter.
#[inline]
pub(crate) fn call_of<R: Send>(
    py: Python<'_>,
    effort: Effort,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    in_call(py, effort, work).map_err(|error| to_python(py, error))
}

/// The same, with the error as Rust has it.
#[inline]
pub(crate) fn in_call<R: Send>(
    py: Python<'_>,
    effort: Effort,
    work: impl FnOnce() -> Result<R> + Send,
) -> Result<R> {
    match effort {
        Effort::Small => in_small_call(py, work),
        Effort::Any => {
            let site = frames::here(py);
            let _flight = InFlight::enter();
            py.detach(|| caught(|| with_site(site, work)))
        }
    }
}

/// The same of work that is small.
#[inline]
pub(crate) fn in_small_call<R>(py: Python<'_>, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let site = frames::here(py);
    let _flight = InFlight::enter();
    caught(|| with_site(site, work))
}

/// Runs `work`; where it panics, which is a mistake of ours, the caller gets an error that an
/// `except Exception` sees, rather than an exception that ends the program. What unwinding left in
/// the tensors that it was about to write is unknown, as after any error.
#[inline]
fn caught<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::driver(format!("a mistake in Plimsoll, please report it: {said}")))
    })
}

/// A new tensor.
pub(crate) fn fresh<'py>(
    py: Python<'py>,
    work: impl FnOnce() -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    wrap(py, call(py, work)?)
}

/// A new tensor as an object of a class.
pub(crate) fn fresh_as<'py>(
    py: Python<'py>,
    class: &Class<'py>,
    effort: Effort,
    work: impl FnOnce() -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    subclass::wrap(py, call_of(py, effort, work)?, class)
}

/// A new tensor from one and `others`, as an object of a class. Its results have no more elements
/// than the operands' shapes together make.
pub(crate) fn fresh_with<'py>(
    slf: &Bound<'py, PyTensor>,
    class: &Class<'py>,
    others: &[&Tensor],
    work: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    let py = slf.py();
    let effort =
        slf.with_tensor(|this| Effort::of([this].into_iter().chain(others.iter().copied())));
    let made = match effort {
        // The interpreter is kept, so that the tensor needs no handle of its own.
        Effort::Small => in_small_call(py, || slf.with_tensor(work)),
        Effort::Any => {
            let this = slf.tensor();
            in_call(py, effort, || work(&this))
        }
    };
    subclass::wrap(py, made.map_err(|error| to_python(py, error))?, class)
}

/// A new tensor from one, of its class.
pub(crate) fn fresh_of<'py>(
    slf: &Bound<'py, PyTensor>,
    work: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    let this = slf.tensor();
    fresh_as(slf.py(), &subclass::of_two(slf, None)?, Effort::Any, || work(&this))
}

/// Writes into the tensor itself, and gives the same object back.
pub(crate) fn write<'py>(
    slf: Bound<'py, PyTensor>,
    effort: Effort,
    work: impl FnOnce(&Tensor) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyTensor>> {
    let this = &slf.tensor();
    call_of(slf.py(), effort, || work(this))?;
    Ok(slf)
}
