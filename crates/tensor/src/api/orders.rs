//! Dimensions in another order, by the names that PyTorch has for it. All are `transpose` and
//! `permute`.

use plimsoll_core::{Error, Result, normalize_dim};
use plimsoll_memory::enter_operation;
use smallvec::SmallVec;

use crate::Tensor;

impl Tensor {
    /// A matrix with rows and columns swapped; vectors and scalars stay as they are.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?.view(&[2, 3])?;
    /// assert_eq!(x.t()?.to_vec::<i64>()?, [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        match self.rank() {
            0 | 1 => Ok(self.clone()),
            2 => self.transpose(0, 1),
            rank => Err(Error::shape(
                "t",
                format!(
                    "expects at most 2 dimensions, but this tensor has {rank}; use `transpose`"
                ),
            )),
        }
    }

    /// Every dimension in reverse order: PyTorch's `T`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3, 4], DType::F32)?.reversed()?.shape(), [4, 3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn reversed(&self) -> Result<Tensor> {
        let dims: SmallVec<[i64; 6]> = (0..self.rank() as i64).rev().collect();
        self.permute(&dims)
    }

    /// A matrix, and nothing else, with rows and columns swapped: PyTorch's `H`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.matrix_h()?.shape(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_h(&self) -> Result<Tensor> {
        match self.rank() {
            0 => Ok(self.clone()),
            2 => self.transpose(0, 1),
            rank => {
                let why =
                    format!("it is only supported on matrices, and this has {rank} dimensions");
                Err(Error::shape("H", why))
            }
        }
    }

    /// Matrices with rows and columns swapped: the last two dimensions.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3, 4], DType::F32)?.adjoint()?.shape(), [2, 4, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn adjoint(&self) -> Result<Tensor> {
        let _named = enter_operation("adjoint");
        match self.rank() {
            1 => {
                let why = "it is only supported on matrices or batches of them, and this has one dimension";
                Err(Error::shape("adjoint", why))
            }
            0 => Ok(self.clone()),
            _ => self.transpose(-2, -1),
        }
    }

    /// Dimensions `source` moved to the places `destination`; the others keep their order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 3, 4], DType::F32)?;
    /// assert_eq!(x.movedim(&[0], &[2])?.shape(), [3, 4, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn movedim(&self, source: &[i64], destination: &[i64]) -> Result<Tensor> {
        const OP: &str = "movedim";
        let _named = enter_operation(OP);
        if source.len() != destination.len() {
            return Err(Error::shape(
                OP,
                format!("{source:?} and {destination:?} must be as many dimensions"),
            ));
        }
        let normal = |dims: &[i64]| -> Result<SmallVec<[usize; 6]>> {
            let normal = dims.iter().map(|&dim| normalize_dim(OP, dim, self.rank()));
            let normal = normal.collect::<Result<SmallVec<[usize; 6]>>>()?;
            match (1..normal.len()).find(|&at| normal[..at].contains(&normal[at])) {
                Some(at) => Err(Error::shape(
                    OP,
                    format!("dimension {} appears twice in {dims:?}", dims[at]),
                )),
                None => Ok(normal),
            }
        };
        let (from, to) = (normal(source)?, normal(destination)?);
        if self.rank() == 0 {
            return self.permute(&[]);
        }
        let mut rest = (0..self.rank()).filter(|dim| !from.contains(dim));
        let order: SmallVec<[i64; 6]> = (0..self.rank())
            .filter_map(|place| match to.iter().position(|&at| at == place) {
                Some(which) => Some(from[which] as i64),
                None => rest.next().map(|dim| dim as i64),
            })
            .collect();
        self.permute(&order)
    }

    /// [`Tensor::movedim`] by NumPy's name.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 3, 4], DType::F32)?;
    /// assert_eq!(x.moveaxis(&[0], &[-1])?.shape(), [3, 4, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn moveaxis(&self, source: &[i64], destination: &[i64]) -> Result<Tensor> {
        self.movedim(source, destination)
    }

    /// [`Tensor::transpose`] by NumPy's name.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.swapaxes(0, 1)?.shape(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn swapaxes(&self, axis0: i64, axis1: i64) -> Result<Tensor> {
        self.transpose(axis0, axis1)
    }

    /// [`Tensor::transpose`] by another name.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.swapdims(0, 1)?.shape(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn swapdims(&self, dim0: i64, dim1: i64) -> Result<Tensor> {
        self.transpose(dim0, dim1)
    }
}
