//! Reading and writing at positions that other tensors hold. `along.rs`: gather and the scatters,
//! one index for each element along a dimension. `advanced.rs`: lists of index tensors (`x[i, :,
//! j]`). `nonzero.rs`: where a tensor is not zero.
//!
//! An index outside its dimension is an error that names the index, the dimension and its size.
//! Kernels that change a tensor in place check every index before they write, and again where they
//! use it: a claim keeps other operations from writing the index meanwhile, but not the owner of
//! memory that is shared with another library. All others check as they go, because the indices are
//! half of the bytes that they move, and what they leave in a fresh output on error is dropped
//! anyway. (An `out=` that the caller keeps is then partly written.)

mod advanced;
mod along;
mod nonzero;

pub use advanced::{index, index_put, index_put_workspace_bytes, index_workspace_bytes};
pub use along::{Combine, gather, scatter};
pub use nonzero::{nonzero, nonzero_count};

use plimsoll_core::Error;

/// The error for `index` outside a dimension.
#[cold]
fn out_of_range(operation: &'static str, index: i64, dim: usize, size: usize) -> Error {
    let why = match size {
        0 => {
            format!("index is out of bounds for dimension with size 0: {index} of dimension {dim}")
        }
        _ => format!("index {index} is out of bounds for dimension {dim} with size {size}"),
    };
    Error::index(operation, why)
}

#[cfg(test)]
mod tests;
