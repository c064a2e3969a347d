//! Expandable segments on a device that has them: pages come and go under tensors that keep their
//! values, and the book says what was mapped.

use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{Stream, synchronize, with_stream};
use plimsoll_tensor::{DType, Device, Result, Tensor, device, memory};

const MIB: usize = 1 << 20;
/// A page of large blocks.
const PAGE: usize = 20 * MIB;

/// The settings of a device for these programs.
pub fn configuration() -> Configuration {
    Configuration::default().with_expandable_segments(true)
}

/// `mebibytes` of float32, all of one value.
fn filled(mebibytes: usize, value: f64, device: Device) -> Result<Tensor> {
    Tensor::full(&[(mebibytes * MIB / 4) as i64], value, (DType::F32, device))
}

/// The first, the last and the mean of its values.
fn looked_at(tensor: &Tensor) -> Result<[f32; 3]> {
    let last = tensor.shape()[0] as i64 - 1;
    let at = |index: i64| tensor.select(0, index)?.item::<f32>();
    Ok([at(0)?, at(last)?, tensor.mean()?.item::<f32>()?])
}

/// Growing sizes, holes between live tensors, and blocks over old and new pages. `device` is the
/// program's own and has the settings of [`configuration`].
pub fn pages_come_and_go_under_live_tensors(device: Device) -> Result<()> {
    let arena = memory::arena(device);
    assert!(arena.has_expandable_segments());
    let large = || arena.stats().reserved_bytes.large_pool.current as usize;
    // Each size is a little more than what is cached: the segment grows by a page now and then.
    for step in 0..20 {
        let grown = filled(12 + 2 * step, step as f64, device)?;
        assert_eq!(looked_at(&grown)?, [step as f32; 3]);
    }
    synchronize(device)?;
    assert_eq!(large(), 60 * MIB, "50 MiB in whole pages");
    memory::empty_cache(device);
    assert_eq!(large(), 0);

    let mut held: Vec<Tensor> =
        (0..6).map(|n| filled(20, f64::from(n), device)).collect::<Result<_>>()?;
    synchronize(device)?;
    assert_eq!(large(), 6 * PAGE);
    drop((held.remove(4), held.remove(1)));
    assert_eq!(memory::empty_cache(device), 2 * PAGE, "two holes between live tensors");
    let spanning = filled(50, 7.0, device)?; // behind the others: no hole is long enough
    let filling = [filled(20, 8.0, device)?, filled(15, 9.0, device)?];
    synchronize(device)?;
    assert_eq!(large(), 9 * PAGE, "both holes are filled, and three pages are new");
    for (tensor, value) in held.iter().zip([0.0, 2.0, 3.0, 5.0]) {
        assert_eq!(looked_at(tensor)?, [value; 3], "live tensors keep their pages");
    }
    assert_eq!(looked_at(&spanning)?, [7.0; 3]);
    assert_eq!(looked_at(&filling[0])?, [8.0; 3]);
    assert_eq!(looked_at(&filling[1])?, [9.0; 3]);

    // Another stream has a segment of its own, and its pages wait for what uses them.
    let side = Stream::new(device)?;
    let there = with_stream(&side, || filled(20, 3.0, device)?.add(1.0))?;
    let here = there.add(&filling[0].narrow(0, 0, there.shape()[0] as i64)?)?;
    drop(there);
    assert_eq!(looked_at(&here)?, [12.0; 3]);
    arena.check_balanced().unwrap();
    drop((held, spanning, filling, here));
    synchronize(device)?;
    memory::empty_cache(device);
    assert_eq!(memory::memory_reserved(device), 0);
    arena.check_balanced().unwrap();
    Ok(())
}

/// The same on GPU 0 with an arena of the program's own; and the driver takes the pages that the
/// book counts, and gets all of them back.
pub fn pages_of_a_gpu_come_and_go(cuda: Device) -> Result<()> {
    let own = device::private_cuda_over(0, |source| source, &configuration())?;
    pages_come_and_go_under_live_tensors(own)?;
    memory::empty_cache(cuda);
    let free_before = device::cuda_memory_info(own)?.0;
    let held = filled(1000, 1.0, own)?;
    synchronize(own)?;
    assert_eq!(memory::memory_reserved(own), 1000 * MIB);
    assert_eq!(free_before - device::cuda_memory_info(own)?.0, 1000 * MIB);
    drop(held);
    synchronize(own)?;
    assert_eq!(memory::empty_cache(own), 1000 * MIB);
    assert_eq!(device::cuda_memory_info(own)?.0, free_before);
    Ok(())
}
