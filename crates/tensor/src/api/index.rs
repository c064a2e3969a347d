//! Reading and writing at positions that other tensors hold; along one dimension, see `scatter.rs`,
//! by masks and flat positions, `masks.rs`. Masks become index tensors here (by
//! `nonzero`), and gaps in a list of index tensors become the dimensions that the others stand at.

use plimsoll_core::{DType, Dims, Error, Result};
use plimsoll_memory::{Site, enter_operation};
use smallvec::SmallVec;

use crate::Tensor;
use crate::dispatch::Dest;
use crate::operation::Operation;
use crate::ops::index::nonzero::Nonzero;
use crate::ops::index::{Index, IndexPut};
use crate::prepare::{apply, apply_one};

impl Tensor {
    /// `x[i, :, j]`: the elements at every combination of the index tensors, which broadcast with
    /// each other; `None` keeps a dimension, a bool tensor selects where it holds. Negative indices
    /// count from the end.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::F32)?.view(&[2, 3])?;
    /// let columns = Tensor::from_slice(&[-1i64, 0], &[2], Device::cpu())?;
    /// assert_eq!(x.index(&[None, Some(&columns)])?.to_vec::<f32>()?, [2.0, 0.0, 5.0, 3.0]);
    /// assert_eq!(x.index(&[Some(&x.gt(3)?)])?.to_vec::<f32>()?, [4.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn index(&self, indices: &[Option<&Tensor>]) -> Result<Tensor> {
        let _named = enter_operation("index");
        let site = Site::caller();
        let (dims, indices) = resolve("index", self, indices, site)?;
        let inputs: SmallVec<[&Tensor; 4]> = std::iter::once(self).chain(&indices).collect();
        apply_one(&Index { dims }, &inputs, site)
    }

    /// A copy of this tensor with `values`, which broadcast, where [`Tensor::index`] would read;
    /// added to what is there if `accumulate`. Of values for one place the last stays.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[3], DType::F32)?;
    /// let index = Tensor::from_slice(&[0i64, 0, 2], &[3], Device::cpu())?;
    /// let one = Tensor::ones(&[], DType::F32)?;
    /// assert_eq!(x.index_put(&[Some(&index)], &one, true)?.to_vec::<f32>()?, [2.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn index_put(
        &self,
        indices: &[Option<&Tensor>],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<Tensor> {
        let _named = enter_operation("index_put");
        let site = Site::caller();
        let values = &values_in_dtype_of(self, indices, values, accumulate)?;
        let (dims, indices) = resolve("index_put", self, indices, site)?;
        let inputs: SmallVec<[&Tensor; 4]> = [self, values].into_iter().chain(&indices).collect();
        apply_one(&IndexPut { dims, accumulate }, &inputs, site)
    }

    /// [`Tensor::index_put`] in place: `x[i, :, j] = values`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// x.index_put_(&[Some(&x.gt(0)?)], &Tensor::scalar(9.0, DType::F32)?, false)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 9.0, 9.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn index_put_(
        &self,
        indices: &[Option<&Tensor>],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<&Tensor> {
        let _named = enter_operation("index_put");
        let site = Site::caller();
        let values = &values_in_dtype_of(self, indices, values, accumulate)?;
        let (dims, indices) = resolve("index_put", self, indices, site)?;
        let inputs: SmallVec<[&Tensor; 4]> = [self, values].into_iter().chain(&indices).collect();
        apply(&IndexPut { dims, accumulate } as &dyn Operation, &inputs, Dest::InPlace, site)?;
        Ok(self)
    }

    /// The positions of the elements that are not zero, in row-major order: int64, one row each,
    /// one column for each dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::eye(2, DType::F32)?;
    /// assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 0, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        apply_one(&Nonzero, &[self], Site::caller())
    }

    /// [`Tensor::nonzero`] by dimension: one tensor of positions for each, as indices to index
    /// with.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::eye([2, 3], DType::F32)?;
    /// let places = x.nonzero_tuple()?;
    /// assert_eq!((places.len(), places[1].to_vec::<i64>()?), (2, vec![0, 1]));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn nonzero_tuple(&self) -> Result<Vec<Tensor>> {
        let _named = enter_operation("nonzero");
        // A number has one dimension to have a position in.
        let wide = if self.rank() == 0 { self.unsqueeze(0)? } else { self.clone() };
        let places = wide.nonzero()?;
        (0..wide.rank() as i64).map(|column| places.select(1, column)).collect()
    }
}

/// The values of `index_put`: PyTorch fills by a single mask with one value of any dtype.
fn values_in_dtype_of(
    x: &Tensor,
    indices: &[Option<&Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<Tensor> {
    let mut given = indices.iter().flatten();
    let is_mask = |index: &&Tensor| matches!(index.dtype(), DType::Bool | DType::U8);
    let fills = given.next().is_some_and(is_mask) && given.next().is_none();
    match fills && !accumulate && values.numel() == 1 {
        true => values.to(x.dtype()),
        false => Ok(values.clone()),
    }
}

/// Index tensors as the kernels take them (int64, on x's device) and the dimensions that they stand
/// at.
fn resolve(
    op: &'static str,
    x: &Tensor,
    indices: &[Option<&Tensor>],
    site: Site,
) -> Result<(Dims, SmallVec<[Tensor; 3]>)> {
    let (mut dims, mut found) = (Dims::new(), SmallVec::new());
    let mut dim = 0;
    for index in indices {
        let Some(index) = index else {
            dim += 1;
            continue;
        };
        let index = index.to_device(x.device(), site)?;
        match index.dtype() {
            DType::I64 | DType::I32 => {
                dims.push(dim);
                found.push(index);
                dim += 1;
            }
            // uint8 is PyTorch's bool of old: a mask, not positions.
            DType::Bool | DType::U8 => {
                check_mask(op, x, &index, dim)?;
                let places = apply_one(&Nonzero, &[&index], site)?;
                for column in 0..index.rank() {
                    dims.push(dim + column);
                    found.push(places.select(1, column as i64)?);
                }
                dim += index.rank();
            }
            other => {
                return Err(Error::index(
                    op,
                    format!(
                        "an index tensor must be int64, int32, bool or uint8, not {other}; convert it with `long` or `bool`"
                    ),
                ));
            }
        }
    }
    if dim > x.rank() {
        return Err(Error::index(
            op,
            format!(
                "too many indices: they name {dim} dimensions of a tensor of shape {:?}",
                x.shape()
            ),
        ));
    }
    if found.is_empty() {
        return Err(
            Error::invalid_argument("no index tensor is given; give at least one").in_operation(op)
        );
    }
    Ok((dims, found))
}

/// A mask must have the sizes of the dimensions that it stands for.
fn check_mask(op: &'static str, x: &Tensor, mask: &Tensor, dim: usize) -> Result<()> {
    if mask.rank() == 0 {
        return Err(Error::index(
            op,
            "a mask without dimensions stands for none; use `where_`, or `view` it as [1]",
        ));
    }
    let own = x.shape().get(dim..dim + mask.rank());
    if own != Some(mask.shape()) {
        return Err(Error::index(
            op,
            format!(
                "a mask of shape {:?} from dimension {dim} on does not fit shape {:?}: the sizes must be equal",
                mask.shape(),
                x.shape()
            ),
        ));
    }
    Ok(())
}
