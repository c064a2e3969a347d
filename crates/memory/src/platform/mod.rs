//! What the allocator stands on: locks, the clock, surviving `fork`, how much memory the machine
//! has, and the sources that segments come from.

pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod lock;
pub(crate) mod prefetch;
pub(crate) mod source;
pub(crate) mod sources;
pub(crate) mod system_memory;
