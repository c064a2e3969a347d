//! Which lines grow, by the books alone: at the end of each step every live block is read with its
//! origin and the step that made it, and judged (`plimsoll_watch::Growth`). Who holds them is found
//! in `ownership.rs`, and told by `LeakWatch`, or by another language's own walk.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use plimsoll_core::Device;
use plimsoll_memory::{Arena, BlockUse, Kind, OriginId, next_step};
use plimsoll_watch::{Alive, Growth, Lengthening, Longer, Marks, SETTLE_STEPS, Suspect};

use super::super::holders::tracked_holders;
use super::line_growth::LineGrowth;
use super::movable::Movable;
use super::rebuilds::{Hearing, copies, rebuilds};
use crate::autograd::node::Node;
use crate::storage::Storage;
use crate::tensor::registry;

/// Steps in which the books are read at each end; later as often as its cost allows.
const EAGER_STEPS: u64 = 32;
/// The share of the time that reading the books may take, and that naming holders may.
const LOOK_SHARE: u32 = 200;
const NAME_SHARE: u32 = 50;
/// Blocks of a line that makes its memory of itself that are asked for their holders.
const MOST_REBUILT: usize = 1000;
/// The first step at which holders are looked for although no line is suspect: graphs that are kept
/// may hold hardly any bytes. Then again when the run is longer by half.
const FIRST_NAMING: u64 = 10;

/// Where a block is: the address of its arena, and its own. Of memory that may be taken away, 0 and
/// a number (`Storage::watch_key`).
pub(crate) type Place = (usize, usize);

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveBlock {
    pub(crate) place: Place,
    pub(crate) origin: OriginId,
    pub(crate) kind: Kind,
    pub(crate) bytes: usize,
    /// The step of the watch that made it.
    pub(crate) step: u64,
}

/// One block of a line that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptBlock {
    /// What tells it apart, as [`block_of`](super::super::block_of) does of a tensor.
    pub place: (usize, usize),
    /// Bytes, after rounding.
    pub bytes: usize,
    /// The step of the watch that made it.
    pub step: u64,
}

/// A line that grows, and what of it stays.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeptLine {
    /// Who makes it.
    pub origin: OriginId,
    /// Steps that it was judged over.
    pub judged_steps: u64,
    /// Whether that is long enough for a verdict.
    pub is_verdict: bool,
    /// The blocks that stay of the judged steps; of one that is made of itself the newest.
    pub blocks: Vec<KeptBlock>,
    /// Of a line that makes its memory of itself in each step, more every time.
    pub rebuilt: Option<Rebuilt>,
}

/// What a line that makes its memory of itself adds in each step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rebuilt {
    /// Bytes a step.
    pub bytes_per_step: u64,
    /// Tensors a step: none where one becomes longer.
    pub objects_per_step: f64,
    /// Whether it copies what it had, as where a container is copied, and does not join it.
    pub is_copied: bool,
}

/// Reads the books at the end of each step and knows which lines grow. The layer below
/// [`LeakWatch`](super::LeakWatch), for those who name holders themselves. New tensors are
/// registered as long as it lives, unless it is told otherwise ([`attend`](GrowthWatch::attend)).
#[derive(Debug)]
pub struct GrowthWatch {
    device: Option<Device>,
    tracked: Option<registry::User>,
    steps: u64,
    /// From the process's steps, which blocks carry, to the watch's.
    marks: Marks,
    /// From the order of nodes to the watch's steps.
    node_marks: Marks,
    /// The same from the numbers of storages that may be taken away.
    storage_marks: Marks,
    growth: Growth<OriginId>,
    lines: LineGrowth,
    lengthening: Lengthening<OriginId>,
    hearing: Option<Hearing>,
    pub(super) blocks: Vec<LiveBlock>,
    /// Origins that grow, and lines that do only over all modules.
    suspects: Vec<Suspect<OriginId>>,
    line_suspects: Vec<Suspect<OriginId>>,
    longer: Vec<Longer<OriginId>>,
    looks: Pace,
    names: Pace,
    next_naming: u64,
    /// The suspects when holders were last looked for.
    named: Vec<OriginId>,
}

impl GrowthWatch {
    /// Begins to watch a device, or all of them. The first step begins now.
    pub fn new(device: Option<Device>) -> GrowthWatch {
        let mut watch = GrowthWatch {
            device,
            tracked: Some(tracked_holders()),
            steps: 0,
            marks: Marks::default(),
            node_marks: Marks::default(),
            storage_marks: Marks::default(),
            growth: Growth::default(),
            lines: LineGrowth::default(),
            lengthening: Lengthening::default(),
            hearing: None,
            blocks: Vec::new(),
            suspects: Vec::new(),
            line_suspects: Vec::new(),
            longer: Vec::new(),
            looks: Pace::new(),
            names: Pace::new(),
            next_naming: FIRST_NAMING,
            named: Vec::new(),
        };
        watch.begin_step();
        watch
    }

    /// Has new tensors registered, and operations heard where a line needs that; or not, which
    /// costs the program nothing. What other watches want stays so.
    pub fn attend(&mut self, on: bool) {
        self.tracked = on.then(tracked_holders);
        self.hearing = None;
    }

    /// Whether a device is one of those that are watched.
    pub fn watches(&self, device: Device) -> bool {
        self.device.is_none_or(|watched| watched == device)
    }

    fn begin_step(&mut self) {
        self.node_marks.begin(self.steps, Node::following_sequence());
        let has_order = self.storage_marks.begin(self.steps, Storage::following_number().into());
        if !self.marks.begin(self.steps, next_step()) || !has_order {
            // The program counts its steps anew: what blocks carry says nothing any more.
            self.begin_anew();
        }
    }

    /// Begins anew with the step that runs: another loop has begun, whose first steps are not
    /// judged.
    pub fn begin_anew(&mut self) {
        self.growth.warm_up(self.steps);
        self.lines.warm_up(self.steps);
        self.lengthening.warm_up(self.steps);
    }

    /// Ends a step; answers whether it is time to ask who holds what grows.
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        let is_due = self.steps <= EAGER_STEPS || self.looks.may_again(LOOK_SHARE);
        if is_due {
            self.look();
        }
        self.begin_step();
        is_due && self.is_naming_due()
    }

    /// Steps that have ended.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Reads the books now, and judges.
    pub fn look(&mut self) {
        let began = Instant::now();
        self.read();
        let mut rows: HashMap<(OriginId, u64), (u64, u64)> = HashMap::new();
        for block in &self.blocks {
            let row = rows.entry((block.origin, block.step)).or_default();
            *row = (row.0 + block.bytes as u64, row.1 + 1);
        }
        let alive: Vec<Alive<OriginId>> = rows
            .into_iter()
            .map(|((line, step), (bytes, objects))| Alive { line, step, bytes, objects })
            .collect();
        self.suspects = self.growth.judge(&alive, self.steps);
        self.line_suspects = self.lines.judge(&alive, self.steps, &self.suspects);
        self.look_at_rebuilds(&alive);
        self.looks.took(began);
    }

    fn read(&mut self) {
        let movable = Movable::look();
        let arenas = self.arenas();
        self.blocks = live_blocks(&arenas, &self.marks);
        self.blocks.retain(|block| !movable.has(block.place));
        self.blocks.extend(movable.blocks(self.device, &self.storage_marks));
    }

    /// Follows lines that join or copy tensors, of which what one step made lives at a time, and
    /// hears whether they make it of what they had.
    fn look_at_rebuilds(&mut self, alive: &[Alive<OriginId>]) {
        let mut newest: HashMap<OriginId, (Alive<OriginId>, usize)> = HashMap::new();
        for row in alive.iter().filter(|row| rebuilds(row.line.get().operation)) {
            let known = newest.entry(row.line).or_insert((*row, 0));
            known.1 += 1;
            if row.step > known.0.step {
                known.0 = *row;
            }
        }
        // The last step's may live beside it.
        let newest: Vec<Alive<OriginId>> =
            newest.into_values().filter(|(_, rows)| *rows <= 2).map(|(row, _)| row).collect();
        if let Some(hearing) = &self.hearing {
            let lines = hearing.turn(HashMap::new());
            lines.into_iter().for_each(|line| self.lengthening.rebuilt(line));
        }
        self.lengthening.look(&newest);
        let wanted: Vec<Alive<OriginId>> =
            newest.into_iter().filter(|row| self.lengthening.is_possible(row.line)).collect();
        self.longer = self.lengthening.growing(self.steps);
        if wanted.is_empty() {
            self.hearing = None;
            return;
        }
        let of_wanted = self.blocks.iter().filter(|block| {
            wanted.iter().any(|row| (row.line, row.step) == (block.origin, block.step))
        });
        let now = of_wanted.map(|block| (block.place, block.origin)).collect();
        self.hearing.get_or_insert_with(Hearing::begin).turn(now);
    }

    fn arenas(&self) -> Vec<&'static Arena> {
        match self.device {
            Some(device) => vec![super::super::arena(device)],
            None => super::super::arenas(),
        }
    }

    fn is_naming_due(&mut self) -> bool {
        let lines: Vec<OriginId> = self.growing().into_keys().collect();
        let is_new = lines.iter().any(|line| !self.named.contains(line));
        let is_due = if is_new {
            self.steps <= EAGER_STEPS || self.names.may_again(NAME_SHARE)
        } else {
            self.steps >= self.next_naming && self.names.may_again(NAME_SHARE)
        };
        if is_due {
            self.named = lines;
            self.next_naming = (self.steps + self.steps / 2).max(self.steps + 1);
        }
        is_due
    }

    /// Says how long it took to name holders, which is done as rarely as that asks for.
    pub fn named_since(&mut self, began: Instant) {
        self.names.took(began);
    }

    /// The lines that grow, as of the last look, and whether for long enough for a verdict.
    pub(super) fn growing(&self) -> HashMap<OriginId, bool> {
        let suspects = self.suspects.iter().chain(&self.line_suspects);
        let staying = suspects.map(|suspect| (suspect.line, suspect.is_verdict()));
        staying.chain(self.longer.iter().map(|one| (one.line, one.is_verdict()))).collect()
    }

    /// What stands for the line of an origin, where lines are told over all modules.
    pub(super) fn line_of(&self, origin: OriginId) -> OriginId {
        self.lines.line_of(origin)
    }

    /// Whether the line grows only over all modules.
    pub(super) fn is_of_many_modules(&self, line: OriginId) -> bool {
        self.line_suspects.iter().any(|suspect| suspect.line == line)
    }

    /// The lines that grow, as of the last look, with what stays of each.
    pub fn kept(&self) -> Vec<KeptLine> {
        let mut lines = kept_of(&self.suspects, &self.blocks, |origin| origin);
        lines.extend(kept_of(&self.line_suspects, &self.blocks, |origin| self.line_of(origin)));
        let is_told = |line: &OriginId| lines.iter().any(|kept| kept.origin == *line);
        let longer: Vec<KeptLine> = self
            .longer
            .iter()
            .filter(|one| !is_told(&one.line))
            .map(|one| {
                let of_line = self.blocks.iter().filter(|block| block.origin == one.line);
                let mut blocks: Vec<KeptBlock> = of_line.map(KeptBlock::from).collect();
                // The step before may have made what the program still holds by name.
                blocks.sort_by_key(|block| std::cmp::Reverse(block.step));
                blocks.truncate(MOST_REBUILT);
                KeptLine {
                    origin: one.line,
                    judged_steps: one.judged_steps,
                    is_verdict: one.is_verdict(),
                    blocks,
                    rebuilt: Some(Rebuilt {
                        bytes_per_step: one.bytes_per_step,
                        objects_per_step: one.objects_per_step,
                        is_copied: copies(one.line.get().operation),
                    }),
                }
            })
            .collect();
        lines.extend(longer);
        lines
    }

    /// Whether what was made in `step` of the watch has outlived its steps and is judged.
    pub fn is_judged(&self, step: u64) -> bool {
        self.growth.is_judged(step, self.steps)
    }

    /// Whether a node has outlived its steps, judged or not.
    pub(super) fn is_old_node(&self, sequence: u64) -> bool {
        self.step_of_node(sequence) + SETTLE_STEPS < self.steps
    }

    /// The step of the watch in which a node was made.
    pub(super) fn step_of_node(&self, sequence: u64) -> u64 {
        self.node_marks.step_of(sequence)
    }
}

impl From<&LiveBlock> for KeptBlock {
    fn from(block: &LiveBlock) -> KeptBlock {
        KeptBlock { place: block.place, bytes: block.bytes, step: block.step }
    }
}

/// What stays of each suspect; `line_of` tells whose a block is.
fn kept_of(
    suspects: &[Suspect<OriginId>],
    blocks: &[LiveBlock],
    line_of: impl Fn(OriginId) -> OriginId,
) -> Vec<KeptLine> {
    let kept = |suspect: &Suspect<OriginId>| KeptLine {
        origin: suspect.line,
        judged_steps: suspect.judged_steps,
        is_verdict: suspect.is_verdict(),
        blocks: Vec::new(),
        rebuilt: None,
    };
    let mut lines: Vec<KeptLine> = suspects.iter().map(kept).collect();
    let at: HashMap<OriginId, usize> =
        suspects.iter().enumerate().map(|(at, suspect)| (suspect.line, at)).collect();
    for block in blocks {
        if let Some(&at) = at.get(&line_of(block.origin)) {
            let suspect = &suspects[at];
            if (suspect.first_step..suspect.end_step).contains(&block.step) {
                lines[at].blocks.push(KeptBlock::from(block));
            }
        }
    }
    lines
}

/// The blocks of `arenas` that their owners have not let go of.
pub(crate) fn live_blocks(arenas: &[&'static Arena], marks: &Marks) -> Vec<LiveBlock> {
    let mut live = Vec::new();
    for arena in arenas {
        let id = std::ptr::from_ref(*arena).addr();
        for block in arena.segments().iter().flat_map(|segment| &segment.blocks) {
            if block.state == BlockUse::Allocated {
                live.push(LiveBlock {
                    place: (id, block.address),
                    origin: block.origin,
                    kind: block.kind,
                    bytes: block.bytes,
                    step: marks.step_of(block.step),
                });
            }
        }
    }
    live
}

/// How long something took, and when: what is slow comes rarely. The shortest of the last few times
/// counts: a machine that is busy with others makes single ones long.
#[derive(Debug)]
struct Pace {
    ended: Instant,
    took: [Duration; 3],
}

impl Pace {
    fn new() -> Pace {
        Pace { ended: Instant::now(), took: [Duration::ZERO; 3] }
    }

    fn took(&mut self, began: Instant) {
        self.ended = Instant::now();
        self.took.rotate_right(1);
        self.took[0] = self.ended - began;
    }

    /// Whether it would take at most one part in `share` of the time.
    fn may_again(&self, share: u32) -> bool {
        let took = self.took.iter().min().copied().unwrap_or_default();
        self.ended.elapsed() >= took * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slow_comes_rarely_and_what_was_slow_once_does_not() {
        let mut pace = Pace::new();
        let hour_ago =
            Instant::now().checked_sub(Duration::from_secs(3600)).expect("the clock runs");
        pace.took(Instant::now());
        pace.took(hour_ago);
        pace.took(hour_ago);
        assert!(pace.may_again(1), "of the last three one was quick");
        pace.took(hour_ago);
        assert!(!pace.may_again(1));
    }
}
