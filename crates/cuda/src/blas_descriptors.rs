//! What cuBLASLt is told of a product: descriptors of the product and its three matrices, and what
//! an algorithm must make do with. Which algorithm it takes is `blas.rs`.

use cudarc::cublaslt::sys::cublasLtMatmulDescAttributes_t as Attribute;
use cudarc::cublaslt::{result, sys};
use plimsoll_core::Result;

use crate::error::Told;
use crate::{BlasType, Matmul};

/// A product and its matrices, as the library knows them: its first operand is our `b`. Alive until
/// [`Descriptors::destroy`], at most as long as the context.
#[derive(Clone, Copy)]
pub(crate) struct Descriptors {
    pub(crate) product: sys::cublasLtMatmulDesc_t,
    pub(crate) a: sys::cublasLtMatrixLayout_t,
    pub(crate) b: sys::cublasLtMatrixLayout_t,
    pub(crate) c: sys::cublasLtMatrixLayout_t,
}

impl Descriptors {
    /// Of a product whose row lies at `row`, if it adds one.
    pub(crate) fn new(matmul: &Matmul, row: usize) -> Result<Descriptors> {
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
        if matmul.adds_row {
            // A column of the library's result is a row of ours.
            let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS as u32;
            attribute(product, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
            attribute(product, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &row)?;
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
        Ok(Descriptors { product, a, b, c })
    }

    /// Says where the row that the next product adds lies.
    pub(crate) fn set_row(&self, row: usize) -> Result<()> {
        attribute(self.product, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &row)
    }

    /// Gives them back.
    ///
    /// # Safety
    /// No copy of them is used any more.
    pub(crate) unsafe fn destroy(self) {
        // SAFETY: made in `new`, and destroyed once, as nobody has another copy.
        unsafe {
            let _ = result::destroy_matmul_desc(self.product);
            for matrix in [self.a, self.b, self.c] {
                let _ = result::destroy_matrix_layout(matrix);
            }
        }
    }
}

/// What an algorithm must make do with.
pub(crate) struct Preference(pub(crate) sys::cublasLtMatmulPreference_t);

impl Preference {
    /// At most so large a workspace, and operands `A`, `B` and `C` that are aligned so.
    pub(crate) fn new(workspace_bytes: usize, [a, b, c]: [u32; 3]) -> Result<Preference> {
        use sys::cublasLtMatmulPreferenceAttributes_t as A;
        let preference =
            Preference(result::create_matmul_pref().told("cublasLtMatmulPreferenceCreate")?);
        preference.set(A::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes)?;
        // The library's A is our `b`, and its C and D are both our `c`.
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &b)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &a)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c)?;
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
