//! From lines that grow to findings: what stays of each, gathered by who holds it, with kind, cause
//! and remedy.

use std::collections::{BTreeMap, HashMap, HashSet};

use plimsoll_memory::{Kind, OriginId, Site};
use plimsoll_watch::causes::{self, Cause};
use plimsoll_watch::{Alive, Finding, Growth, GrowthKind, Suspect, TOLERATED_BYTES};

use super::growth_watch::{GrowthWatch, KeptLine, LiveBlock, Place};
use super::ownership::{GraphRoot, Owner, Ownership, Root};
use crate::autograd::node::Node;

/// Lines that a finding names.
const MOST_LINES: usize = 4;
/// Tensors that an optimizer keeps for each parameter, at most: Adam's two averages, and its
/// maximum with `amsgrad`.
const STATES_PER_PARAMETER: usize = 3;
/// Host memory of a node in its place: what it saved and its operation come on top.
const NODE_BYTES: u64 = (size_of::<Node>() + 2 * size_of::<usize>()) as u64;

/// A finding, and the lines and holder it was made of.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) finding: Finding,
    pub(super) lines: Vec<OriginId>,
}

/// What one holder keeps.
#[derive(Default)]
struct Group {
    /// Bytes and objects of each line, and the steps it was judged over.
    lines: HashMap<OriginId, (usize, usize, u64)>,
    /// Bytes of each kind, and how those are held.
    kinds: BTreeMap<GrowthKind, (usize, Owner)>,
    is_verdict: bool,
}

impl Group {
    fn add(&mut self, line: &KeptLine, bytes: usize, owner: &Owner) {
        let sum = self.lines.entry(line.origin).or_insert((0, 0, line.judged_steps));
        (sum.0, sum.1) = (sum.0 + bytes, sum.1 + 1);
        let kind = self.kinds.entry(owner.kind).or_insert_with(|| (0, owner.clone()));
        kind.0 += bytes;
        self.is_verdict |= line.is_verdict;
    }

    /// Bytes a step.
    fn bytes(&self) -> f64 {
        self.lines.values().map(|(bytes, _, judged)| *bytes as f64 / *judged as f64).sum()
    }

    /// Objects a step.
    fn objects(&self) -> f64 {
        self.lines.values().map(|(_, objects, judged)| *objects as f64 / *judged as f64).sum()
    }

    /// The kind that has most of the bytes, and who holds it. Of equal ones the first tells more.
    fn most(&self) -> Option<(GrowthKind, &Owner)> {
        let most = self.kinds.iter().rev().max_by_key(|(_, (bytes, _))| *bytes);
        most.map(|(kind, (_, owner))| (*kind, owner))
    }

    /// The finding; `tensors` of the program lead to it.
    fn named(self, tensors: usize) -> Option<Named> {
        let (kind, owner) = self.most()?;
        let mut finding = Finding::new(kind, why(kind, owner, tensors), owner.words(tensors));
        finding.bytes_per_step = self.bytes().round() as u64;
        finding.objects_per_step = self.objects();
        finding.is_verdict = self.is_verdict;
        let mut lines: Vec<OriginId> = self.lines.keys().copied().collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(self.lines[line].0), *line));
        finding.module = lines.first().map_or(String::new(), |line| line.get().module.to_string());
        finding.lines = places(lines.iter().copied());
        Some(Named { finding, lines })
    }
}

/// The lines, each once, as one types them.
fn places(origins: impl Iterator<Item = OriginId>) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for origin in origins {
        let place = match origin.get().site.resolve() {
            Some(site) => format!("{}:{}", site.file, site.line),
            None => Site::Unknown.to_string(),
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.truncate(MOST_LINES);
    places
}

/// The cause, from how it is held; `tensors` of the program lead to it.
fn why(kind: GrowthKind, owner: &Owner, tensors: usize) -> Cause {
    let is_graph = matches!(kind, GrowthKind::Activation | GrowthKind::Nodes)
        || (kind == GrowthKind::Value && owner.has_graph);
    match owner.root {
        Root::Hook(_) => causes::HOOK,
        _ if is_graph && owner.is_scalar => causes::LOSS,
        // One tensor leads to all of it: it goes on from step to step.
        _ if is_graph && tensors == 1 => causes::STATE,
        _ if is_graph => causes::RESULTS,
        _ => kind.cause(),
    }
}

/// What grows, by holder, the largest first.
pub(super) fn findings(
    watch: &GrowthWatch,
    ownership: &Ownership,
    nodes: &mut Growth<OriginId>,
) -> Vec<Named> {
    let made_in: HashMap<Place, u64> =
        watch.blocks.iter().map(|block| (block.place, block.step)).collect();
    let is_young = |place: Option<Place>| {
        place.and_then(|place| made_in.get(&place)).is_some_and(|step| watch.is_judged(*step))
    };
    let mut groups: HashMap<Root, Group> = HashMap::new();
    let nobody = Owner::apart(Root::Nobody);
    let mut named: Vec<Named> = Vec::new();
    for line in watch.kept() {
        if line.rebuilt.is_some() {
            named.extend(rebuilt_named(&line, ownership));
            continue;
        }
        let is_of_many = watch.is_of_many_modules(line.origin);
        for block in &line.blocks {
            let owner = ownership.owners.get(&block.place).unwrap_or(&nobody);
            let outside = is_of_many.then(|| {
                let root = owner.root.map_origin(|made| watch.line_of(made));
                Owner { root, ..owner.clone() }
            });
            let owner = outside.as_ref().unwrap_or(owner);
            // Each parameter has one gradient, which may come late and is no leak.
            if owner.kind == GrowthKind::GradientOfParameter && !is_young(owner.root_place) {
                continue;
            }
            groups.entry(owner.root).or_default().add(&line, block.bytes, owner);
        }
    }
    let is_first_state = is_first_state(&watch.blocks);
    let counts = |group: &Group| {
        group.bytes() >= TOLERATED_BYTES as f64
            && !(is_first_state
                && group.kinds.keys().all(|kind| *kind == GrowthKind::OptimizerState))
    };
    let groups = groups.into_iter().filter(|(_, group)| counts(group));
    named.extend(groups.filter_map(|(root, group)| {
        let is_of_many = group.lines.keys().any(|line| watch.is_of_many_modules(*line));
        let tensors = match is_of_many {
            true => ownership.tensors_where(|of| of.map_origin(|made| watch.line_of(made)) == root),
            false => ownership.tensors_at(root),
        };
        group.named(tensors)
    }));
    let told: HashSet<String> = named.iter().map(|named| root_of(&named.finding.held_by)).collect();
    let of_nodes = growing_nodes(watch, &ownership.graphs, nodes).into_iter();
    named.extend(of_nodes.filter(|named| !told.contains(&root_of(&named.finding.held_by))));
    named.sort_by(|a, b| {
        let (a, b) = (&a.finding, &b.finding);
        b.bytes_per_step.cmp(&a.bytes_per_step).then_with(|| a.held_by.cmp(&b.held_by))
    });
    named
}

/// A tensor that is made of itself, longer each time, or a container that is copied.
fn rebuilt_named(line: &KeptLine, ownership: &Ownership) -> Option<Named> {
    let mut counts: BTreeMap<Root, (usize, &Owner)> = BTreeMap::new();
    for owner in line.blocks.iter().filter_map(|block| ownership.owners.get(&block.place)) {
        counts.entry(owner.root).or_insert((0, owner)).0 += 1;
    }
    let (_, owner) = counts.into_values().max_by_key(|(count, _)| *count)?;
    let held_by = owner.words(ownership.tensors_at(owner.root));
    let rebuilt = line.rebuilt?;
    let (cause, objects) = match rebuilt.is_copied {
        true => (causes::COPIED, rebuilt.objects_per_step),
        false => (causes::LONGER, 1.0),
    };
    let mut finding = Finding::new(owner.kind, cause, held_by);
    finding.bytes_per_step = rebuilt.bytes_per_step;
    finding.objects_per_step = objects;
    finding.is_verdict = line.is_verdict;
    finding.module = line.origin.get().module.to_string();
    finding.lines = places(std::iter::once(line.origin));
    Some(Named { finding, lines: vec![line.origin] })
}

/// A path without what lies behind its tensor.
fn root_of(held_by: &str) -> String {
    held_by.split(" -> ").next().unwrap_or_default().to_string()
}

/// Whether there is no more state than the parameters account for: an optimizer makes it when it
/// first meets a parameter, and layers that are unfrozen one after the other bring theirs late.
fn is_first_state(blocks: &[LiveBlock]) -> bool {
    let count = |kind: Kind| blocks.iter().filter(|block| block.kind == kind).count();
    count(Kind::OptimizerState) <= STATES_PER_PARAMETER * count(Kind::Parameter)
}

/// Tensors behind which ever more nodes stay: a loss that is kept after backward holds hardly any
/// bytes of tensors, but its whole graph.
fn growing_nodes(
    watch: &GrowthWatch,
    graphs: &[GraphRoot],
    growth: &mut Growth<OriginId>,
) -> Vec<Named> {
    let mut rows: HashMap<(OriginId, u64), u64> = HashMap::new();
    for graph in graphs.iter().filter(|graph| watch.watches(graph.device)) {
        for sequence in &graph.sequences {
            *rows.entry((graph.origin, watch.step_of_node(*sequence))).or_default() += 1;
        }
    }
    let alive: Vec<Alive<OriginId>> = rows
        .into_iter()
        .map(|((line, step), objects)| Alive { line, step, bytes: objects * NODE_BYTES, objects })
        .collect();
    let suspects = growth.judge(&alive, watch.steps());
    suspects.iter().filter_map(|suspect| nodes_named(suspect, graphs)).collect()
}

fn nodes_named(suspect: &Suspect<OriginId>, graphs: &[GraphRoot]) -> Option<Named> {
    let judged = suspect.judged_steps.max(1);
    if suspect.bytes / judged < TOLERATED_BYTES {
        return None;
    }
    let of_line = graphs.iter().filter(|graph| graph.origin == suspect.line);
    let tensors: HashSet<usize> = of_line.clone().map(|graph| graph.owner.root_id).collect();
    let graph = of_line.max_by_key(|graph| graph.sequences.len())?;
    let cause = why(GrowthKind::Nodes, &graph.owner, tensors.len());
    let mut finding = Finding::new(GrowthKind::Nodes, cause, graph.owner.words(tensors.len()));
    finding.bytes_per_step = suspect.bytes / judged;
    finding.objects_per_step = suspect.objects as f64 / judged as f64;
    finding.is_verdict = suspect.is_verdict();
    finding.module = suspect.line.get().module.to_string();
    finding.lines = places(std::iter::once(suspect.line));
    Some(Named { finding, lines: vec![suspect.line] })
}
