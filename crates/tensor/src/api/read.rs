//! Reading elements on the host, and writing them there. The only place that turns storages into
//! Rust values.

use plimsoll_core::{Error, Result, Scalar};
use plimsoll_memory::{Site, enter_operation};

use crate::Tensor;
use crate::launch::PinnedOperands;
use crate::ops::copy::Format;
use plimsoll_kernels::{Element, Truth, match_dtype};

impl Tensor {
    /// The elements in row-major order, of exactly the tensor's dtype. Waits for the device and
    /// copies.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.t()?.to_vec::<i64>()?, [0, 2, 1, 3]);
    /// assert!(x.to_vec::<f32>().unwrap_err().is_dtype());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let _named = enter_operation("to_vec");
        const OP: &str = "to_vec";
        if T::DTYPE != self.dtype() {
            return Err(Error::dtype(
                OP,
                format!(
                    "the elements are {}, not {}; convert with `to` first",
                    self.dtype(),
                    T::DTYPE
                ),
            ));
        }
        let host = self.on_host(OP)?;
        PinnedOperands::inputs(&[&host])?.claimed(&[], || {
            let first = host.storage().pointer().cast::<T>().wrapping_add(host.storage_offset());
            // SAFETY: the storage is pinned host memory that holds `numel` consecutive elements
            // from its offset (the tensor is contiguous), every bit pattern is an element, and the
            // claim keeps writers away.
            Ok(unsafe { std::slice::from_raw_parts(first, host.numel()) }.to_vec())
        })
    }

    /// The elements as bools.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 2, 1, DType::I64)?;
    /// assert_eq!(x.gt(0)?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn to_bools(&self) -> Result<Vec<bool>> {
        let _named = enter_operation("to_bools");
        Ok(self.to_vec::<Truth>()?.into_iter().map(Truth::get).collect())
    }

    /// The one element as a Rust value of the tensor's dtype.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::full(&[1, 1], 2.5, DType::F32)?.item::<f32>()?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        let _named = enter_operation("item");
        self.check_single("item")?;
        let values = self.to_vec::<T>().map_err(|e| e.in_operation("item"))?;
        Ok(values[0])
    }

    /// The one element as a host number, whatever the dtype.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::full(&[], 3, DType::I32)?.to_scalar()?, Scalar::Int(3));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn to_scalar(&self) -> Result<Scalar> {
        let _named = enter_operation("to_scalar");
        self.check_single("to_scalar")?;
        match_dtype!(self.dtype(), T => Ok(self.to_vec::<T>()?[0].to_scalar()))
    }

    /// The elements as doubles in row-major order, whatever the dtype.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[2], DType::BF16)?.to_f64_vec()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        let _named = enter_operation("to_f64_vec");
        match_dtype!(self.dtype(), T => {
            Ok(self.to_vec::<T>()?.into_iter().map(Element::to_f64).collect())
        })
    }

    /// Copies bytes of the elements, from byte `start` on, into host memory that the caller has: a
    /// way to write a large tensor to a file by parts, without a second copy of it. For contiguous
    /// tensors in host memory; others are brought there first.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I16)?;
    /// let mut bytes = [0; 4];
    /// x.read_bytes(2, &mut bytes)?;
    /// assert_eq!(bytes, [1, 0, 2, 0]);
    /// assert!(x.read_bytes(6, &mut bytes).unwrap_err().is_index());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn read_bytes(&self, start: usize, into: &mut [u8]) -> Result<()> {
        let _named = enter_operation("read_bytes");
        const OP: &str = "read_bytes";
        let host = self.on_host(OP)?;
        if start.checked_add(into.len()).is_none_or(|end| end > host.nbytes()) {
            let (len, all) = (into.len(), host.nbytes());
            let why = format!("the tensor has {all} bytes, not {len} from byte {start} on");
            return Err(Error::index(OP, why));
        }
        PinnedOperands::inputs(&[&host])?.claimed(&[], || {
            let offset = host.storage_offset() * host.element_size() + start;
            let first = host.storage().pointer().cast::<u8>().wrapping_add(offset);
            // SAFETY: the storage is pinned host memory that holds `nbytes` consecutive bytes from
            // its offset (the tensor is contiguous), of which `into` asks for no more than there
            // are; the claim keeps writers away, and a Rust slice never lies in an arena.
            unsafe { std::ptr::copy_nonoverlapping(first, into.as_mut_ptr(), into.len()) };
            Ok(())
        })
    }

    /// The address of the first element. The memory stays where it is from now on, as long as the
    /// tensor lives.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[4], DType::F32)?;
    /// assert_eq!(x.narrow(0, 1, 2)?.data_ptr()?, x.data_ptr()? + 4);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn data_ptr(&self) -> Result<usize> {
        // Never unpinned: whoever has the address may use it at any time.
        self.storage().pin()?;
        self.storage().expose()?;
        let offset = self.storage_offset() * self.element_size();
        Ok(self.storage().pointer().addr() + offset)
    }

    fn check_single(&self, op: &'static str) -> Result<()> {
        if self.numel() == 1 {
            return Ok(());
        }
        Err(Error::shape(
            op,
            format!(
                "only a tensor of one element has a single value, and this one has shape {:?}",
                self.shape()
            ),
        ))
    }

    /// A contiguous tensor in host memory with the same elements, outside the graph.
    #[track_caller]
    fn on_host(&self, op: &'static str) -> Result<Tensor> {
        if self.device().is_dry() {
            return Err(Error::device(
                op,
                format!(
                    "{} only accounts for memory; its tensors have no values to read",
                    self.device()
                ),
            ));
        }
        let site = Site::caller();
        let plain = self.detach();
        let here = if plain.device().is_cpu() {
            plain
        } else {
            plain.to_device(plimsoll_core::Device::CPU, site)?
        };
        if here.is_contiguous() {
            return Ok(here);
        }
        here.copied(here.dtype(), Format::Contiguous, site)
    }

    /// Fills fresh contiguous host memory; not a write in autograd's eyes.
    pub(crate) fn write_from<T: Element>(&self, values: &[T]) -> Result<()> {
        debug_assert!(self.device().is_cpu() && self.is_contiguous() && T::DTYPE == self.dtype());
        if self.device().is_dry() {
            return Ok(());
        }
        let written = std::slice::from_ref(self);
        let mut held = PinnedOperands::inputs(&[])?;
        held.and_outputs(written)?;
        held.claimed(written, || {
            let first = self.storage().pointer().cast::<T>();
            // SAFETY: the storage is pinned, claimed for writing and holds `values.len()` elements
            // from its start; a Rust slice never lies in an arena.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), first, values.len()) };
            Ok(())
        })
    }
}
