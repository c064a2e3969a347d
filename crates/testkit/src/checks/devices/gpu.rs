//! What only a GPU shows: the driver's own count of bytes, other libraries' contexts, real streams,
//! registered memory, and a dry run beside the real one.

use plimsoll_cuda::{ForeignContext, Properties};
use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{Stream, synchronize, with_stream};
use plimsoll_tensor::{
    BatchNormOptions, DType, Device, LayerNormOptions, Result, SumOptions, Tensor, device, memory,
};

use super::values;

/// The driver and the book count the same bytes, and the whole card is too much.
pub fn what_the_driver_counts_is_what_the_arena_reserved(cuda: Device) -> Result<()> {
    // The kernel's own code takes memory too, when it is loaded.
    Tensor::zeros(&[1], (DType::F32, cuda))?;
    memory::empty_cache(cuda);
    synchronize(cuda)?;
    let (free_before, total) = device::cuda_memory_info(cuda)?;
    let reserved_before = memory::memory_reserved(cuda);
    // Whole segments, and whole pages of segments that grow.
    const BYTES: usize = 1000 << 20;
    let x = Tensor::zeros(&[BYTES as i64 / 4], (DType::F32, cuda))?;
    synchronize(cuda)?;
    let taken = free_before - device::cuda_memory_info(cuda)?.0;
    let reserved = memory::memory_reserved(cuda) - reserved_before;
    assert_eq!(reserved, BYTES);
    assert_eq!(taken, reserved, "the driver took what the arena reserved, of {total}");
    drop(x);
    synchronize(cuda)?;
    assert_eq!(memory::empty_cache(cuda), BYTES);
    assert_eq!(device::cuda_memory_info(cuda)?.0, free_before);
    // The whole card: the driver's own refusal, not a limit of ours.
    let error = Tensor::zeros(&[total as i64], (DType::F32, cuda)).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    Tensor::zeros(&[1 << 20], (DType::F32, cuda))?;
    Ok(())
}

/// Another library's context, current on the thread, is neither used nor replaced.
pub fn a_context_of_another_library_is_left_alone(cuda: Device) -> Result<()> {
    let x = values(1000).to(cuda)?;
    let expected = x.add(1.0)?.to_f64_vec()?;
    let foreign = ForeignContext::enter(0)?;
    // An allocation of its own, a kernel, a product, a copy back, a stream, a fence.
    let y = x.add(1.0)?;
    let square = y.view(&[25, 40])?.matmul(&x.view(&[40, 25])?)?;
    assert_eq!(y.to_f64_vec()?, expected);
    assert_eq!(square.shape(), [25, 25]);
    let side = Stream::new(cuda)?;
    assert_eq!(with_stream(&side, || x.add(1.0))?.to_f64_vec()?, expected);
    side.synchronize()?;
    assert!(foreign.is_current(), "the other library's context is no longer current");
    drop(foreign);
    assert_eq!(x.add(1.0)?.to_f64_vec()?, expected);
    Ok(())
}

/// There are 32 streams of each priority, handed out in turn, and they all work.
pub fn streams_come_from_a_pool(cuda: Device) -> Result<()> {
    for priority in [0, -1, -5] {
        let streams = (0..32).map(|_| Stream::with_priority(cuda, priority));
        let streams: Vec<Stream> = streams.collect::<Result<_>>()?;
        let ids: std::collections::BTreeSet<u64> = streams.iter().map(Stream::id).collect();
        assert_eq!(ids.len(), 32);
        assert_eq!(Stream::with_priority(cuda, priority)?, streams[0], "they come round");
        for stream in &streams {
            let x = with_stream(stream, || Tensor::ones(&[100], (DType::F32, cuda)))?;
            assert_eq!(x.sum()?.to_scalar()?.to_f64(), 100.0);
        }
    }
    synchronize(cuda)
}

/// Host memory that was pinned while no GPU was open is known to the driver once one is, and asking
/// for it opens none. To be called before a GPU is opened.
pub fn memory_pinned_before_the_gpu_was_opened_is_registered() -> Result<()> {
    let opened = device::cuda_is_initialized();
    let early = values(5000).pin_memory()?;
    assert!(early.is_pinned() && !values(4).is_pinned());
    assert_eq!(device::cuda_is_initialized(), opened, "pinning opened a GPU");
    let cuda = device::cuda(0)?;
    let late = values(5000).add(1.0)?.pin_memory()?;
    assert!(early.is_pinned() && late.is_pinned(), "both are registered");
    for host in [early, late] {
        let there = host.to_non_blocking(cuda)?;
        assert_eq!(there.to_f64_vec()?, host.to_f64_vec()?);
        let back = there.add(1.0)?.to_non_blocking(Device::cpu())?;
        assert!(back.is_pinned());
        assert_eq!(back.to_f64_vec()?, host.add(1.0)?.to_f64_vec()?);
    }
    Ok(())
}

/// A program of those that are run on a GPU and on its dry image.
type OnDevice = fn(Device) -> Result<()>;

/// Programs over everything that has a CUDA kernel, of sizes at which segments, splits and parts
/// of reductions matter.
const PROGRAMS: [(&str, OnDevice); 5] = [
    ("elementwise", |device| {
        let x = Tensor::ones(&[3000, 1111], (DType::F32, device))?;
        let y = x.add(1.0)?.mul(&x)?.exp()?.relu()?;
        y.t()?.contiguous()?.to(DType::BF16)?.add_(1.0)?.sum()?;
        x.slice(1, 0, 1111, 3)?.maximum(&x.narrow(1, 5, 371)?)?.to(DType::I64)?.sum()?;
        Ok(())
    }),
    ("reductions", |device| {
        let x = Tensor::ones(&[7, 300_000], (DType::F32, device))?;
        x.sum()?;
        x.mean_with(SumOptions::from(&[1]).keepdim(true))?;
        x.t()?.amax_with([0])?;
        x.to(DType::F16)?.sum_with([0])?;
        Ok(())
    }),
    ("products", |device| {
        for dtype in [DType::F32, DType::BF16] {
            let x = Tensor::ones(&[6, 257, 512], (dtype, device))?;
            let w = Tensor::ones(&[512, 130], (dtype, device))?;
            x.matmul(&w)?;
            x.slice(2, 0, 512, 2)?.matmul(&w.narrow(0, 0, 256)?)?;
            x.transpose(0, 1)?.matmul(&w.narrow(1, 1, 100)?)?;
            let target = Tensor::empty(&[130, 257], (dtype, device))?;
            x.select(0, 1)?.matmul_out(&w, &target.t()?)?;
            x.select(0, 2)?.select(0, 3)?.matmul(&w)?;
        }
        Ok(())
    }),
    ("norms", |device| {
        let x = Tensor::ones(&[700, 1024], (DType::F32, device))?.requires_grad_(true)?;
        let w = Tensor::ones(&[1024], (DType::F32, device))?.requires_grad_(true)?;
        x.layer_norm_with(&[1024], LayerNormOptions::new().weight(&w))?.sum()?.backward()?;
        x.t()?.layer_norm(&[700])?;
        let (mean, var) = (w.detach().clone_tensor()?, w.detach().clone_tensor()?);
        let options = BatchNormOptions::new().weight(&w).training(true);
        x.batch_norm_with(&mean, &var, options)?.sum()?.backward()?;
        let long = Tensor::ones(&[2, 3, 50_000], (DType::BF16, device))?.requires_grad_(true)?;
        long.batch_norm_with(None, None, options.weight(None))?.sum()?.backward()?;
        long.batch_norm(&mean.narrow(0, 0, 3)?, &var.narrow(0, 0, 3)?)?.sum()?.backward()?;
        Ok(())
    }),
    ("a training step", |device| {
        let leaf = |sizes: &[i64]| {
            Tensor::ones(sizes, (DType::F32, device))?.mul(0.01)?.requires_grad_(true)
        };
        let (first, second) = (leaf(&[512, 2048])?, leaf(&[2048, 512])?);
        let (scale, shift) = (leaf(&[512])?, leaf(&[512])?);
        let x = Tensor::ones(&[16, 128, 512], (DType::F32, device))?;
        for _ in 0..2 {
            let normed =
                x.layer_norm_with(&[512], LayerNormOptions::new().weight(&scale).bias(&shift))?;
            let hidden = normed.matmul(&first)?.gelu()?.matmul(&second)?;
            x.add(&hidden)?.mul(0.5)?.tanh()?.mean()?.backward()?;
            for leaf in [&first, &second, &scale, &shift] {
                leaf.detach().sub_(&leaf.grad().expect("a gradient").mul(0.1)?)?;
            }
        }
        Ok(())
    }),
];

/// The peaks of allocated and reserved bytes, and the number of allocations and of segments.
fn bytes_of(program: OnDevice, device: Device) -> Result<[i64; 4]> {
    memory::empty_cache(device);
    let arena = memory::arena(device);
    arena.reset_peak_stats();
    arena.reset_accumulated_stats();
    program(device)?;
    let stats = arena.stats();
    Ok([
        stats.allocated_bytes.all.peak,
        stats.reserved_bytes.all.peak,
        stats.allocation.all.allocated,
        stats.segment.all.allocated,
    ])
}

/// Every program takes the same bytes on the GPU and in a dry run of it by name.
pub fn a_dry_h200_takes_what_the_real_one_takes(cuda: Device) -> Result<()> {
    let real = device::private_cuda_over(0, |source| source, Configuration::process()?)?;
    let properties = device::properties(cuda)?;
    let named = Properties::named("h200").expect("it is in the table");
    let dry = if properties.name == named.name {
        assert_eq!(properties, named, "the table knows this GPU");
        device::dry_named("h200")?
    } else {
        device::dry(cuda)?
    };
    for (name, program) in PROGRAMS {
        assert_eq!(bytes_of(program, real)?, bytes_of(program, dry)?, "{name}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the programs take on an H200, which the GPU bundle compares with a real one.
    #[test]
    fn a_dry_run_by_name_needs_no_gpu_and_differs_by_model() -> Result<()> {
        let (h200, a100) = (device::dry_named("H200")?, device::dry_named("a100")?);
        for (name, program) in PROGRAMS {
            let (newer, older) = (bytes_of(program, h200)?, bytes_of(program, a100)?);
            assert!(newer[0] > 0 && newer[2] == older[2], "{name}");
            let has_products = name == "products" || name == "a training step";
            assert_eq!(newer[0] > older[0], has_products, "{name}: workspaces differ by model");
        }
        Ok(())
    }
}
