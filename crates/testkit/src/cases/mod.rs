//! The list of cases: one row a call, written three times (PyTorch, Plimsoll, the oracle) beside
//! the inputs that it takes. Everything that tests operations runs this one list: the oracle, the
//! golden files, the gradient check, the failing allocator. An operation of the registry without a
//! row fails the completeness test.
//!
//! For a new operation: add its rows to the family's file, run `golden/make_golden.py`, and every
//! test has it.
//!
//! What a row is: `case.rs`. Rows: one file a family, named like `ops/` in the tensor crate. How a
//! row becomes instances (dtypes and arrangements): `instance.rs`.

mod batch_norm;
mod binary;
mod case;
mod compare;
mod copy;
mod create;
mod index;
mod input;
mod instance;
mod join;
mod linalg;
mod nn;
mod order;
mod random;
mod reduce;
mod statistics;
mod unary;
mod views;

use plimsoll_core::DType;

pub use case::{Arrays, Case, Inputs, IntoOutputs, Outputs, Tolerance};
pub use input::{Input, Values, Wanted};
pub use instance::Instance;
pub(crate) use instance::fingerprint;

/// Floating point.
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
/// Integers and floating point.
const NUMBERS: [DType; 9] = [
    DType::U8,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

/// Every case.
pub fn all() -> Vec<Case> {
    let families: [(&'static str, Vec<Case>); 15] = [
        ("unary", unary::cases()),
        ("binary", binary::cases()),
        ("compare", compare::cases()),
        ("reduce", reduce::cases()),
        ("statistics", statistics::cases()),
        ("order", order::cases()),
        ("linalg", linalg::cases()),
        ("nn", nn::cases()),
        ("batch_norm", batch_norm::cases()),
        ("join", join::cases()),
        ("index", index::cases()),
        ("random", random::cases()),
        ("views", views::cases()),
        ("copy", copy::cases()),
        ("create", create::cases()),
    ];
    families
        .into_iter()
        .flat_map(|(family, cases)| cases.into_iter().map(move |case| case.in_family(family)))
        .collect()
}
