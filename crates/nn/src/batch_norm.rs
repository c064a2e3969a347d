//! Normalization over batches and instances: running statistics, and a trained scale and shift of
//! each channel.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_tensor::{
    BatchNormOptions as BatchNormArguments, DType, Error, NoGrad, Parameter, Result, Tensor,
};

use crate::call::at_caller;
use crate::normalization::{affine, reset_affine, tensor};
use crate::options::{layer_options, number, truth};
use crate::{Buffer, Forward, Hooks, Module, Training, init};

layer_options! {
    /// How [`BatchNorm2d::with`] and its kin are made.
    BatchNormOptions {
        /// Keeps the variance away from 0.
        eps: f64 = 1e-5,
        /// How much of a batch goes into the running statistics; `None` means the mean over all
        /// batches.
        momentum: Option<f64> = Some(0.1),
        /// Whether a scale and a shift of each channel are trained.
        affine: bool = true,
        /// Whether running statistics are kept.
        track_running_stats: bool = true,
        /// Whether there is a shift.
        bias: bool = true,
    }
}

impl BatchNormOptions {
    /// PyTorch's defaults of instance norms: neither trained scales nor running statistics.
    pub fn of_instances() -> BatchNormOptions {
        BatchNormOptions::new().affine(false).track_running_stats(false)
    }
}

/// The running statistics of a layer, as far as it keeps them.
type Running = (Option<Buffer>, Option<Buffer>, Option<Buffer>);

fn running(features: i64, options: &BatchNormOptions) -> Result<Running> {
    if !options.track_running_stats {
        return Ok((None, None, None));
    }
    let made = options.made();
    let counted = plimsoll_tensor::TensorOptions { dtype: Some(DType::I64), ..made };
    let buffer = |tensor: Result<Tensor>| tensor.map(|tensor| Some(Buffer::new(&tensor)));
    Ok((
        buffer(Tensor::zeros(&[features], made))?,
        buffer(Tensor::ones(&[features], made))?,
        buffer(Tensor::zeros(&[], counted))?,
    ))
}

fn check_rank(layer: &str, input: &Tensor, ranks: &[usize]) -> Result<()> {
    if ranks.contains(&input.rank()) {
        return Ok(());
    }
    let wanted: Vec<String> = ranks.iter().map(|rank| format!("{rank}D")).collect();
    Err(Error::shape(
        layer,
        format!("expected {} input (got {}D input)", wanted.join(" or "), input.rank()),
    ))
}

/// Whether every batch counts alike in the running statistics, whatever the momentum: while they
/// are computed anew (`optim/swa_utils.rs`).
#[derive(Debug, Default)]
struct CountsAlike(AtomicBool);

impl CountsAlike {
    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A layer whose running statistics can be computed anew.
pub(crate) trait RunningStatistics {
    /// Forgets what was seen.
    fn reset_running_stats(&self) -> Result<()>;

    /// Whether every batch counts alike from now on, or by the momentum.
    fn set_counts_alike(&self, alike: bool);
}

/// A batch norm, as such a layer.
pub(crate) fn running_statistics_of(module: &dyn Module) -> Option<&dyn RunningStatistics> {
    fn is<N: Module + RunningStatistics>(module: &dyn Module) -> Option<&dyn RunningStatistics> {
        (module as &dyn Any).downcast_ref::<N>().map(|norm| norm as &dyn RunningStatistics)
    }
    let found = is::<BatchNorm1d>(module).or_else(|| is::<BatchNorm2d>(module));
    found.or_else(|| is::<BatchNorm3d>(module))
}

macro_rules! norms {
    ($(
        $(#[$doc:meta])*
        $name:ident: $ranks:expr, $defaults:expr, $forward:ident;
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Module)]
            #[module(builtin, extra_repr = $name::describe)]
            pub struct $name {
                /// The scale.
                pub weight: Option<Parameter>,
                /// The shift.
                pub bias: Option<Parameter>,
                /// The mean over batches.
                pub running_mean: Option<Buffer>,
                /// The variance over batches.
                pub running_var: Option<Buffer>,
                /// How many batches were seen.
                pub num_batches_tracked: Option<Buffer>,
                /// How many channels.
                pub num_features: i64,
                /// Keeps the variance away from 0.
                pub eps: f64,
                /// How much of a batch goes into the running statistics.
                pub momentum: Option<f64>,
                /// Whether the batch's own statistics are taken, and kept.
                pub training: Training,
                /// Functions that see the calls.
                pub hooks: Hooks,
                #[module(skip)]
                counts_alike: CountsAlike,
            }

            impl $name {
                /// PyTorch's defaults.
                #[track_caller]
                pub fn new(num_features: i64) -> Result<$name> {
                    $name::with(num_features, $defaults)
                }

                /// Without running statistics, or without a scale.
                #[track_caller]
                pub fn with(num_features: i64, options: BatchNormOptions) -> Result<$name> {
                    let _site = at_caller();
                    let shift = options.affine && options.bias;
                    let (weight, bias) =
                        affine(&[num_features], [options.affine, shift], options.made())?;
                    let (running_mean, running_var, num_batches_tracked) =
                        running(num_features, &options)?;
                    Ok($name {
                        weight,
                        bias,
                        running_mean,
                        running_var,
                        num_batches_tracked,
                        num_features,
                        eps: options.eps,
                        momentum: options.momentum,
                        training: Training::default(),
                        hooks: Hooks::default(),
                        counts_alike: CountsAlike::default(),
                    })
                }

                /// Forgets what was seen.
                pub fn reset_running_stats(&self) -> Result<()> {
                    for (buffer, value) in [
                        (&self.running_mean, 0.0),
                        (&self.running_var, 1.0),
                        (&self.num_batches_tracked, 0.0),
                    ] {
                        if let Some(buffer) = buffer {
                            init::constant_(&buffer.tensor(), value)?;
                        }
                    }
                    Ok(())
                }

                /// Forgets what was seen, and writes a scale of 1 and a shift of 0.
                pub fn reset_parameters(&self) -> Result<()> {
                    self.reset_running_stats()?;
                    reset_affine(self.weight.as_ref(), self.bias.as_ref())
                }

                fn describe(&self) -> String {
                    format!(
                        "{}, eps={}, momentum={}, affine={}, bias={}, track_running_stats={}",
                        self.num_features,
                        number(self.eps),
                        self.momentum.map_or("None".to_string(), number),
                        truth(self.weight.is_some()),
                        truth(self.bias.is_some()),
                        truth(self.running_mean.is_some())
                    )
                }

                fn state(&self) -> Norm<'_> {
                    Norm {
                        name: stringify!($name),
                        affine: [tensor(&self.weight), tensor(&self.bias)],
                        running: [&self.running_mean, &self.running_var]
                            .map(|buffer| buffer.as_ref().map(Buffer::tensor)),
                        tracked: self.num_batches_tracked.as_ref(),
                        eps: self.eps,
                        momentum: self.momentum.filter(|_| !self.counts_alike.get()),
                        training: self.training.get(),
                        features: self.num_features,
                    }
                }
            }

            impl RunningStatistics for $name {
                fn reset_running_stats(&self) -> Result<()> {
                    $name::reset_running_stats(self)
                }

                fn set_counts_alike(&self, alike: bool) {
                    self.counts_alike.0.store(alike, Ordering::Relaxed);
                }
            }

            impl Forward<&Tensor> for $name {
                type Output = Tensor;

                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Tensor> {
                    let _site = at_caller();
                    check_rank(stringify!($name), input, &$ranks)?;
                    self.state().$forward(input, $ranks[0])
                }
            }
        )*
    };
}

norms! {
    /// The batch norm of vectors [batch, channels] and sequences [batch, channels, length].
    BatchNorm1d: [2, 3], BatchNormOptions::new(), over_batch;
    /// The batch norm of images [batch, channels, height, width].
    ///
    /// ```
    /// use plimsoll_nn::{BatchNorm2d, Forward, Module};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = BatchNorm2d::new(3)?;
    /// layer.call(&Tensor::ones(&[2, 3, 4, 4], DType::F32)?)?;
    /// assert_eq!(layer.num_batches_tracked.as_ref().unwrap().tensor().item::<i64>()?, 1);
    /// assert_eq!(layer.state_dict().len(), 5);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    BatchNorm2d: [4], BatchNormOptions::new(), over_batch;
    /// The batch norm of volumes [batch, channels, depth, height, width].
    BatchNorm3d: [5], BatchNormOptions::new(), over_batch;
    /// Mean 0 and variance 1 of each channel of each signal [batch, channels, length], or of one.
    InstanceNorm1d: [2, 3], BatchNormOptions::of_instances(), over_instances;
    /// Mean 0 and variance 1 of each channel of each image [batch, channels, height, width], or of
    /// one.
    InstanceNorm2d: [3, 4], BatchNormOptions::of_instances(), over_instances;
    /// Mean 0 and variance 1 of each channel of each volume [batch, channels, depth, height,
    /// width], or of one.
    InstanceNorm3d: [4, 5], BatchNormOptions::of_instances(), over_instances;
}

/// One call of a norm: what the layer's tensors are now.
struct Norm<'a> {
    name: &'static str,
    affine: [Option<Tensor>; 2],
    running: [Option<Tensor>; 2],
    tracked: Option<&'a Buffer>,
    eps: f64,
    momentum: Option<f64>,
    training: bool,
    features: i64,
}

impl Norm<'_> {
    /// The batch's statistics in training, or where no others are kept; else the running ones.
    fn over_batch(self, input: &Tensor, _: usize) -> Result<Tensor> {
        let shape = input.shape();
        let by_batch = self.training || self.running[0].is_none();
        if by_batch && shape[0] * shape[2..].iter().product::<usize>() == 1 {
            let what = format!(
                "Expected more than 1 value per channel when training, got input size {shape:?}"
            );
            return Err(Error::shape(self.name, what));
        }
        let mut momentum = self.momentum.unwrap_or(0.0);
        if let Some(tracked) = self.tracked.filter(|_| self.training) {
            let tracked = tracked.tensor();
            let _plain = NoGrad::enter();
            tracked.add_(1)?;
            if self.momentum.is_none() {
                momentum = 1.0 / tracked.to_scalar()?.to_f64();
            }
        }
        let [mean, var] = &self.running;
        self.run(input, [mean.as_ref(), var.as_ref()], by_batch, momentum)
    }

    /// A batch norm in which each sample's channels are channels of their own.
    fn over_instances(self, input: &Tensor, rank_of_one: usize) -> Result<Tensor> {
        if input.rank() == rank_of_one {
            return self.over_instances(&input.unsqueeze(0)?, rank_of_one)?.squeeze_with(0);
        }
        let sizes: Vec<i64> = input.shape().iter().map(|&size| size as i64).collect();
        let (batch, channels) = (sizes[0], sizes[1]);
        if channels != self.features && self.affine[0].is_some() {
            let what = format!(
                "expected input's size at dim=1 to match num_features ({}), but got: {channels}.",
                self.features
            );
            return Err(Error::shape(self.name, what));
        }
        let by_input = self.training || self.running[0].is_none();
        if by_input && sizes[2..].iter().product::<i64>() == 1 {
            let what = format!(
                "Expected more than 1 spatial element when training, got input size {sizes:?}"
            );
            return Err(Error::shape(self.name, what));
        }
        let repeated = |channels: &Option<Tensor>| {
            channels.as_ref().map(|channels| channels.repeat(&[batch])).transpose()
        };
        let plain = |buffer: &Option<Tensor>| {
            let _plain = NoGrad::enter();
            repeated(buffer)
        };
        let running = [plain(&self.running[0])?, plain(&self.running[1])?];
        let affine = [repeated(&self.affine[0])?, repeated(&self.affine[1])?];
        let kept = self.running;
        let wide = Norm { affine, running: [None, None], ..self };
        let mut flat = vec![1, batch * channels];
        flat.extend(&sizes[2..]);
        let used = [running[0].as_ref(), running[1].as_ref()];
        let momentum = wide.momentum.unwrap_or(0.0);
        let result = wide.run(&input.reshape(&flat)?, used, by_input, momentum)?;
        if by_input {
            let _plain = NoGrad::enter();
            for (kept, used) in kept.iter().zip(&running) {
                if let (Some(kept), Some(used)) = (kept, used) {
                    kept.copy_(&used.view(&[batch, channels])?.mean_with([0])?)?;
                }
            }
        }
        result.reshape(&sizes)
    }

    fn run(
        &self,
        input: &Tensor,
        [mean, var]: [Option<&Tensor>; 2],
        training: bool,
        momentum: f64,
    ) -> Result<Tensor> {
        let arguments = BatchNormArguments::new()
            .weight(self.affine[0].as_ref())
            .bias(self.affine[1].as_ref())
            .training(training)
            .momentum(momentum)
            .eps(self.eps);
        input.batch_norm_with(mean, var, arguments)
    }
}
