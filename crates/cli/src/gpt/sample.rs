//! The text that a model writes: token after token, each drawn from the likeliest.

use plimsoll_core::{DType, Device, Result};
use plimsoll_nn::{Forward, Module};
use plimsoll_tensor::{Tensor, no_grad};

use super::batches::Draws;
use super::model::Gpt;

/// Scores are divided by it: below 1, likely tokens come more often than they should.
const TEMPERATURE: f64 = 0.8;
/// All others are never drawn.
const LIKELIEST: usize = 40;

/// `count` tokens after those given.
pub(crate) fn write(
    model: &Gpt,
    given: &[i64],
    count: usize,
    (context, seed): (usize, u64),
    device: Device,
) -> Result<Vec<i64>> {
    model.eval();
    let mut draws = Draws::new(seed, u64::MAX);
    let mut tokens = given.to_vec();
    for _ in 0..count {
        let seen = &tokens[tokens.len().saturating_sub(context)..];
        let window = Tensor::from_slice(seen, &[1, seen.len() as i64], device)?.mark_input();
        let scores = no_grad(|| model.call(&window))?.to(DType::F32)?.to(Device::CPU)?;
        tokens.push(drawn(&scores.to_vec::<f32>()?, &mut draws));
    }
    model.train();
    Ok(tokens.split_off(given.len()))
}

/// One of the likeliest, by chance.
fn drawn(scores: &[f32], draws: &mut Draws) -> i64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order.truncate(LIKELIEST);
    let highest = order.first().map_or(0.0, |first| f64::from(scores[*first]));
    let weight = |token: &usize| ((f64::from(scores[*token]) - highest) / TEMPERATURE).exp();
    let whole: f64 = order.iter().map(weight).sum();
    let mut left = draws.share() * whole;
    for token in &order {
        left -= weight(token);
        if left < 0.0 {
            return *token as i64;
        }
    }
    order.last().copied().unwrap_or(0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_as_often_as_their_scores_say() {
        let mut draws = Draws::new(3, 0);
        let scores = [0.0f32, (0.8f32) * 3f32.ln(), -1e9];
        let mut seen = [0; 3];
        for _ in 0..4000 {
            seen[drawn(&scores, &mut draws) as usize] += 1;
        }
        assert!((seen[1] as f64 / 4000.0 - 0.75).abs() < 0.03, "{seen:?}");
        assert_eq!(seen[2], 0);
    }
}
