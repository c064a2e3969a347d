//! Convolutions by cuDNN: in which layout it gets the operands, and how much workspace. What it
//! does not take, the kernels in `conv.rs` do.
//!
//! Note [The workspace of a convolution]
//! A function of the operands' layouts alone, so that a dry run takes the same, with the library
//! and without it:
//! - a copy of each of the three tensors that does not lie as the library gets them, packed;
//! - what its fast algorithms want: the tensors once more with their channels last and rounded up
//!   to [`CHANNELS`], unless they lie like that already;
//! - for tables of places [`TABLES`] bytes, and for sums in parts [`PARTS`] bytes where what is
//!   computed is so small ([`FILLING`]) that it would not keep a GPU busy in one part.
//!
//! An algorithm that wants more is not taken. Switched off, cuDNN takes nothing.

use plimsoll_core::{DType, Layout, Result};
use plimsoll_cuda::{Argument, BlasType, Convolution, ConvolutionMemory, Pass, source_files};
use plimsoll_kernels::cpu::conv::ConvArgs;
use plimsoll_kernels::cpu::volume::Volume;
use plimsoll_kernels::{Meta, Operand};

use super::in_workspace::{ALIGNMENT_BYTES, Space, copy_bytes};
use super::{CudaLaunch, copy, type_name, whole};
use crate::backends;

/// Channels of a group that are few.
const FEW: usize = 4;
/// Channels that tensor cores take at once, of halves.
const CHANNELS: usize = 8;
const TABLES: usize = 1 << 20;
const PARTS: usize = 16 << 20;
/// Elements of a result that fills a GPU: some tiles of 128 x 128 for each multiprocessor.
const FILLING: usize = 1 << 23;
/// Alignment of the widest load.
const LOAD_BYTES: usize = 16;

/// How the library gets a convolution's tensors: [x, weight, y].
struct Taken {
    dtype: BlasType,
    channels_last: bool,
    volumes: [Volume; 3],
    /// Packed copies of those that lie otherwise.
    copies: [Option<Meta>; 3],
}

/// Whether a tensor is packed, with its channels last or row by row.
fn is_packed(volume: &Volume, channels_last: bool) -> bool {
    let [depth, height, width] = [0, 1, 2].map(|d| (volume.sizes[d], volume.strides[d]));
    let channels = (volume.channels, volume.channel_stride);
    let batch = (volume.batch, volume.batch_stride);
    let order = match channels_last {
        true => [channels, width, height, depth, batch],
        false => [width, height, depth, channels, batch],
    };
    let mut step = 1;
    order.into_iter().all(|(size, stride)| {
        let fits = size == 1 || stride == step;
        step *= size;
        fits
    })
}

/// A packed tensor of that shape.
fn packed(meta: &Meta, channels_last: bool) -> Result<Meta> {
    if !channels_last {
        return Meta::contiguous(meta.shape(), meta.dtype);
    }
    let shape = meta.shape();
    let mut strides = vec![1; shape.len()];
    let mut step = shape[1];
    for dim in (2..shape.len()).rev().chain([0]) {
        strides[dim] = step;
        step *= shape[dim];
    }
    Ok(Meta { layout: Layout::strided(shape, &strides, 0)?, dtype: meta.dtype })
}

impl Taken {
    /// Nothing where the library is not asked: it is switched off, has no such dtype, a tensor is
    /// empty, or groups have so few channels that `conv.rs` has faster kernels.
    fn of([x, weight, y]: [&Meta; 3], args: &ConvArgs) -> Result<Option<Taken>> {
        let dtype = match x.dtype {
            DType::F32 => BlasType::F32,
            DType::F64 => BlasType::F64,
            DType::F16 => BlasType::F16,
            DType::BF16 => BlasType::BF16,
            _ => return Ok(None),
        };
        let volumes = [x, weight, y].map(Volume::of);
        let is_empty = [x, weight, y].iter().any(|meta| meta.layout.numel() == 0);
        let each = [weight.shape()[0] / args.groups, weight.shape()[1]];
        let is_few = args.groups > 1 && each.iter().all(|&channels| channels <= FEW);
        let is_direct = is_few && dtype != BlasType::F64;
        let by_library =
            backends::cudnn::ENABLED.is_on() && !backends::DETERMINISTIC_ALGORITHMS.is_on();
        if is_empty || is_direct || !by_library {
            return Ok(None);
        }
        // As PyTorch: channels last if one of them lies so. The library has no such products of
        // float64.
        let is_last = |volume: &Volume| is_packed(volume, true) && !is_packed(volume, false);
        let channels_last = dtype != BlasType::F64 && volumes.iter().any(is_last);
        let mut copies = [None, None, None];
        for (at, meta) in [x, weight, y].into_iter().enumerate() {
            if !is_packed(&volumes[at], channels_last) {
                copies[at] = Some(packed(meta, channels_last)?);
            }
        }
        Ok(Some(Taken { dtype, channels_last, volumes, copies }))
    }

    /// Bytes that the library has for itself. See Note [The workspace of a convolution].
    fn library_bytes(&self, pass: Pass, element_bytes: usize) -> usize {
        let volumes = self.volumes.iter();
        let reordered = volumes
            .filter(|volume| !self.channels_last || !volume.channels.is_multiple_of(CHANNELS));
        let bytes = reordered.map(|volume| {
            let channels = volume.channels.next_multiple_of(CHANNELS);
            let bytes = volume.batch * channels * volume.space() * element_bytes;
            bytes.next_multiple_of(ALIGNMENT_BYTES)
        });
        let written = &self.volumes[written(pass)];
        let is_filling = written.batch * written.channels * written.space() >= FILLING;
        bytes.sum::<usize>() + TABLES + if is_filling { 0 } else { PARTS }
    }

    fn convolution(&self, pass: Pass, args: &ConvArgs) -> Convolution {
        let sizes = |volume: &Volume| {
            let [depth, height, width] = volume.sizes;
            [volume.batch, volume.channels, depth, height, width]
        };
        let [x, weight, y] = [0, 1, 2].map(|at| sizes(&self.volumes[at]));
        Convolution {
            pass,
            dtype: self.dtype,
            channels_last: self.channels_last,
            x,
            weight,
            y,
            stride: args.stride,
            padding: args.padding,
            dilation: args.dilation,
            groups: args.groups,
            allow_tf32: self.dtype == BlasType::F32 && backends::cudnn::ALLOW_TF32.is_on(),
        }
    }
}

/// Which of [x, weight, y] a pass computes.
fn written(pass: Pass) -> usize {
    match pass {
        Pass::Input => 0,
        Pass::Weight => 1,
        Pass::Result => 2,
    }
}

/// Bytes of workspace. See Note [The workspace of a convolution].
pub(super) fn workspace_bytes(pass: Pass, metas: [&Meta; 3], args: &ConvArgs) -> usize {
    // Shapes whose strides do not fit are refused before there is a tensor of them.
    let Ok(Some(taken)) = Taken::of(metas, args) else { return 0 };
    let copies: usize = taken.copies.iter().flatten().map(copy_bytes).sum();
    copies + taken.library_bytes(pass, metas[0].dtype.size_bytes())
}

/// Queues the convolution that computes one of [x, weight, y] from the others, if cuDNN takes it.
/// The bias is added to what is computed.
pub(super) fn convolve(
    launch: &CudaLaunch<'_>,
    pass: Pass,
    operands: [&Operand<'_>; 3],
    bias: Option<&Operand<'_>>,
    args: &ConvArgs,
) -> Result<bool> {
    let metas = operands.map(|operand| operand.meta());
    let Some(taken) = Taken::of(metas, args)? else { return Ok(false) };
    let library_bytes = taken.library_bytes(pass, metas[0].dtype.size_bytes());
    // It may have been switched on since the workspace was taken.
    let has_room = launch.workspace.bytes() >= workspace_bytes(pass, metas, args);
    let is_aligned = operands.iter().zip(&taken.copies).all(|(operand, copy)| {
        copy.is_some() || operand.first_byte().addr().is_multiple_of(LOAD_BYTES)
    });
    let convolution = taken.convolution(pass, args);
    if !has_room || !is_aligned || !launch.context.can_convolve(&convolution, library_bytes)? {
        return Ok(false);
    }
    let written = written(pass);
    let mut space = Space::new(&launch.workspace);
    let mut addresses = [0; 3];
    for (at, operand) in operands.into_iter().enumerate() {
        addresses[at] = match &taken.copies[at] {
            None => operand.first_byte().addr(),
            Some(target) if at == written => space.take(copy_bytes(target)),
            Some(target) => space.copied(launch, operand, target)?,
        };
    }
    let [x, weight, y] = addresses;
    let workspace = space.take(library_bytes);
    let memory = ConvolutionMemory { x, weight, y, workspace, workspace_bytes: library_bytes };
    // SAFETY: the addresses are this launch's operands and workspace, packed as `convolution` says.
    let done = unsafe { launch.context.convolve(launch.stream, &convolution, memory) }
        .map_err(|error| error.in_operation(launch.operation))?;
    if !done {
        return Ok(false);
    }
    if let Some(bias) = bias {
        add_bias(launch, addresses[written], &taken, &taken.volumes[written], bias)?;
    }
    if let Some(target) = &taken.copies[written] {
        // SAFETY: the result was just queued to be written there, before this copy.
        let result = unsafe { Operand::new(addresses[written] as *mut u8, target) };
        copy(launch, &result, operands[written])?;
    }
    Ok(true)
}

/// Adds the bias to the packed result at `address`.
fn add_bias(
    launch: &CudaLaunch<'_>,
    address: usize,
    taken: &Taken,
    result: &Volume,
    bias: &Operand<'_>,
) -> Result<()> {
    let stride = bias.layout().strides().first().copied().unwrap_or(0);
    let count = result.batch * result.channels * result.space();
    // Elements of a channel that lie one after another.
    let run = if taken.channels_last { 1 } else { result.space() };
    let arguments = [
        Argument::U64(address as u64),
        super::address(bias),
        whole(stride),
        whole(count),
        whole(result.channels),
        whole(run),
    ];
    let grid = launch.elementwise_grid(count, bias.dtype().size_bytes(), true);
    let kernel = ("conv_bias", type_name(bias.dtype()));
    launch.run(&source_files::CONV, kernel, grid, &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGS: ConvArgs =
        ConvArgs { stride: [1; 3], padding: [0, 1, 1], dilation: [1; 3], groups: 1 };

    fn bytes(channels_last: bool) -> usize {
        let meta = |shape: &[usize]| {
            packed(&Meta::contiguous(shape, DType::F32).unwrap(), channels_last).unwrap()
        };
        let (x, weight, y) = (meta(&[2, 3, 8, 8]), meta(&[16, 3, 3, 3]), meta(&[2, 16, 8, 8]));
        workspace_bytes(Pass::Result, [&x, &weight, &y], &ARGS)
    }

    #[test]
    fn the_workspace_is_what_lies_otherwise_with_whole_channels() {
        let (x, weight, y) = (2 * 8 * 64 * 4, 16 * 8 * 9 * 4, 2 * 16 * 64 * 4);
        assert_eq!(bytes(false), TABLES + PARTS + x + weight + y);
        assert_eq!(bytes(true), TABLES + PARTS + x + weight, "y lies right already");
    }

    #[test]
    fn a_large_result_is_not_summed_in_parts() {
        let meta = |shape: &[usize]| Meta::contiguous(shape, DType::F32).unwrap();
        let large = [64, 64, 56, 56];
        let (x, weight, y) = (meta(&large), meta(&[64, 64, 3, 3]), meta(&large));
        let of = |pass| workspace_bytes(pass, [&x, &weight, &y], &ARGS);
        assert_eq!(of(Pass::Result), of(Pass::Input));
        assert_eq!(of(Pass::Weight), of(Pass::Input) + PARTS);
    }

    #[test]
    fn what_is_not_packed_is_copied() {
        let meta = |shape: &[usize]| Meta::contiguous(shape, DType::F32).unwrap();
        let (x, weight, y) = (meta(&[2, 8, 8, 8]), meta(&[8, 8, 3, 3]), meta(&[2, 8, 8, 8]));
        let dense = workspace_bytes(Pass::Result, [&x, &weight, &y], &ARGS);
        let layout = Layout::strided(&[2, 8, 8, 8], &[0; 4], 0).unwrap();
        let expanded = Meta { layout, dtype: DType::F32 };
        let wide = workspace_bytes(Pass::Result, [&x, &weight, &expanded], &ARGS);
        assert_eq!(wide, dense + copy_bytes(&y));
        let whole = Meta { dtype: DType::I64, ..x.clone() };
        assert_eq!(workspace_bytes(Pass::Result, [&whole, &whole, &whole], &ARGS), 0);
    }
}
