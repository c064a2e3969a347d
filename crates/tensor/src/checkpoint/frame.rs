//! One checkpointed call: what to run again, with which inputs, and what it saved the first time.
//!
//! Note [What a checkpoint keeps]
//! While the function first runs, hooks on saved tensors keep a number in the place of each: its
//! position in the order of saving. The first backward that unpacks one runs the function again
//! with other hooks, which keep the values by position, and stops it at the last. Values are handed
//! out once and are gone then; what nobody asked for goes when backward ends. The inputs are saved
//! values themselves: inside another checkpoint they are positions of that one, so nested calls
//! keep nothing.

use std::sync::{Arc, Weak};

use plimsoll_core::{Error, Result};
use plimsoll_memory::OriginId;

use super::failure::{self, Facts, OP};
use super::selective::SelectiveCheckpoint;
use super::surroundings::Surroundings;
use super::trace::Trace;
use crate::Tensor;
use crate::autograd::saved::{Held, SavedTensors, Saver};
use crate::autograd::{Packed, SavedTensorsHooks, SavedTensorsScope, enable_grad, runs};
use crate::lock::Mutex;

/// Runs the function again; its results are of no interest.
pub(super) type Again = Box<dyn Fn(&[Tensor]) -> Result<()> + Send + Sync>;

/// A checkpointed call that graphs hold.
pub(super) struct Frame {
    again: Again,
    inputs: SavedTensors,
    surroundings: Surroundings,
    early_stop: bool,
    compares: bool,
    origin: OriginId,
    /// The operations of the first run, to be told if the second differs.
    trace: Option<Trace>,
    selective: Option<SelectiveCheckpoint>,
    state: Mutex<State>,
}

/// What distinguishes one checkpointed call from others.
pub(super) struct Settings {
    pub(super) preserve_rng_state: bool,
    pub(super) early_stop: bool,
    pub(super) compares: bool,
    pub(super) debug: bool,
    pub(super) selective: Option<SelectiveCheckpoint>,
    pub(super) origin: OriginId,
}

#[derive(Default)]
struct State {
    /// Whether the function came to its end the first time.
    completed: bool,
    /// What it saved, in order.
    saved: Vec<Facts>,
    /// Whether a node still needs what has that position.
    needed: Vec<Weak<Position>>,
    /// What was made again, for each backward that is going on.
    recomputed: Vec<(u64, Values)>,
}

/// The values of one recomputation, by position.
#[derive(Default)]
struct Values {
    facts: Vec<Facts>,
    held: Vec<Option<Held>>,
    stopped: bool,
}

/// What is kept in a saved tensor's place.
struct Position(usize);

impl Frame {
    pub(super) fn new(settings: Settings, inputs: &[&Tensor], again: Again) -> Result<Frame> {
        Ok(Frame {
            again,
            inputs: SavedTensors::keep_tensors(OP, inputs)?,
            surroundings: Surroundings::current(settings.preserve_rng_state),
            early_stop: settings.early_stop,
            compares: settings.compares,
            origin: settings.origin,
            trace: settings.debug.then(Trace::default),
            selective: settings.selective,
            state: Mutex::default(),
        })
    }

    /// The first run: what it saves is counted and not kept.
    pub(super) fn record<R>(self: &Arc<Frame>, body: impl FnOnce() -> Result<R>) -> Result<R> {
        let _hooks = SavedTensorsScope::enter(Arc::new(Recorder(self.clone())));
        let _trace = self.trace.as_ref().map(Trace::listen);
        let _selective = self.selective.as_ref().map(SelectiveCheckpoint::record);
        let result = body()?;
        self.state.lock().completed = true;
        Ok(result)
    }

    /// The value at a position, for the backward that is going on.
    fn restore(self: &Arc<Frame>, position: usize) -> Result<Tensor> {
        let run = runs::current()
            .ok_or_else(|| Error::autograd(OP, "a saved value was read outside of every run"))?;
        let first = self.state.lock().begin(run);
        if first {
            let frame = Arc::downgrade(self);
            runs::at_end(move || {
                let frame = frame.upgrade();
                let gone = frame.as_ref().and_then(|frame| frame.state.lock().end(run));
                drop(gone);
            });
            self.recompute(run)?;
        }
        let held = self.state.lock().values(run).and_then(|values| values.take(position));
        let held = held.ok_or_else(|| failure::unpacked_twice(runs::in_group()))?;
        held.check(&self.saver(), "tensor", position)?;
        Ok(held.tensor())
    }

    fn saver(&self) -> Saver<'_> {
        Saver { name: OP, origin: self.origin, node: None }
    }

    /// Runs the function again as far as it is needed, and compares.
    fn recompute(self: &Arc<Frame>, run: u64) -> Result<()> {
        let inputs = self.inputs.tensors(&self.saver())?;
        let trace = self.trace.as_ref().map(|_| Trace::default());
        let outcome = self.surroundings.resume(|| {
            let hooks = Recomputer { frame: Arc::downgrade(self), run };
            let _hooks = SavedTensorsScope::enter(Arc::new(hooks));
            let _trace = trace.as_ref().map(Trace::listen);
            let _selective = self.selective.as_ref().map(SelectiveCheckpoint::replay);
            enable_grad(|| (self.again)(&inputs))
        });
        drop(inputs);
        let mut state = self.state.lock();
        let stopped = state.values(run).is_some_and(|values| values.stopped);
        let verdict = if stopped { Ok(()) } else { outcome };
        let verdict = verdict.and_then(|()| state.compare(run, self.compares));
        drop(state);
        verdict.map_err(|error| match (&self.trace, &trace) {
            (Some(forward), Some(again))
                if error.detail::<failure::CheckpointFailure>().is_some() =>
            {
                failure::with_operations(&error, &forward.operations(), &again.operations())
            }
            _ => error,
        })
    }
}

impl State {
    /// Whether `run` is the first to ask.
    fn begin(&mut self, run: u64) -> bool {
        if self.values(run).is_some() {
            return false;
        }
        let held = self.needed.iter().map(|_| None).collect();
        self.recomputed.push((run, Values { held, ..Values::default() }));
        true
    }

    fn values(&mut self, run: u64) -> Option<&mut Values> {
        self.recomputed.iter_mut().find(|(id, _)| *id == run).map(|(_, values)| values)
    }

    /// Takes what is left of a run.
    fn end(&mut self, run: u64) -> Option<Values> {
        let at = self.recomputed.iter().position(|(id, _)| *id == run)?;
        Some(self.recomputed.swap_remove(at).1)
    }

    /// Refuses a recomputation that saved other tensors than the forward.
    fn compare(&mut self, run: u64, compares: bool) -> Result<()> {
        let State { completed, saved, needed, recomputed } = self;
        let Some((_, values)) = recomputed.iter().find(|(id, _)| *id == run) else {
            return Ok(());
        };
        let again = &values.facts;
        if again.len() != saved.len() && (*completed || again.len() < saved.len()) {
            return Err(failure::fewer(saved, again));
        }
        let differs = |&at: &usize| needed[at].strong_count() > 0 && saved[at] != again[at];
        let positions: Vec<usize> = (0..saved.len()).filter(differs).collect();
        match failure::different(saved, again, &positions) {
            Some(error) if compares => Err(error),
            _ => Ok(()),
        }
    }
}

impl Values {
    fn take(&mut self, position: usize) -> Option<Held> {
        self.held.get_mut(position).and_then(Option::take)
    }
}

/// The hooks of the first run.
struct Recorder(Arc<Frame>);

impl SavedTensorsHooks for Recorder {
    fn pack(&self, tensor: &Tensor) -> Result<Packed> {
        let mut state = self.0.state.lock();
        let position = Arc::new(Position(state.saved.len()));
        state.saved.push(Facts::of(tensor));
        state.needed.push(Arc::downgrade(&position));
        Ok(Box::new(position))
    }

    fn unpack(&self, packed: &Packed) -> Result<Tensor> {
        let position = packed.downcast_ref::<Arc<Position>>().ok_or_else(foreign)?;
        self.0.restore(position.0)
    }

    fn is_checked(&self) -> bool {
        self.0.compares
    }
}

fn foreign() -> Error {
    Error::autograd(OP, "unpack was handed what another hook packed")
}

/// The hooks of a later run. The graph that this run makes can be differentiated too: the function
/// may ask for gradients inside.
struct Recomputer {
    // The function may keep its results, and with them this.
    frame: Weak<Frame>,
    run: u64,
}

impl SavedTensorsHooks for Recomputer {
    fn pack(&self, tensor: &Tensor) -> Result<Packed> {
        let held = Held::of(tensor);
        let Some(frame) = self.frame.upgrade() else { return Ok(Box::new(held)) };
        let mut state = frame.state.lock();
        let State { completed, saved, needed, recomputed } = &mut *state;
        let Some((_, values)) = recomputed.iter_mut().find(|(id, _)| *id == self.run) else {
            return Ok(Box::new(held)); // The backward that it was for is over.
        };
        let at = values.facts.len();
        values.facts.push(Facts::of(tensor));
        if at >= saved.len() && *completed {
            return Err(failure::more(saved, &values.facts));
        }
        // A function that was left before its end may do more the second time.
        let Some(slot) = values.held.get_mut(at) else { return Ok(Box::new(held)) };
        *slot = (needed[at].strong_count() > 0).then(|| held.clone());
        if frame.early_stop && at + 1 == saved.len() {
            values.stopped = true;
            return Err(failure::stop());
        }
        Ok(Box::new(held))
    }

    fn unpack(&self, packed: &Packed) -> Result<Tensor> {
        packed.downcast_ref::<Held>().map(Held::tensor).ok_or_else(foreign)
    }
}
