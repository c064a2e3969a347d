//! The figures of a running program, for somebody who looks at it from another terminal: what it
//! holds by kind, line and module, what grows a step, and how long a step takes.
//!
//! A program serves them ([`Server`], with [`ledger_figures`] for Plimsoll's own programs) on a
//! Unix socket that only the same user can open; `plimsoll top` asks ([`Connection`],
//! [`programs`]). PyTorch programs under `plimsoll watch --live` serve the same from Python
//! (`plimsoll/watch/_live.py`). What is said on the socket is in `figures.rs`, where it lies in
//! `folder.rs`; `system.rs` has the questions to the operating system, the terminal's among them.

mod figures;
mod folder;
mod ledger;
#[cfg(unix)]
mod socket;
#[cfg(not(unix))]
#[path = "no_socket.rs"]
mod socket;
mod steps;
mod system;

pub use figures::{Figures, Growing, Level, Part, Process, Row, VERSION};
pub use folder::folders;
pub use ledger::ledger_figures;
pub use socket::{Connection, Found, Server, programs};
pub use steps::step_ended;
pub use system::{RawTerminal, terminal_size};
