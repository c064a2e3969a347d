//! Sampling of images and volumes at places that a grid names.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use super::composed;
use super::options::options;
use crate::Tensor;
use crate::ops::grid::GridSample;
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::grid::GridArgs;
pub use plimsoll_kernels::cpu::grid::{GridMode, GridPadding};

options! {
    /// How [`Tensor::grid_sample_with`] computes.
    GridSampleOptions {
        /// How places between pixels are filled.
        grid_mode: GridMode = GridMode::Linear,
        /// What lies beyond the outermost pixels.
        grid_padding: GridPadding = GridPadding::Zeros,
        /// Whether -1 and 1 are the centres of the outermost pixels, and not their edges.
        align_corners: bool = false,
    }
}

impl Tensor {
    /// This tensor, of [batch, channels, 2 or 3 spatial dimensions], at the places that `grid`
    /// names: each from -1 to 1, the last spatial dimension first. Between pixels it is linear.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[1, 1, 2, 2], Device::cpu())?;
    /// let middle = Tensor::zeros(&[1, 1, 1, 2], DType::F32)?;
    /// assert_eq!(x.grid_sample(&middle)?.to_vec::<f32>()?, [2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn grid_sample(&self, grid: &Tensor) -> Result<Tensor> {
        self.grid_sample_with(grid, GridSampleOptions::new())
    }

    /// [`Tensor::grid_sample`] in another way.
    #[track_caller]
    pub fn grid_sample_with(&self, grid: &Tensor, options: GridSampleOptions) -> Result<Tensor> {
        let site = Site::caller();
        let GridSampleOptions { grid_mode, grid_padding, align_corners } = options;
        let args =
            GridArgs { mode: grid_mode, padding: grid_padding, align_corners, directed: false };
        composed("grid_sample", site, || {
            let inputs = [&self.contiguous()?, &grid.contiguous()?];
            apply_one(&GridSample(args), &inputs, site)
        })
    }

    /// [`Tensor::grid_sample`] with PyTorch's numbers: modes 0 (linear), 1 (nearest) and 2 (cubic),
    /// paddings 0 (zeros), 1 (border) and 2 (reflection).
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 1, 2, 2], DType::F32)?;
    /// let grid = Tensor::zeros(&[1, 1, 1, 2], DType::F32)?;
    /// assert_eq!(x.grid_sampler(&grid, 1, 0, false)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn grid_sampler(
        &self,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<Tensor> {
        composed("grid_sampler", Site::caller(), || {
            let options = numbered(interpolation_mode, padding_mode, align_corners)?;
            self.grid_sample_with(grid, options)
        })
    }

    /// [`Tensor::grid_sampler`] of images.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 1, 2, 2], DType::F32)?;
    /// let grid = Tensor::zeros(&[1, 1, 1, 2], DType::F32)?;
    /// assert_eq!(x.grid_sampler_2d(&grid, 2, 1, false)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn grid_sampler_2d(
        &self,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<Tensor> {
        let site = Site::caller();
        of_rank("grid_sampler_2d", self, 4)?;
        composed("grid_sampler_2d", site, || {
            let options = numbered(interpolation_mode, padding_mode, align_corners)?;
            self.grid_sample_with(grid, options)
        })
    }

    /// [`Tensor::grid_sampler`] of volumes.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 1, 2, 2, 2], DType::F32)?;
    /// let grid = Tensor::zeros(&[1, 1, 1, 1, 3], DType::F32)?;
    /// assert_eq!(x.grid_sampler_3d(&grid, 0, 0, false)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn grid_sampler_3d(
        &self,
        grid: &Tensor,
        interpolation_mode: i64,
        padding_mode: i64,
        align_corners: bool,
    ) -> Result<Tensor> {
        let site = Site::caller();
        of_rank("grid_sampler_3d", self, 5)?;
        composed("grid_sampler_3d", site, || {
            let options = numbered(interpolation_mode, padding_mode, align_corners)?;
            self.grid_sample_with(grid, options)
        })
    }
}

fn of_rank(name: &'static str, x: &Tensor, rank: usize) -> Result<()> {
    if x.rank() == rank {
        return Ok(());
    }
    Err(Error::shape(
        name,
        format!("the input needs {rank} dimensions, and has the shape {:?}", x.shape()),
    ))
}

/// PyTorch's numbers as words.
fn numbered(mode: i64, padding: i64, align_corners: bool) -> Result<GridSampleOptions> {
    let grid_mode = match mode {
        0 => GridMode::Linear,
        1 => GridMode::Nearest,
        2 => GridMode::Cubic,
        _ => {
            return Err(Error::invalid_argument(format!(
                "the mode is 0 (linear), 1 (nearest) or 2 (cubic), and not {mode}"
            )));
        }
    };
    let grid_padding = match padding {
        0 => GridPadding::Zeros,
        1 => GridPadding::Border,
        2 => GridPadding::Reflection,
        _ => {
            return Err(Error::invalid_argument(format!(
                "the padding is 0 (zeros), 1 (border) or 2 (reflection), and not {padding}"
            )));
        }
    };
    Ok(GridSampleOptions { grid_mode, grid_padding, align_corners })
}
