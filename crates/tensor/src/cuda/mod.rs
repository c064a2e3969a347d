//! From operations to CUDA kernels: one file a family, like `ops/` and like the sources in the
//! `cuda` crate. Everything goes through [`CudaLaunch::run`], which queues one kernel on the
//! launch's stream.

mod attention;
mod attention_operands;
mod attention_packed;
mod batch_norm;
mod binary;
mod compare;
mod conv;
mod copy;
mod cross_entropy;
mod ctc;
mod distance;
mod dnn;
mod embedding;
mod fill;
mod grid;
mod group_norm;
mod in_workspace;
mod index;
mod interpolate;
mod join;
mod layer_norm;
mod linear_cross_entropy;
mod lines;
mod loss;
mod matmul;
mod nonzero;
mod norms;
mod optim;
mod order;
mod pool;
mod products;
mod random;
mod rearrange;
mod recurrent;
mod recurrent_products;
mod reduce;
mod runs;
mod scan;
mod scatter;
mod search;
mod select;
mod softmax;
mod sort;
mod strided;
mod tail;
mod topk;
mod unary;
mod unscale;
mod unview;

pub(crate) use attention::{attention, attention_backward, attention_backward_workspace_bytes};
pub(crate) use batch_norm::{batch_norm, batch_norm_backward, batch_norm_workspace_bytes};
pub(crate) use binary::{binary, scale_in_place};
pub(crate) use compare::compare;
pub(crate) use conv::{
    conv, conv_input, conv_input_workspace_bytes, conv_weight, conv_weight_workspace_bytes,
    conv_workspace_bytes,
};
pub(crate) use copy::copy;
pub(crate) use cross_entropy::{
    cross_entropy, cross_entropy_backward, cross_entropy_workspace_bytes, nll_loss,
    nll_loss_backward,
};
pub(crate) use ctc::{ctc_loss, ctc_loss_backward};
pub(crate) use distance::{cdist, cdist_backward};
pub(crate) use embedding::{
    embedding, embedding_backward, embedding_backward_workspace_bytes, embedding_bag,
    embedding_bag_backward, embedding_bag_backward_workspace_bytes, embedding_bag_weights_backward,
};
pub(crate) use fill::{arange, eye, fill};
pub(crate) use grid::{grid_sample, grid_scatter, grid_scatter_workspace_bytes, grid_slope};
pub(crate) use group_norm::{group_norm, group_norm_backward};
pub(crate) use in_workspace::copies_bytes as layer_norm_workspace_bytes;
pub(crate) use index::{gather, index, index_workspace_bytes};
pub(crate) use interpolate::{
    interpolate, interpolate_backward, interpolate_backward_workspace_bytes,
};
pub(crate) use join::cat;
pub(crate) use layer_norm::{layer_norm, layer_norm_backward, layer_norm_backward_workspace_bytes};
pub(crate) use linear_cross_entropy::{
    has_linear_cross_entropy_of_halves, linear_cross_entropy, linear_cross_entropy_backward,
    linear_cross_entropy_workspace_bytes,
};
pub(crate) use loss::{loss, loss_backward};
pub(crate) use matmul::{
    Scale, matmul, scaled as scaled_matmul, summed, summed_workspace_bytes,
    workspace_bytes as matmul_workspace_bytes,
};
pub(crate) use nonzero::{nonzero, nonzero_count, nonzero_workspace_bytes};
pub(crate) use norms::{norms, norms_workspace_bytes};
pub(crate) use optim::optimizer_step;
pub(crate) use pool::{
    fold, gather_places, max_pool, mean_pool, mean_pool_backward, scatter_places, unfold,
};
pub(crate) use random::{Draw, by_formula, dropout, normal, randint, uniform};
pub(crate) use rearrange::{rearrange, triangle, unrearrange};
pub(crate) use recurrent::{
    recurrent, recurrent_backward, recurrent_backward_workspace_bytes, recurrent_workspace_bytes,
};
pub(crate) use reduce::{Fold, reduce, reduce_workspace_bytes};
pub(crate) use runs::{
    mode, row_order, row_order_workspace_bytes, runs, runs_count, runs_workspace_bytes,
};
pub(crate) use scan::{recurrence, scan, scan_extreme, scan_workspace_bytes};
pub(crate) use scatter::{index_put, index_put_workspace_bytes, scatter, scatter_workspace_bytes};
pub(crate) use search::{histogram, histogram_workspace_bytes, searchsorted};
pub(crate) use select::where_;
pub(crate) use softmax::{softmax, softmax_backward};
pub(crate) use sort::{sort, sort_values, sort_values_workspace_bytes, sort_workspace_bytes};
pub(crate) use tail::{tail, tail_of};
pub(crate) use topk::{topk, topk_workspace_bytes};
pub(crate) use unary::{gelu_both, unary, unary_backward};
pub(crate) use unscale::{unscale, update_scale};
pub(crate) use unview::{unview, unview_workspace_bytes};

use plimsoll_core::{DType, Error, MemoryFormat, Result};
use plimsoll_cuda::{Argument, Context, Grid, KernelName, KernelSource};
use plimsoll_kernels::{Operand, Workspace};
use plimsoll_memory::{OriginId, StreamId};
use smallvec::{SmallVec, smallvec};

/// Everything one CUDA kernel call works on; the twin of `CpuLaunch`.
#[derive(Debug)]
pub struct CudaLaunch<'a> {
    /// The operation's name.
    pub operation: &'static str,
    /// Read only.
    pub inputs: &'a [Operand<'a>],
    /// Written, every element.
    pub outputs: &'a [Operand<'a>],
    pub(crate) workspace: Workspace,
    pub(crate) context: &'static Context,
    pub(crate) stream: StreamId,
    /// Whose work it is, for faults.
    pub(crate) origin: OriginId,
}

/// Threads of a block of the elementwise kernels.
const THREADS: u32 = 256;

/// The arguments of a launch whose number is not fixed, without a list of their own.
type Arguments = SmallVec<[Argument; 20]>;

impl CudaLaunch<'_> {
    /// Queues kernel `name` of `source` with arguments as its source declares them.
    fn run(
        &self,
        source: &'static KernelSource,
        name: impl Into<KernelName>,
        grid: Grid,
        arguments: &[Argument],
    ) -> Result<()> {
        let kernel = self.context.kernel(source, name)?;
        // SAFETY: each family's file passes what its CUDA twin declares; addresses are operands of
        // this launch, which dispatch pinned, claimed and ordered on the stream; the sources are
        // those of `source_files`, whose kernels all wait for their turn first.
        unsafe { self.context.launch(self.stream, kernel, grid, arguments) }
            .map_err(|e| e.in_operation(self.operation))
    }

    /// The argument `Fault` of kernels that check indices: an index out of range is told of, with
    /// this launch's operation and line, at the next point where the host waits.
    fn fault(&self) -> Argument {
        let origin = self.origin.number() as u64;
        Argument::Words(smallvec![self.context.fault_address(), origin])
    }

    /// Waits for the stream and reads `N` numbers at `address`, which lie in the workspace. For
    /// `cuda_measure` alone: nothing else waits for the GPU.
    fn read_back<const N: usize>(&self, address: usize) -> Result<[i64; N]> {
        let mut numbers = [0i64; N];
        let to = numbers.as_mut_ptr().expose_provenance();
        // SAFETY: the workspace is this launch's and has the numbers; the array lives until the
        // stream has passed the copy, which is waited for.
        unsafe { self.context.copy(self.stream, address, to, size_of_val(&numbers)) }
            .and_then(|()| self.context.synchronize_stream(self.stream))
            .map_err(|error| error.in_operation(self.operation))?;
        Ok(std::hint::black_box(numbers))
    }

    /// A grid for `n` independent elements, `each` to a thread at a time: enough blocks to fill the
    /// GPU several times, not more.
    fn grid(&self, n: usize, each: usize) -> Grid {
        let wanted = n.div_ceil(each * THREADS as usize).max(1);
        let most = self.context.properties().multiprocessors as usize * 32;
        Grid { blocks: (wanted.min(most) as u32, 1, 1), threads: THREADS, shared_bytes: 0 }
    }

    /// A grid for `n` elements of `bytes` bytes each, as `four_at_once` in the kernels takes them
    /// where they are dense: a chunk to each block. Blocks that come and go keep the memory busier
    /// than a few that stay.
    fn elementwise_grid(&self, n: usize, bytes: usize, dense: bool) -> Grid {
        let each = 16 / bytes;
        if !dense {
            return self.grid(n, each);
        }
        let blocks = n.div_ceil(4 * each * THREADS as usize).clamp(1, i32::MAX as usize);
        Grid { blocks: (blocks as u32, 1, 1), threads: THREADS, shared_bytes: 0 }
    }

    /// A grid for `n` elements, of which each thread takes `each` at once where they are dense, and
    /// is done.
    fn once_grid(&self, n: usize, each: usize, dense: bool) -> Grid {
        if !dense {
            return self.grid(n, each);
        }
        let blocks = n.div_ceil(each * THREADS as usize).clamp(1, i32::MAX as usize);
        Grid { blocks: (blocks as u32, 1, 1), threads: THREADS, shared_bytes: 0 }
    }

    /// A grid whose blocks fetch so many bytes to shared memory while they compute, if the GPU can
    /// and has room for them beside what the kernel declares itself.
    fn fetching(&self, grid: Grid, bytes: usize, declared_bytes: usize) -> Option<Grid> {
        let gpu = self.context.properties();
        let fits = gpu.capability >= 80 && bytes + declared_bytes <= gpu.block_shared_bytes();
        fits.then_some(Grid { shared_bytes: bytes as u32, ..grid })
    }

    /// The same launch with output `index` as its first.
    pub(crate) fn writing_output(&self, index: usize) -> CudaLaunch<'_> {
        CudaLaunch { outputs: self.outputs.get(index..).unwrap_or_default(), ..*self }
    }

    /// The first output, for kernels that write row by row.
    fn contiguous_output(&self) -> Result<&Operand<'_>> {
        let out = &self.outputs[0];
        if out.layout().is_contiguous() {
            return Ok(out);
        }
        Err(self.unsupported("writing to a target that is not contiguous"))
    }

    /// Refuses operands whose dtype is not `expected`: the kernel would read other bytes.
    fn check_dtypes(&self, expected: DType, operands: &[&Operand<'_>]) -> Result<()> {
        match operands.iter().find(|operand| operand.dtype() != expected) {
            None => Ok(()),
            Some(other) => {
                Err(self.unsupported(format!("a mixture of {} and {expected}", other.dtype())))
            }
        }
    }

    fn unsupported(&self, what: impl std::fmt::Display) -> Error {
        Error::unsupported(
            self.operation,
            format!("{what} has no CUDA kernel yet; move the inputs to the CPU with `to` first"),
        )
    }
}

/// The name of a dtype in the kernels' sources.
fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "truth",
        DType::U8 => "u8",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
    }
}

/// The address of an operand's first element.
fn address(operand: &Operand<'_>) -> Argument {
    Argument::U64(operand.first_byte().addr() as u64)
}

/// The address of an operand that must be contiguous: operations whose kernels go row by row get
/// no others.
fn contiguous(launch: &CudaLaunch<'_>, operand: &Operand<'_>) -> Result<Argument> {
    if operand.layout().is_contiguous() {
        return Ok(address(operand));
    }
    Err(launch.unsupported(format!("an operand of strides {:?}", operand.layout().strides())))
}

/// Whether the channels of an operand [batch, channels, places..] lie side by side; it must be that
/// or row-major.
fn is_channels_last(launch: &CudaLaunch<'_>, operand: &Operand<'_>) -> Result<bool> {
    let layout = operand.layout();
    let format = match layout.rank() {
        5 => MemoryFormat::ChannelsLast3d,
        _ => MemoryFormat::ChannelsLast,
    };
    match (layout.is_contiguous(), format.holds(layout)) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        _ => Err(launch.unsupported(format!("an operand of strides {:?}", layout.strides()))),
    }
}

/// The address 0, for an operand that is not there.
const NOTHING: Argument = Argument::U64(0);

fn whole(value: usize) -> Argument {
    Argument::U64(value as u64)
}

/// What an operation without a CUDA kernel answers.
#[cold]
pub(crate) fn no_kernel(operation: &'static str) -> Error {
    Error::unsupported(
        operation,
        "this operation runs on the CPU only; call it on `x.cpu()` and move the result back with `to`, and see \
         `plimsoll ops` for what runs where",
    )
}
