//! The learning rate: up in the first steps, then down along a cosine to a tenth.

use plimsoll_core::Result;
use plimsoll_nn::optim::Optimizer;
use plimsoll_nn::optim::lr_scheduler::{CosineAnnealingLR, LRScheduler, LinearLR, SequentialLR};

/// Steps that go up, at most; never more than a tenth of all.
const WARMUP: u64 = 100;
/// What is left in the end.
const LAST: f64 = 0.1;

/// Takes the optimizer's rate for the highest, and sets that of the first step.
pub(crate) fn schedule(optimizer: &mut dyn Optimizer, steps: u64) -> Result<Box<dyn LRScheduler>> {
    let last = LAST * optimizer.lr(0);
    // Both have the highest rate at the last step that goes up, so they share it.
    let up = WARMUP.min(steps / 10).max(1) as i64 - 1;
    let down = (steps as i64 - 1 - up).max(1);
    if up == 0 {
        return Ok(Box::new(CosineAnnealingLR::new(optimizer, down, last)?));
    }
    let first = LinearLR::new(optimizer, 1.0 / (up + 1) as f64, 1.0, up)?;
    let then = CosineAnnealingLR::new(optimizer, down, last)?;
    Ok(Box::new(SequentialLR::new(optimizer, vec![Box::new(first), Box::new(then)], &[up])?))
}

#[cfg(test)]
mod tests {
    use plimsoll_nn::{Parameter, optim};
    use plimsoll_tensor::{DType, Tensor};

    use super::*;

    fn rates(steps: u64) -> Vec<f64> {
        let weight = Parameter::new(&Tensor::ones(&[1], DType::F32).unwrap()).unwrap();
        let options = optim::SGDOptions::new().lr(2.0);
        let mut optimizer = optim::SGD::new([weight], options).unwrap();
        let mut schedule = schedule(&mut optimizer, steps).unwrap();
        let mut rate = || {
            let rate = optimizer.lr(0);
            schedule.step(&mut optimizer).unwrap();
            rate
        };
        (0..steps).map(|_| rate()).collect()
    }

    #[test]
    fn it_goes_up_and_down_to_a_tenth() {
        for steps in [2000, 1000, 95, 15, 2] {
            let warmup = WARMUP.min(steps / 10).max(1);
            let rates = rates(steps);
            for (step, rate) in (1..).zip(&rates) {
                let done = step.max(warmup) - warmup;
                let done = done as f64 / (steps - warmup) as f64;
                let cosine = 0.5 * (1.0 + (std::f64::consts::PI * done).cos());
                let up = step.min(warmup) as f64 / warmup as f64;
                let expected = 2.0 * up * (LAST + (1.0 - LAST) * cosine);
                assert!((rate - expected).abs() < 1e-9, "{rate} at {step} of {steps}: {expected}");
            }
            assert!((rates[rates.len() - 1] - 0.2).abs() < 1e-9);
        }
        assert_eq!(rates(1), [2.0]);
    }
}
