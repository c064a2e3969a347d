//! One pass over a loader's batches, and the name under which profilers show what it waits for.
//! What is loaded, and where an epoch stands, is `loader.rs`; the threads are `workers.rs`.

use std::fmt;

use plimsoll_memory::Site;
use plimsoll_tensor::Result;
use plimsoll_tensor::observe::range;

use crate::batch::Batch;
use crate::loader::{DataLoader, Position};
use crate::plan::Plan;
use crate::workers::{carry_out_here, first_place};

// PyTorch's names for its two kinds of iterator, by which profilers find a loop that waits.
const OWN_WAIT: &str = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
const WORKERS_WAIT: &str = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";

/// One pass over a loader's batches. Dropping it early stops the workers and waits until they have
/// let go of every batch.
///
/// A batch that failed is an error in its place; the iterator goes on with the next one.
pub struct Epoch<'a, B: Batch> {
    loader: &'a DataLoader<B>,
    /// The plan, if there are no workers.
    own: Option<Plan<B>>,
    site: Site,
    is_over: bool,
}

impl<'a, B: Batch> Epoch<'a, B> {
    pub(crate) fn new(loader: &'a DataLoader<B>, own: Option<Plan<B>>, site: Site) -> Self {
        Epoch { loader, own, site, is_over: false }
    }
}

impl<B: Batch> fmt::Debug for Epoch<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch(next {:?})", self.loader.position())
    }
}

impl<B: Batch> Iterator for Epoch<'_, B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        if self.is_over {
            return None;
        }
        let name = if self.own.is_some() { OWN_WAIT } else { WORKERS_WAIT };
        let _range = range(self.site, || name.into());
        let batch = match (&mut self.own, &self.loader.workers) {
            (Some(plan), _) => {
                let Position { epoch, batch } = self.loader.position();
                let place = first_place(epoch, batch, self.site);
                plan.next().and_then(|task| carry_out_here(task, place))
            }
            (None, Some(workers)) => workers.take(),
            (None, None) => None,
        };
        let mut state = self.loader.state.lock();
        if batch.is_some() {
            state.position.batch += 1;
        } else {
            state.position = Position { epoch: state.position.epoch + 1, batch: 0 };
            state.is_begun = false;
            self.is_over = true;
        }
        batch
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let done = usize::try_from(self.loader.position().batch).unwrap_or(usize::MAX);
        match self.loader.len() {
            _ if self.is_over => (0, Some(0)),
            Some(all) => (all.saturating_sub(done), Some(all.saturating_sub(done))),
            None => (0, None),
        }
    }
}

impl<B: Batch> Drop for Epoch<'_, B> {
    fn drop(&mut self) {
        if let Some(workers) = &self.loader.workers {
            workers.leave();
        }
        self.own = None;
        self.loader.state.lock().is_running = false;
    }
}
