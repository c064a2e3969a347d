//! Epoch after epoch: what a program iterates over that counts steps and not epochs. One epoch is
//! `epoch.rs`.

use std::fmt;

use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::Result;

use crate::batch::Batch;
use crate::epoch::Epoch;
use crate::loader::DataLoader;

/// The batches of one epoch after the other, without an end: see [`DataLoader::epochs`].
pub struct Epochs<'a, B: Batch> {
    loader: &'a DataLoader<B>,
    epoch: Option<Epoch<'a, B>>,
    site: Site,
}

impl<B: Batch> DataLoader<B> {
    /// The batches of one epoch after the other, each in its own order, for programs that count
    /// steps. It ends only where an epoch has no batch.
    ///
    /// A prefetcher over it copies ahead across the end of an epoch too.
    ///
    /// ```
    /// use plimsoll_data::{DataLoader, InMemory, LoaderOptions};
    ///
    /// let options = LoaderOptions::new().batch_size(2usize);
    /// let loader = DataLoader::new(InMemory(vec![1i64, 2, 3]), options)?;
    /// let mut sums = Vec::new();
    /// for batch in loader.epochs().take(5) {
    ///     sums.push(batch?.sum()?.item::<i64>()?);
    /// }
    /// assert_eq!(sums, [3, 3, 3, 3, 3]);
    /// assert_eq!(loader.position().epoch, 2);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn epochs(&self) -> Epochs<'_, B> {
        Epochs { loader: self, epoch: None, site: Site::caller() }
    }
}

impl<B: Batch> fmt::Debug for Epochs<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epochs(next {:?})", self.loader.position())
    }
}

impl<B: Batch> Iterator for Epochs<'_, B> {
    type Item = Result<B>;

    /// The next batch; an epoch that cannot begin is an error.
    fn next(&mut self) -> Option<Result<B>> {
        if let Some(batch) = self.epoch.as_mut().and_then(Iterator::next) {
            return Some(batch);
        }
        // The first may be one that a position was set at the end of.
        for _ in 0..2 {
            // The workers serve one epoch at a time.
            self.epoch = None;
            let epoch = match with_site(self.site, || self.loader.epoch()) {
                Ok(epoch) => self.epoch.insert(epoch),
                Err(error) => return Some(Err(error)),
            };
            if let Some(batch) = epoch.next() {
                return Some(batch);
            }
        }
        None
    }
}
