//! Powers of matrices and of numbers side by side, and what is read off a diagonal.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::api::composed;

impl Tensor {
    /// The sum of the main diagonal of a matrix; integers are added up as int64.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.trace()?.item::<i64>()?, 3);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn trace(&self) -> Result<Tensor> {
        composed("trace", Site::caller(), || {
            if self.rank() != 2 {
                let why = format!("a matrix is needed, not shape {:?}", self.shape());
                return Err(Error::shape("trace", why));
            }
            if self.dtype() == DType::Bool {
                return Err(Error::dtype("trace", "truths have no sum; convert them with `to`"));
            }
            self.diagonal(0, 0, 1)?.sum()
        })
    }

    /// A view of a diagonal of each matrix, the last two dimensions unless others are named.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.linalg_diagonal(0, -2, -1)?.to_vec::<i64>()?, [0, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        self.diagonal(offset, dim1, dim2)
    }

    /// Powers of each number from 0 on, as many as `n` says or as there are numbers in a line.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2i64, 3], &[2], Device::cpu())?;
    /// assert_eq!(x.linalg_vander(Some(3))?.to_vec::<i64>()?, [1, 2, 4, 1, 3, 9]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_vander(&self, n: Option<i64>) -> Result<Tensor> {
        const OP: &str = "linalg_vander";
        composed(OP, Site::caller(), || {
            let x = if self.rank() == 0 { self.unsqueeze(0)? } else { self.clone() };
            if matches!(x.dtype(), DType::Bool | DType::F16 | DType::BF16) {
                let why = format!("{} has no powers here; convert with `to` first", x.dtype());
                return Err(Error::dtype(OP, why));
            }
            let count = n.unwrap_or(x.shape()[x.rank() - 1] as i64);
            if count <= 1 {
                let why = format!("at least two powers are needed, not {count}");
                return Err(Error::shape(OP, why));
            }
            let mut sizes: Vec<i64> = x.shape().iter().map(|&size| size as i64).collect();
            sizes.push(count - 1);
            let powers = x.unsqueeze(-1)?.expand(&sizes)?.cumprod(-1)?;
            Tensor::cat(&[&powers.narrow(-1, 0, 1)?.ones_like()?, &powers], -1)
        })
    }

    /// The product of `n` times each square matrix; the unit matrix for 0.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 1.0, 0.0, 1.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(x.linalg_matrix_power(5)?.to_vec::<f32>()?, [1.0, 5.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linalg_matrix_power(&self, n: i64) -> Result<Tensor> {
        matrix_power("linalg_matrix_power", self, n, Site::caller())
    }

    /// Another name of [`Tensor::linalg_matrix_power`].
    #[track_caller]
    pub fn matrix_power(&self, n: i64) -> Result<Tensor> {
        matrix_power("matrix_power", self, n, Site::caller())
    }
}

fn matrix_power(name: &'static str, x: &Tensor, n: i64, site: Site) -> Result<Tensor> {
    composed(name, site, || {
        let [.., rows, columns] = *x.shape() else {
            let why = format!("matrices are needed, not shape {:?}", x.shape());
            return Err(Error::shape(name, why));
        };
        if rows != columns {
            let why = format!("the matrices of shape {:?} must be square", x.shape());
            return Err(Error::shape(name, why));
        }
        if n < 0 {
            let inverse = x.linalg_inv()?;
            return match n.checked_neg() {
                Some(1) => Ok(inverse),
                Some(n) => inverse.linalg_matrix_power(n),
                None => Err(Error::shape(name, format!("the power {n} is too large"))),
            };
        }
        if n == 0 {
            let one = Tensor::eye(rows as i64, (x.dtype(), x.device()))?;
            let sizes: Vec<i64> = x.shape().iter().map(|&size| size as i64).collect();
            // In the graph, as PyTorch's is, with a gradient of 0.
            let result = x.clone_tensor()?;
            result.copy_(&one.expand(&sizes)?)?;
            return Ok(result);
        }
        // By squares: as many products as `n` has bits, and one more for each that is set.
        let (mut square, mut result, mut left) = (x.clone(), None::<Tensor>, n);
        loop {
            if left & 1 == 1 {
                result = Some(match result {
                    Some(result) => result.matmul(&square)?,
                    None => square.clone(),
                });
            }
            left >>= 1;
            match result {
                Some(result) if left == 0 => {
                    return if result.is(x) { x.clone_tensor() } else { Ok(result) };
                }
                _ => square = square.matmul(&square)?,
            }
        }
    })
}
