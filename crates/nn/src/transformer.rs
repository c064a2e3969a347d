//! Transformers: layers of an encoder and of a decoder, stacks of them, and both together.

use plimsoll_tensor::{Result, Tensor};

use crate::attention::{AttentionMasks, AttentionWeights, MultiheadAttentionOptions};
use crate::call::at_caller;
use crate::options::layer_options;
use crate::{
    Dropout, Forward, Hooks, LayerNorm, LayerNormOptions, Linear, LinearOptions, Module,
    MultiheadAttention, init,
};

/// What stands between a layer's two linear maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransformerActivation {
    /// `max(0, x)`.
    #[default]
    Relu,
    /// `x` times the normal distribution's mass below `x`.
    Gelu,
}

layer_options! {
    /// How [`TransformerEncoderLayer::with`] and [`TransformerDecoderLayer::with`] are made.
    TransformerLayerOptions {
        /// Elements between the two linear maps.
        dim_feedforward: i64 = 2048,
        /// Probability that an element is zeroed in training.
        dropout: f64 = 0.1,
        /// What stands between the two linear maps.
        activation: TransformerActivation = TransformerActivation::Relu,
        /// Keeps the norms' variance away from 0.
        layer_norm_eps: f64 = 1e-5,
        /// Whether the batch is the first dimension, and not the sequence.
        batch_first: bool = false,
        /// Whether norms come before attention and linear maps, and not after.
        norm_first: bool = false,
        /// Whether there are biases.
        bias: bool = true,
    }
}

impl TransformerLayerOptions {
    fn attention(&self, d_model: i64, nhead: i64) -> Result<MultiheadAttention> {
        let options = MultiheadAttentionOptions {
            dropout: self.dropout,
            bias: self.bias,
            batch_first: self.batch_first,
            device: self.device,
            dtype: self.dtype,
            ..MultiheadAttentionOptions::new()
        };
        MultiheadAttention::with(d_model, nhead, options)
    }

    fn linear(&self, from: i64, to: i64) -> Result<Linear> {
        let options = LinearOptions { bias: self.bias, device: self.device, dtype: self.dtype };
        Linear::with(from, to, options)
    }

    fn norm(&self, d_model: i64) -> Result<LayerNorm> {
        let options = LayerNormOptions {
            eps: self.layer_norm_eps,
            bias: self.bias,
            device: self.device,
            dtype: self.dtype,
            ..LayerNormOptions::new()
        };
        LayerNorm::with(d_model, options)
    }

    fn activate(&self, x: &Tensor) -> Result<Tensor> {
        match self.activation {
            TransformerActivation::Relu => x.relu(),
            TransformerActivation::Gelu => x.gelu(),
        }
    }
}

/// What all layers with two linear maps do after attention.
macro_rules! feed_forward {
    ($last:ident) => {
        fn feed_forward(&self, x: &Tensor) -> Result<Tensor> {
            let hidden = self.options.activate(&self.linear1.call(x)?)?;
            self.$last.call(&self.linear2.call(&self.dropout.call(&hidden)?)?)
        }

        fn attend(
            attention: &MultiheadAttention,
            dropout: &Dropout,
            (x, keys): (&Tensor, &Tensor),
            masks: AttentionMasks<'_>,
        ) -> Result<Tensor> {
            let (result, _) = attention.call((x, keys, keys, masks, AttentionWeights::None))?;
            dropout.call(&result)
        }
    };
}

/// Attention of a sequence to itself, then two linear maps, each with a way around it and a norm.
///
/// ```
/// use plimsoll_nn::{Forward, TransformerEncoderLayer, TransformerLayerOptions};
/// use plimsoll_tensor::{DType, Tensor};
/// let options = TransformerLayerOptions::new().dim_feedforward(16).batch_first(true);
/// let layer = TransformerEncoderLayer::with(8, 2, options)?;
/// assert_eq!(layer.call(&Tensor::ones(&[2, 5, 8], DType::F32)?)?.shape(), [2, 5, 8]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin)]
pub struct TransformerEncoderLayer {
    /// The attention.
    pub self_attn: MultiheadAttention,
    /// The first linear map.
    pub linear1: Linear,
    /// After the first linear map.
    pub dropout: Dropout,
    /// The second linear map.
    pub linear2: Linear,
    /// The norm of attention.
    pub norm1: LayerNorm,
    /// The norm of the linear maps.
    pub norm2: LayerNorm,
    /// After attention.
    pub dropout1: Dropout,
    /// After the linear maps.
    pub dropout2: Dropout,
    #[module(skip)]
    options: TransformerLayerOptions,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl TransformerEncoderLayer {
    /// PyTorch's defaults.
    #[track_caller]
    pub fn new(d_model: i64, nhead: i64) -> Result<TransformerEncoderLayer> {
        TransformerEncoderLayer::with(d_model, nhead, TransformerLayerOptions::new())
    }

    /// With other sizes, dropout, or the batch first.
    #[track_caller]
    pub fn with(
        d_model: i64,
        nhead: i64,
        options: TransformerLayerOptions,
    ) -> Result<TransformerEncoderLayer> {
        let _site = at_caller();
        let dropout = || Dropout::new().p(options.dropout);
        Ok(TransformerEncoderLayer {
            self_attn: options.attention(d_model, nhead)?,
            linear1: options.linear(d_model, options.dim_feedforward)?,
            dropout: dropout(),
            linear2: options.linear(options.dim_feedforward, d_model)?,
            norm1: options.norm(d_model)?,
            norm2: options.norm(d_model)?,
            dropout1: dropout(),
            dropout2: dropout(),
            options,
            hooks: Hooks::default(),
        })
    }

    feed_forward!(dropout2);

    fn run(&self, x: &Tensor, masks: AttentionMasks<'_>) -> Result<Tensor> {
        let attend = |x: &Tensor| Self::attend(&self.self_attn, &self.dropout1, (x, x), masks);
        if self.options.norm_first {
            let x = x.add(&attend(&self.norm1.call(x)?)?)?;
            return x.add(&self.feed_forward(&self.norm2.call(&x)?)?);
        }
        let x = self.norm1.call(&x.add(&attend(x)?)?)?;
        self.norm2.call(&x.add(&self.feed_forward(&x)?)?)
    }
}

impl Forward<&Tensor> for TransformerEncoderLayer {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        self.run(input, AttentionMasks::default())
    }
}

impl Forward<(&Tensor, AttentionMasks<'_>)> for TransformerEncoderLayer {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (input, masks): (&Tensor, AttentionMasks<'_>)) -> Result<Tensor> {
        let _site = at_caller();
        self.run(input, masks)
    }
}

/// Attention of a sequence to itself, then to the encoder's results, then two linear maps.
#[derive(Debug, Module)]
#[module(builtin)]
pub struct TransformerDecoderLayer {
    /// The attention to the sequence itself.
    pub self_attn: MultiheadAttention,
    /// The attention to the encoder's results.
    pub multihead_attn: MultiheadAttention,
    /// The first linear map.
    pub linear1: Linear,
    /// After the first linear map.
    pub dropout: Dropout,
    /// The second linear map.
    pub linear2: Linear,
    /// The norm of the first attention.
    pub norm1: LayerNorm,
    /// The norm of the second attention.
    pub norm2: LayerNorm,
    /// The norm of the linear maps.
    pub norm3: LayerNorm,
    /// After the first attention.
    pub dropout1: Dropout,
    /// After the second attention.
    pub dropout2: Dropout,
    /// After the linear maps.
    pub dropout3: Dropout,
    #[module(skip)]
    options: TransformerLayerOptions,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl TransformerDecoderLayer {
    /// PyTorch's defaults.
    #[track_caller]
    pub fn new(d_model: i64, nhead: i64) -> Result<TransformerDecoderLayer> {
        TransformerDecoderLayer::with(d_model, nhead, TransformerLayerOptions::new())
    }

    /// With other sizes, dropout, or the batch first.
    #[track_caller]
    pub fn with(
        d_model: i64,
        nhead: i64,
        options: TransformerLayerOptions,
    ) -> Result<TransformerDecoderLayer> {
        let _site = at_caller();
        let dropout = || Dropout::new().p(options.dropout);
        Ok(TransformerDecoderLayer {
            self_attn: options.attention(d_model, nhead)?,
            multihead_attn: options.attention(d_model, nhead)?,
            linear1: options.linear(d_model, options.dim_feedforward)?,
            dropout: dropout(),
            linear2: options.linear(options.dim_feedforward, d_model)?,
            norm1: options.norm(d_model)?,
            norm2: options.norm(d_model)?,
            norm3: options.norm(d_model)?,
            dropout1: dropout(),
            dropout2: dropout(),
            dropout3: dropout(),
            options,
            hooks: Hooks::default(),
        })
    }

    feed_forward!(dropout3);

    fn run(
        &self,
        (x, memory): (&Tensor, &Tensor),
        [own, other]: [AttentionMasks<'_>; 2],
    ) -> Result<Tensor> {
        let to_self = |x: &Tensor| Self::attend(&self.self_attn, &self.dropout1, (x, x), own);
        let to_memory =
            |x: &Tensor| Self::attend(&self.multihead_attn, &self.dropout2, (x, memory), other);
        if self.options.norm_first {
            let x = x.add(&to_self(&self.norm1.call(x)?)?)?;
            let x = x.add(&to_memory(&self.norm2.call(&x)?)?)?;
            return x.add(&self.feed_forward(&self.norm3.call(&x)?)?);
        }
        let x = self.norm1.call(&x.add(&to_self(x)?)?)?;
        let x = self.norm2.call(&x.add(&to_memory(&x)?)?)?;
        self.norm3.call(&x.add(&self.feed_forward(&x)?)?)
    }
}

/// A sequence, and the encoder's results.
impl Forward<(&Tensor, &Tensor)> for TransformerDecoderLayer {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: (&Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        self.run(input, [AttentionMasks::default(); 2])
    }
}

/// A sequence, the encoder's results, and the masks of both attentions.
impl Forward<(&Tensor, &Tensor, AttentionMasks<'_>, AttentionMasks<'_>)>
    for TransformerDecoderLayer
{
    type Output = Tensor;

    #[track_caller]
    fn forward(
        &self,
        (x, memory, own, other): (&Tensor, &Tensor, AttentionMasks<'_>, AttentionMasks<'_>),
    ) -> Result<Tensor> {
        let _site = at_caller();
        self.run((x, memory), [own, other])
    }
}

/// Layers of an encoder one after the other, and a norm at the end if there is one.
#[derive(Debug, Module)]
#[module(builtin)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// The norm after them.
    pub norm: Option<LayerNorm>,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl TransformerEncoder {
    /// A stack of the given layers.
    pub fn new(
        layers: Vec<TransformerEncoderLayer>,
        norm: Option<LayerNorm>,
    ) -> TransformerEncoder {
        TransformerEncoder { layers, norm, hooks: Hooks::default() }
    }

    fn run(&self, input: &Tensor, masks: AttentionMasks<'_>) -> Result<Tensor> {
        let mut x = input.clone();
        for layer in &self.layers {
            x = layer.call((&x, masks))?;
        }
        self.norm.as_ref().map_or(Ok(x.clone()), |norm| norm.call(&x))
    }
}

impl Forward<&Tensor> for TransformerEncoder {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _site = at_caller();
        self.run(input, AttentionMasks::default())
    }
}

impl Forward<(&Tensor, AttentionMasks<'_>)> for TransformerEncoder {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (input, masks): (&Tensor, AttentionMasks<'_>)) -> Result<Tensor> {
        let _site = at_caller();
        self.run(input, masks)
    }
}

/// Layers of a decoder one after the other, and a norm at the end if there is one.
#[derive(Debug, Module)]
#[module(builtin)]
pub struct TransformerDecoder {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer>,
    /// The norm after them.
    pub norm: Option<LayerNorm>,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl TransformerDecoder {
    /// A stack of the given layers.
    pub fn new(
        layers: Vec<TransformerDecoderLayer>,
        norm: Option<LayerNorm>,
    ) -> TransformerDecoder {
        TransformerDecoder { layers, norm, hooks: Hooks::default() }
    }

    fn run(
        &self,
        (input, memory): (&Tensor, &Tensor),
        masks: [AttentionMasks<'_>; 2],
    ) -> Result<Tensor> {
        let mut x = input.clone();
        for layer in &self.layers {
            x = layer.call((&x, memory, masks[0], masks[1]))?;
        }
        self.norm.as_ref().map_or(Ok(x.clone()), |norm| norm.call(&x))
    }
}

impl Forward<(&Tensor, &Tensor)> for TransformerDecoder {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: (&Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        self.run(input, [AttentionMasks::default(); 2])
    }
}

impl Forward<(&Tensor, &Tensor, AttentionMasks<'_>, AttentionMasks<'_>)> for TransformerDecoder {
    type Output = Tensor;

    #[track_caller]
    fn forward(
        &self,
        (x, memory, own, other): (&Tensor, &Tensor, AttentionMasks<'_>, AttentionMasks<'_>),
    ) -> Result<Tensor> {
        let _site = at_caller();
        self.run((x, memory), [own, other])
    }
}

/// An encoder and a decoder that looks at its results.
#[derive(Debug, Module)]
#[module(builtin)]
pub struct Transformer {
    /// The encoder.
    pub encoder: TransformerEncoder,
    /// The decoder.
    pub decoder: TransformerDecoder,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl Transformer {
    /// As many layers as asked for on each side, with norms at both ends.
    #[track_caller]
    pub fn new(
        [d_model, nhead]: [i64; 2],
        [encoder_layers, decoder_layers]: [usize; 2],
        options: TransformerLayerOptions,
    ) -> Result<Transformer> {
        let _site = at_caller();
        let encoder = (0..encoder_layers)
            .map(|_| TransformerEncoderLayer::with(d_model, nhead, options.clone()))
            .collect::<Result<_>>()?;
        let decoder = (0..decoder_layers)
            .map(|_| TransformerDecoderLayer::with(d_model, nhead, options.clone()))
            .collect::<Result<_>>()?;
        let transformer = Transformer {
            encoder: TransformerEncoder::new(encoder, Some(options.norm(d_model)?)),
            decoder: TransformerDecoder::new(decoder, Some(options.norm(d_model)?)),
            hooks: Hooks::default(),
        };
        for parameter in transformer.parameters() {
            if parameter.tensor().rank() > 1 {
                init::xavier_uniform_(&parameter.tensor(), 1.0)?;
            }
        }
        Ok(transformer)
    }
}

/// A source and a target sequence.
impl Forward<(&Tensor, &Tensor)> for Transformer {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (source, target): (&Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        self.decoder.call((target, &self.encoder.call(source)?))
    }
}
