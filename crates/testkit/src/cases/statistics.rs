//! Scans, norms and moments.

use plimsoll_tensor::{
    CountNonzeroOptions, DistOptions, LinalgMatrixNormOptions, LinalgNormOptions,
    LinalgVectorNormOptions, LogsumexpOptions, NormOptions, ProdOptions, Scalar, SumOptions,
    TrapezoidOptions, VarOptions,
};

use super::input::{any, distinct, nonzero, positive, special};
use super::{Case, FLOATS, NUMBERS};
use crate::oracle::{binary, reduce, statistics};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(folds());
    cases.extend(scans());
    cases.extend(integrals());
    cases.extend(norms());
    cases.extend(matrix_norms());
    cases.extend(moments());
    cases
}

fn folds() -> Vec<Case> {
    vec![
        Case::new("nansum", "a.nansum(1)", [any(&[2, 3, 4])])
            .run(|t| t[0].nansum_with(1))
            .oracle(|x| statistics::nansum(&x[0], &[1], false))
            .tolerance(8.0, 8.0)
            .gradient(&[0]),
        Case::new("nansum", "torch.nansum(a, 1, out=b)", [any(&[2, 3]), any(&[2])])
            .writes(1, |t| t[0].nansum_with_out(SumOptions::from(1), &t[1]))
            .oracle(|x| statistics::nansum(&x[0], &[1], false))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 8.0)
            .plain(),
        Case::new("nanmean", "a.nanmean([0, 2], keepdim=True)", [any(&[2, 3, 4])])
            .run(|t| t[0].nanmean_with(SumOptions::from([0, 2]).keepdim(true)))
            .oracle(|x| statistics::nanmean(&x[0], &[0, 2], true))
            .dtypes(&FLOATS)
            .tolerance(8.0, 8.0)
            .gradient(&[0])
            .brief(),
        Case::new("prod", "a.prod(1)", [nonzero(&[2, 3, 4])])
            .run(|t| t[0].prod_with(1))
            .oracle(|x| reduce::prod(&x[0], &[1], false))
            .tolerance(8.0, 0.0)
            .gradient(&[0]),
        Case::new("prod", "a.prod()", [any(&[2, 3])])
            .run(|t| t[0].prod())
            .oracle(|x| reduce::prod(&x[0], &[], false))
            .tolerance(8.0, 0.0)
            .gradient(&[0])
            .brief(),
        Case::new("prod", "torch.prod(a, 1, out=b)", [nonzero(&[2, 3]), any(&[2])])
            .writes(1, |t| t[0].prod_with_out(ProdOptions::from(1), &t[1]))
            .oracle(|x| reduce::prod(&x[0], &[1], false))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 0.0)
            .plain(),
        Case::new("count_nonzero", "torch.count_nonzero(a, 1)", [any(&[2, 3, 4])])
            .run(|t| t[0].count_nonzero_with(CountNonzeroOptions::from(1)))
            .oracle(|x| statistics::count_nonzero(&x[0], &[1])),
        Case::new("sum_to_size", "a.sum_to_size(1, 3)", [any(&[2, 3])])
            .run(|t| t[0].sum_to_size(&[1, 3]))
            .oracle(|x| reduce::sum(&x[0], &[0], true))
            .tolerance(8.0, 8.0)
            .gradient(&[0])
            .plain(),
    ]
}

fn scans() -> Vec<Case> {
    let mut rows = Vec::new();
    for dim in [0i64, -1] {
        rows.push(
            Case::new("cumsum", format!("a.cumsum({dim})"), [any(&[3, 5])])
                .run(move |t| t[0].cumsum(dim))
                .oracle(move |x| statistics::cumsum(&x[0], dim))
                .tolerance(8.0, 8.0)
                .row_major()
                .gradient(&[0]),
        );
        rows.push(
            Case::new("cumprod", format!("a.cumprod({dim})"), [any(&[3, 4])])
                .run(move |t| t[0].cumprod(dim))
                .oracle(move |x| statistics::cumprod(&x[0], dim))
                .tolerance(8.0, 0.0)
                .row_major()
                .gradient(&[0]),
        );
        rows.push(
            Case::new("logcumsumexp", format!("a.logcumsumexp({dim})"), [any(&[3, 5])])
                .run(move |t| t[0].logcumsumexp(dim))
                .oracle(move |x| statistics::logcumsumexp(&x[0], dim))
                .dtypes(&FLOATS)
                .tolerance(8.0, 4.0)
                .row_major()
                .gradient(&[0]),
        );
        rows.push(
            Case::new("cummax", format!("a.cummax({dim})"), [any(&[3, 5])])
                .run(move |t| t[0].cummax(dim))
                .oracle(move |x| statistics::cumulative_extreme(&x[0], dim, true))
                .row_major(),
        );
        rows.push(
            Case::new("cummin", format!("a.cummin({dim})"), [any(&[3, 5])])
                .run(move |t| t[0].cummin(dim))
                .oracle(move |x| statistics::cumulative_extreme(&x[0], dim, false))
                .row_major(),
        );
    }
    rows.push(
        Case::new("cummax", "a.cummax(0)[0]", [distinct(&[6])])
            .run(|t| Ok(t[0].cummax(0)?.0))
            .oracle(|x| statistics::cumulative_extreme(&x[0], 0, true).0)
            .plain()
            .gradient(&[0]),
    );
    rows.push(
        Case::new("cummin", "a.cummin(0)[0]", [distinct(&[6])])
            .run(|t| Ok(t[0].cummin(0)?.0))
            .oracle(|x| statistics::cumulative_extreme(&x[0], 0, false).0)
            .plain()
            .gradient(&[0]),
    );
    rows.push(
        Case::new("cummax", "a.cummax(0)", [special(&[17])])
            .run(|t| t[0].cummax(0))
            .oracle(|x| statistics::cumulative_extreme(&x[0], 0, true))
            .plain(),
    );
    rows
}

fn integrals() -> Vec<Case> {
    vec![
        Case::new("diff", "a.diff(dim=0)", [any(&[4, 3])])
            .run(|t| t[0].diff_with(plimsoll_tensor::DiffOptions::new().dim(0)))
            .oracle(|x| statistics::diff(&x[0], 0))
            .tolerance(4.0, 4.0)
            .gradient(&[0]),
        Case::new("trapezoid", "torch.trapezoid(a, dx=0.5, dim=0)", [any(&[4, 3])])
            .run(|t| t[0].trapezoid_with(TrapezoidOptions::new().dx(0.5).dim(0)))
            .oracle(|x| statistics::trapezoids(&x[0], 0, 0.5, true))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .tolerance(32.0, 32.0)
            .gradient(&[0])
            .brief(),
        Case::new("trapz", "torch.trapz(a, dx=0.5)", [any(&[3, 4])])
            .run(|t| t[0].trapz_with(TrapezoidOptions::new().dx(0.5)))
            .oracle(|x| statistics::trapezoids(&x[0], -1, 0.5, true))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .tolerance(32.0, 32.0)
            .gradient(&[0])
            .plain(),
        Case::new("cumulative_trapezoid", "torch.cumulative_trapezoid(a)", [any(&[3, 4])])
            .run(|t| t[0].cumulative_trapezoid())
            .oracle(|x| statistics::trapezoids(&x[0], -1, 1.0, false))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .tolerance(32.0, 32.0)
            .gradient(&[0])
            .plain(),
    ]
}

fn norms() -> Vec<Case> {
    let mut rows = Vec::new();
    for dims in [&[1i64][..], &[0, 2], &[1, 2]] {
        rows.push(
            Case::new(
                "logsumexp",
                format!("a.logsumexp({dims:?}, keepdim=True)"),
                [any(&[2, 3, 4])],
            )
            .run(move |t| t[0].logsumexp_with(dims, LogsumexpOptions::new().keepdim(true)))
            .oracle(move |x| statistics::logsumexp(&x[0], dims, true))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 4.0)
            .gradient(&[0]),
        );
    }
    rows.push(
        Case::new("logsumexp", "a.logsumexp(0)", [any(&[5000])])
            .run(|t| t[0].logsumexp(&[0]))
            .oracle(|x| statistics::logsumexp(&x[0], &[0], false))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(8.0, 4.0)
            .plain(),
    );
    let named = [("float('inf')", f64::INFINITY), ("-float('inf')", f64::NEG_INFINITY)];
    let orders = [("0", 0.0), ("0.5", 0.5), ("1", 1.0), ("1.5", 1.5), ("2", 2.0), ("3", 3.0)];
    for (text, ord) in orders.into_iter().chain(named) {
        rows.push(
            Case::new(
                "linalg_vector_norm",
                format!("torch.linalg.vector_norm(a, {text}, dim=1)"),
                // Elements of one size have no extreme among them.
                [if ord.is_infinite() { positive(&[2, 3, 4]) } else { distinct(&[2, 3, 4]) }],
            )
            .run(move |t| {
                let options = LinalgVectorNormOptions::new().ord(ord).dim(1);
                t[0].linalg_vector_norm_with(options)
            })
            .oracle(move |x| statistics::norm(&x[0], ord, &[1], false))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(16.0, 0.0)
            .gradient(if ord == 0.0 { &[] } else { &[0] }),
        );
    }
    rows.push(
        Case::new("norm", "a.norm(p=1, dim=0)", [distinct(&[3, 4])])
            .run(|t| t[0].norm_of(1, NormOptions::new().dim(0)))
            .oracle(|x| statistics::norm(&x[0], 1.0, &[0], false))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(16.0, 0.0)
            .gradient(&[0])
            .brief(),
    );
    rows.push(
        Case::new("dist", "a.dist(b, 3)", [distinct(&[3, 4]), positive(&[4])])
            .run(|t| t[0].dist_with(&t[1], DistOptions::new().p(3.0)))
            .oracle(|x| statistics::norm(&binary::sub(&x[0], &x[1], 1.0), 3.0, &[], false))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(16.0, 0.0)
            .gradient(&[0, 1])
            .brief(),
    );
    rows.push(
        Case::new("renorm", "a.renorm(2, 0, 1e9)", [distinct(&[3, 4])])
            .run(|t| t[0].renorm(2.0, 0, 1e9))
            .oracle(|x| x[0].clone())
            .dtypes(&FLOATS)
            .taking_only_these()
            .gradient(&[0])
            .plain(),
    );
    rows
}

fn matrix_norms() -> Vec<Case> {
    vec![
        Case::new("linalg_matrix_norm", "torch.linalg.matrix_norm(a, 1)", [distinct(&[3, 4])])
            .run(|t| t[0].linalg_matrix_norm_of(1, LinalgMatrixNormOptions::new()))
            .oracle(|x| reduce::amax(&statistics::norm(&x[0], 1.0, &[0], false), &[0], false))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(16.0, 0.0)
            .gradient(&[0])
            .brief(),
        Case::new("linalg_norm", "torch.linalg.norm(a, float('inf'))", [distinct(&[3, 4])])
            .run(|t| {
                t[0].linalg_norm_with(LinalgNormOptions::new().ord(Scalar::Float(f64::INFINITY)))
            })
            .oracle(|x| reduce::amax(&statistics::norm(&x[0], 1.0, &[1], false), &[0], false))
            .dtypes(&FLOATS)
            .taking_only_these()
            .tolerance(16.0, 0.0)
            .gradient(&[0])
            .plain(),
    ]
}

fn moments() -> Vec<Case> {
    let mut rows = Vec::new();
    for (dims, keepdim) in [(&[1i64][..], false), (&[0, 2], true)] {
        let keep = if keepdim { "True" } else { "False" };
        let asked = move || VarOptions::from(dims).keepdim(keepdim).correction(Scalar::Int(0));
        let call = |op: &str| format!("a.{op}({dims:?}, correction=0, keepdim={keep})");
        rows.push(
            Case::new("var", call("var"), [any(&[2, 3, 4])])
                .run(move |t| t[0].var_with(asked()))
                .oracle(move |x| statistics::var(&x[0], dims, keepdim, 0.0))
                .dtypes(&FLOATS)
                .tolerance(8.0, 1.0)
                .gradient(&[0]),
        );
        rows.push(
            Case::new("std", call("std"), [distinct(&[2, 3, 4])])
                .run(move |t| t[0].std_with(asked()))
                .oracle(move |x| statistics::std(&x[0], dims, keepdim, 0.0))
                .dtypes(&FLOATS)
                .tolerance(8.0, 1.0)
                .gradient(&[0]),
        );
    }
    rows.push(
        Case::new("var", "a.var()", [any(&[37, 67])])
            .run(|t| t[0].var())
            .oracle(|x| statistics::var(&x[0], &[], false, 1.0))
            .dtypes(&FLOATS)
            .tolerance(32.0, 1.0)
            .brief(),
    );
    rows.push(
        Case::new("var_mean", "torch.var_mean(a, 1)", [any(&[3, 4])])
            .run(|t| t[0].var_mean_with(1))
            .oracle(|x| {
                (statistics::var(&x[0], &[1], false, 1.0), reduce::mean(&x[0], &[1], false))
            })
            .dtypes(&FLOATS)
            .tolerance(8.0, 3.0)
            .gradient(&[0])
            .brief(),
    );
    rows.push(
        Case::new("std_mean", "torch.std_mean(a, 1)", [distinct(&[3, 4])])
            .run(|t| t[0].std_mean_with(1))
            .oracle(|x| {
                (statistics::std(&x[0], &[1], false, 1.0), reduce::mean(&x[0], &[1], false))
            })
            .dtypes(&FLOATS)
            .tolerance(8.0, 8.0)
            .gradient(&[0])
            .brief(),
    );
    rows.push(
        Case::new("cov", "a.cov()", [any(&[3, 5])])
            .run(|t| t[0].cov())
            .oracle(|x| statistics::cov(&x[0]))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .tolerance(32.0, 8.0)
            .row_major()
            .gradient(&[0])
            .plain(),
    );
    rows.push(
        Case::new("corrcoef", "a.corrcoef()", [any(&[3, 5])])
            .run(|t| t[0].corrcoef())
            .oracle(|x| statistics::corrcoef(&x[0]))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .tolerance(64.0, 2.0)
            .row_major()
            .gradient(&[0])
            .plain(),
    );
    rows
}
