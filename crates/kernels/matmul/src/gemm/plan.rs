//! Which method a product takes, and what it needs: decided from sizes alone, before any byte is
//! touched.

use half::{bf16, f16};
use plimsoll_core::DType;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::amx::{self, AmxBlocking};
use super::blocked;
use super::blocking::Blocking;
use super::gemv;
use super::geometry::{GemmShape, Geometry};
use super::micro::Kernels;
use super::product::Product;
use plimsoll_engine::pack::{Accumulator, Factor};
use plimsoll_engine::parallel;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Isa};

/// A product with its operands. Pointers are to the first element, in the shape's dtype.
#[derive(Clone, Copy, Debug)]
pub struct Gemm<'a> {
    /// Sizes and strides.
    pub shape: GemmShape<'a>,
    /// A.
    pub a: *const u8,
    /// B.
    pub b: *const u8,
    /// C.
    pub c: *mut u8,
    /// Factor of the product; truncated for integers.
    pub alpha: f64,
    /// Factor of what C held; 0 leaves C unread.
    pub beta: f64,
}

/// The decided way to a product. It holds for one shape (at any addresses), and remembers the
/// thread count and instruction set that it was made under.
///
/// ```
/// use plimsoll_core::DType;
/// use plimsoll_kernels_matmul::gemm::{Gemm, GemmShape, Plan, Strides};
/// let shape = GemmShape {
///     dtype: DType::F32,
///     batch: &[],
///     m: 1,
///     n: 2,
///     k: 2,
///     a: Strides::row_major(2),
///     b: Strides::row_major(2),
///     c: Strides::row_major(2),
/// };
/// let plan = Plan::new(&shape);
/// let mut workspace = vec![0u8; plan.workspace_bytes() + 64];
/// // SAFETY: an aligned place is less than 64 bytes from the start, and there are 64 to spare.
/// let aligned = unsafe { workspace.as_mut_ptr().add(workspace.as_ptr().align_offset(64)) };
/// let (a, b, mut c) = ([1.0f32, 2.0], [3.0f32, 4.0, 5.0, 6.0], [f32::NAN; 2]);
/// let problem = Gemm {
///     shape,
///     a: a.as_ptr().cast(),
///     b: b.as_ptr().cast(),
///     c: c.as_mut_ptr().cast(),
///     alpha: 1.0,
///     beta: 0.0,
/// };
/// // SAFETY: the arrays have the shape's sizes, and the workspace the plan's.
/// unsafe { plan.run(&problem, aligned) };
/// assert_eq!(c, [13.0, 16.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    isa: Isa,
    /// Whether it is computed as `C^T = B^T * A^T`.
    transposed: bool,
    method: Method,
    /// Products computed at once, each on one thread; 1 where the threads share each product.
    at_once: usize,
    /// Workspace of one product.
    product_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// C has no elements, or the dtype has no products.
    Nothing,
    /// `k == 0`: only `beta` acts.
    ScaleOnly,
    Gemv {
        parts: usize,
    },
    Blocked(Blocking),
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Amx(AmxBlocking),
}

/// Multiply-adds that pay for waking one more thread.
const WORK_PER_THREAD: usize = 400_000;
/// Below this many multiply-adds a product of a batch is left to one thread.
const WORK_TO_SHARE: usize = 64 << 20;

impl Plan {
    /// Plans `shape` for the thread count and instruction set in force.
    pub fn new(shape: &GemmShape) -> Plan {
        Plan::with_isa(shape, simd::isa())
    }

    /// Plans `shape` for another instruction set, capped by what the machine has.
    pub fn with_isa(shape: &GemmShape, isa: Isa) -> Plan {
        Plan::with_units(shape, isa, true)
    }

    /// As [`Plan::with_isa`], with or without the matrix unit where there is one: tests take both
    /// ways.
    pub(super) fn with_units(shape: &GemmShape, isa: Isa, allow_amx: bool) -> Plan {
        let isa = isa.min(Isa::detected());
        match shape.dtype {
            DType::F32 => Plan::typed::<f32>(shape, isa, allow_amx),
            DType::F64 => Plan::typed::<f64>(shape, isa, allow_amx),
            DType::F16 => Plan::typed::<f16>(shape, isa, allow_amx),
            DType::BF16 => Plan::typed::<bf16>(shape, isa, allow_amx),
            DType::I8 => Plan::typed::<i8>(shape, isa, allow_amx),
            DType::I16 => Plan::typed::<i16>(shape, isa, allow_amx),
            DType::I32 => Plan::typed::<i32>(shape, isa, allow_amx),
            DType::I64 => Plan::typed::<i64>(shape, isa, allow_amx),
            DType::U8 => Plan::typed::<u8>(shape, isa, allow_amx),
            DType::Bool => Plan::nothing(isa),
        }
    }

    /// Bytes that [`Plan::run`] needs as workspace.
    pub fn workspace_bytes(&self) -> usize {
        self.at_once * self.product_bytes
    }

    /// Computes the product.
    ///
    /// # Safety
    /// As for [`super::gemm`]; `problem` has the shape that this was planned for.
    pub unsafe fn run(&self, problem: &Gemm, workspace: *mut u8) {
        // SAFETY: the caller's contract is the same; the dtype says what the pointers point to.
        unsafe {
            match problem.shape.dtype {
                DType::F32 => self.run_typed::<f32>(problem, workspace),
                DType::F64 => self.run_typed::<f64>(problem, workspace),
                DType::F16 => self.run_typed::<f16>(problem, workspace),
                DType::BF16 => self.run_typed::<bf16>(problem, workspace),
                DType::I8 => self.run_typed::<i8>(problem, workspace),
                DType::I16 => self.run_typed::<i16>(problem, workspace),
                DType::I32 => self.run_typed::<i32>(problem, workspace),
                DType::I64 => self.run_typed::<i64>(problem, workspace),
                DType::U8 => self.run_typed::<u8>(problem, workspace),
                DType::Bool => {}
            }
        }
    }

    fn nothing(isa: Isa) -> Plan {
        Plan { isa, transposed: false, method: Method::Nothing, at_once: 1, product_bytes: 0 }
    }

    fn typed<E: Factor>(shape: &GemmShape, isa: Isa, allow_amx: bool) -> Plan
    where
        E::Sum: Kernels,
    {
        let products = shape.products();
        if products == 0 || shape.m == 0 || shape.n == 0 {
            return Plan::nothing(isa);
        }
        let given = Geometry::of(shape);
        // Vectors become rows; otherwise C's contiguous direction becomes its columns.
        let transposed = given.m > 1 && (given.n == 1 || (given.c.row == 1 && given.c.column != 1));
        let g = if transposed { given.transposed() } else { given };
        let total = g.work().saturating_mul(products);
        let threads = parallel::threads().min((total / WORK_PER_THREAD).max(1));
        let at_once = if products >= threads && g.work() < WORK_TO_SHARE { threads } else { 1 };
        let parts = if at_once > 1 { 1 } else { threads };
        let (method, product_bytes) = if g.k == 0 {
            (Method::ScaleOnly, 0)
        } else if g.m == 1 {
            (Method::Gemv { parts }, 0)
        } else if let Some(planned) = Plan::amx(shape.dtype, &g, isa, parts, allow_amx) {
            planned
        } else {
            let blocking = Blocking::new::<E>(&g, isa, parts);
            let bytes = blocking.workspace_bytes::<E>(&g).next_multiple_of(64);
            (Method::Blocked(blocking), bytes)
        };
        Plan { isa, transposed, method, at_once, product_bytes }
    }

    /// The matrix unit's plan, where it applies.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn amx(
        dtype: DType,
        g: &Geometry,
        isa: Isa,
        parts: usize,
        allowed: bool,
    ) -> Option<(Method, usize)> {
        if dtype != DType::BF16 || !allowed || !amx::available(isa) {
            return None;
        }
        let blocking = AmxBlocking::new(g, parts);
        Some((Method::Amx(blocking), blocking.workspace_bytes()))
    }

    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    fn amx(_: DType, _: &Geometry, _: Isa, _: usize, _: bool) -> Option<(Method, usize)> {
        None
    }

    unsafe fn run_typed<E: Factor>(&self, problem: &Gemm, workspace: *mut u8)
    where
        E::Sum: Kernels,
    {
        if self.method == Method::Nothing {
            return;
        }
        let shape = problem.shape;
        let products = shape.products();
        let workspace = Shared(workspace);
        let (alpha, beta) = (E::Sum::from_f64(problem.alpha), E::Sum::from_f64(problem.beta));
        let given = Geometry::of(&shape);
        let whole = Product::<E> {
            geometry: if self.transposed { given.transposed() } else { given },
            a: problem.a.cast(),
            b: problem.b.cast(),
            c: problem.c.cast(),
            alpha,
            beta,
        };
        let one = |index: usize, slot: usize| {
            // SAFETY: the offsets are the shape's own; each slot has its own workspace.
            unsafe {
                let product = whole.moved(shape.offsets(index), self.transposed);
                self.run_product(product, workspace.add(slot * self.product_bytes));
            }
        };
        if self.at_once == 1 {
            (0..products).for_each(|index| one(index, 0));
        } else {
            parallel::split_there_and_back(self.at_once, products, 1, |slot, indices| {
                indices.for_each(|index| one(index, slot));
            });
        }
    }

    unsafe fn run_product<E: Factor>(&self, product: Product<E>, workspace: *mut u8)
    where
        E::Sum: Kernels,
    {
        // SAFETY: the caller of `run` keeps the contract for every product.
        unsafe {
            match &self.method {
                Method::Nothing => {}
                Method::ScaleOnly => product.scale_only(),
                Method::Gemv { parts } => gemv::run(product, self.isa, *parts),
                Method::Blocked(blocking) => blocked::run(product, blocking, workspace),
                #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
                Method::Amx(blocking) => amx::run(product.assume_bf16(), blocking, workspace),
            }
        }
    }
}
