//! Rounding to whole numbers: entries as in `functions.rs`. Steps have no slope, so gradients are
//! 0.

use plimsoll_kernels::cpu::rounding as cpu;

use super::{tail, unary};
use crate::operation::OpInfo;

const FLOAT_ONLY: OpInfo = tail(super::FLOAT_ONLY);
const NUMBER: OpInfo = tail(super::NUMBER);

unary! {
    /// The smallest whole number that is not below each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.25f32, -1.25], &[2], Device::cpu())?;
    /// assert_eq!(x.ceil()?.to_vec::<f32>()?, [2.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ceil, ceil_, ceil_out => CEIL: NUMBER {
        cpu: cpu::ceil,
    }

    /// The largest whole number that is not above each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.25f32, -1.25], &[2], Device::cpu())?;
    /// assert_eq!(x.floor()?.to_vec::<f32>()?, [1.0, -2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    floor, floor_, floor_out => FLOOR: NUMBER {
        cpu: cpu::floor,
    }

    /// What each element has beyond its whole part, with its sign.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.25f32, -1.25], &[2], Device::cpu())?;
    /// assert_eq!(x.frac()?.to_vec::<f32>()?, [0.25, -0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    frac, frac_, frac_out => FRAC: FLOAT_ONLY {
        cpu: cpu::frac,
        derivative: |grad, _| Ok(grad.clone()),
    }

    /// The whole number nearest to each element, the even one of two.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32, 1.5], &[2], Device::cpu())?;
    /// assert_eq!(x.round()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    round, round_, round_out => ROUND: NUMBER, "round(Tensor self, *, int decimals=0) -> Tensor" {
        cpu: cpu::round,
    }

    /// The whole part of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.75f32, -1.75], &[2], Device::cpu())?;
    /// assert_eq!(x.trunc()?.to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    trunc, trunc_, trunc_out => TRUNC: NUMBER {
        cpu: cpu::trunc,
    }
}
