//! Pooling: the largest, the mean or the norm of windows, of a given size or as many as asked for.

use plimsoll_tensor::{
    AvgPoolOptions, DimList, LpPoolOptions, MaxPoolOptions, MaxUnpoolOptions, Result, Tensor,
};

use crate::options::{number, truth, tuple};
use crate::stateless::layers;

/// As Python writes what was given: a number, or a tuple.
pub(crate) fn told(list: &DimList) -> String {
    match list.as_slice() {
        [one] => one.to_string(),
        many => tuple(many),
    }
}

/// The stride that is in force: the window's size, if none was given.
fn stride_or(stride: &DimList, kernel: &DimList) -> String {
    told(if stride.as_slice().is_empty() { kernel } else { stride })
}

macro_rules! max_pools {
    ($($(#[$doc:meta])* $name:ident: $operation:ident, $with_indices:ident;)*) => {
        $(layers! {
            $(#[$doc])*
            $name(
                /// The window.
                kernel_size: DimList
            ) {
                /// From one window to the next; the window's size if it is empty.
                stride: DimList = DimList::default(),
                /// What is put around the input.
                padding: DimList = 0.into(),
                /// From one element of a window to the next.
                dilation: DimList = 1.into(),
                /// Whether a window may reach over the end.
                ceil_mode: bool = false,
            }
            prints(of) format!(
                "kernel_size={}, stride={}, padding={}, dilation={}, ceil_mode={}",
                told(&of.kernel_size),
                stride_or(&of.stride, &of.kernel_size),
                told(&of.padding),
                told(&of.dilation),
                truth(of.ceil_mode)
            );
            computes(this, x = &Tensor) -> Tensor {
                x.$operation(this.kernel_size.clone(), this.arguments())
            }
        }

        impl $name {
            fn arguments(&self) -> MaxPoolOptions {
                MaxPoolOptions::new()
                    .stride(self.stride.clone())
                    .padding(self.padding.clone())
                    .dilation(self.dilation.clone())
                    .ceil_mode(self.ceil_mode)
            }

            /// The result, and the place that each element came from (PyTorch's `return_indices`).
            #[track_caller]
            pub fn with_indices(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
                x.$with_indices(self.kernel_size.clone(), self.arguments())
            }
        })*
    };
}

max_pools! {
    /// The largest of each window of signals [batch, channels, length].
    MaxPool1d: max_pool1d_with, max_pool1d_with_indices_with;
    /// The largest of each window of images [batch, channels, height, width].
    ///
    /// ```
    /// use plimsoll_nn::{Forward, MaxPool2d};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = MaxPool2d::new(2);
    /// assert_eq!(layer.call(&Tensor::ones(&[1, 1, 4, 4], DType::F32)?)?.shape(), [1, 1, 2, 2]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    MaxPool2d: max_pool2d_with, max_pool2d_with_indices_with;
    /// The largest of each window of volumes [batch, channels, depth, height, width].
    MaxPool3d: max_pool3d_with, max_pool3d_with_indices_with;
}

macro_rules! max_unpools {
    ($($(#[$doc:meta])* $name:ident: $operation:ident;)*) => {
        $(layers! {
            $(#[$doc])*
            $name(
                /// The pooling's window.
                kernel_size: DimList
            ) {
                /// The pooling's stride; the window's size if it is empty.
                stride: DimList = DimList::default(),
                /// The pooling's padding.
                padding: DimList = 0.into(),
                /// The size of the result; the smallest that fits if it is empty.
                output_size: DimList = DimList::default(),
            }
            prints(of) format!(
                "kernel_size={}, stride={}, padding={}",
                told(&of.kernel_size),
                stride_or(&of.stride, &of.kernel_size),
                told(&of.padding)
            );
            computes(this, (x, indices) = (&Tensor, &Tensor)) -> Tensor {
                let arguments = MaxUnpoolOptions::new()
                    .stride(this.stride.clone())
                    .padding(this.padding.clone())
                    .output_size(this.output_size.clone());
                x.$operation(indices, this.kernel_size.clone(), arguments)
            }
        })*
    };
}

max_unpools! {
    /// Puts what [`MaxPool1d`] gave back to its places; the others are zero.
    MaxUnpool1d: max_unpool1d_with;
    /// Puts what [`MaxPool2d`] gave back to its places; the others are zero.
    MaxUnpool2d: max_unpool2d_with;
    /// Puts what [`MaxPool3d`] gave back to its places; the others are zero.
    MaxUnpool3d: max_unpool3d_with;
}

macro_rules! avg_pools {
    ($($(#[$doc:meta])* $name:ident: $operation:ident;)*) => {
        $(layers! {
            $(#[$doc])*
            $name(
                /// The window.
                kernel_size: DimList
            ) {
                /// From one window to the next; the window's size if it is empty.
                stride: DimList = DimList::default(),
                /// What is put around the input.
                padding: DimList = 0.into(),
                /// Whether a window may reach over the end.
                ceil_mode: bool = false,
                /// Whether padding counts among the elements of a window.
                count_include_pad: bool = true,
                /// What sums are divided by, if not by the number of elements.
                divisor_override: Option<i64> = None,
            }
            prints(of) format!(
                "kernel_size={}, stride={}, padding={}",
                told(&of.kernel_size),
                stride_or(&of.stride, &of.kernel_size),
                told(&of.padding)
            );
            computes(this, x = &Tensor) -> Tensor {
                let arguments = AvgPoolOptions::new()
                    .stride(this.stride.clone())
                    .padding(this.padding.clone())
                    .ceil_mode(this.ceil_mode)
                    .count_include_pad(this.count_include_pad)
                    .divisor_override(this.divisor_override);
                x.$operation(this.kernel_size.clone(), arguments)
            }
        })*
    };
}

avg_pools! {
    /// The mean of each window of images [batch, channels, height, width].
    AvgPool2d: avg_pool2d_with;
    /// The mean of each window of volumes [batch, channels, depth, height, width].
    AvgPool3d: avg_pool3d_with;
}

layers! {
    /// The mean of each window of signals [batch, channels, length].
    AvgPool1d(
        /// The window.
        kernel_size: DimList
    ) {
        /// From one window to the next; the window's size if it is empty.
        stride: DimList = DimList::default(),
        /// What is put around the input.
        padding: DimList = 0.into(),
        /// Whether a window may reach over the end.
        ceil_mode: bool = false,
        /// Whether padding counts among the elements of a window.
        count_include_pad: bool = true,
    }
    prints(of) {
        let stride = if of.stride.as_slice().is_empty() { &of.kernel_size } else { &of.stride };
        format!(
            "kernel_size={}, stride={}, padding={}",
            tuple(of.kernel_size.as_slice()),
            tuple(stride.as_slice()),
            tuple(of.padding.as_slice())
        )
    };
    computes(this, x = &Tensor) -> Tensor {
        let arguments = AvgPoolOptions::new()
            .stride(this.stride.clone())
            .padding(this.padding.clone())
            .ceil_mode(this.ceil_mode)
            .count_include_pad(this.count_include_pad);
        x.avg_pool1d_with(this.kernel_size.clone(), arguments)
    }
}

macro_rules! lp_pools {
    ($($(#[$doc:meta])* $name:ident: $operation:ident;)*) => {
        $(layers! {
            $(#[$doc])*
            $name(
                /// The power.
                norm_type: f64,
                /// The window.
                kernel_size: DimList
            ) {
                /// From one window to the next; the window's size if it is empty.
                stride: DimList = DimList::default(),
                /// Whether a window may reach over the end.
                ceil_mode: bool = false,
            }
            prints(of) format!(
                "norm_type={}, kernel_size={}, stride={}, ceil_mode={}",
                number(of.norm_type),
                told(&of.kernel_size),
                if of.stride.as_slice().is_empty() { "None".to_string() } else { told(&of.stride) },
                truth(of.ceil_mode)
            );
            computes(this, x = &Tensor) -> Tensor {
                let arguments =
                    LpPoolOptions::new().stride(this.stride.clone()).ceil_mode(this.ceil_mode);
                x.$operation(this.norm_type, this.kernel_size.clone(), arguments)
            }
        })*
    };
}

lp_pools! {
    /// The norm of each window of signals [batch, channels, length].
    LPPool1d: lp_pool1d_with;
    /// The norm of each window of images [batch, channels, height, width].
    LPPool2d: lp_pool2d_with;
    /// The norm of each window of volumes [batch, channels, depth, height, width].
    LPPool3d: lp_pool3d_with;
}

macro_rules! adaptive_pools {
    ($($(#[$doc:meta])* $name:ident: |$x:ident, $size:ident| $body:expr;)*) => {
        $(layers! {
            $(#[$doc])*
            $name(
                /// How many windows; one number stands for all dimensions.
                output_size: DimList
            ) {}
            prints(of) format!("output_size={}", told(&of.output_size));
            computes(this, $x = &Tensor) -> Tensor {
                let $size = this.output_size.clone();
                $body
            }
        })*
    };
}

adaptive_pools! {
    /// The means of as many windows as asked for, which share out a signal.
    AdaptiveAvgPool1d: |x, size| x.adaptive_avg_pool1d(size);
    /// The means of as many windows as asked for, which share out an image.
    ///
    /// ```
    /// use plimsoll_nn::{AdaptiveAvgPool2d, Forward};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = AdaptiveAvgPool2d::new(1);
    /// assert_eq!(layer.call(&Tensor::ones(&[1, 2, 4, 5], DType::F32)?)?.shape(), [1, 2, 1, 1]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    AdaptiveAvgPool2d: |x, size| x.adaptive_avg_pool2d(size);
    /// The means of as many windows as asked for, which share out a volume.
    AdaptiveAvgPool3d: |x, size| x.adaptive_avg_pool3d(size);
    /// The largest of as many windows as asked for, which share out a signal.
    AdaptiveMaxPool1d: |x, size| x.adaptive_max_pool1d(size).map(|(result, _)| result);
    /// The largest of as many windows as asked for, which share out an image.
    AdaptiveMaxPool2d: |x, size| x.adaptive_max_pool2d(size).map(|(result, _)| result);
    /// The largest of as many windows as asked for, which share out a volume.
    AdaptiveMaxPool3d: |x, size| x.adaptive_max_pool3d(size).map(|(result, _)| result);
}
