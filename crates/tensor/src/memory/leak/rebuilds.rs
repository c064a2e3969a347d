//! Hears which lines make their memory of what they made before: `seen = cat([seen, x])` joins a
//! tensor with itself, `kept = kept.iter().map(clone_tensor)` copies a container's. Only while such
//! a line has had more from step to step: hearing costs each operation a little.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use plimsoll_memory::{OriginId, Site};

use super::growth_watch::Place;
use crate::lock::Mutex;
use crate::observe::{Call, CallKind, Observer, Observing, observe};

/// The operation of the registry that joins tensors, and those that copy them.
const JOIN: &str = "cat";
const COPIES: [&str; 3] = ["clone", "to", "contiguous"];

/// Whether an operation makes memory of other memory, by the name by which users call it.
pub(super) fn rebuilds(operation: &str) -> bool {
    const JOINS: [&str; 8] =
        [JOIN, "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack", "column_stack"];
    JOINS.contains(&operation) || copies(operation)
}

/// Whether it copies, so that a line with more of it in each step copies a container.
pub(super) fn copies(operation: &str) -> bool {
    COPIES.contains(&operation)
}

/// Hears what lines are made of as long as it lives.
#[derive(Debug)]
pub(super) struct Hearing {
    sources: Arc<Sources>,
    #[allow(dead_code, reason = "held for its drop")]
    observing: Observing,
}

#[derive(Default)]
struct Sources {
    /// What each line had at the last look.
    expected: Mutex<HashMap<Place, OriginId>>,
    /// Which of it has gone into what the line made since.
    heard: Mutex<HashSet<Place>>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

impl Hearing {
    pub(super) fn begin() -> Hearing {
        let sources = Arc::new(Sources::default());
        Hearing { observing: observe(sources.clone()), sources }
    }

    /// The lines that were made of most of what they had at the last look; `now` is what they have.
    pub(super) fn turn(&self, now: HashMap<Place, OriginId>) -> Vec<OriginId> {
        let had = std::mem::replace(&mut *self.sources.expected.lock(), now);
        let heard = std::mem::take(&mut *self.sources.heard.lock());
        let mut lines: HashMap<OriginId, (usize, usize)> = HashMap::new();
        for (place, line) in had {
            let count = lines.entry(line).or_default();
            *count = (count.0 + usize::from(heard.contains(&place)), count.1 + 1);
        }
        lines.retain(|_, (heard, had)| 2 * *heard > *had);
        lines.into_keys().collect()
    }
}

impl Observer for Sources {
    fn enter(&self, call: &Call<'_>) {
        let makes = call.name == JOIN || copies(&call.name);
        if !makes || !matches!(call.kind, CallKind::Operation { .. }) {
            return;
        }
        let expected = self.expected.lock();
        let own: Vec<Place> = call
            .inputs
            .iter()
            .filter_map(|input| {
                let place = input.storage().watch_key()?;
                let line = *expected.get(&place)?;
                // Another line's memory may have come to lie where what was expected has been.
                let is_it = input.storage().origin_if_free() == Some(line);
                (is_it && is_same_line(line, call.origin)).then_some(place)
            })
            .collect();
        drop(expected);
        self.heard.lock().extend(own);
    }
}

/// Whether two origins are on one line of the program: it may have several calls.
fn is_same_line(one: OriginId, other: OriginId) -> bool {
    let (one, other) = (one.get().site, other.get().site);
    let line = |site: Site| site.resolve().map(|place| (place.line, place.file));
    one == other || line(one).is_some_and(|found| Some(found) == line(other))
}
