//! Trains a small classifier and shows where its memory went, by kind and by line. The layers, the
//! loss and the descent are written out in tensor operations. `cargo run --release --example
//! train_classifier`

use std::error::Error;
use std::io::Write;

use plimsoll::memory::{Phase, enter_module, enter_phase, set_step};
use plimsoll::prelude::*;
use plimsoll::{ArgOptions, device, manual_seed_on, memory};

const CLASSES: i64 = 3;
const POINTS_PER_CLASS: i64 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout().lock())
}

/// The whole program; what it says goes to `out`.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // A CPU device of its own, so that nobody else's bytes are counted.
    let cpu = device::private_cpu(&Default::default())?;
    manual_seed_on(cpu, 1);
    let (points, labels) = three_clouds(cpu)?;
    let classifier = Classifier::new(cpu)?;
    for step in 1..=100 {
        set_step(step);
        let loss = {
            let _phase = enter_phase(Phase::Forward);
            cross_entropy(&classifier.scores(&points)?, &labels)?
        };
        loss.backward()?;
        classifier.descend(0.5)?;
        if step % 25 == 0 {
            writeln!(out, "step {step:3}  loss {:.4}", loss.item::<f32>()?)?;
        }
    }
    let scores = no_grad(|| classifier.scores(&points))?;
    let right = scores
        .argmax_with(ArgOptions::from(1).keepdim(true))?
        .eq(&labels)?
        .to(DType::F32)?
        .mean()?
        .item::<f32>()?;
    writeln!(out, "{:.1} % are right\n", 100.0 * right)?;
    write!(out, "{}", memory::memory_report(cpu))?;
    Ok(())
}

/// Points of the plane around three centres: `[points, 2]`, and the number of each one's centre:
/// `[points, 1]`.
fn three_clouds(device: Device) -> Result<(Tensor, Tensor)> {
    let count = CLASSES * POINTS_PER_CLASS;
    let numbers: Vec<i64> = (0..count).map(|point| point % CLASSES).collect();
    let centres: Vec<f32> = numbers
        .iter()
        .flat_map(|&class| {
            let angle = class as f32 * std::f32::consts::TAU / CLASSES as f32;
            [2.0 * angle.cos(), 2.0 * angle.sin()]
        })
        .collect();
    let noise = Tensor::randn(&[count, 2], (DType::F32, device))?.mul(0.5)?;
    let points = Tensor::from_slice(&centres, &[count, 2], device)?.add(&noise)?;
    let labels = Tensor::from_slice(&numbers, &[count, 1], device)?;
    Ok((points.mark_input(), labels.mark_input()))
}

/// Two layers with tanh between.
struct Classifier {
    /// Weight and bias of each layer in turn.
    parameters: Vec<Tensor>,
}

impl Classifier {
    fn new(device: Device) -> Result<Classifier> {
        let mut parameters = Vec::new();
        for (inputs, outputs) in [(2, 16), (16, CLASSES)] {
            let weight = Tensor::randn(&[inputs, outputs], (DType::F32, device))?;
            weight.mul_(1.0 / (inputs as f64).sqrt())?;
            let bias = Tensor::zeros(&[outputs], (DType::F32, device))?;
            for parameter in [weight, bias] {
                parameters.push(parameter.mark_parameter().requires_grad_(true)?);
            }
        }
        Ok(Classifier { parameters })
    }

    /// One score a class for each point.
    fn scores(&self, points: &Tensor) -> Result<Tensor> {
        let layer = |number: usize, x: &Tensor| {
            let _module = enter_module(&format!("layer{number}"));
            x.matmul(&self.parameters[2 * number])?.add(&self.parameters[2 * number + 1])
        };
        layer(1, &layer(0, points)?.tanh()?)
    }

    /// One step down the gradients, which are freed.
    fn descend(&self, learning_rate: f64) -> Result<()> {
        let _phase = enter_phase(Phase::Optimizer);
        no_grad(|| {
            for parameter in &self.parameters {
                let Some(gradient) = parameter.grad() else { continue };
                parameter.sub_(&gradient.mul(learning_rate)?)?;
                parameter.set_grad(None)?;
            }
            Ok(())
        })
    }
}

/// The mean of what the classifier would have had to say to be surprised by each label.
fn cross_entropy(scores: &Tensor, labels: &Tensor) -> Result<Tensor> {
    scores.log_softmax(1)?.gather(1, labels)?.mean()?.neg()
}
