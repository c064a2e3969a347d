//! A snapshot: everything an arena knows at one moment, as plain data that outlives it. Written as
//! a pickle in PyTorch's layout, so that its viewers open it, or as JSON of the same layout.
//!
//! Taking one copies under the arena's lock; naming origins and writing happen without it. The
//! layout is `snapshot/layout.rs`; the formats are `snapshot/pickle.rs` and `snapshot/json.rs`.
//! Reading snapshots and making reports of them is the report crate's work.

mod frames;
mod json;
mod layout;
mod pickle;
mod sink;
pub(crate) mod view;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use plimsoll_core::{Error, ErrorKind, Result};

use crate::allocator::arena::Arena;
use crate::book::history::Entry;
use crate::book::stats::Stats;
use crate::configuration::Configuration;
use crate::origin::annotations::{self, Annotation};
use crate::snapshot::view::SegmentView;

/// One arena at one moment: blocks, events and counters agree with each other.
#[derive(Clone, Debug)]
pub struct DeviceSnapshot {
    /// The arena's name, such as `cpu`, `cuda:0` or `cpu:pinned`.
    pub device: String,
    /// Every segment with its blocks, in order of address.
    pub segments: Vec<SegmentView>,
    /// The recorded events, oldest first.
    pub entries: Vec<Entry>,
    /// How many events the history keeps at most.
    pub history_entries: usize,
    /// Every counter.
    pub stats: Stats,
}

/// One or more arenas with their settings and the annotations of the process.
///
/// ```
/// use plimsoll_core::Device;
/// use plimsoll_memory::{Arena, Configuration, HistoryLevel, HostSource, OriginId, Request, Site, Snapshot};
///
/// let configuration = Configuration::builder().history(HistoryLevel::All).build()?;
/// let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
/// let block = arena.allocate(&Request::new(1000, OriginId::intern("zeros", Site::caller())))?;
/// let snapshot = Snapshot::take(&[arena], &configuration);
/// assert_eq!(snapshot.devices[0].segments[0].blocks[0].requested_bytes, 1000);
///
/// let mut pickle = Vec::new();
/// snapshot.write_pickle(&mut pickle)?;
/// assert_eq!(pickle[..2], [0x80, 4]);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The arenas; PyTorch's device index is the place in this list.
    pub devices: Vec<DeviceSnapshot>,
    /// Steps, phases and marked spans.
    pub annotations: Vec<Annotation>,
    /// The settings in force.
    pub configuration: Configuration,
}

impl Snapshot {
    /// Takes each arena at one moment of its own. Only the copying holds an arena's lock.
    pub fn take(arenas: &[&'static Arena], configuration: &Configuration) -> Snapshot {
        Snapshot {
            devices: arenas.iter().map(|arena| arena.device_snapshot()).collect(),
            annotations: annotations::kept(),
            configuration: configuration.clone(),
        }
    }

    /// Writes PyTorch's pickle layout, protocol 4.
    pub fn write_pickle(&self, out: impl Write) -> Result<()> {
        let mut pickle = pickle::Pickle::new(out);
        layout::write(self, &mut pickle);
        Ok(pickle.finish()?)
    }

    /// Writes JSON of the same layout; tuples are arrays.
    pub fn write_json(&self, out: impl Write) -> Result<()> {
        let mut json = json::Json::new(out);
        layout::write(self, &mut json);
        Ok(json.finish()?)
    }

    /// Writes a file: JSON if its name ends in `.json`, a pickle otherwise.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let failed = |cause: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot write the snapshot `{}`", path.display()))
                .because(cause)
        };
        let file = BufWriter::new(File::create(path).map_err(failed)?);
        match path.extension().is_some_and(|extension| extension == "json") {
            true => self.write_json(file),
            false => self.write_pickle(file),
        }
    }
}

impl Arena {
    /// Segments, events and counters, copied under one hold of the lock.
    fn device_snapshot(&self) -> DeviceSnapshot {
        let mut state = self.state();
        state.finish_deferred();
        DeviceSnapshot {
            device: self.name(),
            segments: state.segment_views(),
            entries: state.ledger.history.entries(),
            history_entries: state.ledger.history.max_entries(),
            stats: state.ledger.stats(),
        }
    }
}
