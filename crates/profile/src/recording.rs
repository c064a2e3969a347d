//! What a session recorded, and everything that is read from it.

use std::sync::Arc;

use plimsoll_core::Result;

use crate::advice::{self, Advice};
use crate::averages::{Averages, Grouping};
use crate::build::Builder;
use crate::event::{Event, MemoryPoint};
use crate::log::ThreadLog;
use crate::profile::Profile;
use crate::table::TableOptions;

/// A session that is over, as it was written down.
pub(crate) struct Finished {
    pub(crate) asked: Profile,
    pub(crate) began_unix_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) logs: Vec<Arc<ThreadLog>>,
}

/// What a session recorded.
///
/// ```
/// use plimsoll_profile::{Profile, range};
/// use plimsoll_tensor::{DType, Tensor};
/// let recording = Profile::new().memory(true).run(|| {
///     let _range = range("work");
///     Tensor::ones(&[256], DType::F32)?.exp().map(drop)
/// })?;
/// let names: Vec<&str> = recording.events().iter().map(|event| event.name.as_str()).collect();
/// assert_eq!(names[..2], ["work", "aten::ones"]);
/// assert_eq!(recording.events()[0].cpu_bytes, 0); // all was freed again
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recording {
    pub(crate) asked: Profile,
    pub(crate) began_unix_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) threads: Vec<(u64, Option<String>)>,
    pub(crate) events: Vec<Event>,
    pub(crate) memory: Vec<MemoryPoint>,
}

impl Recording {
    pub(crate) fn new(finished: Finished) -> Recording {
        let Finished { asked, began_unix_ns, ended_ns, logs } = finished;
        let mut builder = Builder::new(asked, ended_ns);
        for log in &logs {
            // Taken out first: building waits for devices, and threads may still write.
            let entries = std::mem::take(&mut *log.entries.lock());
            builder.add_thread(log.thread, entries);
        }
        let threads = logs.iter().map(|log| (log.thread, log.name.clone())).collect();
        let (events, memory) = builder.finish();
        Recording { asked, began_unix_ns, ended_ns, threads, events, memory }
    }

    /// All events, by their beginnings.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What the arenas' books said, by time; empty unless memory was asked for.
    pub fn memory(&self) -> &[MemoryPoint] {
        &self.memory
    }

    /// How long the session was, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.ended_ns
    }

    /// Events added up by name: PyTorch's `key_averages`.
    pub fn averages(&self, grouping: Grouping) -> Averages {
        Averages::new(&self.events, grouping, self.asked.memory, self.asked.flops)
    }

    /// PyTorch's table of the averages by name.
    ///
    /// ```
    /// use plimsoll_profile::{Profile, TableOptions};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let recording = Profile::new().run(|| Tensor::ones(&[8], DType::F32)?.exp().map(drop))?;
    /// let table = recording.table(&TableOptions::new().sort_by("self_cpu_time_total"))?;
    /// assert!(table.lines().any(|line| line.trim_start().starts_with("aten::exp ")));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn table(&self, options: &TableOptions) -> Result<String> {
        self.averages(Grouping::default()).table(options)
    }

    /// Why the program is slow, in words, the largest share first.
    pub fn advice(&self) -> Vec<Advice> {
        advice::of(self)
    }

    /// The table, and the advice under it.
    ///
    /// ```
    /// use plimsoll_profile::{Profile, TableOptions};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let work = || Tensor::ones(&[1 << 16], DType::F32)?.exp().map(drop);
    /// let recording = Profile::new().run(work)?;
    /// let report = recording.report(&TableOptions::new().sort_by("cpu_time_total"))?;
    /// assert!(report.contains("of the host's time"), "{report}");
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn report(&self, options: &TableOptions) -> Result<String> {
        let mut report = self.table(options)?;
        for advice in self.advice() {
            report.push_str(&format!("- {advice}\n"));
        }
        Ok(report)
    }
}
