//! First values of parameters, in place: PyTorch's `torch.nn.init`, with its names, arguments and
//! distributions. Nothing here is recorded.

use std::f64::consts::SQRT_2;

use plimsoll_tensor::{ClampOptions, Device, Error, NoGrad, Result, Scalar, Tensor};

/// What follows a layer; its gain keeps the deviation of what flows through both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nonlinearity {
    /// None, or a convolution.
    Linear,
    /// `sigmoid`.
    Sigmoid,
    /// `tanh`.
    Tanh,
    /// `relu`.
    Relu,
    /// `leaky_relu` of this negative slope; PyTorch's default is 0.01.
    LeakyRelu(f64),
    /// `selu`.
    Selu,
}

/// Which side of a layer keeps its deviation: forward or backward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FanMode {
    /// The inputs of one result: forward keeps its deviation.
    #[default]
    FanIn,
    /// The results of one input: backward keeps its deviation.
    FanOut,
}

/// What deviations are multiplied by so that a nonlinearity keeps them.
///
/// ```
/// use plimsoll_nn::init::{Nonlinearity, calculate_gain};
/// assert_eq!(calculate_gain(Nonlinearity::Tanh), 5.0 / 3.0);
/// ```
pub fn calculate_gain(nonlinearity: Nonlinearity) -> f64 {
    match nonlinearity {
        Nonlinearity::Linear | Nonlinearity::Sigmoid => 1.0,
        Nonlinearity::Tanh => 5.0 / 3.0,
        Nonlinearity::Relu => SQRT_2,
        Nonlinearity::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
        Nonlinearity::Selu => 0.75,
    }
}

/// The inputs of one result and the results of one input, of a layer's weight.
pub fn fan_in_and_fan_out(tensor: &Tensor) -> Result<(usize, usize)> {
    let [results, inputs, field @ ..] = tensor.shape() else {
        return Err(Error::invalid_argument(format!(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions: the shape is {:?}",
            tensor.shape()
        )));
    };
    let field: usize = field.iter().product();
    Ok((inputs * field, results * field))
}

fn plain(write: impl FnOnce() -> Result<()>) -> Result<()> {
    let _plain = NoGrad::enter();
    write()
}

/// Draws evenly from `a` to `b`.
///
/// ```
/// use plimsoll_nn::init;
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::zeros(&[100], DType::F32)?;
/// init::uniform_(&x, 1.0, 2.0)?;
/// assert!(x.to_vec::<f32>()?.iter().all(|x| (1.0..=2.0).contains(x)));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn uniform_(tensor: &Tensor, a: f64, b: f64) -> Result<()> {
    plain(|| tensor.uniform_(a, b).map(drop))
}

/// Draws from a normal distribution.
#[track_caller]
pub fn normal_(tensor: &Tensor, mean: f64, std: f64) -> Result<()> {
    plain(|| tensor.normal_(mean, std).map(drop))
}

/// Draws from a normal distribution of which only what lies from `a` to `b` is left.
///
/// ```
/// use plimsoll_nn::init;
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::zeros(&[1000], DType::F32)?;
/// init::trunc_normal_(&x, 0.0, 1.0, -0.5, 0.5)?;
/// assert!(x.to_vec::<f32>()?.iter().all(|x| x.abs() <= 0.5));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn trunc_normal_(tensor: &Tensor, mean: f64, std: f64, a: f64, b: f64) -> Result<()> {
    plain(|| {
        // By the inverse of the distribution function, whose values at the ends are asked of the
        // same error function that is inverted.
        let ends = Tensor::from_slice(
            &[(a - mean) / (std * SQRT_2), (b - mean) / (std * SQRT_2)],
            &[2],
            Device::cpu(),
        )?;
        let ends = ends.erf()?.to_vec::<f64>()?;
        tensor.uniform_(ends[0], ends[1])?;
        tensor.erfinv_()?.mul_(std * SQRT_2)?.add_(mean)?;
        tensor.clamp_with_(ClampOptions::new().min(Scalar::from(a)).max(Scalar::from(b))).map(drop)
    })
}

/// Writes one value everywhere.
#[track_caller]
pub fn constant_(tensor: &Tensor, value: f64) -> Result<()> {
    plain(|| tensor.fill_(value).map(drop))
}

/// Writes ones.
#[track_caller]
pub fn ones_(tensor: &Tensor) -> Result<()> {
    constant_(tensor, 1.0)
}

/// Writes zeros.
#[track_caller]
pub fn zeros_(tensor: &Tensor) -> Result<()> {
    constant_(tensor, 0.0)
}

/// Writes the identity to a matrix.
#[track_caller]
pub fn eye_(tensor: &Tensor) -> Result<()> {
    if tensor.rank() != 2 {
        let what =
            format!("Only tensors with 2 dimensions are supported, not {:?}", tensor.shape());
        return Err(Error::invalid_argument(what).in_operation("eye_"));
    }
    plain(|| {
        tensor.zero_()?;
        tensor.diagonal(0, 0, 1)?.fill_(1.0).map(drop)
    })
}

/// Writes a convolution's weight that gives as many channels on as it can, in each group.
///
/// ```
/// use plimsoll_nn::init;
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Tensor::empty(&[2, 2, 3], DType::F32)?;
/// init::dirac_(&weight, 1)?;
/// let expected = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0f32];
/// assert_eq!(weight.to_vec::<f32>()?, expected);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn dirac_(tensor: &Tensor, groups: i64) -> Result<()> {
    let wrong = |what: &str| Err(Error::invalid_argument(what).in_operation("dirac_"));
    let (rank, shape) = (tensor.rank(), tensor.shape());
    if !(3..=5).contains(&rank) {
        return wrong("Only tensors with 3, 4, or 5 dimensions are supported");
    }
    let channels = shape[0] as i64;
    if groups < 1 || channels % groups != 0 {
        return wrong("dim 0 must be divisible by groups");
    }
    let each = channels / groups;
    plain(|| {
        tensor.zero_()?;
        for group in 0..groups {
            for at in 0..each.min(shape[1] as i64) {
                let mut one = tensor.select(0, group * each + at)?.select(0, at)?;
                for size in &shape[2..] {
                    one = one.select(0, *size as i64 / 2)?;
                }
                one.fill_(1.0)?;
            }
        }
        Ok(())
    })
}

/// Glorot's uniform distribution.
#[track_caller]
pub fn xavier_uniform_(tensor: &Tensor, gain: f64) -> Result<()> {
    let (inputs, results) = fan_in_and_fan_out(tensor)?;
    let bound = gain * (6.0 / (inputs + results) as f64).sqrt();
    uniform_(tensor, -bound, bound)
}

/// Glorot's normal distribution.
#[track_caller]
pub fn xavier_normal_(tensor: &Tensor, gain: f64) -> Result<()> {
    let (inputs, results) = fan_in_and_fan_out(tensor)?;
    normal_(tensor, 0.0, gain * (2.0 / (inputs + results) as f64).sqrt())
}

/// The deviation of He's distributions.
fn kaiming(tensor: &Tensor, mode: FanMode, nonlinearity: Nonlinearity) -> Result<f64> {
    let (inputs, results) = fan_in_and_fan_out(tensor)?;
    let fan = match mode {
        FanMode::FanIn => inputs,
        FanMode::FanOut => results,
    };
    Ok(calculate_gain(nonlinearity) / (fan as f64).sqrt())
}

/// He's uniform distribution. PyTorch's defaults are [`FanMode::FanIn`] and a leaky ReLU of slope
/// 0.
#[track_caller]
pub fn kaiming_uniform_(tensor: &Tensor, mode: FanMode, nonlinearity: Nonlinearity) -> Result<()> {
    if tensor.shape().contains(&0) {
        return Ok(());
    }
    let bound = 3.0f64.sqrt() * kaiming(tensor, mode, nonlinearity)?;
    uniform_(tensor, -bound, bound)
}

/// He's normal distribution. PyTorch's defaults are [`FanMode::FanIn`] and a leaky ReLU of slope
/// 0.
#[track_caller]
pub fn kaiming_normal_(tensor: &Tensor, mode: FanMode, nonlinearity: Nonlinearity) -> Result<()> {
    if tensor.shape().contains(&0) {
        return Ok(());
    }
    normal_(tensor, 0.0, kaiming(tensor, mode, nonlinearity)?)
}

/// A (semi-)orthogonal matrix, of what is left when all but the first dimension are one.
///
/// ```
/// use plimsoll_nn::init;
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::empty(&[3, 5], DType::F64)?;
/// init::orthogonal_(&x, 1.0)?;
/// let product = x.matmul(&x.t()?)?;
/// assert!(product.allclose(&Tensor::eye(3, DType::F64)?)?);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn orthogonal_(tensor: &Tensor, gain: f64) -> Result<()> {
    if tensor.rank() < 2 {
        let what = "Only tensors with 2 or more dimensions are supported";
        return Err(Error::invalid_argument(what).in_operation("orthogonal_"));
    }
    if tensor.numel() == 0 {
        return Ok(());
    }
    plain(|| {
        let rows = tensor.shape()[0];
        let columns = tensor.numel() / rows;
        let drawn = tensor.empty_like()?.reshape(&[rows as i64, columns as i64])?;
        drawn.normal_(0.0, 1.0)?;
        let is_wide = rows < columns;
        let tall = if is_wide { drawn.t()? } else { drawn };
        let (q, r) = tall.linalg_qr()?;
        // Without this the distribution would not be even.
        let q = q.mul(&r.diagonal(0, 0, 1)?.sign()?)?;
        let q = if is_wide { q.t()? } else { q };
        let sizes: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
        tensor.copy_(&q.reshape(&sizes)?)?.mul_(gain).map(drop)
    })
}

/// Normal numbers, of which a part of each column is set to zero.
#[track_caller]
pub fn sparse_(tensor: &Tensor, sparsity: f64, std: f64) -> Result<()> {
    let [rows, columns] = *tensor.shape() else {
        let what =
            format!("Only tensors with 2 dimensions are supported, not {:?}", tensor.shape());
        return Err(Error::invalid_argument(what).in_operation("sparse_"));
    };
    let zeros = (sparsity * rows as f64).ceil().clamp(0.0, rows as f64) as i64;
    plain(|| {
        tensor.normal_(0.0, std)?;
        for column in 0..columns {
            let chosen = Tensor::randperm(rows as i64, tensor.device())?.narrow(0, 0, zeros)?;
            tensor.select(1, column as i64)?.index_fill_(0, &chosen, 0.0)?;
        }
        Ok(())
    })
}
