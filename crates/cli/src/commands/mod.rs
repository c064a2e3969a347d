//! One file a command.

pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod flame;
pub(crate) mod lint;
pub(crate) mod ops;
mod python;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod train;
pub(crate) mod view;
pub(crate) mod watch;
