//! Copies and conversions: `clone_tensor`, `contiguous`, `to`, `copy_`.

use plimsoll_core::{DType, Device, Error, MemoryFormat, Result};
use plimsoll_memory::{Site, enter_operation};

use super::options::options;
use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::copy::{Copy, CopyInto, Format};
use crate::ops::transfer::{self, Manner};
use crate::prepare::{apply, apply_one};
use plimsoll_kernels::Meta;

options! {
    /// What [`Tensor::to`] converts to, and how. A dtype, a device or both will do:
    /// `x.to(DType::F64)`.
    To {
        /// The dtype, if it changes.
        dtype: Option<DType> = None,
        /// The device, if it changes.
        device: Option<Device> = None,
        /// Whether the host goes on while a copy between devices runs, where that is possible.
        non_blocking: bool = false,
        /// Whether the result has memory of its own even if nothing changes.
        copy: bool = false,
        /// The order of dimensions in memory, if it changes.
        memory_format: Option<MemoryFormat> = None,
    }
}

options! {
    /// How [`Tensor::copy_with_`] copies.
    CopyOptions {
        /// Whether the host goes on while a copy between devices runs, where that is possible.
        non_blocking: bool = false,
    }
}

impl From<DType> for To {
    fn from(dtype: DType) -> To {
        To::new().dtype(dtype)
    }
}

impl From<Device> for To {
    fn from(device: Device) -> To {
        To::new().device(device)
    }
}

impl From<(Device, DType)> for To {
    fn from((device, dtype): (Device, DType)) -> To {
        To::new().device(device).dtype(dtype)
    }
}

impl From<(DType, Device)> for To {
    fn from((dtype, device): (DType, Device)) -> To {
        (device, dtype).into()
    }
}

impl Tensor {
    /// A copy of the elements in memory of its own: PyTorch's `clone`. (`Clone` on the handle
    /// shares memory.)
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// let copy = x.clone_tensor()?;
    /// x.zero_()?;
    /// assert_eq!(copy.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn clone_tensor(&self) -> Result<Tensor> {
        self.copied(self.dtype(), Format::Preserve, Site::caller())
    }

    /// This tensor if it is row-major without holes, else a copy that is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?.view(&[2, 3])?;
    /// assert!(x.contiguous()?.shares_storage_with(&x)); // nothing to do
    /// assert_eq!(x.t()?.contiguous()?.strides(), [2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn contiguous(&self) -> Result<Tensor> {
        let _named = enter_operation("contiguous");
        if self.is_contiguous() {
            return Ok(self.clone());
        }
        self.copied(self.dtype(), Format::Contiguous, Site::caller())
    }

    /// Another dtype or device; this very tensor if nothing changes. Moving frees nothing: the
    /// source lives as long as somebody holds it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[2], 2.7, DType::F32)?;
    /// assert_eq!(x.to(DType::I64)?.to_vec::<i64>()?, [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn to(&self, target: impl Into<To>) -> Result<Tensor> {
        let _named = enter_operation("to");
        let site = Site::caller();
        let target = target.into();
        let dtype = target.dtype.unwrap_or(self.dtype());
        let device = target.device.unwrap_or(self.device());
        let manner = if target.non_blocking { Manner::NonBlocking } else { Manner::Blocking };
        let moved = |tensor: Tensor| {
            if tensor.device() == device {
                return Ok(tensor);
            }
            transfer::to_device(&tensor, device, manner, site)
        };
        // Whichever dtype is smaller travels.
        let converted = if dtype.size_bytes() <= self.element_size() {
            moved(self.to_dtype(dtype, site)?)?
        } else {
            moved(self.clone())?.to_dtype(dtype, site)?
        };
        let shared = converted.shares_storage_with(self);
        match target.memory_format.unwrap_or(MemoryFormat::Preserve) {
            MemoryFormat::Preserve if target.copy && shared => {
                self.copied(dtype, Format::Preserve, site)
            }
            MemoryFormat::Preserve => Ok(converted),
            // PyTorch asks for the format only where it copies anyway, or where it is another.
            MemoryFormat::Contiguous if shared && !target.copy && !self.is_channels_last() => {
                Ok(converted)
            }
            format if format.holds(converted.layout()) && !(target.copy && shared) => Ok(converted),
            format => converted.copied(dtype, format_of(&converted, format)?, site),
        }
    }

    /// A copy of the elements in memory of its own, in this order of dimensions.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1, 2, 2, 2], DType::F32)?;
    /// assert_eq!(x.clone_with(MemoryFormat::ChannelsLast)?.strides(), [8, 1, 4, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn clone_with(&self, format: MemoryFormat) -> Result<Tensor> {
        self.copied(self.dtype(), format_of(self, format)?, Site::caller())
    }

    /// This tensor if it is dense in this order of dimensions, else a copy that is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1, 2, 2, 2], DType::F32)?;
    /// assert!(x.contiguous_with(MemoryFormat::ChannelsLast)?.is_channels_last());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn contiguous_with(&self, format: MemoryFormat) -> Result<Tensor> {
        let _named = enter_operation("contiguous");
        if format == MemoryFormat::Preserve {
            let why = "there is no order to preserve; ask for contiguous_format";
            return Err(Error::shape("contiguous", why));
        }
        if format.holds(self.layout()) {
            return Ok(self.clone());
        }
        self.copied(self.dtype(), format_of(self, format)?, Site::caller())
    }

    /// Whether it is an image or a volume whose channels lie innermost, and not row-major.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert!(!Tensor::zeros(&[1, 2, 2, 2], DType::F32)?.is_channels_last());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_channels_last(&self) -> bool {
        let formats = [MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d];
        !self.is_contiguous() && formats.iter().any(|format| format.holds(self.layout()))
    }

    /// On the CPU.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert!(Tensor::ones(&[2], DType::F32)?.cpu()?.device().is_cpu());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cpu(&self) -> Result<Tensor> {
        let _named = enter_operation("cpu");
        self.to_device(Device::CPU, Site::caller())
    }

    /// As float32.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 2, 1, DType::I64)?.float()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn float(&self) -> Result<Tensor> {
        let _named = enter_operation("float");
        self.to_dtype(DType::F32, Site::caller())
    }

    /// As float64.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.double()?.dtype(), DType::F64);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn double(&self) -> Result<Tensor> {
        let _named = enter_operation("double");
        self.to_dtype(DType::F64, Site::caller())
    }

    /// As float16.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.half()?.nbytes(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn half(&self) -> Result<Tensor> {
        let _named = enter_operation("half");
        self.to_dtype(DType::F16, Site::caller())
    }

    /// As bfloat16.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.bfloat16()?.nbytes(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bfloat16(&self) -> Result<Tensor> {
        let _named = enter_operation("bfloat16");
        self.to_dtype(DType::BF16, Site::caller())
    }

    /// As int64.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::full(&[1], 2.9, DType::F32)?.long()?.item::<i64>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn long(&self) -> Result<Tensor> {
        let _named = enter_operation("long");
        self.to_dtype(DType::I64, Site::caller())
    }

    /// As int32.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.int()?.dtype(), DType::I32);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn int(&self) -> Result<Tensor> {
        let _named = enter_operation("int");
        self.to_dtype(DType::I32, Site::caller())
    }

    /// As int16.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.short()?.dtype(), DType::I16);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn short(&self) -> Result<Tensor> {
        let _named = enter_operation("short");
        self.to_dtype(DType::I16, Site::caller())
    }

    /// As int8.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.char()?.dtype(), DType::I8);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn char(&self) -> Result<Tensor> {
        let _named = enter_operation("char");
        self.to_dtype(DType::I8, Site::caller())
    }

    /// As uint8.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[1], DType::F32)?.byte()?.dtype(), DType::U8);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn byte(&self) -> Result<Tensor> {
        let _named = enter_operation("byte");
        self.to_dtype(DType::U8, Site::caller())
    }

    /// As bool: whether each element is not zero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 3, 1, DType::I64)?.bool()?.to_bools()?, [false, true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bool(&self) -> Result<Tensor> {
        let _named = enter_operation("bool");
        self.to_dtype(DType::Bool, Site::caller())
    }

    /// Overwrites the elements with those of `source`, broadcast, converted and moved as needed.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 2], DType::F32)?;
    /// x.copy_(&Tensor::arange(0, 2, 1, DType::I64)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn copy_(&self, source: &Tensor) -> Result<&Tensor> {
        let _named = enter_operation("copy_");
        self.copy_from(source, Site::caller())
    }

    /// As `copy_`, with the option not to wait: between pinned host memory and an accelerator the
    /// host goes on. Results are the same as with `copy_`.
    ///
    /// ```
    /// use plimsoll_tensor::{CopyOptions, DType, Tensor, device};
    /// let device = device::stand_in(Default::default())?;
    /// let buffer = Tensor::zeros(&[2], DType::F32)?.to(device)?;
    /// let batch = Tensor::ones(&[2], DType::F32)?.pin_memory()?;
    /// buffer.copy_with_(&batch, CopyOptions::new().non_blocking(true))?;
    /// assert_eq!(buffer.to_vec::<f32>()?, [1.0, 1.0]); // waits until the copy is done
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn copy_with_(&self, source: &Tensor, options: CopyOptions) -> Result<&Tensor> {
        let _named = enter_operation("copy_");
        let manner = if options.non_blocking { Manner::NonBlocking } else { Manner::Blocking };
        self.copy_in_manner(source, manner, Site::caller())
    }

    pub(crate) fn copy_from(&self, source: &Tensor, site: Site) -> Result<&Tensor> {
        self.copy_in_manner(source, Manner::Blocking, site)
    }

    fn copy_in_manner(&self, source: &Tensor, manner: Manner, site: Site) -> Result<&Tensor> {
        if source.device() == self.device() {
            apply(&CopyInto, &[self, source], Dest::InPlace, site)?;
        } else if transfer::fits(self, source) {
            transfer::copy_into(self, source, manner, site)?;
        } else {
            let here = transfer::to_device(source, self.device(), manner, site)?;
            apply(&CopyInto, &[self, &here], Dest::InPlace, site)?;
        }
        Ok(self)
    }

    pub(crate) fn copied(&self, dtype: DType, format: Format, site: Site) -> Result<Tensor> {
        apply_one(&Copy { dtype, format }, &[self], site)
    }

    /// A copy that lies exactly like `meta`, whose shape it has; row-major if `meta` has holes.
    #[track_caller]
    pub(crate) fn clone_as(&self, meta: &Meta) -> Result<Tensor> {
        let format = if meta.layout.is_dense() {
            Format::Like(meta.layout.at_start())
        } else {
            Format::Contiguous
        };
        self.copied(meta.dtype, format, Site::caller())
    }

    pub(crate) fn to_dtype(&self, dtype: DType, site: Site) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        self.copied(dtype, Format::Preserve, site)
    }

    pub(crate) fn to_device(&self, device: Device, site: Site) -> Result<Tensor> {
        if self.device() == device {
            return Ok(self.clone());
        }
        transfer::to_device(self, device, Manner::Blocking, site)
    }
}

/// How a copy of `x` lies in a format.
fn format_of(x: &Tensor, format: MemoryFormat) -> Result<Format> {
    Ok(match format.layout(x.shape())? {
        Some(layout) => Format::Like(layout),
        None => Format::Preserve,
    })
}
