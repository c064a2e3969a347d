//! How a tensor was made outlives its bytes: chains whose middle nobody holds are computed again,
//! also with several results; records are in the book and do not pile up. And how room is made: by
//! neighbours, and without waiting.

use plimsoll_memory::{Configuration, Kind};
use plimsoll_tensor::device::{self, StandIn, remaking_cost, take_back};
use plimsoll_tensor::*;

type Outcome = Result<()>;

const MIB: usize = 1 << 20;

/// A private host device and a stand-in that take memory back; both have 64 MiB.
fn devices() -> [Device; 2] {
    let limited =
        Configuration::builder().spill(true).memory_limit_bytes(64 * MIB).build().unwrap();
    let spilling = Configuration::builder().spill(true).build().unwrap();
    let stand_in =
        StandIn { capacity_bytes: 64 * MIB, configuration: Some(spilling), ..StandIn::default() };
    [device::private_cpu(&limited).unwrap(), device::stand_in(stand_in).unwrap()]
}

/// A hundred steps, of which only the last is held; each reads the start, the one before and a
/// number.
fn chain(start: &Tensor) -> Result<Tensor> {
    let mut h = start.mul(1.0)?;
    for step in 0..50 {
        h = h.tanh()?;
        h = h.add(start)?.add(f64::from(step))?;
    }
    Ok(h)
}

fn bits(tensor: &Tensor) -> Result<Vec<u32>> {
    Ok(tensor.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
}

fn record_bytes() -> usize {
    let rows = memory::arena(Device::CPU).external_by_origin();
    rows.iter().filter(|row| row.kind == Kind::Record).map(|row| row.bytes).sum()
}

#[test]
fn a_chain_whose_links_are_gone_is_computed_again() -> Outcome {
    for device in devices() {
        let start = Tensor::arange(0, 1000, 1, (DType::F32, device))?.mul(1e-3)?;
        let end = chain(&start)?;
        let truth = bits(&end)?;
        assert_eq!(memory::memory_allocated(device), 2 * 4096, "the links are gone");
        for _ in 0..3 {
            assert!(take_back(&end, true));
            let left = (memory::memory_allocated(device), memory::memory_spilled(device));
            assert_eq!(left, (4096, 0), "dropped, not spilled");
            assert_eq!(bits(&end)?, truth);
            assert_eq!(memory::memory_allocated(device), 2 * 4096, "and the links are gone again");
        }
        // Without its start a tensor is made from the numbers that the start was made from.
        drop(start);
        assert!(take_back(&end, true));
        assert_eq!(memory::memory_allocated(device), 0);
        assert_eq!(bits(&end)?, truth);
        memory::arena(device).check_balanced().unwrap();
    }
    Ok(())
}

#[test]
fn chains_in_chaos_have_equal_bytes() -> Outcome {
    let plain = device::private_cpu(&Configuration::default())?;
    let program = |device: Device| -> Result<Vec<Vec<u32>>> {
        let start = Tensor::arange(0, 100, 1, (DType::F32, device))?.mul(1e-2)?;
        let ends = [chain(&start)?, chain(&start.mul(0.5)?)?];
        start.add_(1.0)?;
        let last = chain(&start)?;
        ends.iter().chain([&last, &start]).map(bits).collect()
    };
    let truth = program(plain)?;
    for seed in 0..10 {
        for device in devices() {
            device::set_chaos(device, Some(seed));
            assert_eq!(program(device)?, truth, "seed {seed} on {device}");
            assert_eq!(memory::memory_allocated(device), 0);
        }
    }
    Ok(())
}

#[test]
fn several_results_of_one_operation_are_computed_again() -> Outcome {
    for device in devices() {
        let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], &[3], device)?;
        let (values, indices) = x.mul(2.0)?.sort_with(SortOptions::new().dim(0))?;
        let doubled = values.add(&values)?;
        assert!(take_back(&values, true) && take_back(&indices, true));
        assert_eq!(memory::memory_spilled(device), 0);
        assert_eq!(indices.to_vec::<i64>()?, [1, 2, 0]);
        assert_eq!(values.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
        // The middle of a chain may be one of several results, too.
        drop(values);
        assert!(take_back(&doubled, true));
        assert_eq!(memory::memory_spilled(device), 0);
        assert_eq!(doubled.to_vec::<f32>()?, [4.0, 8.0, 12.0]);
    }
    Ok(())
}

#[test]
fn a_parent_that_was_written_is_made_as_it_was() -> Outcome {
    for device in devices() {
        let x = Tensor::full(&[4], 3.0, (DType::F32, device))?;
        let y = x.mul(2.0)?;
        x.add_(1.0)?;
        let z = x.mul(10.0)?;
        assert!(take_back(&y, true) && take_back(&z, true));
        // `y` read what `full` made. `z` read what nobody can make again, and holds it.
        assert_eq!(memory::memory_spilled(device), 0);
        assert_eq!(memory::memory_allocated(device), 512);
        assert_eq!(y.to_vec::<f32>()?, [6.0; 4]);
        drop(x);
        assert_eq!(z.to_vec::<f32>()?, [40.0; 4]);
    }
    Ok(())
}

#[test]
fn a_million_steps_keep_constant_bytes() -> Outcome {
    let device = devices()[0];
    no_grad(|| {
        let step = |h: &Tensor| h.mul(0.5);
        let mut h = Tensor::ones(&[4], (DType::F32, device))?;
        let (mut most, mut steps) = (0, 0);
        for target in [10_000, 1_000_000] {
            let before = most;
            while steps < target {
                h = step(&h)?;
                steps += 1;
                if steps < 10_000 || steps % 97 == 0 {
                    most = most.max(record_bytes());
                }
            }
            assert!(before == 0 || most <= before, "{before} bytes of records became {most}");
        }
        assert!((1..1 << 20).contains(&most), "a chain is cut long before a mebibyte: {most}");
        assert_eq!(memory::max_memory_allocated(device), 1024);
        drop(h);
        assert_eq!(record_bytes(), 0, "records go with the last tensor");
        Ok(())
    })
}

#[test]
fn nothing_is_recorded_unless_memory_is_taken_back() -> Outcome {
    let device = device::private_cpu(&Configuration::default())?;
    let x = Tensor::ones(&[4], (DType::F32, device))?.mul(2.0)?;
    assert_eq!(record_bytes(), 0);
    assert_eq!(remaking_cost(&x), None);
    Ok(())
}

#[test]
fn the_cost_of_making_a_tensor_again_is_that_of_all_its_steps() -> Outcome {
    for device in devices() {
        let x = Tensor::from_slice(&[1.0f32; 256], &[256], device)?;
        let y = x.mul(2.0)?;
        assert_eq!(remaking_cost(&x), None, "nobody can bring the caller's numbers again");
        assert_eq!(remaking_cost(&y), Some(2048));
        let z = y.add(&x)?;
        assert_eq!(remaking_cost(&z), Some(3072));
        drop(y);
        assert_eq!(remaking_cost(&z), Some(3072 + 2048));
    }
    Ok(())
}

#[test]
fn neighbours_make_room_where_the_oldest_would_not() -> Outcome {
    let limited =
        Configuration::builder().spill(true).memory_limit_bytes(40 * MIB).build().unwrap();
    let device = device::private_cpu(&limited)?;
    let options = (DType::F32, device);
    let make = |n: usize| Tensor::full(&[(2 * MIB / 4) as i64], n as f32, options);
    let mut held: Vec<Tensor> = (0..20).map(make).collect::<Result<_>>()?;
    // Every other one is made anew in its old place: the oldest ten are no neighbours of each
    // other.
    for n in (1..20).step_by(2) {
        held[n] = held[0].clone();
        held[n] = make(n)?;
    }
    assert_eq!(memory::memory_reserved(device), 40 * MIB);
    let large = Tensor::full(&[(6 * MIB / 4) as i64], -1.0, options)?;
    assert_eq!(memory::memory_spilled(device), 6 * MIB, "three neighbours went, and no more");
    for (n, tensor) in held.iter().enumerate() {
        assert_eq!(tensor.amax_with([0])?.item::<f32>()?, n as f32);
    }
    drop((large, held));
    assert_eq!((memory::memory_allocated(device), memory::memory_spilled(device)), (0, 0));
    memory::arena(device).check_balanced().unwrap();
    Ok(())
}

#[test]
fn the_host_does_not_wait_for_a_spill() -> Outcome {
    let device = devices()[1];
    let x = Tensor::ones(&[1000], (DType::F32, device))?.add(1.0)?;
    let gone = x.mul(3.0)?;
    device::synchronize(device)?;
    let pause = Stream::current(device).pause()?;
    // The stream stands still: whoever waited for it here would wait for ever.
    let queued = x.add(1.0)?;
    assert!(take_back(&x, false) && take_back(&gone, false) && take_back(&queued, false));
    assert_eq!(memory::memory_spilled(device), 12_000);
    drop(gone); // while its bytes are on their way
    let y = x.mul(2.0)?;
    let z = queued.mul(2.0)?;
    assert_eq!(memory::memory_spilled(device), 0);
    let pinned = device::pinned_arena();
    assert!(pinned.live_bytes() >= 3 * 4096, "host memory stays until the copies are done");
    drop(pause);
    assert_eq!(y.to_vec::<f32>()?, [4.0; 1000]);
    assert_eq!(z.to_vec::<f32>()?, [6.0; 1000]);
    device::synchronize(device)?;
    assert_eq!(pinned.live_bytes(), 0);
    Ok(())
}
