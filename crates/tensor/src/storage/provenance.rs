//! How a storage was made: the operation, what it read, in which version, and what running it again
//! costs. One record serves every result of an operation, and outlives the bytes: a record holds
//! the records of what it read, so that a chain whose middle nobody holds any more can still be
//! computed again. `recipe.rs` turns a record into steps; nothing here computes.
//!
//! Note [Chains are cut]
//! A record of `h = f(h)` would hold all records before it. So a chain is cut where it gets longer
//! than [`LENGTH_MAX`], and where the records of a device take more than [`BYTES_MAX`]: the next
//! record holds none of those before it, and can be run only as long as what it read is alive. The
//! bytes of records are in the book, as external bytes of the host and kind `record`. Records are
//! made only while their device takes memory back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use plimsoll_core::Device;
use plimsoll_memory::{External, Kind, OriginId};
use smallvec::SmallVec;

use super::Storage;
use super::dependents::Dependents;
use crate::Tensor;
use crate::device::{self, Entry};
use crate::lock::Mutex;
use crate::operation::{Metas, Operation};
use plimsoll_kernels::Meta;

/// Records on the longest way from a record to what it was made from.
const LENGTH_MAX: u32 = 256;
/// Bytes that the records of one device take before chains are cut.
const BYTES_MAX: usize = 16 << 20;

/// How the results of one operation were made.
pub(super) struct Record {
    pub(super) op: Arc<dyn Operation>,
    pub(super) parents: SmallVec<[Parent; 2]>,
    pub(super) outputs: Metas,
    pub(super) origin: OriginId,
    /// Bytes that the operation reads and writes: what running it again costs.
    pub(super) cost: u64,
    /// Records behind this one, on the longest way.
    length: u32,
    #[allow(dead_code, reason = "held for its drop")]
    booked: Booked,
}

/// What an operation read.
pub(super) struct Parent {
    pub(super) storage: Weak<Storage>,
    pub(super) meta: Meta,
    pub(super) writes: u32,
    /// How it was made, if that gives what was read and the chain goes on.
    pub(super) made: Option<Made>,
}

/// Where a storage's bytes come from: a result of a record.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) record: Arc<Record>,
    pub(super) output: usize,
}

/// A record's own bytes, in the book and in its device's sum.
struct Booked {
    sum: &'static AtomicUsize,
    external: External,
}

impl Booked {
    fn new(entry: &'static Entry, bytes: usize, origin: OriginId) -> Booked {
        let sum = entry.reclaimable().record_bytes();
        sum.fetch_add(bytes, Ordering::Relaxed);
        let host = device::entry(Device::CPU).arena();
        Booked { sum, external: host.external(bytes, origin, Kind::Record) }
    }
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.sum.fetch_sub(self.external.bytes(), Ordering::Relaxed);
    }
}

/// What a storage knows of how it was made, and of what was made from it. Nothing unless its device
/// takes memory back.
#[derive(Default)]
pub(crate) struct Provenance(OnceLock<Box<Known>>);

#[derive(Default)]
pub(super) struct Known {
    made: OnceLock<Made>,
    pub(super) dependents: Mutex<Dependents>,
}

impl Provenance {
    pub(super) fn known(&self) -> &Known {
        self.0.get_or_init(Box::default)
    }

    /// What is known, if anything ever was.
    pub(super) fn if_known(&self) -> Option<&Known> {
        self.0.get().map(Box::as_ref)
    }

    pub(super) fn made(&self) -> Option<&Made> {
        self.if_known()?.made.get()
    }
}

/// Notes how new storages were made. Called under the launch's claim, so that the versions are
/// those that the kernel read.
pub(crate) fn remember(
    op: &dyn Operation,
    inputs: &[&Tensor],
    outputs: &[Tensor],
    origin: OriginId,
) {
    // Bytes whose address is out change without anybody's knowledge: what was made from them cannot
    // be made again.
    if !op.is_pure() || inputs.iter().any(|input| input.storage().is_exposed()) {
        return;
    }
    let Some(entry) = outputs.first().map(Tensor::entry) else { return };
    let cut = entry.reclaimable().record_bytes().load(Ordering::Relaxed) > BYTES_MAX;
    let parents: SmallVec<[Parent; 2]> = inputs.iter().map(|input| parent(input, cut)).collect();
    let made = parents.iter().filter_map(|parent| parent.made.as_ref());
    let length = made.map(|made| made.record.length + 1).max().unwrap_or(0);
    let all = inputs.iter().copied().chain(outputs);
    let op = op.share();
    let bytes = size_of::<Record>()
        + size_of_val(&*op)
        // A weak hold keeps the storage's own structure, not its bytes.
        + parents.len() * (size_of::<Parent>() + size_of::<Storage>());
    let record = Arc::new(Record {
        op,
        parents,
        outputs: outputs.iter().map(|output| output.meta().clone()).collect(),
        origin,
        cost: all.map(|tensor| tensor.nbytes() as u64).sum(),
        length,
        booked: Booked::new(entry, bytes, origin),
    });
    for (output, tensor) in outputs.iter().enumerate() {
        let made = Made { record: record.clone(), output };
        let _ = tensor.storage().provenance.known().made.set(made);
    }
}

fn parent(input: &Tensor, cut: bool) -> Parent {
    let (storage, writes) = (input.storage(), input.storage().writes());
    // A storage that was written is no longer what its record makes. See Note [Chains are cut].
    let made = storage
        .provenance
        .made()
        .filter(|made| !cut && writes == 0 && made.record.length < LENGTH_MAX);
    Parent {
        storage: Arc::downgrade(storage),
        meta: input.meta().clone(),
        writes,
        made: made.cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Inferred, Needs, OpInfo};
    use crate::prepare::apply_one;
    use crate::{DType, Result};
    use plimsoll_kernels::CpuLaunch;
    use plimsoll_memory::{Configuration, Site};

    /// Writes how often it ran: nobody may run it twice.
    #[derive(Clone, Copy, Debug)]
    struct Counting {
        pure: bool,
    }

    static RUNS: AtomicUsize = AtomicUsize::new(0);

    impl Operation for Counting {
        fn info(&self) -> &'static OpInfo {
            crate::ops().find(|op| op.name == "exp").expect("exp is an operation")
        }

        fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
            Ok(Inferred::one(inputs[0].clone()))
        }

        fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
            let run = RUNS.fetch_add(1, Ordering::Relaxed) as f32;
            plimsoll_kernels::cpu::fill::fill(launch, plimsoll_core::Scalar::Float(run.into()))
        }

        fn is_pure(&self) -> bool {
            self.pure
        }

        fn share(&self) -> Arc<dyn Operation> {
            Arc::new(*self)
        }
    }

    #[test]
    fn an_impure_operation_is_spilled_and_never_run_again() -> Result<()> {
        let spilling = Configuration::parse("spill:true")?;
        let device = crate::device::private_cpu(&spilling)?;
        let x = Tensor::zeros(&[4], (DType::F32, device))?;
        for pure in [true, false] {
            let y = apply_one(&Counting { pure }, &[&x], Site::caller())?;
            let runs = RUNS.load(Ordering::Relaxed);
            assert!(crate::device::take_back(&y, true));
            let values = y.to_vec::<f32>()?;
            let again = RUNS.load(Ordering::Relaxed) - runs;
            // The one that wrongly calls itself pure shows that the test can fail.
            assert_eq!(
                (again, values[0] == (runs - 1) as f32),
                if pure { (1, false) } else { (0, true) }
            );
        }
        Ok(())
    }
}
