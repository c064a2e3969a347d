//! Rows of a table by index, and bags of them.

use plimsoll_tensor::BagMode;

use super::{Array, Number};

/// A row of `table` for each index.
pub fn embedding(table: &Array, indices: &Array) -> Array {
    let mut shape = indices.shape().to_vec();
    shape.push(table.shape()[1]);
    Array::build(table.dtype(), &shape, |i| {
        let (column, place) = i.split_last().expect("a last dimension");
        table.at(&[indices.at(place).to_i64() as usize, *column])
    })
}

/// The sum, mean or maximum of the rows of each bag; bags start at `starts`.
pub fn bag(
    table: &Array,
    indices: &Array,
    starts: &[usize],
    mode: BagMode,
    weights: Option<&Array>,
    padding: Option<i64>,
) -> Array {
    Array::build(table.dtype(), &[starts.len(), table.shape()[1]], |i| {
        let end = starts.get(i[0] + 1).copied().unwrap_or(indices.numel());
        let values: Vec<f64> = (starts[i[0]]..end)
            .filter(|&sample| Some(indices.at(&[sample]).to_i64()) != padding)
            .map(|sample| {
                let row = indices.at(&[sample]).to_i64() as usize;
                table.at(&[row, i[1]]).to_f64()
                    * weights.map_or(1.0, |weights| weights.at(&[sample]).to_f64())
            })
            .collect();
        let sum: f64 = values.iter().sum();
        Number::Float(match mode {
            _ if values.is_empty() => 0.0,
            BagMode::Sum => sum,
            BagMode::Mean => sum / values.len() as f64,
            BagMode::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    })
}
