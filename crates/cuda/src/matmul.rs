//! What a matrix product is described by. Plain values, which need no driver; `blas.rs` takes them
//! to cuBLASLt.

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

/// `C[b] = A[b] B[b]` for each of `batch`: `A` is m x k, `B` k x n, `C` m x n. `A` and `B` are
/// row-major or transposed with a leading stride, `C` is row-major with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matmul {
    /// The element type of `A` and `B`, and of `C` unless that is wider.
    pub dtype: BlasType,
    /// Whether `C` is float32 though its factors are halves.
    pub is_widened: bool,
    /// Whether a row of `n` elements is added to every row of the result.
    pub adds_row: bool,
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
    /// Elements from row to row of `C`.
    pub c_stride: usize,
    /// Elements from one `C` to the next.
    pub c_batch: usize,
    /// Whether products of float32 may round their factors to TF32.
    pub allow_tf32: bool,
}

/// Where the operands of a product are.
#[derive(Clone, Copy, Debug)]
pub struct MatmulMemory {
    /// The first element of `A`.
    pub a: usize,
    /// The first element of `B`.
    pub b: usize,
    /// The first element of `C`.
    pub c: usize,
    /// The first element of the row that is added, of `C`'s type; 0 if there is none.
    pub row: usize,
    /// Scratch of the library.
    pub workspace: usize,
    /// Its size.
    pub workspace_bytes: usize,
}
