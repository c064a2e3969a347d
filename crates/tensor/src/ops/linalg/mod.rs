//! Matrix products. Vectors count as a row on the left and as a column on the right; leading
//! dimensions broadcast. Products that are added to a tensor are in `add_product.rs`.
//! Factorizations have files of their own, which stand on `matrices.rs`.

pub(crate) mod add_product;
pub(crate) mod cholesky;
pub(crate) mod lu;
pub(crate) mod matrices;
pub(crate) mod of_factors;
pub(crate) mod qr;
pub(crate) mod solve;
pub(crate) mod spectral;

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result, broadcast_shapes};
use plimsoll_cuda::Properties;
use smallvec::SmallVec;

use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use plimsoll_kernels::cpu::matmul as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Input 0 times input 1, under one of PyTorch's names: they differ in the dimensions they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatMul {
    /// `matmul`: vectors, matrices and batches of any kind.
    Any,
    /// `mm`: two matrices.
    Matrices,
    /// `bmm`: two batches of as many matrices.
    Batches,
    /// `mv`: a matrix and a vector.
    MatrixVector,
    /// `dot`: two vectors.
    Vectors,
}

impl Operation for MatMul {
    fn info(&self) -> &'static OpInfo {
        match self {
            MatMul::Any => &MATMUL,
            MatMul::Matrices => &MM,
            MatMul::Batches => &BMM,
            MatMul::MatrixVector => &MV,
            MatMul::Vectors => &DOT,
        }
    }

    /// `matmul` ends in another operation of PyTorch's for each kind of operands.
    fn node_name(&self, inputs: &[Meta]) -> Option<&'static str> {
        let (MatMul::Any, [a, b]) = (self, inputs) else { return None };
        match (a.shape().len(), b.shape().len()) {
            (1, 1) => Some("DotBackward0"),
            (2, 1) => Some("MvBackward0"),
            (2, 2) => Some("MmBackward0"),
            (1, 2) => Some("SqueezeBackward4"),
            (2, _) => None,
            _ => Some("UnsafeViewBackward0"),
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (a, b) = (inputs[0], inputs[1]);
        let op = self.info().name;
        check_dtypes(op, a.dtype, b.dtype)?;
        let wanted = match self {
            MatMul::Any => None,
            MatMul::Matrices => Some([2, 2]),
            MatMul::Batches => Some([3, 3]),
            MatMul::MatrixVector => Some([2, 1]),
            MatMul::Vectors => Some([1, 1]),
        };
        if let Some(ranks) = wanted {
            check_ranks(op, [a.shape(), b.shape()], ranks)?;
        }
        Ok(Inferred::one(Meta::contiguous(&product_shape(op, a.shape(), b.shape())?, a.dtype)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(1).when(needs.has(0)).and(Saves::input(0).when(needs.has(1)))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::matmul_workspace_bytes(inputs[0], inputs[1], &outputs[0])
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::matmul(launch)
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cuda::matmul_workspace_bytes(gpu, inputs[0], inputs[1], &outputs[0])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::matmul(launch)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (a, b) = (&backward.inputs[0], &backward.inputs[1]);
        let saved = |index: usize| backward.input(index);
        let grad = backward.grad()?;
        let left = backward.for_input(0, || left_gradient(grad, a, b, saved(1)?))?;
        let right = backward.for_input(1, || right_gradient(grad, a, b, saved(0)?))?;
        Ok(smallvec::smallvec![left, right])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}
/// The gradient of a product with the dimension back that a vector stands for.
fn matrix_gradient(grad: &Tensor, a: &Meta, b: &Meta) -> Result<Tensor> {
    let (row, column) = (a.shape().len() == 1, b.shape().len() == 1);
    let mut grad = grad.clone();
    if row {
        let at = if column { -1 } else { -2 };
        grad = grad.unsqueeze(at)?;
    }
    if column { grad.unsqueeze(-1) } else { Ok(grad) }
}

/// The gradient of the left factor, of the meta `a`, of a product with `right`, of the meta `b`.
pub(crate) fn left_gradient(grad: &Tensor, a: &Meta, b: &Meta, right: &Tensor) -> Result<Tensor> {
    let grad = matrix_gradient(grad, a, b)?;
    let right = if b.shape().len() == 1 { right.unsqueeze(-1)? } else { right.clone() };
    let product = reduced(&grad, &right.transpose(-2, -1)?, &matrix_shape(a, true))?;
    product.view(&signed(a.shape()))
}

/// The gradient of the right factor, of the meta `b`, of a product with `left`, of the meta `a`.
pub(crate) fn right_gradient(grad: &Tensor, a: &Meta, b: &Meta, left: &Tensor) -> Result<Tensor> {
    let grad = matrix_gradient(grad, a, b)?;
    let left = if a.shape().len() == 1 { left.unsqueeze(0)? } else { left.clone() };
    let rows = |x: &Tensor| x.reshape(&[-1, x.shape()[x.rank() - 1] as i64]);
    let is_empty = left.numel() == 0 || grad.numel() == 0;
    // A matrix that lies transposed, as a linear layer's weight does, gets a gradient that lies so:
    // the weight's own then lies as the weight, and is taken over instead of copied.
    let lies_transposed = matches!(b.layout.strides(), [1, _]) && b.shape()[1] > 1;
    if lies_transposed && !is_empty {
        return rows(&grad)?.t()?.matmul(&rows(&left)?)?.t();
    }
    // A matrix used for a whole batch: one product over all rows instead of a sum of products.
    if b.shape().len() <= 2 && left.rank() > 2 && !is_empty {
        return rows(&left)?.t()?.matmul(&rows(&grad)?)?.view(&signed(b.shape()));
    }
    let product = reduced(&left.transpose(-2, -1)?, &grad, &matrix_shape(b, false))?;
    product.view(&signed(b.shape()))
}

/// The product, summed over the leading dimensions in which an operand of `shape` was broadcast.
fn reduced(a: &Tensor, b: &Tensor, shape: &[usize]) -> Result<Tensor> {
    a.matmul(b)?.sum_to(shape)?.contiguous()
}

/// The shape of an operand as a matrix.
fn matrix_shape(meta: &Meta, is_left: bool) -> Dims {
    match *meta.shape() {
        [size] if is_left => [1, size].into_iter().collect(),
        [size] => [size, 1].into_iter().collect(),
        _ => meta.shape().into(),
    }
}

/// Sizes as arguments of views.
pub(crate) fn signed(shape: &[usize]) -> SmallVec<[i64; 6]> {
    shape.iter().map(|&size| size as i64).collect()
}

/// The shape of a product.
pub(crate) fn product_shape(op: &'static str, a: &[usize], b: &[usize]) -> Result<Dims> {
    let (rows, columns) = check_sizes(op, a, b)?;
    let lead = |shape: &[usize]| shape.len().saturating_sub(2);
    let mut shape = broadcast_shapes(op, &[&a[..lead(a)], &b[..lead(b)]])?;
    shape.extend(rows.into_iter().chain(columns));
    Ok(shape)
}

/// Refuses factors of other dimensions than `ranks`; batches must be of one size.
pub(crate) fn check_ranks(
    op: &'static str,
    shapes: [&[usize]; 2],
    ranks: [usize; 2],
) -> Result<()> {
    for (shape, rank) in shapes.iter().zip(ranks) {
        if shape.len() != rank {
            let what = ["", "a vector", "a matrix", "a batch of matrices"][rank];
            return Err(Error::shape(
                op,
                format!("the factor of shape {shape:?} should be {what}; `matmul` takes others"),
            ));
        }
    }
    let [a, b] = shapes;
    if ranks == [3, 3] && a[0] != b[0] {
        let why = format!("batches of {} and {} matrices; `matmul` broadcasts", a[0], b[0]);
        return Err(Error::shape(op, why));
    }
    Ok(())
}

/// The rows and columns of the result, `None` where a vector has none.
fn check_sizes(
    op: &'static str,
    a: &[usize],
    b: &[usize],
) -> Result<(Option<usize>, Option<usize>)> {
    let refuse =
        |why: String| Err(Error::shape(op, format!("cannot multiply {a:?} by {b:?}: {why}")));
    let (rows, left) = match *a {
        [] => return refuse("the left operand has no dimensions; use `mul` for a number".into()),
        [k] => (None, k),
        [.., m, k] => (Some(m), k),
    };
    let (right, columns) = match *b {
        [] => return refuse("the right operand has no dimensions; use `mul` for a number".into()),
        [k] => (k, None),
        [.., k, n] => (k, Some(n)),
    };
    if left != right {
        return refuse(format!(
            "the left operand has {left} columns and the right one {right} rows; is a `transpose` missing?"
        ));
    }
    Ok((rows, columns))
}

/// Factors have one dtype, and one that has products.
pub(crate) fn check_dtypes(op: &'static str, a: DType, b: DType) -> Result<()> {
    if a != b {
        return Err(Error::dtype(
            op,
            format!("the operands are {a} and {b}; convert one with `to`, products do not promote"),
        ));
    }
    if !MATMUL.dtypes.contains(a) {
        return Err(Error::dtype(
            op,
            format!("there is no product of {a}; convert the operands with `to` first"),
        ));
    }
    Ok(())
}

/// What all products have in common.
pub(crate) const fn product(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        cuda: OnCuda::Library,
        name,
        family: "linalg",
        signatures,
        differentiable: true,
        in_place: false,
        out: Out::Exact,
        dtypes: DTypes::NUMBERS,
        ..OpInfo::BARE
    }
}

/// What is made of products and views.
const fn composed(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { cuda: OnCuda::Composed, out: Out::Cast, ..product(name, signatures) }
}

static MATMUL: OpInfo = product("matmul", &["matmul(Tensor self, Tensor other) -> Tensor"]);
static MM: OpInfo = product("mm", &["mm(Tensor self, Tensor mat2) -> Tensor"]);
static BMM: OpInfo = product("bmm", &["bmm(Tensor self, Tensor mat2) -> Tensor"]);
static MV: OpInfo = product("mv", &["mv(Tensor self, Tensor vec) -> Tensor"]);
static DOT: OpInfo = product("dot", &["dot(Tensor self, Tensor tensor) -> Tensor"]);

static VDOT: OpInfo = composed("vdot", &["vdot(Tensor self, Tensor other) -> Tensor"]);
static INNER: OpInfo = composed("inner", &["inner(Tensor self, Tensor other) -> Tensor"]);
static OUTER: OpInfo = OpInfo {
    dtypes: DTypes::ALL,
    ..composed("outer", &["outer(Tensor self, Tensor vec2) -> Tensor"])
};
static GER: OpInfo =
    OpInfo { dtypes: DTypes::ALL, ..composed("ger", &["ger(Tensor self, Tensor vec2) -> Tensor"]) };
static KRON: OpInfo = OpInfo {
    dtypes: DTypes::ALL,
    ..composed("kron", &["kron(Tensor self, Tensor other) -> Tensor"])
};
static ADDR: OpInfo = OpInfo {
    dtypes: DTypes::ALL,
    in_place: true,
    ..composed(
        "addr",
        &[
            "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        ],
    )
};
static TENSORDOT: OpInfo = composed(
    "tensordot",
    &["tensordot(Tensor input, Tensor other, int[] dims_self, int[] dims_other) -> Tensor"],
);
static EINSUM: OpInfo = OpInfo {
    out: Out::None,
    ..composed("einsum", &["einsum(str equation, Tensor[] tensors) -> Tensor"])
};
static CHAIN: OpInfo = OpInfo {
    home: Home::Linalg,
    ..composed("linalg_multi_dot", &["linalg_multi_dot(Tensor[] tensors) -> Tensor"])
};
static VECDOT: OpInfo = OpInfo {
    home: Home::Linalg,
    dtypes: DTypes::FLOATS,
    ..composed("linalg_vecdot", &["linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor"])
};
static CROSS: OpInfo =
    composed("cross", &["cross(Tensor self, Tensor other, int? dim=None) -> Tensor"]);
static LINALG_CROSS: OpInfo = OpInfo {
    home: Home::Linalg,
    ..composed(
        "linalg_cross",
        &["linalg_cross(Tensor input, Tensor other, *, int dim=-1) -> Tensor"],
    )
};

static TRACE: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    out: Out::None,
    ..composed("trace", &["trace(Tensor self) -> Tensor"])
};
static LINALG_DIAGONAL: OpInfo = OpInfo {
    home: Home::Linalg,
    dtypes: DTypes::ALL,
    out: Out::None,
    ..composed(
        "linalg_diagonal",
        &["linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor"],
    )
};
static VANDER: OpInfo = OpInfo {
    home: Home::Linalg,
    dtypes: DTypes::of(&[
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F32,
        DType::F64,
    ]),
    out: Out::None,
    ..composed("linalg_vander", &["linalg_vander(Tensor x, *, int? N=None) -> Tensor"])
};
static MATRIX_POWER: OpInfo =
    composed("matrix_power", &["matrix_power(Tensor self, int n) -> Tensor"]);
static LINALG_MATRIX_POWER: OpInfo = OpInfo {
    home: Home::Linalg,
    ..composed("linalg_matrix_power", &["linalg_matrix_power(Tensor A, int n) -> Tensor"])
};

pub(crate) static OPS: &[&OpInfo] = &[
    &TRACE,
    &LINALG_DIAGONAL,
    &VANDER,
    &MATRIX_POWER,
    &LINALG_MATRIX_POWER,
    &MATMUL,
    &MM,
    &BMM,
    &MV,
    &DOT,
    &VDOT,
    &INNER,
    &OUTER,
    &GER,
    &KRON,
    &ADDR,
    &TENSORDOT,
    &EINSUM,
    &CHAIN,
    &VECDOT,
    &CROSS,
    &LINALG_CROSS,
    &add_product::ADDMM,
    &add_product::ADDMV,
    &add_product::ADDBMM,
    &add_product::BADDBMM,
];
