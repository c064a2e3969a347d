//! Sorting a tensor of any layout along any dimension: contiguous rows where they lie, others by
//! way of blocks of neighbouring lines that are gathered into the workspace, sorted there and
//! scattered.

use plimsoll_core::{Error, Result};

use super::SortPlan;
use plimsoll_engine::along_dim::Lines;
use plimsoll_engine::map::{check, operands};
use plimsoll_engine::{CpuLaunch, Meta};

/// Lines gathered at a time: enough to use whole cache lines when they lie side by side.
const MOST_LINES: usize = 64;
/// Elements gathered at a time, unless a single line is longer.
const MOST_ELEMENTS: usize = 1 << 18;

/// How lines are brought to the sort.
enum Way {
    /// All rows where they lie.
    Direct(SortPlan),
    /// Up to `lines` lines at a time, through buffers.
    Blocks { lines: usize },
}

fn way(metas: [&Meta; 3], dim: usize) -> Way {
    let shape = metas[0].shape();
    let len = shape.get(dim).copied().unwrap_or(1);
    let rows = metas[0].layout.numel().checked_div(len).unwrap_or(0);
    if dim + 1 >= shape.len() && metas.iter().all(|meta| meta.layout.is_contiguous()) {
        return Way::Direct(SortPlan::new(metas[0].dtype, rows, len));
    }
    let lines = (MOST_ELEMENTS / len.max(1)).clamp(1, MOST_LINES).min(rows.max(1));
    Way::Blocks { lines }
}

/// Bytes of the buffers for `lines` lines: keys, sorted keys, positions.
fn buffer_bytes(lines: usize, len: usize, element_bytes: usize) -> [usize; 3] {
    [element_bytes, element_bytes, size_of::<i64>()]
        .map(|bytes| (lines * len * bytes).next_multiple_of(64))
}

/// Scratch of [`sort`], whose outputs are [values, positions].
pub fn sort_along_workspace_bytes(input: &Meta, outputs: &[Meta], dim: usize) -> usize {
    let [values, positions, ..] = outputs else { return 0 };
    let len = input.shape().get(dim).copied().unwrap_or(1);
    match way([input, values, positions], dim) {
        Way::Direct(plan) => plan.workspace_bytes(),
        Way::Blocks { lines } => {
            let buffers: usize = buffer_bytes(lines, len, input.dtype.size_bytes()).iter().sum();
            buffers + plan_bytes(input, lines, len)
        }
    }
}

/// What sorting any number of lines up to `lines` needs.
fn plan_bytes(input: &Meta, lines: usize, len: usize) -> usize {
    let bytes = |lines| SortPlan::new(input.dtype, lines, len).workspace_bytes();
    (1..=lines).map(bytes).max().unwrap_or(0)
}

/// `[x]` -> [x sorted along `dim`, the positions (i64) its elements came from]; stable, NaN
/// greatest.
pub fn sort(launch: &CpuLaunch<'_>, dim: usize, descending: bool) -> Result<()> {
    let [values, input] = operands::<2>(launch)?;
    let Some(&positions) = launch.outputs.get(1) else {
        return Err(
            Error::invalid_argument("sorting has two outputs").in_operation(launch.operation)
        );
    };
    check::<i64>(launch, &positions)?;
    if values.dtype() != input.dtype() {
        return Err(plimsoll_engine::wrong_dtype(launch.operation, values.dtype()));
    }
    let outputs = [values.meta().clone(), positions.meta().clone()];
    let needed = sort_along_workspace_bytes(input.meta(), &outputs, dim);
    check_workspace(launch, needed)?;
    let lines = Lines::new(launch, &[input, values, positions], dim)?;
    match way([input.meta(), values.meta(), positions.meta()], dim) {
        Way::Direct(plan) => {
            let to = positions.first_byte().cast();
            let workspace = launch.workspace.pointer();
            // SAFETY: contiguous operands of one shape, which the plan was made for; dispatch
            // refuses overlap; the workspace was just measured.
            unsafe { plan.run(input.first_byte(), values.first_byte(), to, descending, workspace) };
        }
        Way::Blocks { lines: block } => match input.dtype().size_bytes() {
            1 => sort_blocks::<u8>(launch, &lines, block, descending),
            2 => sort_blocks::<u16>(launch, &lines, block, descending),
            4 => sort_blocks::<u32>(launch, &lines, block, descending),
            _ => sort_blocks::<u64>(launch, &lines, block, descending),
        },
    }
    Ok(())
}

/// Scratch of [`sort_values`]: positions that nobody asked for, and what the sort takes.
pub fn sort_values_workspace_bytes(input: &Meta) -> usize {
    let len = input.layout.numel();
    let positions = (len * size_of::<i64>()).next_multiple_of(64);
    positions + SortPlan::new(input.dtype, 1, len).workspace_bytes()
}

/// `[x]`, contiguous -> [its elements in order], contiguous; NaN greatest.
pub fn sort_values(launch: &CpuLaunch<'_>) -> Result<()> {
    let [values, input] = operands::<2>(launch)?;
    let contiguous = [values, input].iter().all(|operand| operand.layout().is_contiguous());
    if values.dtype() != input.dtype() || !contiguous || values.shape() != input.shape() {
        return Err(plimsoll_engine::wrong_dtype(launch.operation, values.dtype()));
    }
    let needed = sort_values_workspace_bytes(input.meta());
    check_workspace(launch, needed)?;
    let len = input.layout().numel();
    let positions = launch.workspace.pointer();
    let rest = positions.wrapping_add((len * size_of::<i64>()).next_multiple_of(64));
    let plan = SortPlan::new(input.dtype(), 1, len);
    let (from, to) = (input.first_byte(), values.first_byte());
    // SAFETY: contiguous operands of one shape, which the plan was made for; dispatch refuses
    // overlap; the workspace has room for the positions and for the sort.
    unsafe { plan.run(from, to, positions.cast(), false, rest) };
    Ok(())
}

/// Refuses a workspace that is too small.
fn check_workspace(launch: &CpuLaunch<'_>, needed: usize) -> Result<()> {
    let given = launch.workspace.bytes();
    if needed <= given {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "the kernel needs {needed} bytes of workspace, but was launched with {given}"
    ))
    .in_operation(launch.operation))
}

/// `T` is as wide as the elements; what they are only the sort itself needs to know.
fn sort_blocks<T: Copy>(launch: &CpuLaunch<'_>, lines: &Lines<3>, block: usize, descending: bool) {
    if lines.count == 0 || lines.len == 0 {
        return;
    }
    let dtype = launch.inputs[0].dtype();
    let (width, across) = lines.across();
    let [keys_bytes, sorted_bytes, positions_bytes] =
        buffer_bytes(block, lines.len, size_of::<T>());
    let keys = launch.workspace.pointer();
    let sorted = keys.wrapping_add(keys_bytes);
    let positions = sorted.wrapping_add(sorted_bytes);
    let rest = positions.wrapping_add(positions_bytes);
    for group in 0..lines.count / width {
        let mut first = 0;
        while first < width {
            let rows = block.min(width - first);
            let [from, to, to_positions] = lines.group(group, first);
            let strides = |i: usize| [lines.strides[i], across[i]];
            // SAFETY: the lines are the operands' own; the buffers have room for `block` of them,
            // and the rest of the workspace for sorting any number up to that (`plan_bytes`).
            unsafe {
                let grid = |strides| Grid { len: lines.len, rows, strides };
                grid(strides(0)).gather::<T>(from.cast(), keys.cast());
                let plan = SortPlan::new(dtype, rows, lines.len);
                plan.run(keys, sorted, positions.cast(), descending, rest);
                grid(strides(1)).scatter::<T>(sorted.cast(), to.cast());
                grid(strides(2)).scatter::<i64>(positions.cast(), to_positions.cast());
            }
            first += rows;
        }
    }
}

/// Some lines: byte strides along them and from one to the next.
struct Grid {
    len: usize,
    rows: usize,
    strides: [usize; 2],
}

impl Grid {
    /// Calls `visit(row, i, byte offset)` for every element, neighbours in memory together.
    fn each(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let [along, across] = self.strides;
        if along <= across {
            for row in 0..self.rows {
                for i in 0..self.len {
                    visit(row, i, row * across + i * along);
                }
            }
        } else {
            for i in 0..self.len {
                for row in 0..self.rows {
                    visit(row, i, row * across + i * along);
                }
            }
        }
    }

    /// Copies the lines into contiguous rows.
    ///
    /// # Safety
    /// The lines from `from` must be readable, and `to` have room for all of them.
    unsafe fn gather<T: Copy>(&self, from: *const T, to: *mut T) {
        self.each(|row, i, offset| {
            // SAFETY: the caller vouches for both sides.
            unsafe { *to.add(row * self.len + i) = *from.byte_add(offset) };
        });
    }

    /// Copies contiguous rows out to the lines.
    ///
    /// # Safety
    /// The lines from `to` must be writable, and `from` hold all of them.
    unsafe fn scatter<T: Copy>(&self, from: *const T, to: *mut T) {
        self.each(|row, i, offset| {
            // SAFETY: the caller vouches for both sides.
            unsafe { *to.byte_add(offset) = *from.add(row * self.len + i) };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::parallel;
    use plimsoll_engine::testing::{Held, Lot, launch_all, shapes};

    #[test]
    fn sorts_along_every_dimension_of_every_layout() {
        let mut lot = Lot(91);
        for dtype in DType::ALL {
            for shape in shapes() {
                for dim in 0..shape.len().max(1) {
                    let descending = lot.below(2) == 0;
                    let x = Held::random(&mut lot, dtype, &shape, true);
                    let mut out = [
                        Held::output(&mut lot, dtype, &shape),
                        Held::output(&mut lot, DType::I64, &shape),
                    ];
                    let metas = [out[0].meta.clone(), out[1].meta.clone()];
                    let bytes = [1, 2]
                        .map(|threads| {
                            parallel::with_threads(threads, || {
                                sort_along_workspace_bytes(&x.meta, &metas, dim)
                            })
                        })
                        .into_iter()
                        .max()
                        .unwrap_or(0);
                    let (values, positions) = naive(&x.values(), &shape, dim, descending);
                    let what = format!("sort {:?} along {dim}, descending {descending}", x.meta);
                    launch_all(
                        &[&x],
                        &mut out,
                        bytes,
                        |l| sort(l, dim, descending),
                        |out| {
                            assert_eq!(out[1].values(), positions, "{what}");
                            let same = out[0]
                                .values()
                                .iter()
                                .zip(&values)
                                .all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
                            assert!(same, "{what}");
                        },
                    );
                }
            }
        }
    }

    /// A stable sort of every line with NaN greatest.
    fn naive(x: &[f64], shape: &[usize], dim: usize, descending: bool) -> (Vec<f64>, Vec<f64>) {
        let len = shape.get(dim).copied().unwrap_or(1);
        let inner: usize = shape.iter().skip(dim + 1).product();
        let (mut values, mut positions) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        for line in 0..x.len().checked_div(len).unwrap_or(0) {
            let start = line / inner * inner * len + line % inner;
            let at = |i: usize| x[start + i * inner];
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by(|&a, &b| {
                let (a, b) = (at(a), at(b));
                let ascending = match (a.is_nan(), b.is_nan()) {
                    (true, true) => std::cmp::Ordering::Equal,
                    (true, false) => std::cmp::Ordering::Greater,
                    (false, true) => std::cmp::Ordering::Less,
                    _ => a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal),
                };
                if descending { ascending.reverse() } else { ascending }
            });
            for (i, from) in order.into_iter().enumerate() {
                values[start + i * inner] = at(from);
                positions[start + i * inner] = from as f64;
            }
        }
        (values, positions)
    }
}
