//! The loop under every step. All elements of all parameters are one row of work, which the threads
//! divide; each thread goes through its part in blocks. A rule works on blocks of f32 or f64: those
//! of the operands themselves where they hold that and lie densely, otherwise copies on the stack,
//! which are converted on their way in and out. So each rule is compiled for two types only,
//! whatever layouts, dtypes and float32 copies there are.

use half::{bf16, f16};
use plimsoll_core::DType;
use plimsoll_engine::Operand;
use plimsoll_engine::iterate::{GRAIN, Ranges};
use plimsoll_engine::parallel;
use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::simd::{self, Level, LevelKernel};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::ops::Range;

use super::rules::{At, MOST_FACTORS, MOST_STATES, Update};
use super::{Operands, Rule, Step, rules};

/// Elements of a block.
pub(super) const BLOCK: usize = 512;

/// The operands of a parameter: itself, its gradient, its float32 copy, and its states.
const LANES: usize = 3 + MOST_STATES;

/// The lane of the parameter.
const PARAM: usize = 0;
/// The lane of its gradient.
const GRAD: usize = 1;
/// The lane of its float32 copy.
const MASTER: usize = 2;
/// The lane of the first state.
const STATES: usize = 3;

/// What weight decay and direction need, before a rule's own factors.
const SHARED: usize = 3;

/// Everything that elements use: sign of the gradient, what of the parameter is added to it, what
/// of the parameter stays; then the rule's own.
type Factors = [f64; SHARED + MOST_FACTORS];

/// One parameter with what belongs to it.
pub(super) struct Parameter {
    ranges: Ranges<LANES>,
    dtypes: [Option<DType>; LANES],
}

impl Parameter {
    /// Parameter `index` of a step.
    pub(super) fn new(of: &Operands<'_>, index: usize) -> Parameter {
        let (param, [first, second, third]) = (of.parameters[index], of.states);
        let lists = [Some(of.parameters), Some(of.grads), of.masters, first, second, third];
        let lanes: [Option<Operand<'_>>; LANES] = lists.map(|list| list.map(|list| list[index]));
        Parameter {
            // Lanes that are not there are never touched.
            ranges: Ranges::new(lanes.map(|lane| lane.unwrap_or(param))),
            dtypes: lanes.map(|lane| lane.map(|lane| lane.dtype())),
        }
    }
}

/// The blocks of one parameter that a rule works on. States that are not there point to zeros.
struct Lanes<R> {
    len: usize,
    param: *mut R,
    grad: *const R,
    states: [*mut R; MOST_STATES],
}

/// A rule's loop over a block.
type Block<R> = fn(&Factors, &Lanes<R>);

/// The parameters of a step, by what they are computed in.
pub(super) struct Steppers<'a> {
    pub(super) narrow: Stepper<'a, f32>,
    pub(super) wide: Stepper<'a, f64>,
}

impl<'a> Steppers<'a> {
    pub(super) fn new(step: &'a Step, scale: Option<f64>) -> Steppers<'a> {
        Steppers { narrow: Stepper::new(step, scale), wide: Stepper::new(step, scale) }
    }

    pub(super) fn run(&self) {
        self.narrow.run();
        self.wide.run();
    }
}

/// A parameter, where its elements end in the row of all, and what they use.
struct Work {
    parameter: Parameter,
    end: usize,
    factors: Factors,
}

/// Parameters that are computed in `R`.
pub(super) struct Stepper<'a, R> {
    step: &'a Step,
    scale: Option<f64>,
    works: SmallVec<[Work; 2]>,
    at: Option<At>,
    computed_in: PhantomData<R>,
}

impl<'a, R: Wide> Stepper<'a, R> {
    fn new(step: &'a Step, scale: Option<f64>) -> Stepper<'a, R> {
        Stepper { step, scale, works: SmallVec::new(), at: None, computed_in: PhantomData }
    }

    pub(super) fn push(&mut self, parameter: Parameter, at: &At) {
        // Powers are slow, and parameters mostly at the same step.
        let factors = match self.works.last() {
            Some(last) if self.at == Some(*at) => last.factors,
            _ => factors(self.step, at),
        };
        self.at = Some(*at);
        let end = self.works.last().map_or(0, |work| work.end) + parameter.ranges.numel();
        self.works.push(Work { parameter, end, factors });
    }

    fn run(&self) {
        let Some(last) = self.works.last() else { return };
        let block = block_of::<R>(&self.step.rule);
        // Multiples of a cache line, so that threads do not write one together.
        const LINE: usize = 64;
        parallel::split(last.end.div_ceil(LINE), GRAIN / LINE, |lines| {
            let part = lines.start * LINE..last.end.min(lines.end * LINE);
            let mut buffers = [[R::ZERO; BLOCK]; LANES];
            let first = self.works.partition_point(|work| work.end <= part.start);
            for work in &self.works[first..] {
                let start = work.end - work.parameter.ranges.numel();
                if start >= part.end {
                    break;
                }
                let own = part.start.max(start) - start..part.end.min(work.end) - start;
                self.range(work, own, block, &mut buffers);
            }
        });
    }

    fn range(
        &self,
        work: &Work,
        range: Range<usize>,
        block: Block<R>,
        buffers: &mut [[R; BLOCK]; LANES],
    ) {
        let Parameter { ranges, dtypes } = &work.parameter;
        ranges.run(range, |tile| {
            for row in 0..tile.rows {
                let pointers = tile.row(row);
                for start in (0..tile.len).step_by(BLOCK) {
                    let len = BLOCK.min(tile.len - start);
                    let lane = |i: usize| Lane {
                        at: pointers[i].wrapping_add(start * tile.inner[i]),
                        stride: tile.inner[i],
                        dtype: dtypes[i],
                    };
                    let lanes: [Lane; LANES] = std::array::from_fn(lane);
                    // SAFETY: the tile's elements are within its operands (the engine's promise)
                    // and of their dtypes; the launch's claim lets it write all but the gradient,
                    // and that too if it is scaled; no two of them overlap (dispatch checked).
                    unsafe { self.block(work, len, &lanes, block, buffers) };
                }
            }
        });
    }

    /// # Safety
    /// The lanes must have `len` elements, and all but the gradient must be this thread's to write;
    /// the gradient too if it is scaled.
    unsafe fn block(
        &self,
        work: &Work,
        len: usize,
        lanes: &[Lane; LANES],
        block: Block<R>,
        buffers: &mut [[R; BLOCK]; LANES],
    ) {
        let has_master = lanes[MASTER].dtype.is_some();
        let mut at = [std::ptr::null_mut::<R>(); LANES];
        for (i, lane) in lanes.iter().enumerate() {
            let buffer = &mut buffers[i][..len];
            let scale = self.scale.filter(|_| i == GRAD);
            // A parameter with a float32 copy is only written.
            let is_read = lane.dtype.is_some() && !(i == PARAM && has_master);
            at[i] = if lane.holds::<R>() && scale.is_none() && is_read {
                lane.at.cast()
            } else {
                if is_read {
                    // SAFETY: the caller's.
                    unsafe { R::load(lane, buffer) };
                }
                buffer.as_mut_ptr()
            };
            if let Some(scale) = scale {
                buffer.iter_mut().for_each(|grad| *grad = *grad / R::of(scale));
                // SAFETY: the caller's.
                unsafe { R::store(lane, buffer) };
            }
        }
        let from = if has_master { MASTER } else { PARAM };
        let states = std::array::from_fn(|i| at[STATES + i]);
        block(&work.factors, &Lanes { len, param: at[from], grad: at[GRAD], states });
        for i in [from].into_iter().chain(STATES..LANES) {
            if lanes[i].dtype.is_some() && !lanes[i].holds::<R>() {
                // SAFETY: the caller's.
                unsafe { R::store(&lanes[i], &buffers[i][..len]) };
            }
        }
        if has_master {
            // SAFETY: the rule wrote `len` elements there; the parameter is the caller's.
            unsafe { R::store(&lanes[PARAM], std::slice::from_raw_parts(at[MASTER], len)) };
        }
    }
}

/// Some elements of an operand that is there if it has a dtype.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub(super) at: *mut u8,
    /// In bytes.
    pub(super) stride: usize,
    pub(super) dtype: Option<DType>,
}

impl Lane {
    /// Whether a rule that computes in `R` can work on the elements where they are.
    fn holds<R: Real>(&self) -> bool {
        self.dtype == Some(R::DTYPE) && self.stride == size_of::<R>()
    }
}

/// What rules compute in, with the dtypes that become it.
pub(super) trait Wide: Real {
    /// # Safety
    /// The lane must have as many readable elements as `to`.
    unsafe fn load(lane: &Lane, to: &mut [Self]);
    /// # Safety
    /// The lane must have as many writable elements as `from`, none of them among `from`.
    unsafe fn store(lane: &Lane, from: &[Self]);
}

impl Wide for f32 {
    unsafe fn load(lane: &Lane, to: &mut [f32]) {
        match lane.dtype {
            Some(DType::BF16) => simd::dispatch_level(Load::<bf16>(lane, to)),
            Some(DType::F16) => simd::dispatch_level(Load::<f16>(lane, to)),
            _ => simd::dispatch_level(Load::<f32>(lane, to)),
        }
    }

    unsafe fn store(lane: &Lane, from: &[f32]) {
        match lane.dtype {
            Some(DType::BF16) => simd::dispatch_level(Store::<bf16>(lane, from)),
            Some(DType::F16) => simd::dispatch_level(Store::<f16>(lane, from)),
            _ => simd::dispatch_level(Store::<f32>(lane, from)),
        }
    }
}

impl Wide for f64 {
    unsafe fn load(lane: &Lane, to: &mut [f64]) {
        simd::dispatch_level(Load::<f64>(lane, to));
    }

    unsafe fn store(lane: &Lane, from: &[f64]) {
        simd::dispatch_level(Store::<f64>(lane, from));
    }
}

struct Load<'a, T: Float>(&'a Lane, &'a mut [T::Wide]);

impl<T: Float> LevelKernel for Load<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Load(lane, to) = self;
        let from = lane.at.cast::<T>();
        // SAFETY: `Wide::load`'s caller vouches for the elements; `T` is the lane's dtype.
        unsafe {
            if lane.stride == size_of::<T>() {
                for (i, to) in to.iter_mut().enumerate() {
                    *to = (*from.add(i)).widen();
                }
            } else {
                for (i, to) in to.iter_mut().enumerate() {
                    *to = (*from.byte_add(i * lane.stride)).widen();
                }
            }
        }
    }
}

struct Store<'a, T: Float>(&'a Lane, &'a [T::Wide]);

impl<T: Float> LevelKernel for Store<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Store(lane, from) = self;
        let to = lane.at.cast::<T>();
        // SAFETY: `Wide::store`'s caller vouches for the elements; `T` is the lane's dtype.
        unsafe {
            if lane.stride == size_of::<T>() {
                for (i, &from) in from.iter().enumerate() {
                    *to.add(i) = T::narrow(from);
                }
            } else {
                for (i, &from) in from.iter().enumerate() {
                    *to.byte_add(i * lane.stride) = T::narrow(from);
                }
            }
        }
    }
}

/// One rule's loop for `R`, compiled for each instruction set.
struct Loop<'a, U, R, const S: usize, const F: usize> {
    factors: &'a Factors,
    lanes: &'a Lanes<R>,
    rule: PhantomData<U>,
}

impl<U: Update<S, F>, R: Real, const S: usize, const F: usize> LevelKernel
    for Loop<'_, U, R, S, F>
{
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let [sign, added, kept] = std::array::from_fn(|i| R::of(self.factors[i]));
        let own: [R; F] = std::array::from_fn(|i| R::of(self.factors[SHARED + i]));
        let &Lanes { len, param, grad, states } = self.lanes;
        for i in 0..len {
            // SAFETY: every lane has `len` elements, which this thread alone reads and writes; no
            // two lanes overlap (`Stepper::range` says why).
            unsafe {
                let before = *param.add(i);
                let mut slope = *grad.add(i) * sign;
                if added != R::ZERO {
                    slope = slope + before * added;
                }
                let mut state: [R; S] = std::array::from_fn(|k| *states[k].add(i));
                *param.add(i) = U::element(own, before * kept, slope, &mut state);
                for (k, &state) in state.iter().enumerate() {
                    *states[k].add(i) = state;
                }
            }
        }
    }
}

fn block<U: Update<S, F>, R: Real, const S: usize, const F: usize>(
    factors: &Factors,
    lanes: &Lanes<R>,
) {
    simd::dispatch_level(Loop::<U, R, S, F> { factors, lanes, rule: PhantomData });
}

fn block_of<R: Real>(rule: &Rule) -> Block<R> {
    match rule {
        Rule::Sgd(_) => block::<rules::Sgd, R, 1, 5>,
        Rule::Adam(_) => block::<rules::Adam, R, 3, 7>,
        Rule::NAdam(_) => block::<rules::NAdam, R, 2, 7>,
        Rule::RAdam(_) => block::<rules::RAdam, R, 2, 6>,
        Rule::Adagrad(_) => block::<rules::Adagrad, R, 1, 2>,
        Rule::Adadelta(_) => block::<rules::Adadelta, R, 2, 4>,
        Rule::RmsProp(_) => block::<rules::RmsProp, R, 3, 6>,
        Rule::Rprop(_) => block::<rules::Rprop, R, 2, 4>,
        Rule::Adamax(_) => block::<rules::Adamax, R, 2, 4>,
        Rule::Lion(_) => block::<rules::Lion, R, 1, 5>,
    }
}

fn factors(step: &Step, at: &At) -> Factors {
    fn put<U: Update<S, F>, const S: usize, const F: usize>(rule: &U, at: &At, to: &mut Factors) {
        to[SHARED..SHARED + F].copy_from_slice(&rule.factors(at));
    }
    let mut all = [0.0; SHARED + MOST_FACTORS];
    let [added, kept] = match step.decoupled {
        true => [0.0, 1.0 - at.rate * step.weight_decay],
        false => [step.weight_decay, 1.0],
    };
    all[..SHARED].copy_from_slice(&[if step.maximize { -1.0 } else { 1.0 }, added, kept]);
    match &step.rule {
        Rule::Sgd(rule) => put(rule, at, &mut all),
        Rule::Adam(rule) => put(rule, at, &mut all),
        Rule::NAdam(rule) => put(rule, at, &mut all),
        Rule::RAdam(rule) => put(rule, at, &mut all),
        Rule::Adagrad(rule) => put(rule, at, &mut all),
        Rule::Adadelta(rule) => put(rule, at, &mut all),
        Rule::RmsProp(rule) => put(rule, at, &mut all),
        Rule::Rprop(rule) => put(rule, at, &mut all),
        Rule::Adamax(rule) => put(rule, at, &mut all),
        Rule::Lion(rule) => put(rule, at, &mut all),
    }
    all
}
