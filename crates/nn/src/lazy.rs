//! Layers whose sizes follow from their first input: PyTorch's `LazyLinear` and its kin.
//!
//! One is a layer that is not there yet. Its first call makes it, after that it is that layer in
//! keys, texts and hooks. Before, it has no parameters: make an optimizer, load a state or move it
//! to a device after the first call.

use std::fmt;
use std::sync::OnceLock;

use plimsoll_tensor::{DType, Device, DimList, Error, Result, Tensor};

use crate::{
    BatchNorm1d, BatchNorm2d, BatchNorm3d, BatchNormOptions, Conv1d, Conv2d, Conv3d, ConvOptions,
    ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, ConvTransposeOptions, Forward, Hooks,
    InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, Linear, LinearOptions, Module, Training,
    Visitor,
};

/// Makes a layer for an input like this one.
type Make<L> = dyn Fn(&Tensor) -> Result<L> + Send + Sync;

/// A layer that its first call makes, with as many inputs as that has, and on its device.
///
/// ```
/// use plimsoll_nn::{Forward, LazyLinear, Module};
/// use plimsoll_tensor::{DType, Tensor};
/// let layer = LazyLinear::new(3);
/// assert!(layer.parameters().is_empty());
/// layer.call(&Tensor::ones(&[4, 5], DType::F32)?)?;
/// assert_eq!(layer.to_string(), "Linear(in_features=5, out_features=3, bias=True)");
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct Lazy<L> {
    layer: OnceLock<L>,
    make: Box<Make<L>>,
    name: &'static str,
    training: Training,
}

impl<L: Module> Lazy<L> {
    fn of(
        name: &'static str,
        make: impl Fn(&Tensor) -> Result<L> + Send + Sync + 'static,
    ) -> Lazy<L> {
        let training = Training::default();
        Lazy { layer: OnceLock::new(), make: Box::new(make), name, training }
    }

    /// The layer, once it was called.
    pub fn get(&self) -> Option<&L> {
        self.layer.get()
    }

    /// The layer, made now if need be.
    fn made(&self, input: &Tensor) -> Result<&L> {
        if self.layer.get().is_none() {
            let layer = (self.make)(input)?;
            layer.set_training(self.training.get());
            // Another thread may have been first; then its layer stays.
            let _ = self.layer.set(layer);
        }
        self.layer.get().ok_or_else(|| Error::invalid_argument("the layer was not made"))
    }
}

impl<L: Module> Module for Lazy<L> {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        visitor.training(&self.training);
        if let Some(layer) = self.get() {
            layer.visit(visitor);
        }
    }

    fn as_dyn(&self) -> &dyn Module {
        self
    }

    fn type_name(&self) -> &'static str {
        self.get().map_or(self.name, L::type_name)
    }

    fn extra_repr(&self) -> String {
        self.get().map(L::extra_repr).unwrap_or_default()
    }

    fn hooks(&self) -> Option<&Hooks> {
        self.get().and_then(L::hooks)
    }

    fn is_builtin(&self) -> bool {
        true
    }
}

impl<'a, L: Forward<&'a Tensor>> Forward<&'a Tensor> for Lazy<L> {
    type Output = L::Output;

    #[track_caller]
    fn forward(&self, input: &'a Tensor) -> Result<Self::Output> {
        self.made(input)?.forward(input)
    }
}

impl<L: Module> fmt::Display for Lazy<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::write_tree(self, f)
    }
}

impl<L: Module> fmt::Debug for Lazy<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where the layer is made: as asked for, or as its input is.
fn placed(input: &Tensor, device: &mut Option<Device>, dtype: &mut Option<DType>) {
    device.get_or_insert(input.device());
    dtype.get_or_insert(input.dtype());
}

/// The channels of signals, images or volumes, with or without a batch.
fn channels(layer: &str, input: &Tensor, spatial: usize) -> Result<i64> {
    let at = input.rank().checked_sub(spatial + 1).filter(|at| *at <= 1);
    let Some(at) = at else {
        let what = format!(
            "the first input needs {} dimensions, or one more with a batch, and has {}",
            spatial + 1,
            input.rank()
        );
        return Err(Error::shape(layer, what));
    };
    input.size(at as i64)
}

/// A [`Linear`] of as many inputs as the first one has.
pub type LazyLinear = Lazy<Linear>;

impl LazyLinear {
    /// PyTorch's defaults.
    pub fn new(out_features: i64) -> LazyLinear {
        LazyLinear::with(out_features, LinearOptions::new())
    }

    /// Without a bias, elsewhere or of another dtype.
    pub fn with(out_features: i64, options: LinearOptions) -> LazyLinear {
        Lazy::of("LazyLinear", move |input| {
            let mut options = options.clone();
            placed(input, &mut options.device, &mut options.dtype);
            Linear::with(input.size(-1)?, out_features, options)
        })
    }
}

macro_rules! lazy_convolutions {
    ($($name:ident: $layer:ident, $options:ident, $spatial:literal;)*) => {
        $(
            #[doc = concat!("A [`", stringify!($layer), "`] of as many channels as its first input has.")]
            pub type $name = Lazy<$layer>;

            impl $name {
                /// PyTorch's defaults.
                pub fn new(out_channels: i64, kernel_size: impl Into<DimList>) -> $name {
                    $name::with(out_channels, kernel_size, $options::new())
                }

                /// With strides, padding, groups.
                pub fn with(
                    out_channels: i64,
                    kernel_size: impl Into<DimList>,
                    options: $options,
                ) -> $name {
                    let kernel_size = kernel_size.into();
                    Lazy::of(stringify!($name), move |input| {
                        let mut options = options.clone();
                        placed(input, &mut options.device, &mut options.dtype);
                        let inputs = channels(stringify!($name), input, $spatial)?;
                        $layer::with(inputs, out_channels, kernel_size.clone(), options)
                    })
                }
            }
        )*
    };
}

lazy_convolutions! {
    LazyConv1d: Conv1d, ConvOptions, 1;
    LazyConv2d: Conv2d, ConvOptions, 2;
    LazyConv3d: Conv3d, ConvOptions, 3;
    LazyConvTranspose1d: ConvTranspose1d, ConvTransposeOptions, 1;
    LazyConvTranspose2d: ConvTranspose2d, ConvTransposeOptions, 2;
    LazyConvTranspose3d: ConvTranspose3d, ConvTransposeOptions, 3;
}

macro_rules! lazy_norms {
    ($($name:ident: $layer:ident, $defaults:expr, |$input:ident| $channels:expr;)*) => {
        $(
            #[doc = concat!("A [`", stringify!($layer), "`] of as many channels as its first input has.")]
            pub type $name = Lazy<$layer>;

            impl $name {
                /// PyTorch's defaults.
                #[allow(clippy::new_without_default)]
                pub fn new() -> $name {
                    $name::with($defaults)
                }

                /// Without running statistics, or without a scale.
                pub fn with(options: BatchNormOptions) -> $name {
                    Lazy::of(stringify!($name), move |$input| {
                        let mut options = options.clone();
                        placed($input, &mut options.device, &mut options.dtype);
                        $layer::with($channels?, options)
                    })
                }
            }
        )*
    };
}

lazy_norms! {
    LazyBatchNorm1d: BatchNorm1d, BatchNormOptions::new(), |x| x.size(1);
    LazyBatchNorm2d: BatchNorm2d, BatchNormOptions::new(), |x| x.size(1);
    LazyBatchNorm3d: BatchNorm3d, BatchNormOptions::new(), |x| x.size(1);
    LazyInstanceNorm1d: InstanceNorm1d, BatchNormOptions::of_instances(),
        |x| channels("LazyInstanceNorm1d", x, 1);
    LazyInstanceNorm2d: InstanceNorm2d, BatchNormOptions::of_instances(),
        |x| channels("LazyInstanceNorm2d", x, 2);
    LazyInstanceNorm3d: InstanceNorm3d, BatchNormOptions::of_instances(),
        |x| channels("LazyInstanceNorm3d", x, 3);
}
