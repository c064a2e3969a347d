//! Out of windows and places again: unpooling, what comes back from the largest, windows as columns
//! and back.

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Site, with_site};

use super::options::{DimList, options};
use crate::Tensor;
use crate::ops::channels_last::is_channels_last;
use crate::ops::conv::space_of;
use crate::ops::pool::places::{Called as CalledPlaces, ScatterPlaces};
use crate::ops::pool::shape::{Called, Even, batched};
use crate::ops::pool::unfold::{Fold, Unfold};
use crate::prepare::apply_one;

options! {
    /// How [`Tensor::max_unpool2d_with`] and its kin undo pooling. One number stands for all
    /// dimensions.
    MaxUnpoolOptions {
        /// The pooling's stride; the kernel's size if empty.
        stride: DimList = DimList::default(),
        /// The pooling's padding.
        padding: DimList = 0.into(),
        /// The size of the result, where several fit; the smallest if empty.
        output_size: DimList = DimList::default(),
    }
}

/// The size that pooling started from.
fn unpooled_size(
    call: &Called<'_>,
    kernel_size: &DimList,
    options: &MaxUnpoolOptions,
) -> Result<[usize; 3]> {
    let rank = call.rank;
    let kernel = call.list("kernel_size", kernel_size.as_slice(), 1)?;
    let stride = match options.stride.as_slice() {
        [] => kernel,
        given => call.list("stride", given, 1)?,
    };
    let padding = call.list("padding", options.padding.as_slice(), 0)?;
    let given = match options.output_size.as_slice() {
        all if all.len() == rank + 2 => &all[2..],
        own => own,
    };
    let wrong = |why: String| Err(Error::invalid_argument(why).in_operation(call.operation));
    if !given.is_empty() && given.len() != rank {
        return wrong(format!(
            "output_size should be a sequence containing {rank} or {} elements, but it is {given:?}",
            rank + 2
        ));
    }
    let input = space_of(call.input);
    let mut size = [1; 3];
    for (at, d) in (3 - rank..3).enumerate() {
        let step = stride[d] as i128;
        let default = (input[d] as i128 - 1) * step + kernel[d] as i128 - 2 * padding[d] as i128;
        let wanted = given.get(at).map_or(default, |&size| i128::from(size));
        let near = default - step < wanted && wanted < default + step;
        if (!given.is_empty() && !near) || wanted < 0 || wanted > i64::MAX as i128 {
            return wrong(format!(
                "invalid output_size {given:?}: dimension {at} must be between {} and {} and not negative",
                default - step,
                default + step
            ));
        }
        size[d] = wanted as usize;
    }
    Ok(size)
}

fn max_unpool(
    operation: &'static str,
    rank: usize,
    input: &Tensor,
    indices: &Tensor,
    kernel_size: &DimList,
    options: &MaxUnpoolOptions,
    site: Site,
) -> Result<Tensor> {
    let (shape, single) = batched(operation, rank, input.shape())?;
    let call = Called { operation, rank, input: &shape };
    let size = unpooled_size(&call, kernel_size, options)?;
    call.check_input()?;
    with_site(site, || {
        let with_batch = |tensor: &Tensor| {
            if single { tensor.unsqueeze(0) } else { Ok(tensor.clone()) }
        };
        let (values, places) = (with_batch(input)?, with_batch(indices)?);
        let op = ScatterPlaces {
            rank,
            size,
            accumulate: false,
            channels_last: rank == 2 && is_channels_last(values.layout()),
            windows: None,
            called: CalledPlaces::Unpool,
        };
        let result = apply_one(&op, &[&values, &places], site)?;
        if single { result.squeeze_with(0) } else { Ok(result) }
    })
}

/// The two forms of unpooling.
macro_rules! max_unpool {
    ($(#[$doc:meta])* $name:ident, $with:ident, $rank:literal) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(
                &self,
                indices: &Tensor,
                kernel_size: impl Into<DimList>,
            ) -> Result<Tensor> {
                let (kernel, options) = (kernel_size.into(), MaxUnpoolOptions::new());
                let (name, site) = (stringify!($name), Site::caller());
                max_unpool(name, $rank, self, indices, &kernel, &options, site)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] of pooling with strides and padding.")]
            #[track_caller]
            pub fn $with(
                &self,
                indices: &Tensor,
                kernel_size: impl Into<DimList>,
                options: MaxUnpoolOptions,
            ) -> Result<Tensor> {
                let (kernel, name) = (kernel_size.into(), stringify!($name));
                max_unpool(name, $rank, self, indices, &kernel, &options, Site::caller())
            }
        }
    };
}

max_unpool!(
    /// Each element of a pooled signal back at the place that it came from, with zeros elsewhere.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 5.0, 2.0], &[1, 1, 4], Device::cpu())?;
    /// let (y, places) = x.max_pool1d_with_indices(2)?;
    /// assert_eq!(y.max_unpool1d(&places, 2)?.to_vec::<f32>()?, [0.0, 3.0, 5.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    max_unpool1d, max_unpool1d_with, 1
);
max_unpool!(
    /// Each element of a pooled image back at the place that it came from, with zeros elsewhere.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[1, 1, 2, 2])?;
    /// let (y, places) = x.max_pool2d_with_indices(2)?;
    /// assert_eq!(y.max_unpool2d(&places, 2)?.to_vec::<f32>()?, [0.0, 0.0, 0.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    max_unpool2d, max_unpool2d_with, 2
);
max_unpool!(
    /// Each element of a pooled volume back at the place that it came from, with zeros elsewhere.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 8, 1, DType::F32)?.view(&[1, 1, 2, 2, 2])?;
    /// let (y, places) = x.max_pool3d_with_indices(2)?;
    /// assert_eq!(y.max_unpool3d(&places, 2)?.sum()?.item::<f32>()?, 7.0);
    /// # Ok::<(), Error>(())
    /// ```
    max_unpool3d, max_unpool3d_with, 3
);

impl Tensor {
    /// What comes back to `input` from its largest elements, of which `indices` tells the places.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[1, 1, 2, 2])?;
    /// let (y, places) = x.max_pool2d_with_indices(2)?;
    /// let grad = Tensor::ones(&[1, 1, 1, 1], DType::F32)?;
    /// let back =
    ///     grad.max_pool2d_with_indices_backward(&x, 2, 2, 0, 1, false, &places)?;
    /// assert_eq!(back.to_vec::<f32>()?, [0.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    #[allow(clippy::too_many_arguments)]
    pub fn max_pool2d_with_indices_backward(
        &self,
        input: &Tensor,
        kernel_size: impl Into<DimList>,
        stride: impl Into<DimList>,
        padding: impl Into<DimList>,
        dilation: impl Into<DimList>,
        ceil_mode: bool,
        indices: &Tensor,
    ) -> Result<Tensor> {
        let (site, operation) = (Site::caller(), "max_pool2d_with_indices_backward");
        let (shape, single) = batched(operation, 2, input.shape())?;
        let call = Called { operation, rank: 2, input: &shape };
        let (kernel, stride) = (kernel_size.into(), stride.into());
        let (padding, dilation) = (padding.into(), dilation.into());
        let asked = Even {
            kernel: kernel.as_slice(),
            stride: stride.as_slice(),
            padding: padding.as_slice(),
            dilation: dilation.as_slice(),
            ceil_mode,
        };
        let windows = call.even(&asked)?;
        let expected = windows.shape(&shape);
        if self.shape() != &expected[usize::from(single)..] {
            return call.refuse(format!(
                "the gradient has shape {:?} and should have {:?} for an input of shape {:?}",
                self.shape(),
                &expected[usize::from(single)..],
                input.shape()
            ));
        }
        with_site(site, || {
            let with_batch = |tensor: &Tensor| {
                if single { tensor.unsqueeze(0) } else { Ok(tensor.clone()) }
            };
            let (grad, places) = (with_batch(self)?, with_batch(indices)?);
            let pooled = with_batch(input)?;
            let mut op = ScatterPlaces::back_to(pooled.meta(), 2);
            op.called = CalledPlaces::MaxPoolBackward;
            let result = apply_one(&op, &[&grad, &places, &pooled], site)?;
            if single { result.squeeze_with(0) } else { Ok(result) }
        })
    }

    /// The windows of each image as columns: [batch, channels x kernel, windows].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 9, 1, DType::F32)?.view(&[1, 1, 3, 3])?;
    /// let columns = x.im2col(2, 1, 0, 1)?;
    /// assert_eq!(columns.shape(), [1, 4, 4]);
    /// assert_eq!(columns.select(2, 0)?.to_vec::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn im2col(
        &self,
        kernel_size: impl Into<DimList>,
        dilation: impl Into<DimList>,
        padding: impl Into<DimList>,
        stride: impl Into<DimList>,
    ) -> Result<Tensor> {
        let (site, operation) = (Site::caller(), "im2col");
        let (shape, single) = batched(operation, 2, self.shape())?;
        let call = Called { operation, rank: 2, input: &shape };
        let (kernel, dilation) = (kernel_size.into(), dilation.into());
        let (padding, stride) = (padding.into(), stride.into());
        let args = call.unfold(
            kernel.as_slice(),
            dilation.as_slice(),
            padding.as_slice(),
            stride.as_slice(),
        )?;
        call.check_input()?;
        if args.windows([shape[2], shape[3]]).contains(&0) {
            return call.refuse(format!(
                "no window of kernel_size {:?} with dilation {:?} and padding {:?} fits into an input of shape {:?}",
                args.kernel,
                args.dilation,
                args.padding,
                self.shape()
            ));
        }
        with_site(site, || {
            let image = if single { Some(self.unsqueeze(0)?) } else { None };
            let result = apply_one(&Unfold(args), &[image.as_ref().unwrap_or(self)], site)?;
            if single { result.squeeze_with(0) } else { Ok(result) }
        })
    }

    /// Columns added up into images: what [`Tensor::im2col`] takes apart, where windows overlap as
    /// often as they do.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 1, 3, 3], DType::F32)?;
    /// let back = x.im2col(2, 1, 0, 1)?.col2im([3, 3], 2, 1, 0, 1)?;
    /// assert_eq!(back.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn col2im(
        &self,
        output_size: impl Into<DimList>,
        kernel_size: impl Into<DimList>,
        dilation: impl Into<DimList>,
        padding: impl Into<DimList>,
        stride: impl Into<DimList>,
    ) -> Result<Tensor> {
        let (site, operation) = (Site::caller(), "col2im");
        let (shape, single) = batched(operation, 1, self.shape())?;
        let call = Called { operation, rank: 2, input: &shape };
        let (kernel, dilation) = (kernel_size.into(), dilation.into());
        let (padding, stride) = (padding.into(), stride.into());
        let args = call.unfold(
            kernel.as_slice(),
            dilation.as_slice(),
            padding.as_slice(),
            stride.as_slice(),
        )?;
        call.check_input()?;
        let [_, height, width] = call.list("output_size", output_size.into().as_slice(), 1)?;
        let taps: usize = args.kernel.iter().product();
        if !shape[1].is_multiple_of(taps) {
            return call.refuse(format!(
                "the columns of shape {:?} should have a multiple of {taps} rows, the elements of kernel_size {:?}",
                self.shape(),
                args.kernel
            ));
        }
        let windows: usize = args.windows([height, width]).iter().product();
        if windows != shape[2] {
            return call.refuse(format!(
                "an image of {height} x {width} has {windows} windows, but the columns of shape {:?} are {}",
                self.shape(),
                shape[2]
            ));
        }
        with_site(site, || {
            let columns = if single { Some(self.unsqueeze(0)?) } else { None };
            let op = Fold { args, size: [height, width] };
            let result = apply_one(&op, &[columns.as_ref().unwrap_or(self)], site)?;
            if single { result.squeeze_with(0) } else { Ok(result) }
        })
    }
}
