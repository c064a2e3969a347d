//! Moving tensors beside the host: pinned memory and copies that nobody waits for. The ordinary
//! `to` is in `copy.rs`.

use plimsoll_core::{Device, Result};
use plimsoll_memory::{OriginId, Site, enter_operation};

use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::copy::CopyInto;
use crate::ops::transfer::{self, Manner};
use crate::prepare::apply;
use plimsoll_kernels::Meta;

impl Tensor {
    /// As `to(device)`, without waiting for the copy where that is possible: from pinned host
    /// memory to an accelerator, between accelerators, and to the CPU (the result is then pinned).
    /// Results are the same as with `to`: reading the result waits for the copy, and so does
    /// writing to the source.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Device, Tensor, device};
    /// let device = device::stand_in(Default::default())?;
    /// let batch = Tensor::ones(&[1024], DType::F32)?.pin_memory()?;
    /// let there = batch.to_non_blocking(device)?;
    /// batch.zero_()?; // waits until the copy has read it
    /// let back = there.add(1.0)?.to_non_blocking(Device::cpu())?;
    /// assert_eq!(back.to_vec::<f32>()?, [2.0; 1024]); // waits until the copy has written it
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn to_non_blocking(&self, device: Device) -> Result<Tensor> {
        let _named = enter_operation("to_non_blocking");
        if self.device() == device {
            return Ok(self.clone());
        }
        transfer::to_device(self, device, Manner::NonBlocking, Site::caller())
    }

    /// A copy in pinned host memory, from which accelerators copy while the host goes on; this
    /// tensor if it is pinned already.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::arange(0, 3, 1, DType::I64)?;
    /// let pinned = x.pin_memory()?;
    /// assert!(pinned.is_pinned() && !x.is_pinned());
    /// assert_eq!(pinned.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn pin_memory(&self) -> Result<Tensor> {
        let _named = enter_operation("pin_memory");
        if self.is_pinned() {
            return Ok(self.clone());
        }
        let site = Site::caller();
        let here = self.detach().to_device(Device::CPU, site)?;
        let layout = here.layout();
        let meta = if layout.is_dense() {
            Meta { layout: layout.at_start(), dtype: here.dtype() }
        } else {
            Meta::contiguous(here.shape(), here.dtype())?
        };
        let origin = OriginId::intern("pin_memory", site);
        let storage = transfer::allocate_pinned(meta.span_bytes(), origin)?;
        let pinned = Tensor::new(storage, meta);
        crate::autograd::no_grad(|| apply(&CopyInto, &[&pinned, &here], Dest::InPlace, site))?;
        Ok(pinned)
    }

    /// Whether it lies in pinned host memory.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert!(!Tensor::ones(&[2], DType::F32)?.is_pinned());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_pinned(&self) -> bool {
        self.storage().is_page_locked()
    }
}
