//! What the allocator stands on: locks, the clock, surviving `fork`, how much memory the machine
//! has, and the sources that segments come from; and mapped files, which tensors may lie on.

pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod lock;
pub(crate) mod mapped_file;
pub(crate) mod prefetch;
pub(crate) mod source;
pub(crate) mod sources;
pub(crate) mod system_memory;
