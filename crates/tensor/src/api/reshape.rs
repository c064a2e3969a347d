//! Other shapes: views where they exist, copies where they do not. Orders of dimensions are in
//! `orders.rs`.

use plimsoll_core::{Error, Result, broadcast_shapes, normalize_dim};
use plimsoll_memory::{Site, enter_operation, with_site};
use smallvec::SmallVec;

use crate::Tensor;
use crate::ops::copy::Format;
use crate::ops::views::View;
use crate::prepare::apply_one;

impl Tensor {
    /// As [`Tensor::view`], but copies where no view exists.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?.view(&[2, 3])?;
    /// assert_eq!(x.t()?.reshape(&[6])?.to_vec::<i64>()?, [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("reshape");
        let site = Site::caller();
        let (_, shared) = self.layout().reshape(sizes)?;
        let view = View::Sizes(sizes.into());
        match shared {
            Some(_) => apply_one(&view, &[self], site),
            None => {
                let copy = self.copied(self.dtype(), Format::Contiguous, site)?;
                // Nobody else has the copy: the result is no view of it.
                Ok(apply_one(&view, &[&copy], site)?.without_base())
            }
        }
    }

    /// [`Tensor::reshape`] to the shape of another tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let other = Tensor::zeros(&[2, 2], DType::F32)?;
    /// assert_eq!(Tensor::zeros(&[4], DType::F32)?.reshape_as(&other)?.shape(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn reshape_as(&self, other: &Tensor) -> Result<Tensor> {
        let _named = enter_operation("reshape_as");
        self.reshape(&sizes_of(other))
    }

    /// [`Tensor::view`] in the shape of another tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let other = Tensor::zeros(&[2, 2], DType::F32)?;
    /// assert_eq!(Tensor::zeros(&[4], DType::F32)?.view_as(&other)?.shape(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn view_as(&self, other: &Tensor) -> Result<Tensor> {
        let _named = enter_operation("view_as");
        self.view(&sizes_of(other))
    }

    /// Dimensions `start` to `end` merged into one.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 3, 4], DType::F32)?;
    /// assert_eq!(x.flatten(1, -1)?.shape(), [2, 12]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let _named = enter_operation("flatten");
        let start = normalize_dim("flatten", start, self.rank())?;
        let end = normalize_dim("flatten", end, self.rank())?;
        if self.rank() == 0 {
            return self.reshape(&[1]);
        }
        if start > end {
            return Err(Error::shape(
                "flatten",
                format!("dimension {start} comes after {end}; give them in ascending order"),
            ));
        }
        let mut sizes: Vec<i64> = self.shape()[..start].iter().map(|&size| size as i64).collect();
        sizes.push(self.shape()[start..=end].iter().product::<usize>() as i64);
        sizes.extend(self.shape()[end + 1..].iter().map(|&size| size as i64));
        self.reshape(&sizes)
    }

    /// One dimension as several, of which one size may be -1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 12], DType::F32)?;
    /// assert_eq!(x.unflatten(1, &[3, -1])?.shape(), [2, 3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unflatten(&self, dim: i64, sizes: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("unflatten");
        let dim = normalize_dim("unflatten", dim, self.rank())?;
        let Some(&size) = self.shape().get(dim).filter(|_| !sizes.is_empty()) else {
            return Err(Error::shape(
                "unflatten",
                format!("no dimension becomes {sizes:?} of shape {:?}", self.shape()),
            ));
        };
        // Its own sizes are found first, so that another dimension of size 0 leaves no doubt.
        let (own, _) = plimsoll_core::Layout::contiguous(&[size])?
            .reshape(sizes)
            .map_err(|e| e.in_operation("unflatten"))?;
        let mut all: Vec<i64> = self.shape()[..dim].iter().map(|&size| size as i64).collect();
        all.extend(own.iter().map(|&size| size as i64));
        all.extend(self.shape()[dim + 1..].iter().map(|&size| size as i64));
        self.view(&all)
    }

    /// All elements in one dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.ravel()?.shape(), [6]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ravel(&self) -> Result<Tensor> {
        let _named = enter_operation("ravel");
        self.contiguous()?.view(&[-1])
    }

    /// [`Tensor::expand`] to the shape of another tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let other = Tensor::zeros(&[3, 2], DType::F32)?;
    /// assert_eq!(Tensor::zeros(&[2], DType::F32)?.expand_as(&other)?.strides(), [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn expand_as(&self, other: &Tensor) -> Result<Tensor> {
        let _named = enter_operation("expand_as");
        self.expand(&sizes_of(other))
    }

    /// As [`Tensor::expand`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 2, 1, DType::I64)?;
    /// assert_eq!(x.broadcast_to(&[3, 2])?.strides(), [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_to(&self, sizes: &[i64]) -> Result<Tensor> {
        self.expand(sizes)
    }

    /// All tensors expanded to the shape that they broadcast to.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (a, b) = (Tensor::zeros(&[2, 1], DType::F32)?, Tensor::zeros(&[3], DType::F32)?);
    /// assert_eq!(Tensor::broadcast_tensors(&[&a, &b])?[1].shape(), [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_tensors(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        let _named = enter_operation("broadcast_tensors");
        let shapes: SmallVec<[&[usize]; 4]> = tensors.iter().map(|tensor| tensor.shape()).collect();
        let shape = broadcast_shapes("broadcast_tensors", &shapes)?;
        let sizes: SmallVec<[i64; 6]> = shape.iter().map(|&size| size as i64).collect();
        with_site(Site::caller(), || tensors.iter().map(|tensor| tensor.expand(&sizes)).collect())
    }

    /// With one dimension at least.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::scalar(1.0, DType::F32)?.atleast_1d()?.shape(), [1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_1d(&self) -> Result<Tensor> {
        let _named = enter_operation("atleast_1d");
        if self.rank() == 0 { self.view(&[1]) } else { Ok(self.clone()) }
    }

    /// With two dimensions at least; a vector becomes a row.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[3], DType::F32)?.atleast_2d()?.shape(), [1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_2d(&self) -> Result<Tensor> {
        let _named = enter_operation("atleast_2d");
        match self.rank() {
            0 => self.view(&[1, 1]),
            1 => self.unsqueeze(0),
            _ => Ok(self.clone()),
        }
    }

    /// With three dimensions at least; a vector becomes a row, and a matrix gets a last dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[3], DType::F32)?.atleast_3d()?.shape(), [1, 3, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_3d(&self) -> Result<Tensor> {
        let _named = enter_operation("atleast_3d");
        match self.rank() {
            0 => self.view(&[1, 1, 1]),
            1 => self.unsqueeze(0)?.unsqueeze(-1),
            2 => self.unsqueeze(-1),
            _ => Ok(self.clone()),
        }
    }
}

/// The sizes of a tensor as arguments of views.
pub(crate) fn sizes_of(tensor: &Tensor) -> SmallVec<[i64; 6]> {
    tensor.shape().iter().map(|&size| size as i64).collect()
}
