//! Out of memory: what filled the device when an allocation failed, and what would have made it
//! fit.

use super::words::{counted, percent, size, total};
use super::{Case, Finding, FindingKind};
use crate::analysis::{Amount, LiveSet, Phase, PlacedSegment, Sites, placement};
use crate::events::Action;
use crate::kind::Kind;
use crate::stacks::StackId;

/// Free pieces below this share of what is reserved, in percent, do not explain a failure.
const FRAGMENTED_PERCENT: u64 = 10;
/// From this share on they are worth a word whatever failed.
const MANY_PIECES_PERCENT: u64 = 30;
/// Failures beyond this many are repetitions of the same.
const MOST: usize = 3;

/// Explains the failures of a trace, the last ones if there are many.
pub(super) fn find(case: &Case<'_>, leaks: &[Finding]) -> Vec<Finding> {
    let lives = &case.device.lives;
    let actions = &case.snapshot.events.action[lives.rows.clone()];
    let failed = failures(actions);
    let skipped = failed.len().saturating_sub(MOST);
    let mut found: Vec<(Finding, u64)> = Vec::new();
    for index in &failed[skipped..] {
        let finding = explain(case, *index as u32, leaks);
        let same = |(other, _): &(Finding, u64)| {
            (&other.cause, other.site) == (&finding.cause, finding.site)
        };
        match found.iter_mut().find(|other| same(other)) {
            // A program that goes on, or a library that does with less, fails again: the last
            // failure tells the most.
            Some((other, before)) => {
                *other = finding;
                *before += 1;
            }
            None => found.push((finding, 0)),
        }
    }
    found.into_iter().map(|(finding, before)| finding.after(before)).collect()
}

impl Finding {
    /// Says that the same happened that many times before.
    fn after(mut self, times: u64) -> Finding {
        if times > 0 {
            let failed = counted(times, "earlier request");
            self.message.push_str(&format!(" {failed} failed for the same reason."));
        }
        self
    }
}

/// Where allocations failed. A library that is refused may ask again, for less: of failures between
/// which nothing was made or let go, which are one, the last counts.
fn failures(actions: &[Action]) -> Vec<usize> {
    let mut failed: Vec<usize> = Vec::new();
    let mut same = false;
    for (index, action) in actions.iter().enumerate() {
        match action {
            Action::Oom => {
                if same {
                    failed.pop();
                }
                failed.push(index);
                same = true;
            }
            Action::Alloc | Action::FreeRequested | Action::FreeCompleted => same = false,
            _ => {}
        }
    }
    failed
}

/// What is known about one failure.
struct Failure {
    asked: u64,
    asked_by: StackId,
    device_free: u64,
    reserved: u64,
    live: LiveSet,
    segments_in_use: u64,
    free_in_pieces: u64,
    largest_hole: u64,
}

impl Failure {
    fn at(case: &Case<'_>, position: u32) -> Failure {
        let (device, lives) = (case.device.device, &case.device.lives);
        let event = case.snapshot.events.get(lives.rows.start + position as usize);
        let placed = placement(case.snapshot, device, lives, position);
        let used: Vec<&PlacedSegment> = placed.iter().filter(|s| !s.is_empty()).collect();
        Failure {
            asked: event.size,
            asked_by: event.stack,
            device_free: event.addr,
            reserved: case.device.reserved.at(case.snapshot, device, position),
            live: LiveSet::at(lives, &case.lines.sites, position),
            segments_in_use: used.len() as u64,
            free_in_pieces: total(used.iter().map(|segment| segment.free_bytes())),
            largest_hole: used.iter().map(|s| s.largest_hole_bytes).max().unwrap_or(0),
        }
    }

    /// Whether enough was free, but nowhere in one piece.
    fn is_in_pieces(&self) -> bool {
        self.free_in_pieces >= self.asked && self.largest_hole < self.asked
    }

    /// Whether that is why it failed: a device that is full to the last pieces would have failed
    /// soon after.
    fn is_fragmented(&self) -> bool {
        self.is_in_pieces() && percent(self.free_in_pieces, self.reserved) >= FRAGMENTED_PERCENT
    }

    /// Whether much of what is reserved is free in pieces. Where the limit lies is not in a
    /// snapshot, so whether these would have made it fit is not known.
    fn has_many_pieces(&self) -> bool {
        percent(self.free_in_pieces, self.reserved) >= MANY_PIECES_PERCENT
    }

    /// The kind that holds the most.
    fn most(&self) -> (Kind, Amount) {
        let kinds = self.live.by_kind.iter();
        let most = kinds.max_by_key(|(kind, amount)| (amount.bytes, kind.index()));
        most.copied().unwrap_or_default()
    }

    /// Whether the request alone is more than everything that was live: nothing filled the device.
    fn is_too_large_alone(&self) -> bool {
        self.asked > self.live.total.bytes
    }

    /// The kind that does not fit. What a phase that keeps what it makes asks for is that, even if
    /// another kind holds more.
    fn kind_at_fault(&self, case: &Case<'_>) -> (Kind, Amount) {
        let kind = match case.lines.phases.get(self.asked_by) {
            Phase::Optimizer => Kind::OptimizerState,
            Phase::Build => Kind::Parameter,
            _ => return self.most(),
        };
        let found = self.live.by_kind.iter().find(|(found, _)| *found == kind);
        (kind, found.map_or(Amount::default(), |(_, amount)| *amount))
    }
}

fn explain(case: &Case<'_>, position: u32, leaks: &[Finding]) -> Finding {
    let failure = Failure::at(case, position);
    let leak = leaks.iter().find(|leak| leak.bytes > failure.live.total.bytes / 4);
    // Where more is left behind than lies in pieces, whole pieces would only have put the failure
    // off.
    let pieces =
        failure.is_fragmented() && leak.is_none_or(|leak| leak.bytes < failure.free_in_pieces);
    let alone = !pieces && failure.is_too_large_alone();
    // What earlier steps left is at fault whoever asks.
    let (kind, amount) = match leak {
        Some(_) => failure.most(),
        None => failure.kind_at_fault(case),
    };
    let (cause, advice) = match leak {
        _ if pieces => ("fragmentation".to_string(), fragmentation_advice(case)),
        _ if alone => (
            "a single request is larger than all that was live".to_string(),
            too_large_advice(case, &failure),
        ),
        Some(leak) => {
            let cause =
                format!("{kind} memory fills the device, left by earlier steps: {}", leak.cause);
            (cause, leak.advice.clone())
        }
        None if kind != failure.most().0 => {
            (format!("{kind} does not fit next to the rest"), remedy(kind, &failure, amount))
        }
        None => (format!("{kind} memory fills the device"), remedy(kind, &failure, amount)),
    };
    let site = match leak {
        _ if alone => case.lines.sites.of_stack(failure.asked_by),
        Some(leak) if !pieces => leak.site,
        _ => top_site(&failure.live),
    };
    let (bytes, count) = match (pieces, alone) {
        (true, _) => (failure.free_in_pieces, failure.segments_in_use),
        (_, true) => (failure.asked, 1),
        _ => (amount.bytes, amount.count),
    };
    Finding {
        kind: FindingKind::OutOfMemory,
        cause,
        device: case.device.device,
        bytes,
        count,
        bytes_per_step: None,
        site,
        message: message(case, &failure, leak),
        advice,
        position,
    }
}

/// What was asked for, what filled the device, and what of it is somebody's fault.
fn message(case: &Case<'_>, failure: &Failure, leak: Option<&Finding>) -> String {
    let mut message = format!(
        "{} were asked for at {} when {} were live and {} reserved; {}. {}",
        size(failure.asked),
        case.line(case.lines.sites.of_stack(failure.asked_by)),
        size(failure.live.total.bytes),
        size(failure.reserved),
        limit(failure),
        fillers(case, failure),
    );
    if failure.is_in_pieces() || failure.has_many_pieces() {
        message.push_str(&format!(
            " {} were free inside segments in use, but the largest hole had {}.",
            size(failure.free_in_pieces),
            size(failure.largest_hole)
        ));
    }
    if let Some(leak) = leak {
        message.push_str(&format!(
            " Of this, {} are left behind by earlier steps ({}).",
            size(leak.bytes),
            case.line(leak.site)
        ));
    }
    message
}

/// What set the limit.
fn limit(failure: &Failure) -> String {
    match failure.device_free >= failure.asked {
        true => format!(
            "the device itself had {} free, so a limit set for this process was reached",
            size(failure.device_free)
        ),
        false => format!("the device had {} free", size(failure.device_free)),
    }
}

/// Kinds and lines that hold the most.
fn fillers(case: &Case<'_>, failure: &Failure) -> String {
    let total = failure.live.total.bytes;
    let mut kinds = failure.live.by_kind.clone();
    kinds.sort_by_key(|(kind, amount)| (std::cmp::Reverse(amount.bytes), kind.index()));
    let kinds: Vec<String> = kinds
        .iter()
        .take(3)
        .map(|(kind, amount)| {
            format!("{kind} {} ({} %)", size(amount.bytes), percent(amount.bytes, total))
        })
        .collect();
    let sites: Vec<String> = failure
        .live
        .by_site
        .iter()
        .take(3)
        .map(|(site, amount)| {
            let count = counted(amount.count, "allocation");
            format!("{} with {} in {count}", case.line(*site), size(amount.bytes))
        })
        .collect();
    let inferred = if case.device.kinds_inferred { " (kinds are inferred)" } else { "" };
    let held = match failure.is_too_large_alone() {
        true => "Live were",
        false => "The device was filled by",
    };
    format!("{held} {}{inferred}; the most by {}.", kinds.join(", "), sites.join("; "))
}

fn top_site(live: &LiveSet) -> crate::analysis::SiteId {
    let known = live.by_site.iter().find(|(site, _)| *site != Sites::NOWHERE);
    known.or(live.by_site.first()).map_or(Sites::NOWHERE, |(site, _)| *site)
}

fn too_large_advice(case: &Case<'_>, failure: &Failure) -> String {
    let smaller = "Make that one tensor smaller: a smaller batch or a shorter sequence, or compute it in parts \
                   (fused attention never makes the whole matrix of scores).";
    match failure.has_many_pieces() {
        false => smaller.to_string(),
        true => format!(
            "Without the free pieces between live blocks it may have fitted: {} Or make it smaller.",
            fragmentation_advice(case)
        ),
    }
}

fn fragmentation_advice(case: &Case<'_>) -> String {
    let on = ("expandable_segments".to_string(), "true".to_string());
    if case.snapshot.settings.contains(&on) {
        return "Expandable segments are on already: make sizes repeat (pad to a few lengths), or allocate \
                long-lived tensors before short-lived ones."
            .to_string();
    }
    "Set PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before 2.9); allocate \
     long-lived tensors before short-lived ones, and make sizes repeat (pad to a few lengths)."
        .to_string()
}

/// What would have made it fit, for each kind that can fill a device.
fn remedy(kind: Kind, failure: &Failure, amount: Amount) -> String {
    // Without knowing the limit, what is missing is at most what was asked for.
    let missing = failure.asked.saturating_sub(match failure.device_free >= failure.asked {
        true => 0,
        false => failure.device_free,
    });
    let about = match amount.bytes {
        0 => format!("This request lacked at most {}. ", size(missing)),
        all => {
            let share = percent(missing, all).max(1);
            format!(
                "This request lacked at most {} ({share} % of the {kind} memory). ",
                size(missing)
            )
        }
    };
    about
        + match kind {
            Kind::Activation => {
                "Take a smaller batch and gather gradients over several, checkpoint the layers \
                 (`torch.utils.checkpoint`), or run in bfloat16; where nothing is learned, run under \
                 `torch.no_grad()`."
            }
            Kind::Input => "Take a smaller batch, or bring batches to the device one at a time.",
            Kind::OptimizerState => {
                "Use an optimizer with less state (8-bit Adam, Adafactor, SGD), keep its state in lower \
                 precision or on the host, or shard it (ZeRO, FSDP)."
            }
            Kind::Parameter => {
                "Load the weights in bfloat16 or 8 bits, shard them (FSDP), or take a smaller model."
            }
            Kind::Gradient => {
                "Free gradients early (`zero_grad(set_to_none=True)`, an optimizer step in backward), or \
                 shard them."
            }
            Kind::Temporary | Kind::Workspace | Kind::Unknown => {
                "Look at the lines above: split the work into smaller parts, or free what is no \
                 longer needed before this line."
            }
        }
}
