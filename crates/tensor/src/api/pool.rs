//! Pooling: the largest element or the mean of each window of a signal, an image or a volume, and
//! back.

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Site, with_site};
use smallvec::SmallVec;

use super::options::{DimList, options};
use crate::Tensor;
use crate::dispatch::{Dest, first};
use crate::operation::{Operation, Outputs};
use crate::ops::pool::Windows;
use crate::ops::pool::max::{Called as CalledMax, MaxPool, fractional};
use crate::ops::pool::mean::MeanPool;
use crate::ops::pool::shape::{Called, Even, batched};
use crate::prepare::apply;
use plimsoll_kernels::cpu::pool::MeanArgs;

options! {
    /// How [`Tensor::max_pool2d_with`] and its kin go over their input. One number stands for all
    /// dimensions.
    MaxPoolOptions {
        /// From one window to the next; the kernel's size if empty.
        stride: DimList = DimList::default(),
        /// What lies around the input, below every element.
        padding: DimList = 0.into(),
        /// From one element of a window to the next.
        dilation: DimList = 1.into(),
        /// Whether windows may end past the padding.
        ceil_mode: bool = false,
    }
}

options! {
    /// How [`Tensor::avg_pool2d_with`] and its kin go over their input. One number stands for all
    /// dimensions.
    AvgPoolOptions {
        /// From one window to the next; the kernel's size if empty.
        stride: DimList = DimList::default(),
        /// Zeros around the input.
        padding: DimList = 0.into(),
        /// Whether windows may end past the padding.
        ceil_mode: bool = false,
        /// Whether the zeros around the input count as elements.
        count_include_pad: bool = true,
        /// What sums are divided by instead of the number of elements.
        divisor_override: Option<i64> = None,
    }
}

/// Runs `op` on an input that may lack its batch; its results lack it then too.
fn run(
    op: &dyn Operation,
    input: &Tensor,
    more: Option<&Tensor>,
    single: bool,
    site: Site,
) -> Result<Outputs> {
    with_site(site, || {
        let image = if single { Some(input.unsqueeze(0)?) } else { None };
        let inputs: SmallVec<[&Tensor; 2]> =
            std::iter::once(image.as_ref().unwrap_or(input)).chain(more).collect();
        let outputs = apply(op, &inputs, Dest::New, site)?;
        if !single {
            return Ok(outputs);
        }
        outputs.iter().map(|output| output.squeeze_with(0)).collect()
    })
}

/// Runs `op` on an input that may lack its batch, into a target that lacks it then too.
fn into(op: &MeanPool, input: &Tensor, single: bool, out: &Tensor, site: Site) -> Result<()> {
    if !single {
        return apply(op, &[input], Dest::Out(&[out]), site).map(drop);
    }
    let expected = op.windows.shape(&[&[1], input.shape()].concat());
    if out.shape() != &expected[1..] {
        return Err(Error::target_shape(op.info().name, &expected[1..], out.shape()));
    }
    with_site(site, || {
        let (image, target) = (input.unsqueeze(0)?, out.unsqueeze(0)?);
        apply(op, &[&image], Dest::Out(&[&target]), site).map(drop)
    })
}

/// The first two of an operation's results.
fn two(outputs: Outputs) -> Result<(Tensor, Tensor)> {
    let mut outputs = outputs.into_iter();
    match (outputs.next(), outputs.next()) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(Error::invalid_argument("the operation did not give its second result")),
    }
}

fn max_pool(
    (operation, rank, called): (&'static str, usize, CalledMax),
    input: &Tensor,
    kernel_size: &DimList,
    options: &MaxPoolOptions,
    site: Site,
) -> Result<Outputs> {
    let (shape, single) = batched(operation, rank, input.shape())?;
    let call = Called { operation, rank, input: &shape };
    let asked = Even {
        kernel: kernel_size.as_slice(),
        stride: options.stride.as_slice(),
        padding: options.padding.as_slice(),
        dilation: options.dilation.as_slice(),
        ceil_mode: options.ceil_mode,
    };
    let windows = call.even(&asked)?;
    call.check_input()?;
    run(&MaxPool { windows, called }, input, None, single, site)
}

/// The operation of a mean's call, and whether its input lacks the batch.
fn avg_pool(
    operation: &'static str,
    rank: usize,
    input: &Tensor,
    kernel_size: &DimList,
    options: &AvgPoolOptions,
) -> Result<(MeanPool, bool)> {
    let (shape, single) = batched(operation, rank, input.shape())?;
    let call = Called { operation, rank, input: &shape };
    if options.divisor_override == Some(0) {
        return call.refuse("divisor must be not zero".to_string());
    }
    let asked = Even {
        kernel: kernel_size.as_slice(),
        stride: options.stride.as_slice(),
        padding: options.padding.as_slice(),
        dilation: &[1],
        ceil_mode: options.ceil_mode,
    };
    let windows = call.even(&asked)?;
    call.check_input()?;
    let args = MeanArgs {
        windows: windows.windows,
        count_padding: options.count_include_pad,
        divisor: options.divisor_override,
    };
    Ok((MeanPool { windows, args, adaptive: false }, single))
}

/// The windows of an adaptive call, and whether its input lacks the batch.
fn adaptive(
    operation: &'static str,
    rank: usize,
    input: &Tensor,
    output_size: &DimList,
) -> Result<(Windows, bool)> {
    let (shape, single) = batched(operation, rank, input.shape())?;
    let call = Called { operation, rank, input: &shape };
    let windows = call.adaptive(output_size.as_slice())?;
    // Of these PyTorch asks no channels.
    if !matches!(operation, "adaptive_avg_pool1d" | "adaptive_avg_pool2d")
        || shape[2..].contains(&0)
    {
        call.check_input()?;
    }
    Ok((windows, single))
}

/// The forms of pooling that take the largest.
macro_rules! max_pool {
    (
        $(#[$doc:meta])* $name:ident, $with:ident, $rank:literal;
        $(#[$indices_doc:meta])* $indices:ident, $indices_with:ident
    ) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, kernel_size: impl Into<DimList>) -> Result<Tensor> {
                let call = (stringify!($name), $rank, CalledMax::Plain);
                let options = MaxPoolOptions::new();
                max_pool(call, self, &kernel_size.into(), &options, Site::caller()).map(first)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] with strides, padding, dilation.")]
            #[track_caller]
            pub fn $with(
                &self,
                kernel_size: impl Into<DimList>,
                options: MaxPoolOptions,
            ) -> Result<Tensor> {
                let call = (stringify!($name), $rank, CalledMax::Plain);
                max_pool(call, self, &kernel_size.into(), &options, Site::caller()).map(first)
            }

            $(#[$indices_doc])*
            #[track_caller]
            pub fn $indices(&self, kernel_size: impl Into<DimList>) -> Result<(Tensor, Tensor)> {
                self.$indices_with(kernel_size, MaxPoolOptions::new())
            }

            #[doc = concat!("[`Tensor::", stringify!($with), "`], and the place in its channel that each came from.")]
            #[track_caller]
            pub fn $indices_with(
                &self,
                kernel_size: impl Into<DimList>,
                options: MaxPoolOptions,
            ) -> Result<(Tensor, Tensor)> {
                let call = (stringify!($indices), $rank, CalledMax::WithIndices);
                two(max_pool(call, self, &kernel_size.into(), &options, Site::caller())?)
            }
        }
    };
}

max_pool!(
    /// The largest element of each window of a signal [batch, channels, length], or of one signal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0, 5.0], &[1, 1, 4], Device::cpu())?;
    /// assert_eq!(x.max_pool1d(2)?.to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    max_pool1d, max_pool1d_with, 1;
    /// [`Tensor::max_pool1d`], and the place in its channel that each came from.
    max_pool1d_with_indices, max_pool1d_with_indices_with
);
max_pool!(
    /// The largest element of each window of an image [batch, channels, height, width], or of one
    /// image.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 16, 1, DType::F32)?.view(&[1, 1, 4, 4])?;
    /// assert_eq!(x.max_pool2d(2)?.to_vec::<f32>()?, [5.0, 7.0, 13.0, 15.0]);
    /// let options = MaxPoolOptions::new().stride(1).padding(1);
    /// let (y, places) = x.max_pool2d_with_indices_with(3, options)?;
    /// assert_eq!((y.shape(), places.dtype()), (&[1, 1, 4, 4][..], DType::I64));
    /// # Ok::<(), Error>(())
    /// ```
    max_pool2d, max_pool2d_with, 2;
    /// [`Tensor::max_pool2d`], and the place in its channel that each came from.
    max_pool2d_with_indices, max_pool2d_with_indices_with
);
max_pool!(
    /// The largest element of each window of a volume [batch, channels, depth, height, width], or
    /// of one volume.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 8, 1, DType::F32)?.view(&[1, 1, 2, 2, 2])?;
    /// assert_eq!(x.max_pool3d(2)?.to_vec::<f32>()?, [7.0]);
    /// # Ok::<(), Error>(())
    /// ```
    max_pool3d, max_pool3d_with, 3;
    /// [`Tensor::max_pool3d`], and the place in its channel that each came from.
    max_pool3d_with_indices, max_pool3d_with_indices_with
);

/// The forms of pooling that take the mean.
macro_rules! avg_pool {
    ($(#[$doc:meta])* $name:ident, $with:ident, $out:ident, $rank:literal) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, kernel_size: impl Into<DimList>) -> Result<Tensor> {
                self.$with(kernel_size, AvgPoolOptions::new())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] with strides, padding, a divisor.")]
            #[track_caller]
            pub fn $with(
                &self,
                kernel_size: impl Into<DimList>,
                options: AvgPoolOptions,
            ) -> Result<Tensor> {
                let (name, site) = (stringify!($name), Site::caller());
                let (op, single) = avg_pool(name, $rank, self, &kernel_size.into(), &options)?;
                run(&op, self, None, single, site).map(first)
            }

            #[doc = concat!("[`Tensor::", stringify!($with), "`] into `out`.")]
            #[track_caller]
            pub fn $out(
                &self,
                kernel_size: impl Into<DimList>,
                options: AvgPoolOptions,
                out: &Tensor,
            ) -> Result<()> {
                let (name, site) = (stringify!($name), Site::caller());
                let (op, single) = avg_pool(name, $rank, self, &kernel_size.into(), &options)?;
                into(&op, self, single, out, site)
            }
        }
    };
}

avg_pool!(
    /// The mean of each window of a signal [batch, channels, length], or of one signal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 2.0, 6.0], &[1, 1, 4], Device::cpu())?;
    /// assert_eq!(x.avg_pool1d(2)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    avg_pool1d, avg_pool1d_with, avg_pool1d_with_out, 1
);
avg_pool!(
    /// The mean of each window of an image [batch, channels, height, width], or of one image.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 1, 4, 4], DType::F32)?;
    /// let padded = AvgPoolOptions::new().padding(1).count_include_pad(false);
    /// assert_eq!(x.avg_pool2d_with(2, padded)?.sum()?.item::<f32>()?, 9.0);
    /// # Ok::<(), Error>(())
    /// ```
    avg_pool2d, avg_pool2d_with, avg_pool2d_with_out, 2
);
avg_pool!(
    /// The mean of each window of a volume [batch, channels, depth, height, width], or of one
    /// volume.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 8, 1, DType::F32)?.view(&[1, 1, 2, 2, 2])?;
    /// assert_eq!(x.avg_pool3d(2)?.to_vec::<f32>()?, [3.5]);
    /// # Ok::<(), Error>(())
    /// ```
    avg_pool3d, avg_pool3d_with, avg_pool3d_with_out, 3
);

/// Adaptive pooling: the mean, and the largest with its place.
macro_rules! adaptive_pool {
    ($(#[$doc:meta])* $avg:ident, $rank:literal; $(#[$max_doc:meta])* $max:ident, $again:literal) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $avg(&self, output_size: impl Into<DimList>) -> Result<Tensor> {
                let site = Site::caller();
                let (windows, single) =
                    adaptive(stringify!($avg), $rank, self, &output_size.into())?;
                let args = MeanArgs { windows: windows.windows, count_padding: false, divisor: None };
                let op = MeanPool { windows, args, adaptive: true };
                run(&op, self, None, single, site).map(first)
            }

            $(#[$max_doc])*
            #[track_caller]
            pub fn $max(&self, output_size: impl Into<DimList>) -> Result<(Tensor, Tensor)> {
                let site = Site::caller();
                let (windows, single) =
                    adaptive(stringify!($max), $rank, self, &output_size.into())?;
                let op = MaxPool { windows, called: CalledMax::Adaptive };
                two(run(&op, self, None, single, site)?)
            }
        }
    };
}

adaptive_pool!(
    /// The means of as many windows as asked for, which share out a signal [batch, channels,
    /// length].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[1, 1, 3], Device::cpu())?;
    /// assert_eq!(x.adaptive_avg_pool1d(2)?.to_vec::<f32>()?, [1.5, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    adaptive_avg_pool1d, 1;
    /// The largest elements of as many windows as asked for, which share out a signal, and their
    /// places.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[1, 1, 3], Device::cpu())?;
    /// let (y, places) = x.adaptive_max_pool1d(2)?;
    /// assert_eq!((y.to_vec::<f32>()?, places.to_vec::<i64>()?), (vec![2.0, 3.0], vec![1, 2]));
    /// # Ok::<(), Error>(())
    /// ```
    adaptive_max_pool1d, 1
);
adaptive_pool!(
    /// The means of as many windows as asked for, which share out an image [batch, channels,
    /// height, width].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 16, 1, DType::F32)?.view(&[1, 1, 4, 4])?;
    /// assert_eq!(x.adaptive_avg_pool2d(1)?.to_vec::<f32>()?, [7.5]);
    /// # Ok::<(), Error>(())
    /// ```
    adaptive_avg_pool2d, 2;
    /// The largest elements of as many windows as asked for, which share out an image, and their
    /// places.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 16, 1, DType::F32)?.view(&[1, 1, 4, 4])?;
    /// let (y, places) = x.adaptive_max_pool2d([1, 2])?;
    /// assert_eq!((y.to_vec::<f32>()?, places.to_vec::<i64>()?), (vec![13.0, 15.0], vec![13, 15]));
    /// # Ok::<(), Error>(())
    /// ```
    adaptive_max_pool2d, 2
);
adaptive_pool!(
    /// The means of as many windows as asked for, which share out a volume [batch, channels, depth,
    /// height, width].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 2, 3, 4, 5], DType::F32)?;
    /// assert_eq!(x.adaptive_avg_pool3d([1, 2, 2])?.shape(), [1, 2, 1, 2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    adaptive_avg_pool3d, 3;
    /// The largest elements of as many windows as asked for, which share out a volume, and their
    /// places.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 8, 1, DType::F32)?.view(&[1, 1, 2, 2, 2])?;
    /// assert_eq!(x.adaptive_max_pool3d(1)?.1.to_vec::<i64>()?, [7]);
    /// # Ok::<(), Error>(())
    /// ```
    adaptive_max_pool3d, 3
);

fn fractional_max_pool(
    operation: &'static str,
    rank: usize,
    input: &Tensor,
    kernel_size: &DimList,
    output_size: &DimList,
    samples: &Tensor,
    site: Site,
) -> Result<(Tensor, Tensor)> {
    let (shape, single) = batched(operation, rank, input.shape())?;
    let call = Called { operation, rank, input: &shape };
    let kernel = call.list("kernel_size", kernel_size.as_slice(), 1)?;
    let results = call.list("output_size", output_size.as_slice(), 0)?;
    let size = crate::ops::conv::space_of(&shape);
    for d in 3 - rank..3 {
        let reach = results[d].checked_add(kernel[d]);
        if reach.is_none_or(|reach| reach - 1 > size[d]) {
            return call.refuse(format!(
                "a window of {} elements and {} results are too large for an input of shape {shape:?}",
                kernel[d], results[d]
            ));
        }
    }
    call.check_input()?;
    let op = MaxPool { windows: fractional(kernel, rank, results), called: CalledMax::Fractional };
    two(run(&op, input, Some(samples), single, site)?)
}

impl Tensor {
    /// The largest element of windows of an image whose distances are random, by samples from 0 to
    /// 1 of shape [batch, channels, 2], and their places.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 25, 1, DType::F32)?.view(&[1, 1, 5, 5])?;
    /// let samples = Tensor::full(&[1, 1, 2], 0.5, DType::F32)?;
    /// let (y, _) = x.fractional_max_pool2d(2, 3, &samples)?;
    /// assert_eq!((y.shape(), y.amax()?.item::<f32>()?), (&[1, 1, 3, 3][..], 24.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn fractional_max_pool2d(
        &self,
        kernel_size: impl Into<DimList>,
        output_size: impl Into<DimList>,
        random_samples: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let (kernel, size) = (kernel_size.into(), output_size.into());
        let (name, site) = ("fractional_max_pool2d", Site::caller());
        fractional_max_pool(name, 2, self, &kernel, &size, random_samples, site)
    }

    /// The largest element of windows of a volume whose distances are random, by samples from 0 to
    /// 1 of shape [batch, channels, 3], and their places.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 1, 4, 4, 4], DType::F32)?;
    /// let samples = Tensor::full(&[1, 1, 3], 0.5, DType::F32)?;
    /// assert_eq!(x.fractional_max_pool3d(2, 2, &samples)?.0.shape(), [1, 1, 2, 2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn fractional_max_pool3d(
        &self,
        kernel_size: impl Into<DimList>,
        output_size: impl Into<DimList>,
        random_samples: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let (kernel, size) = (kernel_size.into(), output_size.into());
        let (name, site) = ("fractional_max_pool3d", Site::caller());
        fractional_max_pool(name, 3, self, &kernel, &size, random_samples, site)
    }
}
