//! The small conversions that let calls read like PyTorch's keyword arguments.

use plimsoll_core::{DType, Device, Scalar};

use crate::Tensor;

/// Where and of what type a new tensor is: `DType::F32`, a device, or both.
///
/// ```
/// use plimsoll_tensor::{DType, Device, Tensor};
/// let x = Tensor::zeros(&[2, 3], (DType::F64, Device::cpu()))?;
/// let y = Tensor::zeros(&[2, 3], Device::cpu())?; // float32
/// assert_eq!((x.dtype(), y.dtype()), (DType::F64, DType::F32));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorOptions {
    /// The element type; `None` is float32, or what the values imply.
    pub dtype: Option<DType>,
    /// The device; `None` is the CPU, or that of the tensor it is made like.
    pub device: Option<Device>,
    /// Whether the tensor is a leaf that wants a gradient.
    pub requires_grad: bool,
}

impl TensorOptions {
    /// Asks for a gradient.
    #[must_use]
    pub fn requires_grad(mut self, requires_grad: bool) -> TensorOptions {
        self.requires_grad = requires_grad;
        self
    }

    pub(crate) fn dtype_or(self, default: DType) -> DType {
        self.dtype.unwrap_or(default)
    }

    pub(crate) fn device_or_cpu(self) -> Device {
        self.device.unwrap_or(Device::CPU)
    }
}

impl From<DType> for TensorOptions {
    fn from(dtype: DType) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), ..TensorOptions::default() }
    }
}

impl From<Device> for TensorOptions {
    fn from(device: Device) -> TensorOptions {
        TensorOptions { device: Some(device), ..TensorOptions::default() }
    }
}

impl From<(DType, Device)> for TensorOptions {
    fn from((dtype, device): (DType, Device)) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), device: Some(device), requires_grad: false }
    }
}

impl From<(Device, DType)> for TensorOptions {
    fn from((device, dtype): (Device, DType)) -> TensorOptions {
        (dtype, device).into()
    }
}

/// The second operand of an operation: a tensor or a host number.
#[derive(Clone, Copy, Debug)]
pub enum Other<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A host number; it promotes by its class only.
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for Other<'a> {
    fn from(tensor: &'a Tensor) -> Other<'a> {
        Other::Tensor(tensor)
    }
}

macro_rules! other_from {
    ($($type:ty),*) => {$(
        impl From<$type> for Other<'_> {
            fn from(value: $type) -> Self {
                Other::Scalar(value.into())
            }
        }
    )*};
}

other_from!(Scalar, f64, f32, i64, i32, bool);
