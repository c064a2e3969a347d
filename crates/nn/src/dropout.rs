//! Dropout: of elements, of whole channels, and to SELU's saturation.

use plimsoll_tensor::{Error, NoGrad, Result, Tensor};

use crate::Training;
use crate::options::{number, truth};
use crate::stateless::layers;

fn describe(p: f64, inplace: bool) -> String {
    format!("p={}, inplace={}", number(p), truth(inplace))
}

fn check(layer: &str, p: f64) -> Result<()> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    let what = format!("dropout probability has to be between 0 and 1, but got {p}");
    Err(Error::invalid_argument(what).in_operation(layer))
}

/// `1 / (1 - p)` where something is kept, else 0: for each element, or for each channel.
fn noise(x: &Tensor, p: f64, channels: bool) -> Result<Tensor> {
    let keeps = if channels { 2 } else { x.rank() };
    let size = |(at, &size): (usize, &usize)| if at < keeps { size as i64 } else { 1 };
    let sizes: Vec<i64> = x.shape().iter().enumerate().map(size).collect();
    let _plain = NoGrad::enter();
    Tensor::ones(&sizes, (x.dtype(), x.device()))?.dropout(p, true)
}

/// Dropout of whole channels of [batch, channels, ..], or of one sample of `rank_of_one`
/// dimensions.
fn channels(x: &Tensor, p: f64, inplace: bool, rank_of_one: usize) -> Result<Tensor> {
    if x.rank() == rank_of_one {
        let dropped = channels(&x.unsqueeze(0)?, p, inplace, 0)?;
        return if inplace { Ok(x.clone()) } else { dropped.squeeze_with(0) };
    }
    if x.rank() < 2 {
        let what = format!("channels need 2 or more dimensions, and the input has {}", x.rank());
        return Err(Error::shape("dropout", what));
    }
    let noise = noise(x, p, true)?;
    if inplace { x.mul_(&noise).cloned() } else { x.mul(&noise) }
}

/// What SELU gives far below 0.
const SATURATED: f64 = 1.758_099_340_847_376_6;

fn alpha(x: &Tensor, p: f64, inplace: bool, channels: bool) -> Result<Tensor> {
    if p == 1.0 {
        return if inplace { x.mul_(0.0).cloned() } else { x.mul(0.0) };
    }
    let plain = NoGrad::enter();
    let kept = noise(x, p, channels)?.ne(0.0)?.to(x.dtype())?;
    let scale = 1.0 / ((SATURATED * SATURATED * p + 1.0) * (1.0 - p)).sqrt();
    let shift = kept.sub(1.0)?.mul(SATURATED * scale)?.add(SATURATED * scale * p)?;
    let factor = kept.mul(scale)?;
    drop(plain);
    if inplace { x.mul_(&factor)?.add_(&shift).cloned() } else { x.mul(&factor)?.add(&shift) }
}

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident: |$x:ident, $p:ident, $inplace:ident| $body:expr;)*) => {
        $(layers! {
            $(#[$doc])*
            $name() {
                /// The probability of being dropped.
                p: f64 = 0.5,
                /// Whether it writes over its argument.
                inplace: bool = false,
                /// Whether anything is dropped.
                training: Training = Training::default(),
            }
            prints(of) describe(of.p, of.inplace);
            computes(this, $x = &Tensor) -> Tensor {
                let ($p, $inplace) = (this.p, this.inplace);
                check(stringify!($name), $p)?;
                if !this.training.get() || $p == 0.0 || $x.numel() == 0 {
                    return Ok($x.clone());
                }
                $body
            }
        })*
    };
}

dropouts! {
    /// In training, zeros elements with probability `p` and scales the others by `1 / (1 - p)`.
    ///
    /// ```
    /// use plimsoll_nn::{Dropout, Forward, Module};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = Dropout::new().p(0.5);
    /// let x = Tensor::ones(&[100], DType::F32)?;
    /// assert!(layer.call(&x)?.to_vec::<f32>()?.iter().all(|&x| x == 0.0 || x == 2.0));
    /// layer.eval();
    /// assert_eq!(layer.call(&x)?.to_vec::<f32>()?, [1.0; 100]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    Dropout: |x, p, inplace| if inplace { x.dropout_(p, true).cloned() } else { x.dropout(p, true) };
    /// [`Dropout`] of whole channels of [batch, channels, length] or [channels, length].
    Dropout1d: |x, p, inplace| channels(x, p, inplace, 2);
    /// [`Dropout`] of whole channels of [batch, channels, height, width].
    Dropout2d: |x, p, inplace| channels(x, p, inplace, 0);
    /// [`Dropout`] of whole channels of [batch, channels, depth, height, width], with or without
    /// the batch.
    Dropout3d: |x, p, inplace| channels(x, p, inplace, 4);
    /// Dropout to SELU's negative saturation, which keeps mean and variance.
    AlphaDropout: |x, p, inplace| alpha(x, p, inplace, false);
    /// [`AlphaDropout`] of whole channels.
    FeatureAlphaDropout: |x, p, inplace| alpha(x, p, inplace, true);
}
