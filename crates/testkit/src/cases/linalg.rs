//! Matrix products: vectors, matrices, batches, broadcast batches, empty sizes; products that are
//! added to a tensor, and those over dimensions of choice.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{CrossOptions, ProductOptions, Tensor};

use super::input::any;
use super::{Case, FLOATS, NUMBERS};
use crate::layouts::Arrangement::{Contiguous, Stepped, Transposed};
use crate::oracle::linalg;

pub(super) fn cases() -> Vec<Case> {
    [products(), named(), added(), contracted()].into_iter().flatten().collect()
}

/// `matmul` under the names that take certain dimensions only.
fn named() -> Vec<Case> {
    let two = |a: &[usize], b: &[usize]| [any(a), any(b)];
    let with_out = |a: &[usize], b: &[usize], out: &[usize]| [any(a), any(b), any(out)];
    let finish = |case: Case| case.dtypes(&NUMBERS).tolerance(8.0, 18.0);
    vec![
        finish(
            Case::new("mm", "torch.mm(a, b)", two(&[3, 4], &[4, 5]))
                .run(|t| t[0].mm(&t[1]))
                .oracle(|x| linalg::matmul(&x[0], &x[1]))
                .gradient(&[0, 1]),
        ),
        finish(
            Case::new("mm", "torch.mm(a, b, out=c)", with_out(&[3, 4], &[4, 5], &[3, 5]))
                .writes(2, |t| t[0].mm_out(&t[1], &t[2]))
                .oracle(|x| linalg::matmul(&x[0], &x[1]))
                .brief(),
        ),
        finish(
            Case::new("bmm", "torch.bmm(a, b)", two(&[2, 3, 4], &[2, 4, 2]))
                .run(|t| t[0].bmm(&t[1]))
                .oracle(|x| linalg::matmul(&x[0], &x[1]))
                .gradient(&[0, 1]),
        ),
        finish(
            Case::new(
                "bmm",
                "torch.bmm(a, b, out=c)",
                with_out(&[2, 3, 4], &[2, 4, 2], &[2, 3, 2]),
            )
            .writes(2, |t| t[0].bmm_out(&t[1], &t[2]))
            .oracle(|x| linalg::matmul(&x[0], &x[1]))
            .brief(),
        ),
        finish(
            Case::new("mv", "torch.mv(a, b)", two(&[3, 4], &[4]))
                .run(|t| t[0].mv(&t[1]))
                .oracle(|x| linalg::matmul(&x[0], &x[1]))
                .gradient(&[0, 1]),
        ),
        finish(
            Case::new("mv", "torch.mv(a, b, out=c)", with_out(&[3, 4], &[4], &[3]))
                .writes(2, |t| t[0].mv_out(&t[1], &t[2]))
                .oracle(|x| linalg::matmul(&x[0], &x[1]))
                .brief(),
        ),
        finish(
            Case::new("dot", "torch.dot(a, b)", two(&[4], &[4]))
                .run(|t| t[0].dot(&t[1]))
                .oracle(|x| linalg::matmul(&x[0], &x[1]))
                .gradient(&[0, 1]),
        ),
        finish(
            Case::new("dot", "torch.dot(a, b, out=c)", with_out(&[4], &[4], &[]))
                .writes(2, |t| t[0].dot_out(&t[1], &t[2]))
                .oracle(|x| linalg::matmul(&x[0], &x[1]))
                .plain(),
        ),
        finish(
            Case::new("vdot", "torch.vdot(a, b)", two(&[4], &[4]))
                .run(|t| t[0].vdot(&t[1]))
                .oracle(|x| linalg::matmul(&x[0], &x[1]))
                .gradient(&[0, 1]),
        ),
    ]
}

type Add = fn(&Tensor, &Tensor, &Tensor, ProductOptions) -> Result<Tensor>;
type AddIn = for<'a> fn(&'a Tensor, &Tensor, &Tensor, ProductOptions) -> Result<&'a Tensor>;
type AddInto = fn(&Tensor, &Tensor, &Tensor, ProductOptions, &Tensor) -> Result<()>;

/// A sum with a product: its name and forms, the shapes of tensor, factors and result, the product
/// as labels.
struct Added {
    op: &'static str,
    forms: (Add, AddIn, AddInto),
    shapes: [&'static [usize]; 4],
    labels: &'static str,
}

fn added() -> Vec<Case> {
    let all = [
        Added {
            op: "addmm",
            forms: (Tensor::addmm_with, Tensor::addmm_with_, Tensor::addmm_with_out),
            shapes: [&[5], &[3, 4], &[4, 5], &[3, 5]],
            labels: "ij,jk->ik",
        },
        Added {
            op: "addmv",
            forms: (Tensor::addmv_with, Tensor::addmv_with_, Tensor::addmv_with_out),
            shapes: [&[1], &[3, 4], &[4], &[3]],
            labels: "ij,j->i",
        },
        Added {
            op: "addbmm",
            forms: (Tensor::addbmm_with, Tensor::addbmm_with_, Tensor::addbmm_with_out),
            shapes: [&[3, 1], &[2, 3, 4], &[2, 4, 5], &[3, 5]],
            labels: "bij,bjk->ik",
        },
        Added {
            op: "baddbmm",
            forms: (Tensor::baddbmm_with, Tensor::baddbmm_with_, Tensor::baddbmm_with_out),
            shapes: [&[2, 1, 5], &[2, 3, 4], &[2, 4, 5], &[2, 3, 5]],
            labels: "bij,bjk->bik",
        },
    ];
    all.into_iter().flat_map(added_rows).collect()
}

fn added_rows(added: Added) -> Vec<Case> {
    let Added { op, forms: (new, in_place, into), shapes: [own, left, right, result], labels } =
        added;
    let finish = move |case: Case, beta: f64, alpha: f64| {
        case.oracle(move |x| {
            let product = linalg::einsum(labels, &[&x[1], &x[2]]);
            linalg::scaled_sum(beta, &x[0], alpha, &product)
        })
        .dtypes(&NUMBERS)
        .tolerance(8.0, 60.0)
    };
    let options = || ProductOptions::new().beta(2).alpha(3);
    vec![
        finish(
            Case::new(
                op,
                format!("torch.{op}(a, b, c, beta=2, alpha=3)"),
                [any(own), any(left), any(right)],
            )
            .run(move |t| new(&t[0], &t[1], &t[2], options()))
            .gradient(&[0, 1, 2]),
            2.0,
            3.0,
        ),
        finish(
            Case::new(op, format!("torch.{op}(a, b, c)"), [any(result), any(left), any(right)])
                .run(move |t| new(&t[0], &t[1], &t[2], ProductOptions::new()))
                .brief(),
            1.0,
            1.0,
        ),
        finish(
            Case::new(
                op,
                format!("torch.{op}(a, b, c, beta=0)"),
                [any(result), any(left), any(right)],
            )
            .run(move |t| new(&t[0], &t[1], &t[2], ProductOptions::new().beta(0)))
            .plain(),
            0.0,
            1.0,
        ),
        finish(
            Case::new(
                op,
                format!("a.{op}_(b, c, beta=2, alpha=3)"),
                [any(result), any(left), any(right)],
            )
            .writes(0, move |t| in_place(&t[0], &t[1], &t[2], options()).map(drop))
            .only(&[Contiguous, Transposed, Stepped]),
            2.0,
            3.0,
        ),
        finish(
            Case::new(
                op,
                format!("torch.{op}(a, b, c, beta=2, alpha=3, out=d)"),
                [any(own), any(left), any(right), any(result)],
            )
            .writes(3, move |t| into(&t[0], &t[1], &t[2], options(), &t[3]))
            .only(&[Contiguous, Transposed, Stepped]),
            2.0,
            3.0,
        ),
    ]
}

/// Products over dimensions of choice.
fn contracted() -> Vec<Case> {
    let labelled = |op, torch: &str, inputs: [&[usize]; 2], labels: &'static str| {
        Case::new(op, torch, inputs.map(any))
            .oracle(move |x| linalg::einsum(labels, &[&x[0], &x[1]]))
            .dtypes(&NUMBERS)
            .gradient(&[0, 1])
            .tolerance(8.0, 40.0)
    };
    let einsum = |equation: &'static str, inputs: [&[usize]; 2]| {
        labelled("einsum", &format!("torch.einsum('{equation}', a, b)"), inputs, equation)
            .run(move |t| Tensor::einsum(equation, &[&t[0], &t[1]]))
            .taking_only_these()
    };
    let mut rows = vec![
        labelled("outer", "torch.outer(a, b)", [&[3], &[4]], "i,j->ij")
            .run(|t| t[0].outer(&t[1]))
            .dtypes(&DType::ALL),
        labelled("ger", "torch.ger(a, b)", [&[3], &[4]], "i,j->ij")
            .run(|t| t[0].ger(&t[1]))
            .dtypes(&DType::ALL),
        labelled("inner", "torch.inner(a, b)", [&[3, 4], &[2, 4]], "ij,kj->ik")
            .run(|t| t[0].inner(&t[1])),
        labelled(
            "tensordot",
            "torch.tensordot(a, b, ([1, 2], [1, 0]))",
            [&[2, 3, 4], &[4, 3, 2]],
            "ijk,kjl->il",
        )
        .run(|t| t[0].tensordot(&t[1], &[1, 2], &[1, 0])),
        labelled("linalg_vecdot", "torch.linalg.vecdot(a, b)", [&[3, 4], &[3, 4]], "ij,ij->i")
            .run(|t| t[0].linalg_vecdot(&t[1]))
            .dtypes(&FLOATS)
            .taking_only_these(),
        Case::new("kron", "torch.kron(a, b)", [any(&[2, 3]), any(&[3, 2])])
            .run(|t| t[0].kron(&t[1]))
            .oracle(|x| linalg::kron(&x[0], &x[1]))
            .plain()
            .gradient(&[0, 1]),
        Case::new("cross", "torch.cross(a, b, dim=1)", [any(&[2, 3]), any(&[2, 3])])
            .run(|t| t[0].cross_with(&t[1], CrossOptions::new().dim(1)))
            .oracle(|x| linalg::cross(&x[0], &x[1], 1))
            .dtypes(&NUMBERS)
            .gradient(&[0, 1])
            .tolerance(8.0, 18.0)
            .row_major(),
        Case::new("linalg_cross", "torch.linalg.cross(a, b)", [any(&[2, 3]), any(&[2, 3])])
            .run(|t| t[0].linalg_cross(&t[1]))
            .oracle(|x| linalg::cross(&x[0], &x[1], 1))
            .dtypes(&NUMBERS)
            .gradient(&[0, 1])
            .tolerance(8.0, 18.0)
            .row_major(),
        Case::new(
            "addr",
            "torch.addr(a, b, c, beta=2, alpha=3)",
            [any(&[3, 1]), any(&[3]), any(&[4])],
        )
        .run(|t| t[0].addr_with(&t[1], &t[2], ProductOptions::new().beta(2).alpha(3)))
        .oracle(|x| {
            linalg::scaled_sum(2.0, &x[0], 3.0, &linalg::einsum("i,j->ij", &[&x[1], &x[2]]))
        })
        .dtypes(&NUMBERS)
        .row_major()
        .taking_only_these()
        .gradient(&[0, 1, 2])
        .tolerance(8.0, 40.0),
        Case::new("addr", "torch.addr(a, b, c)", [any(&[3, 4]), any(&[3]), any(&[4])])
            .run(|t| t[0].addr(&t[1], &t[2]))
            .oracle(|x| {
                linalg::scaled_sum(1.0, &x[0], 1.0, &linalg::einsum("i,j->ij", &[&x[1], &x[2]]))
            })
            .tolerance(8.0, 20.0)
            .row_major()
            .brief(),
        Case::new(
            "linalg_multi_dot",
            "torch.linalg.multi_dot([a, b, c])",
            [any(&[4]), any(&[4, 2]), any(&[2, 3])],
        )
        .run(|t| Tensor::linalg_multi_dot(&[&t[0], &t[1], &t[2]]))
        .oracle(|x| linalg::matmul(&linalg::matmul(&x[0], &x[1]), &x[2]))
        .dtypes(&NUMBERS)
        .gradient(&[0, 1, 2])
        .tolerance(16.0, 60.0),
    ];
    rows.extend([
        einsum("ij,jk->ik", [&[2, 3], &[3, 4]]),
        einsum("bij,bjk->bki", [&[2, 2, 3], &[2, 3, 2]]).brief(),
        einsum("iij,kl->lj", [&[3, 3, 2], &[2, 3]]).dtypes(&FLOATS).brief(),
        einsum("ij,ij->", [&[2, 3], &[2, 3]]).brief(),
        einsum("ij,jk->ijk", [&[2, 3], &[3, 2]]).brief(),
    ]);
    rows
}

/// `matmul` itself.
fn products() -> Vec<Case> {
    let row = |a: &[usize], b: &[usize]| {
        // Sums of k products of numbers up to 3: their size is about 9 sqrt(k), and rounding goes
        // with it.
        let terms = *a.last().expect("matmul takes no zero-dimensional tensors") as f64;
        Case::new("matmul", "torch.matmul(a, b)", [any(a), any(b)])
            .run(|t| t[0].matmul(&t[1]))
            .oracle(|x| linalg::matmul(&x[0], &x[1]))
            .dtypes(&NUMBERS)
            .tolerance(8.0, 9.0 * terms.sqrt().max(1.0))
    };
    // PyTorch multiplies empty matrices of any dtype; that is no promise worth keeping for bool.
    let empty = |a: &[usize], b: &[usize]| row(a, b).plain().taking_only_these();
    vec![
        row(&[3, 4], &[4, 5]).gradient(&[0, 1]),
        row(&[4], &[4]).gradient(&[0, 1]),
        row(&[3, 4], &[4]).gradient(&[0, 1]),
        row(&[4], &[4, 5]).gradient(&[0, 1]),
        row(&[2, 3, 4], &[2, 4, 2]).gradient(&[0, 1]),
        row(&[2, 3, 4], &[4, 2]).gradient(&[0, 1]),
        row(&[3, 4], &[2, 4, 2]).gradient(&[0, 1]),
        row(&[2, 1, 3, 4], &[3, 4, 2]).brief().gradient(&[0, 1]),
        row(&[2, 3, 4], &[4]).brief().gradient(&[0, 1]),
        row(&[4], &[2, 4, 3]).brief().gradient(&[0, 1]),
        row(&[1, 7], &[7, 1]).brief(),
        empty(&[0, 4], &[4, 3]),
        empty(&[3, 0], &[0, 4]),
        empty(&[2, 3, 0], &[2, 0, 2]),
        empty(&[0], &[0]),
        empty(&[0, 3, 4], &[4, 2]),
        row(&[33, 70], &[70, 45]).only(&[Contiguous, Transposed, Stepped]),
        row(&[1, 130], &[130, 67]).brief(),
        row(&[40, 300], &[300, 3]).brief(),
        Case::new(
            "matmul",
            "torch.matmul(a, b, out=c)",
            [any(&[3, 4]), any(&[4, 5]), any(&[3, 5])],
        )
        .writes(2, |t| t[0].matmul_out(&t[1], &t[2]))
        .oracle(|x| linalg::matmul(&x[0], &x[1]))
        .dtypes(&NUMBERS)
        .tolerance(8.0, 18.0)
        .only(&[Contiguous, Transposed, Stepped]),
    ]
}
