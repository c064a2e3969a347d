//! Matrix products by cuBLASLt. Row-major in, row-major out: a row-major matrix is the transpose of a column-major one, so the
//! library is asked for `C^T = B^T A^T`. The workspace is the caller's, from the arena like all memory.

use std::collections::HashMap;

use cudarc::cublaslt::{result, sys};
use plimsoll_core::{Error, Result};
use plimsoll_memory::StreamId;

use crate::Context;
use crate::error::Told;

/// Element types of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlasType {
    /// float32, accumulated in float32.
    F32,
    /// float64.
    F64,
    /// float16, accumulated in float32.
    F16,
    /// bfloat16, accumulated in float32.
    BF16,
}

/// `C[b] = A[b] B[b]` for each of `batch`: `A` is m x k, `B` k x n, `C` m x n, each row-major or transposed with a leading stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matmul {
    /// The element type of all three.
    pub dtype: BlasType,
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// The length of each sum.
    pub k: usize,
    /// How many products.
    pub batch: usize,
    /// Elements from row to row of `A`, or from column to column if `a_transposed`.
    pub a_stride: usize,
    /// Whether `A` lies column by column.
    pub a_transposed: bool,
    /// Elements from one `A` to the next; 0 shares one.
    pub a_batch: usize,
    /// As `a_stride`, of `B`.
    pub b_stride: usize,
    /// Whether `B` lies column by column.
    pub b_transposed: bool,
    /// Elements from one `B` to the next; 0 shares one.
    pub b_batch: usize,
}

/// The library's handle, and the algorithm that it chose for each shape seen.
pub(crate) struct Blas {
    handle: sys::cublasLtHandle_t,
    plans: HashMap<(Matmul, usize), Plan>,
}

// SAFETY: cuBLASLt handles and descriptors may be used from any thread; the mutex around `Blas` keeps it to one at a time.
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
    /// Queues a matrix product.
    ///
    /// # Safety
    /// `a`, `b` and `c` are memory of this GPU that holds the matrices as `matmul` describes them, `workspace` is `workspace_bytes`
    /// of it, and the stream may read `a` and `b` and write `c` and `workspace`.
    #[expect(clippy::too_many_arguments, reason = "three matrices and a workspace")]
    pub unsafe fn matmul(
        &self,
        stream: StreamId,
        matmul: &Matmul,
        a: usize,
        b: usize,
        c: usize,
        workspace: usize,
        workspace_bytes: usize,
    ) -> Result<()> {
        self.bind()?;
        let handle = self.handle(stream)?;
        let mut blas = self.blas.lock();
        let blas = match &mut *blas {
            Some(blas) => blas,
            empty => empty.insert(Blas::open()?),
        };
        let plan = blas.plan(matmul, workspace_bytes)?;
        let (one, zero) = (Factor::one(matmul.dtype), Factor::zero(matmul.dtype));
        // SAFETY: descriptors belong to the plan and live as long as the context; the pointers are the caller's promise. The library
        // computes B^T A^T, so its first operand is our `b`.
        unsafe {
            result::matmul(
                blas.handle,
                plan.product,
                one.pointer(),
                zero.pointer(),
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
        }
        .told("cublasLtMatmul")
    }
}

/// A scale factor in the type that the product is scaled in.
enum Factor {
    F32(f32),
    F64(f64),
}

impl Factor {
    fn one(dtype: BlasType) -> Factor {
        if dtype == BlasType::F64 { Factor::F64(1.0) } else { Factor::F32(1.0) }
    }

    fn zero(dtype: BlasType) -> Factor {
        if dtype == BlasType::F64 { Factor::F64(0.0) } else { Factor::F32(0.0) }
    }

    fn pointer(&self) -> *const std::ffi::c_void {
        match self {
            Factor::F32(value) => std::ptr::from_ref(value).cast(),
            Factor::F64(value) => std::ptr::from_ref(value).cast(),
        }
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

    fn plan(&mut self, matmul: &Matmul, workspace_bytes: usize) -> Result<Plan> {
        if let Some(plan) = self.plans.get(&(*matmul, workspace_bytes)) {
            return Ok(*plan);
        }
        use sys::cublasComputeType_t as Compute;
        use sys::cudaDataType_t as Data;
        let (data, scale, compute) = match matmul.dtype {
            // Not TF32: float32 in PyTorch means float32 unless the user says otherwise.
            BlasType::F32 => (Data::CUDA_R_32F, Data::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F),
            BlasType::F64 => (Data::CUDA_R_64F, Data::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F),
            BlasType::F16 => (Data::CUDA_R_16F, Data::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F),
            BlasType::BF16 => (Data::CUDA_R_16BF, Data::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F),
        };
        let product =
            result::create_matmul_desc(compute, scale).told("cublasLtMatmulDescCreate")?;
        transpose(
            product,
            sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA,
            matmul.b_transposed,
        )?;
        transpose(
            product,
            sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSB,
            matmul.a_transposed,
        )?;
        // Row-major r x c with stride s is column-major c x r with leading dimension s.
        let layout = |rows: usize, columns: usize, stride: usize, step: usize| {
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
            layout(m, k, matmul.a_stride, matmul.a_batch)?
        } else {
            layout(k, m, matmul.a_stride, matmul.a_batch)?
        };
        let b = if matmul.b_transposed {
            layout(k, n, matmul.b_stride, matmul.b_batch)?
        } else {
            layout(n, k, matmul.b_stride, matmul.b_batch)?
        };
        let c = layout(n, m, n, m * n)?;
        let preference = result::create_matmul_pref().told("cublasLtMatmulPreferenceCreate")?;
        // SAFETY: the preference is alive, and the attribute is a 64-bit count of bytes.
        unsafe {
            result::set_matmul_pref_attribute(
                preference,
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                std::ptr::from_ref(&workspace_bytes).cast(),
                size_of::<usize>(),
            )
        }
        .told("cublasLtMatmulPreferenceSetAttribute")?;
        // SAFETY: all descriptors are alive.
        let found = unsafe {
            result::get_matmul_algo_heuristic(self.handle, product, b, a, c, c, preference)
        };
        // SAFETY: the preference is destroyed once.
        let _ = unsafe { result::destroy_matmul_pref(preference) };
        let algorithm = found.told("cublasLtMatmulAlgoGetHeuristic")?.algo;
        let plan = Plan { product, a, b, c, algorithm };
        self.plans.insert((*matmul, workspace_bytes), plan);
        Ok(plan)
    }
}

fn transpose(
    product: sys::cublasLtMatmulDesc_t,
    which: sys::cublasLtMatmulDescAttributes_t,
    transposed: bool,
) -> Result<()> {
    // cublasOperation_t: 0 is as it is, 1 transposed.
    let operation = i32::from(transposed);
    // SAFETY: the descriptor is alive, and the attribute is a 32-bit enumeration.
    unsafe {
        result::set_matmul_desc_attribute(
            product,
            which,
            std::ptr::from_ref(&operation).cast(),
            size_of::<i32>(),
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
    // SAFETY: the layout is alive; the count is 32-bit and the step 64-bit, as the library documents.
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
