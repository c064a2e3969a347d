//! A generative adversarial network that learns a cloud of points in the plane.
//!
//! Neither loss says how good the points are, for each network's loss depends on the other. What
//! falls is the distance between the means and deviations of generated and real points. Its twin is
//! `examples/python/gan.py`. `cargo run --release --example gan -- --steps 300 --device cpu`

mod training_run;

use std::io::Write;

use plimsoll::prelude::*;
use plimsoll::{nn, optim};
use training_run::{EachStep, Log, Options};

/// Numbers that a point is made of.
const NOISE: i64 = 4;
const WIDTH: i64 = 32;
const BATCH: i64 = 128;

/// Two linear layers.
fn network(inputs: i64, outputs: i64) -> Result<nn::Sequential> {
    Ok(nn::sequential![
        nn::Linear::new(inputs, WIDTH)?,
        nn::LeakyReLU::new().negative_slope(0.2),
        nn::Linear::new(WIDTH, outputs)?,
    ])
}

/// Both networks and their optimizers on one device. It never looks at a value, so it also runs
/// dry.
pub(crate) struct Training {
    device: Device,
    generator: nn::Sequential,
    critic: nn::Sequential,
    makes: optim::Adam,
    judges: optim::Adam,
    /// Of the real points.
    centre: Tensor,
    spread: Tensor,
    /// What the critic is to say.
    ones: Tensor,
    zeros: Tensor,
}

impl Training {
    fn new(device: Device) -> Result<Training> {
        manual_seed(0);
        let (generator, critic) = (network(NOISE, 2)?, network(2, 1)?);
        generator.to(device)?;
        critic.to(device)?;
        let options = optim::AdamOptions::new().lr(2e-3).betas((0.5, 0.9));
        Ok(Training {
            device,
            makes: optim::Adam::new(generator.parameters(), options.clone())?,
            judges: optim::Adam::new(critic.parameters(), options)?,
            generator,
            critic,
            centre: Tensor::from_slice(&[2.0f32, -1.0], &[2], device)?.mark_input(),
            spread: Tensor::from_slice(&[0.5f32, 1.0], &[2], device)?.mark_input(),
            ones: Tensor::ones(&[BATCH, 1], (DType::F32, device))?,
            zeros: Tensor::zeros(&[BATCH, 1], (DType::F32, device))?,
        })
    }

    /// Points that the generator makes of noise.
    fn generated(&self) -> Result<Tensor> {
        let noise = Tensor::randn(&[BATCH, NOISE], (DType::F32, self.device))?.mark_input();
        self.generator.call(&noise)
    }

    /// The critic's step: real points are to get 1, generated ones 0.
    fn judge(&mut self, points: &Tensor) -> Result<()> {
        let real = Tensor::randn(&[BATCH, 2], (DType::F32, self.device))?;
        let real = real.mul_(&self.spread)?.add_(&self.centre)?.mark_input();
        self.judges.zero_grad()?;
        let loss = self.critic.call(&real)?.binary_cross_entropy_with_logits(&self.ones)?;
        let of_generated = self.critic.call(points)?;
        let loss = loss.add(&of_generated.binary_cross_entropy_with_logits(&self.zeros)?)?;
        loss.backward()?;
        self.judges.step()
    }

    /// A step of each network; gives how far the generated points are from the real ones.
    fn step(&mut self) -> Result<Tensor> {
        let points = self.generated()?;
        self.judge(&points.detach())?; // the generator gets no gradient from it
        self.makes.zero_grad()?;
        self.critic.requires_grad_(false)?; // nor the critic from the next backward
        self.critic.call(&points)?.binary_cross_entropy_with_logits(&self.ones)?.backward()?;
        self.critic.requires_grad_(true)?;
        self.makes.step()?;
        no_grad(|| {
            let centre = points.mean_with(0)?.sub(&self.centre)?.abs()?.sum()?;
            let spread = points.std_with(0)?.sub(&self.spread)?.abs()?.sum()?;
            centre.add(&spread)
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
    let options = Options::from_words(300, words)?;
    let mut log = Log::new(options, "distance", 50, out);
    train(options.device, options.steps, &mut |step, loss| log.step(step, loss))?;
    log.end("")
}

fn main() -> Result<()> {
    run(&mut std::env::args().skip(1), &mut std::io::stdout().lock())
}
