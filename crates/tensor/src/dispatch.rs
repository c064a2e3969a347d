//! The one path of every operation, and the page to read first: infer, pin, allocate, claim,
//! launch, record.
//!
//! `api/` calls `prepare::apply` with an operation value and the caller's line, which brings the
//! operands together and calls [`apply_on`]. Nothing else runs kernels, allocates tensor memory or
//! writes the graph.

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Kind, OriginId, Site, enter_operation, with_site};
use smallvec::SmallVec;

use crate::Tensor;
use crate::autograd::node::Edges;
use crate::autograd::record::{self, Recorded};
use crate::autograd::saved::SavedTensors;
use crate::autograd::views::ViewOf;
use crate::autograd::{is_inference_mode_enabled, rules};
use crate::checkpoint::selective;
use crate::device::Entry;
use crate::launch::{self, LaunchRequest, Need, PinnedOperands};
use crate::observe;
use crate::operation::{Inferred, Metas, Needs, Operation, Outputs, Saves};
use crate::storage::Storage;
use crate::storage::{dependents, provenance};
use plimsoll_kernels::Meta;

/// Where results go.
#[derive(Clone, Copy)]
pub(crate) enum Dest<'a> {
    /// New tensors.
    New,
    /// Over input 0.
    InPlace,
    /// Into these tensors, which must have the right shape and dtype.
    Out(&'a [&'a Tensor]),
    /// New tensors, and beside them these, which the operation reads and writes: running
    /// statistics, parameters and their states. The kernel finds them behind its new results.
    Mutating(&'a [&'a Tensor]),
}

/// The first of an operation's results; every operation has one.
pub(crate) fn first(mut outputs: Outputs) -> Tensor {
    outputs.swap_remove(0)
}

/// Runs `op` on the device of `entry`: the only way for operations without inputs.
pub(crate) fn apply_on(
    entry: &'static Entry,
    op: &dyn Operation,
    inputs: &[&Tensor],
    dest: Dest<'_>,
    site: Site,
) -> Result<Outputs> {
    let mut outputs = Outputs::new();
    apply_into(entry, op, inputs, dest, site, &mut outputs)?;
    Ok(outputs)
}

/// Runs `op` and puts its results into `outputs`. What is inferred and made stays where it is on
/// the way through here: moving layouts and lists of tensors from function to function was a fifth
/// of a small operation. Inlined, because entering and leaving functions is a tenth of what is
/// left.
#[inline(always)]
pub(crate) fn apply_into(
    entry: &'static Entry,
    op: &dyn Operation,
    inputs: &[&Tensor],
    dest: Dest<'_>,
    site: Site,
    outputs: &mut Outputs,
) -> Result<()> {
    entry.between_operations();
    let needs = rules::needs(op.info(), inputs);
    let call = Call { op, entry, inputs, needs, site };
    match inputs {
        _ if observe::is_on() => call.heard(dest, outputs),
        // The usual numbers, without a list.
        [a] => call.apply(&[a.meta()], dest, outputs),
        [a, b] => call.apply(&[a.meta(), b.meta()], dest, outputs),
        _ => {
            let metas: SmallVec<[&Meta; 4]> = inputs.iter().map(|input| input.meta()).collect();
            call.apply(&metas, dest, outputs)
        }
    }
}

/// A view: the same storage under another layout, in the graph if its base is.
fn view(
    op: &dyn Operation,
    source: &Tensor,
    meta: Meta,
    needs: Needs,
    site: Site,
) -> Result<Tensor> {
    // Without a derivative the view is no part of a graph, whatever its base is.
    let plain = !op.info().differentiable;
    if plain || (source.is_inference() && is_inference_mode_enabled()) {
        return Ok(source.alias(meta, None));
    }
    let tensor = source.alias(meta, Some(ViewOf::extend(source, op)));
    if needs.any() {
        Recorded {
            op,
            entry: source.entry(),
            inputs: &[source],
            needs,
            edges: record::edges(op.info().name, &[source], needs)?,
            saves: Saves::NOTHING,
            saved: SavedTensors::default(),
            origin: OriginId::intern(op.info().name, site),
            site,
        }
        .outputs(std::slice::from_ref(&tensor))?;
    }
    Ok(tensor)
}

/// One operation about to run.
struct Call<'a> {
    op: &'a dyn Operation,
    entry: &'static Entry,
    inputs: &'a [&'a Tensor],
    needs: Needs,
    site: Site,
}

impl Call<'_> {
    fn name(&self) -> &'static str {
        self.op.info().name
    }

    /// Runs it while observers listen.
    #[cold]
    #[inline(never)]
    fn heard(&self, dest: Dest<'_>, outputs: &mut Outputs) -> Result<()> {
        let metas: SmallVec<[&Meta; 4]> = self.inputs.iter().map(|input| input.meta()).collect();
        let in_place = matches!(dest, Dest::InPlace);
        let written: &[&Tensor] = match dest {
            Dest::New => &[],
            Dest::InPlace => &self.inputs[..1],
            Dest::Out(targets) | Dest::Mutating(targets) => targets,
        };
        let (name, device) = (self.name(), self.entry.device());
        let call =
            observe::Call::operation(name, in_place, self.site, device, self.inputs, written);
        let entered = observe::enter(&call);
        let done = self.apply(&metas, dest, outputs);
        entered.leave(outputs);
        done
    }

    #[inline(always)]
    fn apply(&self, metas: &[&Meta], dest: Dest<'_>, outputs: &mut Outputs) -> Result<()> {
        match self.op.infer(metas, self.needs) {
            Ok(Inferred::Exact(ref mut inferred)) => self.run(metas, inferred, dest, outputs),
            Ok(Inferred::AtMost(bound)) => {
                let mut inferred = self.measure(metas, bound)?;
                self.run(metas, &mut inferred, dest, outputs)
            }
            Ok(Inferred::View(meta)) => {
                outputs.push(view(self.op, self.inputs[0], meta, self.needs, self.site)?);
                Ok(())
            }
            Err(error) => Err(error.in_operation(self.name())),
        }
    }

    fn run(
        &self,
        metas: &[&Meta],
        inferred: &mut Metas,
        dest: Dest<'_>,
        outputs: &mut Outputs,
    ) -> Result<()> {
        let origin = OriginId::intern(self.name(), self.site);
        let saves = if self.needs.any() { self.op.saves(self.needs) } else { Saves::NOTHING };

        let fresh = matches!(dest, Dest::New);
        let selects = fresh && selective::is_on();
        if selects && let Some(kept) = selective::take(self.name(), self.site)? {
            outputs.extend(kept);
            return self.stand_in(saves, origin, outputs);
        }
        let mut held = PinnedOperands::inputs(self.inputs)?;
        // Before the outputs are made: computing again ends here, at the last value that is saved.
        let before = if self.needs.any() { Some(self.before_write(saves, dest)?) } else { None };
        let fresh_workspace = fresh.then(|| self.workspace(metas, inferred));
        let made = self.fill(outputs, inferred, dest, origin)?;
        let outputs = &outputs[..];
        // New tensors are nobody else's yet.
        let (made, given) = outputs.split_at(made);
        held.and_outputs(outputs)?;
        let reclaimable = self.entry.reclaimable().is_on();
        let dependents =
            if reclaimable && !fresh { Some(dependents::pin_dependents(given)?) } else { None };

        // Workspaces follow the outputs, so that a dry run allocates in the same order.
        let workspace = fresh_workspace.unwrap_or_else(|| {
            let targets: Metas = outputs.iter().map(|output| output.meta().clone()).collect();
            self.workspace(metas, &targets)
        });
        let request = LaunchRequest { entry: self.entry, op: self.op, origin, workspace };
        held.launch(&request, outputs, given, || {
            for output in given {
                output.written_by(origin);
            }
            // What an operation wrote besides cannot be written again.
            if fresh && reclaimable {
                // Under the claim, so that the versions are those that the kernel read.
                provenance::remember(self.op, self.inputs, outputs, origin);
            }
        })?;
        drop(dependents);
        if let Some(before) = before {
            let recorded = self.recorded(before, saves, origin);
            match dest {
                Dest::InPlace => recorded.in_place(self.inputs[0])?,
                Dest::New | Dest::Mutating(_) => recorded.outputs(made)?,
                Dest::Out(_) => recorded.outputs(outputs)?,
            }
        }
        if selects { selective::offer(self.name(), self.inputs, outputs) } else { Ok(()) }
    }

    /// What a node is made of.
    fn recorded(
        &self,
        (edges, saved): (Edges, SavedTensors),
        saves: Saves,
        origin: OriginId,
    ) -> Recorded<'_> {
        Recorded {
            op: self.op,
            entry: self.entry,
            inputs: self.inputs,
            needs: self.needs,
            edges,
            saves,
            saved,
            origin,
            site: self.site,
        }
    }

    /// Results that were kept stand in for the operation: it is recorded and does not run.
    #[cold]
    fn stand_in(&self, saves: Saves, origin: OriginId, outputs: &[Tensor]) -> Result<()> {
        if !self.needs.any() {
            return Ok(());
        }
        let before = self.before_write(saves, Dest::New)?;
        self.recorded(before, saves, origin).outputs(outputs)
    }

    fn workspace(&self, inputs: &[&Meta], outputs: &[Meta]) -> Need {
        launch::workspace(self.entry, self.op, inputs, outputs)
    }

    /// Fills in the tensors to write: new ones, input 0, or the caller's. Gives back how many are
    /// new.
    fn fill(
        &self,
        outputs: &mut Outputs,
        inferred: &mut Metas,
        dest: Dest<'_>,
        origin: OriginId,
    ) -> Result<usize> {
        let given: SmallVec<[&Tensor; 2]> = match dest {
            Dest::New => {
                self.make(outputs, inferred, origin)?;
                return Ok(outputs.len());
            }
            Dest::Mutating(given) => {
                check_mutated(self.name(), self.inputs, given, self.needs)?;
                self.make(outputs, inferred, origin)?;
                let made = outputs.len();
                outputs.extend(given.iter().map(|&tensor| tensor.clone()));
                return Ok(made);
            }
            Dest::InPlace => {
                rules::check_in_place(self.name(), self.inputs[0], self.needs)?;
                smallvec::smallvec![self.inputs[0]]
            }
            Dest::Out(outs) => {
                rules::check_out(self.op.info(), outs, self.inputs)?;
                outs.iter().copied().collect()
            }
        };
        for (index, (tensor, meta)) in given.iter().zip(&*inferred).enumerate() {
            self.check_target(index, tensor, meta)?;
        }
        outputs.extend(given.into_iter().cloned());
        Ok(0)
    }

    /// New tensors as `inferred` says.
    #[inline(always)]
    fn make(&self, outputs: &mut Outputs, inferred: &mut Metas, origin: OriginId) -> Result<()> {
        // From the end, where taking one moves no other.
        inferred.reverse();
        while let Some(meta) = inferred.pop() {
            let bytes = checked_bytes(self.name(), &meta)?;
            let storage = Storage::allocate(self.entry, bytes, origin, Kind::Temporary)?;
            outputs.push(Tensor::new(storage, meta));
        }
        Ok(())
    }

    /// Refuses a target of another shape or dtype, one that overlaps itself, and one that overlaps
    /// an input other than exactly (elements would be overwritten before they are read).
    fn check_target(&self, index: usize, target: &Tensor, expected: &Meta) -> Result<()> {
        if target.shape() != expected.shape() {
            return Err(Error::target_shape(self.name(), expected.shape(), target.shape()));
        }
        if target.dtype() != expected.dtype {
            return Err(Error::dtype(
                self.name(),
                format!(
                    "the result is {} and cannot be written to a tensor of {}; convert with `to`",
                    expected.dtype,
                    target.dtype()
                ),
            ));
        }
        if target.layout().may_overlap_itself() {
            return Err(Error::shape(
                self.name(),
                format!(
                    "the target of shape {:?} with strides {:?} has elements that share memory (is it expanded?); \
                     make it `contiguous` or write to a clone",
                    target.shape(),
                    target.strides()
                ),
            ));
        }
        for (position, input) in self.inputs.iter().enumerate() {
            if input.shares_storage_with(target)
                && !input.meta().is_same_view(target.meta())
                && input.meta().overlaps(target.meta())
            {
                return Err(Error::shape(
                    self.name(),
                    format!(
                        "target {index} and input {position} overlap in memory without being the same view; clone \
                         the input first"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// What the graph needs of the inputs as they are before the operation runs: their places in
    /// it, and the values that backward reads.
    #[inline(never)]
    fn before_write(&self, saves: Saves, dest: Dest<'_>) -> Result<(Edges, SavedTensors)> {
        let edges = record::edges(self.name(), self.inputs, self.needs)?;
        if !saves.inputs.any() {
            return Ok((edges, SavedTensors::default()));
        }
        Ok((edges, self.save_inputs(saves, dest)?))
    }

    /// Keeps the inputs that backward needs. Of an input about to be overwritten that is a copy.
    fn save_inputs(&self, saves: Saves, dest: Dest<'_>) -> Result<SavedTensors> {
        if matches!(dest, Dest::InPlace) && saves.inputs.has(0) {
            // The copy stands in the graph where the input stood, so that gradients of gradients
            // find their way.
            let _named = enter_operation(self.name());
            let copy = with_site(self.site, || self.inputs[0].clone_tensor())?;
            let mut inputs: SmallVec<[&Tensor; 4]> = self.inputs.iter().copied().collect();
            inputs[0] = &copy;
            return SavedTensors::keep_inputs(self.name(), saves, &inputs);
        }
        SavedTensors::keep_inputs(self.name(), saves, self.inputs)
    }

    /// The exact metas of a result whose size depends on data.
    fn measure(&self, metas: &[&Meta], bound: Metas) -> Result<Metas> {
        if self.entry.device().is_dry() {
            return self.entry.dry_bound(self.name(), bound);
        }
        let held = PinnedOperands::inputs(self.inputs)?;
        let origin = OriginId::intern(self.name(), self.site);
        let workspace = self.workspace(metas, &[]);
        held.measure(&LaunchRequest { entry: self.entry, op: self.op, origin, workspace })
    }
}

/// Whether `given` may be written beside the results: none overlaps itself, another of them, or an
/// input. Sorted by place, so that hundreds of tensors are looked at once each.
pub(crate) fn check_mutated(
    op: &'static str,
    inputs: &[&Tensor],
    given: &[&Tensor],
    needs: Needs,
) -> Result<()> {
    for target in given {
        rules::check_in_place(op, target, needs)?;
        if target.layout().may_overlap_itself() {
            return Err(overlap(op, target, target));
        }
    }
    let written = given.iter().map(|&tensor| (tensor, true));
    let mut all: Vec<(&Tensor, bool)> =
        written.chain(inputs.iter().map(|&input| (input, false))).collect();
    let start = |tensor: &Tensor| tensor.storage_offset() * tensor.element_size();
    let storage = |tensor: &Tensor| std::sync::Arc::as_ptr(tensor.storage()).addr();
    all.sort_by_key(|(tensor, _)| (storage(tensor), start(tensor)));
    // Those of the present storage that reach past the start of the next.
    let mut open: Vec<(&Tensor, bool)> = Vec::new();
    for (tensor, writes) in all {
        open.retain(|(other, _)| {
            storage(other) == storage(tensor) && other.meta().span_bytes() > start(tensor)
        });
        let clash = open.iter().find(|(other, other_writes)| {
            (writes || *other_writes) && other.meta().overlaps(tensor.meta())
        });
        if let Some((other, _)) = clash {
            return Err(overlap(op, tensor, other).because(SharedMemory));
        }
        open.push((tensor, writes));
    }
    Ok(())
}

#[cold]
fn overlap(op: &'static str, a: &Tensor, b: &Tensor) -> Error {
    Error::shape(
        op,
        format!(
            "tensors of shapes {:?} and {:?} share memory, and one of them is written; clone one first",
            a.shape(),
            b.shape()
        ),
    )
}

/// Lies behind the error of tensors that share memory with each other: nothing was written yet, and
/// who has lists of them can go through these one by one.
#[derive(Debug)]
pub(crate) struct SharedMemory;

impl std::fmt::Display for SharedMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("they are two operands of one operation, which goes over them in no order")
    }
}

impl std::error::Error for SharedMemory {}

/// Bytes of a new tensor, refused if they pass the address space.
fn checked_bytes(op: &'static str, meta: &Meta) -> Result<usize> {
    meta.layout.span().checked_mul(meta.dtype.size_bytes()).ok_or_else(|| {
        Error::shape(op, format!("a tensor of shape {:?} is too large", meta.shape()))
    })
}

/// Whether an operation may call code that is not this crate's: an observer, or the policy of a
/// selective checkpoint.
///
/// ```
/// assert!(!plimsoll_tensor::calls_foreign_code());
/// ```
#[inline]
pub fn calls_foreign_code() -> bool {
    observe::is_on() || selective::is_on()
}
