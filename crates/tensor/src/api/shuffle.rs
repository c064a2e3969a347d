//! Elements of images moved between channels and space: views, and one copy.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::api::composed;
use crate::ops::channels_last::is_image_of_channels;

/// Where elements go.
struct Moves<'a> {
    /// The input with some of its dimensions split.
    sizes: &'a [i64],
    /// Their order in the result; those after the batch's that are `channels` become channels.
    dims: &'a [i64],
    channels: usize,
    /// The result's shape.
    shape: &'a [i64],
}

/// The elements of `x` in another order, as a new tensor in the input's memory format.
fn rearranged(
    x: &Tensor,
    operation: &'static str,
    moves: &Moves<'_>,
    site: Site,
) -> Result<Tensor> {
    let Moves { sizes, dims, channels, shape } = *moves;
    composed(operation, site, || {
        let split = x.reshape(sizes)?;
        // Where nothing moves, the copy is still the input.
        let copied = |dims: &[i64]| -> Result<Tensor> {
            let moved = split.permute(dims)?.contiguous()?;
            if moved.shares_storage_with(x) { moved.clone_tensor() } else { Ok(moved) }
        };
        match shape {
            &[batch, channel, height, width] if is_image_of_channels(x.layout()) => {
                let (own, space) = dims[1..].split_at(channels);
                let last = [&dims[..1], space, own].concat();
                copied(&last)?.view(&[batch, height, width, channel])?.permute(&[0, 3, 1, 2])
            }
            _ => copied(dims)?.view(shape),
        }
    })
}

fn refuse<T>(operation: &'static str, why: String) -> Result<T> {
    Err(Error::shape(operation, why))
}

/// The sizes before the last `rank`, and those.
fn split(x: &Tensor, operation: &'static str, rank: usize) -> Result<(Vec<i64>, Vec<i64>)> {
    if x.rank() < rank {
        return refuse(
            operation,
            format!(
                "expected an input of at least {rank} dimensions, but its shape is {:?}",
                x.shape()
            ),
        );
    }
    let sizes: Vec<i64> = x.shape().iter().map(|&size| size as i64).collect();
    let (lead, own) = sizes.split_at(sizes.len() - rank);
    Ok((lead.to_vec(), own.to_vec()))
}

/// The dimensions of a batch, then others counted behind them.
fn behind(lead: &[i64], order: &[i64]) -> Vec<i64> {
    let count = lead.len() as i64;
    (0..count).chain(order.iter().map(|dim| count + dim)).collect()
}

impl Tensor {
    /// Channels spread over space: [.., channels x r x r, height, width] becomes [.., channels,
    /// height x r, width x r].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[1, 4, 1, 1])?;
    /// let y = x.pixel_shuffle(2)?;
    /// assert_eq!((y.shape(), y.to_vec::<f32>()?), (&[1, 1, 2, 2][..], vec![0.0, 1.0, 2.0, 3.0]));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pixel_shuffle(&self, upscale_factor: i64) -> Result<Tensor> {
        let (site, operation, r) = (Site::caller(), "pixel_shuffle", upscale_factor);
        let (lead, own) = split(self, operation, 3)?;
        if r <= 0 {
            return refuse(operation, format!("the upscale factor must be positive, and is {r}"));
        }
        let (channels, height, width) = (own[0], own[1], own[2]);
        let square = r.checked_mul(r).filter(|square| channels % square == 0);
        let Some(square) = square else {
            return refuse(
                operation,
                format!(
                    "the {channels} channels of an input of shape {:?} should be divisible by the square of the \
                     upscale factor {r}",
                    self.shape()
                ),
            );
        };
        let sizes = [&lead[..], &[channels / square, r, r, height, width]].concat();
        let dims = behind(&lead, &[0, 3, 1, 4, 2]);
        let shape = [&lead[..], &[channels / square, height * r, width * r]].concat();
        let moves = Moves { sizes: &sizes, dims: &dims, channels: 1, shape: &shape };
        rearranged(self, operation, &moves, site)
    }

    /// Space gathered into channels, which undoes [`Tensor::pixel_shuffle`].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 16, 1, DType::F32)?.view(&[1, 1, 4, 4])?;
    /// let y = x.pixel_unshuffle(2)?;
    /// assert_eq!((y.shape()[1], y.pixel_shuffle(2)?.to_vec::<f32>()?), (4, x.to_vec::<f32>()?));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pixel_unshuffle(&self, downscale_factor: i64) -> Result<Tensor> {
        let (site, operation, r) = (Site::caller(), "pixel_unshuffle", downscale_factor);
        let (lead, own) = split(self, operation, 3)?;
        let (channels, height, width) = (own[0], own[1], own[2]);
        if r <= 0 || height % r != 0 || width % r != 0 {
            return refuse(
                operation,
                format!(
                    "height and width of an input of shape {:?} should be divisible by the downscale factor, which \
                     is {r} and must be positive",
                    self.shape()
                ),
            );
        }
        let sizes = [&lead[..], &[channels, height / r, r, width / r, r]].concat();
        let dims = behind(&lead, &[0, 2, 4, 1, 3]);
        let shape = [&lead[..], &[channels * r * r, height / r, width / r]].concat();
        let moves = Moves { sizes: &sizes, dims: &dims, channels: 3, shape: &shape };
        rearranged(self, operation, &moves, site)
    }

    /// The channels (dimension 1) of `groups` groups dealt out in turn.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[1, 4, 1])?;
    /// assert_eq!(x.channel_shuffle(2)?.to_vec::<f32>()?, [0.0, 2.0, 1.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn channel_shuffle(&self, groups: i64) -> Result<Tensor> {
        let (site, operation) = (Site::caller(), "channel_shuffle");
        let (_, sizes) = split(self, operation, self.rank().max(3))?;
        let (batch, channels, rest) = (sizes[0], sizes[1], &sizes[2..]);
        if groups <= 0 || channels % groups != 0 {
            return refuse(
                operation,
                format!(
                    "the {channels} channels of an input of shape {:?} should be divisible by groups, which is \
                     {groups} and must be positive",
                    self.shape()
                ),
            );
        }
        let parts = [&[batch, groups, channels / groups], rest].concat();
        let dims: Vec<i64> = [0, 2, 1].into_iter().chain(3..parts.len() as i64).collect();
        let moves = Moves { sizes: &parts, dims: &dims, channels: 2, shape: &sizes };
        rearranged(self, operation, &moves, site)
    }
}
