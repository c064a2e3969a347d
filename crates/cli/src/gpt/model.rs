//! A GPT: tokens and places become vectors, blocks of attention and linear maps change them, and
//! the table of tokens, used a second time, turns the last ones into scores of the next token.

use std::sync::Arc;

use clap::ValueEnum;
use plimsoll_core::{DType, Device, Result};
use plimsoll_memory::{Site, SiteScope};
use plimsoll_nn::{
    self as nn, Dropout, Embedding, EmbeddingOptions, Forward, LayerNorm, LayerNormOptions, Linear,
    LinearOptions, Module, init,
};
use plimsoll_tensor::{
    Approximate, GeluOptions, LinearCrossEntropyOptions, ScaledDotProductAttentionOptions, Tensor,
    checkpoint,
};

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
    pub(crate) recompute: Recompute,
}

/// What of a block can be computed again in backward instead of being kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The results of GELU
    Gelu,
    /// The results of the norms
    Norm,
    /// All but its input
    Block,
}

/// What is computed again in backward instead of being kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recompute {
    gelu: bool,
    norm: bool,
    block: bool,
}

impl FromIterator<Part> for Recompute {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Recompute {
        let mut again = Recompute::default();
        for part in parts {
            match part {
                Part::Gelu => again.gelu = true,
                Part::Norm => again.norm = true,
                Part::Block => again.block = true,
            }
        }
        again
    }
}

#[derive(Debug, Module)]
struct Attention {
    /// Queries, keys and values in one product; the block calls it, after its norm.
    qkv: Arc<Linear>,
    out: Linear,
    heads: i64,
}

impl Attention {
    fn new(shape: &Shape, device: Device) -> Result<Attention> {
        Ok(Attention {
            qkv: Arc::new(linear(shape.width, 3 * shape.width, 1.0, device)?),
            out: linear(shape.width, shape.width, residual_scale(shape), device)?,
            heads: shape.heads,
        })
    }
}

impl Forward<&Tensor> for Attention {
    type Output = Tensor;

    fn forward(&self, qkv: &Tensor) -> Result<Tensor> {
        let [batch, length, all] = *qkv.shape() else {
            unreachable!("`qkv` makes [batch, length, 3 * width]")
        };
        let [batch, length, width] = [batch, length, all / 3].map(|size| size as i64);
        let all = qkv.view(&[batch, length, 3, self.heads, width / self.heads])?;
        let part = |index: i64| all.select(2, index)?.transpose(1, 2);
        let past = ScaledDotProductAttentionOptions::new().is_causal(true);
        let seen = part(0)?.scaled_dot_product_attention_with(&part(1)?, &part(2)?, past)?;
        self.out.call(&seen.transpose(1, 2)?.reshape(&[batch, length, width])?)
    }
}

#[derive(Debug, Module)]
struct Block {
    norm1: Arc<LayerNorm>,
    attention: Attention,
    norm2: Arc<LayerNorm>,
    up: Arc<Linear>,
    down: Linear,
    dropout: Dropout,
    #[module(skip)]
    recompute: Recompute,
}

impl Block {
    fn new(shape: &Shape, device: Device) -> Result<Block> {
        Ok(Block {
            norm1: Arc::new(norm(shape.width, device)?),
            attention: Attention::new(shape, device)?,
            norm2: Arc::new(norm(shape.width, device)?),
            up: Arc::new(linear(shape.width, 4 * shape.width, 1.0, device)?),
            down: linear(4 * shape.width, shape.width, residual_scale(shape), device)?,
            dropout: Dropout::new().p(shape.dropout),
            recompute: shape.recompute,
        })
    }

    /// What goes around a part of the block, which is the sum of `x` and what came out of the part
    /// before, and a product of that sum's norm, booked at the caller's line. The product keeps its
    /// operand, which is the norm's result.
    #[track_caller]
    fn after_norm(
        &self,
        norm: &Arc<LayerNorm>,
        to: &Arc<Linear>,
        x: &Tensor,
        made: Option<&Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let site = Site::caller();
        let _site = SiteScope::enter(site);
        if self.recompute.norm {
            let sum = made.map_or_else(|| Ok(x.clone()), |made| x.add(made))?;
            let (norm, to) = (norm.clone(), to.clone());
            let product = checkpoint(&[&sum], move |inputs| {
                let _site = SiteScope::enter(site);
                to.call(&norm.call(&inputs[0])?)
            })?;
            return Ok((sum, product));
        }
        let (sum, normed) = match made {
            Some(made) => norm.call_on_sum(x, made)?,
            None => (x.clone(), norm.call(x)?),
        };
        Ok((sum, to.call(&normed)?))
    }

    /// The last product, of what GELU makes, booked at the caller's line.
    #[track_caller]
    fn after_gelu(&self, hidden: &Tensor) -> Result<Tensor> {
        let _site = SiteScope::enter(Site::caller());
        let options = GeluOptions::new().approximate(Approximate::Tanh);
        match self.recompute.gelu {
            true => self.down.call_on_gelu(hidden, options),
            false => self.down.call(&hidden.gelu_with(options)?),
        }
    }
}

/// What goes around the block and what comes out of it, to be added, from the same two of the block
/// before. The next norm adds them up as it reads them.
impl Forward<(&Tensor, Option<&Tensor>)> for Block {
    type Output = (Tensor, Tensor);

    fn forward(&self, (x, made): (&Tensor, Option<&Tensor>)) -> Result<(Tensor, Tensor)> {
        let (x, qkv) = self.after_norm(&self.norm1, &self.attention.qkv, x, made)?;
        let seen = self.dropout.call(&self.attention.call(&qkv)?)?;
        let (x, hidden) = self.after_norm(&self.norm2, &self.up, &x, Some(&seen))?;
        Ok((x, self.dropout.call(&self.after_gelu(&hidden)?)?))
    }
}

/// The block by itself, with its sum.
impl Forward<&Tensor> for Block {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (x, made) = self.forward((x, None))?;
        x.add(&made)
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
        let mut made = None;
        for block in &self.blocks {
            if self.shape.recompute.block {
                x = nn::checkpoint(block, &x)?;
                continue;
            }
            let (around, new) = block.call((&x, made.as_ref()))?;
            (x, made) = (around, Some(new));
        }
        match made {
            Some(made) => Ok(self.norm.call_on_sum(&x, &made)?.1),
            None => self.norm.call(&x),
        }
    }
}

/// The mean loss of predicting the second tensor's tokens from the first one's.
impl Forward<(&Tensor, &Tensor)> for Gpt {
    type Output = Tensor;

    fn forward(&self, (tokens, next): (&Tensor, &Tensor)) -> Result<Tensor> {
        let hidden = self.hidden(tokens)?.flatten(0, 1)?;
        let options = LinearCrossEntropyOptions::new().loss_dtype(Some(DType::F32));
        let next = next.flatten(0, 1)?;
        hidden.linear_cross_entropy_with(&self.tokens.weight.tensor(), &next, options)
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
