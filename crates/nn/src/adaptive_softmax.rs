//! A softmax over many classes, of which frequent ones are cheap. The plain loss: `loss.rs`.

use plimsoll_tensor::{Error, Result, Tensor};

use crate::call::at_caller;
use crate::options::layer_options;
use crate::{Forward, Hooks, Linear, LinearOptions, Module, Sequential, sequential};

layer_options! {
    /// How [`AdaptiveLogSoftmaxWithLoss::with`] is made.
    AdaptiveLogSoftmaxOptions {
        /// By how much each cluster's layer is narrower than the one before.
        div_value: f64 = 4.0,
        /// Whether the head has a bias.
        head_bias: bool = false,
    }
}

/// Classes in clusters by frequency: the head scores the classes of the first cluster and the other
/// clusters as wholes, and each other cluster has layers of its own. Called with inputs and target
/// classes, it gives the log-probability of each target, and the loss, minus their mean.
///
/// ```
/// use plimsoll_nn::{AdaptiveLogSoftmaxWithLoss, Forward};
/// use plimsoll_tensor::{DType, Device, Tensor};
/// let layer = AdaptiveLogSoftmaxWithLoss::new(16, 100, &[10, 40])?;
/// let x = Tensor::ones(&[3, 16], DType::F32)?;
/// let classes = Tensor::from_slice(&[2i64, 30, 99], &[3], Device::cpu())?;
/// let (output, loss) = layer.call((&x, &classes))?;
/// assert_eq!((output.shape(), loss.shape()), (&[3][..], &[][..]));
/// let all = layer.log_prob(&x)?.exp()?.sum_with(1)?.to_vec::<f32>()?;
/// assert!(all.iter().all(|sum| (sum - 1.0).abs() < 1e-5));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin)]
pub struct AdaptiveLogSoftmaxWithLoss {
    /// Scores of the first cluster's classes, then of the other clusters.
    pub head: Linear,
    /// Scores of each other cluster's classes.
    pub tail: Vec<Sequential>,
    /// Elements of an input.
    pub in_features: i64,
    /// How many classes there are.
    pub n_classes: i64,
    /// Where each cluster ends.
    pub cutoffs: Vec<i64>,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

const OP: &str = "AdaptiveLogSoftmaxWithLoss";

impl AdaptiveLogSoftmaxWithLoss {
    /// PyTorch's defaults: each cluster a quarter as wide as the one before.
    #[track_caller]
    pub fn new(
        in_features: i64,
        n_classes: i64,
        cutoffs: &[i64],
    ) -> Result<AdaptiveLogSoftmaxWithLoss> {
        let options = AdaptiveLogSoftmaxOptions::new();
        AdaptiveLogSoftmaxWithLoss::with(in_features, n_classes, cutoffs, options)
    }

    /// With other widths, or a bias of the head.
    #[track_caller]
    pub fn with(
        in_features: i64,
        n_classes: i64,
        cutoffs: &[i64],
        options: AdaptiveLogSoftmaxOptions,
    ) -> Result<AdaptiveLogSoftmaxWithLoss> {
        let _site = at_caller();
        let rises = cutoffs.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = cutoffs.iter().all(|end| (1..n_classes).contains(end));
        if cutoffs.is_empty() || !rises || !inside {
            let what = format!(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each \
                 value is between 1 and n_classes-1 ({}), and are {cutoffs:?}",
                n_classes - 1
            );
            return Err(Error::invalid_argument(what).in_operation(OP));
        }
        let AdaptiveLogSoftmaxOptions { div_value, head_bias, device, dtype } = options;
        let layer = |inputs: i64, outputs: i64, bias: bool| {
            Linear::with(inputs, outputs, LinearOptions { bias, device, dtype })
        };
        let ends: Vec<i64> = cutoffs.iter().copied().chain([n_classes]).collect();
        let head = layer(in_features, ends[0] + cutoffs.len() as i64, head_bias)?;
        let mut tail = Vec::with_capacity(cutoffs.len());
        for (at, pair) in ends.windows(2).enumerate() {
            let narrow = (in_features as f64 / div_value.powi(at as i32 + 1)).floor() as i64;
            let classes = pair[1] - pair[0];
            tail.push(sequential![
                layer(in_features, narrow, false)?,
                layer(narrow, classes, false)?
            ]);
        }
        let hooks = Hooks::default();
        Ok(AdaptiveLogSoftmaxWithLoss { head, tail, in_features, n_classes, cutoffs: ends, hooks })
    }

    /// The log-probabilities of all classes.
    #[track_caller]
    pub fn log_prob(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        let head = self.head.call(input)?.log_softmax(1)?;
        let first = self.cutoffs[0];
        let mut parts = vec![head.narrow(1, 0, first)?];
        for (at, cluster) in self.tail.iter().enumerate() {
            let whole = head.narrow(1, first + at as i64, 1)?;
            parts.push(cluster.call(input)?.log_softmax(1)?.add(&whole)?);
        }
        Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1)
    }

    /// The most probable class of each row.
    #[track_caller]
    pub fn predict(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        self.log_prob(input)?.argmax_with(1)
    }

    /// The log-probability of each row's target.
    fn of_targets(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        let count = target.size(0)?;
        let mut in_head = target.clone();
        let mut output = Tensor::zeros(&[count], (input.dtype(), input.device()))?;
        let (mut seen, mut begin) = (0, 0);
        for (at, &end) in self.cutoffs.iter().enumerate() {
            let is_own = target.ge(begin)?.logical_and(&target.lt(end)?)?;
            let rows = is_own.nonzero()?.squeeze_with(1)?;
            seen += rows.numel() as i64;
            if at > 0 && rows.numel() > 0 {
                let scores = self.tail[at - 1].call(&input.index_select(0, &rows)?)?;
                let own = target.index_select(0, &rows)?.sub(begin)?.unsqueeze(1)?;
                let inside = scores.log_softmax(1)?.gather(1, &own)?.squeeze_with(1)?;
                output = output.index_copy(0, &rows, &inside)?;
                in_head = in_head.index_fill(0, &rows, self.cutoffs[0] + at as i64 - 1)?;
            }
            begin = end;
        }
        if seen != count {
            let (least, most) = (target.amin()?.item::<i64>()?, target.amax()?.item::<i64>()?);
            let what = format!(
                "Target values should be in [0, {}], but values in range [{least}, {most}] were found",
                self.n_classes - 1
            );
            return Err(Error::invalid_argument(what).in_operation(OP));
        }
        let head = self.head.call(input)?.log_softmax(1)?;
        output.add(&head.gather(1, &in_head.unsqueeze(1)?)?.squeeze_with(1)?)
    }
}

impl Forward<(&Tensor, &Tensor)> for AdaptiveLogSoftmaxWithLoss {
    type Output = (Tensor, Tensor);

    #[track_caller]
    fn forward(&self, (input, target): (&Tensor, &Tensor)) -> Result<Self::Output> {
        let _site = at_caller();
        let batched = target.rank() > 0;
        let fits = match (input.shape(), target.shape()) {
            ([_], []) => true,
            ([rows, _], [targets]) => rows == targets,
            _ => false,
        };
        if !fits {
            let what = format!(
                "Input and target should have the same size in the batch dimension, and have the shapes {:?} and {:?}",
                input.shape(),
                target.shape()
            );
            return Err(Error::shape(OP, what));
        }
        if batched {
            let output = self.of_targets(input, target)?;
            let loss = output.neg()?.mean()?;
            return Ok((output, loss));
        }
        let output = self.of_targets(&input.unsqueeze(0)?, &target.unsqueeze(0)?)?;
        let loss = output.neg()?.mean()?;
        Ok((output.squeeze_with(0)?, loss))
    }
}
