//! `plimsoll train`: a GPT learns a text, with its memory in view all along, and writes some of its
//! own in the end. The model, the batches and the step are in `gpt/`.

use std::time::Instant;

use anstream::println;
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_core::{ByteSize, Device, Error, Result};
use plimsoll_memory::set_step;
use plimsoll_nn::Module;
use plimsoll_tensor::{device, manual_seed_on, memory};

use crate::args::{Train, TrainIn};
use crate::gpt::batches::Batches;
use crate::gpt::forecast;
use crate::gpt::model::Shape;
use crate::gpt::sample;
use crate::gpt::step::{Plan, Precision, Trainer};
use crate::gpt::text::{Text, bigram_entropy};
use crate::gpt::vocabulary::Vocabulary;

/// Batches of a validation.
const VALIDATION_BATCHES: usize = 16;
/// Times that a run validates, the last one at its end.
const VALIDATIONS: u64 = 5;
/// What the model goes on from.
const PROMPT: &[u8] = b"\n/// The ";

pub(crate) fn run(options: &Train) -> Result<()> {
    let device = device_of(&options.device)?;
    let task = Task::new(options)?;
    println!(
        "{}: {} bytes, {} tokens of {}",
        task.text.name,
        task.text.bytes.len(),
        task.tokens,
        task.vocabulary.len()
    );
    let limit = options.limit.map(|limit| limit.0);
    if !device.is_dry() {
        println!("{}", forecast::check(&task.plan, device, limit)?);
        memory::reset_peak_memory_stats(device);
    }
    memory::set_limit(device, limit);
    manual_seed_on(device, options.seed);
    let mut trainer = Trainer::new(&task.plan, device)?;
    let (parameters, steps) = (trainer.model.num_parameters(), options.steps);
    println!("{parameters} parameters, {steps} steps on {device}");
    let validation = task.learn(&mut trainer, options, device)?;
    if !device.is_dry() {
        task.tell(&trainer, options, device, validation)?;
    }
    println!("\n{}", memory::memory_report(device).trim_end());
    Ok(())
}

/// A device by its name; `dry` is a dry run of the CPU.
fn device_of(name: &str) -> Result<Device> {
    match name {
        "dry" => device::dry(Device::cpu()),
        name => device::named(name),
    }
}

/// What is learnt, and how.
struct Task {
    text: Text,
    vocabulary: Vocabulary,
    tokens: usize,
    /// Bytes that a token of the kept part stands for.
    bytes_per_token: f64,
    learnt: Batches,
    kept: Batches,
    plan: Plan,
}

impl Task {
    fn new(options: &Train) -> Result<Task> {
        if options.width % options.heads != 0 {
            return Err(Error::invalid_argument(format!(
                "--width {} is not divisible by --heads {}",
                options.width, options.heads
            ))
            .in_operation("train"));
        }
        let text = Text::read(options.data.as_deref())?;
        let (learnt, kept) = text.parts();
        let vocabulary = Vocabulary::learn(learnt, options.vocabulary as usize);
        let (batch, context) = (options.batch as usize, options.context as usize);
        let (learnt_tokens, kept_tokens) = (vocabulary.encode(learnt), vocabulary.encode(kept));
        let tokens = learnt_tokens.len() + kept_tokens.len();
        let bytes_per_token = kept.len() as f64 / kept_tokens.len().max(1) as f64;
        let plan = Plan {
            shape: Shape {
                vocabulary: vocabulary.len() as i64,
                context: i64::from(options.context),
                layers: options.layers,
                width: options.width,
                heads: options.heads,
                dropout: options.dropout,
                checkpointing: options.checkpointing,
            },
            batch,
            accumulate: options.accumulate as usize,
            precision: match options.precision {
                TrainIn::Float32 => Precision::Float32,
                TrainIn::Bfloat16 => Precision::Bfloat16,
            },
            learning_rate: options.learning_rate,
            steps: options.steps,
        };
        Ok(Task {
            tokens,
            bytes_per_token,
            learnt: Batches::new(learnt_tokens, batch, context, options.seed)?,
            kept: Batches::new(kept_tokens, batch, context, options.seed)?,
            vocabulary,
            text,
            plan,
        })
    }

    /// All steps; the loss of the last validation, per byte.
    fn learn(&self, trainer: &mut Trainer, options: &Train, device: Device) -> Result<f64> {
        let bar = progress_bar(options.steps);
        let often = (options.steps / 10).max(1);
        let validates = options.steps.div_ceil(VALIDATIONS);
        let mut validation = f64::NAN;
        let mut since = (Instant::now(), 0);
        for step in 1..=options.steps {
            set_step(step);
            let loss = trainer.step(&self.learnt, step)?;
            bar.inc(1);
            since.1 += self.plan.batch * self.plan.accumulate * options.context as usize;
            if step % validates == 0 || step == options.steps {
                validation =
                    trainer.evaluate(&self.kept, VALIDATION_BATCHES)? / self.bytes_per_token;
            }
            let tells = step % often == 0 || step == 1;
            if tells || !bar.is_hidden() && step % 10 == 0 {
                let loss = if device.is_dry() { f64::NAN } else { loss.to_scalar()?.to_f64() };
                let speed = since.1 as f64 / since.0.elapsed().as_secs_f64();
                let message = figures(loss / self.bytes_per_token, speed, device);
                // Where there is no terminal for a bar, a line now and then takes its place.
                if bar.is_hidden() && tells {
                    println!("{step:>6} {message}");
                }
                bar.set_message(message);
                since = (Instant::now(), 0);
            }
        }
        bar.finish();
        Ok(validation)
    }

    /// What was learnt, in numbers and in words.
    fn tell(
        &self,
        trainer: &Trainer,
        options: &Train,
        device: Device,
        validation: f64,
    ) -> Result<()> {
        let bigram = bigram_entropy(&self.text.bytes);
        println!(
            "\nvalidation loss {validation:.3} nats a byte, {:.2} of the {bigram:.3} that knowing one byte leaves",
            validation / bigram
        );
        if options.sample > 0 {
            let given = self.vocabulary.encode(PROMPT);
            let context = (options.context as usize, options.seed);
            let written = sample::write(&trainer.model, &given, options.sample, context, device)?;
            let text = [PROMPT, &self.vocabulary.decode(&written)].concat();
            println!("\nThe model writes:{}", printable(&String::from_utf8_lossy(&text)));
        }
        Ok(())
    }
}

fn progress_bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:10} {pos}/{len} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(steps).with_style(style)
}

/// Loss, speed and memory in one short text; `live` is what tensors hold after the step.
fn figures(loss: f64, tokens_per_second: f64, device: Device) -> String {
    format!(
        "loss {loss:.3} {:.1}k tok/s live {} reserved {} peak {}",
        tokens_per_second / 1e3,
        ByteSize(memory::memory_allocated(device)),
        ByteSize(memory::memory_reserved(device)),
        ByteSize(memory::max_memory_allocated(device)),
    )
}

/// Without what would steer a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_model_writes_steers_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc\r\t"), "a[2Jb\nc");
    }

    #[test]
    fn heads_share_the_width() {
        use clap::Parser;
        let line = ["plimsoll", "train", "--width", "10", "--heads", "4"];
        let crate::args::Command::Train(options) = crate::args::Args::parse_from(line).command
        else {
            panic!("another command");
        };
        let error = run(&options).unwrap_err().to_string();
        assert!(error.contains("--width 10 is not divisible by --heads 4"), "{error}");
    }
}
