//! Layers that lay elements out anew, or draw an image to another size: no arithmetic of their own.

use plimsoll_tensor::{DimList, Error, InterpolateMode, InterpolateOptions, Result, Tensor};

use crate::options::{number, tuple};
use crate::pooling::told;
use crate::stateless::layers;

layers! {
    /// Makes one dimension of several: all but the first, if nothing is said.
    ///
    /// ```
    /// use plimsoll_nn::{Flatten, Forward};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::ones(&[2, 3, 4], DType::F32)?;
    /// assert_eq!(Flatten::new().call(&x)?.shape(), [2, 12]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    Flatten() {
        /// The first of them.
        start_dim: i64 = 1,
        /// The last of them.
        end_dim: i64 = -1,
    }
    prints(of) format!("start_dim={}, end_dim={}", of.start_dim, of.end_dim);
    computes(this, x = &Tensor) -> Tensor { x.flatten(this.start_dim, this.end_dim) }

    /// Makes several dimensions of one.
    Unflatten(
        /// The dimension.
        dim: i64,
        /// Its new sizes; one may be -1.
        unflattened_size: DimList
    ) {}
    prints(of) format!(
        "dim={}, unflattened_size={}", of.dim, tuple(of.unflattened_size.as_slice())
    );
    computes(this, x = &Tensor) -> Tensor {
        x.unflatten(this.dim, this.unflattened_size.as_slice())
    }

    /// Makes an image larger by channels: `(C r r, H, W)` becomes `(C, H r, W r)`.
    PixelShuffle(
        /// How much larger.
        upscale_factor: i64
    ) {}
    prints(of) format!("upscale_factor={}", of.upscale_factor);
    computes(this, x = &Tensor) -> Tensor { x.pixel_shuffle(this.upscale_factor) }

    /// Makes channels of an image's places: `(C, H r, W r)` becomes `(C r r, H, W)`.
    PixelUnshuffle(
        /// How much smaller.
        downscale_factor: i64
    ) {}
    prints(of) format!("downscale_factor={}", of.downscale_factor);
    computes(this, x = &Tensor) -> Tensor { x.pixel_unshuffle(this.downscale_factor) }

    /// Takes the first channel of each group, then the second of each, and so on.
    ChannelShuffle(
        /// How many groups.
        groups: i64
    ) {}
    prints(of) format!("groups={}", of.groups);
    computes(this, x = &Tensor) -> Tensor { x.channel_shuffle(this.groups) }

    /// Adds columns up to an image, each to the window it stands for.
    Fold(
        /// The image's size.
        output_size: DimList,
        /// The window.
        kernel_size: DimList
    ) {
        /// From one element of a window to the next.
        dilation: DimList = 1.into(),
        /// What was put around the image.
        padding: DimList = 0.into(),
        /// From one window to the next.
        stride: DimList = 1.into(),
    }
    prints(of) format!(
        "output_size={}, kernel_size={}, dilation={}, padding={}, stride={}",
        told(&of.output_size), told(&of.kernel_size), told(&of.dilation), told(&of.padding),
        told(&of.stride)
    );
    computes(this, x = &Tensor) -> Tensor {
        x.col2im(
            both(&this.output_size), both(&this.kernel_size), both(&this.dilation),
            both(&this.padding), both(&this.stride),
        )
    }

    /// Makes a column of each window of an image.
    Unfold(
        /// The window.
        kernel_size: DimList
    ) {
        /// From one element of a window to the next.
        dilation: DimList = 1.into(),
        /// What is put around the image.
        padding: DimList = 0.into(),
        /// From one window to the next.
        stride: DimList = 1.into(),
    }
    prints(of) format!(
        "kernel_size={}, dilation={}, padding={}, stride={}",
        told(&of.kernel_size), told(&of.dilation), told(&of.padding), told(&of.stride)
    );
    computes(this, x = &Tensor) -> Tensor {
        x.im2col(
            both(&this.kernel_size), both(&this.dilation), both(&this.padding), both(&this.stride),
        )
    }

    /// Draws signals, images or volumes to another size, given or by a factor.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, Upsample};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = Upsample::new().scale_factor(vec![2.0]);
    /// assert_eq!(layer.call(&Tensor::ones(&[1, 1, 3, 3], DType::F32)?)?.shape(), [1, 1, 6, 6]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    Upsample() {
        /// The size; one number stands for all dimensions, none for a factor.
        size: DimList = DimList::default(),
        /// The factor of each dimension, or one for all.
        scale_factor: Vec<f64> = Vec::new(),
        /// What lies between pixels.
        mode: InterpolateMode = InterpolateMode::Nearest,
        /// Whether the corners stay where they are.
        align_corners: bool = false,
    }
    prints(of) format!(
        "{}, mode='{}'", size_or_factor(&of.size, &of.scale_factor), mode_name(of.mode)
    );
    computes(this, x = &Tensor) -> Tensor {
        let options = InterpolateOptions::new()
            .interpolate_mode(this.mode)
            .align_corners(this.align_corners);
        resized("Upsample", x, &this.size, &this.scale_factor, options)
    }

    /// Repeats the pixels of an image: [`Upsample`] by the name of an older PyTorch.
    UpsamplingNearest2d() {
        /// The size; one number stands for both dimensions, none for a factor.
        size: DimList = DimList::default(),
        /// The factor of each dimension, or one for both.
        scale_factor: Vec<f64> = Vec::new(),
    }
    prints(of) format!("{}, mode='nearest'", size_or_factor(&of.size, &of.scale_factor));
    computes(this, x = &Tensor) -> Tensor {
        let options = InterpolateOptions::new().interpolate_mode(InterpolateMode::Nearest);
        resized("UpsamplingNearest2d", x, &this.size, &this.scale_factor, options)
    }

    /// Interpolates an image along both sides; corners stay where they are. [`Upsample`] by the
    /// name of an older PyTorch.
    UpsamplingBilinear2d() {
        /// The size; one number stands for both dimensions, none for a factor.
        size: DimList = DimList::default(),
        /// The factor of each dimension, or one for both.
        scale_factor: Vec<f64> = Vec::new(),
    }
    prints(of) format!("{}, mode='bilinear'", size_or_factor(&of.size, &of.scale_factor));
    computes(this, x = &Tensor) -> Tensor {
        let options =
            InterpolateOptions::new().interpolate_mode(InterpolateMode::Linear).align_corners(true);
        resized("UpsamplingBilinear2d", x, &this.size, &this.scale_factor, options)
    }
}

fn size_or_factor(size: &DimList, scale_factor: &[f64]) -> String {
    match scale_factor {
        [] => format!("size={}", told(size)),
        [one] => format!("scale_factor={}", number(*one)),
        many => format!(
            "scale_factor=({})",
            many.iter().map(|factor| number(*factor)).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// A picture of another size, given or by factors.
fn resized(
    layer: &str,
    x: &Tensor,
    size: &DimList,
    factors: &[f64],
    options: InterpolateOptions,
) -> Result<Tensor> {
    let spatial = x.rank().saturating_sub(2);
    let size = size.as_slice();
    if size.is_empty() == factors.is_empty() {
        let what = "give either size or scale_factor";
        return Err(Error::invalid_argument(what).in_operation(layer));
    }
    if factors.is_empty() {
        let size = if size.len() == 1 { vec![size[0]; spatial] } else { size.to_vec() };
        return x.interpolate_with(&size, options);
    }
    let factors = if factors.len() == 1 { vec![factors[0]; spatial] } else { factors.to_vec() };
    let extents = x.shape().iter().skip(2).zip(&factors);
    let size: Vec<i64> =
        extents.map(|(&extent, factor)| (extent as f64 * factor).floor() as i64).collect();
    x.interpolate_with(&size, options.scale_factor(factors.as_slice()))
}

/// One number for both sides of a window.
fn both(list: &DimList) -> DimList {
    match list.as_slice() {
        [one] => [*one, *one].into(),
        _ => list.clone(),
    }
}

/// PyTorch names the mode of two dimensions.
fn mode_name(mode: InterpolateMode) -> &'static str {
    match mode {
        InterpolateMode::Nearest => "nearest",
        InterpolateMode::NearestExact => "nearest-exact",
        InterpolateMode::Linear => "bilinear",
        InterpolateMode::Cubic => "bicubic",
        InterpolateMode::Area => "area",
    }
}
