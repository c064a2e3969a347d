//! Replacing a tensor's memory while it stays the same tensor to autograd: what `p.data = t`,
//! moving a parameter to another device and loading a state in place come down to.
//!
//! The layout behind a handle never changes, so that operations may read it without a lock.
//! Replacing gives *this* handle a new tensor object that inherits the old one's gradient, hooks
//! and place in graphs. It takes `&mut`: whoever shares a parameter shares a cell that holds the
//! handle.

use plimsoll_core::{Error, Layout, Result, sizes_from_i64};

use crate::Tensor;
use crate::autograd::inherit::inherit;
use crate::autograd::is_grad_enabled;
use crate::tensor::versions::Versions;

impl Tensor {
    /// Gives this tensor the memory, shape, dtype and device of `data`. Its gradient, hooks,
    /// whether it requires a gradient and the operation that made it stay; so do graphs that it is
    /// a leaf of. Nothing is recorded. Other handles of the old memory keep that, outside the
    /// graph.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let mut weight = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// weight.register_hook(|grad| grad.mul(10.0).map(Some))?;
    /// let loss = weight.mul(3.0)?.sum()?; // recorded with the old memory
    /// weight.set_data(&Tensor::zeros(&[2], DType::F32)?)?;
    /// loss.backward()?;
    /// assert_eq!(weight.to_vec::<f32>()?, [0.0, 0.0]);
    /// assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [30.0, 30.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn set_data(&mut self, data: &Tensor) -> Result<()> {
        self.replace("set_data", data, Versions::apart_from(self.version()))
    }

    /// [`Tensor::set_data`] as an in-place write: dtype and device must be the same, and a tensor
    /// that requires a gradient takes it only while nothing is recorded.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let mut x = Tensor::ones(&[2], DType::F32)?;
    /// x.set_(&Tensor::zeros(&[3], DType::F32)?)?;
    /// assert_eq!(x.shape(), [3]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn set_(&mut self, source: &Tensor) -> Result<()> {
        const OP: &str = "set_";
        if source.dtype() != self.dtype() {
            let why = format!(
                "the source is {}, this tensor {}; use `set_data` to change the dtype",
                source.dtype(),
                self.dtype()
            );
            return Err(Error::dtype(OP, why));
        }
        if source.device() != self.device() {
            let why = format!(
                "the source is on {}, this tensor on {}; use `set_data` to change the device",
                source.device(),
                self.device()
            );
            return Err(Error::device(OP, why));
        }
        if is_grad_enabled() && self.requires_grad() {
            return Err(Error::autograd(
                OP,
                "this tensor requires gradients, and replacing its memory cannot be recorded; do it \
                 under `no_grad`, or use `set_data`",
            ));
        }
        let versions = Versions::going_on(source.storage(), self.version().wrapping_add(1));
        self.replace(OP, source, versions)
    }

    /// Gives this tensor other sizes, row-major, over the same memory if that is large enough. If
    /// not, over new memory that starts with what the old one held; nothing is written to the rest.
    /// Views of the old memory keep it: unlike PyTorch's, a storage does not grow under them.
    /// Memory that others see too ([`Tensor::fix_storage_size`]) is not left for a larger one.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let mut x = Tensor::ones(&[4], DType::F32)?;
    /// x.resize_(&[2, 1])?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn resize_(&mut self, sizes: &[i64]) -> Result<()> {
        const OP: &str = "resize_";
        if self.requires_grad() {
            return Err(Error::autograd(
                OP,
                "this tensor requires gradients, and a change of its size cannot be recorded; use \
                 `view`, `narrow` or a new tensor",
            ));
        }
        let sizes = sizes_from_i64(OP, sizes)?;
        if sizes.as_slice() == self.shape() {
            return Ok(());
        }
        let layout = Layout::contiguous(&sizes).map_err(|error| error.in_operation(OP))?;
        let held = self.storage().nbytes() / self.element_size();
        let offset = self.storage_offset();
        let end = layout
            .numel()
            .checked_add(offset)
            .ok_or_else(|| Error::shape(OP, format!("a tensor of shape {sizes:?} is too large")))?;
        let plain = self.detach();
        let flat = |from: &Tensor, count: usize| from.as_strided(&[count as i64], &[1], 0);
        let wide = if end <= held {
            flat(&plain, end)?
        } else if self.storage().is_fixed_size() {
            return Err(Error::shape(
                OP,
                format!(
                    "Trying to resize storage that is not resizable: somebody else uses these {} bytes too (a NumPy \
                     array, a file, another process), and would not see the new ones; clone the tensor first",
                    self.storage().nbytes()
                ),
            ));
        } else {
            let new = Tensor::empty(&[end as i64], (self.dtype(), self.device()))?;
            let kept = held.min(end);
            flat(&new, kept)?.copy_(&flat(&plain, kept)?)?;
            new
        };
        let sizes: Vec<i64> = sizes.iter().map(|&size| size as i64).collect();
        let data = wide.narrow(0, offset as i64, (end - offset) as i64)?.view(&sizes)?;
        let versions = Versions::going_on(data.storage(), self.version().wrapping_add(1));
        self.replace(OP, &data, versions)
    }

    fn replace(&mut self, op: &'static str, data: &Tensor, versions: Versions) -> Result<()> {
        if self.requires_grad() && !data.dtype().is_float() {
            let why = format!(
                "data set to a tensor that requires gradients must be floating point or complex dtype, and {} is not",
                data.dtype()
            );
            return Err(Error::autograd(op, why));
        }
        let heir = self.over_memory_of(data, versions);
        inherit(&heir, self);
        *self = heir;
        Ok(())
    }
}
