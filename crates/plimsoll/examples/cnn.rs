//! A convolutional network that tells horizontal bars from vertical ones in noisy images.
//!
//! Images lie on the host. A worker makes batches of them ahead, bounded in bytes, and while the
//! device computes on one batch the next is copied to it. Batch normalization and dropout behave
//! differently in training and in evaluation: mind `train()` and `eval()`. Its twin is
//! `examples/python/cnn.py`. `cargo run --release --example cnn -- --steps 60 --device cpu`

mod training_run;

use std::io::Write;

use plimsoll::data::{DataLoader, LoaderOptions, Prefetcher, TensorDataset};
use plimsoll::prelude::*;
use plimsoll::{data, nn, optim};
use training_run::{EachStep, Log, Options};

/// Pixels of an image's side.
const SIDE: i64 = 16;
/// Images that there are, and those of a batch.
const IMAGES: i64 = 512;
const BATCH: i64 = 32;
/// What waiting batches may take on the host: two of them.
const AHEAD_BYTES: usize = 2 * (BATCH * (SIDE * SIDE * 4 + 16)) as usize;

/// The model and its optimizer on one device. It never looks at a value, so it also runs dry.
pub(crate) struct Training {
    device: Device,
    model: nn::Sequential,
    optimizer: optim::SGD,
}

/// Two convolutions, each with half the resolution behind it.
fn network() -> Result<nn::Sequential> {
    let same_size = || nn::ConvOptions::new().padding(1).bias(false);
    Ok(nn::sequential![
        nn::Conv2d::with(1, 8, 3, same_size())?,
        nn::BatchNorm2d::new(8)?,
        nn::ReLU::new().inplace(true),
        nn::MaxPool2d::new(2),
        nn::Conv2d::with(8, 16, 3, same_size())?,
        nn::BatchNorm2d::new(16)?,
        nn::ReLU::new().inplace(true),
        nn::MaxPool2d::new(2),
        nn::Flatten::new(),
        nn::Dropout::new().p(0.2),
        nn::Linear::new(16 * (SIDE / 4) * (SIDE / 4), 2)?,
    ])
}

/// Noise with one bright row, label 0, or one bright column, label 1; on the host.
fn images(count: i64) -> Result<(Tensor, Tensor)> {
    let labels = Tensor::randint(0, 2, &[count], DType::I64)?;
    let place = Tensor::randint(0, SIDE, &[count, 1], DType::I64)?;
    let bar = Tensor::arange(0, SIDE, 1, DType::I64)?.eq(&place)?.to(DType::F32)?;
    let columns = bar.reshape(&[-1, 1, 1, SIDE])?.expand(&[-1, 1, SIDE, SIDE])?;
    let rows = columns.transpose(2, 3)?;
    let is_column = labels.reshape(&[-1, 1, 1, 1])?.eq(1)?;
    let images = Tensor::randn(&[count, 1, SIDE, SIDE], DType::F32)?;
    images.mul_(0.5)?.add_(&Tensor::where_(&is_column, &columns, &rows)?)?;
    Ok((images.mark_input(), labels.mark_input()))
}

impl Training {
    fn new(device: Device) -> Result<Training> {
        let model = network()?;
        model.to(device)?;
        let options = optim::SGDOptions::new().lr(0.02).momentum(0.9).weight_decay(1e-4);
        let optimizer = optim::SGD::new(model.parameters(), options)?;
        Ok(Training { device, model, optimizer })
    }

    /// One step on a batch; gives its loss.
    fn step(&mut self, images: &Tensor, labels: &Tensor) -> Result<Tensor> {
        self.optimizer.zero_grad()?;
        let loss = self.model.call(images)?.cross_entropy(labels)?;
        loss.backward()?;
        self.optimizer.step()?;
        Ok(loss.detach())
    }

    /// The share of new images that the model gets right.
    fn evaluate(&self) -> Result<Tensor> {
        let (images, labels) = images(BATCH)?;
        let (images, labels) = (images.to(self.device)?, labels.to(self.device)?);
        self.model.eval();
        let right = inference_mode(|| self.model.call(&images)?.argmax_with(1)?.eq(&labels));
        self.model.train();
        right?.to(DType::F32)?.mean()
    }
}

/// Trains for some steps, and gives what was trained.
pub(crate) fn train(device: Device, steps: u64, each: EachStep<'_>) -> Result<Training> {
    manual_seed(0);
    let mut training = Training::new(device)?;
    let options = LoaderOptions::new()
        .batch_size(BATCH as usize)
        .shuffle(true)
        .num_workers(1usize)
        .prefetch_bytes(AHEAD_BYTES)
        .pin_memory(!device.is_cpu());
    let loader: DataLoader<(Tensor, Tensor)> =
        DataLoader::new(TensorDataset::new(images(IMAGES)?)?, options)?;
    let ahead = data::PrefetchOptions::new().buffers(2usize);
    let batches = Prefetcher::with_options(loader.epochs(), device, ahead)?;
    for (step, batch) in (1..=steps).zip(batches) {
        let (images, labels) = batch?;
        each(step, &training.step(&images, &labels)?)?;
    }
    Ok(training)
}

/// The whole program, with the words of its command line; what it says goes to `out`.
pub(crate) fn run(words: &mut dyn Iterator<Item = String>, out: &mut dyn Write) -> Result<()> {
    let options = Options::from_words(60, words)?;
    let mut log = Log::new(options, "loss", 20, out);
    let training = train(options.device, options.steps, &mut |step, loss| log.step(step, loss))?;
    let right = training.evaluate()?.item::<f32>()?;
    log.end(&format!(", {:.0} % are right", 100.0 * right))
}

fn main() -> Result<()> {
    run(&mut std::env::args().skip(1), &mut std::io::stdout().lock())
}
