//! Joining tensors.

use plimsoll_core::DType;
use plimsoll_tensor::{Indexing, Tensor};

use super::Case;
use super::input::{Input, any};
use crate::layouts::Arrangement::{Contiguous, Stepped, Transposed};
use crate::oracle::{Array, Number, join};

/// Joins that are made of `cat` and `stack`.
fn named() -> Vec<Case> {
    type Join = fn(&[&Tensor]) -> plimsoll_core::Result<Tensor>;
    let row = |op: &'static str, input: [Input; 2], run: Join| {
        Case::new(op, format!("torch.{op}([a, b])"), input)
            .run(move |t| run(&[&t[0], &t[1]]))
            .gradient(&[0, 1])
    };
    let of = |shape: &[usize]| [any(shape), any(shape)];
    vec![
        row("concat", of(&[2, 3]), |t| Tensor::concat(t, 0))
            .oracle(|x| join::cat(&[&x[0], &x[1]], 0)),
        row("concatenate", of(&[2, 3]), |t| Tensor::concatenate(t, 0))
            .oracle(|x| join::cat(&[&x[0], &x[1]], 0)),
        row("hstack", of(&[2, 3]), Tensor::hstack).oracle(|x| join::cat(&[&x[0], &x[1]], 1)),
        row("hstack", of(&[3]), Tensor::hstack).oracle(|x| join::cat(&[&x[0], &x[1]], 0)),
        row("vstack", of(&[3]), Tensor::vstack).oracle(|x| join::stack(&[&x[0], &x[1]], 0)),
        row("row_stack", of(&[2, 3]), Tensor::row_stack).oracle(|x| join::cat(&[&x[0], &x[1]], 0)),
        row("dstack", of(&[2, 3]), Tensor::dstack).oracle(|x| join::stack(&[&x[0], &x[1]], 2)),
        row("column_stack", of(&[3]), Tensor::column_stack)
            .oracle(|x| join::stack(&[&x[0], &x[1]], 1)),
        Case::new("block_diag", "torch.block_diag(a, b)", [any(&[1, 2]), any(&[2])])
            .run(|t| Tensor::block_diag(&[&t[0], &t[1]]))
            .oracle(|x| {
                Array::build(x[0].dtype(), &[2, 4], |i| match (i[0], i[1]) {
                    (0, 0 | 1) => x[0].at(&[0, i[1]]),
                    (1, 2 | 3) => x[1].at(&[i[1] - 2]),
                    _ => Number::Int(0),
                })
            })
            .gradient(&[0, 1]),
        Case::new("cartesian_prod", "torch.cartesian_prod(a, b)", [any(&[2]), any(&[3])])
            .run(|t| Tensor::cartesian_prod(&[&t[0], &t[1]]))
            .oracle(|x| {
                Array::build(x[0].dtype(), &[6, 2], |i| match i[1] {
                    0 => x[0].at(&[i[0] / 3]),
                    _ => x[1].at(&[i[0] % 3]),
                })
            })
            .gradient(&[0, 1]),
        Case::new("meshgrid", "torch.meshgrid(a, b, indexing='xy')", [any(&[2]), any(&[3])])
            .run(|t| Tensor::meshgrid(&[&t[0], &t[1]], Some(Indexing::Xy)))
            .oracle(|x| {
                let grid = |which: usize| {
                    Array::build(x[0].dtype(), &[3, 2], |i| x[which].at(&[i[1 - which]]))
                };
                (grid(0), grid(1))
            })
            .gradient(&[0, 1]),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = plain();
    cases.extend(named());
    cases
}

fn plain() -> Vec<Case> {
    let cat = |inputs: [Input; 2], dim: i64| {
        Case::new("cat", format!("torch.cat([a, b], {dim})"), inputs)
            .run(move |t| Tensor::cat(&[&t[0], &t[1]], dim))
            .oracle(move |x| join::cat(&[&x[0], &x[1]], dim))
    };
    let three = |inputs: [Input; 3], dim: i64| {
        Case::new("cat", format!("torch.cat([a, b, c], {dim})"), inputs)
            .run(move |t| Tensor::cat(&[&t[0], &t[1], &t[2]], dim))
            .oracle(move |x| join::cat(&[&x[0], &x[1], &x[2]], dim))
    };
    let stack = |shape: &[usize], dim: i64| {
        Case::new("stack", format!("torch.stack([a, b], {dim})"), [any(shape), any(shape)])
            .run(move |t| Tensor::stack(&[&t[0], &t[1]], dim))
            .oracle(move |x| join::stack(&[&x[0], &x[1]], dim))
    };
    vec![
        cat([any(&[2, 3]), any(&[4, 3])], 0).gradient(&[0, 1]),
        cat([any(&[2, 3]), any(&[2, 2])], 1).gradient(&[0, 1]),
        cat([any(&[2, 3, 2]), any(&[2, 1, 2])], -2).gradient(&[0, 1]),
        three([any(&[2, 3, 4]), any(&[2, 3, 1]), any(&[2, 3, 2])], -1).gradient(&[0, 1, 2]),
        three([any(&[0]), any(&[2, 3]), any(&[0, 3])], 0).plain(),
        cat([any(&[0]), any(&[0])], 0).plain(),
        cat([any(&[70]), any(&[3])], 0).brief(),
        cat([any(&[3]), any(&[2]).other()], 0).pairs(|_, _| true),
        Case::new("cat", "torch.cat([a], 0)", [any(&[3, 4])])
            .run(|t| Tensor::cat(&[&t[0]], 0))
            .oracle(|x| join::cat(&[&x[0]], 0))
            .gradient(&[0]),
        Case::new("cat", "torch.cat([a, a], 1)", [any(&[3, 4]).of(DType::F64)])
            .run(|t| Tensor::cat(&[&t[0], &t[0]], 1))
            .oracle(|x| join::cat(&[&x[0], &x[0]], 1))
            .gradient(&[0])
            .plain(),
        Case::new("cat", "torch.cat([a, b], 0, out=c)", [any(&[2, 3]), any(&[1, 3]), any(&[3, 3])])
            .writes(2, |t| Tensor::cat_out(&[&t[0], &t[1]], 0, &t[2]))
            .oracle(|x| join::cat(&[&x[0], &x[1]], 0))
            .only(&[Contiguous, Transposed, Stepped]),
        stack(&[2, 3], 0).gradient(&[0, 1]),
        stack(&[2, 3], 1).gradient(&[0, 1]),
        stack(&[2, 3], -1).gradient(&[0, 1]),
        stack(&[], 0).gradient(&[0, 1]),
        stack(&[0, 2], 0).plain(),
        Case::new(
            "stack",
            "torch.stack([a, b], 1, out=c)",
            [any(&[2, 3]), any(&[2, 3]), any(&[2, 2, 3])],
        )
        .writes(2, |t| Tensor::stack_out(&[&t[0], &t[1]], 1, &t[2]))
        .oracle(|x| join::stack(&[&x[0], &x[1]], 1))
        .only(&[Contiguous, Transposed, Stepped]),
    ]
}
