//! Matrix products by cuBLASLt. Row-major in, row-major out: a row-major matrix is the transpose of
//! a column-major one, so the library is asked for `C^T = B^T A^T`. The workspace is the caller's,
//! from the arena like all memory.

use std::collections::HashMap;

use cudarc::cublaslt::sys::cublasLtMatmulDescAttributes_t as Attribute;
use cudarc::cublaslt::{result, sys};
use plimsoll_core::{Error, Result};
use plimsoll_memory::StreamId;

use crate::error::Told;
use crate::{Beside, BlasType, Context, Matmul, MatmulMemory};

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
    /// Of `A`, `B` and `C`.
    alignment_bytes: [u32; 3],
    workspace_bytes: usize,
}

/// The library's handle, and the algorithm that it chose for each shape seen.
pub(crate) struct Blas {
    handle: sys::cublasLtHandle_t,
    /// Nothing where the library cannot do beside a product what was asked for.
    plans: HashMap<Question, Option<Plan>>,
}

// SAFETY: cuBLASLt handles and descriptors may be used from any thread; the mutex around `Blas`
// keeps it to one at a time.
unsafe impl Send for Blas {}

#[derive(Clone, Copy)]
struct Plan {
    product: sys::cublasLtMatmulDesc_t,
    a: sys::cublasLtMatrixLayout_t,
    b: sys::cublasLtMatrixLayout_t,
    c: sys::cublasLtMatrixLayout_t,
    algorithm: sys::cublasLtMatmulAlgo_t,
}

impl Context {
    /// Queues a matrix product, times `alpha`, plus `beta` times what `c` holds, and what `matmul`
    /// does beside it. `false` if the library cannot do that beside such a product: then nothing is
    /// queued.
    ///
    /// # Safety
    /// `memory` holds addresses of this GPU's memory with the matrices as `matmul` describes them
    /// and a workspace of that size; the stream may read `a`, `b` and a row that is added, and
    /// write `c`, sums and the workspace.
    pub unsafe fn matmul(
        &self,
        stream: StreamId,
        matmul: &Matmul,
        [alpha, beta]: [f64; 2],
        memory: MatmulMemory,
    ) -> Result<bool> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        let mut blas = self.blas.lock();
        let blas = match &mut *blas {
            Some(blas) => blas,
            empty => empty.insert(Blas::open()?),
        };
        let MatmulMemory { a, b, c, beside, workspace, workspace_bytes } = memory;
        let question = Question {
            matmul: *matmul,
            alignment_bytes: [a, b, c].map(alignment_bytes),
            workspace_bytes,
        };
        let plan = blas.plan(&question, beside)?;
        let Some(plan) = plan else { return Ok(false) };
        if matmul.beside != Beside::Nothing {
            // The lock is held until the product is queued, so no other call changes it meanwhile.
            attribute(plan.product, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &beside)?;
        }
        let alpha = Factor::of(matmul.dtype, alpha);
        let beta = Factor::of(matmul.dtype, beta);
        // SAFETY: descriptors belong to the plan and live as long as the context; the pointers are
        // the caller's promise. The library computes B^T A^T, so its first operand is our `b`.
        let queued = unsafe {
            result::matmul(
                blas.handle,
                plan.product,
                alpha.pointer(),
                beta.pointer(),
                b as *const _,
                plan.b,
                a as *const _,
                plan.a,
                c as *const _,
                plan.c,
                c as *mut _,
                plan.c,
                &plan.algorithm,
                workspace as *mut _,
                workspace_bytes,
                handle.cast(),
            )
        };
        match queued {
            Err(refused) if matmul.is_refused_by(refused) => {
                blas.plans.insert(question, None);
                Ok(false)
            }
            queued => queued.told("cublasLtMatmul").map(|()| true),
        }
    }
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

impl Matmul {
    /// Whether the library's answer is that it cannot make the sums beside this product, which can
    /// be made apart.
    fn is_refused_by(&self, answer: result::CublasError) -> bool {
        use sys::cublasStatus_t as Status;
        let refuses = matches!(
            answer.0,
            Status::CUBLAS_STATUS_NOT_SUPPORTED
                | Status::CUBLAS_STATUS_INVALID_VALUE
                | Status::CUBLAS_STATUS_ARCH_MISMATCH
        );
        refuses && self.beside == Beside::SumsRows
    }
}

impl Blas {
    fn open() -> Result<Blas> {
        // SAFETY: only tries to open the library.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::unsupported(
                "matmul",
                "matrix products on CUDA need the cuBLASLt library (libcublasLt.so), which is not installed",
            ));
        }
        let handle = result::create_handle().told("cublasLtCreate")?;
        Ok(Blas { handle, plans: HashMap::new() })
    }

    /// The plan for products like the one that `question` is of, whose row or sums lie at `beside`.
    fn plan(&mut self, question: &Question, beside: usize) -> Result<Option<Plan>> {
        if let Some(plan) = self.plans.get(question) {
            return Ok(*plan);
        }
        let matmul = &question.matmul;
        use sys::cublasComputeType_t as Compute;
        use sys::cudaDataType_t as Data;
        let (data, scale, compute) = match matmul.dtype {
            BlasType::F32 if matmul.allow_tf32 => {
                (Data::CUDA_R_32F, Data::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F_FAST_TF32)
            }
            BlasType::F32 => (Data::CUDA_R_32F, Data::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F),
            BlasType::F64 => (Data::CUDA_R_64F, Data::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F),
            BlasType::F16 => (Data::CUDA_R_16F, Data::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F),
            BlasType::BF16 => (Data::CUDA_R_16BF, Data::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F),
        };
        let product =
            result::create_matmul_desc(compute, scale).told("cublasLtMatmulDescCreate")?;
        // cublasOperation_t: 0 is as it is, 1 transposed.
        let [of_a, of_b] = [matmul.b_transposed, matmul.a_transposed].map(i32::from);
        attribute(product, Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &of_a)?;
        attribute(product, Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &of_b)?;
        use sys::cublasLtEpilogue_t as Epilogue;
        let epilogue = match matmul.beside {
            Beside::Nothing => None,
            // A column of the library's result is a row of ours.
            Beside::AddsRow => Some(Epilogue::CUBLASLT_EPILOGUE_BIAS),
            // The library's B is our `a`.
            Beside::SumsRows => Some(Epilogue::CUBLASLT_EPILOGUE_BGRADB),
        };
        if let Some(epilogue) = epilogue {
            let epilogue = epilogue as u32;
            attribute(product, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
            attribute(product, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &beside)?;
        }
        let of_result = if matmul.is_widened { Data::CUDA_R_32F } else { data };
        // Row-major r x c with stride s is column-major c x r with leading dimension s.
        let layout = |data, rows: usize, columns: usize, stride: usize, step: usize| {
            matrix(
                data,
                rows as u64,
                columns as u64,
                stride as i64,
                matmul.batch as i32,
                step as i64,
            )
        };
        let (m, n, k) = (matmul.m, matmul.n, matmul.k);
        let a = if matmul.a_transposed {
            layout(data, m, k, matmul.a_stride, matmul.a_batch)?
        } else {
            layout(data, k, m, matmul.a_stride, matmul.a_batch)?
        };
        let b = if matmul.b_transposed {
            layout(data, k, n, matmul.b_stride, matmul.b_batch)?
        } else {
            layout(data, n, k, matmul.b_stride, matmul.b_batch)?
        };
        let c = layout(of_result, n, m, matmul.c_stride, matmul.c_batch)?;
        let preference = Preference::new(question)?;
        // SAFETY: all descriptors are alive.
        let found = unsafe {
            result::get_matmul_algo_heuristic(self.handle, product, b, a, c, c, preference.0)
        };
        let plan = match found {
            Err(refused) if matmul.is_refused_by(refused) => {
                // SAFETY: made above, in no plan, and destroyed once.
                unsafe {
                    let _ = result::destroy_matmul_desc(product);
                    for matrix in [a, b, c] {
                        let _ = result::destroy_matrix_layout(matrix);
                    }
                }
                None
            }
            found => {
                let algorithm = found.told("cublasLtMatmulAlgoGetHeuristic")?.algo;
                Some(Plan { product, a, b, c, algorithm })
            }
        };
        self.plans.insert(*question, plan);
        Ok(plan)
    }
}

/// What an algorithm must make do with.
struct Preference(sys::cublasLtMatmulPreference_t);

impl Preference {
    fn new(question: &Question) -> Result<Preference> {
        use sys::cublasLtMatmulPreferenceAttributes_t as A;
        let preference =
            Preference(result::create_matmul_pref().told("cublasLtMatmulPreferenceCreate")?);
        preference.set(A::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &question.workspace_bytes)?;
        // The library's A is our `b`, and its C and D are both our `c`.
        let [a, b, c] = &question.alignment_bytes;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, b)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, a)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c)?;
        Ok(preference)
    }

    /// Sets an attribute whose type is `T`: 64 bits for the workspace, 32 for alignments.
    fn set<T>(&self, which: sys::cublasLtMatmulPreferenceAttributes_t, value: &T) -> Result<()> {
        // SAFETY: the preference is alive, and `new` passes each attribute in its documented type.
        unsafe {
            result::set_matmul_pref_attribute(
                self.0,
                which,
                std::ptr::from_ref(value).cast(),
                size_of::<T>(),
            )
        }
        .told("cublasLtMatmulPreferenceSetAttribute")
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and destroyed once.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}

/// Sets an attribute of a product whose type is `T`: 32 bits for what is enumerated, an address
/// for the bias.
fn attribute<T>(product: sys::cublasLtMatmulDesc_t, which: Attribute, value: &T) -> Result<()> {
    // SAFETY: the descriptor is alive, and callers pass each attribute in its documented type.
    unsafe {
        result::set_matmul_desc_attribute(
            product,
            which,
            std::ptr::from_ref(value).cast(),
            size_of::<T>(),
        )
    }
    .told("cublasLtMatmulDescSetAttribute")
}

fn matrix(
    data: sys::cudaDataType_t,
    rows: u64,
    columns: u64,
    stride: i64,
    batch: i32,
    step: i64,
) -> Result<sys::cublasLtMatrixLayout_t> {
    use sys::cublasLtMatrixLayoutAttribute_t as Attribute;
    let layout = result::create_matrix_layout(data, rows, columns, stride)
        .told("cublasLtMatrixLayoutCreate")?;
    // SAFETY: the layout is alive; the count is 32-bit and the step 64-bit, as the library
    // documents.
    unsafe {
        result::set_matrix_layout_attribute(
            layout,
            Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
            std::ptr::from_ref(&batch).cast(),
            size_of::<i32>(),
        )
        .and_then(|()| {
            result::set_matrix_layout_attribute(
                layout,
                Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                std::ptr::from_ref(&step).cast(),
                size_of::<i64>(),
            )
        })
    }
    .told("cublasLtMatrixLayoutSetAttribute")?;
    Ok(layout)
}

#[cfg(test)]
mod tests {
    use super::alignment_bytes;

    #[test]
    fn alignment_is_the_largest_power_of_two_that_divides_and_that_the_library_knows() {
        let of = [0x7000_0000, 0x7000_0002, 0x7000_0030, 0x7000_0080, 0x7000_0101];
        assert_eq!(of.map(alignment_bytes), [256, 2, 16, 128, 1]);
    }
}
