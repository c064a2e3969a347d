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

mod activation;
mod aten;
mod attention;
mod batch_norm;
mod binary;
mod case;
mod compare;
mod conv;
mod copy;
mod create;
mod decompositions;
mod derived;
mod embedding;
mod factorizations;
mod functions;
mod grid;
mod index;
mod input;
mod instance;
mod interpolate;
mod join;
mod linalg;
mod linear_cross_entropy;
mod loss;
mod nn;
mod order;
mod pairs;
mod pool;
mod random;
mod rearrange;
mod recurrent;
mod reduce;
mod reshape;
mod scatter;
mod shuffle;
mod split;
mod statistics;
mod unary;
mod view_copies;
mod views;

use plimsoll_core::DType;

pub use case::{Arrays, Case, Inputs, IntoOutputs, Outputs, Tolerance};
pub use input::{Input, Values, Wanted};
pub use instance::Instance;
pub(crate) use instance::fingerprint;

/// Floating point.
const FLOATS: [DType; 4] = DType::FLOATS;
const SINGLE_AND_DOUBLE: [DType; 2] = [DType::F32, DType::F64];
/// Integers and floating point.
const NUMBERS: [DType; 9] = DType::NUMBERS;

/// Every case.
pub fn all() -> Vec<Case> {
    let families: [(&'static str, Vec<Case>); 41] = [
        ("unary", unary::cases()),
        ("binary", binary::cases()),
        ("compare", compare::cases()),
        ("functions", functions::cases()),
        ("pairs", pairs::cases()),
        ("special", functions::special_cases()),
        ("special_pairs", pairs::special_cases()),
        ("activation", activation::cases()),
        ("clamp", activation::clamp_cases()),
        ("ternary", activation::ternary_cases()),
        ("aten", aten::cases()),
        ("derived", derived::cases()),
        ("reduce", reduce::cases()),
        ("statistics", statistics::cases()),
        ("order", order::cases()),
        ("linalg", linalg::cases()),
        ("factorizations", factorizations::cases()),
        ("decompositions", decompositions::cases()),
        ("nn", nn::cases()),
        ("batch_norm", batch_norm::cases()),
        ("join", join::cases()),
        ("index", index::cases()),
        ("random", random::cases()),
        ("rearrange", rearrange::cases()),
        ("reshape", reshape::cases()),
        ("scatter", scatter::cases()),
        ("split", split::cases()),
        ("view_copies", view_copies::cases()),
        ("views", views::cases()),
        ("copy", copy::cases()),
        ("create", create::cases()),
        ("conv", conv::cases()),
        ("pool", pool::cases()),
        ("shuffle", shuffle::cases()),
        ("attention", attention::cases()),
        ("embedding", embedding::cases()),
        ("interpolate", interpolate::cases()),
        ("loss", loss::cases()),
        ("linear_cross_entropy", linear_cross_entropy::cases()),
        ("grid", grid::cases()),
        ("recurrent", recurrent::cases()),
    ];
    families
        .into_iter()
        .flat_map(|(family, cases)| cases.into_iter().map(move |case| case.in_family(family)))
        .collect()
}
