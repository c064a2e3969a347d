//! The book of an arena. Every change is an [`Event`](event::Event) that the ledger applies;
//! statistics, breakdowns and history are its parts. Nothing here knows how memory is handed out.

pub(crate) mod breakdown;
pub(crate) mod event;
pub(crate) mod history;
pub(crate) mod ledger;
pub(crate) mod pool;
pub(crate) mod stamp;
pub(crate) mod stats;
pub(crate) mod summary;
pub(crate) mod watch;
