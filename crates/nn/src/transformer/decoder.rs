//! The layer of a transformer's decoder, and a stack of them.

use plimsoll_tensor::{Result, Tensor};

use super::layer::{TransformerLayerOptions, attend};
use crate::attention::AttentionMasks;
use crate::call::at_caller;
use crate::{Dropout, Forward, Hooks, LayerNorm, Linear, Module, MultiheadAttention};

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

    fn feed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let hidden = self.options.activate(&self.linear1.call(x)?)?;
        self.dropout3.call(&self.linear2.call(&self.dropout.call(&hidden)?)?)
    }

    fn run(
        &self,
        (x, memory): (&Tensor, &Tensor),
        [own, other]: [AttentionMasks<'_>; 2],
    ) -> Result<Tensor> {
        let to_self = |x: &Tensor| attend(&self.self_attn, &self.dropout1, (x, x), own);
        let to_memory =
            |x: &Tensor| attend(&self.multihead_attn, &self.dropout2, (x, memory), other);
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
        match &self.norm {
            Some(norm) => norm.call(&x),
            None => Ok(x),
        }
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
