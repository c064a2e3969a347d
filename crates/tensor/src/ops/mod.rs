//! The operations, one file a family, and the registry that lists them. The registry drives the
//! tests, the coverage table and the Python methods; an operation that is not in it does not exist
//! for users.

pub(crate) mod batch_norm;
pub(crate) mod binary;
pub(crate) mod compare;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod elementwise;
pub(crate) mod extremes;
pub(crate) mod index;
pub(crate) mod join;
pub(crate) mod layer_norm;
pub(crate) mod linalg;
pub(crate) mod nn;
pub(crate) mod norm;
pub(crate) mod optim;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod search;
pub(crate) mod select;
pub(crate) mod sort;
pub(crate) mod statistics;
pub(crate) mod transfer;
pub(crate) mod unary;
pub(crate) mod unique;
pub(crate) mod views;

use crate::operation::OpInfo;

/// Every operation, by family.
pub static OPS: &[&[&OpInfo]] = &[
    binary::OPS,
    compare::OPS,
    copy::OPS,
    create::OPS,
    extremes::OPS,
    index::OPS,
    join::OPS,
    linalg::OPS,
    nn::OPS,
    norm::OPS,
    random::OPS,
    reduce::OPS,
    scan::OPS,
    search::OPS,
    select::OPS,
    sort::OPS,
    statistics::OPS,
    unary::OPS,
    unique::OPS,
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
