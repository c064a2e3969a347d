//! Plimsoll memory.
