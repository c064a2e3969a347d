//! A tensor that a model learns, as a cell that everybody who holds it shares: a model, its
//! optimizer, a second layer that is tied to it. Its memory can be replaced, moved to another
//! device or loaded anew, and all of them see it; graphs, gradients and hooks stay (`data.rs`).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use plimsoll_core::Result;
use plimsoll_memory::{Site, current_module, with_site};

use super::copy::To;
use crate::Tensor;
use crate::autograd::no_grad;
use crate::lock::Mutex;

/// A learned tensor, shared by clones.
///
/// ```
/// use plimsoll_tensor::{DType, Parameter, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[2], DType::F32)?)?;
/// let tied = weight.clone(); // what an optimizer or a second layer holds
/// weight.tensor().mul(3.0)?.sum()?.backward()?;
/// weight.to(DType::F64)?;
/// assert_eq!(tied.tensor().dtype(), DType::F64);
/// assert_eq!(tied.tensor().grad().unwrap().to_vec::<f64>()?, [3.0, 3.0]);
/// assert!(tied.is_same(&weight));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Parameter(Arc<Mutex<Cell>>);

struct Cell {
    tensor: Tensor,
    /// Whether its memory is booked under the module that it belongs to. A parameter is made before
    /// any module is called, so the first one that reads it in a call is taken for its owner.
    has_module: bool,
    /// What stands for it, on which thread; empty but for parameters that a call computes.
    stand_ins: Vec<(ThreadId, Tensor)>,
}

impl Parameter {
    /// A parameter over the memory of `data`: a leaf of its own that requires gradients, counted as
    /// a parameter.
    #[track_caller]
    pub fn new(data: &Tensor) -> Result<Parameter> {
        let leaf = data.detach().requires_grad_(true)?;
        leaf.mark_parameter();
        let cell = Cell { tensor: leaf, has_module: false, stand_ins: Vec::new() };
        Ok(Parameter(Arc::new(Mutex::new(cell))))
    }

    /// The tensor that it is now: what forward computes with, what has the gradient and the hooks.
    /// Its memory is booked under the module that is running when it is first read in one.
    pub fn tensor(&self) -> Tensor {
        let mut cell = self.0.lock();
        if !cell.stand_ins.is_empty() {
            let here = thread::current().id();
            if let Some((_, tensor)) = cell.stand_ins.iter().rfind(|(thread, _)| *thread == here) {
                return tensor.clone();
            }
        }
        if !cell.has_module {
            let module = current_module();
            if !module.is_root() {
                cell.tensor.mark_module(module);
                cell.has_module = true;
            }
        }
        cell.tensor.clone()
    }

    /// Replaces its memory, for everybody who holds it; see [`Tensor::set_data`].
    #[track_caller]
    pub fn set_data(&self, data: &Tensor) -> Result<()> {
        self.replace(|tensor| tensor.set_data(data))
    }

    /// Brings it, and its gradient, to another dtype or device. Graphs that were recorded before
    /// accumulate into it still.
    #[track_caller]
    pub fn to(&self, target: impl Into<To>) -> Result<()> {
        let target = target.into();
        with_site(Site::caller(), || {
            let old = self.tensor();
            let (data, grad) = no_grad(|| {
                let grad = old.grad().map(|grad| grad.to(target.clone())).transpose()?;
                Ok::<_, plimsoll_core::Error>((old.detach().to(target)?, grad))
            })?;
            if data.shares_storage_with(&old) {
                return Ok(());
            }
            self.replace(|tensor| {
                tensor.set_grad(None)?;
                tensor.set_data(&data)?;
                tensor.set_grad(grad.as_ref())
            })
        })
    }

    /// Whether both are one cell.
    pub fn is_same(&self, other: &Parameter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Lets another tensor stand for this parameter on this thread while the guard lives: a weight
    /// that is computed of others, in a layer that knows nothing of that.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Parameter, Tensor};
    /// let weight = Parameter::new(&Tensor::ones(&[2], DType::F32)?)?;
    /// let doubled = weight.stand_in(&weight.tensor().mul(2.0)?);
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [2.0, 2.0]);
    /// drop(doubled);
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[must_use = "the tensor stands for the parameter only while the guard lives"]
    pub fn stand_in(&self, tensor: &Tensor) -> StandIn {
        self.0.lock().stand_ins.push((thread::current().id(), tensor.clone()));
        StandIn { parameter: self.clone(), not_send: PhantomData }
    }

    /// Changes the tensor. Under the lock, so that two who do so come one after the other; nothing
    /// here runs a kernel.
    fn replace(&self, change: impl FnOnce(&mut Tensor) -> Result<()>) -> Result<()> {
        let mut cell = self.0.lock();
        let module = cell.tensor.module();
        change(&mut cell.tensor)?;
        cell.tensor.mark_parameter();
        if cell.has_module {
            cell.tensor.mark_module(module);
        }
        Ok(())
    }
}

/// While it lives, another tensor stands for a parameter: [`Parameter::stand_in`].
#[derive(Debug)]
pub struct StandIn {
    parameter: Parameter,
    // What it put there counts for its own thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let here = thread::current().id();
        let mut cell = self.parameter.0.lock();
        let last = cell.stand_ins.iter().rposition(|(thread, _)| *thread == here);
        let gone = last.map(|at| cell.stand_ins.remove(at));
        // The tensor is dropped after the lock.
        drop(cell);
        drop(gone);
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parameter").field(&self.tensor()).finish()
    }
}
