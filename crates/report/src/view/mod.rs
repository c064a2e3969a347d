//! What `plimsoll view` shows: the picture's data at any zoom, the page that draws it, and the
//! server for files that are too large for a page. It draws nothing itself; `page/` does, in the
//! browser.
//!
//! ```text
//! Snapshot -> Scene -> Timeline  bytes over time, by kind or by line    (pyramid of powers of two)
//!                   -> Shapes    single allocations in a window         (classes of size and life)
//!                   -> Moment    segments, blocks and stacks at a position
//!          Scene + page/ -> one HTML file (`html`)  |  a server on loopback (`Server`)
//! ```
//!
//! The horizontal axis is the position in the trace (see `Lives`), not microseconds: a busy
//! millisecond is as wide as it has events, and files without times can be drawn. The page writes
//! times beside it.

mod base64;
mod classes;
mod container;
mod document;
mod marks;
mod moment;
mod payload;
mod pieces;
mod scene;
mod server;
mod shapes;
mod stacking;
mod timeline;

pub use document::{MOST_PAGE_EVENTS, html};
pub use marks::Mark;
pub use moment::{BlockRun, MomentAnswer, SegmentNow, StackNow};
pub use scene::{DeviceScene, Scene};
pub use server::{Server, Url};
pub use shapes::{Shape, ShapesAnswer, Window};
pub use timeline::{By, TimelineAnswer};
