//! What layers of an encoder and of a decoder share: how they are made, and attention with its
//! dropout.

use plimsoll_tensor::{Result, Tensor};

use crate::attention::{AttentionMasks, AttentionWeights, MultiheadAttentionOptions};
use crate::options::layer_options;
use crate::{
    Dropout, Forward, LayerNorm, LayerNormOptions, Linear, LinearOptions, MultiheadAttention,
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
    pub(super) fn attention(&self, d_model: i64, nhead: i64) -> Result<MultiheadAttention> {
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

    pub(super) fn linear(&self, from: i64, to: i64) -> Result<Linear> {
        let options = LinearOptions { bias: self.bias, device: self.device, dtype: self.dtype };
        Linear::with(from, to, options)
    }

    pub(super) fn norm(&self, d_model: i64) -> Result<LayerNorm> {
        let options = LayerNormOptions {
            eps: self.layer_norm_eps,
            bias: self.bias,
            device: self.device,
            dtype: self.dtype,
            ..LayerNormOptions::new()
        };
        LayerNorm::with(d_model, options)
    }

    pub(super) fn activate(&self, x: &Tensor) -> Result<Tensor> {
        match self.activation {
            TransformerActivation::Relu => x.relu(),
            TransformerActivation::Gelu => x.gelu(),
        }
    }
}

/// Attention of `x` to `keys`, which are the values too, and dropout of what comes.
pub(super) fn attend(
    attention: &MultiheadAttention,
    dropout: &Dropout,
    (x, keys): (&Tensor, &Tensor),
    masks: AttentionMasks<'_>,
) -> Result<Tensor> {
    let (result, _) = attention.call((x, keys, keys, masks, AttentionWeights::None))?;
    dropout.call(&result)
}
