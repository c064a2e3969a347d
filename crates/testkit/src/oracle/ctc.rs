//! Connectionist temporal classification, by looking at every path.

use super::Array;

/// The loss of one sequence: minus the logarithm of the probabilities of all paths of classes that
/// read as `labels` once repeats and then blanks (class 0) are taken out.
pub fn ctc_loss(log_probs: &Array, sequence: usize, steps: usize, labels: &[i64]) -> f64 {
    let classes = log_probs.shape()[2];
    let mut total = 0.0;
    for path in 0..classes.pow(steps as u32) {
        let classes_at: Vec<usize> =
            (0..steps).map(|step| path / classes.pow(step as u32) % classes).collect();
        let mut read = classes_at.clone();
        read.dedup();
        read.retain(|&class| class != 0);
        if read.iter().map(|&class| class as i64).eq(labels.iter().copied()) {
            let each = classes_at.iter().enumerate();
            let sum: f64 = each.map(|(step, &c)| log_probs.at(&[step, sequence, c]).to_f64()).sum();
            total += sum.exp();
        }
    }
    -total.ln()
}
