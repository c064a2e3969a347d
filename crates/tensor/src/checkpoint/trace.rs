//! The operations that a thread launched, in words: what `debug` shows of both runs of a
//! checkpointed function.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use crate::lock::Mutex;
use crate::observe::{Launch, LaunchTime, Observer, Observing, observe};

/// A list of operations that grows while it listens.
#[derive(Default)]
pub(super) struct Trace(Arc<Mutex<Vec<String>>>);

/// Hears of one thread's launches.
struct Listener {
    thread: ThreadId,
    list: Arc<Mutex<Vec<String>>>,
}

impl Trace {
    /// Lists what this thread launches until the guard drops.
    pub(super) fn listen(&self) -> Observing {
        observe(Arc::new(Listener { thread: thread::current().id(), list: self.0.clone() }))
    }

    pub(super) fn operations(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl Observer for Listener {
    fn begin(&self, launch: &Launch) {
        if thread::current().id() == self.thread {
            let line = format!(
                "{} ({} bytes read, {} written)",
                launch.origin, launch.bytes_read, launch.bytes_written
            );
            self.list.lock().push(line);
        }
    }

    fn end(&self, _: &Launch, _: &LaunchTime) {}
}
