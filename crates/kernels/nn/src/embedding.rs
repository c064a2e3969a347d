//! Rows of a table by index, and the gradient of the table. Every row of the gradient belongs to
//! one thread, which adds to it in the order of the indices: no atomics, no sorting, the same bits
//! however many threads there are.

use plimsoll_core::{Error, Result};

use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::number::Number;
use plimsoll_engine::real::Float;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{
    CpuLaunch, Element, Operand, input_dtype, match_dtype, match_float, parallel,
};

use crate::rows::{operand, row_major};

/// Indices into a table, all of which are known to be in it.
#[derive(Clone, Copy)]
pub(crate) struct Indices {
    first: Shared<i64>,
    pub(crate) count: usize,
}

impl Indices {
    /// Refuses indices that are not below `size`.
    pub(crate) fn new(
        launch: &CpuLaunch<'_>,
        operand: &Operand<'_>,
        size: usize,
    ) -> Result<Indices> {
        let indices =
            Indices { first: row_major(launch, operand)?, count: operand.layout().numel() };
        for at in 0..indices.count {
            // SAFETY: below the count.
            let index = unsafe { *indices.first.add(at) };
            if !(0..size as i64).contains(&index) {
                return Err(Error::index(
                    launch.operation,
                    format!(
                        "index {index} at place {at} is out of range: the table has {size} rows"
                    ),
                ));
            }
        }
        Ok(indices)
    }

    /// The index at a place below `count`.
    #[inline(always)]
    pub(crate) fn at(self, place: usize) -> usize {
        debug_assert!(place < self.count, "one of the indices");
        // SAFETY: below the count.
        unsafe { *self.first.add(place) as usize }
    }
}

/// A matrix whose rows are runs of elements.
#[derive(Clone, Copy)]
pub(crate) struct Table<T> {
    first: Shared<T>,
    stride: usize,
    pub(crate) rows: usize,
    pub(crate) width: usize,
}

impl<T: Element> Table<T> {
    pub(crate) fn new(launch: &CpuLaunch<'_>, operand: &Operand<'_>) -> Result<Table<T>> {
        plimsoll_engine::map::check::<T>(launch, operand)?;
        match (operand.shape(), operand.layout().strides()) {
            (&[rows, width], &[stride, step]) if step == 1 || width < 2 => {
                Ok(Table { first: Shared(operand.first()), stride, rows, width })
            }
            _ => Err(Error::invalid_argument("the kernel needs a table of contiguous rows")
                .in_operation(launch.operation)),
        }
    }

    /// The start of a row.
    #[inline(always)]
    pub(crate) fn row(self, row: usize) -> *mut T {
        debug_assert!(row < self.rows, "one of the rows");
        self.first.0.wrapping_add(row * self.stride)
    }
}

/// [table, indices] -> a row an index.
pub fn embedding(launch: &CpuLaunch<'_>) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => forward::<T>(launch))
}

fn forward<T: Element>(launch: &CpuLaunch<'_>) -> Result<()> {
    let table = Table::<T>::new(launch, &operand(launch, launch.inputs, 0)?)?;
    let indices = Indices::new(launch, &operand(launch, launch.inputs, 1)?, table.rows)?;
    let out = row_major::<T>(launch, &operand(launch, launch.outputs, 0)?)?;
    let width = table.width;
    parallel::split(indices.count, (GRAIN / width.max(1)).max(1), |range| {
        for place in range {
            let from = table.row(indices.at(place));
            // SAFETY: a row of the table, and the place's own row of the output.
            unsafe { std::ptr::copy_nonoverlapping(from, out.add(place * width), width) };
        }
    });
    Ok(())
}

/// Scratch of [`embedding_backward`] for a table of `rows` rows.
pub fn embedding_workspace_bytes(rows: usize, scale_by_frequency: bool) -> usize {
    if scale_by_frequency { rows * size_of::<u64>() } else { 0 }
}

/// [grad, indices] -> the gradient of the table, whose shape is the output's; `added` to what the
/// output holds, or in its place. Indices equal to `padding` add nothing; with `scale_by_frequency`
/// each row is divided by how often it was taken.
pub fn embedding_backward(
    launch: &CpuLaunch<'_>,
    padding: Option<usize>,
    scale_by_frequency: bool,
    added: bool,
) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => {
        backward::<T>(launch, padding, scale_by_frequency, added)
    })
}

fn backward<T: Float + Number>(
    launch: &CpuLaunch<'_>,
    padding: Option<usize>,
    scale_by_frequency: bool,
    added: bool,
) -> Result<()> {
    let table = Table::<T>::new(launch, &operand(launch, launch.outputs, 0)?)?;
    let grad = row_major::<T>(launch, &operand(launch, launch.inputs, 0)?)?;
    let indices = Indices::new(launch, &operand(launch, launch.inputs, 1)?, table.rows)?;
    let needed = embedding_workspace_bytes(table.rows, scale_by_frequency);
    if launch.workspace.bytes() < needed {
        return Err(Error::invalid_argument("the kernel needs a workspace of a count a row")
            .in_operation(launch.operation));
    }
    let counts: Shared<u64> = Shared(launch.workspace.pointer().cast());
    let width = table.width;
    parallel::split(table.rows, (GRAIN / width.max(1)).max(1), |rows| {
        for row in rows.clone() {
            // SAFETY: this part's own rows and counts.
            unsafe {
                if !added {
                    std::slice::from_raw_parts_mut(table.row(row), width).fill(T::ZERO);
                }
                if scale_by_frequency {
                    *counts.add(row) = 0;
                }
            }
        }
        let taken = || {
            let places = (0..indices.count).map(|place| (place, indices.at(place)));
            places.filter(|(_, row)| rows.contains(row) && Some(*row) != padding)
        };
        if scale_by_frequency {
            // SAFETY: this part's own counts.
            taken().for_each(|(_, row)| unsafe { *counts.add(row) += 1 });
        }
        for (place, row) in taken() {
            // SAFETY: one of this part's rows; a row of the gradient.
            unsafe {
                let from = std::slice::from_raw_parts(grad.add(place * width), width);
                let to = std::slice::from_raw_parts_mut(table.row(row), width);
                let share = if scale_by_frequency { 1.0 / *counts.add(row) as f64 } else { 1.0 };
                add_scaled(to, from, share);
            }
        }
    });
    Ok(())
}

/// Adds `from`, scaled, to `to`.
#[inline]
pub(crate) fn add_scaled<T: Float + Number>(to: &mut [T], from: &[T], scale: f64) {
    if scale == 1.0 {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = to.plus(from);
        }
        return;
    }
    let scale = T::Wide::from_f64(scale);
    for (to, &from) in to.iter_mut().zip(from) {
        *to = T::narrow(to.widen() + from.widen() * scale);
    }
}
