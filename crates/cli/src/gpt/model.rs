//! A GPT: tokens and places become vectors, blocks of attention and linear maps change them, and
//! the table of tokens, used a second time, turns the last ones into scores of the next token.

use std::sync::Arc;

use plimsoll_core::{DType, Device, Result};
use plimsoll_nn::{
    Dropout, Embedding, EmbeddingOptions, Forward, LayerNorm, LayerNormOptions, Linear,
    LinearOptions, Module, checkpoint, init,
};
use plimsoll_tensor::{ScaledDotProductAttentionOptions, Tensor};

/// Standard deviation of the weights at first, as GPT-2 draws them.
const DEVIATION: f64 = 0.02;

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) vocabulary: i64,
    pub(crate) context: i64,
    pub(crate) layers: i64,
    pub(crate) width: i64,
    pub(crate) heads: i64,
    pub(crate) dropout: f64,
    /// Whether blocks are computed again in backward instead of kept.
    pub(crate) checkpointing: bool,
}

#[derive(Debug, Module)]
struct Attention {
    /// Queries, keys and values in one product.
    qkv: Linear,
    out: Linear,
    heads: i64,
}

impl Attention {
    fn new(shape: &Shape, device: Device) -> Result<Attention> {
        Ok(Attention {
            qkv: linear(shape.width, 3 * shape.width, 1.0, device)?,
            out: linear(shape.width, shape.width, residual_scale(shape), device)?,
            heads: shape.heads,
        })
    }
}

impl Forward<&Tensor> for Attention {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [batch, length, width] = *x.shape() else {
            unreachable!("blocks see [batch, length, width]")
        };
        let [batch, length, width] = [batch, length, width].map(|size| size as i64);
        let all = self.qkv.call(x)?.view(&[batch, length, 3, self.heads, width / self.heads])?;
        let part = |index: i64| all.select(2, index)?.transpose(1, 2);
        let past = ScaledDotProductAttentionOptions::new().is_causal(true);
        let seen = part(0)?.scaled_dot_product_attention_with(&part(1)?, &part(2)?, past)?;
        self.out.call(&seen.transpose(1, 2)?.reshape(&[batch, length, width])?)
    }
}

#[derive(Debug, Module)]
struct Block {
    norm1: LayerNorm,
    attention: Attention,
    norm2: LayerNorm,
    up: Linear,
    down: Linear,
    dropout: Dropout,
}

impl Block {
    fn new(shape: &Shape, device: Device) -> Result<Block> {
        Ok(Block {
            norm1: norm(shape.width, device)?,
            attention: Attention::new(shape, device)?,
            norm2: norm(shape.width, device)?,
            up: linear(shape.width, 4 * shape.width, 1.0, device)?,
            down: linear(4 * shape.width, shape.width, residual_scale(shape), device)?,
            dropout: Dropout::new().p(shape.dropout),
        })
    }
}

impl Forward<&Tensor> for Block {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let seen = self.attention.call(&self.norm1.call(x)?)?;
        let x = x.add(&self.dropout.call(&seen)?)?;
        let hidden = self.up.call(&self.norm2.call(&x)?)?.gelu()?;
        x.add(&self.dropout.call(&self.down.call(&hidden)?)?)
    }
}

/// The model.
#[derive(Debug, Module)]
pub(crate) struct Gpt {
    tokens: Embedding,
    places: Embedding,
    dropout: Dropout,
    blocks: Vec<Arc<Block>>,
    norm: LayerNorm,
    #[module(skip)]
    shape: Shape,
}

impl Gpt {
    /// With weights drawn from the device's generator.
    pub(crate) fn new(shape: Shape, device: Device) -> Result<Gpt> {
        Ok(Gpt {
            tokens: table(shape.vocabulary, shape.width, device)?,
            places: table(shape.context, shape.width, device)?,
            dropout: Dropout::new().p(shape.dropout),
            blocks: (0..shape.layers)
                .map(|_| Block::new(&shape, device).map(Arc::new))
                .collect::<Result<_>>()?,
            norm: norm(shape.width, device)?,
            shape,
        })
    }

    /// The vectors after the last block, `[batch, length, width]`.
    fn hidden(&self, tokens: &Tensor) -> Result<Tensor> {
        let length = *tokens.shape().last().unwrap_or(&0) as i64;
        let places = Tensor::arange(0, length, 1, (DType::I64, tokens.device()))?;
        let x = self.tokens.call(tokens)?.add(&self.places.call(&places)?)?;
        let mut x = self.dropout.call(&x)?;
        for block in &self.blocks {
            x = if self.shape.checkpointing { checkpoint(block, &x)? } else { block.call(&x)? };
        }
        self.norm.call(&x)
    }
}

/// The mean loss of predicting the second tensor's tokens from the first one's.
impl Forward<(&Tensor, &Tensor)> for Gpt {
    type Output = Tensor;

    fn forward(&self, (tokens, next): (&Tensor, &Tensor)) -> Result<Tensor> {
        let hidden = self.hidden(tokens)?.flatten(0, 1)?;
        hidden.linear_cross_entropy(&self.tokens.weight.tensor(), &next.flatten(0, 1)?)
    }
}

/// The scores of the token that comes after the last, `[batch, vocabulary]`.
impl Forward<&Tensor> for Gpt {
    type Output = Tensor;

    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let last = self.hidden(tokens)?.select(1, -1)?;
        last.matmul(&self.tokens.weight.tensor().t()?)
    }
}

fn linear(from: i64, to: i64, scale: f64, device: Device) -> Result<Linear> {
    let options = LinearOptions { device: Some(device), ..LinearOptions::new() };
    let layer = Linear::with(from, to, options)?;
    init::normal_(&layer.weight.tensor(), 0.0, DEVIATION * scale)?;
    if let Some(bias) = &layer.bias {
        init::zeros_(&bias.tensor())?;
    }
    Ok(layer)
}

fn table(rows: i64, width: i64, device: Device) -> Result<Embedding> {
    let options = EmbeddingOptions { device: Some(device), ..EmbeddingOptions::new() };
    let table = Embedding::with(rows, width, options)?;
    init::normal_(&table.weight.tensor(), 0.0, DEVIATION)?;
    Ok(table)
}

fn norm(width: i64, device: Device) -> Result<LayerNorm> {
    let options = LayerNormOptions { device: Some(device), ..LayerNormOptions::new() };
    LayerNorm::with(width, options)
}

/// What goes around the blocks grows with each of them; so its parts begin smaller.
fn residual_scale(shape: &Shape) -> f64 {
    1.0 / (2.0 * shape.layers as f64).sqrt()
}
