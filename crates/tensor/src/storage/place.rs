//! Where a storage's bytes are: on their device, in slower memory, nowhere but in a recipe, or with somebody else.

use plimsoll_memory::Block;

use super::foreign::Foreign;
use super::recipe::Recipe;

/// The place of a storage's bytes.
pub(crate) enum Place {
    /// In the device's own memory.
    Resident(Block),
    /// Moved to host memory.
    Spilled(Block),
    /// Thrown away; the recipe makes them again.
    Dropped(Box<Recipe>),
    /// In memory that is not ours.
    Foreign(Foreign),
    /// On the way from one place to another; seen only by whoever holds the lock.
    Moving,
}

impl Place {
    /// The block that holds the bytes, if one does.
    pub(crate) fn block(&self) -> Option<&Block> {
        match self {
            Place::Resident(block) | Place::Spilled(block) => Some(block),
            Place::Dropped(_) | Place::Foreign(_) | Place::Moving => None,
        }
    }
}
