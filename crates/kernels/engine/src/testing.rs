//! What the tests of kernels share (feature `testing`): random layouts over memory that the test
//! owns, launches on every level and thread count, and naive access in f64.

use plimsoll_core::{DType, Layout, Result, Scalar};

use crate::generate::Walk;
use crate::parallel;
use crate::simd::{self, Isa};
use crate::{CpuLaunch, Meta, Operand, Workspace};
use crate::{Element, match_dtype};

/// A small generator (SplitMix64), so that failures repeat.
#[derive(Clone, Debug)]
pub struct Lot(pub u64);

impl Lot {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    /// In [-1, 1).
    pub fn signed(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// A value that `dtype` holds exactly, mostly small, sometimes special.
    pub fn value(&mut self, dtype: DType, specials: bool) -> f64 {
        if dtype.is_float() {
            let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-40, 1e-7];
            if specials && self.below(12) == 0 {
                return rounded(dtype, special[self.below(special.len())]);
            }
            rounded(dtype, self.signed() * [0.1, 1.0, 4.0, 30.0][self.below(4)])
        } else {
            let bound = if dtype == DType::Bool { 2 } else { 11 };
            let value = self.below(bound) as f64;
            if matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64) {
                value - 5.0
            } else {
                value
            }
        }
    }
}

/// `value` as `dtype` holds it.
pub fn rounded(dtype: DType, value: f64) -> f64 {
    match_dtype!(dtype, T => T::from_f64(value).to_f64())
}

/// One tensor whose memory the test owns. Memory outside the layout is filled with a pattern, and
/// [`Held::check_outside`] tells whether a kernel touched it.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its layout and dtype.
    pub meta: Meta,
    memory: Vec<u64>,
}

const OUTSIDE: u8 = 0xa5;

impl Held {
    /// A tensor of `layout` with the values of `make` in logical order.
    pub fn new(dtype: DType, layout: Layout, mut make: impl FnMut() -> f64) -> Held {
        let meta = Meta { layout, dtype };
        let words = meta.span_bytes().div_ceil(8) + 2;
        let mut held = Held { meta, memory: vec![u64::from_ne_bytes([OUTSIDE; 8]); words] };
        for position in held.positions() {
            held.set_at(position, make());
        }
        held
    }

    /// A row-major tensor of these values.
    pub fn of(dtype: DType, shape: &[usize], values: &[f64]) -> Held {
        let mut values = values.iter();
        Held::new(dtype, Layout::contiguous(shape).unwrap(), || *values.next().unwrap())
    }

    /// A tensor of `shape` in a random layout with random values.
    pub fn random(lot: &mut Lot, dtype: DType, shape: &[usize], specials: bool) -> Held {
        let layout = random_layout(lot, shape, true);
        Held::new(dtype, layout, || lot.value(dtype, specials))
    }

    /// An output of `shape` in a random layout that does not overlap itself.
    pub fn output(lot: &mut Lot, dtype: DType, shape: &[usize]) -> Held {
        let layout = random_layout(lot, shape, false);
        Held::new(dtype, layout, || 0.0)
    }

    fn positions(&self) -> Vec<usize> {
        let layout = &self.meta.layout;
        Walk::new(layout, 0).take(layout.numel()).map(|p| p + layout.offset()).collect()
    }

    fn set_at(&mut self, position: usize, value: f64) {
        match_dtype!(self.meta.dtype, T => {
            // SAFETY: the memory spans the layout, and `&mut self` is the only way to it.
            unsafe { *self.memory.as_mut_ptr().cast::<T>().add(position) = T::from_f64(value) }
        });
    }

    /// The values in logical order.
    pub fn values(&self) -> Vec<f64> {
        match_dtype!(self.meta.dtype, T => self.elements::<T>().into_iter().map(T::to_f64).collect())
    }

    /// The elements in logical order.
    pub fn elements<T: Element>(&self) -> Vec<T> {
        assert_eq!(T::DTYPE, self.meta.dtype);
        // SAFETY: the memory spans the layout.
        let at = |p: usize| unsafe { *self.memory.as_ptr().cast::<T>().add(p) };
        self.positions().into_iter().map(at).collect()
    }

    /// The same memory under another layout.
    pub fn with_layout(&self, layout: Layout) -> Held {
        let meta = Meta { layout, dtype: self.meta.dtype };
        assert!(meta.span_bytes() <= self.memory.len() * 8);
        Held { meta, memory: self.memory.clone() }
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        self.meta.shape()
    }

    /// Asserts that every byte outside the layout is as it was.
    pub fn check_outside(&self) {
        let width = self.meta.dtype.size_bytes();
        let mut inside = vec![false; self.memory.len() * 8];
        for position in self.positions() {
            inside[position * width..(position + 1) * width].fill(true);
        }
        for (i, byte) in self.memory.iter().flat_map(|word| word.to_ne_bytes()).enumerate() {
            assert!(inside[i] || byte == OUTSIDE, "byte {i} outside {:?} was written", self.meta);
        }
    }

    fn operand(&self) -> Operand<'_> {
        // SAFETY: the memory spans the layout; launches write only what was handed in as `&mut`.
        unsafe { Operand::new(self.memory.as_ptr().cast_mut().cast(), &self.meta) }
    }

    fn output_operand(&mut self) -> Operand<'_> {
        // SAFETY: the memory spans the layout, and is borrowed for writing.
        unsafe { Operand::new(self.memory.as_mut_ptr().cast(), &self.meta) }
    }
}

/// Sizes, strides and an offset for `shape`: transposed, stepped, offset, and (for inputs)
/// expanded.
pub fn random_layout(lot: &mut Lot, shape: &[usize], expand: bool) -> Layout {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    for i in (1..order.len()).rev() {
        if lot.below(2) == 0 {
            order.swap(i, lot.below(i + 1));
        }
    }
    let plain = lot.below(3) == 0;
    let mut strides = vec![1; shape.len()];
    let mut reach = if plain || lot.below(3) > 0 { 1 } else { 2 };
    let dims: Vec<usize> = if plain { (0..shape.len()).rev().collect() } else { order };
    for d in dims {
        if !plain && expand && lot.below(5) == 0 {
            strides[d] = 0;
            continue;
        }
        strides[d] = reach;
        reach *= shape[d].max(1);
        if !plain && lot.below(5) == 0 {
            reach += lot.below(3);
        }
    }
    let offset = if plain { 0 } else { lot.below(4) };
    Layout::strided(shape, &strides, offset).unwrap()
}

/// A few shapes of every sort: scalar, empty, thin, square past a block, many dimensions.
pub fn shapes() -> Vec<Vec<usize>> {
    vec![
        vec![],
        vec![0],
        vec![1],
        vec![5],
        vec![67],
        vec![3, 0, 2],
        vec![1, 7],
        vec![7, 1],
        vec![4, 5],
        vec![33, 70],
        vec![2, 3, 4],
        vec![9, 65, 40],
        vec![2, 1, 3, 2, 2],
        vec![3, 40, 2, 30],
    ]
}

/// Runs `kernel` on the inputs and outputs once for every level and for one and two threads, and
/// hands the outputs of each run to `check`.
pub fn launch_all(
    inputs: &[&Held],
    outputs: &mut [Held],
    workspace_bytes: usize,
    kernel: impl Fn(&CpuLaunch<'_>) -> Result<()>,
    mut check: impl FnMut(&[Held]),
) {
    let fresh: Vec<Held> = outputs.to_vec();
    for isa in Isa::available() {
        for threads in [1, 2] {
            outputs.clone_from_slice(&fresh);
            at(isa, threads, || launch(inputs, outputs, workspace_bytes, &kernel)).unwrap();
            outputs.iter().for_each(Held::check_outside);
            check(outputs);
        }
    }
}

/// `body` on a level and a number of threads. Levels are process-wide, so such tests take turns.
pub fn at<R>(isa: Isa, threads: usize, body: impl FnOnce() -> R) -> R {
    static TURN: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    let _turn = TURN.lock();
    let previous = simd::set_isa(isa);
    let result = parallel::with_threads(threads, body);
    simd::set_isa(previous);
    result
}

/// One launch.
pub fn launch(
    inputs: &[&Held],
    outputs: &mut [Held],
    workspace_bytes: usize,
    kernel: impl Fn(&CpuLaunch<'_>) -> Result<()>,
) -> Result<()> {
    let inputs: Vec<Operand<'_>> = inputs.iter().map(|held| held.operand()).collect();
    let outputs: Vec<Operand<'_>> = outputs.iter_mut().map(Held::output_operand).collect();
    let mut scratch = Scratch::new(workspace_bytes);
    let result = kernel(&CpuLaunch {
        operation: "test",
        inputs: &inputs,
        outputs: &outputs,
        workspace: scratch.workspace(),
    });
    scratch.check();
    result
}

/// A launch whose output is its first input.
pub fn launch_in_place(
    target: &mut Held,
    others: &[&Held],
    kernel: impl Fn(&CpuLaunch<'_>) -> Result<()>,
) -> Result<()> {
    let out = target.output_operand();
    let mut inputs = vec![out];
    inputs.extend(others.iter().map(|held| held.operand()));
    let workspace = Scratch::new(0).workspace();
    kernel(&CpuLaunch { operation: "test", inputs: &inputs, outputs: &[out], workspace })
}

/// A workspace of exactly the bytes asked for, with a fence behind it.
struct Scratch {
    memory: Vec<[u64; 8]>,
    bytes: usize,
}

impl Scratch {
    fn new(bytes: usize) -> Scratch {
        let word = u64::from_ne_bytes([OUTSIDE; 8]);
        Scratch { memory: vec![[word; 8]; bytes.div_ceil(64) + 2], bytes }
    }

    /// 64-byte aligned within the memory.
    fn workspace(&mut self) -> Workspace {
        let start: *mut u8 = self.memory.as_mut_ptr().cast();
        // SAFETY: the memory is this value's own, and has 64 bytes more than `bytes`.
        unsafe { Workspace::new(start.wrapping_add(start.align_offset(64)), self.bytes) }
    }

    fn check(&mut self) {
        let end = self.workspace().pointer().wrapping_add(self.bytes);
        let memory_end = self.memory.as_ptr_range().end.addr();
        for i in 0..memory_end - end.addr() {
            // SAFETY: below the end of the vector.
            let byte = unsafe { *end.add(i) };
            assert_eq!(byte, OUTSIDE, "byte {i} behind a workspace of {} was written", self.bytes);
        }
    }
}

/// Asserts values equal up to `relative` and `absolute`, with NaN, infinities and signs of zero
/// alike.
pub fn assert_close(got: &[f64], want: &[f64], relative: f64, absolute: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: as many values");
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        let fine = if want.is_nan() {
            got.is_nan()
        } else {
            got == want || (got - want).abs() <= relative * want.abs() + absolute
        };
        assert!(fine, "{what}: element {i} is {got:e}, should be {want:e}");
    }
}

/// How far a float dtype's results may be from f64's, relatively.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1.1e-3,
        DType::BF16 => 8.5e-3,
        DType::F32 => 1e-6,
        DType::F64 => 1e-14,
        _ => 0.0,
    }
}

/// Dtypes other than bool.
pub const NUMBERS: [DType; 9] = [
    DType::U8,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];
/// Floats.
pub const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// A host number of a float.
pub fn float(value: f64) -> Scalar {
    Scalar::Float(value)
}

/// Checks a kernel of one input against `truth` for every dtype, shape, level and thread count, and
/// in place.
pub fn check_unary(
    name: &str,
    dtypes: &[DType],
    absolute: f64,
    kernel: impl Fn(&CpuLaunch<'_>) -> Result<()>,
    truth: impl Fn(f64) -> f64,
) {
    let mut lot = Lot(7);
    for &dtype in dtypes {
        for shape in shapes() {
            let x = Held::random(&mut lot, dtype, &shape, true);
            let want: Vec<f64> = x.values().iter().map(|&x| rounded(dtype, truth(x))).collect();
            let mut out = [Held::output(&mut lot, dtype, &shape)];
            let what =
                format!("{name} of {dtype} {:?} into {:?}", x.meta.layout, out[0].meta.layout);
            launch_all(&[&x], &mut out, 0, &kernel, |out| {
                assert_close(&out[0].values(), &want, tolerance(dtype), absolute, &what);
            });
            let mut target = Held::output(&mut lot, dtype, &shape);
            let mut values = x.values().into_iter();
            target = Held::new(dtype, target.meta.layout, || values.next().unwrap());
            launch_in_place(&mut target, &[], &kernel).unwrap();
            assert_close(&target.values(), &want, tolerance(dtype), absolute, &what);
        }
    }
}

/// Checks a kernel of two inputs that broadcast against `truth`, and in place on the first.
pub fn check_binary(
    name: &str,
    dtypes: &[DType],
    absolute: f64,
    out_dtype: impl Fn(DType) -> DType,
    kernel: impl Fn(&CpuLaunch<'_>) -> Result<()>,
    truth: impl Fn(f64, f64) -> f64,
) {
    check_binary_of(true, name, dtypes, absolute, out_dtype, kernel, truth);
}

/// [`check_binary`] with or without special values.
pub fn check_binary_of(
    specials: bool,
    name: &str,
    dtypes: &[DType],
    absolute: f64,
    out_dtype: impl Fn(DType) -> DType,
    kernel: impl Fn(&CpuLaunch<'_>) -> Result<()>,
    truth: impl Fn(f64, f64) -> f64,
) {
    let mut lot = Lot(11);
    for &dtype in dtypes {
        let result = out_dtype(dtype);
        for shape in shapes() {
            let a = Held::random(&mut lot, dtype, &shape, specials);
            // The second input broadcasts: leading dimensions missing, some sizes 1.
            let lead = lot.below(shape.len() + 1);
            let short: Vec<usize> = shape[lead..]
                .iter()
                .map(|&size| if lot.below(4) == 0 { 1 } else { size })
                .collect();
            let b = Held::random(&mut lot, dtype, &short, specials);
            let stretched = b.with_layout(b.meta.layout.broadcast_to(&shape).unwrap());
            let want: Vec<f64> = a
                .values()
                .iter()
                .zip(stretched.values())
                .map(|(&a, b)| rounded(result, truth(a, b)))
                .collect();
            let mut out = [Held::output(&mut lot, result, &shape)];
            let what = format!("{name} of {dtype} {:?} and {:?}", a.meta.layout, b.meta.layout);
            launch_all(&[&a, &b], &mut out, 0, &kernel, |out| {
                assert_close(&out[0].values(), &want, tolerance(dtype), absolute, &what);
            });
            if result == dtype {
                let layout = random_layout(&mut lot, &shape, false);
                let mut values = a.values().into_iter();
                let mut target = Held::new(dtype, layout, || values.next().unwrap());
                launch_in_place(&mut target, &[&b], &kernel).unwrap();
                assert_close(&target.values(), &want, tolerance(dtype), absolute, &what);
            }
        }
    }
}
