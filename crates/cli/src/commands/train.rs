//! `plimsoll train`: a small network learns two spirals, with its memory in view all along. The
//! network is in `network.rs`, the task in `spirals.rs`.

use anstream::println;
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_core::{ByteSize, Device, Result};
use plimsoll_memory::{Phase, enter_phase, set_step};
use plimsoll_tensor::{device, manual_seed_on, memory, no_grad};

use crate::args::{Train, TrainOn};
use crate::network::{Network, accuracy, cross_entropy};
use crate::spirals::Spirals;

pub(crate) fn run(options: &Train) -> Result<()> {
    let device = match options.device {
        TrainOn::Cpu => Device::cpu(),
        TrainOn::Dry => device::dry(Device::cpu())?,
    };
    manual_seed_on(device, options.seed);
    let task = Spirals::new(options.points, options.seed, device)?;
    let network = Network::new(2, options.hidden, device)?;
    println!(
        "two spirals: {} points, {} parameters, {} steps on {device}",
        options.points,
        network.parameters(),
        options.steps
    );
    let bar = progress_bar(options.steps);
    let often = (options.steps / 10).max(1);
    for step in 1..=options.steps {
        set_step(step);
        let loss = {
            let _phase = enter_phase(Phase::Forward);
            cross_entropy(&network.forward(&task.points)?, &task.labels)?
        };
        loss.backward()?;
        network.descend(options.learning_rate)?;
        bar.inc(1);
        if step % often == 0 || step == 1 || !bar.is_hidden() && step % 10 == 0 {
            let loss = if device.is_dry() { f32::NAN } else { loss.item::<f32>()? };
            let message = figures(loss, device);
            // Where there is no terminal for a bar, a line now and then takes its place.
            if bar.is_hidden() && (step % often == 0 || step == 1) {
                println!("step {step:>7}  {message}");
            }
            bar.set_message(message);
        }
    }
    bar.finish();
    if !device.is_dry() {
        let scores = no_grad(|| network.forward(&task.points))?;
        let right = accuracy(&scores, &task.labels)?;
        println!("\n{:.1} % of the points are on the right side", 100.0 * right);
    }
    println!("\n{}", memory::memory_report(device).trim_end());
    Ok(())
}

fn progress_bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:20} {pos:>5}/{len} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(steps).with_style(style)
}

/// Loss and memory in one short text; live is what tensors hold now, after the step.
fn figures(loss: f32, device: Device) -> String {
    format!(
        "loss {loss:.4}  live {}  peak {}",
        ByteSize(memory::memory_allocated(device)),
        ByteSize(memory::max_memory_allocated(device)),
    )
}
