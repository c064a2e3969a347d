//! A dry run does what the real one does, but for values: every case gives results of the same
//! shape, dtype and strides, is refused where it is refused, and takes the same bytes.

use plimsoll_core::{Device, Result};
use plimsoll_tensor::{Tensor, memory};

use super::{Tally, is_without_kernel};
use crate::cases::{self, Instance};
use crate::failing::assert_balanced;
use crate::subject::Stage;

/// What can be compared without values.
#[derive(Debug, PartialEq)]
struct Seen {
    outputs: Vec<(Vec<usize>, String, Vec<usize>, usize)>,
    /// The peaks of allocated and of reserved bytes during the call.
    peak_bytes: usize,
    reserved_peak_bytes: usize,
    allocations: u64,
}

fn seen(outputs: &[Tensor], device: Device) -> Seen {
    let stats = memory::arena(device).stats();
    let output = |tensor: &Tensor| {
        let (shape, strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
        (shape, tensor.dtype().to_string(), strides, tensor.storage_offset())
    };
    Seen {
        outputs: outputs.iter().map(output).collect(),
        peak_bytes: stats.allocated_bytes.all.peak as usize,
        reserved_peak_bytes: stats.reserved_bytes.all.peak as usize,
        allocations: stats.allocation.all.allocated as u64,
    }
}

/// Runs the call from an empty cache, so that both arenas start alike.
fn run(instance: &Instance<'_>, device: Device) -> Result<Seen> {
    let stage = Stage::new(instance, device)?;
    plimsoll_tensor::device::synchronize(device)?;
    memory::empty_cache(device);
    let arena = memory::arena(device);
    arena.reset_peak_stats();
    arena.reset_accumulated_stats();
    let outputs = instance.case.call(&stage.inputs)?;
    Ok(seen(&outputs, device))
}

/// Runs every case on `real` and on `dry`, both of the test's own, and compares.
pub fn every_operation_takes_the_same(real: Device, dry: Device) -> Tally {
    let mut tally = Tally::default();
    for case in cases::all() {
        for instance in case.instances() {
            let found = match (run(&instance, real), run(&instance, dry)) {
                (Err(error), _) if real.is_cuda() && is_without_kernel(&error) => {
                    tally.note_without_kernel(&instance);
                    continue;
                }
                (Ok(real), Ok(dry)) if real == dry => None,
                (Ok(real), Ok(dry)) => Some(format!("really {real:?}, dry {dry:?}")),
                (Err(_), Err(_)) => None,
                // Sizes that only values tell, and indices that only values make wrong.
                (Ok(_), Err(error)) if error.is_unsupported() => None,
                // Answers that are read from values: `equal`.
                (Ok(_), Err(error)) if error.operation() == Some("to_vec") => None,
                (Err(error), Ok(_)) if error.is_index() => None,
                (Ok(_), Err(error)) => Some(format!("refused in a dry run alone: {error}")),
                (Err(error), Ok(_)) => Some(format!("refused in the real run alone: {error}")),
            };
            tally.note(&instance, found);
        }
    }
    for device in [real, dry] {
        assert_balanced(device);
        assert_eq!(memory::arena(device).live_bytes(), 0, "bytes are left over on {device}");
    }
    tally
}
