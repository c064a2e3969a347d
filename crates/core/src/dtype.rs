//! Element types. Their order and classes are what `promote` reads; their bytes are what `memory`
//! counts.

use std::fmt;

use crate::{Error, Result};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer; the type of indices.
    I64,
    /// IEEE half precision.
    F16,
    /// bfloat16: the upper half of an `f32`.
    BF16,
    /// IEEE single precision; the default float type.
    F32,
    /// IEEE double precision.
    F64,
}

/// The three classes that promotion compares first, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DTypeClass {
    /// `bool`.
    Bool,
    /// Integers of any width.
    Integer,
    /// Floating point of any width.
    Float,
}

impl DType {
    /// Every dtype, in promotion order.
    pub const ALL: [DType; 10] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// Bytes of one element.
    pub const fn size_bytes(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// Bool, integer or float.
    pub const fn class(self) -> DTypeClass {
        match self {
            DType::Bool => DTypeClass::Bool,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => DTypeClass::Integer,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => DTypeClass::Float,
        }
    }

    /// Whether elements are floating point; only such tensors can require gradients.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), DTypeClass::Float)
    }

    /// PyTorch's name without the `torch.` prefix: `float32`, `int64`, ...
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// Reads PyTorch's names and their usual short forms (`float`, `half`, `long`, `f32`, ...).
    ///
    /// ```
    /// use plimsoll_core::DType;
    /// assert_eq!(DType::parse("torch.float32").unwrap(), DType::F32);
    /// assert!(DType::parse("complex64").unwrap_err().is_invalid_argument());
    /// ```
    pub fn parse(name: &str) -> Result<DType> {
        Ok(match name.strip_prefix("torch.").unwrap_or(name) {
            "bool" => DType::Bool,
            "uint8" | "u8" | "byte" => DType::U8,
            "int8" | "i8" | "char" => DType::I8,
            "int16" | "i16" | "short" => DType::I16,
            "int32" | "i32" | "int" => DType::I32,
            "int64" | "i64" | "long" => DType::I64,
            "float16" | "f16" | "half" => DType::F16,
            "bfloat16" | "bf16" => DType::BF16,
            "float32" | "f32" | "float" => DType::F32,
            "float64" | "f64" | "double" => DType::F64,
            _ => {
                return Err(Error::invalid_argument(format!(
                    "`{name}` is not a dtype that Plimsoll has: use one of bool, uint8, int8, int16, int32, \
                     int64, float16, bfloat16, float32, float64"
                )));
            }
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
