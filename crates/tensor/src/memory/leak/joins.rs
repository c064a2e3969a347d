//! Hears which lines join a tensor with one that they made before (`seen = cat([seen, x])`). Only
//! while a line that joins has become longer from step to step: hearing costs each operation a
//! little.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use plimsoll_memory::OriginId;

use super::growth_watch::Place;
use crate::lock::Mutex;
use crate::observe::{Call, CallKind, Observer, Observing, observe};

/// The operation of the registry that joins tensors.
const JOIN: &str = "cat";

/// Whether an operation joins tensors, by the name by which users call it.
pub(super) fn joins(operation: &str) -> bool {
    const NAMES: [&str; 8] =
        [JOIN, "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack", "column_stack"];
    NAMES.contains(&operation)
}

/// Hears joins as long as it lives.
#[derive(Debug)]
pub(super) struct Hearing {
    joins: Arc<Joins>,
    #[allow(dead_code, reason = "held for its drop")]
    observing: Observing,
}

#[derive(Default)]
struct Joins {
    /// What each line had at the last look.
    expected: Mutex<HashMap<Place, OriginId>>,
    heard: Mutex<HashSet<OriginId>>,
}

impl fmt::Debug for Joins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joins").finish_non_exhaustive()
    }
}

impl Hearing {
    pub(super) fn begin() -> Hearing {
        let joins = Arc::new(Joins::default());
        Hearing { observing: observe(joins.clone()), joins }
    }

    /// The lines that were made of what they had at the last look; `now` is what they have.
    pub(super) fn turn(&self, now: HashMap<Place, OriginId>) -> HashSet<OriginId> {
        *self.joins.expected.lock() = now;
        std::mem::take(&mut *self.joins.heard.lock())
    }
}

impl Observer for Joins {
    fn enter(&self, call: &Call<'_>) {
        if call.name != JOIN || !matches!(call.kind, CallKind::Operation { .. }) {
            return;
        }
        let expected = self.expected.lock();
        let lines = call.inputs.iter().filter_map(|input| {
            let key = input.storage().watch_key()?;
            expected.get(&key).copied()
        });
        let site = call.origin.get().site;
        let own: Vec<OriginId> = lines.filter(|line| line.get().site == site).collect();
        drop(expected);
        self.heard.lock().extend(own);
    }
}
