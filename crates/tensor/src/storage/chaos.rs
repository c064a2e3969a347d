//! Chaos, for tests: between operations some storage that nobody has pinned loses its device
//! memory, at random but from a seed. Whatever an operation assumes about memory staying put then
//! fails in a test, not in a user's run.

use std::sync::atomic::{AtomicU64, Ordering};

use super::reclaim::Reclaimable;

/// The chaos of one device; off unless a test, or the configuration key `chaos_seed`, turns it on.
#[derive(Default)]
pub(crate) struct Chaos {
    /// The state of the random numbers; 0 while off.
    state: AtomicU64,
}

impl Chaos {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }

    /// Turns it on with a seed, or off.
    pub(crate) fn set(&self, seed: Option<u64>) {
        self.state.store(seed.map_or(0, |seed| seed | 1 << 63), Ordering::Relaxed);
    }

    fn random(&self) -> u64 {
        let step = |x: u64| x.wrapping_add(0x9E37_79B9_7F4A_7C15) | 1 << 63;
        let x = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |x| (x != 0).then(|| step(x)));
        let mut z = x.unwrap_or(0);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Takes up to two storages away, dropping or spilling.
    #[cold]
    pub(crate) fn strike(&self, reclaimable: &Reclaimable) {
        for _ in 0..2 {
            let random = self.random();
            if let Some(storage) = reclaimable.pick(random >> 8) {
                storage.try_take_back(random & 1 == 0);
            }
        }
    }
}
