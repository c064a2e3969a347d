//! Memory and streams on a device: counters, limits, copies, order.

use plimsoll_memory::OutOfMemory;
use plimsoll_tensor::device::{Stream, synchronize, with_stream};
use plimsoll_tensor::{DType, Device, Result, Tensor, device, memory};

use super::values;

/// Counters follow tensors.
pub fn counters_say_what_is_held(device: Device) -> Result<()> {
    let before = memory::memory_allocated(device);
    let x = Tensor::zeros(&[1 << 20], (DType::F32, device))?;
    assert_eq!(memory::memory_allocated(device) - before, 4 << 20);
    let y = x.add(1.0)?;
    assert_eq!(memory::memory_allocated(device) - before, 8 << 20);
    drop((x, y));
    synchronize(device)?;
    assert_eq!(memory::memory_allocated(device), before);
    memory::arena(device).check_balanced().unwrap();
    Ok(())
}

/// An allocation past a limit is an error with a report, and the next one works.
pub fn running_out_of_memory_is_survived(device: Device) -> Result<()> {
    // What chaos takes away makes room; here the count is of what fits without it.
    device::set_chaos(device, None);
    let arena = memory::arena(device);
    memory::empty_cache(device);
    // Four of 64 MiB fit, in pages of 20 MiB too.
    let limit = memory::memory_reserved(device) + (260 << 20);
    let previous = arena.set_limit(Some(limit));
    let mut held = Vec::new();
    let error = loop {
        match Tensor::zeros(&[16 << 20], (DType::F32, device)) {
            Ok(tensor) => held.push(tensor),
            Err(error) => break error,
        }
    };
    assert!(error.is_out_of_memory(), "{error}");
    let report = error.detail::<OutOfMemory>().expect("a report");
    assert!(report.to_string().contains("/memory.rs"), "names the line: {report}");
    assert_eq!(held.len(), 4);
    held.pop();
    held.push(Tensor::zeros(&[16 << 20], (DType::F32, device))?);
    held.clear();
    synchronize(device)?;
    arena.set_limit(previous);
    arena.check_balanced().unwrap();
    Ok(())
}

/// Work on two streams over the same tensors gives what one stream would.
pub fn streams_order_themselves(device: Device) -> Result<()> {
    let side = Stream::new(device)?;
    for round in 0..20 {
        let x = Tensor::full(&[1 << 16], round, (DType::F32, device))?;
        let y = with_stream(&side, || x.add(1.0))?;
        let z = y.mul(2.0)?;
        with_stream(&side, || x.zero_().map(drop))?;
        assert_eq!(z.sum()?.to_scalar()?.to_f64(), f64::from((round + 1) * 2) * 65536.0);
        assert_eq!(x.sum()?.to_scalar()?.to_f64(), 0.0);
    }
    synchronize(device)?;
    memory::arena(device).check_balanced().unwrap();
    Ok(())
}

/// Copies from pinned memory, and writes that wait for them.
pub fn pinned_copies_do_not_need_the_host_to_wait(device: Device) -> Result<()> {
    let host = values(1 << 18).pin_memory()?;
    let there = host.to_non_blocking(device)?;
    let expected = host.sum()?.to_scalar()?.to_f64();
    let found = there.sum()?.to_scalar()?.to_f64();
    assert!((expected - found).abs() <= 1e-3 * expected.abs().max(1.0), "{expected} {found}");
    host.zero_()?; // waits for the copy
    assert_eq!(there.narrow(0, 0, 3)?.to_f64_vec()?, values(3).to_f64_vec()?);
    Ok(())
}

/// Operands on two devices are refused, numbers are not.
pub fn operands_on_different_devices_are_an_error_that_names_both(device: Device) -> Result<()> {
    let (here, there) = (values(4), values(4).to(device)?);
    let text = here.add(&there).unwrap_err().to_string();
    assert!(text.contains("cpu") && text.contains(&device.to_string()), "{text}");
    let scalar = Tensor::scalar(2.0, DType::F32)?;
    assert_eq!(there.mul(&scalar)?.to_f64_vec()?, values(4).mul(2.0)?.to_f64_vec()?);
    Ok(())
}

/// Memory that somebody else owns is used in place, counted as external, and given back when the
/// work on it is done.
pub fn memory_of_others_is_shared_and_given_back(device: Device) -> Result<()> {
    let owned = values(600).to(device)?;
    let held = memory::memory_allocated(device);
    let lent = owned.lend()?;
    let address = lent.address();
    // SAFETY: the lent tensor keeps 600 floats at the address, which nobody else touches meanwhile;
    // they were written on the current stream.
    let shared =
        unsafe { Tensor::from_foreign_on(device, lent, address, &[20, 30], &[1, 20], DType::F32) }?;
    assert_eq!(memory::memory_allocated(device), held, "nothing was copied");
    assert_eq!(memory::arena(device).stats().external_bytes.current, 2400);
    let side = Stream::new(device)?;
    with_stream(&side, || shared.mul_(2.0).map(drop))?;
    let expected = values(600).mul(2.0)?.view(&[30, 20])?.t()?.contiguous()?;
    assert_eq!(shared.to_f64_vec()?, expected.to_f64_vec()?);
    drop(shared);
    assert_eq!(memory::arena(device).stats().external_bytes.current, 0);
    assert_eq!(owned.to_f64_vec()?, values(600).mul(2.0)?.to_f64_vec()?);
    Ok(())
}
