//! `plimsoll train`: a GPT learns a text, with its memory in view all along, is saved on the way
//! and writes a text of its own in the end. The model, the batches and the step are in `gpt/`.

use std::path::Path;
use std::time::Instant;

use anstream::{eprintln, println};
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_core::{ByteSize, Device, Error, Result};
use plimsoll_data::DataLoader;
use plimsoll_live::{Server, ledger_figures, step_ended};
use plimsoll_memory::{Configuration, set_step};
use plimsoll_nn::{Module, check_device_consistency};
use plimsoll_profile::{Limits, Profile, Session};
use plimsoll_tensor::memory::{self, LeakWatch};
use plimsoll_tensor::{Tensor, device, manual_seed_on};

use crate::args::Train;
use crate::gpt::batches::{self, Batch, endless};
use crate::gpt::captured;
use crate::gpt::forecast;
use crate::gpt::losses::Losses;
use crate::gpt::model::{Recompute, Shape};
use crate::gpt::sample;
use crate::gpt::saved_run::{self, SavedRun};
use crate::gpt::settings::{Model, Settings};
use crate::gpt::step::{Plan, Trainer};
use crate::gpt::text::{Text, bigram_entropy};
use crate::gpt::vocabulary::Vocabulary;

/// Batches of a validation.
const VALIDATION_BATCHES: usize = 16;
/// Times that a run validates, the last one at its end.
const VALIDATIONS: u64 = 5;
/// What the model goes on from.
const PROMPT: &[u8] = b"\n/// The ";

/// Trains; whether something leaks, as far as that was watched.
pub(crate) fn run(options: &Train) -> Result<bool> {
    choose_configuration()?;
    let device = device_of(options)?;
    if options.capture {
        captured::check(device)?;
    }
    if options.kernels && (device.is_cpu() || device.is_dry()) {
        let why = "--kernels needs a GPU: it shows what a device does with the work in its queue";
        return Err(Error::invalid_argument(why).in_operation("train"));
    }
    let saved = options.resume.as_deref().map(SavedRun::open).transpose()?;
    let task = Task::new(options, saved.as_ref(), device)?;
    println!(
        "{}: {} bytes, {} tokens of {}",
        task.text.name(),
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
    manual_seed_on(device, task.settings.seed);
    let mut trainer = Trainer::new(&task.plan, device)?;
    let done = match &saved {
        Some(saved) => saved.restore(&mut trainer, &task.learnt, device, task.settings.steps)?,
        None => 0,
    };
    // It holds the file that the next save replaces.
    drop(saved);
    let (parameters, steps) = (trainer.model.num_parameters(), task.settings.steps);
    println!("{parameters} parameters, {steps} steps on {device}");
    if done > 0 {
        println!("{done} of them are done");
    }
    // For whoever looks with `plimsoll top`; the run does not depend on it.
    let live = Server::start(ledger_figures("plimsoll train"));
    if let Err(error) = &live {
        eprintln!("note: `plimsoll top` cannot look at this run: {error}");
    }
    // Before the first step, so that a file that cannot be written is told of at once.
    task.save(&trainer, options.save.as_deref(), done)?;
    let mut watch = options.watch.then(|| LeakWatch::on(device));
    let validation = task.learn(&mut trainer, options, done, watch.as_mut())?;
    let verdict = watch.map(LeakWatch::finish);
    let outcome = task.save(&trainer, options.save.as_deref(), steps);
    if !device.is_dry() {
        task.tell(&trainer, options, validation)?;
    }
    println!("\n{}", memory::memory_report(device).trim_end());
    if let Some(verdict) = &verdict {
        println!("\n{}", verdict.to_string().trim_end());
    }
    outcome.map(|()| verdict.is_some_and(|verdict| !verdict.is_clean()))
}

/// On GPUs segments grow and shrink by pages, unless the user said otherwise: less is reserved, and
/// what one batch left is of use to another one's shapes.
fn choose_configuration() -> Result<()> {
    let chosen = Configuration::from_environment()?.preferring_expandable_segments();
    // A program around this command may have chosen already.
    let _ = chosen.install();
    Ok(())
}

/// Where to train: the named device, or the one that the model is made for; with `--dry` a dry run
/// of it, which for a GPU that is not there is that of an H200.
fn device_of(options: &Train) -> Result<Device> {
    let name = options.device.as_deref().unwrap_or(match options.settings.model {
        Some(Model::Gpt2) => "cuda",
        Some(Model::Small) | None => "cpu",
    });
    match name {
        "dry" => device::dry(Device::cpu()),
        "cuda" if options.dry && device::cuda_count() == 0 => device::named("dry:h200"),
        name => {
            let device = device::named(name)?;
            if options.dry && !device.is_dry() { device::dry(device) } else { Ok(device) }
        }
    }
}

/// What is learnt, and how.
struct Task {
    settings: Settings,
    text: Text,
    vocabulary: Vocabulary,
    tokens: usize,
    /// Bytes that a token of the kept part stands for.
    bytes_per_token: f64,
    learnt: DataLoader<Batch>,
    kept: DataLoader<Batch>,
    plan: Plan,
    device: Device,
}

impl Task {
    fn new(options: &Train, saved: Option<&SavedRun>, device: Device) -> Result<Task> {
        let (settings, mut conflicts) =
            Settings::chosen(&options.settings, saved.and_then(SavedRun::settings));
        let file = options.data.clone().or_else(|| saved.and_then(SavedRun::text_file));
        let text = Text::read(file.as_deref())?;
        if let Some(saved) = saved {
            conflicts.extend(saved.text_conflict(&text));
            saved.check(&conflicts)?;
        }
        if !settings.width.is_multiple_of(settings.heads) {
            return Err(Error::invalid_argument(format!(
                "--width {} is not divisible by --heads {}",
                settings.width, settings.heads
            ))
            .in_operation("train"));
        }
        let (learnt, kept) = text.parts();
        let vocabulary = Vocabulary::learn(learnt, settings.vocabulary as usize);
        let (batch, context) = (settings.batch as usize, settings.context as usize);
        let learnt_tokens = vocabulary.encode_small(learnt);
        let kept_tokens = vocabulary.encode_small(kept);
        batches::check_context(learnt_tokens.len(), kept_tokens.len(), context)?;
        let tokens = learnt_tokens.len() + kept_tokens.len();
        let bytes_per_token = kept.len() as f64 / kept_tokens.len().max(1) as f64;
        let recompute = options.recompute.iter().copied().collect();
        let plan = plan_of(&settings, recompute, options.capture);
        Ok(Task {
            settings,
            tokens,
            bytes_per_token,
            learnt: batches::drawn(learnt_tokens, batch, context, settings.seed)?,
            kept: batches::even(kept_tokens, batch, context, VALIDATION_BATCHES)?,
            vocabulary,
            text,
            plan,
            device,
        })
    }

    /// The steps after those that are done; the loss of the last validation, per byte.
    fn learn(
        &self,
        trainer: &mut Trainer,
        options: &Train,
        done: u64,
        mut watch: Option<&mut LeakWatch>,
    ) -> Result<f64> {
        let Settings { steps, context, .. } = self.settings;
        let bar = progress_bar(steps);
        bar.set_position(done);
        let losses = options.losses.as_deref();
        let mut losses =
            losses.map(|path| Losses::open(path, options.resume.is_some())).transpose()?;
        let often = (steps / 10).max(1);
        let validates = steps.div_ceil(VALIDATIONS);
        let mut validation = None;
        let mut since = (Instant::now(), 0);
        let mut kernels = None;
        let mut batches = endless(&self.learnt, self.device).peekable();
        if let Some(Ok(batch)) = batches.peek() {
            check_device_consistency(&trainer.model, batch)?;
        }
        for step in done + 1..=steps {
            set_step(step);
            let timing = match options.kernels && step == steps {
                true => Some(Profile::new().shapes(true).flops(true).start()?),
                false => None,
            };
            let loss = trainer.step(&mut batches)?;
            kernels = timing.map(Session::stop);
            step_ended();
            bar.inc(1);
            since.1 += self.plan.batch * self.plan.accumulate * context as usize;
            // Before the save: a run that goes on after this step does not come by here again.
            if let Some(losses) = &mut losses {
                losses.add(step, self.number(&loss)?)?;
            }
            let validates_now = step % validates == 0 || step == steps;
            let saves_now = step % options.save_every == 0 && step < steps;
            if validates_now || saves_now {
                // The step itself is over before the time that does not count as learning.
                self.number(&loss)?;
            }
            let begun = Instant::now();
            if validates_now {
                validation = Some(self.validate(trainer)?);
            }
            if saves_now && let Err(error) = self.save(trainer, options.save.as_deref(), step) {
                bar.suspend(|| {
                    eprintln!("warning: {error}\ntraining goes on, and saves again later")
                });
            }
            since.0 += begun.elapsed();
            let tells = step % often == 0 || step == done + 1;
            if let Some(watch) = watch.as_deref_mut() {
                watch.step();
                if tells {
                    tell_growth(&bar, watch);
                }
            }
            if tells || !bar.is_hidden() && step % 10 == 0 {
                // First the loss: a device that queues is behind, and its time counts.
                let loss = self.number(&loss)? / self.bytes_per_token;
                let speed = since.1 as f64 / since.0.elapsed().as_secs_f64();
                let message = figures(loss, speed, self.device);
                // Where there is no terminal for a bar, a line now and then takes its place.
                if bar.is_hidden() && tells {
                    println!("{step:>6} {message}");
                }
                bar.set_message(message);
                since = (Instant::now(), 0);
            }
        }
        bar.finish();
        if let Some(kernels) = kernels {
            let limits = device::properties(self.device).ok().and_then(|gpu| Limits::of(&gpu.name));
            println!("\nKernels of the last step\n{}", kernels.bounds(limits));
        }
        validation.map_or_else(|| self.validate(trainer), Ok)
    }

    /// A loss as a number; a dry run has none.
    fn number(&self, loss: &Tensor) -> Result<f64> {
        if self.device.is_dry() { Ok(f64::NAN) } else { Ok(loss.to_scalar()?.to_f64()) }
    }

    /// The loss on what is not learnt, per byte.
    fn validate(&self, trainer: &Trainer) -> Result<f64> {
        Ok(trainer.evaluate(self.kept.epoch()?)? / self.bytes_per_token)
    }

    /// Saves the run after a step, if it is to be saved.
    fn save(&self, trainer: &Trainer, path: Option<&Path>, step: u64) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let parts = (trainer, &self.learnt, self.device);
        saved_run::save(path, parts, step, self.settings, &self.text)
    }

    /// What was learnt, in numbers and in words.
    fn tell(&self, trainer: &Trainer, options: &Train, validation: f64) -> Result<()> {
        let bigram = bigram_entropy(&self.text.bytes);
        println!(
            "\nvalidation loss {validation:.3} nats a byte, {:.2} of the {bigram:.3} that knowing one byte leaves",
            validation / bigram
        );
        if options.sample > 0 {
            let given = self.vocabulary.encode(PROMPT);
            let context = (self.settings.context as usize, self.settings.seed);
            let (model, count) = (&trainer.model, options.sample);
            let written = sample::write(model, &given, count, context, self.device)?;
            let text = [PROMPT, &self.vocabulary.decode(&written)].concat();
            println!("\nThe model writes:{}", printable(&String::from_utf8_lossy(&text)));
        }
        Ok(())
    }
}

fn plan_of(settings: &Settings, recompute: Recompute, captures: bool) -> Plan {
    Plan {
        shape: Shape {
            vocabulary: settings.vocabulary as i64,
            context: settings.context as i64,
            layers: settings.layers as i64,
            width: settings.width as i64,
            heads: settings.heads as i64,
            dropout: settings.dropout,
            recompute,
        },
        batch: settings.batch as usize,
        accumulate: settings.accumulate as usize,
        precision: settings.precision,
        learning_rate: settings.learning_rate,
        steps: settings.steps,
        captures,
    }
}

fn progress_bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:10} {pos}/{len} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(steps).with_style(style)
}

/// Says what grows so far, if anything does.
fn tell_growth(bar: &ProgressBar, watch: &mut LeakWatch) {
    let so_far = watch.so_far();
    if !so_far.findings.is_empty() {
        bar.suspend(|| println!("{}", so_far.to_string().trim_end()));
    }
}

/// Loss, speed and memory in one short text; `live` is what tensors hold after the step. A dry run
/// has neither a loss nor a speed.
fn figures(loss: f64, tokens_per_second: f64, device: Device) -> String {
    let learnt = match device.is_dry() {
        true => String::new(),
        false => format!("loss {loss:.3} {:.1}k tok/s ", tokens_per_second / 1e3),
    };
    format!(
        "{learnt}live {} reserved {} peak {}",
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
