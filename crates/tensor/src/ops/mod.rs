//! The operations, one file a family, and the registry that lists them. The registry drives the
//! tests, the coverage table and the Python methods; an operation that is not in it does not exist
//! for users.

pub(crate) mod activation;
pub(crate) mod add_layer_norm;
pub(crate) mod aten;
pub(crate) mod attention;
pub(crate) mod batch_norm;
pub(crate) mod binary;
pub(crate) mod channels_last;
pub(crate) mod clamp;
pub(crate) mod compare;
pub(crate) mod conv;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod cross_entropy;
pub(crate) mod ctc;
pub(crate) mod derived;
pub(crate) mod distance;
pub(crate) mod elementwise;
pub(crate) mod embedding;
pub(crate) mod extremes;
pub(crate) mod frexp;
pub(crate) mod grid;
pub(crate) mod group_norm;
pub(crate) mod index;
pub(crate) mod interpolate;
pub(crate) mod join;
pub(crate) mod layer_norm;
pub(crate) mod linalg;
pub(crate) mod linear_cross_entropy;
pub(crate) mod loss;
pub(crate) mod membership;
pub(crate) mod native_norm;
pub(crate) mod nn;
pub(crate) mod norm;
pub(crate) mod norms;
pub(crate) mod numeric;
pub(crate) mod optim;
pub(crate) mod pointwise;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod rearrange;
pub(crate) mod recurrent;
mod recurrent_steps;
pub(crate) mod reduce;
pub(crate) mod reshape;
pub(crate) mod scan;
pub(crate) mod search;
pub(crate) mod select;
pub(crate) mod shuffle;
pub(crate) mod sort;
pub(crate) mod split;
pub(crate) mod statistics;
pub(crate) mod ternary;
pub(crate) mod transfer;
pub(crate) mod triangle;
pub(crate) mod unary;
pub(crate) mod unique;
pub(crate) mod unscale;
pub(crate) mod view_copies;
pub(crate) mod views;

use crate::operation::OpInfo;

/// Every operation, by family.
pub static OPS: &[&[&OpInfo]] = &[
    activation::OPS,
    aten::OPS,
    attention::OPS,
    binary::OPS,
    binary::bitwise::OPS,
    binary::functions::OPS,
    binary::special::OPS,
    clamp::OPS,
    compare::OPS,
    conv::OPS,
    copy::OPS,
    create::OPS,
    derived::OPS,
    distance::OPS,
    embedding::OPS,
    extremes::OPS,
    frexp::OPS,
    grid::OPS,
    index::OPS,
    interpolate::OPS,
    join::OPS,
    linalg::OPS,
    linalg::lu::OPS,
    linalg::solve::OPS,
    linalg::cholesky::OPS,
    linalg::qr::OPS,
    linalg::spectral::OPS,
    linalg::of_factors::OPS,
    linear_cross_entropy::OPS,
    loss::OPS,
    membership::OPS,
    native_norm::OPS,
    nn::OPS,
    norm::OPS,
    numeric::OPS,
    pool::OPS,
    random::OPS,
    rearrange::OPS,
    recurrent::OPS,
    reduce::OPS,
    reshape::OPS,
    scan::OPS,
    search::OPS,
    select::OPS,
    shuffle::OPS,
    sort::OPS,
    split::OPS,
    statistics::OPS,
    ternary::OPS,
    triangle::OPS,
    unary::exponential::OPS,
    unary::functions::OPS,
    unary::predicates::OPS,
    unary::rounding::OPS,
    unary::special::OPS,
    unary::special_module::OPS,
    unary::trigonometric::OPS,
    unique::OPS,
    view_copies::OPS,
    views::OPS,
];

/// Every operation in the order of the registry.
///
/// ```
/// assert!(plimsoll_tensor::ops().any(|op| op.name == "add"));
/// ```
pub fn ops() -> impl Iterator<Item = &'static OpInfo> {
    OPS.iter().flat_map(|family| family.iter().copied())
}
