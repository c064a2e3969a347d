//! Batches: windows of a text in tokens. Which windows make batch number n follows from the seed
//! and n alone, so that a run that is resumed sees what it would have seen.

use plimsoll_core::{Device, Error, Result};
use plimsoll_tensor::Tensor;

/// Even numbers from a seed (SplitMix64).
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64, stream: u64) -> Draws {
        let mut draws = Draws(seed ^ stream.wrapping_mul(0xD134_2543_DE82_EF95));
        draws.next();
        draws
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to `bound`, without it.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// From 0 to 1, without it.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Windows of a text.
#[derive(Debug)]
pub(crate) struct Batches {
    tokens: Vec<i64>,
    batch: usize,
    context: usize,
    seed: u64,
}

/// Tokens, and what comes after each of them: both `[batch, context]`.
pub(crate) type Batch = (Tensor, Tensor);

impl Batches {
    pub(crate) fn new(
        tokens: Vec<i64>,
        batch: usize,
        context: usize,
        seed: u64,
    ) -> Result<Batches> {
        if tokens.len() <= context {
            return Err(Error::invalid_argument(format!(
                "a window of {context} tokens and the one after it do not fit in a text of {}; give a longer text, or \
                 --context {} or less",
                tokens.len(),
                tokens.len().saturating_sub(1)
            ))
            .in_operation("train"));
        }
        Ok(Batches { tokens, batch, context, seed })
    }

    /// Batch number `number`, drawn by chance.
    pub(crate) fn drawn(&self, number: u64, device: Device) -> Result<Batch> {
        let mut draws = Draws::new(self.seed, number);
        let starts = self.tokens.len() - self.context;
        self.windows((0..self.batch).map(|_| draws.below(starts)), device)
    }

    /// At most `most` batches that go through the text evenly, the same each time.
    pub(crate) fn even(&self, most: usize, device: Device) -> impl Iterator<Item = Result<Batch>> {
        let starts = self.tokens.len() - self.context;
        let whole = starts.div_ceil(self.context).max(1);
        let count = whole.min(most * self.batch);
        let batches = count.div_ceil(self.batch);
        (0..batches).map(move |batch| {
            let rows = batch * self.batch..count.min((batch + 1) * self.batch);
            self.windows(rows.map(|row| row * starts / count), device)
        })
    }

    fn windows(&self, starts: impl Iterator<Item = usize>, device: Device) -> Result<Batch> {
        let starts: Vec<usize> = starts.collect();
        let sizes = [starts.len() as i64, self.context as i64];
        let part = |ahead: usize| -> Result<Tensor> {
            let rows = starts.iter().map(|start| start + ahead);
            let tokens: Vec<i64> =
                rows.flat_map(|row| self.tokens[row..row + self.context].iter().copied()).collect();
            Ok(Tensor::from_slice(&tokens, &sizes, device)?.mark_input())
        };
        Ok((part(0)?, part(1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(length: i64) -> Batches {
        Batches::new((0..length).collect(), 3, 4, 7).unwrap()
    }

    #[test]
    fn targets_are_the_tokens_after() {
        let batches = counted(100);
        let (tokens, next) = batches.drawn(5, Device::cpu()).unwrap();
        assert_eq!((tokens.shape(), next.shape()), (&[3, 4][..], &[3, 4][..]));
        let (tokens, next) = (tokens.to_vec::<i64>().unwrap(), next.to_vec::<i64>().unwrap());
        assert!(tokens.iter().zip(&next).all(|(token, next)| token + 1 == *next));
        let again = batches.drawn(5, Device::cpu()).unwrap().0.to_vec::<i64>().unwrap();
        let other = batches.drawn(6, Device::cpu()).unwrap().0.to_vec::<i64>().unwrap();
        assert_eq!(again, tokens);
        assert_ne!(other, tokens);
    }

    #[test]
    fn even_batches_cover_the_text() {
        let batches = counted(41);
        let starts: Vec<i64> = batches
            .even(100, Device::cpu())
            .flat_map(|batch| {
                let tokens = batch.unwrap().0;
                tokens.select(1, 0).unwrap().contiguous().unwrap().to_vec::<i64>().unwrap()
            })
            .collect();
        assert_eq!(starts, [0, 4, 8, 12, 16, 20, 24, 28, 32, 36].map(|start| start * 37 / 40));
        assert_eq!(batches.even(2, Device::cpu()).count(), 2);
    }

    #[test]
    fn every_start_is_drawn_and_none_beyond() {
        let batches = Batches::new((0..6).collect(), 1, 4, 1).unwrap();
        let mut seen = [0; 2];
        for number in 0..64 {
            let first = batches.drawn(number, Device::cpu()).unwrap().0.to_vec::<i64>().unwrap()[0];
            seen[first as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
    }

    #[test]
    fn a_context_longer_than_the_text_is_refused() {
        let error = Batches::new(vec![1, 2, 3], 1, 3, 0).unwrap_err().to_string();
        assert!(error.contains("--context 2 or less"), "{error}");
    }
}
