//! Connectionist temporal classification (Graves and others, 2006): minus the log-likelihood of a
//! sequence of labels, summed over all ways to spread it over time with blanks between. Forward
//! keeps the logarithms of the forward sums; backward runs the backward sums beside them.

use plimsoll_core::{DType, Error, Result};

use plimsoll_engine::real::Real;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, input_dtype, parallel, wrong_dtype};

use crate::rows::{operand, row_major};

/// What the kernels go by; lengths are one a sequence.
#[derive(Clone, Copy, Debug)]
pub struct CtcArgs<'a> {
    /// Steps of each sequence.
    pub input_lengths: &'a [usize],
    /// Labels of each sequence.
    pub target_lengths: &'a [usize],
    /// Where the labels of each sequence start.
    pub target_starts: &'a [usize],
    /// The class that stands for no label.
    pub blank: usize,
    /// Whether sequences that cannot be spread have no gradient.
    pub zero_infinity: bool,
}

impl CtcArgs<'_> {
    /// States of the longest sequence: its labels with blanks around them.
    pub fn states(&self) -> usize {
        2 * self.target_lengths.iter().copied().max().unwrap_or(0) + 1
    }
}

/// One sequence.
#[derive(Clone, Copy)]
struct Sequence<R> {
    log_probs: Shared<R>,
    /// Elements from one step to the next.
    step: usize,
    labels: Shared<i64>,
    blank: usize,
    steps: usize,
    states: usize,
}

impl<R: Real> Sequence<R> {
    /// The class of a state: a blank, or a label.
    #[inline]
    fn class(&self, state: usize) -> usize {
        if state.is_multiple_of(2) {
            return self.blank;
        }
        // SAFETY: every other state is one of the labels, which were checked.
        unsafe { *self.labels.add(state / 2) as usize }
    }

    /// The log-probability of a class at a step.
    #[inline]
    fn log_prob(&self, step: usize, class: usize) -> f64 {
        // SAFETY: a step of the sequence and a class.
        unsafe { *self.log_probs.add(step * self.step + class) }.to_f64()
    }

    /// Whether a state can be reached from the one before the last: labels that differ need no
    /// blank between.
    fn skips(&self, state: usize) -> bool {
        state >= 2 && self.class(state) != self.class(state - 2)
    }
}

fn log_add(a: f64, b: f64) -> f64 {
    let top = a.max(b);
    if top == f64::NEG_INFINITY { top } else { top + ((a - top).exp() + (b - top).exp()).ln() }
}

/// [log-probabilities (steps, sequences, classes), labels] -> [loss of each sequence], and
/// [logarithms of the forward sums (sequences, steps, states)] if backward wants them.
pub fn ctc_loss(launch: &CpuLaunch<'_>, args: CtcArgs<'_>) -> Result<()> {
    match input_dtype(launch)? {
        DType::F32 => forward::<f32>(launch, args),
        DType::F64 => forward::<f64>(launch, args),
        other => Err(wrong_dtype(launch.operation, other)),
    }
}

fn sequences<'a, R: Real>(
    launch: &CpuLaunch<'_>,
    args: CtcArgs<'a>,
    at: usize,
) -> Result<(impl Fn(usize) -> Sequence<R> + Sync + use<'a, R>, [usize; 3])> {
    let x = operand(launch, launch.inputs, at)?;
    let targets = operand(launch, launch.inputs, at + 1)?;
    let &[steps, count, classes] = x.shape() else {
        return Err(Error::shape(launch.operation, "the kernel needs three dimensions"));
    };
    let (first, labels) = (row_major::<R>(launch, &x)?, row_major::<i64>(launch, &targets)?);
    for at in 0..targets.layout().numel() {
        // SAFETY: below the number of labels.
        let label = unsafe { *labels.add(at) };
        let used = args.target_starts.iter().zip(args.target_lengths);
        let is_used = || used.clone().any(|(start, len)| (*start..start + len).contains(&at));
        if !(0..classes as i64).contains(&label) && is_used() {
            return Err(Error::index(
                launch.operation,
                format!("label {label} at place {at} is out of range: there are {classes} classes"),
            ));
        }
    }
    let of = move |index: usize| Sequence {
        // SAFETY: the sequence's column of the log-probabilities.
        log_probs: Shared(unsafe { first.add(index * classes) }),
        step: count * classes,
        // SAFETY: its labels are among the targets, which the method of the API checked.
        labels: Shared(unsafe { labels.add(args.target_starts[index]) }),
        blank: args.blank,
        steps: args.input_lengths[index],
        states: 2 * args.target_lengths[index] + 1,
    };
    Ok((of, [steps, count, classes]))
}

fn forward<R: Real>(launch: &CpuLaunch<'_>, args: CtcArgs<'_>) -> Result<()> {
    let (of, [steps, count, _]) = sequences::<R>(launch, args, 0)?;
    let losses = row_major::<R>(launch, &operand(launch, launch.outputs, 0)?)?;
    let sums = row_major::<R>(launch, &operand(launch, launch.outputs, 1)?)?;
    let states = args.states();
    parallel::split(count, 1, |range| {
        for index in range {
            let sequence = of(index);
            // SAFETY: the sequence's own sums and loss.
            unsafe {
                let own = sums.add(index * steps * states);
                std::slice::from_raw_parts_mut(own, steps * states).fill(-R::INFINITY);
                *losses.add(index) = R::of(likelihood(&sequence, own, states));
            }
        }
    });
    Ok(())
}

/// Fills the forward sums of a sequence and gives its loss.
///
/// # Safety
/// `sums` has a row of `width` states for each step.
unsafe fn likelihood<R: Real>(of: &Sequence<R>, sums: *mut R, width: usize) -> f64 {
    let Sequence { steps, states, .. } = *of;
    if steps == 0 {
        return if states == 1 { 0.0 } else { f64::INFINITY };
    }
    // SAFETY: the caller vouches for the sums.
    unsafe {
        for state in 0..states.min(2) {
            *sums.add(state) = R::of(of.log_prob(0, of.class(state)));
        }
        for step in 1..steps {
            let before = |state: usize| (*sums.add((step - 1) * width + state)).to_f64();
            for state in 0..states {
                let mut sum = before(state);
                if state >= 1 {
                    sum = log_add(sum, before(state - 1));
                }
                if of.skips(state) {
                    sum = log_add(sum, before(state - 2));
                }
                let here = sum + of.log_prob(step, of.class(state));
                *sums.add(step * width + state) = R::of(here);
            }
        }
        let last = |state: usize| (*sums.add((steps - 1) * width + state)).to_f64();
        let blank = last(states - 1);
        -if states > 1 { log_add(blank, last(states - 2)) } else { blank }
    }
}

/// Scratch of [`ctc_loss_backward`]: two rows of states and one of classes for each sequence.
pub fn ctc_backward_workspace_bytes(args: CtcArgs<'_>, classes: usize) -> usize {
    args.input_lengths.len() * (2 * args.states() + classes) * size_of::<f64>()
}

/// [grad, log-probabilities, labels, losses, forward sums] -> the gradient of the log-probabilities
/// through a softmax before them, as PyTorch's.
pub fn ctc_loss_backward(launch: &CpuLaunch<'_>, args: CtcArgs<'_>) -> Result<()> {
    match input_dtype(launch)? {
        DType::F32 => backward::<f32>(launch, args),
        DType::F64 => backward::<f64>(launch, args),
        other => Err(wrong_dtype(launch.operation, other)),
    }
}

fn backward<R: Real>(launch: &CpuLaunch<'_>, args: CtcArgs<'_>) -> Result<()> {
    let (of, [steps, count, classes]) = sequences::<R>(launch, args, 1)?;
    let input = |at| row_major::<R>(launch, &operand(launch, launch.inputs, at)?);
    let (grad, losses, sums) = (input(0)?, input(3)?, input(4)?);
    let out = row_major::<R>(launch, &operand(launch, launch.outputs, 0)?)?;
    let states = args.states();
    if launch.workspace.bytes() < ctc_backward_workspace_bytes(args, classes) {
        return Err(Error::invalid_argument("the kernel needs a workspace of rows a sequence")
            .in_operation(launch.operation));
    }
    let scratch: Shared<f64> = Shared(launch.workspace.pointer().cast());
    parallel::split(count, 1, |range| {
        for index in range {
            let sequence = of(index);
            // SAFETY: the sequence's own scratch, sums and column of the output.
            unsafe {
                let own = scratch.add(index * (2 * states + classes));
                let rows = std::slice::from_raw_parts_mut(own, 2 * states + classes);
                let (grad, loss) = ((*grad.add(index)).to_f64(), (*losses.add(index)).to_f64());
                let to = out.add(index * classes);
                let nothing = args.zero_infinity && loss == f64::INFINITY;
                for step in 0..steps {
                    for class in 0..classes {
                        *to.add(step * count * classes + class) = R::ZERO;
                    }
                }
                if !nothing && sequence.steps > 0 {
                    let sums = sums.add(index * steps * states);
                    slopes(&sequence, rows, sums, states, classes, loss, grad, to);
                }
            }
        }
    });
    Ok(())
}

/// Runs the backward sums of a sequence and writes its gradient.
///
/// # Safety
/// As [`likelihood`]; `to` has a row of classes for each step, as the log-probabilities have.
#[allow(clippy::too_many_arguments, reason = "one sequence's rows, which are of no use together")]
unsafe fn slopes<R: Real>(
    of: &Sequence<R>,
    rows: &mut [f64],
    sums: *const R,
    width: usize,
    classes: usize,
    loss: f64,
    grad: f64,
    to: *mut R,
) {
    let Sequence { steps, states, .. } = *of;
    let (mut here, rest) = rows.split_at_mut(width);
    let (mut after, by_class) = rest.split_at_mut(width);
    after.fill(f64::NEG_INFINITY);
    for step in (0..steps).rev() {
        for state in 0..states {
            let own = of.log_prob(step, of.class(state));
            here[state] = if step + 1 == steps {
                if state + 2 >= states { own } else { f64::NEG_INFINITY }
            } else {
                let mut sum = after[state];
                if state + 1 < states {
                    sum = log_add(sum, after[state + 1]);
                }
                if state + 2 < states && of.skips(state + 2) {
                    sum = log_add(sum, after[state + 2]);
                }
                sum + own
            };
        }
        by_class.fill(f64::NEG_INFINITY);
        for (state, beta) in here.iter().enumerate().take(states) {
            // SAFETY: the caller vouches for the sums.
            let alpha = unsafe { *sums.add(step * width + state) }.to_f64();
            let class = &mut by_class[of.class(state)];
            *class = log_add(*class, alpha + beta);
        }
        for (class, &sum) in by_class.iter().enumerate().take(classes) {
            let log_prob = of.log_prob(step, class);
            let taken = (sum + loss - log_prob).exp();
            // SAFETY: the caller vouches for the rows.
            unsafe { *to.add(step * of.step + class) = R::of((log_prob.exp() - taken) * grad) };
        }
        std::mem::swap(&mut here, &mut after);
    }
}
