//! Cross entropy between scores and target classes in one pass over the scores. For backward it
//! keeps two numbers a row, the largest score and the logarithm of the sum, and no probabilities:
//! the gradient computes them again while it writes.

use plimsoll_core::Result;

use plimsoll_engine::along_dim::{SLICE, fold, slices, sum, write_slice};
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, Element, input_dtype, match_float, nontemporal, parallel};

use crate::nll::{NllArgs, divisor, reduced};
use crate::rows::{
    Reduction, Rows, Total, UNIT, add_up, check_targets, operand, row_major, totals, totals_bytes,
};

/// What the kernels go by.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyArgs {
    /// As for the likelihood alone.
    pub nll: NllArgs,
    /// How much of each target is spread over all classes.
    pub smoothing: f64,
}

/// Scratch of [`cross_entropy`].
pub fn cross_entropy_workspace_bytes(shape: &[usize]) -> usize {
    totals_bytes(shape)
}

/// [scores, targets, weight?] -> the loss, and [sum of weights, largest score of each row,
/// logarithm of each row's sum] if backward wants them.
pub fn cross_entropy(launch: &CpuLaunch<'_>, args: CrossEntropyArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => forward::<T>(launch, args))
}

/// What all rows share.
struct Job<T: Float> {
    rows: Rows,
    args: CrossEntropyArgs,
    x: Shared<T>,
    targets: Shared<i64>,
    weight: Option<Shared<T>>,
    /// The sum over the classes' weights.
    weights: f64,
    /// Largest score and logarithm of the sum, a row each.
    moments: Option<[Shared<T::Wide>; 2]>,
}

impl<T: Float> Job<T> {
    /// Inputs `x_at` and the one after it are scores and targets; `weight_at` the weights.
    fn new(
        launch: &CpuLaunch<'_>,
        args: CrossEntropyArgs,
        x_at: usize,
        weight_at: usize,
        moments: Option<[Shared<T::Wide>; 2]>,
    ) -> Result<Job<T>> {
        let x = operand(launch, launch.inputs, x_at)?;
        let rows = Rows::of(x.shape());
        let targets = operand(launch, launch.inputs, x_at + 1)?;
        let weight = match args.nll.weight {
            true => Some(row_major::<T>(launch, &operand(launch, launch.inputs, weight_at)?)?),
            false => None,
        };
        let weights = weight.map_or(rows.classes as f64, |w| {
            // SAFETY: one weight a class, which dispatch checked.
            (0..rows.classes).map(|class| unsafe { *w.add(class) }.to_f64()).sum()
        });
        Ok(Job {
            rows,
            args,
            x: row_major::<T>(launch, &x)?,
            targets: check_targets(launch, &targets, rows, args.nll.ignore_index)?,
            weight,
            weights,
            moments,
        })
    }

    /// The weight of a class.
    ///
    /// # Safety
    /// It must be one of the classes.
    #[inline(always)]
    unsafe fn share(&self, class: usize) -> f64 {
        // SAFETY: there is one weight a class.
        self.weight.map_or(1.0, |w| unsafe { *w.add(class) }.to_f64())
    }

    /// The loss and weight of a row, whose scores are `inner` apart from `start`.
    ///
    /// # Safety
    /// `row` must be one of the rows.
    #[inline(always)]
    unsafe fn loss(&self, row: usize, top: T::Wide, log_sum: T::Wide) -> Total {
        // SAFETY: a row of the input; its target is a class.
        unsafe {
            if let Some([tops, log_sums]) = self.moments {
                *tops.add(row) = top;
                *log_sums.add(row) = log_sum;
            }
            let target = *self.targets.add(row);
            if target == self.args.nll.ignore_index {
                return Total::default();
            }
            let (start, inner) = (self.rows.start(row), self.rows.inner);
            let weight = self.share(target as usize);
            let score = (*self.x.add(start + target as usize * inner)).widen();
            let own = (log_sum - (score - top)).to_f64() * weight;
            let smoothing = self.args.smoothing;
            if smoothing == 0.0 {
                return Total { loss: own, weight };
            }
            let mut spread = self.weights * log_sum.to_f64();
            for class in 0..self.rows.classes {
                let below = ((*self.x.add(start + class * inner)).widen() - top).to_f64();
                spread -= self.share(class) * below;
            }
            let spread = spread / self.rows.classes as f64;
            Total { loss: own * (1.0 - smoothing) + spread * smoothing, weight }
        }
    }
}

fn forward<T: Float>(launch: &CpuLaunch<'_>, args: CrossEntropyArgs) -> Result<()> {
    let moments = match launch.outputs.get(2..4) {
        Some([top, log_sum]) => Some([row_major(launch, top)?, row_major(launch, log_sum)?]),
        _ => None,
    };
    let job = Job::<T>::new(launch, args, 0, 2, moments)?;
    let loss = row_major::<T>(launch, &operand(launch, launch.outputs, 0)?)?;
    let sums = totals(launch, job.rows)?;
    let grain = (GRAIN / (job.rows.classes.max(1) * UNIT)).max(1);
    parallel::split(job.rows.units(), grain, |units| {
        for unit in units {
            let total =
                simd::dispatch_level(Forward { job: &job, rows: job.rows.unit(unit), loss });
            // SAFETY: the unit's own place.
            unsafe { *sums.add(unit) = total };
        }
    });
    let total = add_up(sums, job.rows.units());
    reduced(launch, args.nll.reduction, total, loss.0)
}

/// The losses of a unit's rows.
struct Forward<'a, T: Float> {
    job: &'a Job<T>,
    rows: std::ops::Range<usize>,
    loss: Shared<T>,
}

impl<T: Float> LevelKernel for Forward<'_, T> {
    type Output = Total;
    #[inline(always)]
    fn run<L: Level>(self) -> Total {
        let Forward { job, rows, loss } = self;
        let mut sums = Total::default();
        let mut moments = [(T::Wide::ZERO, T::Wide::ZERO); UNIT];
        if job.rows.inner == 1 {
            let mut buffer = [T::Wide::ZERO; SLICE];
            for (place, row) in moments.iter_mut().zip(rows.clone()) {
                // SAFETY: a row of the input, whose scores lie side by side.
                *place = unsafe {
                    row_moments::<L, T>(
                        job.x.add(job.rows.start(row)),
                        job.rows.classes,
                        &mut buffer,
                    )
                };
            }
        } else {
            // SAFETY: the unit's rows are neighbouring columns of one batch.
            unsafe { column_moments::<L, T>(job, rows.clone(), &mut moments) };
        }
        for (&(top, log_sum), row) in moments.iter().zip(rows) {
            // SAFETY: one of the rows; its loss is this unit's to write.
            unsafe {
                let total = job.loss(row, top, log_sum);
                if job.args.nll.reduction == Reduction::None {
                    *loss.add(row) = T::from_f64(total.loss);
                }
                sums.loss += total.loss;
                sums.weight += total.weight;
            }
        }
        sums
    }
}

#[inline(always)]
fn larger<R: Real>(a: R, b: R) -> R {
    // A NaN is left for the exponentials to carry.
    if b > a { b } else { a }
}

/// The largest of neighbouring scores, and the logarithm of the sum of exp(score - largest).
///
/// # Safety
/// `len` scores from `x` must be readable.
#[inline(always)]
unsafe fn row_moments<L: Level, T: Float>(
    x: *const T,
    len: usize,
    buffer: &mut [T::Wide; SLICE],
) -> (T::Wide, T::Wide) {
    // SAFETY: the caller vouches for the scores; slices are inside.
    unsafe {
        let top = fold(x, len, -T::Wide::INFINITY, larger, larger);
        let mut total = 0.0;
        slices(len, |at, count| {
            let values = &mut buffer[..count];
            for (i, value) in values.iter_mut().enumerate() {
                *value = ((*x.add(at + i)).widen() - top).exp::<L>();
            }
            total += sum(values).to_f64();
        });
        (top, T::Wide::of(total).ln::<L>())
    }
}

/// [`row_moments`] of neighbouring columns.
///
/// # Safety
/// `rows` must be columns of one batch, at most [`UNIT`].
#[inline(always)]
unsafe fn column_moments<L: Level, T: Float>(
    job: &Job<T>,
    rows: std::ops::Range<usize>,
    moments: &mut [(T::Wide, T::Wide); UNIT],
) {
    let (count, inner) = (rows.len(), job.rows.inner);
    let mut tops = [-T::Wide::INFINITY; UNIT];
    let mut sums = [0.0f64; UNIT];
    // SAFETY: `count` columns from the first row's start, for which the caller vouches.
    unsafe {
        let first = job.x.add(job.rows.start(rows.start));
        for class in 0..job.rows.classes {
            for (j, top) in tops.iter_mut().enumerate().take(count) {
                *top = larger(*top, (*first.add(class * inner + j)).widen());
            }
        }
        for class in 0..job.rows.classes {
            let mut values = [T::Wide::ZERO; UNIT];
            for j in 0..count {
                values[j] = ((*first.add(class * inner + j)).widen() - tops[j]).exp::<L>();
            }
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value.to_f64();
            }
        }
    }
    for j in 0..count {
        moments[j] = (tops[j], T::Wide::of(sums[j]).ln::<L>());
    }
}

/// [grad, scores, targets, sum of weights, largest scores, logarithms of sums, weight?] -> the
/// gradient of the scores.
pub fn cross_entropy_backward(launch: &CpuLaunch<'_>, args: CrossEntropyArgs) -> Result<()> {
    match_float!(launch, input_dtype(launch)?, T => backward::<T>(launch, args))
}

fn backward<T: Float>(launch: &CpuLaunch<'_>, args: CrossEntropyArgs) -> Result<()> {
    let moment = |at| row_major::<T::Wide>(launch, &operand(launch, launch.inputs, at)?);
    let job = Job::<T>::new(launch, args, 1, 6, Some([moment(4)?, moment(5)?]))?;
    let grad = row_major::<T>(launch, &operand(launch, launch.inputs, 0)?)?;
    let out = operand(launch, launch.outputs, 0)?;
    let to = row_major::<T>(launch, &out)?;
    let divisor = divisor::<T>(launch, args.nll, 3)?;
    let streamed = nontemporal::is_streamed(&[out]);
    let grain = (GRAIN / (job.rows.classes.max(1) * UNIT)).max(1);
    parallel::split(job.rows.units(), grain, |units| {
        for unit in units {
            let rows = job.rows.unit(unit);
            simd::dispatch_level(Gradient { job: &job, rows, grad, to, divisor, streamed });
        }
        if streamed {
            nontemporal::fence();
        }
    });
    Ok(())
}

/// The gradients of a unit's rows.
struct Gradient<'a, T: Float> {
    job: &'a Job<T>,
    rows: std::ops::Range<usize>,
    grad: Shared<T>,
    to: Shared<T>,
    divisor: f64,
    streamed: bool,
}

impl<T: Float> Gradient<'_, T> {
    /// What multiplies the probabilities, the weights and the target's own place.
    ///
    /// # Safety
    /// `row` must be one of the rows.
    #[inline(always)]
    unsafe fn factors(&self, row: usize) -> [f64; 3] {
        let CrossEntropyArgs { nll, smoothing } = self.job.args;
        // SAFETY: a row, whose target is a class.
        unsafe {
            let target = *self.job.targets.add(row);
            if target == nll.ignore_index {
                return [0.0; 3];
            }
            let of = if nll.reduction == Reduction::None { row } else { 0 };
            let grad = (*self.grad.add(of)).to_f64() / self.divisor;
            let own = (1.0 - smoothing) * self.job.share(target as usize);
            let each = smoothing / self.job.rows.classes as f64;
            [grad * (own + each * self.job.weights), grad * each, grad * own]
        }
    }

    /// Takes the target's place off what was written.
    ///
    /// # Safety
    /// `row` must be one of this unit's.
    #[inline(always)]
    unsafe fn slopes(
        &self,
        row: usize,
        class: usize,
        probability: T::Wide,
        by: [f64; 3],
    ) -> T::Wide {
        // SAFETY: one of the classes.
        let spread = if by[1] == 0.0 { 0.0 } else { by[1] * unsafe { self.job.share(class) } };
        // SAFETY: one of the rows.
        let is_target = unsafe { *self.job.targets.add(row) } == class as i64;
        let own = if is_target { by[2] } else { 0.0 };
        T::Wide::of(probability.to_f64() * by[0] - spread - own)
    }
}

impl<T: Float> LevelKernel for Gradient<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        if self.job.rows.inner == 1 {
            let mut buffer = [T::Wide::ZERO; SLICE];
            for row in self.rows.clone() {
                // SAFETY: one of this unit's rows, whose scores lie side by side.
                unsafe { self.row::<L>(row, &mut buffer) };
            }
        } else {
            // SAFETY: the unit's rows are neighbouring columns of one batch.
            unsafe { self.columns::<L>() };
        }
    }
}

impl<T: Float> Gradient<'_, T> {
    /// # Safety
    /// `row` must be one of this unit's, with `inner` 1.
    #[inline(always)]
    unsafe fn row<L: Level>(&self, row: usize, buffer: &mut [T::Wide; SLICE]) {
        let job = self.job;
        let Some([tops, log_sums]) = job.moments else { return };
        // SAFETY: the row's scores, moments and gradient; slices are inside the row.
        unsafe {
            let by = self.factors(row);
            let (top, log_sum) = (*tops.add(row), *log_sums.add(row));
            let (x, to) = (job.x.add(job.rows.start(row)), self.to.add(job.rows.start(row)));
            let target = *job.targets.add(row);
            let (zero, scale) = (T::Wide::ZERO, T::Wide::of(by[0]));
            let ignored = target == job.args.nll.ignore_index;
            slices(job.rows.classes, |at, count| {
                let values = &mut buffer[..count];
                if ignored {
                    values.fill(zero);
                    write_slice(to.add(at), values, self.streamed);
                    return;
                }
                for (i, value) in values.iter_mut().enumerate() {
                    *value = ((*x.add(at + i)).widen() - top - log_sum).exp::<L>() * scale;
                }
                if by[1] != 0.0 {
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = *value - T::Wide::of(by[1] * job.share(at + i));
                    }
                }
                if let Some(value) =
                    (target as usize).checked_sub(at).and_then(|i| values.get_mut(i))
                {
                    let probability =
                        ((*x.add(target as usize)).widen() - top - log_sum).exp::<L>();
                    *value = self.slopes(row, target as usize, probability, by);
                }
                write_slice(to.add(at), values, self.streamed);
            });
        }
    }

    /// # Safety
    /// The unit's rows must be columns of one batch.
    #[inline(always)]
    unsafe fn columns<L: Level>(&self) {
        let job = self.job;
        let Some([tops, log_sums]) = job.moments else { return };
        let (count, inner) = (self.rows.len(), job.rows.inner);
        // SAFETY: `count` columns from the first row's start, for which the caller vouches.
        unsafe {
            let start = job.rows.start(self.rows.start);
            let mut by = [[0.0; 3]; UNIT];
            for (by, row) in by.iter_mut().zip(self.rows.clone()) {
                *by = self.factors(row);
            }
            for class in 0..job.rows.classes {
                let mut values = [T::Wide::ZERO; UNIT];
                for (j, value) in values.iter_mut().enumerate().take(count) {
                    let row = self.rows.start + j;
                    let score = (*job.x.add(start + class * inner + j)).widen();
                    *value = (score - *tops.add(row) - *log_sums.add(row)).exp::<L>();
                }
                for (j, &value) in values.iter().enumerate().take(count) {
                    let row = self.rows.start + j;
                    let ignored = *job.targets.add(row) == job.args.nll.ignore_index;
                    let slope = self.slopes(row, class, value, by[j]);
                    let value = if ignored { T::Wide::ZERO } else { slope };
                    *self.to.add(start + class * inner + j) = T::narrow(value);
                }
            }
        }
    }
}
