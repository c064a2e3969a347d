//! The GPT that `cargo xtask bench train` trains; `Gpt` of `xtask/bench/train_worker.py` is the
//! same model. What a GPT for more than measurements looks like: `crates/cli/src/gpt`.

use std::sync::Arc;

use plimsoll_nn::{Embedding, Forward, LayerNorm, Linear, Module, checkpoint, init};
use plimsoll_tensor::{Result, ScaledDotProductAttentionOptions, Tensor};

pub(crate) const VOCABULARY: i64 = 8192;
pub(crate) const CONTEXT: i64 = 256;
const WIDTH: i64 = 256;
const HEADS: i64 = 4;
const LAYERS: usize = 4;
/// Of the weights at first. Larger ones make denormal numbers.
const DEVIATION: f64 = 0.02;

/// How the loss of the next tokens is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// Of hidden states and the table at once.
    Linear,
    /// Of the scores of all tokens, a tensor.
    Scores,
}

/// Attention to what came before, then two linear layers, each with a way around it.
#[derive(Debug, Module)]
struct Block {
    norm1: LayerNorm,
    qkv: Linear,
    out: Linear,
    norm2: LayerNorm,
    up: Linear,
    down: Linear,
}

impl Block {
    fn new() -> Result<Block> {
        Ok(Block {
            norm1: LayerNorm::new(WIDTH)?,
            qkv: linear(WIDTH, 3 * WIDTH)?,
            out: linear(WIDTH, WIDTH)?,
            norm2: LayerNorm::new(WIDTH)?,
            up: linear(WIDTH, 4 * WIDTH)?,
            down: linear(4 * WIDTH, WIDTH)?,
        })
    }
}

impl Forward<&Tensor> for Block {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length) = (x.size(0)?, x.size(1)?);
        let parts = self.qkv.call(&self.norm1.call(x)?)?.split(WIDTH, 2)?;
        let heads =
            |at: usize| parts[at].view(&[batch, length, HEADS, WIDTH / HEADS])?.transpose(1, 2);
        let past = ScaledDotProductAttentionOptions::new().is_causal(true);
        let seen = heads(0)?.scaled_dot_product_attention_with(&heads(1)?, &heads(2)?, past)?;
        let seen = seen.transpose(1, 2)?.reshape(&[batch, length, WIDTH])?;
        let x = x.add(&self.out.call(&seen)?)?;
        x.add(&self.down.call(&self.up.call(&self.norm2.call(&x)?)?.gelu()?)?)
    }
}

/// The model.
#[derive(Debug, Module)]
pub(crate) struct Gpt {
    tokens: Embedding,
    places: Embedding,
    blocks: Vec<Arc<Block>>,
    norm: LayerNorm,
    #[module(skip)]
    loss: Loss,
    #[module(skip)]
    checkpointed: bool,
}

impl Gpt {
    pub(crate) fn new(loss: Loss, checkpointed: bool) -> Result<Gpt> {
        let blocks = (0..LAYERS).map(|_| Block::new().map(Arc::new)).collect::<Result<_>>()?;
        let (tokens, places) = (table(VOCABULARY)?, table(CONTEXT)?);
        Ok(Gpt { tokens, places, blocks, norm: LayerNorm::new(WIDTH)?, loss, checkpointed })
    }
}

/// The mean loss of predicting the second tensor's tokens from the first one's.
impl Forward<(&Tensor, &Tensor)> for Gpt {
    type Output = Tensor;

    fn forward(&self, (tokens, following): (&Tensor, &Tensor)) -> Result<Tensor> {
        let mut x = self.tokens.call(tokens)?.add(&self.places.weight.tensor())?;
        for block in &self.blocks {
            x = if self.checkpointed { checkpoint(block, &x)? } else { block.call(&x)? };
        }
        let (x, following) = (self.norm.call(&x)?.flatten(0, 1)?, following.flatten(0, 1)?);
        let table = self.tokens.weight.tensor();
        match self.loss {
            Loss::Linear => x.linear_cross_entropy(&table, &following),
            Loss::Scores => x.matmul(&table.t()?)?.cross_entropy(&following),
        }
    }
}

fn linear(from: i64, to: i64) -> Result<Linear> {
    let layer = Linear::new(from, to)?;
    init::normal_(&layer.weight.tensor(), 0.0, DEVIATION)?;
    if let Some(bias) = &layer.bias {
        init::zeros_(&bias.tensor())?;
    }
    Ok(layer)
}

fn table(rows: i64) -> Result<Embedding> {
    let table = Embedding::new(rows, WIDTH)?;
    init::normal_(&table.weight.tensor(), 0.0, DEVIATION)?;
    Ok(table)
}
