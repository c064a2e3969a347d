//! Distances between the rows of matrices.

use std::str::FromStr;

use plimsoll_core::{Error, Result, broadcast_shapes};
use plimsoll_memory::Site;

use super::options::options;
use crate::Tensor;
use crate::api::composed;
use crate::ops::distance::Cdist;
use crate::prepare::apply_one;

/// How PyTorch may compute Euclidean distances; here they are always sums of squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputeMode;

impl FromStr for ComputeMode {
    type Err = Error;

    fn from_str(word: &str) -> Result<ComputeMode> {
        let known = [
            "use_mm_for_euclid_dist_if_necessary",
            "use_mm_for_euclid_dist",
            "donot_use_mm_for_euclid_dist",
        ];
        match known.contains(&word) {
            true => Ok(ComputeMode),
            false => Err(Error::invalid_argument(format!(
                "{word:?} is not a valid value for compute_mode"
            ))
            .in_operation("cdist")),
        }
    }
}

options! {
    /// By what norm [`Tensor::cdist_with`] goes.
    CdistOptions {
        /// The order of the norm.
        p: f64 = 2.0,
        /// Taken for PyTorch's sake.
        compute_mode: ComputeMode = ComputeMode,
    }
}

options! {
    /// By what norm [`Tensor::pdist_with`] goes.
    PdistOptions {
        /// The order of the norm.
        p: f64 = 2.0,
    }
}

impl Tensor {
    /// The distance of every row of one matrix to every row of another.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1, 2], DType::F32)?;
    /// let y = Tensor::from_slice(&[3.0f32, 4.0, 0.0, 1.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(Tensor::cdist(&x, &y)?.to_vec::<f32>()?, [5.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cdist(x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
        Tensor::cdist_with(x1, x2, CdistOptions::new())
    }

    /// [`Tensor::cdist`] by another norm.
    #[track_caller]
    pub fn cdist_with(x1: &Tensor, x2: &Tensor, options: CdistOptions) -> Result<Tensor> {
        let site = Site::caller();
        composed("cdist", site, || cdist("cdist", x1, x2, options.p, site))
    }

    /// The distances of all pairs of a matrix's rows, those of the first row first.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 3.0, 4.0], &[3, 1], Device::cpu())?;
    /// assert_eq!(x.pdist()?.to_vec::<f32>()?, [3.0, 4.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pdist(&self) -> Result<Tensor> {
        self.pdist_with(PdistOptions::new())
    }

    /// [`Tensor::pdist`] by another norm.
    #[track_caller]
    pub fn pdist_with(&self, options: PdistOptions) -> Result<Tensor> {
        let site = Site::caller();
        composed("pdist", site, || {
            if self.rank() != 2 {
                let why = format!("a matrix is needed, not shape {:?}", self.shape());
                return Err(Error::shape("pdist", why));
            }
            let all = cdist("pdist", self, self, options.p, site)?;
            let rows = self.shape()[0] as i64;
            let pairs = Tensor::triu_indices(rows, rows, 1, self.device())?;
            all.index(&[Some(&pairs.select(0, 0)?), Some(&pairs.select(0, 1)?)])
        })
    }
}

fn cdist(name: &'static str, x: &Tensor, y: &Tensor, p: f64, site: Site) -> Result<Tensor> {
    let ([x_batch @ .., rows, width], [y_batch @ .., others, y_width]) = (x.shape(), y.shape())
    else {
        return Err(Error::shape(
            name,
            format!("matrices are needed, not shapes {:?} and {:?}", x.shape(), y.shape()),
        ));
    };
    if width != y_width {
        return Err(Error::shape(
            name,
            format!("rows of {width} and {y_width} numbers have no distance; give as many to both"),
        ));
    }
    if p < 0.0 || p.is_nan() {
        return Err(Error::shape(name, format!("the order must not be negative, and is {p}")));
    }
    let batch = broadcast_shapes(name, &[x_batch, y_batch])?;
    let batch: Vec<i64> = batch.iter().map(|&size| size as i64).collect();
    let count = batch.iter().product();
    let flat = |t: &Tensor, rows: usize| {
        let sizes = [&batch[..], &[rows as i64, *width as i64]].concat();
        t.expand(&sizes)?.reshape(&[count, rows as i64, *width as i64])?.contiguous()
    };
    let (x, y) = (flat(x, *rows)?, flat(y, *others)?);
    let distances = apply_one(&Cdist { order: p }, &[&x, &y], site)?;
    distances.reshape(&[&batch[..], &[*rows as i64, *others as i64]].concat())
}
