//! Training while memory runs out at random moments: each failed step is taken again, nothing of it
//! is left behind, and the losses are those of a run that never failed.

use plimsoll::prelude::*;
use plimsoll::{nn, optim};
use plimsoll_tensor::{device, manual_seed_on, memory};

use crate::failing::{Tap, assert_balanced};

const WORDS: i64 = 64;
const WIDTH: i64 = 32;
const BATCH: i64 = 16;
/// Allocations of a step, about: failures are drawn from so many.
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
    optimizer: optim::AdamW,
    device: Device,
}

impl Training {
    fn new(device: Device) -> Result<Training> {
        manual_seed_on(Device::CPU, 1);
        let body = nn::sequential![
            nn::Linear::new(WIDTH, 4 * WIDTH)?,
            nn::GELU::new(),
            nn::Dropout::new().p(0.1),
            nn::Linear::new(4 * WIDTH, WIDTH)?,
            nn::LayerNorm::new(WIDTH)?,
        ];
        let (table, head) = (nn::Embedding::new(WORDS, WIDTH)?, nn::Linear::new(WIDTH, WORDS)?);
        let net = Net { table, body, head };
        net.to(device)?;
        let options = optim::AdamWOptions::new().lr(1e-3);
        let (weights, others): (Vec<_>, Vec<_>) =
            net.parameters().into_iter().partition(|parameter| parameter.tensor().rank() > 1);
        let mut optimizer = optim::AdamW::new(weights, options.clone())?;
        optimizer.add_param_group(others, options.weight_decay(0.0))?;
        Ok(Training { net, optimizer, device })
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
    let mut training = Training::new(device)?;
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

/// A run that fails and one that does not, on a device with a tap, end with the same losses and the
/// same bytes; how many steps failed.
pub fn the_same_is_learnt(device: Device, tap: &Tap, steps: u64) -> Result<usize> {
    let (plain, failed) = (trained(device, None, steps)?, trained(device, Some(tap), steps)?);
    assert_eq!(plain.losses, failed.losses, "after {} failures", failed.failures);
    assert_eq!(plain.held_bytes, failed.held_bytes);
    Ok(failed.failures)
}
