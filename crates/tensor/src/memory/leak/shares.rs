//! What fills a device, by who holds it: for a look at any moment, and for out-of-memory errors,
//! which carry it while holders are tracked.

use std::collections::HashMap;
use std::fmt::Write;

use plimsoll_core::{ByteSize, Device, Error, ErrorKind};
use plimsoll_memory::{Arena, OriginId, OutOfMemory};
use plimsoll_watch::{GrowthKind, Marks};

use super::growth_watch::live_blocks;
use super::movable::Movable;
use super::ownership::{Owner, Ownership, Root};

/// Holders that an error names.
const MOST_HOLDERS: usize = 5;

/// What one holder keeps of a device's memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HolderShare {
    /// Bytes, after rounding.
    pub bytes: usize,
    /// Blocks.
    pub count: usize,
    /// As what most of it is held.
    pub kind: GrowthKind,
    /// Who holds it, from the program inwards.
    pub held_by: String,
    /// Who made most of it.
    pub origin: OriginId,
}

/// Live bytes of each holder, largest first. Only tensors that were made while
/// [`track_holders`](super::super::track_holders) was on are known; of the rest nobody is named.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, device, memory};
/// memory::track_holders(true);
/// let own = device::private_cpu(&Default::default())?;
/// let x = Tensor::ones(&[256], (DType::F32, own))?.requires_grad_(true)?;
/// let kept: Vec<Tensor> = (0..3).map(|_| x.exp()?.sum()).collect::<Result<_, _>>()?;
/// let rows = memory::live_by_holder(own);
/// assert_eq!((rows[0].bytes, rows[0].count), (3 * (1024 + 512), 6)); // what `exp` saved, the sums
/// assert!(rows[0].held_by.starts_with("3 tensors made by sum at "));
/// # memory::track_holders(false);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn live_by_holder(device: Device) -> Vec<HolderShare> {
    of_arena(super::super::arena(device))
}

fn of_arena(arena: &'static Arena) -> Vec<HolderShare> {
    let ownership = Ownership::look();
    let nobody = Owner::apart(Root::Nobody);
    let movable = Movable::look();
    let mut sums: HashMap<Root, Sum<'_>> = HashMap::new();
    for block in live_blocks(&[arena], &Marks::default()) {
        let owner = ownership.owners.get(&movable.key_of(block.place)).unwrap_or(&nobody);
        let sum = sums.entry(owner.root).or_default();
        sum.count += 1;
        *sum.lines.entry(block.origin).or_default() += block.bytes;
        let kind = sum.kinds.entry(owner.kind).or_insert((0, owner));
        kind.0 += block.bytes;
    }
    let shares = sums.into_iter().filter_map(|(root, sum)| {
        let most = sum.kinds.into_iter().max_by_key(|(kind, (bytes, _))| (*bytes, *kind));
        let (kind, (_, owner)) = most?;
        let bytes = sum.lines.values().sum();
        let (origin, _) = sum.lines.into_iter().max_by_key(|(line, bytes)| (*bytes, *line))?;
        let held_by = owner.words(ownership.tensors_at(root));
        Some(HolderShare { bytes, count: sum.count, kind, held_by, origin })
    });
    let mut shares: Vec<HolderShare> = shares.collect();
    shares.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.held_by.cmp(&b.held_by)));
    shares
}

#[derive(Default)]
struct Sum<'a> {
    count: usize,
    lines: HashMap<OriginId, usize>,
    kinds: HashMap<GrowthKind, (usize, &'a Owner)>,
}

/// The same error with the largest holders in its message, if it is one of running out of memory.
pub(crate) fn with_holders(error: Error) -> Error {
    let Some(report) = error.detail::<OutOfMemory>() else { return error };
    let arenas = super::super::arenas();
    let Some(arena) = arenas.into_iter().find(|arena| arena.name() == report.arena) else {
        return error;
    };
    let told = error.to_string();
    let headline = told.lines().next().unwrap_or_default();
    let operation = error.operation().unwrap_or_default();
    let headline = headline.strip_prefix(&format!("{operation}: ")).unwrap_or(headline);
    let mut message = headline.to_string();
    let shares = of_arena(arena);
    for (place, share) in shares.iter().take(MOST_HOLDERS).enumerate() {
        let label = if place == 0 { "held by" } else { "" };
        let (bytes, blocks) =
            (ByteSize(share.bytes), if share.count == 1 { "block" } else { "blocks" });
        let _ = write!(
            message,
            "\n  {label:<11} {bytes} in {} {blocks}, {}: {}",
            share.count, share.kind, share.held_by
        );
    }
    if shares.len() > MOST_HOLDERS {
        let _ = write!(message, "\n              and {} more holders", shares.len() - MOST_HOLDERS);
    }
    Error::new(ErrorKind::OutOfMemory, message).in_operation(operation).because(report.clone())
}
