//! A linear layer and the cross entropy of its scores in one, so that the scores of all classes
//! never exist whole. The two apart: `linear.rs`, `loss.rs`.

use plimsoll_tensor::{
    Error, LinearCrossEntropyOptions as Arguments, Parameter, Reduction, Result, Tensor,
};

use crate::call::at_caller;
use crate::options::{layer_options, number, truth};
use crate::{Buffer, Forward, Hooks, Linear, LinearOptions, Module};

layer_options! {
    /// How [`LinearCrossEntropyLoss::with`] is made.
    LinearCrossEntropyLossOptions {
        /// Whether the layer has a bias.
        bias: bool = false,
        /// What becomes of the rows' losses.
        reduction: Reduction = Reduction::Mean,
        /// A factor of each class.
        weight: Option<Buffer> = None,
        /// The class that counts for nothing.
        ignore_index: Option<i64> = None,
        /// How much of each target is shared by all classes.
        label_smoothing: f64 = 0.0,
    }
}

/// The cross entropy between target classes and the scores of a linear layer.
///
/// ```
/// use plimsoll_nn::{Forward, LinearCrossEntropyLoss, init};
/// use plimsoll_tensor::{DType, Device, Tensor};
/// let layer = LinearCrossEntropyLoss::new(3, 4)?;
/// init::zeros_(&layer.linear.weight.tensor())?;
/// let classes = Tensor::from_slice(&[1i64, 3], &[2], Device::cpu())?;
/// let loss = layer.call((&Tensor::ones(&[2, 3], DType::F32)?, &classes))?.item::<f32>()?;
/// assert!((loss - 4.0f32.ln()).abs() < 1e-6);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin, extra_repr = LinearCrossEntropyLoss::describe)]
pub struct LinearCrossEntropyLoss {
    /// A factor of each class.
    pub weight: Option<Buffer>,
    /// The layer that scores the classes.
    pub linear: Linear,
    reduction: Reduction,
    ignore_index: Option<i64>,
    label_smoothing: f64,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl LinearCrossEntropyLoss {
    /// PyTorch's defaults: no bias, the mean.
    #[track_caller]
    pub fn new(in_features: i64, num_classes: i64) -> Result<LinearCrossEntropyLoss> {
        let options = LinearCrossEntropyLossOptions::new();
        LinearCrossEntropyLoss::with(in_features, num_classes, options)
    }

    /// With a bias, factors of the classes, or smoothed targets.
    #[track_caller]
    pub fn with(
        in_features: i64,
        num_classes: i64,
        options: LinearCrossEntropyLossOptions,
    ) -> Result<LinearCrossEntropyLoss> {
        const OP: &str = "LinearCrossEntropyLoss";
        let _site = at_caller();
        let LinearCrossEntropyLossOptions {
            bias,
            reduction,
            weight,
            ignore_index,
            label_smoothing,
            device,
            dtype,
        } = options;
        if let Some(weight) = &weight {
            let shape = weight.tensor().shape().to_vec();
            if shape != [num_classes as usize] {
                let what = format!("expected weight shape to be [{num_classes}], got {shape:?}");
                return Err(Error::shape(OP, what));
            }
        }
        if !(0.0..=1.0).contains(&label_smoothing) {
            let what =
                format!("expected label_smoothing to be in range [0, 1], got {label_smoothing}");
            return Err(Error::invalid_argument(what).in_operation(OP));
        }
        let linear = Linear::with(in_features, num_classes, LinearOptions { bias, device, dtype })?;
        let hooks = Hooks::default();
        Ok(LinearCrossEntropyLoss {
            weight,
            linear,
            reduction,
            ignore_index,
            label_smoothing,
            hooks,
        })
    }

    fn describe(&self) -> String {
        let reduction = match self.reduction {
            Reduction::None => "none",
            Reduction::Mean => "mean",
            Reduction::Sum => "sum",
        };
        let ignored = self.ignore_index.map_or("None".to_string(), |index| index.to_string());
        format!(
            "in_features={}, num_classes={}, out_features=(), bias={}, reduction={reduction}, ignore_index={ignored}, \
             label_smoothing={}, options=None",
            self.linear.in_features,
            self.linear.out_features,
            truth(self.linear.bias.is_some()),
            number(self.label_smoothing),
        )
    }
}

impl Forward<(&Tensor, &Tensor)> for LinearCrossEntropyLoss {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (input, target): (&Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        let bias = self.linear.bias.as_ref().map(Parameter::tensor);
        let weight = self.weight.as_ref().map(Buffer::tensor);
        let arguments = Arguments::new()
            .linear_bias(bias.as_ref())
            .weight(weight.as_ref())
            .reduction(self.reduction)
            .ignore_index(self.ignore_index.unwrap_or(-100))
            .label_smoothing(self.label_smoothing);
        input.linear_cross_entropy_with(&self.linear.weight.tensor(), target, arguments)
    }
}
