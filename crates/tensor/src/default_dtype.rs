//! The dtype of floats that nobody names one for: of created tensors, of Python's fractions, of
//! whole numbers that an operation makes fractions of. float32 unless the program says otherwise.

use std::sync::atomic::{AtomicU8, Ordering};

use plimsoll_core::{DType, Error, Result, Scalar, promote_with_scalar};

/// Those that it may be; the place in this list is what the atomic holds.
const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

static DEFAULT: AtomicU8 = AtomicU8::new(0);

/// The dtype of floats that nobody names one for.
///
/// ```
/// use plimsoll_tensor::{DType, default_dtype};
/// assert_eq!(default_dtype(), DType::F32);
/// ```
#[inline]
pub fn default_dtype() -> DType {
    FLOATS[usize::from(DEFAULT.load(Ordering::Relaxed)) % FLOATS.len()]
}

/// Changes [`default_dtype`], for all threads; returns what it was. It must be a float.
///
/// ```standalone_crate
/// use plimsoll_tensor::{DType, Tensor, TensorOptions, set_default_dtype};
/// assert_eq!(set_default_dtype(DType::F64)?, DType::F32);
/// assert_eq!(Tensor::zeros(&[2], TensorOptions::default())?.dtype(), DType::F64);
/// assert!(set_default_dtype(DType::I64).is_err());
/// set_default_dtype(DType::F32)?;
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn set_default_dtype(dtype: DType) -> Result<DType> {
    let place = FLOATS.iter().position(|float| *float == dtype);
    let Some(place) = place.and_then(|place| u8::try_from(place).ok()) else {
        let why = format!("{dtype} holds no fractions; the default is a float");
        return Err(Error::dtype("set_default_dtype", why));
    };
    let before = DEFAULT.swap(place, Ordering::Relaxed);
    Ok(FLOATS[usize::from(before) % FLOATS.len()])
}

/// What a tensor's dtype becomes beside a number: a fraction makes whole numbers the default float.
///
/// ```
/// use plimsoll_tensor::{DType, dtype_beside_number};
/// assert_eq!(dtype_beside_number(DType::I64, 1.5.into()), DType::F32);
/// assert_eq!(dtype_beside_number(DType::F16, 1.5.into()), DType::F16);
/// ```
pub fn dtype_beside_number(tensor: DType, number: Scalar) -> DType {
    match number {
        Scalar::Float(_) if !tensor.is_float() => default_dtype(),
        _ => promote_with_scalar(tensor, number),
    }
}
