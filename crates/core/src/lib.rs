//! The words every other Plimsoll crate speaks: element types, shapes, layouts and the view rules
//! on them, device ids, byte sizes and the one error type.
//!
//! Nothing here allocates tensor memory, touches a device or uses `unsafe`. Start with [`Layout`]:
//! all of PyTorch's view semantics are functions from one layout to another.

#![forbid(unsafe_code)]

mod broadcast;
mod bytes;
mod device;
mod dtype;
mod error;
mod layout;
mod memory_format;
mod overlap;
mod promote;
mod scalar;
mod shape;
mod slanted_views;
mod views;

pub use broadcast::broadcast_shapes;
pub use bytes::ByteSize;
pub use device::{Device, DeviceKind};
pub use dtype::{DType, DTypeClass};
pub use error::{Error, ErrorKind, Result};
pub use layout::Layout;
pub use memory_format::MemoryFormat;
pub use promote::{promote_dtypes, promote_with_scalar};
pub use scalar::Scalar;
pub use shape::{Dims, checked_numel, normalize_dim, normalize_dims, sizes_from_i64};
