//! Convolutions, plain and transposed, over one, two or three dimensions.

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Site, with_site};
use smallvec::SmallVec;

use super::options::DimList;
use crate::Tensor;
use crate::operation::Operation;
use crate::ops::conv::shape::{Called, Checked, batched};
use crate::ops::conv::{Conv, ConvInput, Format};
use crate::prepare::apply_one;

/// Padding that is chosen by its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// None: windows lie within the input.
    Valid,
    /// As much as gives the result the input's size.
    Same,
}

impl std::str::FromStr for Padding {
    type Err = Error;

    fn from_str(word: &str) -> Result<Padding> {
        match word {
            "valid" => Ok(Padding::Valid),
            "same" => Ok(Padding::Same),
            _ => Err(Error::invalid_argument(format!(
                "padding is \"valid\" or \"same\", or numbers, and not {word:?}"
            ))),
        }
    }
}

/// The zeros around an input: so many on both sides of each dimension, or by their effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaddingOption {
    /// So many on both sides; one number stands for all dimensions.
    Sizes(DimList),
    /// By their effect.
    Chosen(Padding),
}

impl From<Padding> for PaddingOption {
    fn from(padding: Padding) -> PaddingOption {
        PaddingOption::Chosen(padding)
    }
}

impl<T: Into<DimList>> From<T> for PaddingOption {
    fn from(sizes: T) -> PaddingOption {
        PaddingOption::Sizes(sizes.into())
    }
}

/// How [`Tensor::conv2d_with`] and its kin go over their input. One number stands for all
/// dimensions.
#[derive(Clone, Debug)]
pub struct ConvOptions<'a> {
    /// Is added to each channel of the result.
    pub bias: Option<&'a Tensor>,
    /// From one window to the next.
    pub stride: DimList,
    /// Zeros around the input.
    pub padding: PaddingOption,
    /// From one element of a window to the next.
    pub dilation: DimList,
    /// Groups that the channels are cut into, each with weights of its own.
    pub groups: i64,
}

impl Default for ConvOptions<'_> {
    fn default() -> Self {
        ConvOptions {
            bias: None,
            stride: 1.into(),
            padding: 0.into(),
            dilation: 1.into(),
            groups: 1,
        }
    }
}

impl<'a> ConvOptions<'a> {
    /// PyTorch's defaults.
    pub fn new() -> ConvOptions<'a> {
        ConvOptions::default()
    }

    /// Is added to each channel of the result.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<Option<&'a Tensor>>) -> ConvOptions<'a> {
        self.bias = bias.into();
        self
    }

    /// From one window to the next.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<DimList>) -> ConvOptions<'a> {
        self.stride = stride.into();
        self
    }

    /// Zeros around the input.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<PaddingOption>) -> ConvOptions<'a> {
        self.padding = padding.into();
        self
    }

    /// From one element of a window to the next.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<DimList>) -> ConvOptions<'a> {
        self.dilation = dilation.into();
        self
    }

    /// Groups that the channels are cut into, each with weights of its own.
    #[must_use]
    pub fn groups(mut self, groups: i64) -> ConvOptions<'a> {
        self.groups = groups;
        self
    }
}

/// How [`Tensor::conv_transpose2d_with`] and its kin undo a convolution. One number stands for all
/// dimensions.
#[derive(Clone, Debug)]
pub struct ConvTransposeOptions<'a> {
    /// Is added to each channel of the result.
    pub bias: Option<&'a Tensor>,
    /// The convolution's stride.
    pub stride: DimList,
    /// The convolution's padding.
    pub padding: DimList,
    /// How much larger the result is than the smallest that the convolution would take.
    pub output_padding: DimList,
    /// Groups that the channels are cut into, each with weights of its own.
    pub groups: i64,
    /// The convolution's dilation.
    pub dilation: DimList,
}

impl Default for ConvTransposeOptions<'_> {
    fn default() -> Self {
        ConvTransposeOptions {
            bias: None,
            stride: 1.into(),
            padding: 0.into(),
            output_padding: 0.into(),
            groups: 1,
            dilation: 1.into(),
        }
    }
}

impl<'a> ConvTransposeOptions<'a> {
    /// PyTorch's defaults.
    pub fn new() -> ConvTransposeOptions<'a> {
        ConvTransposeOptions::default()
    }

    /// Is added to each channel of the result.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<Option<&'a Tensor>>) -> ConvTransposeOptions<'a> {
        self.bias = bias.into();
        self
    }

    /// The convolution's stride.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<DimList>) -> ConvTransposeOptions<'a> {
        self.stride = stride.into();
        self
    }

    /// The convolution's padding.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<DimList>) -> ConvTransposeOptions<'a> {
        self.padding = padding.into();
        self
    }

    /// How much larger the result is than the smallest that the convolution would take.
    #[must_use]
    pub fn output_padding(mut self, more: impl Into<DimList>) -> ConvTransposeOptions<'a> {
        self.output_padding = more.into();
        self
    }

    /// Groups that the channels are cut into, each with weights of its own.
    #[must_use]
    pub fn groups(mut self, groups: i64) -> ConvTransposeOptions<'a> {
        self.groups = groups;
        self
    }

    /// The convolution's dilation.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<DimList>) -> ConvTransposeOptions<'a> {
        self.dilation = dilation.into();
        self
    }
}

/// The operands of a call, with the batch that a single image lacks.
struct Operands<'a> {
    operation: &'static str,
    rank: usize,
    input: &'a Tensor,
    weight: &'a Tensor,
    bias: Option<&'a Tensor>,
}

impl Operands<'_> {
    /// Checks by `check` what `called` is completed to, and runs the operation that `make` makes.
    fn run<O: Operation>(
        &self,
        numbers: (&DimList, &DimList, i64),
        site: Site,
        check: impl FnOnce(Called<'_>) -> Result<Checked>,
        make: impl FnOnce(Checked) -> O,
    ) -> Result<Tensor> {
        let Operands { operation, rank, input, weight, bias } = *self;
        let (shape, single) = batched(operation, rank, input.shape())?;
        let (stride, dilation, groups) = numbers;
        let checked = check(Called {
            operation,
            rank,
            input: &shape,
            weight: weight.shape(),
            bias: bias.map(Tensor::shape),
            stride: stride.as_slice(),
            dilation: dilation.as_slice(),
            groups,
        })?;
        let op = make(checked);
        with_site(site, || {
            let image = if single { Some(input.unsqueeze(0)?) } else { None };
            let first = image.as_ref().unwrap_or(input);
            let inputs: SmallVec<[&Tensor; 3]> = [first, weight].into_iter().chain(bias).collect();
            let result = apply_one(&op, &inputs, site)?;
            if single { result.squeeze_with(0) } else { Ok(result) }
        })
    }
}

fn conv(
    operation: &'static str,
    rank: usize,
    input: &Tensor,
    weight: &Tensor,
    options: &ConvOptions<'_>,
    site: Site,
) -> Result<Tensor> {
    let operands = Operands { operation, rank, input, weight, bias: options.bias };
    let numbers = (&options.stride, &options.dilation, options.groups);
    let check = |called: Called<'_>| match &options.padding {
        PaddingOption::Sizes(sizes) => called.forward(sizes.as_slice()),
        PaddingOption::Chosen(Padding::Valid) => called.valid(),
        PaddingOption::Chosen(Padding::Same) => called.same(),
    };
    operands.run(numbers, site, check, |Checked { args, results }| Conv {
        rank,
        args,
        results,
        layout: Format::LikeOperands,
        internal: false,
    })
}

fn conv_transpose(
    operation: &'static str,
    rank: usize,
    input: &Tensor,
    weight: &Tensor,
    options: &ConvTransposeOptions<'_>,
    site: Site,
) -> Result<Tensor> {
    let operands = Operands { operation, rank, input, weight, bias: options.bias };
    let numbers = (&options.stride, &options.dilation, options.groups);
    let check = |called: Called<'_>| {
        called.transposed(options.padding.as_slice(), options.output_padding.as_slice())
    };
    operands.run(numbers, site, check, |Checked { args, results }| ConvInput {
        rank,
        args,
        results,
        layout: Format::LikeOperands,
        internal: false,
    })
}

/// The two forms of one convolution.
macro_rules! convolution {
    ($(#[$doc:meta])* $name:ident, $with:ident, $options:ident, $run:ident, $rank:literal) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, weight: &Tensor) -> Result<Tensor> {
                $run(stringify!($name), $rank, self, weight, &$options::new(), Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] with a bias, strides, padding, dilation, groups.")]
            #[track_caller]
            pub fn $with(&self, weight: &Tensor, options: $options<'_>) -> Result<Tensor> {
                $run(stringify!($name), $rank, self, weight, &options, Site::caller())
            }
        }
    };
}

convolution!(
    /// Each window of a signal times the weights of each channel of the result. The input is
    /// [batch, channels, length] or one such signal, the weight [result's channels, channels of a
    /// group, length].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 4.0, 8.0], &[1, 1, 4], Device::cpu())?;
    /// let weight = Tensor::from_slice(&[1.0f32, -1.0], &[1, 1, 2], Device::cpu())?;
    /// assert_eq!(x.conv1d(&weight)?.to_vec::<f32>()?, [-1.0, -2.0, -4.0]);
    /// let strided = ConvOptions::new().stride(2);
    /// assert_eq!(x.conv1d_with(&weight, strided)?.to_vec::<f32>()?, [-1.0, -4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    conv1d, conv1d_with, ConvOptions, conv, 1
);
convolution!(
    /// Each window of an image times the weights of each channel of the result. The input is
    /// [batch, channels, height, width] or one such image, the weight [result's channels, channels
    /// of a group, height, width].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 2, 4, 4], DType::F32)?;
    /// let weight = Tensor::ones(&[3, 2, 3, 3], DType::F32)?;
    /// assert_eq!(x.conv2d(&weight)?.shape(), [1, 3, 2, 2]);
    /// let same = ConvOptions::new().padding(Padding::Same);
    /// let y = x.conv2d_with(&weight, same)?;
    /// assert_eq!((y.shape()[3], y.sum()?.item::<f32>()?), (4, 600.0));
    /// assert!(weight.conv2d(&x).unwrap_err().is_shape());
    /// # Ok::<(), Error>(())
    /// ```
    conv2d, conv2d_with, ConvOptions, conv, 2
);
convolution!(
    /// Each window of a volume times the weights of each channel of the result. The input is
    /// [batch, channels, depth, height, width] or one such volume, the weight [result's channels,
    /// channels of a group, depth, height, width].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 2, 3, 3, 3], DType::F32)?;
    /// let weight = Tensor::ones(&[4, 2, 2, 2, 2], DType::F32)?;
    /// let y = x.conv3d(&weight)?;
    /// assert_eq!((y.shape(), y.amax()?.item::<f32>()?), (&[1, 4, 2, 2, 2][..], 16.0));
    /// # Ok::<(), Error>(())
    /// ```
    conv3d, conv3d_with, ConvOptions, conv, 3
);
convolution!(
    /// What a convolution of signals sends back to its input: the transposed convolution. The
    /// weight is [input's channels, result's channels of a group, length].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[1, 1, 2], Device::cpu())?;
    /// let weight = Tensor::from_slice(&[1.0f32, 10.0], &[1, 1, 2], Device::cpu())?;
    /// assert_eq!(x.conv_transpose1d(&weight)?.to_vec::<f32>()?, [1.0, 12.0, 20.0]);
    /// # Ok::<(), Error>(())
    /// ```
    conv_transpose1d, conv_transpose1d_with, ConvTransposeOptions, conv_transpose, 1
);
convolution!(
    /// What a convolution of images sends back to its input: the transposed convolution. The weight
    /// is [input's channels, result's channels of a group, height, width].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 3, 4, 4], DType::F32)?;
    /// let weight = Tensor::ones(&[3, 2, 2, 2], DType::F32)?;
    /// let doubled = ConvTransposeOptions::new().stride(2);
    /// assert_eq!(x.conv_transpose2d_with(&weight, doubled)?.shape(), [1, 2, 8, 8]);
    /// # Ok::<(), Error>(())
    /// ```
    conv_transpose2d, conv_transpose2d_with, ConvTransposeOptions, conv_transpose, 2
);
convolution!(
    /// What a convolution of volumes sends back to its input: the transposed convolution. The
    /// weight is [input's channels, result's channels of a group, depth, height, width].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 3, 2, 2, 2], DType::F32)?;
    /// let weight = Tensor::ones(&[3, 1, 2, 2, 2], DType::F32)?;
    /// assert_eq!(x.conv_transpose3d(&weight)?.shape(), [1, 1, 3, 3, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    conv_transpose3d, conv_transpose3d_with, ConvTransposeOptions, conv_transpose, 3
);

impl Tensor {
    /// A convolution, plain or transposed, with all its arguments, over as many dimensions as the
    /// weight has behind its first two.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 2, 4, 4], DType::F32)?;
    /// let weight = Tensor::ones(&[3, 2, 3, 3], DType::F32)?;
    /// let y = x.convolution(&weight, None, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)?;
    /// assert_eq!(y.shape(), [1, 3, 2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    #[allow(clippy::too_many_arguments)]
    pub fn convolution<'a>(
        &self,
        weight: &Tensor,
        bias: impl Into<Option<&'a Tensor>>,
        stride: impl Into<DimList>,
        padding: impl Into<DimList>,
        dilation: impl Into<DimList>,
        transposed: bool,
        output_padding: impl Into<DimList>,
        groups: i64,
    ) -> Result<Tensor> {
        let site = Site::caller();
        let rank = weight.rank().saturating_sub(2);
        if !(1..=3).contains(&rank) {
            let why = format!(
                "the weight should have three to five dimensions, but its shape is {:?}",
                weight.shape()
            );
            return Err(Error::shape("convolution", why));
        }
        let (bias, padding) = (bias.into(), padding.into());
        let (stride, dilation) = (stride.into(), dilation.into());
        if transposed {
            let name = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"][rank - 1];
            let output_padding = output_padding.into();
            let options =
                ConvTransposeOptions { bias, stride, padding, output_padding, groups, dilation };
            return conv_transpose(name, rank, self, weight, &options, site);
        }
        let name = ["conv1d", "conv2d", "conv3d"][rank - 1];
        let padding = PaddingOption::Sizes(padding);
        let options = ConvOptions { bias, stride, padding, dilation, groups };
        conv(name, rank, self, weight, &options, site)
    }
}
