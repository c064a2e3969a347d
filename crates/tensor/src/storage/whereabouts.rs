//! Where a storage's bytes are: on their device, in slower memory, nowhere but in a recipe, or with
//! somebody else.

use plimsoll_memory::{Block, Fence};

use super::foreign::Foreign;
use super::recipe::Recipe;

/// The place of a storage's bytes.
pub(crate) enum Whereabouts {
    /// In the device's own memory.
    Resident(Block),
    /// Moved to host memory.
    Spilled(Spilled),
    /// Thrown away; the recipe makes them again.
    Dropped(Box<Recipe>),
    /// In memory that is not ours.
    Foreign(Foreign),
    /// On the way from one place to another; seen only by whoever holds the lock.
    Moving,
}

/// Bytes in host memory, there once the device has passed the fence.
pub(crate) struct Spilled {
    pub(super) block: Block,
    pub(super) arrives: Fence,
    /// Bytes that the device's block had, after rounding.
    pub(super) home_bytes: usize,
}

impl Whereabouts {
    /// The block that holds the bytes, if one does.
    pub(crate) fn block(&self) -> Option<&Block> {
        match self {
            Whereabouts::Resident(block) => Some(block),
            Whereabouts::Spilled(spilled) => Some(&spilled.block),
            Whereabouts::Dropped(_) | Whereabouts::Foreign(_) | Whereabouts::Moving => None,
        }
    }
}
