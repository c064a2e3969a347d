//! Pooling by windows whose places are drawn. Windows that lie evenly: `pooling.rs`.

use plimsoll_tensor::{DimList, Error, Result, Tensor};

use crate::call::at_caller;
use crate::{Buffer, Forward, Hooks, Module};

plimsoll_tensor::options! {
    /// How many results [`FractionalMaxPool2d`] and [`FractionalMaxPool3d`] give.
    FractionalPoolOptions {
        /// How many along each dimension; none if a ratio is given.
        output_size: DimList = DimList::default(),
        /// How many for each element of the input, between 0 and 1.
        output_ratio: Vec<f64> = Vec::new(),
        /// Numbers from 0 to 1 that place the windows, [batch, channels, dimensions]; drawn anew
        /// for each call if there are none.
        random_samples: Option<Buffer> = None,
    }
}

macro_rules! fractional_pools {
    ($($(#[$doc:meta])* $name:ident: $operation:ident, $spatial:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Module)]
            #[module(builtin)]
            pub struct $name {
                #[module(rename = "_random_samples")]
                random_samples: Option<Buffer>,
                kernel_size: DimList,
                output_size: DimList,
                output_ratio: Vec<f64>,
                /// Functions that see the calls.
                pub hooks: Hooks,
            }

            impl $name {
                /// As many results as the options say.
                pub fn new(
                    kernel_size: impl Into<DimList>,
                    options: FractionalPoolOptions,
                ) -> Result<$name> {
                    check(stringify!($name), &options)?;
                    let FractionalPoolOptions { output_size, output_ratio, random_samples } = options;
                    let (kernel_size, hooks) = (kernel_size.into(), Hooks::default());
                    Ok($name { random_samples, kernel_size, output_size, output_ratio, hooks })
                }

                /// The result, and the place that each element came from (PyTorch's
                /// `return_indices`).
                #[track_caller]
                pub fn with_indices(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
                    let _site = at_caller();
                    let size = results(x, $spatial, &self.output_size, &self.output_ratio)?;
                    let samples = match &self.random_samples {
                        Some(samples) => samples.tensor(),
                        None => drawn(x, $spatial)?,
                    };
                    x.$operation(self.kernel_size.clone(), size, &samples)
                }
            }

            impl Forward<&Tensor> for $name {
                type Output = Tensor;

                #[track_caller]
                fn forward(&self, x: &Tensor) -> Result<Tensor> {
                    let _site = at_caller();
                    Ok(self.with_indices(x)?.0)
                }
            }
        )*
    };
}

fractional_pools! {
    /// The largest of each window of images, of windows whose places are drawn.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, FractionalMaxPool2d, FractionalPoolOptions};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = FractionalMaxPool2d::new(2, FractionalPoolOptions::new().output_size(3))?;
    /// assert_eq!(layer.call(&Tensor::ones(&[1, 2, 7, 7], DType::F32)?)?.shape(), [1, 2, 3, 3]);
    /// let half = FractionalPoolOptions::new().output_ratio(vec![0.5]);
    /// let layer = FractionalMaxPool2d::new(2, half)?;
    /// assert_eq!(layer.call(&Tensor::ones(&[1, 2, 8, 6], DType::F32)?)?.shape(), [1, 2, 4, 3]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    FractionalMaxPool2d: fractional_max_pool2d, 2;
    /// The largest of each window of volumes, of windows whose places are drawn.
    FractionalMaxPool3d: fractional_max_pool3d, 3;
}

fn check(layer: &str, options: &FractionalPoolOptions) -> Result<()> {
    let wrong = |what: String| Err(Error::invalid_argument(what).in_operation(layer));
    match (options.output_size.as_slice(), options.output_ratio.as_slice()) {
        ([], []) => wrong("requires specifying either an output size, or a pooling ratio".into()),
        ([_, ..], [_, ..]) => {
            wrong("only one of output_size and output_ratio may be specified".into())
        }
        (_, ratio) if !ratio.iter().all(|share| *share > 0.0 && *share < 1.0) => {
            wrong(format!("output_ratio must be between 0 and 1 (got {ratio:?})"))
        }
        _ => Ok(()),
    }
}

/// How many results there are along each dimension.
fn results(x: &Tensor, spatial: usize, size: &DimList, ratio: &[f64]) -> Result<DimList> {
    if ratio.is_empty() {
        return Ok(size.clone());
    }
    let Some(first) = x.rank().checked_sub(spatial) else {
        let what = format!("an input of shape {:?} has too few dimensions", x.shape());
        return Err(Error::shape("fractional_max_pool", what));
    };
    let share = |at: usize| ratio.get(at).or(ratio.first()).copied().unwrap_or(1.0);
    let extents = x.shape()[first..].iter().enumerate();
    let size: Vec<i64> = extents.map(|(at, &extent)| (extent as f64 * share(at)) as i64).collect();
    Ok(DimList::from(&size))
}

/// One number for each sample, channel and dimension.
fn drawn(x: &Tensor, spatial: usize) -> Result<Tensor> {
    let single = x.rank() == spatial + 1;
    let (batch, channels) = if single { (1, x.size(0)?) } else { (x.size(0)?, x.size(1)?) };
    Tensor::rand(&[batch, channels, spatial as i64], (x.dtype(), x.device()))
}
