//! The bytes of tensors on their way to a file: a whole storage at a time, in small parts, so that
//! writing holds no second copy of what lies in host memory, and of a device's memory one storage.

use std::io::Write;

use plimsoll_core::{Device, Error, Result};
use plimsoll_tensor::Tensor;

/// Bytes that are copied at once. No claim is held while they are written, so that a slow disk
/// delays no kernel.
const PART_BYTES: usize = 1 << 20;

/// All elements of the storage that a tensor lies in.
pub(crate) fn whole_storage(tensor: &Tensor) -> Result<Tensor> {
    let elements = tensor.storage_nbytes() / tensor.element_size();
    tensor.detach().as_strided(&[elements as i64], &[1], 0)
}

/// Writes the elements of a contiguous tensor as they lie in memory, which is little-endian on
/// every machine that Plimsoll runs on.
pub(crate) fn write(tensor: &Tensor, out: &mut dyn Write) -> Result<()> {
    if tensor.device().is_dry() {
        let device = tensor.device();
        let why = format!("{device} only accounts for memory; its tensors have no values to save");
        return Err(Error::device("save", why));
    }
    let host = match tensor.device().is_cpu() {
        true => tensor.detach(),
        false => tensor.detach().to(Device::cpu())?,
    };
    let host = host.contiguous()?;
    let mut part = vec![0; PART_BYTES.min(host.nbytes())];
    let mut start = 0;
    while start < host.nbytes() {
        let len = part.len().min(host.nbytes() - start);
        host.read_bytes(start, &mut part[..len])?;
        out.write_all(&part[..len])?;
        start += len;
    }
    Ok(())
}
