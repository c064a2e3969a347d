//! Recipes: how a storage whose bytes were dropped is computed again.
//!
//! Note [Recipes]
//! A storage can be dropped while nobody wrote it and everything that it takes to make it again is
//! there: what its operation read is alive and unwritten, or can itself be made again by its own
//! record (`provenance.rs`), and so on back. The recipe is all those steps in order. It holds the
//! storages that it reads, and they know of it: a later write to one first brings its dependents
//! home (`dependents.rs`). Results in between live only while the steps run, one after the other.
//! Operations are values without hidden state (random ones carry their seed and offset), so running
//! one again gives the same bytes; one that is not says so (`Operation::is_pure`) and is never in a
//! recipe.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_core::Result;
use plimsoll_memory::{Kind, OriginId};
use smallvec::SmallVec;

use super::Storage;
use super::provenance::{Made, Record};
use crate::Tensor;
use crate::launch::{self, LaunchRequest, PinnedOperands};
use plimsoll_kernels::Meta;

/// Steps of a recipe at most; what takes more is spilled.
const STEPS_MAX: usize = 1024;

/// How a dropped storage is computed again. Holds what it needs.
pub(crate) struct Recipe {
    /// The storages that it reads.
    ingredients: Vec<Arc<Storage>>,
    /// In the order in which they run; the last makes the storage.
    steps: Vec<Step>,
    /// Which result of the last step the storage is.
    output: usize,
    /// Who made the device's block, and its bytes after rounding; known once it is dropped.
    pub(super) home: (OriginId, usize),
}

/// One operation to run again.
struct Step {
    record: Arc<Record>,
    inputs: SmallVec<[From; 2]>,
    /// The last step that reads a result of this one.
    last_reader: usize,
}

/// Where an operand comes from.
#[derive(Clone, Copy)]
enum From {
    Ingredient(usize),
    Step { step: usize, output: usize },
}

impl Storage {
    /// The recipe, if it would still give the present bytes; from now on writers of its ingredients
    /// know of this storage.
    pub(crate) fn recipe(self: &Arc<Storage>) -> Option<Recipe> {
        let made = self.provenance.made()?;
        if self.writes() != 0 || self.is_exposed() {
            return None;
        }
        let mut plan = Plan { target: self, ingredients: Vec::new(), steps: Vec::new() };
        plan.follow(made)?;
        let Plan { ingredients, steps, .. } = plan;
        Some(Recipe { ingredients, steps, output: made.output, home: (OriginId::UNKNOWN, 0) })
    }
}

/// A recipe in the making.
struct Plan<'a> {
    target: &'a Arc<Storage>,
    ingredients: Vec<Arc<Storage>>,
    steps: Vec<Step>,
}

/// A record on the way to becoming a step: the operands found so far.
struct Open {
    record: Arc<Record>,
    inputs: SmallVec<[From; 2]>,
}

impl Plan<'_> {
    /// Makes steps of everything behind `made`, far end first; `None` if something is gone for
    /// good.
    fn follow(&mut self, made: &Made) -> Option<()> {
        let mut number: HashMap<*const Record, usize> = HashMap::new();
        let mut stack = vec![Open::new(&made.record)];
        while let Some(open) = stack.last_mut() {
            let Some(parent) = open.record.parents.get(open.inputs.len()) else {
                let open = stack.pop()?;
                number.insert(Arc::as_ptr(&open.record), self.steps.len());
                self.close(open)?;
                continue;
            };
            let alive = parent.storage.upgrade();
            if let Some(storage) = alive.filter(|s| s.serve(self.target, parent.writes)) {
                open.inputs.push(From::Ingredient(self.ingredients.len()));
                self.ingredients.push(storage);
                continue;
            }
            // Gone, or not what was read any more: its own record may make it.
            let Made { record, output } = parent.made.clone()?;
            match number.get(&Arc::as_ptr(&record)) {
                Some(&step) => open.inputs.push(From::Step { step, output }),
                None => stack.push(Open::new(&record)),
            }
        }
        Some(())
    }

    /// All operands of a record are known: it becomes the next step.
    fn close(&mut self, open: Open) -> Option<()> {
        let own = self.steps.len();
        for input in &open.inputs {
            if let From::Step { step, .. } = *input {
                self.steps[step].last_reader = own;
            }
        }
        self.steps.push(Step { record: open.record, inputs: open.inputs, last_reader: own });
        (self.steps.len() <= STEPS_MAX).then_some(())
    }
}

impl Open {
    fn new(record: &Arc<Record>) -> Open {
        Open { record: record.clone(), inputs: SmallVec::new() }
    }
}

impl Recipe {
    /// Who made the storage.
    pub(crate) fn origin(&self) -> OriginId {
        self.last().map_or(OriginId::UNKNOWN, |record| record.origin)
    }

    /// The operation that made the storage.
    pub(crate) fn operation(&self) -> &'static str {
        self.last().map_or("unknown", |record| record.op.info().name)
    }

    fn last(&self) -> Option<&Record> {
        self.steps.last().map(|step| step.record.as_ref())
    }

    /// Bytes that its operations read and write.
    pub(crate) fn cost(&self) -> u64 {
        self.steps.iter().map(|step| step.record.cost).sum()
    }

    /// The storages that it reads.
    pub(crate) fn ingredients(&self) -> impl Iterator<Item = &Arc<Storage>> {
        self.ingredients.iter()
    }

    /// Runs into the memory that `target` now has; its place is locked and says that it is away.
    /// Ingredients are at home and stay there.
    pub(super) fn cook(&self, target: &Arc<Storage>) -> Result<()> {
        let last = self.steps.len().saturating_sub(1);
        let mut results: Vec<SmallVec<[Tensor; 2]>> = Vec::with_capacity(self.steps.len());
        for (number, step) in self.steps.iter().enumerate() {
            let inputs = self.operands(step, &results);
            let into = (number == last).then_some((target, self.output));
            results.push(step.run(target, &inputs, into)?);
            // What nobody reads any more goes now: a chain takes the memory of two links.
            for read in &step.inputs {
                if let From::Step { step, .. } = *read
                    && self.steps[step].last_reader == number
                {
                    results[step].clear();
                }
            }
        }
        Ok(())
    }

    fn operands(&self, step: &Step, results: &[SmallVec<[Tensor; 2]>]) -> SmallVec<[Tensor; 2]> {
        let parents = step.record.parents.iter();
        let operand = |from: &From, meta: &Meta| {
            let storage = match *from {
                From::Ingredient(number) => &self.ingredients[number],
                From::Step { step, output } => results[step][output].storage(),
            };
            Tensor::new(storage.clone(), meta.clone())
        };
        step.inputs.iter().zip(parents).map(|(from, p)| operand(from, &p.meta)).collect()
    }
}

impl Step {
    /// Runs the operation; result `into.1` goes to the storage `into.0`, others to memory of their
    /// own.
    fn run(
        &self,
        target: &Arc<Storage>,
        inputs: &[Tensor],
        into: Option<(&Arc<Storage>, usize)>,
    ) -> Result<SmallVec<[Tensor; 2]>> {
        let (entry, record) = (target.entry, self.record.as_ref());
        let mut outputs = SmallVec::new();
        for (number, meta) in record.outputs.iter().enumerate() {
            let storage = match into {
                Some((storage, output)) if output == number => storage.clone(),
                _ => {
                    let bytes = meta.span_bytes();
                    Storage::allocate_fixed(entry, bytes, record.origin, Kind::Temporary)?
                }
            };
            outputs.push(Tensor::new(storage, meta.clone()));
        }
        let inputs: SmallVec<[&Tensor; 2]> = inputs.iter().collect();
        // The outputs are not pinned: one of them is the storage that is on its way home.
        let held = PinnedOperands::inputs(&inputs)?;
        let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
        let (op, origin) = (record.op.as_ref(), record.origin);
        let workspace = launch::workspace(entry, op, &metas, &record.outputs);
        held.launch(&LaunchRequest { entry, op, origin, workspace }, &outputs, &[], || ())?;
        Ok(outputs)
    }
}
