//! Training while memory runs out, at random moments and at every allocation of the first step,
//! where optimizers make what they keep: each failed step is taken again, nothing of it is left
//! behind, and the losses are those of a run that never failed.

use plimsoll::nn;
use plimsoll::optim::{self, Optimizer};
use plimsoll::prelude::*;
use plimsoll_tensor::{Generator, device, manual_seed_on, memory, with_generator};

use crate::failing::{Tap, assert_balanced};

const WORDS: i64 = 64;
const WIDTH: i64 = 32;
const BATCH: i64 = 16;
/// Allocations of a step after the first, about: failures are drawn from so many.
const ALLOCATIONS: u64 = 60;

/// What a run went through.
#[derive(Debug)]
pub struct Interrupted {
    /// The loss of each step.
    pub losses: Vec<f32>,
    /// Steps that failed, and were taken again.
    pub failures: usize,
    /// In use after each step but the first.
    pub held_bytes: usize,
}

#[derive(Module)]
struct Net {
    table: nn::Embedding,
    body: nn::Sequential,
    head: nn::Linear,
}

struct Training {
    net: Net,
    optimizer: Box<dyn Optimizer>,
    device: Device,
}

/// An optimizer of two groups: if the second runs out of memory, the first must not step.
fn optimizer_of<O: optim::FusedRule>(
    net: &Net,
    options: O,
    of_others: O,
) -> Result<Box<dyn Optimizer>> {
    let (weights, others): (Vec<_>, Vec<_>) =
        net.parameters().into_iter().partition(|parameter| parameter.tensor().rank() > 1);
    let mut optimizer = optim::Fused::new(weights, options)?;
    optimizer.add_param_group(others, of_others)?;
    Ok(Box::new(optimizer))
}

fn adamw(net: &Net) -> Result<Box<dyn Optimizer>> {
    let options = optim::AdamWOptions::new().lr(1e-3);
    optimizer_of(net, options.clone(), options.weight_decay(0.0))
}

fn sgd(net: &Net) -> Result<Box<dyn Optimizer>> {
    let options = optim::SGDOptions::new().lr(1e-2).momentum(0.9);
    optimizer_of(net, options.clone(), options.weight_decay(0.1))
}

impl Training {
    fn new(device: Device, optimizer: fn(&Net) -> Result<Box<dyn Optimizer>>) -> Result<Training> {
        // From a generator of its own: other tests draw from the CPU's meanwhile.
        let net = with_generator(&Generator::new(Device::CPU, 1), || {
            let body = nn::sequential![
                nn::Linear::new(WIDTH, 4 * WIDTH)?,
                nn::GELU::new(),
                nn::Dropout::new().p(0.1),
                nn::Linear::new(4 * WIDTH, WIDTH)?,
                nn::LayerNorm::new(WIDTH)?,
            ];
            let (table, head) = (nn::Embedding::new(WORDS, WIDTH)?, nn::Linear::new(WIDTH, WORDS)?);
            Ok::<Net, Error>(Net { table, body, head })
        })?;
        net.to(device)?;
        let optimizer = optimizer(&net)?;
        Ok(Training { net, optimizer, device })
    }

    fn values(&self) -> Result<Vec<Vec<f32>>> {
        self.net.parameters().iter().map(|parameter| parameter.tensor().to_vec::<f32>()).collect()
    }

    /// One step, whose random numbers are its own: taken again it is the same.
    fn step(&mut self, at: u64) -> Result<f32> {
        manual_seed_on(self.device, at);
        let words = Tensor::randint(0, WORDS, &[BATCH], (DType::I64, self.device))?;
        let hidden = self.net.table.call(&words)?;
        let hidden = hidden.add(&self.net.body.call(&hidden)?)?;
        let next = words.mul(3)?.add(1)?.remainder(WORDS)?;
        let loss = self.net.head.call(&hidden)?.cross_entropy(&next)?;
        loss.backward()?;
        nn::clip_grad_norm_(&self.net.parameters(), 1.0)?;
        let loss = loss.item::<f32>()?;
        self.optimizer.step()?;
        self.optimizer.zero_grad()?;
        Ok(loss)
    }
}

/// Trains, while every second step or so runs out of memory at one of its allocations; without a
/// tap it never does. Nothing is left on the device then.
///
/// # Panics
/// If a failure is no clean out-of-memory error, or leaves something behind.
pub fn trained(device: Device, tap: Option<&Tap>, steps: u64) -> Result<Interrupted> {
    device::set_chaos(device, None);
    let mut training = Training::new(device, adamw)?;
    let mut run = Interrupted { losses: Vec::new(), failures: 0, held_bytes: 0 };
    let mut draw = draws(7);
    for at in 0..steps {
        if let Some(tap) = tap
            && draw().is_multiple_of(2)
        {
            tap.fail_from(1 + (draw() % ALLOCATIONS) as usize);
        }
        let first = training.step(at);
        let refused = tap.map_or(0, Tap::open);
        let loss = match first {
            // Nothing was refused, or what can be made again was given up for it.
            Ok(loss) => loss,
            Err(error) => {
                assert!(refused > 0 && error.is_out_of_memory(), "step {at}: {error}");
                drop(error);
                run.failures += 1;
                training.optimizer.zero_grad()?;
                assert_balanced(device);
                if at > 0 {
                    let held = memory::memory_allocated(device);
                    assert_eq!(held, run.held_bytes, "left behind by the failed step {at}");
                }
                training.step(at)?
            }
        };
        run.losses.push(loss);
        let held = memory::memory_allocated(device);
        assert!(at == 0 || held == run.held_bytes, "step {at} ends with {held} bytes");
        run.held_bytes = held;
    }
    drop(training);
    device::synchronize(device)?;
    assert_balanced(device);
    assert_eq!(memory::memory_allocated(device), 0, "left behind in the end");
    Ok(run)
}

/// Numbers that are the same in each run.
fn draws(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// Begins to train anew for each allocation of the first step, which fails there and is taken
/// again; how many did. A step that failed has changed no parameter, and the one after it changes
/// them as if nothing had happened.
///
/// # Panics
/// If one does not.
pub fn a_first_step_survives_each_failure(device: Device, tap: &Tap) -> Result<usize> {
    device::set_chaos(device, None);
    let mut failures = 0;
    for optimizer in [adamw, sgd] {
        let (before, loss, after) = {
            let mut plain = Training::new(device, optimizer)?;
            (plain.values()?, plain.step(0)?, plain.values()?)
        };
        for failing in 1.. {
            let mut training = Training::new(device, optimizer)?;
            tap.fail_from(failing);
            let first = training.step(0);
            let refused = tap.open();
            let learnt = match first {
                Ok(loss) => loss,
                Err(error) => {
                    assert!(refused > 0 && error.is_out_of_memory(), "{failing}: {error}");
                    failures += 1;
                    assert_eq!(training.values()?, before, "allocation {failing} failed");
                    training.optimizer.zero_grad()?;
                    training.step(0)?
                }
            };
            assert_eq!((learnt, training.values()?), (loss, after.clone()), "{failing}");
            drop(training);
            device::synchronize(device)?;
            assert_balanced(device);
            assert_eq!(memory::memory_allocated(device), 0, "left behind by {failing}");
            if refused == 0 {
                break;
            }
        }
    }
    Ok(failures)
}

/// A run that fails and one that does not, on a device with a tap, end with the same losses and the
/// same bytes; how many steps failed.
pub fn the_same_is_learnt(device: Device, tap: &Tap, steps: u64) -> Result<usize> {
    let (plain, failed) = (trained(device, None, steps)?, trained(device, Some(tap), steps)?);
    assert_eq!(plain.losses, failed.losses, "after {} failures", failed.failures);
    assert_eq!(plain.held_bytes, failed.held_bytes);
    Ok(failed.failures)
}
