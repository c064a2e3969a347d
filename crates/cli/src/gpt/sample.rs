//! The text that a model writes: token after token, each drawn from the likeliest.

use plimsoll_core::{DType, Device, Result};
use plimsoll_nn::{Forward, Module};
use plimsoll_tensor::{Generator, Tensor, no_grad, with_generator};

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
    let chance = Generator::new(Device::cpu(), seed);
    let mut tokens = given.to_vec();
    for _ in 0..count {
        let seen = &tokens[tokens.len().saturating_sub(context)..];
        let window = Tensor::from_slice(seen, &[1, seen.len() as i64], device)?.mark_input();
        let scores = no_grad(|| model.call(&window))?.to(DType::F32)?.to(Device::CPU)?;
        tokens.push(with_generator(&chance, || drawn(&scores.flatten(0, -1)?))?);
    }
    model.train();
    Ok(tokens.split_off(given.len()))
}

/// One of the likeliest of a row of scores on the host, by chance.
fn drawn(scores: &Tensor) -> Result<i64> {
    let (likeliest, tokens) = scores.topk(LIKELIEST.min(scores.numel()) as i64)?;
    let chosen = likeliest.div(TEMPERATURE)?.softmax(0)?.multinomial(1, true)?;
    tokens.gather(0, &chosen)?.item::<i64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_as_often_as_their_scores_say() {
        let scores = [0.0f32, (TEMPERATURE as f32) * 3f32.ln(), -1e9];
        let scores = Tensor::from_slice(&scores, &[3], Device::cpu()).unwrap();
        let mut seen = [0; 3];
        with_generator(&Generator::new(Device::cpu(), 3), || {
            for _ in 0..4000 {
                seen[drawn(&scores).unwrap() as usize] += 1;
            }
        });
        assert!((f64::from(seen[1]) / 4000.0 - 0.75).abs() < 0.03, "{seen:?}");
        assert_eq!(seen[2], 0);
    }

    #[test]
    fn all_but_the_likeliest_are_never_drawn() {
        let scores: Vec<f32> = (0..100).map(|token| if token < 60 { 0.0 } else { 1.0 }).collect();
        let scores = Tensor::from_slice(&scores, &[100], Device::cpu()).unwrap();
        for _ in 0..500 {
            assert!(drawn(&scores).unwrap() >= 60);
        }
    }
}
