//! Who asked for memory: operation, line, module path and phase, interned to a small number that
//! every block carries. Made on every allocation, so a small cache on each thread answers almost
//! always; the words are looked up only when a report is made.
//!
//! The training step is not part of it (it would make every step a new origin): blocks and events
//! carry it beside the origin.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;

use crate::origin::context::{ModulePath, Phase, current_module, current_operation, current_phase};
use crate::origin::site::Site;
use crate::platform::lock::Lock;

/// Who asked for memory, in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The operation, as the user called it, or else as the registry names it.
    pub operation: &'static str,
    /// The line of the user's program.
    pub site: Site,
    /// The module it ran in.
    pub module: ModulePath,
    /// The phase of training it ran in.
    pub phase: Phase,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.operation, self.site)?;
        if !self.module.is_root() {
            write!(f, " in {}", self.module)?;
        }
        match self.phase {
            Phase::Other => Ok(()),
            phase => write!(f, " ({phase})"),
        }
    }
}

/// An interned [`Origin`].
///
/// ```
/// use plimsoll_memory::{OriginId, Site};
/// let origin = OriginId::intern("add", Site::caller());
/// assert_eq!(origin.get().operation, "add");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(u32);

/// Every origin seen. Number 0 is [`OriginId::UNKNOWN`], so entry `n` has number `n + 1`.
#[derive(Debug, Default)]
pub(crate) struct OriginTable {
    origins: Vec<Origin>,
    numbers: HashMap<Origin, u32>,
}

pub(crate) static ORIGINS: Lock<Option<OriginTable>> = Lock::new(None);

const UNKNOWN: Origin = Origin {
    operation: "unknown",
    site: Site::Unknown,
    module: ModulePath::ROOT,
    phase: Phase::Other,
};

/// What the cache compares: addresses instead of texts. Two addresses may hold the same text, which
/// costs a second entry here and nothing else; the table compares texts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    operation: usize,
    operation_len: u32,
    context: u32,
    site: u64,
}

#[derive(Clone, Copy)]
struct Cached {
    key: Key,
    id: OriginId,
}

/// Direct-mapped: a collision only costs a look-up in the table. 256 entries of 32 bytes fit in L1.
const CACHE_ENTRIES: usize = 256;

const EMPTY: Cached = Cached {
    // No text lies at address 0, so no key equals this one.
    key: Key { operation: 0, operation_len: 0, context: 0, site: 0 },
    id: OriginId::UNKNOWN,
};

thread_local! {
    static CACHE: [Cell<Cached>; CACHE_ENTRIES] = const { [const { Cell::new(EMPTY) }; CACHE_ENTRIES] };
}

impl Key {
    #[inline(always)]
    fn new(operation: &'static str, site: Site, module: ModulePath, phase: Phase) -> Key {
        Key {
            operation: operation.as_ptr().addr(),
            operation_len: operation.len() as u32,
            // Modules number fewer than 2^29: each is a heap text, so memory ends long before.
            context: module.number() << 3 | phase as u32,
            site: site.bits(),
        }
    }

    #[inline(always)]
    fn slot(&self) -> usize {
        let mixed = self.site ^ (self.operation as u64).rotate_left(21) ^ u64::from(self.context);
        // Fibonacci hashing: the multiplier spreads the low bits into the high ones.
        (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
    }
}

impl OriginId {
    /// Nobody said who asked.
    pub const UNKNOWN: OriginId = OriginId(0);

    /// The number of this operation at this line, in the module and phase in force on this thread,
    /// and under the name by which the user called it
    /// ([`enter_operation`](crate::enter_operation)).
    #[inline]
    pub fn intern(operation: &'static str, site: Site) -> OriginId {
        let operation = current_operation().unwrap_or(operation);
        let (module, phase) = (current_module(), current_phase());
        let key = Key::new(operation, site, module, phase);
        let cached = CACHE.try_with(|cache| cache[key.slot()].get());
        match cached {
            Ok(cached) if cached.key == key => cached.id,
            _ => intern_slow(key, Origin { operation, site, module, phase }),
        }
    }

    /// The same operation, line and phase in another module: of a parameter, which was made before
    /// anything was called, in the module that it belongs to.
    ///
    /// ```
    /// use plimsoll_memory::{OriginId, Site, current_module, enter_module};
    /// let made = OriginId::intern("empty", Site::caller());
    /// let _module = enter_module("encoder");
    /// let owned = made.in_module(current_module());
    /// assert_eq!(owned.get().module.to_string(), "encoder");
    /// assert_eq!(owned.get().site, made.get().site);
    /// ```
    pub fn in_module(self, module: ModulePath) -> OriginId {
        let origin = Origin { module, ..self.get() };
        intern_slow(Key::new(origin.operation, origin.site, module, origin.phase), origin)
    }

    /// The origin in full.
    pub fn get(self) -> Origin {
        let Some(entry) = (self.0 as usize).checked_sub(1) else { return UNKNOWN };
        let table = ORIGINS.lock();
        table.as_ref().and_then(|table| table.origins.get(entry)).copied().unwrap_or(UNKNOWN)
    }

    /// Its place in the table of origins.
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// The origin with a number that [`OriginId::number`] gave; any other reads as unknown.
    pub const fn from_number(number: usize) -> OriginId {
        OriginId(number as u32)
    }
}

#[cold]
#[inline(never)]
fn intern_slow(key: Key, origin: Origin) -> OriginId {
    let id = {
        let mut table = ORIGINS.lock();
        let table = table.get_or_insert_default();
        match table.numbers.get(&origin) {
            Some(&number) => OriginId(number),
            None => match u32::try_from(table.origins.len() + 1) {
                Ok(number) => {
                    table.origins.push(origin);
                    table.numbers.insert(origin, number);
                    OriginId(number)
                }
                Err(_) => OriginId::UNKNOWN,
            },
        }
    };
    let _ = CACHE.try_with(|cache| cache[key.slot()].set(Cached { key, id }));
    id
}

impl fmt::Display for OriginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl fmt::Debug for OriginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OriginId({}: {})", self.0, self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::context::{enter_module, enter_phase};

    #[test]
    fn equal_origins_have_one_number_and_others_differ() {
        let site = Site::caller();
        let first = OriginId::intern("add", site);
        assert_eq!(OriginId::intern("add", site), first);
        assert_ne!(OriginId::intern("mul", site), first);
        assert_ne!(OriginId::intern("add", Site::Foreign(9)), first);
        let _module = enter_module("origin_test");
        let inside = OriginId::intern("add", site);
        assert_ne!(inside, first);
        let _phase = enter_phase(Phase::Backward);
        assert_ne!(OriginId::intern("add", site), inside);
        assert_eq!(inside.get().module.to_string(), "origin_test");
    }

    #[test]
    fn threads_agree_on_numbers() {
        let site = Site::Foreign(77);
        let here = OriginId::intern("threads", site);
        let there = std::thread::spawn(move || OriginId::intern("threads", site)).join().unwrap();
        assert_eq!(here, there);
    }

    #[test]
    fn more_origins_than_cache_entries_stay_apart() {
        let many = if cfg!(miri) { 300 } else { 2000 };
        let ids: Vec<_> =
            (0..many).map(|n| OriginId::intern("many", Site::Foreign(10_000 + n))).collect();
        for (n, id) in (0..many).zip(&ids) {
            assert_eq!(id.get().site, Site::Foreign(10_000 + n));
            assert_eq!(OriginId::intern("many", Site::Foreign(10_000 + n)), *id);
        }
    }

    #[test]
    fn says_who_in_words() {
        let _module = enter_module("says");
        let _phase = enter_phase(Phase::Forward);
        let id = OriginId::intern("matmul", Site::Foreign(5));
        assert_eq!(id.to_string(), "matmul at foreign frame 5 in says (forward)");
        assert_eq!(OriginId::UNKNOWN.to_string(), "unknown at unknown line");
    }
}
