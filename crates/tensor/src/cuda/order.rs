//! Positions in the order of their keys, by a stable radix sort in the workspace: how values that
//! go to one place come together without atomics.

use plimsoll_core::{Error, Result};

use super::CudaLaunch;
use super::in_workspace::Space;
use super::sort::Radix;

/// A sort of `count` keys, none above `highest`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) count: usize,
    pub(super) highest: usize,
}

impl Order {
    fn radix(self) -> Radix {
        let bits = usize::BITS - self.highest.leading_zeros();
        Radix { rows: 1, len: self.count, bits: bits as usize, positions: true }
    }

    /// Whether keys take 64 bits.
    pub(super) fn is_wide(self) -> bool {
        self.radix().key_bytes() == 8
    }

    /// The kernels' name for the keys' type.
    pub(super) fn key_type(self) -> &'static str {
        self.radix().key_type()
    }

    pub(super) fn workspace_bytes(self) -> usize {
        self.radix().workspace_bytes()
    }

    /// Takes the sort's memory off `space`; gives its address, where the keys go.
    pub(super) fn keys_in(self, space: &mut Space) -> usize {
        space.take(self.workspace_bytes())
    }

    /// Sorts the keys that were written to [`Order::keys_in`]; gives the addresses of the sorted
    /// keys and of their positions (32 bits each).
    pub(super) fn run(self, launch: &CudaLaunch<'_>, keys: usize) -> Result<[usize; 2]> {
        if u32::try_from(self.count).is_err() {
            return Err(Error::unsupported(
                launch.operation,
                format!("{} indices are more than CUDA kernels sort; split them", self.count),
            ));
        }
        let sorted = self.radix().run(launch, keys)?;
        Ok([sorted.keys[0], sorted.positions[0]])
    }
}
