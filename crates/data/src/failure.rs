//! What went wrong while a batch was made, with its origin: the worker, the batch, the sample and
//! the line. Errors keep their kind; a panic becomes an error, and its worker lives on.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Once;

use plimsoll_memory::Site;
use plimsoll_tensor::{Error, ErrorKind};

use crate::collate::Misfit;

/// Where a batch failed; the cause of the error that a loader gives for it
/// ([`plimsoll_tensor::Error::detail`]). The error's own cause, if it had one, is its source.
#[derive(Debug)]
pub struct BatchFailure {
    /// The worker's number; `None` if the loader has no workers.
    pub worker: Option<usize>,
    /// The epoch.
    pub epoch: u64,
    /// The batch in its epoch.
    pub batch: u64,
    /// The sample's number in the dataset (for a stream, in its epoch), if it was one sample that
    /// failed.
    pub sample: Option<usize>,
    /// For a panic, the line that panicked; for an error, the line that iterates over the loader.
    pub line: String,
    /// Whether it was a panic.
    pub panicked: bool,
    error: Error,
}

impl fmt::Display for BatchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)
    }
}

impl std::error::Error for BatchFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Which batch is made, where, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) worker: Option<usize>,
    pub(crate) epoch: u64,
    pub(crate) batch: u64,
    pub(crate) site: Site,
}

impl Place {
    /// The error that the consumer sees for `error`.
    pub(crate) fn failed(self, error: Error, sample: Option<usize>) -> Error {
        let line = self.site.to_string();
        self.told(error, sample, line, false)
    }

    /// The error that the consumer sees for a panic.
    pub(crate) fn panicked(self, panic: &(dyn Any + Send), sample: Option<usize>) -> Error {
        let said = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(said), _) => (*said).to_string(),
            (_, Some(said)) => said.clone(),
            _ => "a panic without words".to_string(),
        };
        let line = PANIC_LINE.take().unwrap_or_else(|| "unknown line".to_string());
        let error = Error::new(ErrorKind::Driver, format!("panicked: {said}"));
        self.told(error, sample, line, true)
    }

    fn told(self, error: Error, sample: Option<usize>, line: String, panicked: bool) -> Error {
        let Place { worker, epoch, batch, .. } = self;
        let who = worker.map_or_else(|| "the loader".to_string(), |w| format!("worker {w}"));
        let which = sample.map_or_else(String::new, |sample| format!(", sample {sample}"));
        let what = if panicked { "panicked at" } else { "failed, asked for at" };
        let message = format!(
            "{who} {what} {line}: batch {batch} of epoch {epoch}{which}; the loader goes on with the next batch"
        );
        Error::new(error.kind(), message).in_operation("DataLoader").because(BatchFailure {
            worker,
            epoch,
            batch,
            sample,
            line,
            panicked,
            error,
        })
    }
}

/// The dataset's number of the sample that did not fit its batch, if that is what happened.
pub(crate) fn misfitting(error: &Error, samples: &[usize]) -> Option<usize> {
    error.detail::<Misfit>().and_then(|misfit| samples.get(misfit.place).copied())
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    static PANIC_LINE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Remembers the lines of this thread's panics from now on. A caught panic does not tell its line;
/// only a hook hears of it. The hook is put before the one in force, which is still called.
pub(crate) fn remember_panic_lines() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if IS_WORKER.try_with(Cell::get).unwrap_or(false) {
                let line = panic.location().map(ToString::to_string);
                let _ = PANIC_LINE.try_with(|kept| *kept.borrow_mut() = line);
            }
            before(panic);
        }));
    });
    IS_WORKER.set(true);
}
