//! Copies between layouts and dtypes: by the driver where both are one run, through tiles where
//! dimensions are exchanged.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;

use super::strided::Strided;
use super::{CudaLaunch, address, type_name, whole};

/// Copies `source` to `out`, broadcast and converted.
pub(crate) fn copy(launch: &CudaLaunch<'_>, source: &Operand<'_>, out: &Operand<'_>) -> Result<()> {
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let strided = Strided::broadcast(&[out, source])?;
    if source.dtype() == out.dtype() {
        if strided.is_dense() {
            let (from, to) = (source.first_byte().addr(), out.first_byte().addr());
            let bytes = n * out.dtype().size_bytes();
            // SAFETY: both are operands of this launch, one run of `bytes` each, and do not overlap
            // (dispatch refuses that).
            return unsafe { launch.context.copy(launch.stream, from, to, bytes) };
        }
        if let Some(tiles) = Tiles::of(&strided) {
            return transpose(launch, source, out, &tiles);
        }
    }
    let arguments = [
        whole(n),
        strided.argument(launch.operation)?,
        Argument::I32(i32::from(strided.is_dense())),
        address(source),
        address(out),
    ];
    let kernel = ("copy", type_name(source.dtype()), type_name(out.dtype()));
    launch.run(&source_files::COPY, kernel, launch.grid(n, 4), &arguments)
}

/// A batch of matrices that the source has column by column and the output row by row.
struct Tiles {
    rows: usize,
    columns: usize,
    source_row: usize,
    out_row: usize,
    batch: usize,
    source_batch: usize,
    out_batch: usize,
}

impl Tiles {
    /// Two or three merged dimensions, of which the output runs along the first and the source
    /// along another.
    fn of(strided: &Strided) -> Option<Tiles> {
        let (sizes, out, source) = (strided.sizes(), strided.strides(0), strided.strides(1));
        if !(2..=3).contains(&sizes.len()) || out[0] != 1 || source[0] == 1 {
            return None;
        }
        let along = (1..sizes.len()).find(|&dim| source[dim] == 1)?;
        let other = (1..sizes.len()).find(|&dim| dim != along);
        let batch = other.map_or(1, |dim| sizes[dim]);
        // The grid's second and third dimensions are 16 bits.
        (batch < 65_536 && sizes[0].div_ceil(32) < 65_536).then(|| Tiles {
            rows: sizes[0],
            columns: sizes[along],
            source_row: source[0],
            out_row: out[along],
            batch,
            source_batch: other.map_or(0, |dim| source[dim]),
            out_batch: other.map_or(0, |dim| out[dim]),
        })
    }
}

fn transpose(
    launch: &CudaLaunch<'_>,
    source: &Operand<'_>,
    out: &Operand<'_>,
    tiles: &Tiles,
) -> Result<()> {
    let arguments = [
        whole(tiles.rows),
        whole(tiles.columns),
        whole(tiles.source_row),
        whole(tiles.out_row),
        whole(tiles.source_batch),
        whole(tiles.out_batch),
        address(source),
        address(out),
    ];
    let grid = Grid {
        blocks: (
            tiles.columns.div_ceil(32) as u32,
            tiles.rows.div_ceil(32) as u32,
            tiles.batch as u32,
        ),
        threads: 256,
        shared_bytes: 0,
    };
    let kernel = ("transpose", out.dtype().size_bytes());
    launch.run(&source_files::COPY, kernel, grid, &arguments)
}
