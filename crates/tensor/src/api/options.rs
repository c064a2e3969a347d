//! Arguments that PyTorch takes by keyword, as values: required arguments of a method are
//! positional, the rest is one options value with setters. `x.sum()` has the required ones only,
//! `x.sum_with(options)` takes the rest.

use plimsoll_core::{DType, Device, MemoryFormat};

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
    /// The order of dimensions in memory; `None` is row-major, or that of the tensor it is made
    /// like.
    pub memory_format: Option<MemoryFormat>,
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
        TensorOptions { dtype: Some(dtype), device: Some(device), ..TensorOptions::default() }
    }
}

impl From<(Device, DType)> for TensorOptions {
    fn from((device, dtype): (Device, DType)) -> TensorOptions {
        (dtype, device).into()
    }
}

/// Declares an options value: its fields with their defaults, and a setter for each. One that
/// borrows tensors is declared with their lifetime: `Name<'a> { .. }`.
#[doc(hidden)]
#[macro_export]
macro_rules! options {
    ($(#[$doc:meta])* $name:ident<$life:lifetime> { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<$life> {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl<$life> Default for $name<$life> {
            fn default() -> $name<$life> {
                $name { $($field: $default,)* }
            }
        }

        impl<$life> $name<$life> {
            /// PyTorch's defaults.
            pub fn new() -> $name<$life> {
                $name::default()
            }

            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: impl Into<$type>) -> $name<$life> {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }

        impl $name {
            /// PyTorch's defaults.
            pub fn new() -> $name {
                $name::default()
            }

            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: impl Into<$type>) -> $name {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
}
pub(crate) use options;

/// One dimension or several: `1`, `[0, 2]`, a slice. Negative ones count from the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DimList(pub smallvec::SmallVec<[i64; 4]>);

impl DimList {
    /// The dimensions.
    pub fn as_slice(&self) -> &[i64] {
        &self.0
    }
}

impl From<i64> for DimList {
    fn from(dim: i64) -> DimList {
        DimList(smallvec::smallvec![dim])
    }
}

impl From<i32> for DimList {
    fn from(dim: i32) -> DimList {
        DimList::from(i64::from(dim))
    }
}

impl From<&[i64]> for DimList {
    fn from(dims: &[i64]) -> DimList {
        DimList(dims.into())
    }
}

impl<const N: usize> From<[i64; N]> for DimList {
    fn from(dims: [i64; N]) -> DimList {
        DimList(dims.as_slice().into())
    }
}

impl<const N: usize> From<&[i64; N]> for DimList {
    fn from(dims: &[i64; N]) -> DimList {
        DimList(dims.as_slice().into())
    }
}

impl From<&Vec<i64>> for DimList {
    fn from(dims: &Vec<i64>) -> DimList {
        DimList(dims.as_slice().into())
    }
}

/// [`options!`] with tensors among the fields, which are borrowed.
macro_rules! options_with_tensors {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a> {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl Default for $name<'_> {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl<'a> $name<'a> {
            /// PyTorch's defaults.
            pub fn new() -> $name<'a> {
                $name::default()
            }

            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: impl Into<$type>) -> $name<'a> {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
}
pub(crate) use options_with_tensors;
