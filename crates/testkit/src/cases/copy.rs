//! Copies, conversions and fills.

use plimsoll_core::{DType, Scalar};

use super::Case;
use super::input::{Input, any, positive, special};
use crate::layouts::Arrangement::{Contiguous, Offset, Reversed, Stepped, Transposed};
use crate::oracle::{Array, copy};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = copies();
    cases.extend(conversions());
    cases.extend(fills());
    cases
}

fn copies() -> Vec<Case> {
    let into = |to: Input, from: Input| {
        Case::new("copy_", "a.copy_(b)", [to, from])
            .writes(0, |t| t[0].copy_(&t[1]).map(|_| ()))
            .oracle(|x| copy::copy_into(&x[0], &x[1]))
    };
    let same = |op: &'static str, torch: &str, input: Input| Case::new(op, torch, [input]);
    vec![
        into(any(&[2, 3, 4]), any(&[2, 3, 4])).gradient(&[1]),
        into(any(&[2, 3, 4]), any(&[3, 1])).gradient(&[1]),
        into(any(&[33, 70]), any(&[33, 70])).brief(),
        into(any(&[0, 3]), any(&[3])).plain(),
        into(any(&[]), any(&[])).only(&[Contiguous, Offset]),
        // Positive, because what a negative float becomes in `uint8` is not defined.
        into(positive(&[5]), positive(&[5]).other()).pairs(|_, _| true),
        same("contiguous", "a.contiguous()", any(&[2, 3, 4]))
            .run(|t| t[0].contiguous())
            .oracle(|x| x[0].clone())
            .gradient(&[0]),
        same("contiguous", "a.contiguous()", any(&[65, 33]))
            .run(|t| t[0].contiguous())
            .oracle(|x| x[0].clone())
            .brief(),
        same("clone", "a.clone()", any(&[2, 3, 4]))
            .run(|t| t[0].clone_tensor())
            .oracle(|x| x[0].clone())
            .gradient(&[0]),
        same("clone", "a.clone()", special(&[17]))
            .run(|t| t[0].clone_tensor())
            .oracle(|x| x[0].clone())
            .plain(),
        same("clone", "a.clone()", any(&[0, 3]))
            .run(|t| t[0].clone_tensor())
            .oracle(|x| x[0].clone())
            .plain(),
        same("detach", "a.detach()", any(&[2, 3]))
            .run(|t| Ok(t[0].detach()))
            .oracle(|x| x[0].clone()),
    ]
}

fn conversions() -> Vec<Case> {
    let to = |input: Input| {
        Case::new("to", "a.to(other)", [input])
            .run(|t| t[0].to(t.other))
            .oracle(|x| copy::to(&x[0], x.other))
    };
    let named = [
        ("a.float()", DType::F32),
        ("a.double()", DType::F64),
        ("a.half()", DType::F16),
        ("a.bfloat16()", DType::BF16),
        ("a.long()", DType::I64),
        ("a.bool()", DType::Bool),
    ];
    let mut rows = vec![
        to(positive(&[2, 3])).pairs(|_, _| true).brief(),
        to(special(&[17]))
            .pairs(|a, b| a.is_float() && (b.is_float() || b == DType::Bool))
            .taking_only_these(),
        to(any(&[0, 3])).pairs(|_, _| true),
        // Differences are taken in the instance's dtype, so the check converts to itself and to
        // float32.
        Case::new("to", "a.to(torch.float64)", [any(&[2, 3])])
            .run(|t| t[0].to(DType::F64))
            .oracle(|x| copy::to(&x[0], DType::F64))
            .gradient(&[0]),
    ];
    rows.extend(named.map(|(torch, dtype)| {
        Case::new("to", torch, [positive(&[2, 3, 2])])
            .run(move |t| match dtype {
                DType::F32 => t[0].float(),
                DType::F64 => t[0].double(),
                DType::F16 => t[0].half(),
                DType::BF16 => t[0].bfloat16(),
                DType::I64 => t[0].long(),
                _ => t[0].bool(),
            })
            .oracle(move |x| copy::to(&x[0], dtype))
    }));
    rows
}

fn fills() -> Vec<Case> {
    let fill = |input: Input, torch: &str, value: Scalar| {
        Case::new("fill_", torch, [input])
            .writes(0, move |t| t[0].fill_(value).map(|_| ()))
            .oracle(move |x: &super::Arrays| -> Array { copy::fill(&x[0], value) })
            // PyTorch fills expanded tensors; here every write to elements that share memory is
            // refused.
            .only(&[Contiguous, Transposed, Reversed, Stepped, Offset])
    };
    vec![
        fill(any(&[2, 3, 4]), "a.fill_(3)", Scalar::Int(3)).gradient(&[0]),
        fill(any(&[2, 3]), "a.fill_(1.5)", Scalar::Float(1.5)),
        fill(any(&[2, 3]), "a.fill_(True)", Scalar::Bool(true)),
        fill(any(&[0, 3]), "a.fill_(1)", Scalar::Int(1)).plain(),
        fill(any(&[]), "a.fill_(1)", Scalar::Int(1)).only(&[Contiguous, Offset]),
        Case::new("zero_", "a.zero_()", [any(&[2, 3, 4])])
            .writes(0, |t| t[0].zero_().map(|_| ()))
            .oracle(|x| copy::fill(&x[0], Scalar::Int(0)))
            .only(&[Contiguous, Transposed, Reversed, Stepped, Offset])
            .gradient(&[0]),
    ]
}
