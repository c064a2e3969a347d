//! Matrix products by cuBLASLt. Row-major in, row-major out: a row-major matrix is the transpose of
//! a column-major one, so the library is asked for `C^T = B^T A^T`. The workspace is the caller's,
//! from the arena like all memory.
//!
//! Note [The fastest algorithm]
//! The library proposes algorithms in an order of its own, in which the first is often not the
//! fastest. Large products are timed once with each of the first eight, on their own operands, and
//! the choice is kept on disk (`algorithms.rs`): algorithms add up in different orders, so that
//! another choice in the next run would give other last bits. For the same reason nothing is timed
//! where nothing can be kept. Products that add to what is there cannot run twice, and a stream
//! that captures runs nothing: they take the first (a product that a capture is the first to see
//! keeps it to the end of the run). So do small products, which end before the next one is
//! launched. Of two processes that time a product at once each has its own choice, and later runs
//! the one that was written last. The deterministic switch passes all this by, with kernels of our
//! own.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::time::Duration;

use cudarc::cublaslt::{result, sys};
use plimsoll_core::{Error, Result};
use plimsoll_memory::StreamId;

use crate::algorithms::Algorithms;
use crate::blas_descriptors::{Descriptors, Preference};
use crate::error::Told;
use crate::{BlasType, Context, Matmul, MatmulMemory};

/// The largest alignment that the library tells apart, and the one it takes for granted unless
/// told.
const MOST_ALIGNMENT_BYTES: usize = 256;

/// The largest power of two, up to 256, that `address` is a multiple of.
fn alignment_bytes(address: usize) -> u32 {
    1 << address.trailing_zeros().min(MOST_ALIGNMENT_BYTES.trailing_zeros())
}

/// What the library chooses an algorithm by. Alignment belongs to it: an algorithm that loads 16
/// bytes at a time refuses an operand that starts at an odd element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    matmul: Matmul,
    /// Whether the product is added to what the result holds.
    accumulates: bool,
    /// Of `A`, `B` and `C`.
    alignment_bytes: [u32; 3],
    workspace_bytes: usize,
}

/// Products of fewer operations end before the next one is launched, whatever the algorithm.
const FEWEST_TIMED_OPERATIONS: f64 = 1e9;

/// How many proposals of the library are timed.
const TIMED_PROPOSALS: usize = 8;

/// How often each is run to be timed, after once to warm up.
const TIMED_RUNS: u32 = 4;

/// How much of the time of the library's first proposal another one may take to be preferred.
const CLEARLY_FASTER: f64 = 0.98;

impl Question {
    /// Whether proposals may be run to see which is the fastest.
    fn is_timed(&self) -> bool {
        let Matmul { m, n, k, batch, .. } = self.matmul;
        let operations = [2, m, n, k, batch].iter().map(|&size| size as f64).product::<f64>();
        operations >= FEWEST_TIMED_OPERATIONS && !self.accumulates
    }

    /// Itself as a word of [`Algorithms`].
    fn name(&self) -> String {
        let Matmul { dtype, is_widened, adds_row, m, n, k, batch, allow_tf32, .. } = self.matmul;
        let Matmul { a_stride, a_transposed, a_batch, b_stride, b_transposed, b_batch, .. } =
            self.matmul;
        let Matmul { c_stride, c_batch, .. } = self.matmul;
        let flags = [adds_row, is_widened, a_transposed, b_transposed, allow_tf32];
        let flags = flags.map(usize::from);
        let sizes = [m, n, k, batch, a_stride, a_batch, b_stride, b_batch, c_stride, c_batch];
        let alignments = self.alignment_bytes.map(|bytes| bytes as usize);
        let numbers = flags.iter().chain(&sizes).chain(&alignments).chain([&self.workspace_bytes]);
        numbers.fold(format!("{dtype:?}"), |name, number| format!("{name},{number}"))
    }
}

/// The library's handle, and the algorithm for each product seen.
pub(crate) struct Blas {
    handle: sys::cublasLtHandle_t,
    plans: HashMap<Question, Plan>,
    /// What was timed, in this run and before.
    algorithms: Algorithms,
}

// SAFETY: cuBLASLt handles and descriptors may be used from any thread; the mutex around `Blas`
// keeps it to one at a time.
unsafe impl Send for Blas {}

#[derive(Clone, Copy)]
struct Plan {
    descriptors: Descriptors,
    algorithm: sys::cublasLtMatmulAlgo_t,
}

impl Context {
    /// Queues a matrix product, times `alpha`, plus `beta` times what `c` holds, and plus the row
    /// that is to be added, if any.
    ///
    /// # Safety
    /// `memory` holds addresses of this GPU's memory with the matrices as `matmul` describes them
    /// and a workspace of that size; the stream may read `a`, `b` and a row that is added, and
    /// write `c` and the workspace. `a`, `b` and the row share no memory with `c`.
    pub unsafe fn matmul(
        &'static self,
        stream: StreamId,
        matmul: &Matmul,
        [alpha, beta]: [f64; 2],
        memory: MatmulMemory,
    ) -> Result<()> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        let mut blas = self.blas.lock();
        let blas = match &mut *blas {
            Some(blas) => blas,
            empty => empty.insert(Blas::open(&self.properties().name)?),
        };
        let MatmulMemory { a, b, c, row, workspace, workspace_bytes } = memory;
        let question = Question {
            matmul: *matmul,
            accumulates: beta != 0.0,
            alignment_bytes: [a, b, c].map(alignment_bytes),
            workspace_bytes,
        };
        let alpha = Factor::of(matmul.dtype, alpha);
        let beta = Factor::of(matmul.dtype, beta);
        let library = blas.handle;
        let queue = |plan: &Plan| {
            let Plan { descriptors, algorithm } = plan;
            // SAFETY: descriptors belong to the plan and live as long as the context; the pointers
            // are the caller's promise, who lets a product that accumulates nothing be written more
            // than once. The library computes B^T A^T, so its first operand is our `b`.
            unsafe {
                result::matmul(
                    library,
                    descriptors.product,
                    alpha.pointer(),
                    beta.pointer(),
                    b as *const _,
                    descriptors.b,
                    a as *const _,
                    descriptors.a,
                    c as *const _,
                    descriptors.c,
                    c as *mut _,
                    descriptors.c,
                    algorithm,
                    workspace as *mut _,
                    workspace_bytes,
                    handle.cast(),
                )
            }
        };
        let plan = match blas.plans.get(&question) {
            Some(plan) => *plan,
            None => {
                let times = question.is_timed() && !self.is_capturing(stream);
                let fastest = |plans: &[Plan]| self.fastest(stream, plans, queue);
                let plan = blas.plan(&question, row, times.then_some(fastest))?;
                blas.plans.insert(question, plan);
                plan
            }
        };
        if matmul.adds_row {
            // The lock is held until the product is queued, so no other call changes it meanwhile.
            plan.descriptors.set_row(row)?;
        }
        queue(&plan).told("cublasLtMatmul")
    }

    /// The place of the plan that is the fastest when `queue` queues it: the first, unless another
    /// one clearly is. What is refused is not timed; nothing if all are. The lock of the plans is
    /// held until the device is done. See Note [The fastest algorithm].
    fn fastest(
        &'static self,
        stream: StreamId,
        plans: &[Plan],
        queue: impl Fn(&Plan) -> Result<(), result::CublasError>,
    ) -> Result<Option<usize>> {
        let mut runs = Vec::new();
        for (place, plan) in plans.iter().enumerate() {
            if queue(plan).is_ok() {
                let start = self.record_timed(stream)?;
                let queued = (0..TIMED_RUNS).try_for_each(|_| queue(plan));
                let end = self.record_timed(stream)?;
                runs.extend(queued.is_ok().then_some((place, start, end)));
            }
        }
        if let Some((_, _, end)) = runs.last() {
            end.wait();
        }
        let times: Vec<_> = runs
            .iter()
            .filter_map(|(place, start, end)| Some((*place, end.since(start)?)))
            .collect();
        Ok(preferred(&times))
    }
}

/// The place of the shortest time, or of the first, if that is hardly longer.
fn preferred(times: &[(usize, Duration)]) -> Option<usize> {
    let &(first, of_first) = times.first()?;
    let &(place, shortest) = times.iter().min_by_key(|&(_, time)| time)?;
    let is_clear = shortest.as_secs_f64() < CLEARLY_FASTER * of_first.as_secs_f64();
    Some(if is_clear { place } else { first })
}

/// A scale factor in the type that the product is scaled in.
pub(crate) enum Factor {
    F32(f32),
    F64(f64),
}

impl Factor {
    pub(crate) fn of(dtype: BlasType, value: f64) -> Factor {
        if dtype == BlasType::F64 { Factor::F64(value) } else { Factor::F32(value as f32) }
    }

    pub(crate) fn pointer(&self) -> *const std::ffi::c_void {
        match self {
            Factor::F32(value) => std::ptr::from_ref(value).cast(),
            Factor::F64(value) => std::ptr::from_ref(value).cast(),
        }
    }
}

impl Blas {
    fn open(gpu: &str) -> Result<Blas> {
        // SAFETY: only tries to open the library.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::unsupported(
                "matmul",
                "matrix products on CUDA need the cuBLASLt library (libcublasLt.so), which is not installed",
            ));
        }
        let handle = result::create_handle().told("cublasLtCreate")?;
        // SAFETY: the library is there; the call takes nothing and returns a number.
        let version = unsafe { sys::cublasLtGetVersion() };
        Ok(Blas { handle, plans: HashMap::new(), algorithms: Algorithms::open(gpu, version) })
    }

    /// The plan for products like the one that `question` is of, whose row lies at `row`:
    /// with the algorithm that was kept for it, else with the one that `fastest` finds, if it is
    /// given, else with the library's first.
    fn plan(
        &mut self,
        question: &Question,
        row: usize,
        fastest: Option<impl Fn(&[Plan]) -> Result<Option<usize>>>,
    ) -> Result<Plan> {
        let descriptors = Descriptors::new(&question.matmul, row)?;
        let name = question.is_timed().then(|| question.name());
        let kept = name.as_ref().and_then(|name| self.algorithms.get(name));
        if let Some(data) = kept {
            let algorithm = sys::cublasLtMatmulAlgo_t { data };
            if self.takes(&descriptors, &algorithm, question.workspace_bytes) {
                return Ok(Plan { descriptors, algorithm });
            }
        }
        let fastest = fastest.filter(|_| self.algorithms.can_keep());
        let most = if fastest.is_some() { TIMED_PROPOSALS } else { 1 };
        let preference = Preference::new(question.workspace_bytes, question.alignment_bytes)?;
        let proposals = self.proposals(&descriptors, &preference, most).inspect_err(|_| {
            // SAFETY: they are in no plan, and nobody uses them from here on.
            unsafe { descriptors.destroy() };
        });
        let proposals = proposals.told("cublasLtMatmulAlgoGetHeuristic")?;
        let plans: Vec<_> =
            proposals.into_iter().map(|algorithm| Plan { descriptors, algorithm }).collect();
        let place = match (fastest, name) {
            (Some(fastest), Some(name)) if plans.len() > 1 => fastest(&plans)?
                .filter(|&place| self.algorithms.keep(name, plans[place].algorithm.data)),
            _ => None,
        };
        Ok(plans[place.unwrap_or(0)])
    }

    /// Whether an algorithm that was kept is one for such a product.
    fn takes(
        &self,
        of: &Descriptors,
        algorithm: &sys::cublasLtMatmulAlgo_t,
        workspace_bytes: usize,
    ) -> bool {
        let mut answer = MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::uninit();
        // SAFETY: the descriptors are alive; the library checks the algorithm and, if it takes it,
        // fills in the answer.
        let checked = unsafe {
            sys::cublasLtMatmulAlgoCheck(
                self.handle,
                of.product,
                of.b,
                of.a,
                of.c,
                of.c,
                algorithm,
                answer.as_mut_ptr(),
            )
        };
        // SAFETY: the library took it, and so filled in the answer.
        checked.result().is_ok() && unsafe { answer.assume_init() }.workspaceSize <= workspace_bytes
    }

    /// At least one and at most `most` algorithms that the library proposes, in its order.
    fn proposals(
        &self,
        of: &Descriptors,
        preference: &Preference,
        most: usize,
    ) -> Result<Vec<sys::cublasLtMatmulAlgo_t>, result::CublasError> {
        let mut found = [const { MaybeUninit::uninit() }; TIMED_PROPOSALS];
        let most = most.min(found.len());
        let mut count = 0;
        // SAFETY: the descriptors and the preference are alive; the library fills in at most `most`
        // answers and says how many.
        unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                of.product,
                of.b,
                of.a,
                of.c,
                of.c,
                preference.0,
                most as i32,
                found.as_mut_ptr().cast(),
                &raw mut count,
            )
        }
        .result()?;
        let found = found.iter().take(count as usize);
        // SAFETY: the library filled these in.
        let found = found.map(|answer: &MaybeUninit<_>| unsafe { answer.assume_init_ref() });
        let found: Vec<_> = found
            .filter(|answer: &&sys::cublasLtMatmulHeuristicResult_t| answer.state.result().is_ok())
            .map(|answer| answer.algo)
            .collect();
        let none = result::CublasError(sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);
        if found.is_empty() { Err(none) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Question, alignment_bytes, preferred};
    use crate::{BlasType, Matmul};

    #[test]
    fn alignment_is_the_largest_power_of_two_that_divides_and_that_the_library_knows() {
        let of = [0x7000_0000, 0x7000_0002, 0x7000_0030, 0x7000_0080, 0x7000_0101];
        assert_eq!(of.map(alignment_bytes), [256, 2, 16, 128, 1]);
    }

    #[test]
    fn another_algorithm_is_taken_only_if_it_is_clearly_faster() {
        let of = |times: &[(usize, u64)]| {
            let times: Vec<_> =
                times.iter().map(|&(place, us)| (place, Duration::from_micros(us))).collect();
            preferred(&times)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(0, 1000), (1, 985), (2, 990)]), Some(0));
        assert_eq!(of(&[(0, 1000), (1, 975), (2, 900), (3, 950)]), Some(2));
        // The first two were refused.
        assert_eq!(of(&[(2, 1000), (5, 1200)]), Some(2));
    }

    #[test]
    fn products_have_names_of_their_own() {
        let matmul = Matmul {
            dtype: BlasType::BF16,
            is_widened: false,
            adds_row: true,
            m: 1024,
            n: 768,
            k: 3072,
            batch: 1,
            a_stride: 3072,
            a_transposed: false,
            a_batch: 0,
            b_stride: 3072,
            b_transposed: true,
            b_batch: 0,
            c_stride: 768,
            c_batch: 0,
            allow_tf32: false,
        };
        let of = |matmul, alignment_bytes| Question {
            matmul,
            accumulates: false,
            alignment_bytes,
            workspace_bytes: 32 << 20,
        };
        let question = of(matmul, [256; 3]);
        assert_eq!(
            question.name(),
            "BF16,1,0,0,1,0,1024,768,3072,1,3072,0,3072,0,768,0,256,256,256,33554432"
        );
        assert!(question.is_timed());
        assert!(!Question { accumulates: true, ..question }.is_timed());
        assert!(!of(Matmul { m: 16, ..matmul }, [256; 3]).is_timed());
        let other = of(Matmul { a_transposed: true, b_transposed: false, ..matmul }, [256; 3]);
        assert_ne!(question.name(), other.name());
        assert_ne!(question.name(), of(matmul, [256, 16, 256]).name());
    }
}
