//! One file a command.

pub(crate) mod doctor;
pub(crate) mod ops;
pub(crate) mod train;
