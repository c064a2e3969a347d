//! Bags of rows of a table: their sum, mean or largest elements in one pass, without the rows that
//! PyTorch would gather first; and the gradients of the table and of the samples' weights.

use plimsoll_core::{Error, Result};

use plimsoll_engine::along_dim::{SLICE, slices};
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::number::Number;
use plimsoll_engine::real::Float;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Element, input_dtype, match_float, parallel};

use crate::embedding::{Indices, Table, add_scaled, embedding_workspace_bytes};
use crate::rows::{operand, row_major};

/// What becomes of the rows of a bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BagMode {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest of each column.
    Max,
}

impl std::str::FromStr for BagMode {
    type Err = Error;

    fn from_str(word: &str) -> Result<BagMode> {
        match word {
            "sum" => Ok(BagMode::Sum),
            "mean" => Ok(BagMode::Mean),
            "max" => Ok(BagMode::Max),
            _ => Err(Error::invalid_argument(format!(
                "the mode of a bag is \"sum\", \"mean\" or \"max\", and not {word:?}"
            ))),
        }
    }
}

/// What the kernels go by.
#[derive(Clone, Copy, Debug)]
pub struct BagArgs {
    /// What becomes of a bag's rows.
    pub mode: BagMode,
    /// The index that counts for nothing.
    pub padding: Option<usize>,
    /// Whether the last offset is where the last bag ends, and not where it starts.
    pub include_last_offset: bool,
    /// Whether each sample has a weight.
    pub weighted: bool,
}

/// Where the bags start among the indices.
#[derive(Clone, Copy)]
struct Bags {
    offsets: Shared<i64>,
    count: usize,
    offsets_count: usize,
    samples: usize,
}

impl Bags {
    fn new(launch: &CpuLaunch<'_>, at: usize, samples: usize, last: bool) -> Result<Bags> {
        let operand = operand(launch, launch.inputs, at)?;
        let offsets_count = operand.layout().numel();
        let count = offsets_count - usize::from(last && offsets_count > 0);
        let bags = Bags { offsets: row_major(launch, &operand)?, count, offsets_count, samples };
        let mut before = 0;
        for bag in 0..offsets_count {
            let start = bags.offset(bag);
            let starts_at_0 = bag > 0 || start == 0;
            if !starts_at_0 || start < before || start > samples as i64 {
                return Err(Error::invalid_argument(format!(
                    "offset {start} of bag {bag} is wrong: offsets start with 0, never fall and are at most the \
                     number of indices, {samples}"
                ))
                .in_operation(launch.operation));
            }
            before = start;
        }
        Ok(bags)
    }

    fn offset(self, bag: usize) -> i64 {
        // SAFETY: below the number of offsets.
        unsafe { *self.offsets.add(bag) }
    }

    fn samples(self, bag: usize) -> std::ops::Range<usize> {
        let start = self.offset(bag) as usize;
        let next = bag + 1;
        start..if next < self.offsets_count { self.offset(next) as usize } else { self.samples }
    }
}

/// [table, indices, offsets, weights?] -> [a row a bag], and of maxima [the index that each element
/// is from, -1 for an empty bag] if backward wants it.
pub fn embedding_bag(launch: &CpuLaunch<'_>, args: BagArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => forward::<T>(launch, args))
}

/// What both directions read.
struct Job<T> {
    args: BagArgs,
    indices: Indices,
    bags: Bags,
    weights: Option<Shared<T>>,
}

impl<T: Float + Number> Job<T> {
    /// The indices are input `at`, offsets and weights the ones after it.
    fn new(launch: &CpuLaunch<'_>, args: BagArgs, at: usize, rows: usize) -> Result<Job<T>> {
        let indices = Indices::new(launch, &operand(launch, launch.inputs, at)?, rows)?;
        let bags = Bags::new(launch, at + 1, indices.count, args.include_last_offset)?;
        let weights = match args.weighted {
            true => Some(row_major(launch, &operand(launch, launch.inputs, at + 2)?)?),
            false => None,
        };
        Ok(Job { args, indices, bags, weights })
    }

    /// The samples of a bag that count, with their rows.
    fn counted(&self, bag: usize) -> impl Iterator<Item = (usize, usize)> + use<'_, T> {
        let rows = self.bags.samples(bag).map(|sample| (sample, self.indices.at(sample)));
        rows.filter(|(_, row)| Some(*row) != self.args.padding)
    }

    /// What a sample's row is multiplied by in a bag of `count`.
    fn share(&self, sample: usize, count: usize) -> f64 {
        // SAFETY: one weight a sample, which dispatch checked.
        let weight = self.weights.map_or(1.0, |w| unsafe { *w.add(sample) }.to_f64());
        if self.args.mode == BagMode::Mean { weight / count as f64 } else { weight }
    }
}

fn forward<T: Float + Number>(launch: &CpuLaunch<'_>, args: BagArgs) -> Result<()> {
    let table = Table::<T>::new(launch, &operand(launch, launch.inputs, 0)?)?;
    let job = Job::<T>::new(launch, args, 1, table.rows)?;
    let out = Table::<T>::new(launch, &operand(launch, launch.outputs, 0)?)?;
    let from = match launch.outputs.get(1) {
        Some(operand) => Some(Table::<i64>::new(launch, operand)?),
        None => None,
    };
    parallel::split(job.bags.count, (GRAIN / table.width.max(1)).max(1), |bags| {
        let mut buffer = [T::Wide::ZERO; SLICE];
        for bag in bags {
            if args.mode == BagMode::Max {
                largest(&job, table, out.row(bag), from.map(|from| from.row(bag)), bag);
                continue;
            }
            let count = job.counted(bag).count();
            slices(table.width, |at, len| {
                let sums = &mut buffer[..len];
                sums.fill(T::Wide::ZERO);
                for (sample, row) in job.counted(bag) {
                    let scale = T::Wide::from_f64(job.share(sample, count));
                    for (i, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: inside a row of the table.
                        *sum = *sum + unsafe { *table.row(row).add(at + i) }.widen() * scale;
                    }
                }
                for (i, sum) in sums.iter().enumerate() {
                    // SAFETY: inside the bag's own row of the output.
                    unsafe { *out.row(bag).add(at + i) = T::narrow(*sum) };
                }
            });
        }
    });
    Ok(())
}

/// The largest element of each column of a bag, and whose it is.
fn largest<T: Float + Number>(
    job: &Job<T>,
    table: Table<T>,
    out: *mut T,
    from: Option<*mut i64>,
    bag: usize,
) {
    for column in 0..table.width {
        let mut best: Option<(usize, T)> = None;
        for (_, row) in job.counted(bag) {
            // SAFETY: inside a row of the table.
            let value = unsafe { *table.row(row).add(column) };
            if best.is_none_or(|(_, top)| value.widen() > top.widen()) {
                best = Some((row, value));
            }
        }
        // SAFETY: inside the bag's own rows of the outputs.
        unsafe {
            *out.add(column) = best.map_or(T::ZERO, |(_, value)| value);
            if let Some(from) = from {
                *from.add(column) = best.map_or(-1, |(row, _)| row as i64);
            }
        }
    }
}

/// [grad, indices, offsets, weights?, origins of maxima?] -> the gradient of the table.
pub fn embedding_bag_backward(
    launch: &CpuLaunch<'_>,
    args: BagArgs,
    scale_by_frequency: bool,
) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => {
        backward::<T>(launch, args, scale_by_frequency)
    })
}

fn backward<T: Float + Number>(
    launch: &CpuLaunch<'_>,
    args: BagArgs,
    scale_by_frequency: bool,
) -> Result<()> {
    let table = Table::<T>::new(launch, &operand(launch, launch.outputs, 0)?)?;
    let grad = Table::<T>::new(launch, &operand(launch, launch.inputs, 0)?)?;
    let job = Job::<T>::new(launch, args, 1, table.rows)?;
    let from = match args.mode {
        BagMode::Max => Some(Table::<i64>::new(launch, &operand(launch, launch.inputs, 3)?)?),
        _ => None,
    };
    let width = table.width;
    let often =
        if scale_by_frequency { Some(frequencies(launch, &job, table.rows)?) } else { None };
    parallel::split(table.rows, (GRAIN / width.max(1)).max(1), |rows| {
        for row in rows.clone() {
            // SAFETY: one of this part's rows.
            unsafe { std::slice::from_raw_parts_mut(table.row(row), width) }.fill(T::ZERO);
        }
        for bag in 0..job.bags.count {
            if let Some(from) = from {
                for column in 0..width {
                    // SAFETY: inside the bag's rows; and inside one of this part's rows.
                    unsafe {
                        let row = *from.row(bag).add(column);
                        if row >= 0 && rows.contains(&(row as usize)) {
                            let to = table.row(row as usize).add(column);
                            *to = (*to).plus(*grad.row(bag).add(column));
                        }
                    }
                }
                continue;
            }
            let count = job.counted(bag).count();
            for (sample, row) in job.counted(bag).filter(|(_, row)| rows.contains(row)) {
                let often = often.map_or(1, |often| often[row]);
                // SAFETY: one of this part's rows, and the bag's row of the gradient.
                unsafe {
                    let to = std::slice::from_raw_parts_mut(table.row(row), width);
                    let from = std::slice::from_raw_parts(grad.row(bag), width);
                    add_scaled(to, from, job.share(sample, count) / often as f64);
                }
            }
        }
    });
    Ok(())
}

/// How often the samples name each row of the table, in the scratch.
fn frequencies<'a, T: Float + Number>(
    launch: &'a CpuLaunch<'_>,
    job: &Job<T>,
    rows: usize,
) -> Result<&'a [u64]> {
    if launch.workspace.bytes() < embedding_workspace_bytes(rows, true) {
        return Err(Error::invalid_argument("the kernel needs a count for each row of the table")
            .in_operation(launch.operation));
    }
    // SAFETY: the workspace is this launch's own, aligned for every dtype, and has so many words.
    let counts =
        unsafe { std::slice::from_raw_parts_mut(launch.workspace.pointer().cast::<u64>(), rows) };
    counts.fill(0);
    for sample in 0..job.indices.count {
        counts[job.indices.at(sample)] += 1;
    }
    Ok(counts)
}

/// [grad, indices, offsets, table] -> the gradient of the samples' weights.
pub fn embedding_bag_weights_backward(launch: &CpuLaunch<'_>, args: BagArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => weights_backward::<T>(launch, args))
}

fn weights_backward<T: Float + Number>(launch: &CpuLaunch<'_>, args: BagArgs) -> Result<()> {
    let table = Table::<T>::new(launch, &operand(launch, launch.inputs, 3)?)?;
    let grad = Table::<T>::new(launch, &operand(launch, launch.inputs, 0)?)?;
    let job = Job::<T>::new(launch, BagArgs { weighted: false, ..args }, 1, table.rows)?;
    let out = row_major::<T>(launch, &operand(launch, launch.outputs, 0)?)?;
    // Samples outside every bag take no part in the result.
    // SAFETY: the gradient has a place for each sample.
    unsafe { std::slice::from_raw_parts_mut(out.0, job.bags.samples) }.fill(T::from_f64(0.0));
    parallel::split(job.bags.count, (GRAIN / table.width.max(1)).max(1), |bags| {
        for bag in bags {
            for sample in job.bags.samples(bag) {
                let row = job.indices.at(sample);
                let mut total = 0.0;
                if Some(row) != args.padding {
                    for column in 0..table.width {
                        // SAFETY: inside a row of the table and of the gradient.
                        total += unsafe {
                            (*table.row(row).add(column)).to_f64()
                                * (*grad.row(bag).add(column)).to_f64()
                        };
                    }
                }
                // SAFETY: the sample's own place.
                unsafe { *out.add(sample) = T::from_f64(total) };
            }
        }
    });
    Ok(())
}
