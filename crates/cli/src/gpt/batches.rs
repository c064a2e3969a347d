//! Batches: windows of a text in tokens, by the loaders of `plimsoll-data`. Which windows make a
//! batch follows from the seed and the loader's position alone, so that a run that is resumed sees
//! what it would have seen.

use std::sync::Arc;

use plimsoll_core::{Device, Error, Result};
use plimsoll_data::{
    Batch as _, DataLoader, Dataset, LoaderOptions, RandomSampler, Subset, TokenDataset,
    TokenOptions, copied_to,
};
use plimsoll_tensor::Tensor;

use super::vocabulary::Tokens;

/// Tokens, and what comes after each of them: both `[batch, context]`.
pub(crate) type Batch = (Tensor, Tensor);

/// Refuses a window that does not fit in one of the parts of a text, of so many tokens each.
pub(crate) fn check_context(learnt: usize, kept: usize, context: usize) -> Result<()> {
    let (part, least) = if learnt < kept { ("learnt", learnt) } else { ("validation", kept) };
    if least > context {
        return Ok(());
    }
    let remedy = match least.saturating_sub(1) {
        0 => String::new(),
        most => format!(", or --context {most} or less"),
    };
    Err(Error::invalid_argument(format!(
        "a window of {context} tokens and the one after it do not fit in the {part} part of the text, which has \
         {least}; give a longer text{remedy}"
    ))
    .in_operation("train"))
}

/// Windows that begin at any token.
fn windows(tokens: Tokens, context: usize) -> Result<TokenDataset> {
    let options = TokenOptions::new().stride(1usize).width(tokens.width);
    TokenDataset::in_memory(tokens.bytes, context, options)
}

/// Windows drawn by chance, in epochs of as many as the text has side by side.
pub(crate) fn drawn(
    tokens: Tokens,
    batch: usize,
    context: usize,
    seed: u64,
) -> Result<DataLoader<Batch>> {
    let side_by_side = tokens.len() / context;
    let windows = windows(tokens, context)?;
    // Every batch is full, so that every step takes the same memory.
    let draws = side_by_side.div_ceil(batch).max(1) * batch;
    let sampler = RandomSampler::new(windows.len(), seed)?.replacement(true).num_samples(draws)?;
    let options = LoaderOptions::new().batch_size(batch).seed(seed);
    DataLoader::with_sampler(windows, sampler, options)
}

/// At most `most` batches that go through the text evenly, the same in each epoch.
pub(crate) fn even(
    tokens: Tokens,
    batch: usize,
    context: usize,
    most: usize,
) -> Result<DataLoader<Batch>> {
    let windows = windows(tokens, context)?;
    let starts = windows.len();
    let count = starts.div_ceil(context).min(most * batch);
    let chosen = (0..count).map(|row| row * starts / count).collect();
    let options = LoaderOptions::new().batch_size(batch);
    DataLoader::new(Subset::new(Arc::new(windows), chosen)?, options)
}

/// A loader's batches on a device, one epoch after the other without an end.
#[track_caller]
pub(crate) fn endless(
    loader: &DataLoader<Batch>,
    device: Device,
) -> impl Iterator<Item = Result<Batch>> {
    loader.epochs().map(move |batch| placed(batch?, device))
}

/// A batch on a device.
pub(crate) fn placed(batch: Batch, device: Device) -> Result<Batch> {
    batch.map_tensors(&mut |tensor| copied_to(&tensor, device))
}

#[cfg(test)]
mod tests {
    use plimsoll_data::TokenWidth;

    use super::*;

    fn counted(length: u8) -> Tokens {
        Tokens { bytes: (0..length).collect(), width: TokenWidth::U8 }
    }

    fn numbers(tensor: &Tensor) -> Vec<i64> {
        tensor.to_vec::<i64>().unwrap()
    }

    #[test]
    fn targets_are_the_tokens_after_and_a_position_is_gone_on_from() {
        let loader = drawn(counted(100), 3, 4, 7).unwrap();
        assert_eq!(loader.len(), Some(9), "25 windows side by side");
        let first: Vec<Vec<i64>> = endless(&loader, Device::cpu())
            .take(20)
            .map(|batch| {
                let (tokens, next) = batch.unwrap();
                assert_eq!((tokens.shape(), next.shape()), (&[3, 4][..], &[3, 4][..]));
                let (tokens, next) = (numbers(&tokens), numbers(&next));
                assert!(tokens.iter().zip(&next).all(|(token, next)| token + 1 == *next));
                tokens
            })
            .collect();
        assert!(first[0] != first[1] && first[0] != first[9], "batches and epochs differ");
        for taken in [1, 9, 10, 18] {
            let loader = drawn(counted(100), 3, 4, 7).unwrap();
            endless(&loader, Device::cpu()).take(taken).for_each(drop);
            let again = drawn(counted(100), 3, 4, 7).unwrap();
            again.set_position(loader.position()).unwrap();
            let next = endless(&again, Device::cpu()).next().unwrap().unwrap().0;
            assert_eq!(numbers(&next), first[taken], "after {taken}");
        }
    }

    #[test]
    fn even_batches_cover_the_text() {
        let starts = |most: usize| -> Vec<i64> {
            let loader = even(counted(41), 3, 4, most).unwrap();
            let epoch = loader.epoch().unwrap();
            epoch.flat_map(|batch| numbers(&batch.unwrap().0.select(1, 0).unwrap())).collect()
        };
        assert_eq!(starts(100), [0, 4, 8, 12, 16, 20, 24, 28, 32, 36].map(|at| at * 37 / 40));
        assert_eq!(starts(2).len(), 6);
    }

    #[test]
    fn every_start_is_drawn_and_none_beyond() {
        let loader = drawn(counted(6), 1, 4, 1).unwrap();
        let mut seen = [0; 2];
        for batch in endless(&loader, Device::cpu()).take(64) {
            seen[numbers(&batch.unwrap().0)[0] as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
    }

    #[test]
    fn a_context_longer_than_the_text_is_refused() {
        assert!(check_context(40, 4, 3).is_ok());
        let error = check_context(40, 3, 3).unwrap_err().to_string();
        assert!(error.contains("validation part"), "{error}");
        assert!(
            error.ends_with("which has 3; give a longer text, or --context 2 or less"),
            "{error}"
        );
        let empty = check_context(0, 0, 3).unwrap_err().to_string();
        assert!(empty.ends_with("give a longer text"), "{empty}");
    }
}
