//! Special functions of two operands: entries as in `functions.rs`.

use plimsoll_core::DType;
use plimsoll_cuda::source_files;
use plimsoll_kernels::cpu::{call, special};

use super::entry::binary;
use super::functions::like;
use super::{BOTH, NOTHING, info};
use crate::Tensor;
use crate::operation::{DTypes, Home, OnCuda, OpInfo, Promotion};

/// A function of floats; integers become float32.
const FLOAT: OpInfo = OpInfo {
    home: Home::Special,
    family: "special",
    in_place: false,
    cuda: OnCuda::Kernels(&source_files::SPECIAL),
    dtypes: DTypes::FLOATS,
    promotion: Promotion::Float,
    ..info("", &[])
};

/// As [`FLOAT`]; PyTorch has these for no half types.
const WIDE: OpInfo = OpInfo { dtypes: DTypes::of(&[DType::F32, DType::F64]), ..FLOAT };

/// As [`WIDE`], without a derivative.
const POLYNOMIAL: OpInfo = OpInfo { differentiable: false, ..WIDE };

/// A polynomial of 2 x - 1.
macro_rules! shifted {
    ($launch:expr, $second:expr, $polynomial:path) => {
        call::two_in(
            $launch,
            $second,
            |x, n| $polynomial(special::shifted(x), n),
            |x, n| $polynomial(special::shifted(x), n),
        )
    };
}

binary! {
    /// Each element times the logarithm of 1 plus the other operand, and 0 where it is 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_xlog1py(2.0)?.to_vec::<f32>()?, [0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_xlog1py, special_xlog1py_, special_xlog1py_out, rspecial_xlog1py => SPECIAL_XLOG1PY: FLOAT, [
        "special_xlog1py(Tensor self, Tensor|Scalar other) -> Tensor",
        "special_xlog1py(Scalar self, Tensor other) -> Tensor",
    ] {
        reads: [BOTH, BOTH],
        cpu: |launch, second, _| call::two(launch, second, special::xlog1py),
        derivatives: [
            |s| {
                let (x, y) = (s.tensor_a()?, s.b()?);
                let y = like(y, x)?;
                let dead = x.eq(0.0)?.logical_and(&y.le(-1.0)?)?;
                s.grad.mul(&Tensor::where_(&dead, 0.0, &y.log1p()?)?)
            },
            |s| s.grad.mul(s.a()?)?.div(&s.tensor_b()?.add(1.0)?),
        ],
    }

    /// Hurwitz's zeta function of both operands.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_zeta(2.0)?.to_vec::<f32>()?, [f32::INFINITY]);
    /// # Ok::<(), Error>(())
    /// ```
    special_zeta, special_zeta_, special_zeta_out, rspecial_zeta => SPECIAL_ZETA: WIDE, [
        "special_zeta(Tensor self, Tensor|Scalar other) -> Tensor",
        "special_zeta(Scalar self, Tensor other) -> Tensor",
    ] {
        reads: [NOTHING, BOTH],
        cpu: |launch, second, _| call::two(launch, second, special::zeta),
        derivatives: [
            |s| Err(s.no_derivative()),
            |s| {
                let q = s.tensor_b()?;
                let x = like(s.a()?, q)?;
                s.grad.mul(&x.neg()?.mul(&x.add(1.0)?.special_zeta(q)?)?)
            },
        ],
    }

    /// Chebyshev's polynomial of the first kind and of degree n.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_chebyshev_polynomial_t(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_chebyshev_polynomial_t, special_chebyshev_polynomial_t_, special_chebyshev_polynomial_t_out, rspecial_chebyshev_polynomial_t => SPECIAL_CHEBYSHEV_POLYNOMIAL_T: POLYNOMIAL, [
        "special_chebyshev_polynomial_t(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_chebyshev_polynomial_t(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| call::two_in(launch, second, special::chebyshev_t, special::chebyshev_t),
    }

    /// Chebyshev's polynomial of the second kind and of degree n.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_chebyshev_polynomial_u(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_chebyshev_polynomial_u, special_chebyshev_polynomial_u_, special_chebyshev_polynomial_u_out, rspecial_chebyshev_polynomial_u => SPECIAL_CHEBYSHEV_POLYNOMIAL_U: POLYNOMIAL, [
        "special_chebyshev_polynomial_u(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_chebyshev_polynomial_u(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| call::two_in(launch, second, special::chebyshev_u, special::chebyshev_u),
    }

    /// Chebyshev's polynomial of the third kind and of degree n.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_chebyshev_polynomial_v(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_chebyshev_polynomial_v, special_chebyshev_polynomial_v_, special_chebyshev_polynomial_v_out, rspecial_chebyshev_polynomial_v => SPECIAL_CHEBYSHEV_POLYNOMIAL_V: POLYNOMIAL, [
        "special_chebyshev_polynomial_v(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_chebyshev_polynomial_v(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| call::two_in(launch, second, special::chebyshev_v, special::chebyshev_v),
    }

    /// Chebyshev's polynomial of the fourth kind and of degree n.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_chebyshev_polynomial_w(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_chebyshev_polynomial_w, special_chebyshev_polynomial_w_, special_chebyshev_polynomial_w_out, rspecial_chebyshev_polynomial_w => SPECIAL_CHEBYSHEV_POLYNOMIAL_W: POLYNOMIAL, [
        "special_chebyshev_polynomial_w(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_chebyshev_polynomial_w(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| call::two_in(launch, second, special::chebyshev_w, special::chebyshev_w),
    }

    /// Hermite's polynomial of degree n, as physicists write it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_hermite_polynomial_h(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_hermite_polynomial_h, special_hermite_polynomial_h_, special_hermite_polynomial_h_out, rspecial_hermite_polynomial_h => SPECIAL_HERMITE_POLYNOMIAL_H: POLYNOMIAL, [
        "special_hermite_polynomial_h(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_hermite_polynomial_h(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| call::two_in(launch, second, special::hermite_h, special::hermite_h),
    }

    /// Hermite's polynomial of degree n, as statisticians write it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_hermite_polynomial_he(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_hermite_polynomial_he, special_hermite_polynomial_he_, special_hermite_polynomial_he_out, rspecial_hermite_polynomial_he => SPECIAL_HERMITE_POLYNOMIAL_HE: POLYNOMIAL, [
        "special_hermite_polynomial_he(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_hermite_polynomial_he(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| call::two_in(launch, second, special::hermite_he, special::hermite_he),
    }

    /// Laguerre's polynomial of degree n.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_laguerre_polynomial_l(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_laguerre_polynomial_l, special_laguerre_polynomial_l_, special_laguerre_polynomial_l_out, rspecial_laguerre_polynomial_l => SPECIAL_LAGUERRE_POLYNOMIAL_L: POLYNOMIAL, [
        "special_laguerre_polynomial_l(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_laguerre_polynomial_l(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| call::two_in(launch, second, special::laguerre_l, special::laguerre_l),
    }

    /// Legendre's polynomial of degree n.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_legendre_polynomial_p(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_legendre_polynomial_p, special_legendre_polynomial_p_, special_legendre_polynomial_p_out, rspecial_legendre_polynomial_p => SPECIAL_LEGENDRE_POLYNOMIAL_P: POLYNOMIAL, [
        "special_legendre_polynomial_p(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_legendre_polynomial_p(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| call::two_in(launch, second, special::legendre_p, special::legendre_p),
    }

    /// Chebyshev's polynomial of the first kind, for 0 to 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_shifted_chebyshev_polynomial_t(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_shifted_chebyshev_polynomial_t, special_shifted_chebyshev_polynomial_t_, special_shifted_chebyshev_polynomial_t_out, rspecial_shifted_chebyshev_polynomial_t => SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_T: POLYNOMIAL, [
        "special_shifted_chebyshev_polynomial_t(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_shifted_chebyshev_polynomial_t(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| shifted!(launch, second, special::chebyshev_t),
    }

    /// Chebyshev's polynomial of the second kind, for 0 to 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_shifted_chebyshev_polynomial_u(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_shifted_chebyshev_polynomial_u, special_shifted_chebyshev_polynomial_u_, special_shifted_chebyshev_polynomial_u_out, rspecial_shifted_chebyshev_polynomial_u => SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_U: POLYNOMIAL, [
        "special_shifted_chebyshev_polynomial_u(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_shifted_chebyshev_polynomial_u(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| shifted!(launch, second, special::chebyshev_u),
    }

    /// Chebyshev's polynomial of the third kind, for 0 to 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_shifted_chebyshev_polynomial_v(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_shifted_chebyshev_polynomial_v, special_shifted_chebyshev_polynomial_v_, special_shifted_chebyshev_polynomial_v_out, rspecial_shifted_chebyshev_polynomial_v => SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_V: POLYNOMIAL, [
        "special_shifted_chebyshev_polynomial_v(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_shifted_chebyshev_polynomial_v(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| shifted!(launch, second, special::chebyshev_v),
    }

    /// Chebyshev's polynomial of the fourth kind, for 0 to 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// assert_eq!(x.special_shifted_chebyshev_polynomial_w(0)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    special_shifted_chebyshev_polynomial_w, special_shifted_chebyshev_polynomial_w_, special_shifted_chebyshev_polynomial_w_out, rspecial_shifted_chebyshev_polynomial_w => SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_W: POLYNOMIAL, [
        "special_shifted_chebyshev_polynomial_w(Tensor x, Tensor|Scalar n) -> Tensor",
        "special_shifted_chebyshev_polynomial_w(Scalar x, Tensor n) -> Tensor",
    ] {
        cpu: |launch, second, _| shifted!(launch, second, special::chebyshev_w),
    }
}
