//! Origins as stack frames, the way PyTorch's snapshots show who asked: innermost first.
//!
//! ```text
//! add            plimsoll:0            the operation
//! train_step     src/train.rs:41       the user's line (a Rust line has no function name)
//! encoder.0      module:0              the module path, if there is one
//! backward       phase:0               the phase, if there is one
//! ```
//! Read from the outside in, as flame graphs do, a frame list is phase, module, line, operation.

use crate::origin::context::Phase;
use crate::origin::intern::{Origin, OriginId};

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) filename: String,
    pub(super) line: u32,
}

/// The frames of an origin; none where nothing is known.
pub(super) fn frames(origin: OriginId) -> Vec<Frame> {
    if origin == OriginId::UNKNOWN {
        return Vec::new();
    }
    let Origin { operation, site, module, phase } = origin.get();
    let frame =
        |name: String, filename: &str, line| Frame { name, filename: filename.into(), line };
    let mut frames = vec![frame(operation.to_string(), "plimsoll", 0)];
    if let Some(site) = site.resolve() {
        // PyTorch's viewers leave out frames whose names look like its own runtime's; an empty name
        // is shown as it is.
        frames.push(Frame { name: site.function, filename: site.file, line: site.line });
    }
    if !module.is_root() {
        frames.push(frame(module.to_string(), "module", 0));
    }
    if phase != Phase::Other {
        frames.push(frame(phase.to_string(), "phase", 0));
    }
    frames
}
