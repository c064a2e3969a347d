//! Plimsoll's Rust side of `cargo xtask bench train`: reads `NAME STEPS` lines, takes that many
//! steps of training, and answers with the microseconds that they took. `peak NAME` tells how far
//! the process grew instead. `xtask/bench/train_worker.py` has the same models under the same
//! names, for PyTorch and for Plimsoll from Python, and says why learning rates are small;
//! `xtask/src/bench_train.rs` asks all three in turn. The GPT is in `gpt.rs`.

// A program that talks over its standard streams.
#![allow(clippy::print_stdout)]

mod gpt;

use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

use gpt::{Gpt, Loss};
use plimsoll_nn::optim::{Adam, AdamOptions, AdamW, AdamWOptions, Optimizer, SGD, SGDOptions};
use plimsoll_nn::{
    Conv2d, ConvOptions, Flatten, Forward, LSTM, Linear, MaxPool2d, Module, ReLU, RecurrentOptions,
    sequential,
};
use plimsoll_tensor::{DType, Error, Result, Tensor, parallel};

/// A step of training.
type Step = Box<dyn FnMut() -> Result<()>>;

/// Steps after which the caches hold what they ever will.
const PEAK_STEPS: usize = 4;

fn main() -> Result<()> {
    parallel::set_threads(2);
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name] = &words[..]
        && first == "peak"
    {
        return tell_peak(name);
    }
    let mut current: Option<(String, Step)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (name, count) = line.rsplit_once(' ').unwrap_or((&line, "1"));
        if current.as_ref().is_none_or(|(have, _)| have != name) {
            // The model before goes first, so that only one is in memory.
            drop(current.take());
            current = Some((name.to_string(), step_of(name)?));
        }
        let Some((_, step)) = &mut current else { continue };
        let start = Instant::now();
        for _ in 0..count.parse().unwrap_or(1) {
            step()?;
        }
        println!("{}", start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(())
}

/// Tells what the process grew by at most, from when a model of a few bytes has taken a step: what
/// is read of the program's own code is not the model's.
fn tell_peak(name: &str) -> Result<()> {
    step_of("tiny_mlp")?()?;
    let before = resident_kb("VmRSS")?;
    std::fs::write("/proc/self/clear_refs", "5")?; // the peak from here on
    let mut step = step_of(name)?;
    for _ in 0..PEAK_STEPS {
        step()?;
    }
    println!("{}", 1024 * resident_kb("VmHWM")?.saturating_sub(before));
    Ok(())
}

/// A line of `/proc/self/status`, in KiB.
fn resident_kb(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.ok_or_else(|| Error::invalid_argument(format!("the system does not tell {name}")))
}

/// The model of that name, its optimizer and its inputs.
fn step_of(name: &str) -> Result<Step> {
    match name {
        "mlp" => mlp(),
        "tiny_mlp" | "tiny_mlp_fused" => tiny_mlp(),
        "gpt" => gpt(Loss::Linear, false),
        "gpt_checkpointed" => gpt(Loss::Linear, true),
        "gpt_by_scores" => gpt(Loss::Scores, false),
        "cnn" => cnn(),
        "lstm" => lstm(),
        _ => Err(Error::invalid_argument(format!("no model is called {name:?}"))),
    }
}

/// A step as everybody writes it.
fn training(
    mut optimizer: impl Optimizer + 'static,
    loss_of: impl Fn() -> Result<Tensor> + 'static,
) -> Step {
    Box::new(move || {
        optimizer.zero_grad()?;
        let loss = loss_of()?;
        loss.backward()?;
        optimizer.step()?;
        drop(black_box(loss));
        Ok(())
    })
}

fn normal(sizes: &[i64]) -> Result<Tensor> {
    Tensor::randn(sizes, DType::F32)
}

fn mlp() -> Result<Step> {
    let model = sequential![
        Linear::new(1000, 1000)?,
        ReLU::new(),
        Linear::new(1000, 1000)?,
        ReLU::new(),
        Linear::new(1000, 1000)?,
    ];
    let (x, y) = (normal(&[64, 1000])?, normal(&[64, 1000])?);
    let optimizer = Adam::new(model.parameters(), AdamOptions::new().lr(1e-4))?;
    Ok(training(optimizer, move || model.call(&x)?.mse_loss(&y)))
}

fn tiny_mlp() -> Result<Step> {
    let model = sequential![Linear::new(8, 16)?, ReLU::new(), Linear::new(16, 1)?];
    let (x, y) = (normal(&[4, 8])?, normal(&[4, 1])?);
    let optimizer = Adam::new(model.parameters(), AdamOptions::new().lr(1e-5))?;
    Ok(training(optimizer, move || model.call(&x)?.mse_loss(&y)))
}

fn gpt(loss: Loss, checkpointed: bool) -> Result<Step> {
    let model = Gpt::new(loss, checkpointed)?;
    let tokens = || Tensor::randint(0, gpt::VOCABULARY, &[8, gpt::CONTEXT], DType::I64);
    let (tokens, following) = (tokens()?, tokens()?);
    let optimizer = AdamW::new(model.parameters(), AdamWOptions::new().lr(1e-4))?;
    Ok(training(optimizer, move || model.call((&tokens, &following))))
}

fn cnn() -> Result<Step> {
    let padded = |from, to| Conv2d::with(from, to, 3, ConvOptions::new().padding(1));
    let model = sequential![
        padded(3, 16)?,
        ReLU::new(),
        MaxPool2d::new(2),
        padded(16, 32)?,
        ReLU::new(),
        MaxPool2d::new(2),
        padded(32, 64)?,
        ReLU::new(),
        MaxPool2d::new(2),
        Flatten::new(),
        Linear::new(64 * 4 * 4, 10)?,
    ];
    let images = normal(&[64, 3, 32, 32])?;
    let labels = Tensor::randint(0, 10, &[64], DType::I64)?;
    let optimizer = SGD::new(model.parameters(), SGDOptions::new().lr(1e-4))?;
    Ok(training(optimizer, move || model.call(&images)?.cross_entropy(&labels)))
}

fn lstm() -> Result<Step> {
    let model = LSTM::with(256, 256, RecurrentOptions::new().num_layers(2))?;
    let (x, y) = (normal(&[64, 32, 256])?, normal(&[64, 32, 256])?);
    let optimizer = Adam::new(model.parameters(), AdamOptions::new().lr(1e-4))?;
    Ok(training(optimizer, move || model.call(&x)?.0.mse_loss(&y)))
}
