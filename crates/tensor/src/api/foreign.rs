//! Sharing memory with others without a copy: tensors over memory that somebody else owns, and
//! tensors whose memory somebody else uses. Python's NumPy and DLPack stand on these two.

use std::any::Any;

use plimsoll_core::{DType, Device, Error, Layout, Result};
use plimsoll_memory::{OriginId, Site};

use crate::Tensor;
use crate::device;
use crate::storage::Storage;
use plimsoll_kernels::Meta;

const OP: &str = "from_foreign";

impl Tensor {
    /// A tensor over host memory of somebody else, which is counted as external bytes. `owner` is
    /// dropped when the last tensor on the memory is; strides are in elements.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor, memory};
    /// let owner: Box<[f32; 4]> = Box::new([1.0, 2.0, 3.0, 4.0]);
    /// let address = owner.as_ptr() as usize;
    /// // SAFETY: the box holds four floats at `address` for as long as it lives, and nobody else
    /// // uses them.
    /// let x = unsafe { Tensor::from_foreign(owner, address, &[2, 2], &[1, 2], DType::F32)? };
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// assert_eq!(memory::arena(x.device()).stats().external_bytes.current, 16);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    ///
    /// # Safety
    /// As long as `owner` lives, the elements that sizes and strides reach from `address` are
    /// initialized memory of this process that may be read and written; bools are 0 or 1. While an
    /// operation on the tensor runs, nobody else writes to them, and nobody else reads them while
    /// one writes.
    #[track_caller]
    pub unsafe fn from_foreign(
        owner: impl Any + Send + Sync,
        address: usize,
        sizes: &[i64],
        strides: &[i64],
        dtype: DType,
    ) -> Result<Tensor> {
        let place = (Device::CPU, address);
        over_foreign(Box::new(owner), place, sizes, strides, dtype, Site::caller())
    }

    /// As [`Tensor::from_foreign`], over memory of `device`. `owner` is dropped when the last
    /// tensor on the memory is and the device has passed the work that uses it.
    ///
    /// # Safety
    /// As for [`Tensor::from_foreign`], of memory of `device`. What others have queued on it is
    /// done before the work that this thread's current stream is given next.
    #[track_caller]
    pub unsafe fn from_foreign_on(
        device: Device,
        owner: impl Any + Send + Sync,
        address: usize,
        sizes: &[i64],
        strides: &[i64],
        dtype: DType,
    ) -> Result<Tensor> {
        let place = (device, address);
        over_foreign(Box::new(owner), place, sizes, strides, dtype, Site::caller())
    }

    /// Moves the memory that this tensor shares with all of its views to `address`, where `owner`
    /// has as many bytes: every one of them lies there from now on, and `owner` is dropped with the
    /// last. The bytes are external from then on.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?;
    /// let view = x.narrow(0, 2, 2)?;
    /// let owner: Box<[u64; 4]> = Box::new([0; 4]);
    /// let address = owner.as_ptr() as usize;
    /// // SAFETY: the box has as many bytes at `address` for as long as it lives, and nobody else
    /// // uses them; there is no other thread.
    /// unsafe { view.move_storage(owner, address)? };
    /// view.fill_(7)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 1, 7, 7]);
    /// assert_eq!(x.foreign_address(), Some(address));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    ///
    /// # Safety
    /// As for [`Tensor::from_foreign`], of as many bytes as the storage has, which the old memory
    /// is no part of. While this runs, no other thread asks where the tensor's memory is.
    #[track_caller]
    pub unsafe fn move_storage(&self, owner: impl Any + Send + Sync, address: usize) -> Result<()> {
        const OP: &str = "move_storage";
        if !self.device().is_cpu() || self.device().is_dry() {
            let why =
                format!("only memory of the host can be moved, and this is {}", self.device());
            return Err(Error::device(OP, why));
        }
        if address == 0 || !address.is_multiple_of(size_of::<f64>()) {
            let why =
                format!("the address {address:#x} is not a multiple of the 8 bytes of a float64");
            return Err(Error::invalid_argument(why).in_operation(OP));
        }
        let origin = OriginId::intern(OP, Site::caller());
        // SAFETY: the caller's promise.
        unsafe { self.storage().move_to_foreign(address, Box::new(owner), origin) }
    }

    /// Where memory begins that this tensor shares with all of its views and that is somebody
    /// else's; `None` if it is ours.
    pub fn foreign_address(&self) -> Option<usize> {
        self.storage().foreign_address()
    }

    /// Says that somebody outside goes on using this tensor's memory: no tensor on it can be
    /// resized to more than it holds from now on, as none on foreign memory can.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let mut x = Tensor::ones(&[4], DType::F32)?;
    /// x.fix_storage_size();
    /// x.resize_(&[2])?;
    /// assert!(x.resize_(&[5]).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn fix_storage_size(&self) {
        self.storage().fix_size();
    }

    /// Keeps this tensor's memory where it is for as long as the guard lives, for others to use.
    #[track_caller]
    pub fn lend(&self) -> Result<Lent> {
        if self.device().is_dry() {
            let why = format!("{} only accounts for memory; there is none to lend", self.device());
            return Err(Error::device("lend", why));
        }
        self.storage().pin()?;
        let lent = Lent { tensor: self.clone() };
        self.storage().expose()?;
        Ok(lent)
    }
}

/// Where memory of no bytes begins: a multiple of every element's size.
const DANGLING: usize = 64;

/// A tensor over the elements at an address of a device, which belong to `owner`.
fn over_foreign(
    owner: Box<dyn Any + Send + Sync>,
    (device, address): (Device, usize),
    sizes: &[i64],
    strides: &[i64],
    dtype: DType,
    site: Site,
) -> Result<Tensor> {
    let layout = Layout::as_strided(sizes, strides, 0, usize::MAX)
        .map_err(|error| error.in_operation(OP))?;
    let meta = Meta { layout, dtype };
    let bytes = meta.span_bytes();
    if bytes > 0 && (address == 0 || !address.is_multiple_of(dtype.size_bytes())) {
        return Err(Error::invalid_argument(format!(
            "the address {address:#x} is not a multiple of the {} bytes of a {dtype}; copy the elements instead",
            dtype.size_bytes()
        ))
        .in_operation(OP));
    }
    let origin = OriginId::intern(OP, site);
    let entry = device::entry(device);
    // Nothing may lie nowhere, but slices of nothing still begin at some address.
    let address = if bytes == 0 { address.max(DANGLING) } else { address };
    let storage = Storage::over_foreign(entry, address, bytes, owner, origin);
    Ok(Tensor::new(storage, meta))
}

/// A tensor whose memory stays in place and alive while this lives.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::arange(0, 4, 1, DType::I64)?;
/// let lent = x.narrow(0, 1, 2)?.lend()?;
/// assert_eq!(lent.address(), x.data_ptr()? + 8);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Lent {
    tensor: Tensor,
}

impl Lent {
    /// The tensor.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// The address of its first element.
    pub fn address(&self) -> usize {
        let offset = self.tensor.storage_offset() * self.tensor.element_size();
        self.tensor.storage().pointer().addr() + offset
    }
}

impl Lent {
    /// Makes a stream of another library wait for the work that writes this tensor. Nothing to do
    /// on devices whose work is done when a call returns.
    ///
    /// # Safety
    /// `raw` is a stream of the tensor's GPU that is alive, by the driver's numbers (1 is the
    /// default stream).
    #[track_caller]
    pub unsafe fn ready_on_raw_stream(&self, raw: usize) -> Result<()> {
        let storage = self.tensor.storage();
        // SAFETY: the caller's promise.
        unsafe { storage.entry().hand_over(storage, raw) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.tensor.storage().unpin();
    }
}
