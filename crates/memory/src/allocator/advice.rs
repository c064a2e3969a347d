//! What could help when memory ran out, worked out from the state at that moment. Nothing is
//! advised that is already so, or that could not make room for this request.

use std::fmt;

use plimsoll_core::ByteSize;

use crate::allocator::limits::LimitKind;

/// One thing that could help.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Advice {
    /// The request alone is larger than all that may be reserved.
    RequestBeyondLimit {
        /// All that may be reserved.
        limit_bytes: usize,
    },
    /// The program's own limit is what refused, and the device has room.
    RaiseLimit {
        /// Which rule refused.
        rule: LimitKind,
        /// What it would have to be at least.
        needed_bytes: usize,
    },
    /// Free memory lies in pieces: keep large blocks whole.
    LimitSplitting {
        /// Free bytes that lie in pieces of split segments.
        split_bytes: usize,
    },
    /// Free memory lies in pieces: let segments grow and shrink by pages, so that it need not.
    ExpandSegments {
        /// Free bytes that lie in pieces of split segments.
        split_bytes: usize,
    },
    /// Freed memory waits for another stream.
    WaitForStreams {
        /// Bytes that wait.
        pending_bytes: usize,
    },
    /// Other streams hold free memory that this one must not use.
    ShareStreams {
        /// Free bytes of other streams.
        bytes: usize,
    },
    /// Most live bytes are activations.
    FewerActivations {
        /// Bytes of activations.
        bytes: usize,
    },
    /// Gradients are live outside of backward and the optimizer.
    DropGradients {
        /// Bytes of gradients.
        bytes: usize,
    },
    /// Nobody gives live memory back.
    AllowSpilling,
    /// Other processes use the memory.
    OthersUseIt {
        /// Bytes that they use.
        bytes: usize,
    },
    /// One origin holds most of the live bytes.
    LookAtTopOrigin {
        /// Its share of the live bytes, 0 to 1.
        share: f64,
    },
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: &usize| ByteSize(*bytes);
        match self {
            Advice::RequestBeyondLimit { limit_bytes } => write!(
                f,
                "no freeing can make room: all that may be reserved is {}. Use smaller sizes or a smaller batch",
                size(limit_bytes)
            ),
            Advice::RaiseLimit { rule, needed_bytes } => {
                let rule = match rule {
                    LimitKind::Limit => "raise the limit (`set_limit`)",
                    LimitKind::MemoryFraction => {
                        "raise the memory fraction (`set_memory_fraction`)"
                    }
                    LimitKind::DefaultCap => {
                        "set a limit of your own, which replaces the default cap (`set_limit`),"
                    }
                };
                write!(f, "{rule} to {} or more: the device has room", size(needed_bytes))
            }
            Advice::LimitSplitting { split_bytes } => write!(
                f,
                "{} are free but in pieces of split segments: `max_split_size_mb` keeps large blocks whole",
                size(split_bytes)
            ),
            Advice::ExpandSegments { split_bytes } => write!(
                f,
                "{} are free but in pieces of split segments: `expandable_segments:True` lets one segment \
                 grow instead",
                size(split_bytes)
            ),
            Advice::WaitForStreams { pending_bytes } => write!(
                f,
                "{} are freed but still used by another stream: synchronize it and try again",
                size(pending_bytes)
            ),
            Advice::ShareStreams { bytes } => write!(
                f,
                "{} are free but belong to other streams: allocate on the stream that freed them",
                size(bytes)
            ),
            Advice::FewerActivations { bytes } => write!(
                f,
                "activations take {}: a smaller batch, or checkpointing, lowers them",
                size(bytes)
            ),
            Advice::DropGradients { bytes } => write!(
                f,
                "gradients of an earlier step take {} during forward: set them to none first",
                size(bytes)
            ),
            Advice::AllowSpilling => f.write_str(
                "set a budget that spills: live memory that is not in use can go to the host",
            ),
            Advice::OthersUseIt { bytes } => {
                write!(f, "other processes use {} of this device", size(bytes))
            }
            Advice::LookAtTopOrigin { share } => write!(
                f,
                "the first origin above holds {:.0}% of what is live: is all of it still needed?",
                share * 100.0
            ),
        }
    }
}
