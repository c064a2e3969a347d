//! Moving tensors between devices. The one operation whose input and output live on different
//! devices, so it has its own short path beside `dispatch`: make dense, allocate there, pin, claim,
//! copy, record.
//!
//! Note [Copies between devices]
//! A copy runs on a stream of the accelerator; between two, on the target's, and the source's
//! stream waits for the target's on both sides of it, so that its memory is neither read too early
//! nor reused too early. The host waits for copies that have one end in its memory, unless the
//! caller said `non_blocking` and that memory is pinned: then it carries the copy's fence
//! (`storage/stream_order.rs`) and the queued copy keeps it alive.

use std::sync::Arc;

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{Kind, OriginId, Site};

use crate::Tensor;
use crate::autograd::record::{self, Recorded};
use crate::autograd::rules;
use crate::autograd::saved::SavedTensors;
use crate::device;
use crate::launch::PinnedOperands;
use crate::observe::{self, Call};
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use crate::ops::copy::{COPY_, Format};
use crate::storage::{Storage, dependents};
use plimsoll_kernels::{CpuLaunch, Meta};

/// The move as the graph sees it; remembers where the gradient has to go back to.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    from: Device,
}

impl Operation for Transfer {
    fn info(&self) -> &'static OpInfo {
        &TO
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta { layout: inputs[0].layout.at_start(), dtype: inputs[0].dtype }))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        Err(Error::unsupported(launch.operation, "a move between devices is not a kernel"))
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = to_device(backward.grad()?, self.from, Manner::Blocking, Site::in_force())?;
        Ok(smallvec::smallvec![Some(grad)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

pub(crate) static TO: OpInfo = OpInfo {
    cuda: OnCuda::Library,
    name: "to",
    family: "copy",
    signatures: &[
        "to(Tensor self, Device? device=None, DType? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor",
    ],
    differentiable: true,
    in_place: false,
    out: Out::None,
    dtypes: DTypes::ALL,
    ..OpInfo::BARE
};

/// Whether the host waits for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Blocking,
    /// It goes on where that is possible; results are the same.
    NonBlocking,
}

/// A copy of `source` on `target`.
pub(crate) fn to_device(
    source: &Tensor,
    target: Device,
    manner: Manner,
    site: Site,
) -> Result<Tensor> {
    let heard = || observe::enter(&Call::operation(TO.name, false, site, target, &[source], &[]));
    let _heard = observe::is_on().then(heard);
    let dense;
    let source = if source.layout().is_dense() {
        source
    } else {
        dense = source.copied(source.dtype(), Format::Preserve, site)?;
        &dense
    };
    let (from, to) = (source.entry(), device::entry(target));
    check_has_values(TO.name, source, target)?;
    let needs = rules::needs(&TO, &[source]);
    let origin = OriginId::intern(TO.name, site);
    let meta = Meta { layout: source.layout().at_start(), dtype: source.dtype() };
    // A copy to the host can only go on by itself into pinned memory.
    let pinned = manner == Manner::NonBlocking && from.is_asynchronous() && target == Device::CPU;
    let storage = if pinned {
        allocate_pinned(meta.span_bytes(), origin)?
    } else {
        Storage::allocate(to, meta.span_bytes(), origin, Kind::Temporary)?
    };
    let moved = Tensor::new(storage, meta);
    let inputs = [source];
    let written = std::slice::from_ref(&moved);
    let mut held = PinnedOperands::inputs(&inputs)?;
    held.and_outputs(written)?;
    let observed = observe::begin_copy(TO.name, origin, (source, &moved));
    held.claimed(written, || copy_bytes(source, &moved, manner))?;
    drop((observed, held));
    if needs.any() {
        Recorded {
            op: &Transfer { from: from.device() },
            entry: to,
            inputs: &inputs,
            needs,
            edges: record::edges(TO.name, &inputs, needs)?,
            saves: Saves::NOTHING,
            saved: SavedTensors::default(),
            origin,
            site,
        }
        .outputs(std::slice::from_ref(&moved))?;
    }
    Ok(moved)
}

fn check_has_values(op: &'static str, source: &Tensor, target: Device) -> Result<()> {
    if !source.device().is_dry() || target.is_dry() {
        return Ok(());
    }
    Err(Error::unsupported(
        op,
        format!(
            "{} only accounts for memory; its tensors have no data to copy to {target}. Make memory there with \
             `empty_like`, or for a module with `to_empty`",
            source.device()
        ),
    ))
}

/// Whether the bytes of `source`, on another device, can go to their places in `target` as they
/// are, and no graph asks for a node.
pub(crate) fn fits(target: &Tensor, source: &Tensor) -> bool {
    let (here, there) = (target.layout(), source.layout());
    target.dtype() == source.dtype()
        && here.shape() == there.shape()
        && here.strides() == there.strides()
        && here.is_dense()
        && !rules::needs(&COPY_, &[target, source]).any()
}

/// Overwrites `target` with `source`, which [`fits`]: no memory is taken on either side.
pub(crate) fn copy_into(
    target: &Tensor,
    source: &Tensor,
    manner: Manner,
    site: Site,
) -> Result<()> {
    let name = COPY_.name;
    let heard = || {
        let (place, operands) = (target.device(), [target, source]);
        observe::enter(&Call::operation(name, true, site, place, &operands, &operands[..1]))
    };
    let _heard = observe::is_on().then(heard);
    rules::check_in_place(name, target, Needs::NONE)?;
    check_has_values(name, source, target.device())?;
    let origin = OriginId::intern(name, site);
    let inputs = [source];
    let written = std::slice::from_ref(target);
    let mut held = PinnedOperands::inputs(&inputs)?;
    held.and_outputs(written)?;
    let reclaimable = target.entry().reclaimable().is_on();
    let dependents = if reclaimable { Some(dependents::pin_dependents(written)?) } else { None };
    let observed = observe::begin_copy(name, origin, (source, target));
    held.claimed(written, || {
        copy_bytes(source, target, manner)?;
        target.written_by(origin);
        Ok(())
    })?;
    drop((observed, dependents, held));
    Ok(())
}

/// Host memory that stays where it is, as an accelerator needs it.
pub(crate) fn allocate_pinned(bytes: usize, origin: OriginId) -> Result<Arc<Storage>> {
    let host = device::entry(Device::CPU);
    let arena = device::pinned_arena();
    let storage = Storage::allocate_in(host, arena, bytes, origin, Kind::Temporary)?;
    // Never unpinned: it would lose what it is for if it were taken back and came home to ordinary
    // memory.
    storage.pin()?;
    Ok(storage)
}

/// Copies the elements of `source`, which is dense, to `target`, which lies alike. Both are pinned
/// and claimed. See Note [Copies between devices].
fn copy_bytes(source: &Tensor, target: &Tensor, manner: Manner) -> Result<()> {
    let (from, to) = (source.entry(), target.entry());
    if from.device().is_dry() || to.device().is_dry() {
        return Ok(());
    }
    let first = |t: &Tensor| t.storage().pointer().addr() + t.storage_offset() * t.element_size();
    let (start, end) = (first(source), first(target));
    let bytes = target.nbytes();
    let (there, here) = (to.current_stream(), from.current_stream());
    match (from.is_asynchronous(), to.is_asynchronous()) {
        (false, false) => to.copy_on_stream(there, start, end, bytes, None),
        (true, true) => {
            from.order(here, source.storage(), false)?;
            from.check_wait(here)?;
            to.wait_on_stream(there, from.record(here))?;
            to.order(there, target.storage(), true)?;
            to.copy_from_accelerator(from, there, start, end, bytes)?;
            from.wait_on_stream(here, to.record(there))
        }
        (false, true) => {
            to.order(there, target.storage(), true)?;
            let host = source.storage();
            let keeps = (manner == Manner::NonBlocking && host.is_page_locked()).then_some(host);
            if keeps.is_none() {
                to.check_wait(there)?;
            }
            to.copy_on_stream(there, start, end, bytes, keeps.cloned())?;
            match keeps {
                Some(host) => host.uses.busy_until(to.record(there), false),
                None => to.wait_for(there)?,
            }
            Ok(())
        }
        (true, false) => {
            from.order(here, source.storage(), false)?;
            let host = target.storage();
            let keeps = (manner == Manner::NonBlocking && host.is_page_locked()).then_some(host);
            if keeps.is_none() {
                from.check_wait(here)?;
            }
            from.copy_on_stream(here, start, end, bytes, keeps.cloned())?;
            if let Some(host) = keeps {
                host.uses.busy_until(from.record(here), true);
                return Ok(());
            }
            from.wait_for(here)?;
            from.surface()
        }
    }
}
