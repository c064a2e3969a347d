//! Moving tensors between devices. The one operation whose input and output live on different devices, so it has its own short path
//! beside `dispatch`: make dense, allocate there, pin, claim, copy, record.

use std::sync::Arc;

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{Kind, OriginId, Site};

use crate::Tensor;
use crate::autograd::record::Recorded;
use crate::autograd::rules;
use crate::autograd::saved::SavedTensors;
use crate::device;
use crate::operation::{Backward, Grads, Inferred, Needs, OpInfo, Operation, Saves, dtypes};
use crate::ops::copy::Format;
use crate::storage::Storage;
use crate::storage::claim::Claim;
use crate::storage::pin::Pins;
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
        let grad = to_device(backward.grad()?, self.from, Site::caller())?;
        Ok(smallvec::smallvec![Some(grad)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

pub(crate) static TO: OpInfo = OpInfo {
    name: "to",
    family: "copy",
    signature: "to(Tensor self, Device|DType target) -> Tensor",
    summary: "The same elements in another dtype or on another device",
    differentiable: true,
    in_place: false,
    out: false,
    cuda: true,
    dtypes: dtypes::ALL,
};

/// A copy of `source` on `target`.
pub(crate) fn to_device(source: &Tensor, target: Device, site: Site) -> Result<Tensor> {
    let dense;
    let source = if source.layout().is_dense() {
        source
    } else {
        dense = source.copied(source.dtype(), Format::Preserve, site)?;
        &dense
    };
    let (from, to) = (source.entry(), device::entry(target));
    if from.device().is_dry() && !target.is_dry() {
        return Err(Error::device(
            TO.name,
            format!(
                "{} only accounts for memory; its tensors have no values to bring to {target}",
                from.device()
            ),
        ));
    }
    let needs = rules::needs(&TO, &[source]);
    let origin = OriginId::intern(TO.name, site);
    let meta = Meta { layout: source.layout().at_start(), dtype: source.dtype() };
    let storage = Storage::allocate(to, meta.span_bytes(), origin, Kind::Temporary)?;
    let moved = Tensor::new(storage, meta);
    {
        let mut pins = Pins::default();
        pins.add(source.storage())?;
        pins.add(moved.storage())?;
        let _claim = Claim::new(
            std::iter::once(source.storage().as_ref()),
            std::iter::once(moved.storage().as_ref()),
        );
        let start =
            source.storage().pointer().addr() + source.storage_offset() * source.element_size();
        device::copy_between(from, to, start, moved.storage().pointer().addr(), moved.nbytes())?;
    }
    if needs.any() {
        Recorded {
            op: &Transfer { from: from.device() },
            entry: to,
            inputs: &[source],
            needs,
            saves: Saves::NOTHING,
            saved: SavedTensors::default(),
            origin,
            site,
        }
        .outputs(std::slice::from_ref(&moved))?;
    }
    Ok(moved)
}
