//! Plimsoll's profiler: what a program spent its time and its bytes on, as PyTorch's profiler shows
//! it, and why it is slow, in words.
//!
//! It is an observer of the one path that every operation takes: `session.rs` writes down what it
//! hears, `log.rs` is that writing, `build.rs` makes of it events that lie in each other
//! ([`Event`]). What is read from a [`Recording`]: averages and PyTorch's table (`averages.rs`,
//! `table.rs`), kernels beside the least time that they can take (`bounds.rs`), a trace for
//! Perfetto (`trace.rs`), stacks for a flame graph (`stacks.rs`), and advice (`advice.rs`). Off, it
//! costs an operation one load.
//!
//! ```
//! use plimsoll_profile::{Grouping, Profile, TableOptions};
//! use plimsoll_tensor::{DType, Tensor};
//!
//! let x = Tensor::ones(&[64, 64], DType::F32)?;
//! let recording = Profile::new().shapes(true).memory(true).run(|| x.mm(&x)?.exp().map(drop))?;
//! let averages = recording.averages(Grouping::default());
//! let mm = averages.rows().iter().find(|row| row.key == "aten::mm").unwrap();
//! assert_eq!((mm.count, mm.self_cpu_bytes), (1, 64 * 64 * 4));
//! println!("{}", averages.table(&TableOptions::new().sort_by("cpu_time_total"))?);
//! # Ok::<(), plimsoll_tensor::Error>(())
//! ```

mod advice;
mod averages;
mod bounds;
mod build;
mod event;
mod figures;
mod flops;
mod log;
mod profile;
mod range;
mod recording;
mod schedule;
mod session;
mod stacks;
mod table;
mod trace;

pub use advice::{Advice, Cause};
pub use averages::{Average, Averages, Grouping};
pub use bounds::{Bound, Bounds, Limits};
pub use event::{Event, EventKind, MemoryPoint};
pub use figures::{format_bytes, format_time_us};
pub use profile::Profile;
pub use range::{Range, range};
#[doc(hidden)]
pub use range::{begin_range, end_range};
pub use recording::Recording;
pub use schedule::{Action, Schedule, Scheduled};
pub use session::Session;
#[doc(hidden)]
pub use session::is_on;
pub use stacks::StackMetric;
#[doc(hidden)]
pub use stacks::frame_words;
pub use table::{TableOptions, TimeUnit};
