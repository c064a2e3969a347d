//! Every operation, forward and backward, with the source failing at its n-th allocation for every
//! n: a clean error, inputs untouched, the ledger balanced, and the same call succeeds once there
//! is memory again.

use plimsoll_core::{Device, Error, Result};
use plimsoll_tensor::{Tensor, device, memory};

use super::graph::Graph;
use super::{Tally, is_without_kernel};
use crate::cases::{self, Case, Instance};
use crate::compare::difference;
use crate::failing::{Tap, assert_balanced, failing_cuda_device, failing_device};
use crate::subject::{self, Stage};

/// One instance of a case is enough here: the last one, whose inputs are mixed or moved, in the
/// widest dtype.
fn chosen(case: &Case) -> Option<Instance<'_>> {
    let fit = |i: &Instance<'_>| i.taken && !i.writes_to_expanded();
    case.instances().into_iter().rfind(fit)
}

/// A device whose memory can be made to fail.
#[derive(Debug)]
pub struct Bench {
    device: Device,
    tap: Tap,
    /// Whether storages lose their memory at random; what is alive then changes by itself.
    chaos: bool,
}

impl Bench {
    /// The host's memory, while storages lose theirs at random or do not.
    pub fn host(chaos: bool) -> Bench {
        let (device, tap) = failing_device();
        device::set_chaos(device, chaos.then_some(0x5EED));
        Bench { device, tap, chaos }
    }

    /// The memory of GPU 0.
    pub fn cuda() -> Result<Bench> {
        let (device, tap) = failing_cuda_device()?;
        Ok(Bench { device, tap, chaos: false })
    }

    fn live_bytes(&self) -> usize {
        memory::arena(self.device).live_bytes()
    }

    /// After a failed allocation: a clean error, the ledger balanced, no more alive than before.
    fn check_failure(&self, instance: &Instance<'_>, error: &Error, live_before: usize) {
        assert!(error.is_out_of_memory(), "{}: {error}", instance.name());
        assert_balanced(self.device);
        if !self.chaos {
            assert_eq!(self.live_bytes(), live_before, "{}: bytes left over", instance.name());
        }
    }
}

/// Runs the call with every one of its allocations failing, on the same inputs each time, and lets
/// it succeed right after each failure.
fn fail_forward(instance: &Instance<'_>, bench: &Bench) -> Result<usize> {
    let (case, tap) = (instance.case, &bench.tap);
    let expected = case.expected(&instance.arrays());
    for n in 1.. {
        let stage = Stage::new(instance, bench.device)?;
        let live_before = bench.live_bytes();
        tap.fail_from(n);
        let result = case.call(&stage.inputs);
        let refused = tap.open();
        let Err(error) = result else {
            assert_eq!(refused, 0, "{}: hid a failed allocation", instance.name());
            return Ok(n - 1);
        };
        if refused == 0 && case.may_refuse {
            return Ok(n - 1);
        }
        if refused == 0 && is_without_kernel(&error) {
            return Err(error);
        }
        bench.check_failure(instance, &error, live_before);
        let disturbed = stage.disturbed(&[])?;
        assert_eq!(disturbed, None, "{}: a failed call wrote", instance.name());

        let outputs = case.call(&stage.inputs)?;
        for (output, expected) in outputs.iter().zip(&expected) {
            let how = difference(&subject::read(output)?, expected, case.tolerance);
            assert_eq!(how, None, "{}: retried after failure {n}", instance.name());
        }
    }
    unreachable!("a call makes finitely many allocations")
}

/// Runs backward of the call with every one of its allocations failing, on the same graph, which
/// must still work.
fn fail_backward(instance: &Instance<'_>, bench: &Bench) -> Result<usize> {
    let tap = &bench.tap;
    let graph = Graph::record(instance, bench.device)?;
    let run = || graph.gradients();
    let read = |found: &[Option<Tensor>]| {
        found.iter().flatten().map(subject::read).collect::<Result<Vec<_>>>()
    };
    let expected = read(&run()?)?;
    let live_before = bench.live_bytes();
    for n in 1.. {
        tap.fail_from(n);
        let result = run();
        let refused = tap.open();
        let Err(error) = result else {
            assert_eq!(refused, 0, "{}: hid a failed allocation", instance.name());
            return Ok(n - 1);
        };
        bench.check_failure(instance, &error, live_before);
        assert_eq!(read(&run()?)?, expected, "{}: retried after failure {n}", instance.name());
    }
    unreachable!("backward makes finitely many allocations")
}

/// How many allocations failed in forward and in backward.
#[derive(Debug, Default)]
pub struct Survived {
    /// In calls.
    pub forward: usize,
    /// In backward passes.
    pub backward: usize,
    /// What went wrong.
    pub tally: Tally,
}

/// Runs every case while its allocations fail one by one.
pub fn every_operation_survives(bench: &Bench) -> Survived {
    let mut survived = Survived::default();
    for case in cases::all() {
        let Some(instance) = chosen(&case) else { continue };
        let excused = |error: &Error| bench.device.is_cuda() && is_without_kernel(error);
        match fail_forward(&instance, bench) {
            Ok(failures) => {
                survived.forward += failures;
                survived.tally.note(&instance, None);
            }
            Err(error) if excused(&error) => survived.tally.note_without_kernel(&instance),
            Err(error) => survived.tally.note(&instance, Some(format!("forward: {error}"))),
        }
        if !case.gradients.is_empty() && instance.dtype.is_float() && instance.other.is_float() {
            match fail_backward(&instance, bench) {
                Ok(failures) => survived.backward += failures,
                Err(error) if case.may_refuse || excused(&error) => {}
                Err(error) => survived.tally.note(&instance, Some(format!("backward: {error}"))),
            }
        }
        assert_eq!(bench.live_bytes(), 0, "{}: bytes left over", instance.name());
    }
    assert_balanced(bench.device);
    survived
}
