//! Scores of classes as rows: inputs of shape [batch, classes, places..] or [classes], of which
//! each place has one target. And sums over all rows that do not depend on the number of threads.

use plimsoll_core::{Error, Result};

use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Element, Operand};

/// How the losses of the rows become the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// They are the result.
    None,
    /// Their weighted mean.
    Mean,
    /// Their sum.
    Sum,
}

impl std::str::FromStr for Reduction {
    type Err = Error;

    fn from_str(word: &str) -> Result<Reduction> {
        match word {
            "none" => Ok(Reduction::None),
            "mean" => Ok(Reduction::Mean),
            "sum" => Ok(Reduction::Sum),
            _ => Err(Error::invalid_argument(format!(
                "the reduction is \"none\", \"mean\" or \"sum\", and not {word:?}"
            ))),
        }
    }
}

/// Rows that one thread takes at a time, whose losses it adds up.
pub(crate) const UNIT: usize = 64;

/// Where the rows lie in a contiguous tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// Batches.
    pub(crate) outer: usize,
    /// Scores of a row.
    pub(crate) classes: usize,
    /// Places of a batch: also the distance between two scores of a row.
    pub(crate) inner: usize,
}

impl Rows {
    pub(crate) fn of(shape: &[usize]) -> Rows {
        match shape {
            [] => Rows { outer: 1, classes: 1, inner: 1 },
            [classes] => Rows { outer: 1, classes: *classes, inner: 1 },
            [outer, classes, places @ ..] => {
                Rows { outer: *outer, classes: *classes, inner: places.iter().product() }
            }
        }
    }

    /// Rows in all.
    pub(crate) fn count(self) -> usize {
        self.outer * self.inner
    }

    /// The first score of a row.
    #[inline]
    pub(crate) fn start(self, row: usize) -> usize {
        row / self.inner * self.inner * self.classes + row % self.inner
    }

    /// Units of at most [`UNIT`] rows, none across two batches that are laid out in columns.
    pub(crate) fn units(self) -> usize {
        if self.inner == 1 { self.outer.div_ceil(UNIT) } else { self.outer * self.blocks() }
    }

    fn blocks(self) -> usize {
        self.inner.div_ceil(UNIT)
    }

    /// The rows of a unit.
    #[inline]
    pub(crate) fn unit(self, unit: usize) -> std::ops::Range<usize> {
        if self.inner == 1 {
            return unit * UNIT..self.outer.min((unit + 1) * UNIT);
        }
        let (batch, block) = (unit / self.blocks(), unit % self.blocks());
        let first = batch * self.inner;
        first + block * UNIT..first + self.inner.min((block + 1) * UNIT)
    }
}

/// The loss and the weight of some rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    pub(crate) loss: f64,
    pub(crate) weight: f64,
}

/// Bytes for one [`Total`] a unit.
pub(crate) fn totals_bytes(shape: &[usize]) -> usize {
    Rows::of(shape).units() * size_of::<Total>()
}

/// The workspace as one [`Total`] a unit.
pub(crate) fn totals(launch: &CpuLaunch<'_>, rows: Rows) -> Result<Shared<Total>> {
    if launch.workspace.bytes() < rows.units() * size_of::<Total>() {
        return Err(Error::invalid_argument("the kernel needs a workspace of a sum a unit")
            .in_operation(launch.operation));
    }
    Ok(Shared(launch.workspace.pointer().cast()))
}

/// All of them, in order.
pub(crate) fn add_up(totals: Shared<Total>, units: usize) -> Total {
    (0..units).fold(Total::default(), |sum, unit| {
        // SAFETY: below the units, each of which wrote its own before.
        let total = unsafe { *totals.add(unit) };
        Total { loss: sum.loss + total.loss, weight: sum.weight + total.weight }
    })
}

/// The first element of an operand that must be row-major and of this type.
pub(crate) fn row_major<T: Element>(
    launch: &CpuLaunch<'_>,
    operand: &Operand<'_>,
) -> Result<Shared<T>> {
    plimsoll_engine::map::check::<T>(launch, operand)?;
    if operand.layout().is_contiguous() {
        return Ok(Shared(operand.first()));
    }
    Err(Error::invalid_argument("the kernel needs row-major operands")
        .in_operation(launch.operation))
}

/// The operand at `index`, which must be there.
pub(crate) fn operand<'a>(
    launch: &CpuLaunch<'_>,
    operands: &[Operand<'a>],
    index: usize,
) -> Result<Operand<'a>> {
    operands.get(index).copied().ok_or_else(|| {
        Error::invalid_argument(format!("the kernel was launched without operand {index}"))
            .in_operation(launch.operation)
    })
}

/// Refuses targets that are no class and not `ignore_index`.
pub(crate) fn check_targets(
    launch: &CpuLaunch<'_>,
    targets: &Operand<'_>,
    rows: Rows,
    ignore_index: i64,
) -> Result<Shared<i64>> {
    let first = row_major::<i64>(launch, targets)?;
    if targets.layout().numel() != rows.count() {
        return Err(Error::shape(launch.operation, "the kernel needs one target a row"));
    }
    for row in 0..rows.count() {
        // SAFETY: below the number of targets.
        let target = unsafe { *first.add(row) };
        if target != ignore_index && !(0..rows.classes as i64).contains(&target) {
            return Err(Error::index(
                launch.operation,
                format!(
                    "target {target} of row {row} is out of bounds: there are {} classes, from 0",
                    rows.classes
                ),
            ));
        }
    }
    Ok(first)
}
