//! The learning rate of each step: up in the first steps, then down along a cosine to a tenth.

/// Steps that go up, at most; never more than a tenth of all.
const WARMUP: u64 = 100;
/// What is left in the end.
const LAST: f64 = 0.1;

/// The learning rate of step `step`, from 1, of `steps`.
pub(crate) fn learning_rate(highest: f64, step: u64, steps: u64) -> f64 {
    let warmup = WARMUP.min(steps / 10);
    if step <= warmup {
        return highest * step as f64 / warmup as f64;
    }
    let done = (step - warmup) as f64 / (steps - warmup).max(1) as f64;
    let cosine = 0.5 * (1.0 + (std::f64::consts::PI * done.min(1.0)).cos());
    highest * (LAST + (1.0 - LAST) * cosine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_up_and_down_to_a_tenth() {
        assert_eq!(learning_rate(1.0, 50, 2000), 0.5);
        assert_eq!(learning_rate(1.0, 100, 2000), 1.0);
        assert!((learning_rate(1.0, 1050, 2000) - 0.55).abs() < 1e-12);
        assert!((learning_rate(1.0, 2000, 2000) - 0.1).abs() < 1e-12);
        assert!(learning_rate(1.0, 1, 1).is_finite());
    }
}
