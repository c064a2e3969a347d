//! Random numbers, from a generator that was just seeded: the oracle tells each one by its own
//! Philox. PyTorch draws others, so the golden files only say which dtype, shape and strides they
//! have.

use plimsoll_core::Result;
use plimsoll_tensor::{Tensor, manual_seed_on};

use super::input::any;
use super::{Case, FLOATS, Inputs, NUMBERS};
use crate::layouts::Arrangement::{Contiguous, Offset, Reversed, Stepped, Transposed};
use crate::oracle::{Array, random};

/// With bits in both halves of the key.
pub(super) const SEED: u64 = 0x0123_4567_89AB_CDEF;

/// Runs a call on a generator that starts from [`SEED`].
pub(super) fn seeded<T>(t: &Inputs, f: impl FnOnce() -> Result<T>) -> Result<T> {
    manual_seed_on(t.device, SEED);
    f()
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = new();
    cases.extend(overwriting());
    cases.extend(formulas());
    cases
}

fn new() -> Vec<Case> {
    vec![
        Case::new("rand", "torch.rand((3, 7), dtype=dtype)", [])
            .run(|t| seeded(t, || Tensor::rand(&[3, 7], (t.dtype, t.device))))
            .oracle(|x| random::uniform(x.dtype, &[3, 7], 0.0, 1.0, SEED))
            .dtypes(&FLOATS)
            .tolerance(0.0, 0.0)
            .random(),
        Case::new("rand", "torch.rand((0, 2), dtype=dtype)", [])
            .run(|t| seeded(t, || Tensor::rand(&[0, 2], (t.dtype, t.device))))
            .oracle(|x| random::uniform(x.dtype, &[0, 2], 0.0, 1.0, SEED))
            .dtypes(&FLOATS)
            .taking_only_these()
            .random(),
        Case::new("randn", "torch.randn((3, 7), dtype=dtype)", [])
            .run(|t| seeded(t, || Tensor::randn(&[3, 7], (t.dtype, t.device))))
            .oracle(|x| random::normal(x.dtype, &[3, 7], 0.0, 1.0, SEED))
            .dtypes(&FLOATS)
            .tolerance(4.0, 1.0)
            .random(),
        Case::new("randn", "torch.randn((), dtype=dtype)", [])
            .run(|t| seeded(t, || Tensor::randn(&[], (t.dtype, t.device))))
            .oracle(|x| random::normal(x.dtype, &[], 0.0, 1.0, SEED))
            .dtypes(&FLOATS)
            .tolerance(4.0, 1.0)
            .random(),
        Case::new("randint", "torch.randint(3, 90, (5, 5), dtype=dtype)", [])
            .run(|t| seeded(t, || Tensor::randint(3, 90, &[5, 5], (t.dtype, t.device))))
            .oracle(|x| random::randint(x.dtype, &[5, 5], 3, 90, SEED))
            .dtypes(&NUMBERS)
            .taking_only_these()
            .random(),
    ]
}

/// Distributions that are a formula of one uniform number, and what is made of the others.
fn formulas() -> Vec<Case> {
    const WRITABLE: [crate::layouts::Arrangement; 2] = [Contiguous, Transposed];
    let row = |op: &'static str, torch: &str, run: fn(&Tensor) -> Result<&Tensor>| {
        Case::new(op, torch, [any(&[3, 5])])
            .writes(0, move |t| seeded(t, || run(&t[0]).map(|_| ())))
            .only(&WRITABLE)
            .gradient(&[0])
            .random()
    };
    let cauchy = |u: f64| 1.0 + 2.0 * (std::f64::consts::PI * (u + 0.5f64.powi(54) - 0.5)).tan();
    vec![
        row("exponential_", "a.exponential_(2)", |t| t.exponential_(2.0))
            .oracle(|x| random::by_formula(x.dtype, &[3, 5], SEED, |u| -(1.0 - u).ln() / 2.0))
            .dtypes(&FLOATS),
        row("cauchy_", "a.cauchy_(1, 2)", |t| t.cauchy_(1.0, 2.0))
            .oracle(move |x| random::by_formula(x.dtype, &[3, 5], SEED, cauchy))
            .tolerance(8.0, 4.0)
            .dtypes(&FLOATS),
        row("log_normal_", "a.log_normal_(0, 0.5)", |t| t.log_normal_(0.0, 0.5))
            .oracle(|x| {
                let normal = random::normal(x.dtype, &[3, 5], 0.0, 0.5, SEED);
                Array::build(x.dtype, &[3, 5], |i| normal.at(i).to_f64().exp())
            })
            .tolerance(16.0, 4.0)
            .dtypes(&FLOATS),
        row("geometric_", "a.geometric_(0.4)", |t| t.geometric_(0.4))
            .oracle(|x| {
                let trials = |u: f64| ((1.0 - u).ln() / 0.6f64.ln()).ceil().max(1.0);
                random::by_formula(x.dtype, &[3, 5], SEED, trials)
            })
            .dtypes(&NUMBERS)
            .taking_only_these(),
        row("bernoulli_", "a.bernoulli_(0.4)", |t| t.bernoulli_(0.4))
            .oracle(|x| random::by_formula(x.dtype, &[3, 5], SEED, |u| f64::from(u < 0.4))),
        row("random_", "a.random_(0, 2)", |t| t.random_(Some(2)))
            .oracle(|x| random::randint(x.dtype, &[3, 5], 0, 2, SEED)),
        Case::new("bernoulli", "torch.bernoulli(a, 0.4)", [any(&[3, 5])])
            .run(|t| seeded(t, || t[0].bernoulli(Some(0.4))))
            .oracle(|x| random::by_formula(x.dtype, &[3, 5], SEED, |u| f64::from(u < 0.4)))
            .only(&[Contiguous])
            .dtypes(&FLOATS)
            .taking_only_these()
            .random(),
        Case::new("normal", "torch.normal(a, 2.0)", [any(&[3, 5])])
            .run(|t| seeded(t, || Tensor::normal(&t[0], 2.0)))
            .oracle(|x| {
                let drawn = random::normal(x.dtype, &[3, 5], 0.0, 1.0, SEED);
                Array::build(x.dtype, &[3, 5], |i| x[0].at(i).to_f64() + 2.0 * drawn.at(i).to_f64())
            })
            .only(&[Contiguous])
            .tolerance(16.0, 8.0)
            .dtypes(&FLOATS)
            .taking_only_these()
            .random(),
    ]
}

fn overwriting() -> Vec<Case> {
    const WRITABLE: [crate::layouts::Arrangement; 5] =
        [Contiguous, Transposed, Reversed, Stepped, Offset];
    vec![
        Case::new("uniform_", "a.uniform_(-2, 6)", [any(&[2, 3, 5])])
            .writes(0, |t| seeded(t, || t[0].uniform_(-2.0, 6.0).map(|_| ())))
            .oracle(|x| random::uniform(x.dtype, &[2, 3, 5], -2.0, 6.0, SEED))
            .dtypes(&FLOATS)
            .only(&WRITABLE)
            .tolerance(1.0, 8.0)
            .gradient(&[0])
            .random(),
        Case::new("normal_", "a.normal_(1, 2)", [any(&[2, 3, 5])])
            .writes(0, |t| seeded(t, || t[0].normal_(1.0, 2.0).map(|_| ())))
            .oracle(|x| random::normal(x.dtype, &[2, 3, 5], 1.0, 2.0, SEED))
            .dtypes(&FLOATS)
            .only(&WRITABLE)
            .tolerance(4.0, 4.0)
            .gradient(&[0])
            .random(),
    ]
}
