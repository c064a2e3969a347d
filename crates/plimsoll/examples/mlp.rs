//! A multilayer perceptron that learns in which pair of quadrants a point of the plane lies.
//!
//! The plain training loop: zero the gradients, forward, backward, step; losses are kept as
//! numbers, and evaluation runs without recording. Its twin is `examples/python/mlp.py`.
//! `cargo run --release --example mlp -- --steps 200 --device cpu`

mod training_run;

use std::io::Write;

use plimsoll::optim::lr_scheduler::{CosineAnnealingLR, LRScheduler};
use plimsoll::prelude::*;
use plimsoll::{ProdOptions, nn, optim};
use training_run::{EachStep, Log, Options};

const WIDTH: i64 = 32;
const BATCH: i64 = 128;

/// The model, its optimizer and its data on one device. It never looks at a value, so it also runs
/// dry.
pub(crate) struct Training {
    device: Device,
    model: nn::Sequential,
    optimizer: optim::AdamW,
    schedule: CosineAnnealingLR,
}

impl Training {
    fn new(device: Device) -> Result<Training> {
        manual_seed(0);
        let model = nn::sequential![
            nn::Linear::new(2, WIDTH)?,
            nn::Tanh::new(),
            nn::Linear::new(WIDTH, WIDTH)?,
            nn::Tanh::new(),
            nn::Linear::new(WIDTH, 1)?,
        ];
        model.to(device)?;
        let options = optim::AdamWOptions::new().lr(1e-2);
        let mut optimizer = optim::AdamW::new(model.parameters(), options)?;
        let schedule = CosineAnnealingLR::new(&mut optimizer, 400, 0.0)?;
        Ok(Training { device, model, optimizer, schedule })
    }

    /// Points, and 1 for each whose coordinates have the same sign.
    fn points(&self) -> Result<(Tensor, Tensor)> {
        let points = Tensor::rand(&[BATCH, 2], (DType::F32, self.device))?;
        points.mul_(2)?.sub_(1)?;
        let product = points.prod_with(ProdOptions::from(1).keepdim(true))?;
        let labels = product.gt(0)?.to(DType::F32)?;
        Ok((points.mark_input(), labels.mark_input()))
    }

    /// One step on a new batch; gives its loss.
    fn step(&mut self) -> Result<Tensor> {
        let (points, labels) = self.points()?;
        self.optimizer.zero_grad()?;
        let loss = self.model.call(&points)?.binary_cross_entropy_with_logits(&labels)?;
        loss.backward()?;
        self.optimizer.step()?;
        self.schedule.step(&mut self.optimizer)?;
        Ok(loss.detach())
    }

    /// The share of points that the model gets right.
    fn evaluate(&self) -> Result<Tensor> {
        let (points, labels) = self.points()?;
        inference_mode(|| {
            let said = self.model.call(&points)?.gt(0)?.to(DType::F32)?;
            said.eq(&labels)?.to(DType::F32)?.mean()
        })
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
    let options = Options::from_words(200, words)?;
    let mut log = Log::new(options, "loss", 50, out);
    let training = train(options.device, options.steps, &mut |step, loss| log.step(step, loss))?;
    let right = training.evaluate()?.item::<f32>()?;
    log.end(&format!(", {:.0} % are right", 100.0 * right))
}

fn main() -> Result<()> {
    run(&mut std::env::args().skip(1), &mut std::io::stdout().lock())
}
