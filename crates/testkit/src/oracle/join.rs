//! Joining arrays.

use super::{Array, lattice, views};

/// The arrays one after the other along `dim`. A one-dimensional empty array joins with anything
/// (an old habit of PyTorch's).
pub fn cat(arrays: &[&Array], dim: i64) -> Array {
    let dtype = arrays.iter().map(|a| a.dtype()).reduce(lattice).expect("at least one array");
    let parts: Vec<&&Array> = arrays.iter().filter(|a| a.shape() != [0]).collect();
    let Some(first) = parts.first() else { return Array::zeros(dtype, &[0]) };
    let d = first.dim(dim);
    let mut shape = first.shape().to_vec();
    shape[d] = parts.iter().map(|a| a.shape()[d]).sum();
    Array::build(dtype, &shape, |index| {
        let mut index = index.to_vec();
        for part in &parts {
            if index[d] < part.shape()[d] {
                return part.at(&index);
            }
            index[d] -= part.shape()[d];
        }
        unreachable!("the sizes add up to the result's")
    })
}

/// The arrays along a new dimension `dim`.
pub fn stack(arrays: &[&Array], dim: i64) -> Array {
    let rank = arrays[0].shape().len() as i64 + 1;
    let dim = dim.rem_euclid(rank);
    let parts: Vec<Array> = arrays.iter().map(|a| views::unsqueeze(a, dim)).collect();
    cat(&parts.iter().collect::<Vec<_>>(), dim)
}
