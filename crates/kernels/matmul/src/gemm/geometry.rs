//! The sizes and strides of a product, before any pointer: what a plan is made from.

use plimsoll_core::DType;

/// Element strides of a matrix. Any value is legal for the factors: 0 for expanded, transposed,
/// negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// From one row to the next, in elements.
    pub row: isize,
    /// From one column to the next, in elements.
    pub column: isize,
}

impl Strides {
    /// Rows one after another, each of `columns` elements.
    pub fn row_major(columns: usize) -> Strides {
        Strides { row: columns as isize, column: 1 }
    }

    /// Columns one after another, each of `rows` elements.
    pub fn column_major(rows: usize) -> Strides {
        Strides { row: 1, column: rows as isize }
    }

    pub(super) fn transposed(self) -> Strides {
        Strides { row: self.column, column: self.row }
    }
}

/// One dimension of a batch, outermost first; strides in elements, 0 where an operand is broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchDim {
    /// How many products.
    pub size: usize,
    /// Stride of A.
    pub a: isize,
    /// Stride of B.
    pub b: isize,
    /// Stride of C.
    pub c: isize,
}

/// The sizes and strides of `C[m, n] = A[m, k] * B[k, n]`, once or for every element of `batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GemmShape<'a> {
    /// Element type of all three matrices: a float type, `i32`, `i64` or `u8`.
    pub dtype: DType,
    /// Batch dimensions; empty for one product.
    pub batch: &'a [BatchDim],
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Strides of A.
    pub a: Strides,
    /// Strides of B.
    pub b: Strides,
    /// Strides of C; no two elements of C may share memory.
    pub c: Strides,
}

impl GemmShape<'_> {
    /// How many products the batch holds.
    pub fn products(&self) -> usize {
        self.batch.iter().map(|dim| dim.size).product()
    }

    /// Element offsets of the `index`-th product's A, B and C.
    pub(super) fn offsets(&self, mut index: usize) -> [isize; 3] {
        let mut offsets = [0; 3];
        for dim in self.batch.iter().rev() {
            let position = (index % dim.size) as isize;
            index /= dim.size;
            offsets[0] += position * dim.a;
            offsets[1] += position * dim.b;
            offsets[2] += position * dim.c;
        }
        offsets
    }
}

/// One product of the batch, transposed so that C's columns are contiguous where it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Strides,
    pub(super) b: Strides,
    pub(super) c: Strides,
}

impl Geometry {
    /// The product as given.
    pub(super) fn of(shape: &GemmShape) -> Geometry {
        let GemmShape { m, n, k, a, b, c, .. } = *shape;
        Geometry { m, n, k, a, b, c }
    }

    /// The same numbers as `C^T = B^T * A^T`: A and B change places.
    pub(super) fn transposed(self) -> Geometry {
        Geometry {
            m: self.n,
            n: self.m,
            k: self.k,
            a: self.b.transposed(),
            b: self.a.transposed(),
            c: self.c.transposed(),
        }
    }

    /// Multiply-adds, saturating.
    pub(super) fn work(&self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k)
    }
}
