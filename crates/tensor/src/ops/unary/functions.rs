//! The functions of one input, an entry each: documentation, the three forms of the method, what
//! dtypes they are for (`FLOAT` and the others of `mod.rs`), what backward reads, the kernel, the
//! derivative. CUDA's kernels have the same names (`cuda/kernels/unary.cu`).

use plimsoll_kernels::cpu::unary as cpu;

use super::{ANY, FLOAT, FLOAT_ONLY, NUMBER, UnaryRow, fused, run_fused, unary};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::operation::{OpInfo, Saves};

/// 1 / sqrt(2 pi).
const INV_SQRT_TAU: f64 = 0.398_942_280_401_432_7;
/// sqrt(2 / pi).
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;

unary! {
    /// Each element without its sign.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.5f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.abs()?.to_vec::<f32>()?, [1.5, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    abs, abs_, abs_out => ABS: NUMBER {
        saves: Saves::input(0),
        cpu: cpu::abs,
        derivative: |grad, x| grad.mul(&x.sign()?),
    }

    /// The error function of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 9.0], &[2], Device::cpu())?;
    /// assert_eq!(x.erf()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    erf, erf_, erf_out => ERF: FLOAT {
        saves: Saves::input(0),
        cpu: cpu::erf,
        derivative: |grad, x| grad.mul(&x.mul(x)?.neg()?.exp()?.mul(std::f64::consts::FRAC_2_SQRT_PI)?),
    }

    /// `e` to the power of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.exp()?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    exp, exp_, exp_out => EXP: FLOAT {
        saves: Saves::output(0),
        cpu: cpu::exp,
        derivative: |grad, out| grad.mul(out),
    }

    /// `x` times the normal distribution's mass below `x`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 20.0], &[2], Device::cpu())?;
    /// assert_eq!(x.gelu()?.to_vec::<f32>()?, [0.0, 20.0]);
    /// # Ok::<(), Error>(())
    /// ```
    gelu, gelu_, gelu_out => GELU: FLOAT_ONLY, "gelu(Tensor self, *, str approximate='none') -> Tensor" {
        saves: Saves::input(0),
        cpu: cpu::gelu,
        derivative: |grad, x| {
            static INFO: OpInfo = fused("gelu_backward");
            if is_grad_enabled() {
                // Phi(x) + x phi(x), with Phi and phi the normal distribution and its density.
                let mass = x.mul(std::f64::consts::FRAC_1_SQRT_2)?.erf()?.add(1.0)?.mul(0.5)?;
                let density = x.mul(x)?.mul(-0.5)?.exp()?.mul(INV_SQRT_TAU)?;
                return grad.mul(&mass.add(&x.mul(&density)?)?);
            }
            run_fused(&INFO, |launch| cpu::gelu_backward(launch, false), grad, x)
        },
    }

    /// The natural logarithm of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.log()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    log, log_, log_out => LOG: FLOAT {
        saves: Saves::input(0),
        cpu: cpu::log,
        derivative: |grad, x| grad.div(x),
    }

    /// The natural logarithm of 1 plus each element, exact near 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1e-10], &[2], Device::cpu())?;
    /// assert_eq!(x.log1p()?.to_vec::<f32>()?, [0.0, 1e-10]);
    /// # Ok::<(), Error>(())
    /// ```
    log1p, log1p_, log1p_out => LOG1P: FLOAT {
        saves: Saves::input(0),
        cpu: cpu::log1p,
        derivative: |grad, x| grad.div(&x.add(1.0)?),
    }

    /// Each element negated.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.neg()?.to_vec::<f32>()?, [1.0, -2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    neg, neg_, neg_out => NEG: NUMBER {
        saves: Saves::NOTHING,
        cpu: cpu::neg,
        derivative: |grad, _| grad.neg(),
    }

    /// 1 over each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2.0f32, 4.0], &[2], Device::cpu())?;
    /// assert_eq!(x.reciprocal()?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    reciprocal, reciprocal_, reciprocal_out => RECIPROCAL: FLOAT {
        saves: Saves::output(0),
        cpu: cpu::reciprocal,
        derivative: |grad, out| grad.mul(&out.mul(out)?.neg()?),
    }

    /// Each element, or 0 where it is negative.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    relu, relu_, relu_out => RELU: NUMBER {
        saves: Saves::output(0),
        cpu: cpu::relu,
        derivative: |grad, out| {
            static INFO: OpInfo = fused("relu_backward");
            if is_grad_enabled() {
                // Its zeros come from the result: the gradient depends on it, if only by steps, as
                // in PyTorch.
                return Tensor::where_(&out.gt(0)?, grad, &out.sign()?);
            }
            run_fused(&INFO, cpu::relu_backward, grad, out)
        },
    }

    /// 1 over the square root of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4.0f32, 16.0], &[2], Device::cpu())?;
    /// assert_eq!(x.rsqrt()?.to_vec::<f32>()?, [0.5, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    rsqrt, rsqrt_, rsqrt_out => RSQRT: FLOAT {
        saves: Saves::output(0),
        cpu: cpu::rsqrt,
        derivative: |grad, out| grad.mul(&out.mul(out)?.mul(out)?.mul(-0.5)?),
    }

    /// `1 / (1 + exp(-x))` of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 40.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sigmoid()?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sigmoid, sigmoid_, sigmoid_out => SIGMOID: FLOAT {
        saves: Saves::output(0),
        cpu: cpu::sigmoid,
        derivative: |grad, out| {
            static INFO: OpInfo = fused("sigmoid_backward");
            if is_grad_enabled() {
                return grad.mul(&out.mul(&out.rsub(1.0)?)?);
            }
            run_fused(&INFO, cpu::sigmoid_backward, grad, out)
        },
    }

    /// -1, 0 or 1 by the sign of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[-3.0f32, 0.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sign()?.to_vec::<f32>()?, [-1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sign, sign_, sign_out => SIGN: ANY {
        saves: Saves::NOTHING,
        cpu: cpu::sign,
        derivative: |grad, _| grad.zeros_like(),
    }

    /// The square root of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[4.0f32, 9.0], &[2], Device::cpu())?;
    /// assert_eq!(x.sqrt()?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    sqrt, sqrt_, sqrt_out => SQRT: FLOAT {
        saves: Saves::output(0),
        cpu: cpu::sqrt,
        derivative: |grad, out| grad.div(&out.mul(2.0)?),
    }

    /// The hyperbolic tangent of each element.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 40.0], &[2], Device::cpu())?;
    /// assert_eq!(x.tanh()?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    tanh, tanh_, tanh_out => TANH: FLOAT {
        saves: Saves::output(0),
        cpu: cpu::tanh,
        derivative: |grad, out| {
            static INFO: OpInfo = fused("tanh_backward");
            if is_grad_enabled() {
                return grad.mul(&out.mul(out)?.rsub(1.0)?);
            }
            run_fused(&INFO, cpu::tanh_backward, grad, out)
        },
    }
}

/// [`GELU`] in the approximation by tanh.
pub(crate) static GELU_TANH: UnaryRow = UnaryRow {
    info: OpInfo { name: "gelu_tanh", ..FLOAT_ONLY },
    result: None,
    saves: Saves::input(0),
    cpu: cpu::gelu_tanh,
    derivative: |grad, x| {
        static INFO: OpInfo = fused("gelu_tanh_backward");
        if is_grad_enabled() {
            let square = x.mul(x)?;
            let inner = x.mul(&square.mul(0.044_715)?.add(1.0)?)?.mul(SQRT_2_OVER_PI)?;
            let t = inner.tanh()?;
            let slope = square.mul(3.0 * 0.044_715)?.add(1.0)?.mul(SQRT_2_OVER_PI)?;
            let tail = x.mul(&t.mul(&t)?.rsub(1.0)?)?.mul(&slope)?;
            return grad.mul(&t.add(1.0)?.add(&tail)?.mul(0.5)?);
        }
        run_fused(&INFO, |launch| cpu::gelu_backward(launch, true), grad, x)
    },
};
