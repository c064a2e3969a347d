//! Norms that give their moments too, as PyTorch's kernels of layers, groups and batches do.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;

use super::batch_norm::BatchNormOptions;
use super::group_norm::GroupNormOptions;
use super::nn::LayerNormOptions;
use super::options::DimList;
use super::reduce::SumOptions;
use super::statistics::VarOptions;
use crate::Tensor;
use crate::api::composed;

impl Tensor {
    /// [`Tensor::layer_norm_with`], and the mean and the inverse deviation of each row.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], &[1, 2], Device::cpu())?;
    /// let (y, mean, rstd) = x.native_layer_norm(&[2], LayerNormOptions::new().eps(0.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0]);
    /// assert_eq!((mean.item::<f32>()?, rstd.item::<f32>()?), (2.0, 1.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn native_layer_norm(
        &self,
        normalized_shape: &[i64],
        options: LayerNormOptions<'_>,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        composed("native_layer_norm", Site::caller(), || {
            let eps = options.eps;
            let result = self.layer_norm_with(normalized_shape, options)?;
            let dims: Vec<i64> = (1..=normalized_shape.len() as i64).map(|dim| -dim).collect();
            let (mean, rstd) = moments(&self.detach(), &dims, true, eps)?;
            Ok((result, mean, rstd))
        })
    }

    /// [`Tensor::group_norm_with`], and the mean and the inverse deviation of each group.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], &[1, 2], Device::cpu())?;
    /// let (_, mean, rstd) = x.native_group_norm(1, GroupNormOptions::new().eps(0.0))?;
    /// assert_eq!((mean.item::<f32>()?, rstd.item::<f32>()?), (2.0, 1.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn native_group_norm(
        &self,
        num_groups: i64,
        options: GroupNormOptions<'_>,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        composed("native_group_norm", Site::caller(), || {
            let GroupNormOptions { weight, bias, eps } = options;
            let parameter = weight.into_iter().chain(bias).find(|x| x.requires_grad());
            let result = self.group_norm_with(num_groups, options)?;
            let each = self.shape()[1..].iter().product::<usize>() as i64 / num_groups;
            let groups = self.reshape(&[self.shape()[0] as i64, num_groups, each])?;
            let (mean, rstd) = moments(&groups, &[-1], false, eps)?;
            match parameter {
                // In PyTorch the moments stand in the graph of whatever the result does.
                Some(parameter) if !self.requires_grad() && parameter.numel() > 0 => {
                    Ok((result, recorded(&mean, parameter)?, recorded(&rstd, parameter)?))
                }
                _ => Ok((result, mean, rstd)),
            }
        })
    }

    /// [`Tensor::batch_norm_with`], and in training the mean and the inverse deviation of each
    /// channel.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], &[2, 1], Device::cpu())?;
    /// let options = BatchNormOptions::new().training(true).eps(1e-20);
    /// let (_, mean, invstd) = x.native_batch_norm(None, None, options)?;
    /// assert_eq!((mean.item::<f32>()?, invstd.item::<f32>()?), (2.0, 1.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn native_batch_norm(
        &self,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        options: BatchNormOptions<'_>,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        batch("native_batch_norm", self, [running_mean, running_var], options, Site::caller())
    }

    /// Another name of [`Tensor::native_batch_norm`].
    #[track_caller]
    pub fn native_batch_norm_legit(
        &self,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        options: BatchNormOptions<'_>,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let running = [running_mean, running_var];
        batch("_native_batch_norm_legit", self, running, options, Site::caller())
    }

    /// [`Tensor::native_batch_norm`] in training, and what PyTorch keeps for its backward: nothing
    /// here.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], &[2, 1], Device::cpu())?;
    /// let (mean, var) = (Tensor::zeros(&[1], DType::F32)?, Tensor::ones(&[1], DType::F32)?);
    /// let options = BatchNormOptions::new().momentum(1.0);
    /// x.batch_norm_with_update(&mean, &var, options)?;
    /// assert_eq!((mean.item::<f32>()?, var.item::<f32>()?), (2.0, 2.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn batch_norm_with_update(
        &self,
        running_mean: &Tensor,
        running_var: &Tensor,
        options: BatchNormOptions<'_>,
    ) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
        let (site, running) = (Site::caller(), [Some(running_mean), Some(running_var)]);
        let name = "_batch_norm_with_update";
        let (result, mean, invstd) = batch(name, self, running, options.training(true), site)?;
        let reserve = composed(name, site, || Tensor::zeros(&[0], (DType::U8, self.device())))?;
        Ok((result, mean, invstd, reserve))
    }
}

fn batch(
    name: &'static str,
    x: &Tensor,
    [running_mean, running_var]: [Option<&Tensor>; 2],
    options: BatchNormOptions<'_>,
    site: Site,
) -> Result<(Tensor, Tensor, Tensor)> {
    composed(name, site, || {
        let (training, eps) = (options.training, options.eps);
        if x.rank() < 2 {
            let why = format!("shape {:?} has no channels", x.shape());
            return Err(Error::shape(name, why));
        }
        let result = x.batch_norm_with(running_mean, running_var, options)?;
        if !training {
            let none = || Tensor::zeros(&[0], (x.dtype(), x.device()));
            return Ok((result, none()?, none()?));
        }
        let dims: Vec<i64> = (0..x.rank() as i64).filter(|&dim| dim != 1).collect();
        let (mean, invstd) = moments(&x.detach(), &dims, false, eps)?;
        Ok((result, mean, invstd))
    })
}

/// `moment`, recorded as if it had been made of `parameter`, whose gradient by it is 0.
fn recorded(moment: &Tensor, parameter: &Tensor) -> Result<Tensor> {
    let never = Tensor::zeros(&[], (DType::Bool, moment.device()))?;
    Tensor::where_(&never, &parameter.select(0, 0)?.to(moment.dtype())?, moment)
}

/// The mean over `dims`, and one over the root of the variance plus `eps`.
fn moments(x: &Tensor, dims: &[i64], keepdim: bool, eps: f64) -> Result<(Tensor, Tensor)> {
    let half = matches!(x.dtype(), DType::F16 | DType::BF16);
    let wide = if half { x.float()? } else { x.clone() };
    let mean = wide.mean_with(SumOptions::new().dim(DimList::from(dims)).keepdim(keepdim))?;
    let over = VarOptions::new().dim(DimList::from(dims)).unbiased(false).keepdim(keepdim);
    let deviation = wide.var_with(over)?.add(eps)?.rsqrt()?;
    Ok((mean.to(x.dtype())?, deviation.to(x.dtype())?))
}
