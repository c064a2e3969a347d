//! An LSTM that foretells the next value of sine waves, which go on from step to step.
//!
//! The hidden state is carried over and detached: the wave goes on, and the graph ends with each
//! step. Carried over as it is, the second backward would fail, for the first one has freed what it
//! needs. Its twin is `examples/python/lstm.py`.
//! `cargo run --release --example lstm -- --steps 100 --device cpu`

mod training_run;

use std::f64::consts::TAU;
use std::io::Write;

use plimsoll::prelude::*;
use plimsoll::{nn, optim};
use training_run::{EachStep, Log, Options};

/// Radians from one value to the next.
const FREQUENCY: f64 = 0.3;
const WIDTH: i64 = 32;
const BATCH: i64 = 16;
/// Values of a wave that a step sees.
const LENGTH: i64 = 20;

/// The next value after each, and the state behind the last.
#[derive(Module)]
struct Forecast {
    lstm: nn::LSTM,
    head: nn::Linear,
}

impl Forward<(&Tensor, Option<&(Tensor, Tensor)>)> for Forecast {
    type Output = (Tensor, (Tensor, Tensor));

    fn forward(
        &self,
        (values, state): (&Tensor, Option<&(Tensor, Tensor)>),
    ) -> Result<Self::Output> {
        let (hidden, state) = match state {
            Some((hidden, cell)) => self.lstm.call((values, (hidden, cell)))?,
            None => self.lstm.call(values)?,
        };
        Ok((self.head.call(&hidden)?, state))
    }
}

/// The model, its optimizer and the waves on one device. It never looks at a value, so it also runs
/// dry.
pub(crate) struct Training {
    device: Device,
    model: Forecast,
    optimizer: optim::Adam,
    /// Where each wave begins.
    phases: Tensor,
    /// Values of each wave that were seen.
    time: i64,
    state: Option<(Tensor, Tensor)>,
}

impl Training {
    fn new(device: Device) -> Result<Training> {
        manual_seed(0);
        let batch_first = nn::RecurrentOptions::new().batch_first(true);
        let model = Forecast {
            lstm: nn::LSTM::with(1, WIDTH, batch_first)?,
            head: nn::Linear::new(WIDTH, 1)?,
        };
        model.to(device)?;
        let options = optim::AdamOptions::new().lr(1e-2);
        let optimizer = optim::Adam::new(model.parameters(), options)?;
        let phases = Tensor::rand(&[BATCH, 1], (DType::F32, device))?;
        let phases = phases.mul_(TAU)?.mark_input();
        Ok(Training { device, model, optimizer, phases, time: 0, state: None })
    }

    /// The next piece of every wave, with one value more than the model sees: `[batch, length + 1,
    /// 1]`.
    fn waves(&mut self) -> Result<Tensor> {
        let end = self.time + LENGTH;
        let times = Tensor::arange(self.time, end + 1, 1, (DType::I64, self.device))?;
        self.time = end;
        let waves = times.mul(FREQUENCY)?.add(&self.phases)?;
        Ok(waves.sin_()?.unsqueeze(2)?.mark_input())
    }

    /// One step on the next piece; gives its loss.
    fn step(&mut self) -> Result<Tensor> {
        let waves = self.waves()?;
        self.optimizer.zero_grad()?;
        let (foretold, (hidden, cell)) =
            self.model.call((&waves.at((.., ..-1))?, self.state.as_ref()))?;
        let loss = foretold.mse_loss(&waves.at((.., 1..))?)?;
        loss.backward()?;
        nn::clip_grad_norm_(&self.model.parameters(), 1.0)?;
        self.optimizer.step()?;
        self.state = Some((hidden.detach(), cell.detach()));
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
    let options = Options::from_words(100, words)?;
    let mut log = Log::new(options, "loss", 20, out);
    train(options.device, options.steps, &mut |step, loss| log.step(step, loss))?;
    log.end("")
}

fn main() -> Result<()> {
    run(&mut std::env::args().skip(1), &mut std::io::stdout().lock())
}
