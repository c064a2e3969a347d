//! A small GPT that learns to add: text of sums such as `3+4=7;`, one character after the other.
//!
//! Two things keep it small. Blocks are checkpointed: backward computes their insides again. And
//! the loss is made of the hidden states at once, so that the scores of all characters never exist.
//! Its twin is `examples/python/gpt.py`.
//! `cargo run --release --example gpt -- --steps 150 --device cpu`

mod training_run;

use std::io::Write;
use std::sync::Arc;

use plimsoll::prelude::*;
use plimsoll::{ScaledDotProductAttentionOptions, nn, optim};
use training_run::{EachStep, Log, Options};

const CHARACTERS: &str = "0123456789+=;";
/// Characters that a step sees of each piece of text.
const CONTEXT: i64 = 24;
const WIDTH: i64 = 48;
const HEADS: i64 = 4;
const LAYERS: i64 = 2;
const BATCH: i64 = 16;
/// Sums in the text.
const SUMS: i64 = 2000;

/// Attention to what came before, then two linear layers, each with a way around it.
#[derive(Module)]
struct Block {
    norm1: nn::LayerNorm,
    norm2: nn::LayerNorm,
    qkv: nn::Linear,
    out: nn::Linear,
    wide: nn::Linear,
    narrow: nn::Linear,
}

impl Block {
    fn new() -> Result<Block> {
        Ok(Block {
            norm1: nn::LayerNorm::new(WIDTH)?,
            norm2: nn::LayerNorm::new(WIDTH)?,
            qkv: nn::Linear::new(WIDTH, 3 * WIDTH)?,
            out: nn::Linear::new(WIDTH, WIDTH)?,
            wide: nn::Linear::new(WIDTH, 4 * WIDTH)?,
            narrow: nn::Linear::new(4 * WIDTH, WIDTH)?,
        })
    }
}

impl Forward<&Tensor> for Block {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let parts = self.qkv.call(&self.norm1.call(x)?)?.chunk(3, 2)?;
        let heads = |part: &Tensor| part.unflatten(2, &[HEADS, -1])?.transpose(1, 2);
        let (q, k, v) = (heads(&parts[0])?, heads(&parts[1])?, heads(&parts[2])?);
        let past = ScaledDotProductAttentionOptions::new().is_causal(true);
        let mixed = q.scaled_dot_product_attention_with(&k, &v, past)?;
        let x = x.add(&self.out.call(&mixed.transpose(1, 2)?.flatten(2, -1)?)?)?;
        let hidden = self.wide.call(&self.norm2.call(&x)?)?.gelu()?;
        x.add(&self.narrow.call(&hidden)?)
    }
}

/// Hidden states of characters; the table of characters also scores the next one.
#[derive(Module)]
struct Gpt {
    characters: nn::Embedding,
    places: nn::Embedding,
    // Shared with what backward runs again.
    blocks: Vec<Arc<Block>>,
    norm: nn::LayerNorm,
}

impl Gpt {
    fn new() -> Result<Gpt> {
        let model = Gpt {
            characters: nn::Embedding::new(CHARACTERS.len() as i64, WIDTH)?,
            places: nn::Embedding::new(CONTEXT, WIDTH)?,
            blocks: (0..LAYERS).map(|_| Block::new().map(Arc::new)).collect::<Result<_>>()?,
            norm: nn::LayerNorm::new(WIDTH)?,
        };
        for table in [&model.characters, &model.places] {
            nn::init::normal_(&table.weight.tensor(), 0.0, 0.02)?;
        }
        Ok(model)
    }
}

impl Forward<&Tensor> for Gpt {
    type Output = Tensor;

    fn forward(&self, text: &Tensor) -> Result<Tensor> {
        let places = self.places.weight.tensor().at(..text.size(1)?)?;
        let mut x = self.characters.call(text)?.add(&places)?;
        for block in &self.blocks {
            x = nn::checkpoint(block, &x)?;
        }
        self.norm.call(&x)
    }
}

/// Text of random sums, as numbers of characters.
fn sums(count: i64) -> Result<Vec<i64>> {
    let numbers = Tensor::randint(0, 10, &[2 * count], DType::I64)?.to_vec::<i64>()?;
    let text: String = numbers
        .chunks(2)
        .map(|pair| format!("{}+{}={};", pair[0], pair[1], pair[0] + pair[1]))
        .collect();
    Ok(text.chars().filter_map(|c| CHARACTERS.find(c)).map(|at| at as i64).collect())
}

/// The model, its optimizer and the text on one device. It never looks at a value, so it also runs
/// dry.
pub(crate) struct Training {
    device: Device,
    text: Tensor,
    window: Tensor,
    model: Gpt,
    optimizer: optim::AdamW,
}

impl Training {
    fn new(device: Device) -> Result<Training> {
        manual_seed(0);
        let text = sums(SUMS)?;
        let text = Tensor::from_slice(&text, &[text.len() as i64], device)?.mark_input();
        let window = Tensor::arange(0, CONTEXT + 1, 1, (DType::I64, device))?;
        let model = Gpt::new()?;
        model.to(device)?;
        let options = optim::AdamWOptions::new().lr(3e-3);
        let optimizer = optim::AdamW::new(model.parameters(), options)?;
        Ok(Training { device, text, window, model, optimizer })
    }

    /// One step on random pieces of the text; gives its loss.
    fn step(&mut self) -> Result<Tensor> {
        let last = self.text.size(0)? - CONTEXT;
        let starts = Tensor::randint(0, last, &[BATCH, 1], (DType::I64, self.device))?;
        let pieces = self.text.at(&starts.add(&self.window)?)?.mark_input();
        self.optimizer.zero_grad()?;
        let hidden = self.model.call(&pieces.at((.., ..-1))?)?.flatten(0, 1)?;
        let next = pieces.at((.., 1..))?.reshape(&[-1])?;
        let table = self.model.characters.weight.tensor();
        let loss = hidden.linear_cross_entropy(&table, &next)?;
        loss.backward()?;
        self.optimizer.step()?;
        Ok(loss.detach())
    }
}

/// Trains for some steps, and gives what was trained.
pub(crate) fn train(device: Device, steps: u64, each: EachStep<'_>) -> Result<Training> {
    let mut training = Training::new(device)?;
    for step in 1..=steps {
        each(step, &training.step()?)?;
    }
    Ok(training)
}

/// The whole program, with the words of its command line; what it says goes to `out`.
pub(crate) fn run(words: &mut dyn Iterator<Item = String>, out: &mut dyn Write) -> Result<()> {
    let options = Options::from_words(150, words)?;
    let mut log = Log::new(options, "loss", 25, out);
    train(options.device, options.steps, &mut |step, loss| log.step(step, loss))?;
    log.end("")
}

fn main() -> Result<()> {
    run(&mut std::env::args().skip(1), &mut std::io::stdout().lock())
}
