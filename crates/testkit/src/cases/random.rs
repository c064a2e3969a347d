//! Random numbers, from a generator that was just seeded: the oracle tells each one by its own
//! Philox. PyTorch draws others, so the golden files only say which dtype, shape and strides they
//! have.

use plimsoll_core::Result;
use plimsoll_tensor::{Tensor, manual_seed_on};

use super::input::any;
use super::{Case, FLOATS, Inputs, NUMBERS};
use crate::layouts::Arrangement::{Contiguous, Offset, Reversed, Stepped, Transposed};
use crate::oracle::random;

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
