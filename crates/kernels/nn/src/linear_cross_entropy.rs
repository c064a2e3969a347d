//! Cross entropy of a linear map's results, `x w^T + b`, without ever holding all of them: rows are
//! taken in blocks, and a block's scores become their own gradient and are gone before the next.
//! The gradients of x, w and b are made in the same pass, where they are wanted.

use plimsoll_core::{DType, Result};

use plimsoll_engine::along_dim::{fold, sum};
use plimsoll_engine::real::Real;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};
use plimsoll_engine::{CpuLaunch, input_dtype, parallel, wrong_dtype};
use plimsoll_kernels_matmul::gemm::{GemmShape, Strides};

use crate::nll::NllArgs;
use crate::products::{check_workspace, product, product_bytes, shape};
use crate::rows::{Reduction, Rows, check_targets, operand, row_major};

/// Scores of a block, about. Fewer make the gradient of w come and go too often.
const SCORES: usize = 1 << 25;

/// What the kernels go by.
#[derive(Clone, Copy, Debug)]
pub struct LinearCrossEntropyArgs {
    /// Reduction, ignored targets and weights of classes.
    pub nll: NllArgs,
    /// The part of a target that is spread over all classes.
    pub smoothing: f64,
    /// Whether there is a bias.
    pub biased: bool,
    /// Whether gradients of x, w and b are wanted.
    pub to: [bool; 3],
}

/// Sizes of x and w: rows, elements of a row, classes.
#[derive(Clone, Copy, Debug)]
pub struct LinearSizes {
    /// Rows of x.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
    /// Rows of w.
    pub classes: usize,
}

impl LinearSizes {
    /// Of x and w by their shapes.
    pub fn of(x: &[usize], w: &[usize]) -> LinearSizes {
        LinearSizes { rows: x[0], width: x[1], classes: w[0] }
    }

    /// Rows of a block.
    fn block(self) -> usize {
        let rows = SCORES / self.classes.max(1) / 64 * 64;
        rows.max(64).min(self.rows)
    }

    /// The products of a block of `rows`: scores, and the gradients of x and w.
    fn products(self, dtype: DType, rows: usize) -> [GemmShape<'static>; 3] {
        let LinearSizes { width, classes, .. } = self;
        let wide = Strides::row_major(width);
        let scores = Strides::row_major(classes);
        [
            shape(dtype, [rows, classes, width], [wide, Strides::column_major(width), scores]),
            shape(dtype, [rows, width, classes], [scores, wide, wide]),
            shape(dtype, [classes, width, rows], [Strides::column_major(classes), wide, wide]),
        ]
    }

    /// Bytes of a block's scores and of all losses.
    fn buffers(self, dtype: DType) -> [usize; 2] {
        let scores = self.block() * self.classes * dtype.size_bytes();
        [scores.next_multiple_of(64), (self.rows * size_of::<f64>()).next_multiple_of(64)]
    }
}

/// Scratch of the kernels.
pub fn linear_cross_entropy_workspace_bytes(
    dtype: DType,
    sizes: LinearSizes,
    to: [bool; 3],
) -> usize {
    let wanted = [true, to[0], to[1]];
    let block = sizes.block();
    let blocks = [block, if block == 0 { 0 } else { sizes.rows % block }];
    let shapes = blocks.iter().flat_map(|&rows| sizes.products(dtype, rows));
    let wanted = shapes.zip(wanted.iter().cycle()).filter(|(_, wanted)| **wanted);
    let products = wanted.map(|(shape, _)| product_bytes(&shape)).max().unwrap_or(0);
    sizes.buffers(dtype).iter().sum::<usize>() + products
}

/// [x, w, targets, bias?, weights of classes?] -> the loss, then the gradients that are wanted, of
/// a loss whose own gradient is 1.
pub fn linear_cross_entropy(launch: &CpuLaunch<'_>, args: LinearCrossEntropyArgs) -> Result<()> {
    match input_dtype(launch)? {
        DType::F32 => run::<f32>(launch, args, false),
        DType::F64 => run::<f64>(launch, args, false),
        other => Err(wrong_dtype(launch.operation, other)),
    }
}

/// [x, w, targets, bias?, weights of classes?, gradient of each row's loss] -> the gradients that
/// are wanted.
pub fn linear_cross_entropy_backward(
    launch: &CpuLaunch<'_>,
    args: LinearCrossEntropyArgs,
) -> Result<()> {
    match input_dtype(launch)? {
        DType::F32 => run::<f32>(launch, args, true),
        DType::F64 => run::<f64>(launch, args, true),
        other => Err(wrong_dtype(launch.operation, other)),
    }
}

/// The tensors of a launch.
#[derive(Clone, Copy)]
struct Job<R> {
    args: LinearCrossEntropyArgs,
    sizes: LinearSizes,
    x: Shared<R>,
    w: Shared<R>,
    targets: Shared<i64>,
    bias: Option<Shared<R>>,
    weights: Option<Shared<R>>,
    /// The gradient of each row's loss.
    grads: Option<Shared<R>>,
    to: [Option<Shared<R>>; 3],
    scores: Shared<R>,
    losses: Shared<f64>,
    workspace: Shared<u8>,
}

impl<R: Real> Job<R> {
    fn new(launch: &CpuLaunch<'_>, args: LinearCrossEntropyArgs, again: bool) -> Result<Job<R>> {
        let mut places = 0..;
        let mut next = || operand(launch, launch.inputs, places.next().unwrap_or_default());
        let (x, w, targets) = (next()?, next()?, next()?);
        let sizes = LinearSizes::of(x.shape(), w.shape());
        let rows = Rows { outer: sizes.rows, classes: sizes.classes, inner: 1 };
        let targets = check_targets(launch, &targets, rows, args.nll.ignore_index)?;
        let bias = if args.biased { Some(row_major::<R>(launch, &next()?)?) } else { None };
        let weights = if args.nll.weight { Some(row_major::<R>(launch, &next()?)?) } else { None };
        let grads = if again { Some(row_major::<R>(launch, &next()?)?) } else { None };
        let mut at = usize::from(!again);
        let mut to = [None; 3];
        for (place, wanted) in to.iter_mut().zip(args.to) {
            if wanted {
                *place = Some(row_major::<R>(launch, &operand(launch, launch.outputs, at)?)?);
                at += 1;
            }
        }
        check_workspace(launch, linear_cross_entropy_workspace_bytes(R::DTYPE, sizes, args.to))?;
        let start = launch.workspace.pointer();
        let [scores, losses] = sizes.buffers(R::DTYPE);
        Ok(Job {
            args,
            sizes,
            x: row_major::<R>(launch, &x)?,
            w: row_major::<R>(launch, &w)?,
            targets,
            bias,
            weights,
            grads,
            to,
            scores: Shared(start.cast()),
            losses: Shared(start.wrapping_add(scores).cast()),
            workspace: Shared(start.wrapping_add(scores + losses)),
        })
    }

    /// The weight of a row's target; nothing for rows that are ignored.
    fn share(&self, row: usize) -> Option<f64> {
        // SAFETY: one of the rows, whose target is a class unless it is ignored.
        let target = unsafe { *self.targets.add(row) };
        // SAFETY: as above.
        let of_class = |weights: Shared<R>| unsafe { *weights.add(target as usize) }.to_f64();
        (target != self.args.nll.ignore_index).then(|| self.weights.map_or(1.0, of_class))
    }

    /// # Safety
    /// The operands are as the sizes say.
    unsafe fn block(&self, first: usize, rows: usize, scale: f64, total: f64) {
        let LinearSizes { width, classes, .. } = self.sizes;
        let shapes = self.sizes.products(R::DTYPE, rows);
        let (scores, workspace) = (self.scores.0, self.workspace.0);
        // SAFETY: the block's rows of x and of its gradient; the buffers are as long as a block.
        unsafe {
            let x = self.x.add(first * width);
            product(shapes[0], x, self.w.0, scores, 0.0, workspace);
            parallel::split(rows, (16384 / classes.max(1)).max(1), |range| {
                simd::dispatch_level(OfRows { job: *self, first, rows: range, scale, total });
            });
            if let Some(Shared(to)) = self.to[0] {
                product(shapes[1], scores, self.w.0, to.add(first * width), 0.0, workspace);
            }
            let beta = if first == 0 { 0.0 } else { 1.0 };
            if let Some(Shared(to)) = self.to[1] {
                product(shapes[2], scores, x, to, beta, workspace);
            }
        }
        if let Some(to) = self.to[2] {
            self.add_columns(to, rows, first == 0);
        }
    }

    /// Adds a block's gradients to that of the bias.
    fn add_columns(&self, to: Shared<R>, rows: usize, is_first: bool) {
        /// Columns that are added up at a time.
        const COLUMNS: usize = 64;
        let classes = self.sizes.classes;
        parallel::split(classes.div_ceil(COLUMNS), 4, |blocks| {
            for block in blocks {
                let columns = block * COLUMNS..classes.min((block + 1) * COLUMNS);
                let mut sums = [0.0f64; COLUMNS];
                for row in 0..rows {
                    for (sum, column) in sums.iter_mut().zip(columns.clone()) {
                        // SAFETY: a score of the block.
                        *sum += unsafe { *self.scores.add(row * classes + column) }.to_f64();
                    }
                }
                for (&sum, column) in sums.iter().zip(columns) {
                    // SAFETY: an element of the bias, of this part alone.
                    unsafe {
                        let element = to.add(column);
                        let before = if is_first { 0.0 } else { (*element).to_f64() };
                        *element = R::of(before + sum);
                    }
                }
            }
        });
    }
}

/// Scores of rows become their loss and, if gradients are wanted, their own gradient.
struct OfRows<R> {
    job: Job<R>,
    first: usize,
    rows: std::ops::Range<usize>,
    /// What each row's loss counts for.
    scale: f64,
    /// The sum of the classes' weights.
    total: f64,
}

impl<R: Real> LevelKernel for OfRows<R> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Job { args, sizes, targets, bias, weights, grads, scores, losses, .. } = self.job;
        let classes = sizes.classes;
        // SAFETY: as many as there are classes; they are only read.
        let of_classes =
            |first: Shared<R>| unsafe { std::slice::from_raw_parts(first.0.cast_const(), classes) };
        let (bias, weights) = (bias.map(of_classes), weights.map(of_classes));
        let wanted = args.to.contains(&true);
        for index in self.rows.clone() {
            let row = self.first + index;
            // SAFETY: the row's own scores.
            let line =
                unsafe { std::slice::from_raw_parts_mut(scores.add(index * classes), classes) };
            let Some(share) = self.job.share(row) else {
                line.fill(R::ZERO);
                // SAFETY: the row's own loss.
                unsafe { *losses.add(row) = 0.0 };
                continue;
            };
            if let Some(bias) = bias {
                line.iter_mut().zip(bias).for_each(|(score, &b)| *score = *score + b);
            }
            // SAFETY: a row that is not ignored has a class for a target.
            let target = unsafe { *targets.add(row) } as usize;
            let (own, smoothing) = (line[target].to_f64(), args.smoothing);
            let spread = if smoothing > 0.0 { weighted(line, weights) } else { 0.0 };
            let larger = |a: R, b: R| if b > a || b.is_nan() { b } else { a };
            // SAFETY: the elements of a slice.
            let top = unsafe { fold(line.as_ptr(), classes, -R::INFINITY, larger, larger) };
            line.iter_mut().for_each(|score| *score = (*score - top).exp::<L>());
            let sum = sum(line);
            let log = top.to_f64() + sum.to_f64().ln();
            let part = smoothing / classes as f64;
            let loss = (1.0 - smoothing) * share * (log - own) + part * (self.total * log - spread);
            // SAFETY: the row's own loss.
            unsafe { *losses.add(row) = loss };
            if !wanted {
                continue;
            }
            // SAFETY: the row's own gradient.
            let scale = grads.map_or(self.scale, |grads| unsafe { *grads.add(row) }.to_f64());
            let slope = scale * ((1.0 - smoothing) * share + part * self.total) / sum.to_f64();
            let slope = R::of(slope);
            line.iter_mut().for_each(|score| *score = *score * slope);
            if smoothing > 0.0 {
                let part = R::of(scale * part);
                match weights {
                    Some(weights) => {
                        let pairs = line.iter_mut().zip(weights);
                        pairs.for_each(|(score, &weight)| *score = *score - part * weight);
                    }
                    None => line.iter_mut().for_each(|score| *score = *score - part),
                }
            }
            line[target] = line[target] - R::of(scale * (1.0 - smoothing) * share);
        }
    }
}

/// The sum of scores times the weights of their classes.
fn weighted<R: Real>(line: &[R], weights: Option<&[R]>) -> f64 {
    match weights {
        Some(weights) => {
            line.iter().zip(weights).map(|(score, w)| score.to_f64() * w.to_f64()).sum()
        }
        None => line.iter().map(|score| score.to_f64()).sum(),
    }
}

fn run<R: Real>(launch: &CpuLaunch<'_>, args: LinearCrossEntropyArgs, again: bool) -> Result<()> {
    let job = Job::<R>::new(launch, args, again)?;
    let LinearSizes { rows, width, classes } = job.sizes;
    // SAFETY: as many as there are classes.
    let of_class = |weights: Shared<R>, class| unsafe { *weights.add(class) }.to_f64();
    let total = match job.weights {
        Some(weights) => (0..classes).map(|class| of_class(weights, class)).sum(),
        None => classes as f64,
    };
    let counted: f64 = (0..rows).filter_map(|row| job.share(row)).sum();
    let scale = if args.nll.reduction == Reduction::Mean { 1.0 / counted } else { 1.0 };
    let block = job.sizes.block();
    for first in (0..rows).step_by(block.max(1)) {
        // SAFETY: the shape rule checked and made the operands.
        unsafe { job.block(first, block.min(rows - first), scale, total) };
    }
    if rows == 0 {
        for (to, count) in job.to.iter().zip([0, classes * width, classes]).skip(1) {
            if let Some(Shared(to)) = to {
                // SAFETY: the gradient of w or b.
                unsafe { std::slice::from_raw_parts_mut(*to, count) }.fill(R::ZERO);
            }
        }
    }
    if again {
        return Ok(());
    }
    let loss = row_major::<R>(launch, &operand(launch, launch.outputs, 0)?)?;
    // SAFETY: a loss a row.
    let losses = unsafe { std::slice::from_raw_parts(job.losses.0.cast_const(), rows) };
    if args.nll.reduction == Reduction::None {
        for (row, &own) in losses.iter().enumerate() {
            // SAFETY: the result of a row.
            unsafe { *loss.add(row) = R::of(own) };
        }
        return Ok(());
    }
    // SAFETY: the one element of the result.
    unsafe { *loss.0 = R::of(losses.iter().fold(0.0, |sum, loss| sum + loss) * scale) };
    Ok(())
}
