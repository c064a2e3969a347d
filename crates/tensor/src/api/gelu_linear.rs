//! A linear map of GELU's values that keeps what goes into GELU and not what comes out of it.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use crate::ops::unary::gelu::gelu_both;
use crate::{Approximate, BackwardContext, Context, Function, GeluOptions, Tensor, autocast};

/// Inputs [x (rows, from), weight (to, from), bias (to)?].
struct GeluLinear {
    approximate: Approximate,
    has_bias: bool,
}

impl GeluLinear {
    fn gelu(&self, x: &Tensor) -> Result<Tensor> {
        x.gelu_with(GeluOptions::new().approximate(self.approximate))
    }

    /// The gradient of `x` from that of its GELU, and the GELU.
    fn both(&self, slope: &Tensor, x: &Tensor) -> Result<(Tensor, Tensor)> {
        gelu_both(slope, x, self.approximate == Approximate::Tanh)
    }
}

impl Function for GeluLinear {
    fn name(&self) -> &'static str {
        "GeluLinear"
    }

    fn forward(&self, context: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let (x, weight) = (inputs[0], inputs[1]);
        context.save_for_backward(&[x, weight]);
        let (value, columns) = (self.gelu(x)?, weight.t()?);
        Ok(vec![match inputs.get(2) {
            Some(bias) => bias.addmm(&value, &columns)?,
            None => value.matmul(&columns)?,
        }])
    }

    fn backward(
        &self,
        context: &BackwardContext<'_>,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        let Some(grad) = &grads[0] else { return Ok(vec![None; 2 + usize::from(self.has_bias)]) };
        let [x, weight] = context.saved_tensors() else {
            unreachable!("forward saves two tensors");
        };
        let wanted = [0, 1, 2].map(|input| context.needs_input_grad(input));
        let (gradient, value) = match wanted {
            [true, ..] => {
                let (gradient, value) = self.both(&grad.matmul(weight)?, x)?;
                (Some(gradient), wanted[1].then_some(value))
            }
            [false, true, _] => (None, Some(self.gelu(x)?)),
            [false, false, _] => (None, None),
        };
        let mut results = vec![gradient];
        results.push(value.map(|value| grad.t()?.matmul(&value)).transpose()?);
        if self.has_bias {
            results.push(wanted[2].then(|| grad.sum_over(&[0], false)).transpose()?);
        }
        Ok(results)
    }
}

impl Tensor {
    /// `gelu(self) @ weight.t() + bias` over the last dimension, for which backward keeps `self`
    /// alone (or its copy, if it is not contiguous or is cast in mixed precision): GELU's values
    /// are computed again there, by the kernel that computes its gradient.
    ///
    /// In a block of a transformer that is a fifth of what is kept for backward, and takes almost
    /// no time.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 20.0], &[1, 2], Device::cpu())?;
    /// let weight = Tensor::from_slice(&[1.0f32, 2.0], &[1, 2], Device::cpu())?;
    /// let bias = Tensor::from_slice(&[0.5f32], &[1], Device::cpu())?;
    /// let y = x.gelu_linear(&weight, Some(&bias), GeluOptions::new())?;
    /// assert_eq!(y.to_vec::<f32>()?, [40.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gelu_linear(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: GeluOptions,
    ) -> Result<Tensor> {
        let (Some(&from), &[to, width]) = (self.shape().last(), weight.shape()) else {
            return Err(Error::shape(
                "gelu_linear",
                format!(
                    "an input of at least one dimension and a weight of two are needed, not shapes {:?} and {:?}",
                    self.shape(),
                    weight.shape()
                ),
            ));
        };
        if from != width {
            return Err(Error::shape(
                "gelu_linear",
                format!(
                    "the last dimension of an input of shape {:?} is not the second of a weight of shape {:?}",
                    self.shape(),
                    weight.shape()
                ),
            ));
        }
        let mut sizes: Vec<i64> = self.shape().iter().map(|&size| size as i64).collect();
        let last = sizes.len() - 1;
        let rows = sizes[..last].iter().product();
        sizes[last] = to as i64;
        let (site, flat) = (Site::caller(), self.reshape(&[rows, from as i64])?);
        let mut inputs: Vec<Tensor> =
            [&flat, weight].into_iter().chain(bias).map(Tensor::clone).collect();
        // In mixed precision all goes in what the product would be made in: backward has to find
        // its factors in one dtype.
        if let Some(dtype) = autocast::target("addmm", self.device().kind(), inputs.iter())? {
            for input in inputs.iter_mut().filter(|input| autocast::is_eligible(input.dtype())) {
                *input = autocast::cast(input, dtype, site)?;
            }
        }
        let function = GeluLinear { approximate: options.approximate, has_bias: bias.is_some() };
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        function.apply(&inputs)?.remove(0).view(&sizes)
    }
}
