//! Norms of many tensors: a launch for the squares of all, by a table among the kernel's arguments,
//! and one for the roots of their sums. Tensors whose elements do not fill their memory, in
//! whatever order, are copied first.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Meta;

use super::in_workspace::{ALIGNMENT_BYTES, Space, copy_bytes};
use super::{CudaLaunch, type_name, whole};

/// Tensors of a launch: mirrors `ENTRIES` in the kernels. Together below the 32,764 bytes that a
/// kernel's arguments may have.
const ENTRIES: usize = 1000;

/// Words of an entry.
const ENTRY_WORDS: usize = 3;

/// Elements of a block.
const CHUNK: usize = 1 << 14;

const THREADS: u32 = 512;

/// Bytes of the chunks' sums of all tensors.
fn sums_bytes(inputs: &[&Meta]) -> usize {
    let chunks = inputs.iter().map(|x| x.layout.numel().div_ceil(CHUNK)).sum::<usize>();
    (chunks * size_of::<f64>()).next_multiple_of(ALIGNMENT_BYTES)
}

/// Workspace of [`norms`].
pub(crate) fn norms_workspace_bytes(inputs: &[&Meta]) -> usize {
    let scattered = inputs.iter().filter(|x| !x.layout.is_dense());
    scattered.map(|x| copy_bytes(x)).sum::<usize>() + sums_bytes(inputs)
}

/// Inputs and output as the CPU kernel of the same name takes them.
pub(crate) fn norms(launch: &CudaLaunch<'_>) -> Result<()> {
    let out = launch.contiguous_output()?;
    launch.check_dtypes(out.dtype(), &launch.inputs.iter().collect::<Vec<_>>())?;
    let mut space = Space::new(&launch.workspace);
    let metas: Vec<&Meta> = launch.inputs.iter().map(|x| x.meta()).collect();
    let sums = space.take(sums_bytes(&metas));
    let (mut place, mut done) = (out.first_byte().addr(), 0);
    for inputs in launch.inputs.chunks(ENTRIES) {
        let mut chunks = 0;
        // Mirrors `Table` in the kernels.
        let mut words = vec![(sums + done * size_of::<f64>()) as u64];
        words.extend([inputs.len() as u64, CHUNK as u64]);
        let length = words.len() + ENTRIES * ENTRY_WORDS;
        for x in inputs {
            let count = x.layout().numel();
            let address = match x.layout().is_dense() {
                true => x.first_byte().addr(),
                false => space.contiguous(launch, x)?,
            };
            chunks += count.div_ceil(CHUNK);
            words.extend([address as u64, count as u64, chunks as u64]);
        }
        words.resize(length, 0);
        let table = Argument::Words(words.into());
        let blocks = u32::try_from(chunks).map_err(|_| launch.unsupported("so many elements"))?;
        let run = |name: &'static str, blocks: u32, arguments: &[Argument]| {
            let grid = Grid { blocks: (blocks, 1, 1), threads: THREADS, shared_bytes: 0 };
            let kernel = ("norms", name, type_name(out.dtype()));
            launch.run(&source_files::NORMS, kernel, grid, arguments)
        };
        if blocks > 0 {
            run("squares", blocks, std::slice::from_ref(&table))?;
        }
        run("roots", inputs.len() as u32, &[table, whole(place)])?;
        place += inputs.len() * out.dtype().size_bytes();
        done += chunks;
    }
    Ok(())
}
