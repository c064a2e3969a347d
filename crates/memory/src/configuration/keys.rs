//! The keys: name, unit, default, meaning, and how a value is read and shown. PyTorch's names where
//! PyTorch has the option. Adding a knob is a field of `Configuration`, a row here, and its use.

use std::num::NonZeroUsize;

use plimsoll_core::{Error, Result};

use super::text::{self, Expected};
use super::{Configuration, MIB};

/// One knob: how it is written, and what it does.
#[derive(Debug)]
pub struct Key {
    /// As written in text and files.
    pub name: &'static str,
    /// The unit, or the accepted words.
    pub unit: &'static str,
    /// The value if nobody sets it.
    pub default: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
    pub(super) set: fn(&mut Configuration, &str) -> Result<(), Expected>,
    pub(super) show: fn(&Configuration) -> String,
}

pub(super) const COUNT: usize = 24;

/// Keys that act only on cached or split blocks.
pub(super) const NEED_CACHING: [&str; 6] = [
    "expandable_segments",
    "garbage_collection_threshold",
    "large_segment_size_mb",
    "max_non_split_rounding_mb",
    "max_split_size_mb",
    "roundup_power2_divisions",
];

/// PyTorch options that Plimsoll has no use for, and why. Taking them in silence would be an inert
/// key.
const NOT_HERE: [(&str, &str); 7] = [
    ("backend", "there is one allocator"),
    ("graph_capture_record_stream_reuse", "blocks used by other streams are freed by fences"),
    ("pinned_max_cached_size_mb", "pinned blocks are split; cap them with `pinned_limit`"),
    ("pinned_max_round_threshold_mb", "pinned sizes are not rounded to powers of two"),
    ("pinned_use_background_threads", "fences are checked when memory is asked for"),
    (
        "release_lock_on_cudamalloc",
        "the lock is held while the system is asked for memory, so that limits hold",
    ),
    ("throw_on_cudamalloc_oom", "running out of memory is always an error with a report"),
];

pub(super) static KEYS: [Key; COUNT] = [
    Key {
        name: "caching",
        unit: "true or false",
        default: "true",
        help: "keep freed blocks for reuse; false takes every allocation from the system, but those of private pools",
        set: |c, v| text::flag(v).map(|on| c.caching = on),
        show: |c| c.caching.to_string(),
    },
    Key {
        name: "large_segment_size_mb",
        unit: "MiB, above 10",
        default: "20",
        help: "segment for allocations between 1 and 10 MiB",
        set: |c, v| text::mebibytes(v, 11).map(|bytes| c.large_segment_bytes = bytes),
        show: |c| (c.large_segment_bytes / MIB).to_string(),
    },
    Key {
        name: "max_split_size_mb",
        unit: "MiB, at least 20",
        default: "unlimited",
        help: "cached blocks of this size and more are not split",
        set: |c, v| text::mebibytes_or_unlimited(v, 20).map(|bytes| c.max_split_bytes = bytes),
        show: |c| {
            c.max_split_bytes.map_or("unlimited".to_string(), |bytes| (bytes / MIB).to_string())
        },
    },
    Key {
        name: "max_non_split_rounding_mb",
        unit: "MiB",
        default: "large_segment_size_mb",
        help: "how much larger than asked for a block above max_split_size_mb may be",
        set: |c, v| text::mebibytes(v, 1).map(|bytes| c.max_non_split_rounding_bytes = bytes),
        show: |c| (c.max_non_split_rounding_bytes / MIB).to_string(),
    },
    Key {
        name: "roundup_power2_divisions",
        unit: "a power of two, or [256:1,512:2,>:4] by size in MiB",
        default: "0",
        help: "round sizes up to one of this many steps between powers of two; 0 or 1 is off",
        set: |c, v| text::divisions(v).map(|slots| c.roundup_power2_divisions = slots),
        show: |c| text::show_divisions(&c.roundup_power2_divisions),
    },
    Key {
        name: "expandable_segments",
        unit: "true or false",
        default: "false",
        help: "on GPUs, stand-ins and their dry runs, one segment for each pool and stream, which grows \
               and shrinks by pages; host memory keeps whole segments",
        set: |c, v| text::flag(v).map(|on| c.expandable_segments = on),
        show: |c| c.expandable_segments.to_string(),
    },
    Key {
        name: "garbage_collection_threshold",
        unit: "fraction between 0 and 1",
        default: "off",
        help: "release the oldest cached blocks when reserved bytes pass this share of the limit, or of \
               the device where there is no limit",
        set: |c, v| text::threshold(v).map(|share| c.garbage_collection_threshold = share),
        show: |c| c.garbage_collection_threshold.map_or("off".to_string(), |s| s.to_string()),
    },
    Key {
        name: "memory_limit",
        unit: "bytes, as in 4GiB",
        default: "none",
        help: "reserved bytes never pass this; an allocation that would is out of memory",
        set: |c, v| text::bytes_or_none(v).map(|bytes| c.limit_bytes = bytes),
        show: |c| show_bytes(c.limit_bytes),
    },
    Key {
        name: "memory_soft_limit",
        unit: "bytes, as in 4GiB",
        default: "none",
        help: "past this, cached memory is given back before more is reserved",
        set: |c, v| text::bytes_or_none(v).map(|bytes| c.soft_limit_bytes = bytes),
        show: |c| show_bytes(c.soft_limit_bytes),
    },
    Key {
        name: "per_process_memory_fraction",
        unit: "fraction above 0, at most 1",
        default: "1",
        help: "share of the device's memory that this process may reserve",
        set: |c, v| text::fraction(v).map(|share| c.memory_fraction = share),
        show: |c| c.memory_fraction.to_string(),
    },
    Key {
        name: "default_cap_fraction",
        unit: "fraction above 0, at most 1",
        default: "0.9",
        help: "share of the host's memory (or of its cgroup's) that may be reserved without a limit",
        set: |c, v| text::fraction(v).map(|share| c.default_cap = share),
        show: |c| c.default_cap.to_string(),
    },
    Key {
        name: "huge_pages",
        unit: "true or false",
        default: "true",
        help: "ask for transparent huge pages where a host segment is large enough for them",
        set: |c, v| text::flag(v).map(|on| c.huge_pages = on),
        show: |c| c.huge_pages.to_string(),
    },
    Key {
        name: "pinned_limit",
        unit: "bytes, as in 4GiB",
        default: "none",
        help: "the most pinned host memory, cached blocks included",
        set: |c, v| text::bytes_or_none(v).map(|bytes| c.pinned_limit_bytes = bytes),
        show: |c| show_bytes(c.pinned_limit_bytes),
    },
    Key {
        name: "history",
        unit: "off, state, alloc or all",
        default: "off",
        help: "what is recorded: nothing, live blocks' origins, and events with origins of allocations \
               or of frees too",
        set: |c, v| text::history_level(v).map(|level| c.history_level = level),
        show: |c| c.history_level.to_string(),
    },
    Key {
        name: "history_entries",
        unit: "entries, at least 1",
        default: "100000",
        help: "how many events the history keeps; the oldest go first",
        set: |c, v| text::count(v).map(|n| c.history_entries = n.get()),
        show: |c| c.history_entries.to_string(),
    },
    Key {
        name: "threads",
        unit: "threads, at least 1",
        default: "auto",
        help: "threads for kernels; auto is one for each physical core that the process may use",
        set: |c, v| text::count_or_auto(v).map(|threads| c.threads = threads),
        show: |c| c.threads.map_or("auto".to_string(), |n: NonZeroUsize| n.to_string()),
    },
    Key {
        name: "simd",
        unit: "auto, scalar, avx2 or avx512",
        default: "auto",
        help: "the most that kernels use of the vector instructions that the processor has",
        set: |c, v| text::simd_level(v).map(|level| c.simd = level),
        show: |c| text::show_simd_level(c.simd).to_string(),
    },
    Key {
        name: "spill",
        unit: "true or false",
        default: "false",
        help: "under a limit, move storages that nobody uses at the moment to slower memory",
        set: |c, v| text::flag(v).map(|on| c.spill = on),
        show: |c| c.spill.to_string(),
    },
    Key {
        name: "chaos_seed",
        unit: "a number, or off",
        default: "off",
        help: "for tests: between operations, take memory of storages that nobody uses away at random",
        set: |c, v| text::seed_or_off(v).map(|seed| c.chaos_seed = seed),
        show: |c| c.chaos_seed.map_or("off".to_string(), |seed| seed.to_string()),
    },
    Key {
        name: "dry_upper_bounds",
        unit: "true or false",
        default: "false",
        help: "in a dry run, count the largest possible result where a size depends on data",
        set: |c, v| text::flag(v).map(|on| c.dry_upper_bounds = on),
        show: |c| c.dry_upper_bounds.to_string(),
    },
    Key {
        name: "chunk_size",
        unit: "rows, at least 1, or none",
        default: "none",
        help: "rows that `process_in_chunks` takes at a time where the call does not say; none is all",
        set: |c, v| text::count_or_none(v).map(|rows| c.chunk_size = rows),
        show: |c| c.chunk_size.map_or("none".to_string(), |n: NonZeroUsize| n.to_string()),
    },
    Key {
        name: "prefetch_buffers",
        unit: "1, 2 or 3",
        default: "2",
        help: "batches that are on a device at once: 1 copies when asked, 2 and 3 copy ahead",
        set: |c, v| text::buffers(v).map(|buffers| c.prefetch_buffers = buffers),
        show: |c| c.prefetch_buffers.to_string(),
    },
    Key {
        name: "cleanup_every",
        unit: "chunks or batches, at least 1, or off",
        default: "off",
        help: "give cached memory back after every so many chunks of `process_in_chunks` and batches \
               of `evaluate`",
        set: |c, v| text::count_or_off(v).map(|every| c.cleanup_every = every),
        show: |c| c.cleanup_every.map_or("off".to_string(), |n: NonZeroUsize| n.to_string()),
    },
    Key {
        name: "final_cleanup",
        unit: "true or false",
        default: "false",
        help: "give cached memory back when `process_in_chunks` and `evaluate` are done",
        set: |c, v| text::flag(v).map(|on| c.final_cleanup = on),
        show: |c| c.final_cleanup.to_string(),
    },
];

fn show_bytes(bytes: Option<usize>) -> String {
    // Exact: a rounded figure such as 1.50 GiB would not read back as the same limit.
    bytes.map_or("none".to_string(), |bytes| bytes.to_string())
}

/// The position of a key, or an error that names near matches.
pub(super) fn find(name: &str) -> Result<usize> {
    if let Some(at) = KEYS.iter().position(|key| key.name == name) {
        return Ok(at);
    }
    if let Some((_, why)) = NOT_HERE.iter().find(|(known, _)| *known == name) {
        return Err(Error::configuration(format!(
            "`{name}` is an option of PyTorch that has no effect here: {why}"
        )));
    }
    let mut near: Vec<(usize, &str)> = KEYS
        .iter()
        .map(|key| (text::edit_distance(name, key.name), key.name))
        .filter(|&(distance, key)| {
            distance <= 3 || (name.len() >= 4 && (key.contains(name) || name.contains(key)))
        })
        .collect();
    near.sort();
    let remedy = if near.is_empty() {
        let all: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        format!("the keys are {}", all.join(", "))
    } else {
        let names: Vec<String> = near.iter().take(3).map(|(_, key)| format!("`{key}`")).collect();
        format!("did you mean {}?", names.join(" or "))
    };
    Err(Error::configuration(format!("there is no key `{name}`; {remedy}")))
}

/// The position of a key that this crate names itself.
pub(super) fn position(name: &str) -> usize {
    KEYS.iter().position(|key| key.name == name).unwrap_or_else(|| {
        debug_assert!(false, "`{name}` is not a row of KEYS");
        0
    })
}
