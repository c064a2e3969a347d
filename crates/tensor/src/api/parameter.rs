//! A tensor that a model learns, as a cell that everybody who holds it shares: a model, its
//! optimizer, a second layer that is tied to it. Its memory can be replaced, moved to another
//! device or loaded anew, and all of them see it; graphs, gradients and hooks stay (`data.rs`).

use std::fmt;
use std::sync::Arc;

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
}

impl Parameter {
    /// A parameter over the memory of `data`: a leaf of its own that requires gradients, counted as
    /// a parameter.
    #[track_caller]
    pub fn new(data: &Tensor) -> Result<Parameter> {
        let leaf = data.detach().requires_grad_(true)?;
        leaf.mark_parameter();
        Ok(Parameter(Arc::new(Mutex::new(Cell { tensor: leaf, has_module: false }))))
    }

    /// The tensor that it is now: what forward computes with, what has the gradient and the hooks.
    /// Its memory is booked under the module that is running when it is first read in one.
    pub fn tensor(&self) -> Tensor {
        let mut cell = self.0.lock();
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

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parameter").field(&self.tensor()).finish()
    }
}
