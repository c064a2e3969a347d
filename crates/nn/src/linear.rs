//! Linear and bilinear maps, and the layer that does nothing.

use plimsoll_tensor::{Error, GeluOptions, Parameter, Result, Tensor};

use crate::call::at_caller;
use crate::frames::Entered;
use crate::options::{layer_options, parameter, positive, truth};
use crate::{Forward, Hooks, Module, init};

layer_options! {
    /// How [`Linear::with`] and [`Bilinear::with`] are made.
    LinearOptions {
        /// Whether a bias is added.
        bias: bool = true,
    }
}

/// `x @ weight.T + bias`.
///
/// ```
/// use plimsoll_nn::{Forward, Linear, LinearOptions};
/// use plimsoll_tensor::{DType, Tensor};
/// let layer = Linear::new(3, 2)?;
/// assert_eq!(layer.call(&Tensor::ones(&[4, 3], DType::F32)?)?.shape(), [4, 2]);
/// let plain = Linear::with(3, 2, LinearOptions::new().bias(false).dtype(DType::F64))?;
/// assert!(plain.bias.is_none());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin, extra_repr = Linear::describe)]
pub struct Linear {
    /// Of shape [out_features, in_features].
    pub weight: Parameter,
    /// One for each element of the result.
    pub bias: Option<Parameter>,
    /// Elements of the last dimension of the input.
    pub in_features: i64,
    /// Elements of the last dimension of the result.
    pub out_features: i64,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl Linear {
    /// PyTorch's defaults: a bias, float32, the CPU.
    #[track_caller]
    pub fn new(in_features: i64, out_features: i64) -> Result<Linear> {
        Linear::with(in_features, out_features, LinearOptions::new())
    }

    /// Without a bias, elsewhere or of another dtype.
    #[track_caller]
    pub fn with(in_features: i64, out_features: i64, options: LinearOptions) -> Result<Linear> {
        let _site = at_caller();
        let made = options.made();
        let weight = parameter(&[out_features, in_features], made)?;
        let bias = options.bias.then(|| parameter(&[out_features], made)).transpose()?;
        let hooks = Hooks::default();
        let layer = Linear { weight, bias, in_features, out_features, hooks };
        layer.reset_parameters()?;
        Ok(layer)
    }

    /// Draws first values anew.
    pub fn reset_parameters(&self) -> Result<()> {
        let weight = self.weight.tensor();
        // PyTorch asks for a leaky slope of sqrt(5), which comes down to 1 / sqrt(fan_in).
        init::kaiming_uniform_(
            &weight,
            init::FanMode::FanIn,
            init::Nonlinearity::LeakyRelu(5.0f64.sqrt()),
        )?;
        even_bias(self.bias.as_ref(), self.in_features)
    }

    /// Runs on GELU of `input`, for which backward keeps `input` alone: see
    /// [`Tensor::gelu_linear`]. Hooks see GELU's values; where there are any, those are kept too.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, Linear};
    /// use plimsoll_tensor::{DType, GeluOptions, Tensor};
    /// let (layer, x) = (Linear::new(3, 2)?, Tensor::ones(&[4, 3], DType::F32)?);
    /// let y = layer.call_on_gelu(&x, GeluOptions::new())?;
    /// assert!(y.allclose(&layer.call(&x.gelu()?)?)?);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn call_on_gelu(&self, input: &Tensor, options: GeluOptions) -> Result<Tensor> {
        let _site = at_caller();
        if !self.hooks.is_empty() {
            return self.call(&input.gelu_with(options)?);
        }
        let _entered = Entered::enter(self);
        let bias = self.bias.as_ref().map(Parameter::tensor);
        input.gelu_linear(&self.weight.tensor(), bias.as_ref(), options)
    }

    fn describe(&self) -> String {
        format!(
            "in_features={}, out_features={}, bias={}",
            self.in_features,
            self.out_features,
            truth(self.bias.is_some())
        )
    }
}

/// Draws a bias from what `inputs` inputs of one result are drawn from.
pub(crate) fn even_bias(bias: Option<&Parameter>, inputs: i64) -> Result<()> {
    let Some(bias) = bias else { return Ok(()) };
    let bound = if inputs > 0 { 1.0 / (inputs as f64).sqrt() } else { 0.0 };
    init::uniform_(&bias.tensor(), -bound, bound)
}

impl Forward<&Tensor> for Linear {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        linear(input, &self.weight.tensor(), self.bias.as_ref().map(Parameter::tensor).as_ref())
    }
}

/// `x @ weight.T + bias`, in one product where the bias takes part.
pub(crate) fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let columns = weight.t()?;
    let Some(bias) = bias else { return input.matmul(&columns) };
    match input.rank() {
        2 => bias.addmm(input, &columns),
        0 | 1 => input.matmul(&columns)?.add(bias),
        _ => {
            let width = input.size(-1)?;
            let mut sizes: Vec<i64> = input.shape().iter().map(|&size| size as i64).collect();
            let rows = sizes[..sizes.len() - 1].iter().product();
            if let Some(last) = sizes.last_mut() {
                *last = weight.size(0)?;
            }
            bias.addmm(&input.reshape(&[rows, width])?, &columns)?.view(&sizes[..])
        }
    }
}

/// `x1 @ weight[k] @ x2 + bias[k]` for each result k.
///
/// ```
/// use plimsoll_nn::{Bilinear, Forward};
/// use plimsoll_tensor::{DType, Tensor};
/// let layer = Bilinear::new(3, 4, 2)?;
/// let (a, b) = (Tensor::ones(&[5, 3], DType::F32)?, Tensor::ones(&[5, 4], DType::F32)?);
/// assert_eq!(layer.call((&a, &b))?.shape(), [5, 2]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin, extra_repr = Bilinear::describe)]
pub struct Bilinear {
    /// Of shape [out_features, in1_features, in2_features].
    pub weight: Parameter,
    /// One for each element of the result.
    pub bias: Option<Parameter>,
    /// Elements of the first input.
    pub in1_features: i64,
    /// Elements of the second input.
    pub in2_features: i64,
    /// Elements of the result.
    pub out_features: i64,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl Bilinear {
    /// PyTorch's defaults.
    #[track_caller]
    pub fn new(in1_features: i64, in2_features: i64, out_features: i64) -> Result<Bilinear> {
        Bilinear::with(in1_features, in2_features, out_features, LinearOptions::new())
    }

    /// Without a bias, elsewhere or of another dtype.
    #[track_caller]
    pub fn with(
        in1_features: i64,
        in2_features: i64,
        out_features: i64,
        options: LinearOptions,
    ) -> Result<Bilinear> {
        let _site = at_caller();
        positive("Bilinear", "in1_features", in1_features)?;
        let made = options.made();
        let weight = parameter(&[out_features, in1_features, in2_features], made)?;
        let bias = options.bias.then(|| parameter(&[out_features], made)).transpose()?;
        let bound = 1.0 / (in1_features as f64).sqrt();
        init::uniform_(&weight.tensor(), -bound, bound)?;
        even_bias(bias.as_ref(), in1_features)?;
        let hooks = Hooks::default();
        Ok(Bilinear { weight, bias, in1_features, in2_features, out_features, hooks })
    }

    fn describe(&self) -> String {
        format!(
            "in1_features={}, in2_features={}, out_features={}, bias={}",
            self.in1_features,
            self.in2_features,
            self.out_features,
            truth(self.bias.is_some())
        )
    }
}

impl Forward<(&Tensor, &Tensor)> for Bilinear {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (a, b): (&Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        let lead = |x: &Tensor| x.shape().split_last().map(|(_, lead)| lead.to_vec());
        if lead(a) != lead(b) || lead(a).is_none() {
            return Err(Error::shape(
                "bilinear",
                format!(
                    "the inputs must have the same dimensions but for the last, and have {:?} and {:?}",
                    a.shape(),
                    b.shape()
                ),
            ));
        }
        let (outputs, width1, width2) = (self.out_features, self.in1_features, self.in2_features);
        let mut sizes: Vec<i64> = a.shape().iter().map(|&size| size as i64).collect();
        let rows: i64 = sizes[..sizes.len() - 1].iter().product();
        if let Some(last) = sizes.last_mut() {
            *last = outputs;
        }
        let weight = self.weight.tensor();
        let columns = weight.permute(&[1, 0, 2])?.reshape(&[width1, outputs * width2])?;
        let left = a.reshape(&[rows, width1])?.matmul(&columns)?;
        let products =
            left.reshape(&[rows, outputs, width2])?.mul(&b.reshape(&[rows, 1, width2])?)?;
        let result = products.sum_with([-1])?.view(&sizes[..])?;
        match &self.bias {
            Some(bias) => result.add(&bias.tensor()),
            None => Ok(result),
        }
    }
}

/// Gives its input on.
///
/// ```
/// use plimsoll_nn::{Forward, Identity};
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::ones(&[2], DType::F32)?;
/// assert!(Identity::new().call(&x)?.shares_storage_with(&x));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Default, Module)]
#[module(builtin)]
pub struct Identity {
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl Identity {
    /// There is nothing to say about it.
    pub fn new() -> Identity {
        Identity::default()
    }
}

impl Forward<&Tensor> for Identity {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Ok(input.clone())
    }
}
