//! The layer of a transformer's encoder, and a stack of them.

use plimsoll_tensor::{Result, Tensor};

use super::layer::{TransformerLayerOptions, attend};
use crate::attention::AttentionMasks;
use crate::call::at_caller;
use crate::{Dropout, Forward, Hooks, LayerNorm, Linear, Module, MultiheadAttention};

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

    fn feed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let hidden = self.options.activate(&self.linear1.call(x)?)?;
        self.dropout2.call(&self.linear2.call(&self.dropout.call(&hidden)?)?)
    }

    fn run(&self, x: &Tensor, masks: AttentionMasks<'_>) -> Result<Tensor> {
        let attend = |x: &Tensor| attend(&self.self_attn, &self.dropout1, (x, x), masks);
        if self.options.norm_first {
            let seen = attend(&self.norm1.call(x)?)?;
            let (x, normed) = self.norm2.call_on_sum(x, &seen)?;
            return x.add(&self.feed_forward(&normed)?);
        }
        let (_, x) = self.norm1.call_on_sum(x, &attend(x)?)?;
        Ok(self.norm2.call_on_sum(&x, &self.feed_forward(&x)?)?.1)
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
        match &self.norm {
            Some(norm) => norm.call(&x),
            None => Ok(x),
        }
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
