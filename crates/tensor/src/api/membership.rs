//! Which elements are among others, and classes as vectors of zeros and a one.

use plimsoll_core::{DType, Device, Error, Result};
use plimsoll_memory::Site;

use super::options::options;
use crate::Tensor;
use crate::api::composed;
use crate::promotion::{Other, result_type};

options! {
    /// What [`Tensor::isin_with`] tells.
    IsinOptions {
        /// Whether no element occurs twice; the answer does not depend on it.
        assume_unique: bool = false,
        /// Whether to tell which are not there.
        invert: bool = false,
    }
}

impl Tensor {
    /// Which elements are among the test elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1i64, 2, 3], &[3], Device::cpu())?;
    /// let tests = Tensor::from_slice(&[3i64, 1], &[2], Device::cpu())?;
    /// assert_eq!(Tensor::isin(&x, &tests)?.to_bools()?, [true, false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn isin<'a>(
        elements: impl Into<Other<'a>>,
        test_elements: impl Into<Other<'a>>,
    ) -> Result<Tensor> {
        Tensor::isin_with(elements, test_elements, IsinOptions::new())
    }

    /// [`Tensor::isin`], or which are not.
    #[track_caller]
    pub fn isin_with<'a>(
        elements: impl Into<Other<'a>>,
        test_elements: impl Into<Other<'a>>,
        options: IsinOptions,
    ) -> Result<Tensor> {
        let (elements, tests) = (elements.into(), test_elements.into());
        composed("isin", Site::caller(), || {
            let found = is_in(elements, tests)?;
            if options.invert { found.logical_not() } else { Ok(found) }
        })
    }

    /// For each class number a vector with a one at its place and zeros elsewhere; -1 classes are
    /// as many as the largest number needs.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1i64, 0], &[2], Device::cpu())?;
    /// assert_eq!(x.one_hot(-1)?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn one_hot(&self, num_classes: i64) -> Result<Tensor> {
        const OP: &str = "one_hot";
        composed(OP, Site::caller(), || {
            let wrong = |why: String| Err(Error::shape(OP, why));
            if self.dtype() != DType::I64 {
                return wrong(format!("class numbers are int64, not {}", self.dtype()));
            }
            if num_classes < -1 || num_classes == 0 || (num_classes == -1 && self.numel() == 0) {
                return wrong(format!(
                    "there must be a class at least: {num_classes} were asked for, of shape {:?}",
                    self.shape()
                ));
            }
            let mut count = num_classes;
            if self.numel() > 0 {
                let (least, most) = self.aminmax()?;
                let most = most.to_scalar()?.to_i64();
                if least.to_scalar()?.to_i64() < 0 {
                    return wrong("class numbers must not be negative".to_string());
                }
                if num_classes > 0 && most >= num_classes {
                    return wrong(format!("class {most} is not one of {num_classes}"));
                }
                count = count.max(most + 1);
            }
            let mut sizes: Vec<i64> = self.shape().iter().map(|&size| size as i64).collect();
            sizes.push(count);
            let one_hot = Tensor::zeros(&sizes, (DType::I64, self.device()))?;
            one_hot.scatter_(-1, &self.unsqueeze(-1)?, 1, None)?;
            Ok(one_hot)
        })
    }
}

/// Whether each element is found where it belongs among the sorted tests.
fn is_in(elements: Other<'_>, tests: Other<'_>) -> Result<Tensor> {
    let dtype = result_type(&[elements, tests]);
    let is_bool =
        |other: &Other<'_>| matches!(other, Other::Tensor(tensor) if tensor.dtype() == DType::Bool);
    if is_bool(&elements) || is_bool(&tests) || dtype == DType::Bool {
        return Err(Error::dtype("isin", "truths are not searched; convert them with `to`"));
    }
    let device = match (&elements, &tests) {
        (Other::Tensor(tensor), _) | (_, Other::Tensor(tensor)) => tensor.device(),
        _ => Device::CPU,
    };
    let tensor = |other: Other<'_>| match other {
        Other::Tensor(tensor) => tensor.detach().to(dtype),
        Other::Scalar(number) => Tensor::full(&[], number, (dtype, device)),
    };
    let elements = tensor(elements)?;
    let tests = match tests {
        Other::Scalar(number) => return elements.eq(number),
        tests => tensor(tests)?.reshape(&[-1])?,
    };
    if elements.device() != tests.device() {
        return Err(Error::device(
            "isin",
            format!("elements are on {} and tests on {}", elements.device(), tests.device()),
        ));
    }
    if tests.numel() == 0 {
        return Tensor::zeros_like(&elements)?.to(DType::Bool);
    }
    let (sorted, _) = tests.sort()?;
    let last = sorted.numel() as i64 - 1;
    let flat = elements.reshape(&[-1])?;
    let places = sorted.searchsorted(&flat)?.clamp(0, last)?;
    let sizes: Vec<i64> = elements.shape().iter().map(|&size| size as i64).collect();
    sorted.gather(0, &places)?.eq(&flat)?.reshape(&sizes)
}
