//! Convolutions, plain and transposed, over one, two and three dimensions.

use plimsoll_tensor::{
    ConvOptions as ConvArguments, ConvTransposeOptions as ConvTransposeArguments, DimList, Error,
    Mode, Padding, PaddingOption, Parameter, Result, Tensor, TensorOptions,
};

use crate::call::at_caller;
use crate::linear::even_bias;
use crate::options::{layer_options, parameter, tuple};
use crate::{Forward, Hooks, Module, init};

layer_options! {
    /// How [`Conv2d::with`] and its kin are made. One number stands for all dimensions.
    ConvOptions {
        /// From one window to the next.
        stride: DimList = 1.into(),
        /// What is put around the input.
        padding: PaddingOption = 0.into(),
        /// From one element of a window to the next.
        dilation: DimList = 1.into(),
        /// Groups that the channels are cut into, each with weights of its own.
        groups: i64 = 1,
        /// Whether a bias is added to each channel.
        bias: bool = true,
        /// What the padding is: zeros if it is constant.
        padding_mode: Mode = Mode::Constant,
    }
}

layer_options! {
    /// How [`ConvTranspose2d::with`] and its kin are made. One number stands for all dimensions.
    ConvTransposeOptions {
        /// The convolution's stride.
        stride: DimList = 1.into(),
        /// The convolution's padding.
        padding: DimList = 0.into(),
        /// How much larger the result is than the smallest that the convolution would take.
        output_padding: DimList = 0.into(),
        /// Groups that the channels are cut into, each with weights of its own.
        groups: i64 = 1,
        /// Whether a bias is added to each channel.
        bias: bool = true,
        /// The convolution's dilation.
        dilation: DimList = 1.into(),
    }
}

/// One number for each of `rank` dimensions.
fn each(layer: &str, what: &str, given: &DimList, rank: usize) -> Result<Vec<i64>> {
    match given.as_slice() {
        [one] => Ok(vec![*one; rank]),
        many if many.len() == rank => Ok(many.to_vec()),
        many => Err(Error::invalid_argument(format!(
            "{what} is one number, or {rank} of them, and not {many:?}"
        ))
        .in_operation(layer)),
    }
}

fn check_channels(layer: &str, inputs: i64, outputs: i64, groups: i64) -> Result<()> {
    let wrong = match groups {
        ..=0 => "groups must be a positive integer",
        _ if inputs % groups != 0 => "in_channels must be divisible by groups",
        _ if outputs % groups != 0 => "out_channels must be divisible by groups",
        _ => return Ok(()),
    };
    Err(Error::invalid_argument(wrong).in_operation(layer))
}

/// A weight, and a bias of `outputs` channels if there is to be one, drawn as PyTorch does.
fn weight_and_bias(
    sizes: &[i64],
    outputs: Option<i64>,
    made: TensorOptions,
) -> Result<(Parameter, Option<Parameter>)> {
    let weight = parameter(sizes, made)?;
    let bias = outputs.map(|outputs| parameter(&[outputs], made)).transpose()?;
    let tensor = weight.tensor();
    let slope = init::Nonlinearity::LeakyRelu(5.0f64.sqrt());
    init::kaiming_uniform_(&tensor, init::FanMode::FanIn, slope)?;
    even_bias(bias.as_ref(), init::fan_in_and_fan_out(&tensor)?.0 as i64)?;
    Ok((weight, bias))
}

/// What goes around an input that is not padded with zeros: the last dimension first, both ends.
fn ends(padding: &PaddingOption, kernel: &[i64], dilation: &[i64]) -> Vec<i64> {
    let each = |at: usize| match padding {
        PaddingOption::Sizes(sizes) => {
            let size = sizes.as_slice()[if sizes.as_slice().len() == 1 { 0 } else { at }];
            [size, size]
        }
        PaddingOption::Chosen(Padding::Valid) => [0, 0],
        PaddingOption::Chosen(Padding::Same) => {
            let whole = dilation[at] * (kernel[at] - 1);
            [whole / 2, whole - whole / 2]
        }
    };
    (0..kernel.len()).rev().flat_map(each).collect()
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Constant => "zeros",
        Mode::Reflect => "reflect",
        Mode::Replicate => "replicate",
        Mode::Circular => "circular",
    }
}

/// Adds `, name=value` for a list that is not all `default`.
fn tell(text: &mut String, name: &str, values: &[i64], default: i64) {
    if values.iter().any(|value| *value != default) {
        text.push_str(&format!(", {name}={}", tuple(values)));
    }
}

macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident: $rank:literal, $operation:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Module)]
            #[module(builtin, extra_repr = $name::describe)]
            pub struct $name {
                /// Of shape [out_channels, in_channels / groups, *kernel_size].
                pub weight: Parameter,
                /// One for each channel of the result.
                pub bias: Option<Parameter>,
                /// Channels of the input.
                pub in_channels: i64,
                /// Channels of the result.
                pub out_channels: i64,
                /// The window, one number for each dimension.
                pub kernel_size: Vec<i64>,
                #[module(skip)]
                options: ConvOptions,
                /// Functions that see the calls.
                pub hooks: Hooks,
            }

            impl $name {
                /// PyTorch's defaults; one number as the window stands for all dimensions.
                #[track_caller]
                pub fn new(
                    in_channels: i64,
                    out_channels: i64,
                    kernel_size: impl Into<DimList>,
                ) -> Result<$name> {
                    $name::with(in_channels, out_channels, kernel_size, ConvOptions::new())
                }

                /// With strides, padding, groups.
                #[track_caller]
                pub fn with(
                    in_channels: i64,
                    out_channels: i64,
                    kernel_size: impl Into<DimList>,
                    mut options: ConvOptions,
                ) -> Result<$name> {
                    let _site = at_caller();
                    let layer = stringify!($name);
                    check_channels(layer, in_channels, out_channels, options.groups)?;
                    let kernel_size = each(layer, "kernel_size", &kernel_size.into(), $rank)?;
                    for (what, list) in
                        [("stride", &mut options.stride), ("dilation", &mut options.dilation)]
                    {
                        *list = (&each(layer, what, list, $rank)?).into();
                    }
                    if let PaddingOption::Sizes(sizes) = &mut options.padding {
                        *sizes = (&each(layer, "padding", sizes, $rank)?).into();
                    }
                    let mut sizes = vec![out_channels, in_channels / options.groups];
                    sizes.extend(&kernel_size);
                    let bias = options.bias.then_some(out_channels);
                    let (weight, bias) = weight_and_bias(&sizes, bias, options.made())?;
                    let hooks = Hooks::default();
                    Ok($name { weight, bias, in_channels, out_channels, kernel_size, options, hooks })
                }

                fn describe(&self) -> String {
                    let mut text = format!(
                        "{}, {}, kernel_size={}, stride={}",
                        self.in_channels,
                        self.out_channels,
                        tuple(&self.kernel_size),
                        tuple(self.options.stride.as_slice())
                    );
                    match &self.options.padding {
                        PaddingOption::Sizes(sizes) => tell(&mut text, "padding", sizes.as_slice(), 0),
                        PaddingOption::Chosen(Padding::Same) => text.push_str(", padding=same"),
                        PaddingOption::Chosen(Padding::Valid) => text.push_str(", padding=valid"),
                    }
                    tell(&mut text, "dilation", self.options.dilation.as_slice(), 1);
                    tell_rest(&mut text, self.options.groups, self.bias.is_some());
                    if self.options.padding_mode != Mode::Constant {
                        text.push_str(", padding_mode=");
                        text.push_str(mode_name(self.options.padding_mode));
                    }
                    text
                }
            }

            impl Forward<&Tensor> for $name {
                type Output = Tensor;

                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Tensor> {
                    let _site = at_caller();
                    let ConvOptions { stride, padding, dilation, groups, padding_mode, .. } =
                        &self.options;
                    let bias = self.bias.as_ref().map(Parameter::tensor);
                    let arguments = ConvArguments::new()
                        .bias(bias.as_ref())
                        .stride(stride.clone())
                        .dilation(dilation.clone())
                        .groups(*groups);
                    if *padding_mode == Mode::Constant {
                        let arguments = arguments.padding(padding.clone());
                        return input.$operation(&self.weight.tensor(), arguments);
                    }
                    let ends = ends(padding, &self.kernel_size, dilation.as_slice());
                    let padded = input.pad(&ends, *padding_mode, None::<f64>)?;
                    padded.$operation(&self.weight.tensor(), arguments)
                }
            }
        )*
    };
}

fn tell_rest(text: &mut String, groups: i64, bias: bool) {
    if groups != 1 {
        text.push_str(&format!(", groups={groups}"));
    }
    if !bias {
        text.push_str(", bias=False");
    }
}

convolutions! {
    /// A convolution of signals [batch, channels, length].
    ///
    /// ```
    /// use plimsoll_nn::{Conv1d, Forward};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = Conv1d::new(2, 4, 3)?;
    /// assert_eq!(layer.call(&Tensor::zeros(&[1, 2, 8], DType::F32)?)?.shape(), [1, 4, 6]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    Conv1d: 1, conv1d_with;
    /// A convolution of images [batch, channels, height, width].
    ///
    /// ```
    /// use plimsoll_nn::{Conv2d, ConvOptions, Forward};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = Conv2d::with(3, 16, 3, ConvOptions::new().padding(1).stride(2))?;
    /// assert_eq!(layer.call(&Tensor::zeros(&[1, 3, 8, 8], DType::F32)?)?.shape(), [1, 16, 4, 4]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    Conv2d: 2, conv2d_with;
    /// A convolution of volumes [batch, channels, depth, height, width].
    Conv3d: 3, conv3d_with;
}

macro_rules! transposed {
    ($($(#[$doc:meta])* $name:ident: $rank:literal, $operation:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Module)]
            #[module(builtin, extra_repr = $name::describe)]
            pub struct $name {
                /// Of shape [in_channels, out_channels / groups, *kernel_size].
                pub weight: Parameter,
                /// One for each channel of the result.
                pub bias: Option<Parameter>,
                /// Channels of the input.
                pub in_channels: i64,
                /// Channels of the result.
                pub out_channels: i64,
                /// The window, one number for each dimension.
                pub kernel_size: Vec<i64>,
                #[module(skip)]
                options: ConvTransposeOptions,
                /// Functions that see the calls.
                pub hooks: Hooks,
            }

            impl $name {
                /// PyTorch's defaults; one number as the window stands for all dimensions.
                #[track_caller]
                pub fn new(
                    in_channels: i64,
                    out_channels: i64,
                    kernel_size: impl Into<DimList>,
                ) -> Result<$name> {
                    $name::with(in_channels, out_channels, kernel_size, ConvTransposeOptions::new())
                }

                /// With strides, padding, groups.
                #[track_caller]
                pub fn with(
                    in_channels: i64,
                    out_channels: i64,
                    kernel_size: impl Into<DimList>,
                    mut options: ConvTransposeOptions,
                ) -> Result<$name> {
                    let _site = at_caller();
                    let layer = stringify!($name);
                    check_channels(layer, in_channels, out_channels, options.groups)?;
                    let kernel_size = each(layer, "kernel_size", &kernel_size.into(), $rank)?;
                    for (what, list) in [
                        ("stride", &mut options.stride),
                        ("padding", &mut options.padding),
                        ("output_padding", &mut options.output_padding),
                        ("dilation", &mut options.dilation),
                    ] {
                        *list = (&each(layer, what, list, $rank)?).into();
                    }
                    let mut sizes = vec![in_channels, out_channels / options.groups];
                    sizes.extend(&kernel_size);
                    let bias = options.bias.then_some(out_channels);
                    let (weight, bias) = weight_and_bias(&sizes, bias, options.made())?;
                    let hooks = Hooks::default();
                    Ok($name { weight, bias, in_channels, out_channels, kernel_size, options, hooks })
                }

                fn describe(&self) -> String {
                    let mut text = format!(
                        "{}, {}, kernel_size={}, stride={}",
                        self.in_channels,
                        self.out_channels,
                        tuple(&self.kernel_size),
                        tuple(self.options.stride.as_slice())
                    );
                    tell(&mut text, "padding", self.options.padding.as_slice(), 0);
                    tell(&mut text, "dilation", self.options.dilation.as_slice(), 1);
                    tell(&mut text, "output_padding", self.options.output_padding.as_slice(), 0);
                    tell_rest(&mut text, self.options.groups, self.bias.is_some());
                    text
                }
            }

            impl Forward<&Tensor> for $name {
                type Output = Tensor;

                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Tensor> {
                    let _site = at_caller();
                    let bias = self.bias.as_ref().map(Parameter::tensor);
                    let options = &self.options;
                    let arguments = ConvTransposeArguments::new()
                        .bias(bias.as_ref())
                        .stride(options.stride.clone())
                        .padding(options.padding.clone())
                        .output_padding(options.output_padding.clone())
                        .groups(options.groups)
                        .dilation(options.dilation.clone());
                    input.$operation(&self.weight.tensor(), arguments)
                }
            }
        )*
    };
}

transposed! {
    /// The transposed convolution of signals [batch, channels, length].
    ConvTranspose1d: 1, conv_transpose1d_with;
    /// The transposed convolution of images [batch, channels, height, width].
    ///
    /// ```
    /// use plimsoll_nn::{ConvTranspose2d, ConvTransposeOptions, Forward};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = ConvTranspose2d::with(4, 2, 2, ConvTransposeOptions::new().stride(2))?;
    /// assert_eq!(layer.call(&Tensor::zeros(&[1, 4, 3, 3], DType::F32)?)?.shape(), [1, 2, 6, 6]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    ConvTranspose2d: 2, conv_transpose2d_with;
    /// The transposed convolution of volumes [batch, channels, depth, height, width].
    ConvTranspose3d: 3, conv_transpose3d_with;
}
