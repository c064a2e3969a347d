//! From tensors to a kernel call: operands over pinned storages, on the caller's thread (CPU), a
//! stream's thread (stand-in), a CUDA stream, or not at all (dry run).
//!
//! [`PinnedOperands`] is the one guard around it: whoever touches bytes (dispatch, transfers,
//! recipes, reads) pins, claims and launches through it.

use plimsoll_core::Result;
use plimsoll_memory::{Block, Kind, OriginId, Request};
use smallvec::SmallVec;

use crate::Tensor;
use crate::cuda::CudaLaunch;
use crate::device::queue::{Kernel, Work};
use crate::device::{self, Backend, Entry};
use crate::observe;
use crate::operation::{Metas, Operation};
use crate::storage::claim::Claim;
use crate::storage::pin::Pins;
use plimsoll_kernels::{CpuLaunch, Meta, Operand, Workspace, parallel};

/// The operands of one piece of work: pinned as long as this lives, claimed while the work runs.
pub(crate) struct PinnedOperands<'a> {
    inputs: &'a [&'a Tensor],
    pins: Pins<'a>,
}

impl<'a> PinnedOperands<'a> {
    /// Pins what is read; bytes that were taken away come home now.
    #[inline(always)]
    pub(crate) fn inputs(inputs: &'a [&'a Tensor]) -> Result<PinnedOperands<'a>> {
        let mut pins = Pins::default();
        for input in inputs {
            pins.add(input.storage())?;
        }
        Ok(PinnedOperands { inputs, pins })
    }

    /// Pins what is written too.
    #[inline(always)]
    pub(crate) fn and_outputs(&mut self, outputs: &'a [Tensor]) -> Result<()> {
        for output in outputs {
            self.pins.add(output.storage())?;
        }
        Ok(())
    }

    /// Runs `work` while nobody else writes the inputs, or touches `written`. Outputs that are
    /// nobody else's yet need no claim.
    #[inline(always)]
    pub(crate) fn claimed<R>(
        &self,
        written: &[Tensor],
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let reads = self.inputs.iter().map(|input| input.storage().as_ref());
        let writes = written.iter().map(|output| output.storage().as_ref());
        let _claim = Claim::new(reads, writes);
        work()
    }

    /// Launches what is asked for: observed, and under the claim of [`PinnedOperands::claimed`], as
    /// is what comes `after` it.
    #[inline(always)]
    pub(crate) fn launch(
        &self,
        request: &LaunchRequest<'_>,
        outputs: &[Tensor],
        written: &[Tensor],
        after: impl FnOnce(),
    ) -> Result<()> {
        let LaunchRequest { entry, op, origin, workspace } = *request;
        let scratch = Scratch::allocate(entry, workspace, origin)?;
        let observed = observe::begin(entry, op.info().name, origin, self.inputs, outputs);
        let done = self.claimed(written, || {
            launch(entry, op, self.inputs, outputs, &scratch, origin)?;
            after();
            Ok(())
        });
        drop(observed);
        done
    }

    /// Asks the data how large the result of `op` is, under the same claim.
    pub(crate) fn measure(&self, request: &LaunchRequest<'_>) -> Result<Metas> {
        let LaunchRequest { entry, op, origin, workspace } = *request;
        let scratch = Scratch::allocate(entry, workspace, origin)?;
        self.claimed(&[], || measure(entry, op, self.inputs, &scratch, origin))
    }
}

/// What to launch, where, with how much workspace, on whose behalf.
pub(crate) struct LaunchRequest<'a> {
    pub(crate) entry: &'static Entry,
    pub(crate) op: &'a dyn Operation,
    pub(crate) origin: OriginId,
    pub(crate) workspace: Need,
}

/// How much workspace a launch needs, and with how many threads: kernels cut their work, and their
/// workspace, by that number, which somebody may change meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    bytes: usize,
    threads: usize,
}

/// The workspace of one launch; given back when it drops.
struct Scratch {
    block: Option<Block>,
    need: Need,
}

impl Scratch {
    #[inline]
    fn allocate(entry: &'static Entry, need: Need, origin: OriginId) -> Result<Scratch> {
        if need.bytes == 0 {
            return Ok(Scratch { block: None, need });
        }
        Scratch::allocate_some(entry, need, origin)
    }

    fn allocate_some(entry: &'static Entry, need: Need, origin: OriginId) -> Result<Scratch> {
        let bytes = need.bytes;
        let stream = entry.current_stream();
        let pool = device::current_pool(entry);
        let request = Request { bytes, origin, kind: Kind::Workspace, stream, pool };
        Ok(Scratch { block: Some(entry.arena().allocate(&request)?), need })
    }

    fn workspace(&self) -> Workspace {
        let Some(block) = &self.block else { return Workspace::NONE };
        // SAFETY: the block is aligned, as large, and this launch's alone as long as it lives.
        unsafe { Workspace::new(block.address() as *mut u8, self.need.bytes) }
    }
}

/// What `op` needs on the kind of device that `entry` is, dry run or not.
#[inline]
pub(crate) fn workspace(
    entry: &'static Entry,
    op: &dyn Operation,
    inputs: &[&Meta],
    outputs: &[Meta],
) -> Need {
    let threads = parallel::threads();
    let bytes = match entry.backend() {
        Backend::Cpu | Backend::StandIn(_) => {
            parallel::with_threads(threads, || op.workspace_bytes(inputs, outputs))
        }
        Backend::Cuda(gpu) => op.cuda_workspace_bytes(gpu.properties(), inputs, outputs),
    };
    Need { bytes, threads }
}

/// Runs or enqueues the kernel of `op`.
fn launch(
    entry: &'static Entry,
    op: &dyn Operation,
    inputs: &[&Tensor],
    outputs: &[Tensor],
    scratch: &Scratch,
    origin: OriginId,
) -> Result<()> {
    if entry.device().is_dry() {
        return Ok(());
    }
    let workspace = scratch.workspace();
    match entry.backend() {
        Backend::Cpu => with_operands(inputs, outputs, |inputs, outputs| {
            let launch = CpuLaunch { operation: op.info().name, inputs, outputs, workspace };
            match scratch.need {
                Need { bytes: 0, .. } => op.cpu(&launch),
                Need { threads, .. } => parallel::with_threads(threads, || op.cpu(&launch)),
            }
        }),
        Backend::StandIn(engine) => {
            let stream = entry.current_stream();
            order(entry, inputs, outputs)?;
            let place = |t: &Tensor| (t.storage().pointer().addr(), t.meta().clone());
            let kernel = Kernel {
                op: op.share(),
                inputs: inputs.iter().map(|&input| place(input)).collect(),
                outputs: outputs.iter().map(place).collect(),
                workspace,
                threads: scratch.need.threads,
                origin,
            };
            entry.give(engine, stream, Work::Kernel(Box::new(kernel)))
        }
        Backend::Cuda(gpu) => {
            // Only a dry run has none.
            let Some(context) = gpu.context() else { return Ok(()) };
            if !op.info().cuda.exists() {
                return Err(crate::cuda::no_kernel(op.info().name));
            }
            order(entry, inputs, outputs)?;
            let (operation, stream) = (op.info().name, entry.current_stream());
            with_operands(inputs, outputs, |inputs, outputs| {
                op.cuda(&CudaLaunch {
                    operation,
                    inputs,
                    outputs,
                    workspace,
                    context,
                    stream,
                    origin,
                })
            })
        }
    }
}

/// Makes this thread's stream wait for the streams that touched the operands before.
fn order(entry: &'static Entry, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
    let stream = entry.current_stream();
    inputs.iter().try_for_each(|input| entry.order(stream, input.storage(), false))?;
    outputs.iter().try_for_each(|output| entry.order(stream, output.storage(), true))
}

/// Asks the data how large a result is; waits for the device where that takes a kernel.
fn measure(
    entry: &'static Entry,
    op: &dyn Operation,
    inputs: &[&Tensor],
    scratch: &Scratch,
    origin: OriginId,
) -> Result<Metas> {
    let (operation, workspace) = (op.info().name, scratch.workspace());
    entry.check_wait(entry.current_stream()).map_err(|error| error.in_operation(operation))?;
    if let Backend::Cuda(gpu) = entry.backend() {
        let context = gpu.context().filter(|_| op.info().cuda.exists());
        let Some(context) = context else { return Err(crate::cuda::no_kernel(operation)) };
        order(entry, inputs, &[])?;
        let stream = entry.current_stream();
        let metas = with_operands(inputs, &[], |inputs, outputs| {
            op.cuda_measure(&CudaLaunch {
                operation,
                inputs,
                outputs,
                workspace,
                context,
                stream,
                origin,
            })
        })?;
        entry.surface()?;
        return Ok(metas);
    }
    if entry.is_asynchronous() {
        order(entry, inputs, &[])?;
        entry.wait_for(entry.current_stream())?;
        entry.surface()?;
    }
    // The stand-in's memory is the host's, so once its stream has come this far the caller may look
    // by itself.
    with_operands(inputs, &[], |inputs, outputs| {
        let launch = CpuLaunch { operation, inputs, outputs, workspace };
        parallel::with_threads(scratch.need.threads, || op.measure(&launch))
    })
}

/// Operands over the tensors' storages, which the caller has pinned and claimed.
#[inline]
pub(crate) fn with_operands<R>(
    inputs: &[&Tensor],
    outputs: &[Tensor],
    run: impl Fn(&[Operand<'_>], &[Operand<'_>]) -> R,
) -> R {
    match (inputs, outputs) {
        // The usual numbers, without lists.
        ([a], [out]) => run(&[operand(a)], &[operand(out)]),
        ([a, b], [out]) => run(&[operand(a), operand(b)], &[operand(out)]),
        _ => {
            let reads: SmallVec<[Operand<'_>; 4]> = inputs.iter().map(|t| operand(t)).collect();
            let writes: SmallVec<[Operand<'_>; 2]> = outputs.iter().map(operand).collect();
            run(&reads, &writes)
        }
    }
}

#[inline]
fn operand(tensor: &Tensor) -> Operand<'_> {
    // SAFETY: `dispatch` pinned the storage (so it is resident and stays), tensors lie within their
    // storage, and the claim covers reading an input and writing an output (or nobody else has it
    // yet) until the launch returns.
    unsafe { Operand::new(tensor.storage().pointer(), tensor.meta()) }
}
