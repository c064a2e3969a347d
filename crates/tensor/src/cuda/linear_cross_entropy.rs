//! Cross entropy of a linear map's results in blocks of rows: products by the library, and between
//! them a kernel that turns scores into losses and their own gradient.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::{Argument, Grid, Properties, source_files};
use plimsoll_kernels::cpu::linear_cross_entropy::LinearCrossEntropyArgs;
use plimsoll_kernels::cpu::nll::Reduction;
use plimsoll_kernels::{Meta, Operand, Workspace};
use smallvec::smallvec;

use super::copy::copy;
use super::fill::fill_operand;
use super::matmul::is_by_library;
use super::products::{Matrix, product, product_bytes};
use super::tail::sum_dtype;
use super::{CudaLaunch, NOTHING, contiguous, type_name, whole};

/// The most scores of a block that has more than one tile of rows.
const SCORES: usize = 1 << 25;
/// The same of halves, whose products are so fast that the sums for w would come and go too often.
const HALF_SCORES: usize = 1 << 28;
/// Rows that products take at once.
const TILE: usize = 128;
/// Shared memory in which a block keeps the scores of its row: what every GPU of compute capability
/// 8 and above has, less what the kernel itself needs. A row of 50,304 halves is as long.
const KEPT_BYTES: usize = 99 * 1024 - 768;
/// Parts of the workspace start on multiples of this.
const ALIGNMENT: usize = 512;

/// Sizes of x and w, and where the operands are; addresses are 0 in a dry run.
#[derive(Clone, Copy)]
struct Job {
    dtype: DType,
    rows: usize,
    width: usize,
    classes: usize,
    x: usize,
    w: usize,
    to: [Option<usize>; 3],
    scores: usize,
    /// Where the gradients of w and the bias are summed up: in place, or of halves in float32.
    sums: [usize; 2],
}

impl Job {
    fn of(x: &Meta, w: &Meta, to: [bool; 3]) -> Job {
        Job {
            dtype: x.dtype,
            rows: x.shape()[0],
            width: x.shape()[1],
            classes: w.shape()[0],
            x: 0,
            w: 0,
            to: to.map(|wanted| wanted.then_some(0)),
            scores: 0,
            sums: [0; 2],
        }
    }

    /// Rows of a block. All blocks but the last have as many, and that one what is left.
    fn block(self) -> usize {
        let scores = if self.is_half() { HALF_SCORES } else { SCORES };
        let most = (scores / self.classes.max(1) / TILE * TILE).max(TILE);
        let blocks = self.rows.div_ceil(most).max(1);
        self.rows.div_ceil(blocks).next_multiple_of(TILE).min(self.rows)
    }

    fn is_half(self) -> bool {
        self.dtype == DType::BF16
    }

    /// Bytes of a block's scores, of all losses, of what they count for, and of the sums for w and
    /// the bias.
    fn buffers(self) -> [usize; 5] {
        let scores = self.block() * self.classes * self.dtype.size_bytes();
        let sums = |wanted: Option<usize>, count: usize| match wanted {
            Some(_) if self.is_half() => count * self.classes * sum_dtype(self.dtype).size_bytes(),
            _ => 0,
        };
        let sums = [sums(self.to[1], self.width), sums(self.to[2], 1)];
        [scores, self.rows * size_of::<f64>(), 2 * size_of::<f64>(), sums[0], sums[1]]
            .map(|bytes| bytes.next_multiple_of(ALIGNMENT))
    }

    /// The products of a block of `rows` rows: scores, and the gradients of x and w.
    fn products(self, first: usize, rows: usize) -> Result<[Option<[Matrix; 3]>; 3]> {
        let Job { dtype, width, classes, .. } = self;
        let skipped = first * width * dtype.size_bytes();
        let scores = || Matrix::rows(self.scores, dtype, [rows, classes]);
        let x = || Matrix::rows(self.x + skipped, dtype, [rows, width]);
        let of_scores = [x()?, Matrix::turned(self.w, dtype, [width, classes])?, scores()?];
        let of_x = match self.to[0] {
            None => None,
            Some(to) => Some([
                scores()?,
                Matrix::rows(self.w, dtype, [classes, width])?,
                Matrix::rows(to + skipped, dtype, [rows, width])?,
            ]),
        };
        let of_w = match self.to[1] {
            None => None,
            Some(_) => Some([
                Matrix::new(self.scores, dtype, [classes, rows], [1, classes])?,
                x()?,
                Matrix::rows(self.sums[0], sum_dtype(self.dtype), [classes, width])?,
            ]),
        };
        Ok([Some(of_scores), of_x, of_w])
    }

    /// Workspace of the products, at most.
    fn product_bytes(self, gpu: &Properties) -> usize {
        let block = self.block();
        let blocks = [block, self.rows.checked_rem(block).unwrap_or(0)];
        let mut most = 0;
        for products in blocks.into_iter().filter_map(|rows| self.products(0, rows).ok()) {
            for [a, b, c] in products.iter().flatten() {
                most = most.max(product_bytes(gpu, [a, b, c]));
            }
        }
        most
    }
}

/// Whether halves of this type are computed as they are. Products of halves into float32 are the
/// library's alone.
pub(crate) fn has_linear_cross_entropy_of_halves(dtype: DType) -> bool {
    dtype == DType::BF16 && is_by_library(dtype)
}

/// Bytes of a block's scores, of the losses, and of the products. Inputs [x, w, ..].
pub(crate) fn linear_cross_entropy_workspace_bytes(
    gpu: &Properties,
    inputs: &[&Meta],
    to: [bool; 3],
) -> usize {
    let job = Job::of(inputs[0], inputs[1], to);
    job.buffers().iter().sum::<usize>() + job.product_bytes(gpu)
}

/// Inputs [x, w, targets, bias?, weights of classes?]; outputs the loss, then the gradients that
/// are wanted, of a loss whose own gradient is 1.
pub(crate) fn linear_cross_entropy(
    launch: &CudaLaunch<'_>,
    args: LinearCrossEntropyArgs,
) -> Result<()> {
    run(launch, args, false)
}

/// Inputs [x, w, targets, bias?, weights of classes?, gradient of each row's loss]; outputs the
/// gradients that are wanted.
pub(crate) fn linear_cross_entropy_backward(
    launch: &CudaLaunch<'_>,
    args: LinearCrossEntropyArgs,
) -> Result<()> {
    run(launch, args, true)
}

/// The structure `Terms` of the kernels.
fn terms(job: Job, args: LinearCrossEntropyArgs) -> Argument {
    let reduction = match args.nll.reduction {
        Reduction::None => 0,
        Reduction::Mean => 1,
        Reduction::Sum => 2,
    };
    let slopes = args.to.contains(&true);
    Argument::Words(smallvec![
        job.classes as u64,
        args.nll.ignore_index as u64,
        args.smoothing.to_bits(),
        reduction,
        u64::from(slopes),
    ])
}

fn one_block() -> Grid {
    Grid { blocks: (1, 1, 1), threads: 1024, shared_bytes: 0 }
}

/// The operands beside x and w: each an address, or 0.
struct Given {
    targets: usize,
    bias: Argument,
    weights: Argument,
    grads: Option<usize>,
}

fn given(launch: &CudaLaunch<'_>, args: LinearCrossEntropyArgs, again: bool) -> Result<Given> {
    let mut rest = launch.inputs[2..].iter();
    let mut next = |there: bool| match if there { rest.next() } else { None } {
        Some(operand) => contiguous(launch, operand).map(|_| operand.first_byte().addr()),
        None => Ok(0),
    };
    Ok(Given {
        targets: next(true)?,
        bias: whole(next(args.biased)?),
        weights: whole(next(args.nll.weight)?),
        grads: Some(next(again)?).filter(|_| again),
    })
}

/// A launch with its parts of the workspace.
struct Run<'a> {
    launch: &'a CudaLaunch<'a>,
    args: LinearCrossEntropyArgs,
    job: Job,
    given: Given,
    losses: usize,
    counts: usize,
    workspace: Workspace,
    /// Whether only gradients are wanted.
    again: bool,
}

fn run(launch: &CudaLaunch<'_>, args: LinearCrossEntropyArgs, again: bool) -> Result<()> {
    let (x, w) = (&launch.inputs[0], &launch.inputs[1]);
    contiguous(launch, x)?;
    contiguous(launch, w)?;
    let mut outputs = launch.outputs[usize::from(!again)..].iter();
    let to = args.to.map(|wanted| if wanted { outputs.next() } else { None });
    let start = launch.workspace.pointer().addr();
    let job = Job {
        x: x.first_byte().addr(),
        w: w.first_byte().addr(),
        to: to.map(|out| out.map(|out| out.first_byte().addr())),
        scores: start,
        ..Job::of(x.meta(), w.meta(), args.to)
    };
    let buffers = job.buffers();
    let used: usize = buffers.iter().sum();
    let after = |count: usize| start + buffers[..count].iter().sum::<usize>();
    let sums = match job.is_half() {
        true => [after(3), after(4)],
        false => [job.to[1], job.to[2]].map(|to| to.unwrap_or(0)),
    };
    let job = Job { sums, ..job };
    // SAFETY: what is left of this launch's workspace, which the kernels below do not touch.
    let workspace = unsafe {
        let pointer = launch.workspace.pointer().wrapping_add(used);
        Workspace::new(pointer, launch.workspace.bytes() - used)
    };
    let run = Run {
        launch,
        args,
        job,
        given: given(launch, args, again)?,
        losses: after(1),
        counts: after(2),
        workspace,
        again,
    };
    run.count()?;
    for first in (0..job.rows).step_by(job.block().max(1)) {
        run.block(first)?;
    }
    for (out, sum) in to.into_iter().skip(1).zip(job.sums) {
        match out {
            Some(out) if job.rows == 0 => fill_operand(launch, out, Scalar::Int(0))?,
            Some(out) if job.is_half() => {
                let meta = Meta::contiguous(out.shape(), sum_dtype(job.dtype))?;
                // SAFETY: a part of this launch's workspace, of that size, which the kernels
                // before this copy have filled.
                let sum = unsafe { Operand::new(sum as *mut u8, &meta) };
                copy(launch, &sum, out)?;
            }
            _ => {}
        }
    }
    run.add_losses()
}

impl Run<'_> {
    fn kernel(&self, name: &'static str, grid: Grid, arguments: &[Argument]) -> Result<()> {
        let kernel = ("linear", name, type_name(self.job.dtype));
        self.launch.run(&source_files::LINEAR_CROSS_ENTROPY, kernel, grid, arguments)
    }

    /// What the rows' losses count for.
    fn count(&self) -> Result<()> {
        let arguments = [
            terms(self.job, self.args),
            whole(self.job.rows),
            whole(self.given.targets),
            self.given.weights.clone(),
            whole(self.counts),
            self.launch.fault(),
        ];
        self.kernel("counts", one_block(), &arguments)
    }

    /// The rows from `first` on: scores, losses, and their part of the gradients.
    fn block(&self, first: usize) -> Result<()> {
        let Run { launch, job, workspace, .. } = *self;
        let rows = job.block().min(job.rows - first);
        let [of_scores, of_x, of_w] = job.products(first, rows)?;
        multiply(launch, of_scores.as_ref(), 0.0, workspace)?;
        self.rows(first, rows)?;
        multiply(launch, of_x.as_ref(), 0.0, workspace)?;
        multiply(launch, of_w.as_ref(), if first == 0 { 0.0 } else { 1.0 }, workspace)?;
        if job.to[2].is_none() {
            return Ok(());
        }
        let arguments = [
            whole(rows),
            whole(job.classes),
            Argument::I32(i32::from(first == 0)),
            whole(job.scores),
            whole(job.sums[1]),
        ];
        self.kernel("bias", launch.grid(job.classes, 1), &arguments)
    }

    /// Scores become losses and gradients.
    fn rows(&self, first: usize, rows: usize) -> Result<()> {
        let Run { launch, job, ref given, .. } = *self;
        let bytes = sum_dtype(job.dtype).size_bytes();
        let loss = launch.outputs[0].first_byte().addr();
        let by_row = self.args.nll.reduction == Reduction::None;
        let arguments = [
            terms(job, self.args),
            whole(rows),
            whole(job.scores),
            whole(given.targets + first * size_of::<i64>()),
            given.bias.clone(),
            given.weights.clone(),
            given.grads.map_or(NOTHING, |grads| whole(grads + first * bytes)),
            whole(self.counts),
            if by_row { NOTHING } else { whole(self.losses + first * size_of::<f64>()) },
            if by_row && !self.again { whole(loss + first * bytes) } else { NOTHING },
            whole(self.kept_bytes() / 16),
        ];
        let threads = if job.classes >= 4096 { 512 } else { 128 };
        let blocks = (rows.min(1 << 20) as u32, 1, 1);
        let grid = Grid { blocks, threads, shared_bytes: self.kept_bytes() as u32 };
        self.kernel("rows", grid, &arguments)
    }

    /// Bytes of a row's scores that stay in shared memory.
    fn kept_bytes(&self) -> usize {
        let row = self.job.classes * self.job.dtype.size_bytes();
        let capability = self.launch.context.properties().capability;
        if capability < 80 || !row.is_multiple_of(16) { 0 } else { row.min(KEPT_BYTES) }
    }

    /// The sum or the mean of the losses.
    fn add_losses(&self) -> Result<()> {
        if self.again || self.args.nll.reduction == Reduction::None {
            return Ok(());
        }
        let loss = contiguous(self.launch, &self.launch.outputs[0])?;
        let arguments = [whole(self.job.rows), whole(self.losses), whole(self.counts), loss];
        self.kernel("losses", one_block(), &arguments)
    }
}

fn multiply(
    launch: &CudaLaunch<'_>,
    matrices: Option<&[Matrix; 3]>,
    beta: f64,
    workspace: Workspace,
) -> Result<()> {
    let Some([a, b, c]) = matrices else { return Ok(()) };
    // SAFETY: parts of the operands and of the workspace before `workspace`, each result apart from
    // its factors.
    unsafe { product(launch, [a, b, c], beta, workspace) }
}
