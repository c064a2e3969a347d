//! Tensors as a dataset: the rows of one or several tensors with the same first size. Rows are
//! views, so nothing is copied before the batch is made.

use plimsoll_tensor::{Error, Result, Tensor};

use crate::batch::Batch;
use crate::dataset::{Dataset, out_of_range};

/// The rows of tensors that have the same first size: PyTorch's `TensorDataset`. A sample has the
/// form of what it was made from, a tensor, a tuple, a list or a map of them.
///
/// ```
/// use plimsoll_data::{Dataset, TensorDataset};
/// use plimsoll_tensor::{DType, Tensor};
///
/// let x = Tensor::arange(0, 6, 1, DType::F32)?.view(&[3, 2])?;
/// let y = Tensor::arange(0, 3, 1, DType::I64)?;
/// let dataset = TensorDataset::new((x, y))?;
/// let (row, label) = dataset.get(1)?;
/// assert_eq!((row.to_vec::<f32>()?, label.item::<i64>()?), (vec![2.0, 3.0], 1));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorDataset<T> {
    tensors: T,
    len: usize,
}

impl<T: Batch + Clone + Sync> TensorDataset<T> {
    /// The rows of these tensors.
    pub fn new(tensors: T) -> Result<TensorDataset<T>> {
        let mut sizes: Vec<Option<usize>> = Vec::new();
        tensors.for_each_tensor(&mut |tensor| sizes.push(tensor.shape().first().copied()));
        let refused = |why: String| Err(Error::shape("TensorDataset", why));
        let Some(&first) = sizes.first() else {
            return refused("there is no tensor; give at least one".to_string());
        };
        if let Some(at) = sizes.iter().position(Option::is_none) {
            return refused(format!("tensor {at} is a number and has no rows; unsqueeze it"));
        }
        if let Some(at) = sizes.iter().position(|&size| size != first) {
            let rows = |size: Option<usize>| size.unwrap_or(0);
            return refused(format!(
                "Size mismatch between tensors: tensor {at} has {} rows, the first one {}",
                rows(sizes[at]),
                rows(first)
            ));
        }
        Ok(TensorDataset { tensors, len: first.unwrap_or(0) })
    }

    /// The tensors.
    pub fn tensors(&self) -> &T {
        &self.tensors
    }
}

impl<T: Batch + Clone + Sync> Dataset for TensorDataset<T> {
    type Sample = T;

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<T> {
        if index >= self.len {
            return Err(out_of_range(index, self.len));
        }
        let row = &mut |tensor: Tensor| tensor.select(0, index as i64);
        self.tensors.clone().map_tensors(row)
    }
}
