//! Padding: values put around a tensor.

use plimsoll_tensor::{DimList, Error, Mode, Result, Tensor};

use crate::options::{number, tuple};
use crate::stateless::layers;

/// Sizes before and after each of `rank` dimensions, the last one first.
fn ends(layer: &str, padding: &DimList, rank: usize) -> Result<Vec<i64>> {
    match padding.as_slice() {
        [one] => Ok(vec![*one; 2 * rank]),
        many if many.len() == 2 * rank => Ok(many.to_vec()),
        many => Err(Error::invalid_argument(format!(
            "padding is one number, or {} of them, and not {many:?}",
            2 * rank
        ))
        .in_operation(layer)),
    }
}

/// What is printed: all ends.
fn told(padding: &DimList, rank: usize) -> String {
    match padding.as_slice() {
        [one] => tuple(&vec![*one; 2 * rank]),
        many => tuple(many),
    }
}

macro_rules! paddings {
    ($($(#[$doc:meta])* $name:ident: $rank:literal, $mode:expr;)*) => {
        $(layers! {
            $(#[$doc])*
            $name(
                /// How much at each end: one number, or two for each dimension, the last first.
                padding: DimList
            ) {}
            prints(of) told(&of.padding, $rank);
            computes(this, x = &Tensor) -> Tensor {
                x.pad(&ends(stringify!($name), &this.padding, $rank)?, $mode, None::<f64>)
            }
        })*
    };
}

paddings! {
    /// Pads signals with zeros.
    ZeroPad1d: 1, Mode::Constant;
    /// Pads images with zeros.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, ZeroPad2d};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = ZeroPad2d::new([1, 1, 2, 0]);
    /// assert_eq!(layer.call(&Tensor::ones(&[1, 1, 3, 3], DType::F32)?)?.shape(), [1, 1, 5, 5]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    ZeroPad2d: 2, Mode::Constant;
    /// Pads volumes with zeros.
    ZeroPad3d: 3, Mode::Constant;
    /// Pads signals with what is mirrored at the border.
    ReflectionPad1d: 1, Mode::Reflect;
    /// Pads images with what is mirrored at the border.
    ReflectionPad2d: 2, Mode::Reflect;
    /// Pads volumes with what is mirrored at the border.
    ReflectionPad3d: 3, Mode::Reflect;
    /// Pads signals with the values at the border.
    ReplicationPad1d: 1, Mode::Replicate;
    /// Pads images with the values at the border.
    ReplicationPad2d: 2, Mode::Replicate;
    /// Pads volumes with the values at the border.
    ReplicationPad3d: 3, Mode::Replicate;
    /// Pads signals with values from the other end.
    CircularPad1d: 1, Mode::Circular;
    /// Pads images with values from the other end.
    CircularPad2d: 2, Mode::Circular;
    /// Pads volumes with values from the other end.
    CircularPad3d: 3, Mode::Circular;
}

macro_rules! constant_paddings {
    ($($(#[$doc:meta])* $name:ident: $rank:literal;)*) => {
        $(layers! {
            $(#[$doc])*
            $name(
                /// How much at each end: one number, or two for each dimension, the last first.
                padding: DimList,
                /// The value.
                value: f64
            ) {}
            prints(of) format!("padding={}, value={}", told(&of.padding, $rank), number(of.value));
            computes(this, x = &Tensor) -> Tensor {
                let ends = ends(stringify!($name), &this.padding, $rank)?;
                x.pad(&ends, Mode::Constant, Some(this.value))
            }
        })*
    };
}

constant_paddings! {
    /// Pads signals with one value.
    ConstantPad1d: 1;
    /// Pads images with one value.
    ConstantPad2d: 2;
    /// Pads volumes with one value.
    ConstantPad3d: 3;
}
