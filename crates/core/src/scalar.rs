//! A number that is not a tensor: the `1` of `x + 1`. It keeps its class (bool, integer, float),
//! because PyTorch's promotion looks at the class and never at the width of a scalar.

use std::fmt;

use crate::DTypeClass;

/// A host number handed to an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl Scalar {
    /// The class that promotion compares.
    pub const fn class(self) -> DTypeClass {
        match self {
            Scalar::Bool(_) => DTypeClass::Bool,
            Scalar::Int(_) => DTypeClass::Integer,
            Scalar::Float(_) => DTypeClass::Float,
        }
    }

    /// The value as a double. Integers past 2^53 round to the nearest.
    pub const fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
        }
    }

    /// The value as an integer, truncating a float toward zero (saturating, NaN to 0).
    pub const fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
        }
    }

    /// Whether the value is not zero.
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(f) => f != 0.0,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
        }
    }
}

impl From<bool> for Scalar {
    fn from(b: bool) -> Scalar {
        Scalar::Bool(b)
    }
}

impl From<i32> for Scalar {
    fn from(i: i32) -> Scalar {
        Scalar::Int(i64::from(i))
    }
}

impl From<i64> for Scalar {
    fn from(i: i64) -> Scalar {
        Scalar::Int(i)
    }
}

impl From<f32> for Scalar {
    fn from(x: f32) -> Scalar {
        Scalar::Float(f64::from(x))
    }
}

impl From<f64> for Scalar {
    fn from(x: f64) -> Scalar {
        Scalar::Float(x)
    }
}
