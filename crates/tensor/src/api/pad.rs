//! Tensors with something around them: a constant, their mirror image, their edge, themselves.

use std::str::FromStr;

use plimsoll_core::{Dims, Error, Result, Scalar};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::autocast::enter_composed;
use crate::operation::OpInfo;
use crate::ops::rearrange::{Along, CONSTANT_PAD_ND, PAD, Rearrange, Ways};
use crate::prepare::apply_one;

/// What [`Tensor::pad`] puts around a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A number.
    Constant,
    /// The tensor mirrored at its edge.
    Reflect,
    /// The element at the edge.
    Replicate,
    /// The tensor again, as if it were a ring.
    Circular,
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(word: &str) -> Result<Mode> {
        match word {
            "constant" => Ok(Mode::Constant),
            "reflect" => Ok(Mode::Reflect),
            "replicate" => Ok(Mode::Replicate),
            "circular" => Ok(Mode::Circular),
            _ => Err(Error::unsupported(
                "pad",
                format!("there is no mode {word:?}; use constant, reflect, replicate or circular"),
            )),
        }
    }
}

impl Tensor {
    /// With `value` around it: `pad` has two numbers, before and after, for each dimension from the
    /// last on. Negative ones cut.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::I64)?;
    /// assert_eq!(x.constant_pad_nd(&[1, 2], 7)?.to_vec::<i64>()?, [7, 1, 1, 7, 7]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn constant_pad_nd(&self, pad: &[i64], value: impl Into<Scalar>) -> Result<Tensor> {
        constant(&CONSTANT_PAD_ND, self, pad, value.into(), Site::caller())
    }

    /// With something around it, by `mode`: `pad` has two numbers, before and after, for each
    /// dimension from the last on.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?.view(&[1, 3])?;
    /// let y = x.pad(&[1, 1], Mode::Reflect, None::<f64>)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 1.0, 2.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pad(&self, pad: &[i64], mode: Mode, value: Option<impl Into<Scalar>>) -> Result<Tensor> {
        let (site, value) = (Site::caller(), value.map(Into::into));
        if mode == Mode::Constant {
            return constant(&PAD, self, pad, value.unwrap_or(Scalar::Int(0)), site);
        }
        let refuse = |why: String| Err(Error::shape("pad", why));
        if value.is_some_and(|value| value.to_f64() != 0.0) {
            let why = format!("{mode:?} takes no value; leave it out");
            return Err(Error::invalid_argument(why).in_operation("pad"));
        }
        let rank = self.rank();
        let around = pad.len() / 2;
        // PyTorch pads one, two or three dimensions of a batch, or of a sample without one.
        let fits = pad.len().is_multiple_of(2)
            && (1..=3).contains(&around)
            && (around + 1..=around + 2).contains(&rank);
        if !fits {
            return Err(Error::unsupported(
                "pad",
                format!(
                    "{mode:?} pads the last 1, 2 or 3 dimensions of tensors with 1 or 2 more; {pad:?} does not fit \
                     shape {:?}",
                    self.shape()
                ),
            ));
        }
        // A batch may be empty; a circle may have nothing beside what is padded.
        let whole = match mode {
            Mode::Circular => rank - around,
            _ => rank - around - 1,
        };
        if self.shape()[whole..].contains(&0) {
            return refuse(format!("shape {:?} has nothing to repeat", self.shape()));
        }
        if mode == Mode::Circular && pad.iter().any(|&amount| amount < 0) {
            // What is left after the cut is the ring.
            let cut: Vec<i64> = pad.iter().map(|&amount| amount.min(0)).collect();
            let grow: Vec<i64> = pad.iter().map(|&amount| amount.max(0)).collect();
            return self.constant_pad_nd(&cut, 0)?.pad(&grow, mode, None::<Scalar>);
        }
        let (mut ways, mut shape) = (Ways::new(), Dims::new());
        for (dim, &size) in self.shape().iter().enumerate() {
            let (before, after) = amounts(pad, rank, dim);
            let most = match mode {
                Mode::Reflect => size as i64 - 1,
                Mode::Circular => size as i64,
                _ => i64::MAX,
            };
            if (before, after) != (0, 0) && (before > most || after > most) {
                return refuse(format!(
                    "{mode:?} can put at most {most} before and after dimension {dim} of size {size}, not {before} and \
                     {after}"
                ));
            }
            let output = grown("pad", size, before, after)?;
            if output == 0 && size > 0 {
                return refuse(format!("{pad:?} leaves nothing of dimension {dim} of size {size}"));
            }
            shape.push(output);
            ways.push(match mode {
                _ if (before, after) == (0, 0) => Along::Pad(0),
                Mode::Reflect => Along::Reflect(before),
                Mode::Circular => Along::Wrap(before),
                _ => Along::Clamp(before),
            });
        }
        // By PyTorch's names, which mixed precision lists.
        let _cast = match (mode, around) {
            (Mode::Reflect, 1) => enter_composed("reflection_pad1d"),
            (Mode::Reflect, 2) => enter_composed("reflection_pad2d"),
            (Mode::Replicate, 1) => enter_composed("replication_pad1d"),
            (Mode::Replicate, 2) => enter_composed("replication_pad2d"),
            (Mode::Replicate, _) => enter_composed("replication_pad3d"),
            _ => None,
        };
        let op = Rearrange { info: &PAD, along: ways, shape, value: Scalar::Int(0) };
        apply_one(&op, &[self], site)
    }
}

/// What `pad` puts before and after `dim`.
fn amounts(pad: &[i64], rank: usize, dim: usize) -> (i64, i64) {
    let at = 2 * (rank - 1 - dim);
    (pad.get(at).copied().unwrap_or(0), pad.get(at + 1).copied().unwrap_or(0))
}

fn grown(op: &'static str, size: usize, before: i64, after: i64) -> Result<usize> {
    let sum = (size as i64).checked_add(before).and_then(|sum| sum.checked_add(after));
    sum.and_then(|sum| usize::try_from(sum).ok()).ok_or_else(|| {
        Error::shape(
            op,
            format!("{before} before and {after} after a size of {size} leave less than nothing"),
        )
    })
}

fn constant(
    info: &'static OpInfo,
    x: &Tensor,
    pad: &[i64],
    value: Scalar,
    site: Site,
) -> Result<Tensor> {
    if !pad.len().is_multiple_of(2) || pad.len() / 2 > x.rank() {
        return Err(Error::shape(
            info.name,
            format!("{pad:?} must be two numbers for each of at most {} dimensions", x.rank()),
        ));
    }
    let (mut ways, mut shape) = (Ways::new(), Dims::new());
    for (dim, &size) in x.shape().iter().enumerate() {
        let (before, after) = amounts(pad, x.rank(), dim);
        shape.push(grown(info.name, size, before, after)?);
        ways.push(Along::Pad(before));
    }
    apply_one(&Rearrange { info, along: ways, shape, value }, &[x], site)
}
