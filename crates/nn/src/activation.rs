//! Activations: functions of each element, or along one dimension.

use plimsoll_tensor::{
    Approximate, CeluOptions, EluOptions, Error, GeluOptions, GluOptions, HardshrinkOptions,
    HardtanhOptions, InplaceOptions, LeakyReluOptions, Parameter, Result, RreluOptions,
    SoftplusOptions, Tensor, ThresholdOptions,
};

use crate::call::at_caller;
use crate::options::{layer_options, number, parameter};
use crate::stateless::{layers, with_inplace};
use crate::{Forward, Hooks, Module, Training, init};

/// Written over its argument, or beside it.
fn in_place(inplace: bool) -> InplaceOptions {
    InplaceOptions::new().inplace(inplace)
}

layers! {
    /// `max(0, x)`.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, ReLU};
    /// use plimsoll_tensor::{Device, Tensor};
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2], Device::cpu())?;
    /// assert_eq!(ReLU::new().call(&x)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    ReLU() {
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(String::new(), of.inplace);
    computes(this, x = &Tensor) -> Tensor {
        if this.inplace { x.relu_().cloned() } else { x.relu() }
    }

    /// `min(max(0, x), 6)`.
    ReLU6() {
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(String::new(), of.inplace);
    computes(this, x = &Tensor) -> Tensor { x.relu6_with(in_place(this.inplace)) }

    /// `x` where it is above a threshold, else a value.
    Threshold(
        /// The threshold.
        threshold: f64,
        /// The value.
        value: f64
    ) {
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(
        format!("threshold={}, value={}", number(of.threshold), number(of.value)),
        of.inplace
    );
    computes(this, x = &Tensor) -> Tensor {
        let options = ThresholdOptions::new().inplace(this.inplace);
        x.threshold_with(this.threshold, this.value, options)
    }

    /// A leaky ReLU whose slope is drawn for each element in training, and is the middle of its
    /// range else.
    RReLU() {
        /// The least slope.
        lower: f64 = 1.0 / 8.0,
        /// The largest slope.
        upper: f64 = 1.0 / 3.0,
        /// Whether it writes over its argument.
        inplace: bool = false,
        /// Whether slopes are drawn.
        training: Training = Training::default(),
    }
    prints(of) with_inplace(
        format!("lower={}, upper={}", number(of.lower), number(of.upper)),
        of.inplace
    );
    computes(this, x = &Tensor) -> Tensor {
        let options = RreluOptions::new().lower(this.lower).upper(this.upper);
        x.rrelu_with(options.training(this.training.get()).inplace(this.inplace))
    }

    /// `x`, no less than one value and no more than another.
    Hardtanh() {
        /// The least value.
        min_val: f64 = -1.0,
        /// The largest value.
        max_val: f64 = 1.0,
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(
        format!("min_val={}, max_val={}", number(of.min_val), number(of.max_val)),
        of.inplace
    );
    computes(this, x = &Tensor) -> Tensor {
        let options = HardtanhOptions::new().min_val(this.min_val).max_val(this.max_val);
        x.hardtanh_with(options.inplace(this.inplace))
    }

    /// `1 / (1 + exp(-x))`.
    Sigmoid() {}
    prints(_of) "";
    computes(_this, x = &Tensor) -> Tensor { x.sigmoid() }

    /// A sigmoid of straight lines.
    Hardsigmoid() {
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(_of) "";
    computes(this, x = &Tensor) -> Tensor { x.hardsigmoid_with(in_place(this.inplace)) }

    /// The hyperbolic tangent.
    Tanh() {}
    prints(_of) "";
    computes(_this, x = &Tensor) -> Tensor { x.tanh() }

    /// `x * sigmoid(x)`.
    SiLU() {
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(String::new(), of.inplace);
    computes(this, x = &Tensor) -> Tensor { x.silu_with(in_place(this.inplace)) }

    /// `x * tanh(softplus(x))`.
    Mish() {
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(String::new(), of.inplace);
    computes(this, x = &Tensor) -> Tensor { x.mish_with(in_place(this.inplace)) }

    /// `x * hardsigmoid(x)`.
    Hardswish() {
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(_of) "";
    computes(this, x = &Tensor) -> Tensor { x.hardswish_with(in_place(this.inplace)) }

    /// `x` above 0, `alpha * (exp(x) - 1)` below.
    ELU() {
        /// How far below 0 it goes.
        alpha: f64 = 1.0,
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(format!("alpha={}", number(of.alpha)), of.inplace);
    computes(this, x = &Tensor) -> Tensor {
        x.elu_with(EluOptions::new().alpha(this.alpha).inplace(this.inplace))
    }

    /// `x` above 0, `alpha * (exp(x / alpha) - 1)` below.
    CELU() {
        /// How far below 0 it goes.
        alpha: f64 = 1.0,
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(format!("alpha={}", number(of.alpha)), of.inplace);
    computes(this, x = &Tensor) -> Tensor {
        x.celu_with(CeluOptions::new().alpha(this.alpha).inplace(this.inplace))
    }

    /// A scaled ELU whose results keep mean 0 and variance 1.
    SELU() {
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(String::new(), of.inplace);
    computes(this, x = &Tensor) -> Tensor { x.selu_with(in_place(this.inplace)) }

    /// One half of a dimension times the sigmoid of the other.
    GLU() {
        /// The dimension.
        dim: i64 = -1,
    }
    prints(of) format!("dim={}", of.dim);
    computes(this, x = &Tensor) -> Tensor { x.glu_with(GluOptions::new().dim(this.dim)) }

    /// `x` times the normal distribution's mass below `x`, or its approximation by `tanh`.
    GELU() {
        /// How it is computed.
        approximate: Approximate = Approximate::None,
    }
    prints(of) match of.approximate {
        Approximate::None => "approximate='none'",
        Approximate::Tanh => "approximate='tanh'",
    };
    computes(this, x = &Tensor) -> Tensor {
        x.gelu_with(GeluOptions::new().approximate(this.approximate))
    }

    /// `x` outside of `[-lambd, lambd]`, else 0.
    Hardshrink() {
        /// Half the width of what becomes 0.
        lambd: f64 = 0.5,
    }
    prints(of) number(of.lambd);
    computes(this, x = &Tensor) -> Tensor {
        x.hardshrink_with(HardshrinkOptions::new().lambd(this.lambd))
    }

    /// `x` nearer to 0 by `lambd`.
    Softshrink() {
        /// By how much.
        lambd: f64 = 0.5,
    }
    prints(of) number(of.lambd);
    computes(this, x = &Tensor) -> Tensor {
        x.softshrink_with(HardshrinkOptions::new().lambd(this.lambd))
    }

    /// `x` above 0, `negative_slope * x` below.
    LeakyReLU() {
        /// The slope below 0.
        negative_slope: f64 = 0.01,
        /// Whether it writes over its argument.
        inplace: bool = false,
    }
    prints(of) with_inplace(format!("negative_slope={}", number(of.negative_slope)), of.inplace);
    computes(this, x = &Tensor) -> Tensor {
        let options = LeakyReluOptions::new().negative_slope(this.negative_slope);
        x.leaky_relu_with(options.inplace(this.inplace))
    }

    /// The logarithm of the sigmoid.
    LogSigmoid() {}
    prints(_of) "";
    computes(_this, x = &Tensor) -> Tensor { x.logsigmoid() }

    /// `log(1 + exp(beta * x)) / beta`, and `x` itself above a threshold.
    Softplus() {
        /// How sharply it bends.
        beta: f64 = 1.0,
        /// Where `beta * x` is taken for a straight line.
        threshold: f64 = 20.0,
    }
    prints(of) format!("beta={}, threshold={}", number(of.beta), number(of.threshold));
    computes(this, x = &Tensor) -> Tensor {
        x.softplus_with(SoftplusOptions::new().beta(this.beta).threshold(this.threshold))
    }

    /// `x / (1 + |x|)`.
    Softsign() {}
    prints(_of) "";
    computes(_this, x = &Tensor) -> Tensor { x.softsign() }

    /// `x - tanh(x)`.
    Tanhshrink() {}
    prints(_of) "";
    computes(_this, x = &Tensor) -> Tensor { x.tanhshrink() }

    /// The softmax of `-x` along a dimension.
    Softmin(
        /// The dimension.
        dim: i64
    ) {}
    prints(of) format!("dim={}", of.dim);
    computes(this, x = &Tensor) -> Tensor { x.neg()?.softmax(this.dim) }

    /// `exp(x)` over its sum along a dimension.
    Softmax(
        /// The dimension.
        dim: i64
    ) {}
    prints(of) format!("dim={}", of.dim);
    computes(this, x = &Tensor) -> Tensor { x.softmax(this.dim) }

    /// The logarithm of the softmax.
    LogSoftmax(
        /// The dimension.
        dim: i64
    ) {}
    prints(of) format!("dim={}", of.dim);
    computes(this, x = &Tensor) -> Tensor { x.log_softmax(this.dim) }

    /// The softmax over the channels of each place of an image.
    Softmax2d() {}
    prints(_of) "";
    computes(_this, x = &Tensor) -> Tensor {
        if !(3..=4).contains(&x.rank()) {
            let what = format!("expected input to be 3D or 4D, got {}D instead", x.rank());
            return Err(Error::shape("Softmax2d", what));
        }
        x.softmax(-3)
    }
}

layer_options! {
    /// How [`PReLU::with`] is made.
    PReLUOptions {
        /// How many slopes: one for all channels, or one for each.
        num_parameters: i64 = 1,
        /// The first slope.
        init: f64 = 0.25,
    }
}

/// A leaky ReLU whose slope is trained.
#[derive(Debug, Module)]
#[module(builtin, extra_repr = PReLU::describe)]
pub struct PReLU {
    /// The slopes.
    pub weight: Parameter,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl PReLU {
    /// One slope, 0.25 at first.
    #[track_caller]
    pub fn new() -> Result<PReLU> {
        PReLU::with(PReLUOptions::new())
    }

    /// Another number of slopes, or other first values.
    #[track_caller]
    pub fn with(options: PReLUOptions) -> Result<PReLU> {
        let _site = at_caller();
        let weight = parameter(&[options.num_parameters], options.made())?;
        init::constant_(&weight.tensor(), options.init)?;
        Ok(PReLU { weight, hooks: Hooks::default() })
    }

    fn describe(&self) -> String {
        format!("num_parameters={}", self.weight.tensor().numel())
    }
}

impl Forward<&Tensor> for PReLU {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        input.prelu(&self.weight.tensor())
    }
}
