//! Attention, `softmax(q k^T * scale + mask) v`, over blocks of keys with a running maximum and
//! sum: the matrix of scores never exists whole, forward or backward. Backward computes each block
//! of scores again from the logarithm of its rows' sums.
//!
//! Inputs of any strides are copied block by block into buffers of what is computed in, which costs
//! little beside the products.

mod backward;
mod forward;

use plimsoll_core::{DType, Error, Result};

use plimsoll_engine::real::{Float, Real};
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Operand, Truth, parallel};
use plimsoll_kernels_matmul::gemm::{self, Gemm, GemmShape, Strides};

use crate::rows::operand;

pub use backward::attention_backward;
pub use forward::attention;

/// Queries of a block.
const QUERIES: usize = 64;
/// Keys of a block: with as many queries their scores stay in the second-level cache.
const KEYS: usize = 512;

/// What the kernels go by.
#[derive(Clone, Copy, Debug)]
pub struct AttentionArgs {
    /// Whether queries see no keys after their own place.
    pub causal: bool,
    /// Multiplies the scores.
    pub scale: f64,
    /// Heads of queries that share a head of keys and values.
    pub group: usize,
    /// Whether there is a mask: bool, or numbers that are added to the scores.
    pub mask: bool,
}

/// Sizes of one head.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    queries: usize,
    keys: usize,
    width: usize,
    values: usize,
}

/// A matrix for each head: the last two dimensions of an operand.
#[derive(Clone, Copy)]
struct Heads<'a> {
    operand: Operand<'a>,
}

impl<'a> Heads<'a> {
    fn batch(self) -> &'a [usize] {
        let shape = self.operand.shape();
        &shape[..shape.len() - 2]
    }

    fn count(self) -> usize {
        self.batch().iter().product()
    }

    fn sizes(self) -> [usize; 2] {
        let shape = self.operand.shape();
        [shape[shape.len() - 2], shape[shape.len() - 1]]
    }

    /// Where a row of a head starts, in elements from the first, and the step along it.
    fn row(self, mut head: usize, row: usize) -> (usize, usize) {
        let (shape, strides) = (self.operand.shape(), self.operand.layout().strides());
        let rank = shape.len();
        let mut offset = row * strides[rank - 2];
        for dim in (0..rank - 2).rev() {
            offset += head % shape[dim] * strides[dim];
            head /= shape[dim];
        }
        (offset, strides[rank - 1])
    }

    /// Writes rows from a buffer, narrowed; row `r` times `scale(r)`.
    ///
    /// # Safety
    /// The rows must be the head's and nobody else's now, and the buffer as long as they.
    unsafe fn store<T: Float>(
        self,
        head: usize,
        rows: std::ops::Range<usize>,
        from: *const T::Wide,
        scale: impl Fn(usize) -> T::Wide,
    ) {
        let width = self.sizes()[1];
        let first = self.operand.first::<T>();
        for (index, row) in rows.enumerate() {
            let (offset, step) = self.row(head, row);
            let scale = scale(index);
            for column in 0..width {
                // SAFETY: an element of the operand, and one of the buffer.
                unsafe {
                    let value = *from.add(index * width + column) * scale;
                    *first.add(offset + column * step) = T::narrow(value);
                }
            }
        }
    }

    /// Copies rows into a buffer, widened.
    ///
    /// # Safety
    /// The rows must be the head's, and the buffer as long as they.
    unsafe fn load<T: Float>(self, head: usize, rows: std::ops::Range<usize>, to: *mut T::Wide) {
        let width = self.sizes()[1];
        let first = self.operand.first::<T>();
        for (index, row) in rows.enumerate() {
            let (offset, step) = self.row(head, row);
            for column in 0..width {
                // SAFETY: an element of the operand, and one of the buffer.
                unsafe {
                    *to.add(index * width + column) = (*first.add(offset + column * step)).widen();
                }
            }
        }
    }
}

/// What all heads share.
struct Job<'a> {
    args: AttentionArgs,
    sizes: Sizes,
    query: Heads<'a>,
    key: Heads<'a>,
    value: Heads<'a>,
    mask: Option<Heads<'a>>,
}

impl<'a> Job<'a> {
    /// Query, key, value and mask are the inputs from `at` on.
    fn new(launch: &CpuLaunch<'a>, args: AttentionArgs, at: usize) -> Result<Job<'a>> {
        let heads = |index| operand(launch, launch.inputs, index).map(|operand| Heads { operand });
        let [query, key, value] = [heads(at)?, heads(at + 1)?, heads(at + 2)?];
        let mask = if args.mask { Some(heads(at + 3)?) } else { None };
        let ([queries, width], [keys, values]) = (query.sizes(), value.sizes());
        let sizes = Sizes { queries, keys, width, values };
        if key.sizes() != [keys, width] || key.count() * args.group != query.count() {
            return Err(Error::shape(launch.operation, "the kernel needs heads that go together"));
        }
        Ok(Job { args, sizes, query, key, value, mask })
    }

    /// The head of keys and values of a head of queries.
    fn key_head(&self, head: usize) -> usize {
        head / self.args.group
    }

    /// Keys that the queries from `first` on may see.
    fn seen(&self, first: usize, count: usize) -> usize {
        if self.args.causal { self.sizes.keys.min(first + count) } else { self.sizes.keys }
    }

    /// Takes what queries may not see out of a block of scores, and adds the mask.
    ///
    /// # Safety
    /// `scores` has a row of `keys.len()` for each query.
    unsafe fn hide<T: Float>(
        &self,
        head: usize,
        queries: std::ops::Range<usize>,
        keys: std::ops::Range<usize>,
        scores: *mut T::Wide,
    ) {
        let hidden = -T::Wide::INFINITY;
        for (row, query) in queries.enumerate() {
            // SAFETY: a row of the scores.
            let line =
                unsafe { std::slice::from_raw_parts_mut(scores.add(row * keys.len()), keys.len()) };
            if let Some(mask) = self.mask {
                let (offset, step) = mask.row(head, query);
                let places = keys.clone().map(|key| offset + key * step);
                for (score, place) in line.iter_mut().zip(places) {
                    // SAFETY: an element of the mask, which dispatch checked to be bool or `T`.
                    unsafe {
                        if mask.operand.dtype() == DType::Bool {
                            if !(*mask.operand.first::<Truth>().add(place)).get() {
                                *score = hidden;
                            }
                        } else {
                            *score = *score + (*mask.operand.first::<T>().add(place)).widen();
                        }
                    }
                }
            }
            if self.args.causal && query + 1 < keys.end {
                line[(query + 1).saturating_sub(keys.start)..].fill(hidden);
            }
        }
    }
}

/// `c = alpha * a b + beta * c` of row-major buffers on this thread; `[m, n, k]`.
///
/// # Safety
/// The buffers must be as large as the sizes and strides say, and the workspace as
/// [`product_bytes`] said for these sizes.
unsafe fn product<R: Real>(
    sizes: [usize; 3],
    (a, a_strides): (*const R, Strides),
    (b, b_strides): (*const R, Strides),
    c: *mut R,
    (alpha, beta): (f64, f64),
    workspace: *mut u8,
) {
    let shape = product_shape::<R>(sizes, a_strides, b_strides);
    let problem = Gemm { shape, a: a.cast(), b: b.cast(), c: c.cast(), alpha, beta };
    // SAFETY: the caller vouches for the buffers; C is apart from A and B.
    unsafe { gemm::gemm(&problem, workspace) }
}

fn product_shape<R: Real>([m, n, k]: [usize; 3], a: Strides, b: Strides) -> GemmShape<'static> {
    GemmShape { dtype: R::DTYPE, batch: &[], m, n, k, a, b, c: Strides::row_major(n) }
}

/// Workspace of the products of a block, at most.
fn product_bytes<R: Real>(sizes: Sizes) -> usize {
    let Sizes { width, values, .. } = sizes;
    let mut most = 0;
    // The last blocks may be shorter, and a shorter block may be planned otherwise.
    for queries in [sizes.queries.min(QUERIES), sizes.queries % QUERIES] {
        let ends = [sizes.keys, sizes.keys % KEYS, sizes.queries % KEYS];
        let is_length = |keys: &usize| keys.is_multiple_of(QUERIES) || ends.contains(keys);
        for keys in (1..=KEYS.min(sizes.keys)).filter(is_length) {
            for wide in [width, values] {
                let plain = [queries, wide, keys];
                let scores = [queries, keys, wide];
                let turned = [keys, wide, queries];
                let shapes = [
                    product_shape::<R>(
                        scores,
                        Strides::row_major(wide),
                        Strides::column_major(wide),
                    ),
                    product_shape::<R>(plain, Strides::row_major(keys), Strides::row_major(wide)),
                    product_shape::<R>(
                        turned,
                        Strides::column_major(keys),
                        Strides::row_major(wide),
                    ),
                ];
                most = shapes.iter().map(gemm::workspace_bytes).fold(most, usize::max);
            }
        }
    }
    most
}

/// Buffers of one thread, one after another.
struct Buffers {
    next: *mut u8,
}

impl Buffers {
    fn take<R>(&mut self, count: usize) -> *mut R {
        let here = self.next;
        self.next = here.wrapping_add((count * size_of::<R>()).next_multiple_of(64));
        here.cast()
    }
}

fn padded<R>(counts: &[usize]) -> usize {
    counts.iter().map(|count| (count * size_of::<R>()).next_multiple_of(64)).sum()
}

fn forward_counts(sizes: Sizes) -> [usize; 6] {
    let Sizes { keys, width, values, .. } = sizes;
    [keys * width, keys * values, QUERIES * width, QUERIES * values, QUERIES * KEYS, 2 * QUERIES]
}

fn backward_counts(sizes: Sizes) -> [usize; 10] {
    let Sizes { keys, width, values, .. } = sizes;
    // The block of the scores holds the block of the result first.
    let scores = QUERIES * KEYS.max(values);
    let (query, grad) = (QUERIES * width, QUERIES * values);
    let own = [keys * width, keys * values];
    [own[0], own[1], own[0], own[1], query, grad, query, scores, QUERIES * KEYS, QUERIES]
}

fn threads_for(units: usize) -> usize {
    parallel::threads().min(units).max(1)
}

/// Scratch of the kernels over heads of `[queries, width]` and `[keys, values]`, `units` of them.
fn bytes_of(dtype: DType, sizes: Sizes, units: usize, backward: bool) -> usize {
    let threads = threads_for(units);
    let counts: &[usize] = if backward { &backward_counts(sizes) } else { &forward_counts(sizes) };
    let each = parallel::with_threads(1, || match dtype {
        DType::F64 => padded::<f64>(counts) + product_bytes::<f64>(sizes),
        _ => padded::<f32>(counts) + product_bytes::<f32>(sizes),
    });
    threads * each.next_multiple_of(64)
}

/// Scratch of [`attention`] and [`attention_backward`] for these shapes.
pub fn attention_workspace_bytes(
    dtype: DType,
    query: &[usize],
    value: &[usize],
    backward: bool,
) -> usize {
    let (Some([queries, width]), Some([keys, values])) =
        (query.last_chunk::<2>(), value.last_chunk::<2>())
    else {
        return 0;
    };
    let sizes = Sizes { queries: *queries, keys: *keys, width: *width, values: *values };
    bytes_of(dtype, sizes, units_of(query, value, backward), backward)
}

/// Work that can go side by side: forward the blocks of queries of each head, backward the heads of
/// keys.
fn units_of(query: &[usize], value: &[usize], backward: bool) -> usize {
    if backward {
        return value[..value.len() - 2].iter().product();
    }
    let heads: usize = query[..query.len() - 2].iter().product();
    heads * query[query.len() - 2].div_ceil(SHARE)
}

/// Queries that share one copy of the keys.
const SHARE: usize = 8 * QUERIES;

/// Calls `body(units, buffers)` on parts of the units, each with its part of the workspace.
fn in_parts(
    launch: &CpuLaunch<'_>,
    units: usize,
    bytes: usize,
    body: impl Fn(std::ops::Range<usize>, Buffers) + Sync,
) -> Result<()> {
    if launch.workspace.bytes() < bytes {
        return Err(Error::invalid_argument("the kernel needs a larger workspace")
            .in_operation(launch.operation));
    }
    let parts = threads_for(units);
    let start = Shared(launch.workspace.pointer());
    parallel::fork(parts, |part| {
        // SAFETY: each part has its own piece of the workspace.
        let next = unsafe { start.add(part * (bytes / parts)) };
        parallel::with_threads(1, || {
            body(parallel::part_range(units, parts, part), Buffers { next });
        });
    });
    Ok(())
}
