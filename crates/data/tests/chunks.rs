//! Inputs in chunks: the same results as at once, and no more bytes on the device than the chunks
//! take.

use plimsoll_data::*;
use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn};
use plimsoll_tensor::{DType, Device, Result, Tensor, memory};
use proptest::prelude::*;

type Outcome = Result<()>;

fn stand_in(capacity_bytes: usize) -> Device {
    let configuration = Some(Configuration::default());
    device::stand_in(StandIn { capacity_bytes, configuration, ..StandIn::default() }).unwrap()
}

fn options() -> ChunkOptions {
    ChunkOptions::new()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn chunks_give_what_the_whole_gives(
        rows in 0i64..40,
        chunk in 1usize..50,
        buffers in 1usize..4,
        (there, back) in (any::<bool>(), any::<bool>()),
    ) {
        let x = Tensor::arange(0, rows * 3, 1, DType::F32).unwrap().view(&[rows, 3]).unwrap();
        let f = |rows: &Tensor| rows.mul(2.0)?.sum_with(1);
        let whole = f(&x).unwrap().to_vec::<f32>().unwrap();
        let gpu = stand_in(64 << 20);
        let device = if there { gpu } else { Device::cpu() };
        let results_on = if back { Device::cpu() } else { gpu };
        let options = options().chunk_size(chunk).device(device).results_on(results_on);
        let y = process_in_chunks_with(&x, options.prefetch_buffers(buffers), f).unwrap();
        prop_assert_eq!(y.device(), results_on);
        prop_assert_eq!(y.shape(), [rows as usize]);
        prop_assert_eq!(y.to_vec::<f32>().unwrap(), whole);
    }
}

#[test]
fn the_device_holds_the_chunks_and_what_is_made_of_one() -> Outcome {
    const ROW: usize = 1024 * 4;
    const CHUNK: usize = 8 * ROW;
    let x = Tensor::ones(&[64, 1024], DType::F32)?;
    for buffers in 1..=3usize {
        let gpu = stand_in(64 << 20);
        let scope = memory::peak_scope(gpu);
        let options = options().chunk_size(8usize).device(gpu).prefetch_buffers(buffers);
        let y = process_in_chunks_with(&x, options, |rows| rows.exp())?;
        // Each chunk's buffer, and the result of the one that is computed on.
        assert_eq!(scope.allocated_bytes_peak(), (buffers + 1) * CHUNK);
        assert_eq!(memory::memory_allocated(gpu), 0);
        assert_eq!(y.to_vec::<f32>()?, vec![1f32.exp(); 64 * 1024]);
    }
    Ok(())
}

#[test]
fn on_one_device_a_chunk_is_a_view_and_the_results_are_joined_in_place() -> Outcome {
    let own = device::private_cpu(&Configuration::default())?;
    let x = Tensor::ones(&[16, 256], (DType::F32, own))?;
    let before = memory::memory_allocated(own);
    let scope = memory::peak_scope(own);
    let y = process_in_chunks(&x, 4, |rows| {
        assert!(rows.shares_storage_with(&x));
        rows.add(1.0)
    })?;
    // All results, and one chunk's before it is written there.
    assert_eq!(scope.allocated_bytes_peak() - before, 16 * 1024 + 4 * 1024);
    assert_eq!(memory::memory_allocated(own) - before, 16 * 1024);
    assert_eq!(y.to_vec::<f32>()?, vec![2.0; 16 * 256]);
    Ok(())
}

#[test]
fn an_input_larger_than_the_device_passes_through_it() -> Outcome {
    let gpu = stand_in(6 << 20);
    let x = Tensor::ones(&[16, 1 << 18], DType::F32)?; // 16 MiB
    assert!(x.to(gpu).unwrap_err().is_out_of_memory());
    let options = options().chunk_size(1usize).device(gpu).prefetch_buffers(2usize);
    let y = process_in_chunks_with(&x, options, |rows| rows.mul(3.0))?;
    assert_eq!(y.sum_with(1)?.to_vec::<f32>()?, [3.0 * (1 << 18) as f32; 16]);
    Ok(())
}

#[test]
fn cached_memory_goes_back_every_so_many_chunks_and_at_the_end() -> Outcome {
    let x = Tensor::ones(&[8, 1 << 18], DType::F32)?;
    let reserved = |options: ChunkOptions| -> Result<(Vec<usize>, usize)> {
        let gpu = stand_in(64 << 20);
        let mut seen = Vec::new();
        let options = options.chunk_size(1usize).device(gpu).prefetch_buffers(1usize);
        process_in_chunks_with(&x, options, |rows| {
            seen.push(memory::memory_reserved(gpu));
            rows.sum_with(1)
        })?;
        Ok((seen, memory::memory_reserved(gpu)))
    };
    let (kept, at_end) = reserved(options())?;
    assert!(kept.iter().all(|&bytes| bytes >= 1 << 20) && at_end >= 1 << 20);
    let (_, at_end) = reserved(options().final_cleanup(true))?;
    assert_eq!(at_end, 0);
    let (each, at_end) = reserved(options().cleanup_every(1usize))?;
    assert_eq!(at_end, 0);
    assert!(each.iter().all(|&bytes| bytes <= kept[0]), "{each:?} and {kept:?}");
    Ok(())
}

#[test]
fn nothing_is_recorded_and_bad_results_are_named() -> Outcome {
    let x = Tensor::ones(&[4, 2], DType::F32)?.requires_grad_(true)?;
    let w = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    let y = process_in_chunks(&x, 2, |rows| rows.mul(&w))?;
    assert!(!y.requires_grad());
    let error = process_in_chunks(&x, 2, |rows| rows.sum()).unwrap_err().to_string();
    assert!(error.contains("2 rows from 0") && error.contains("one row"), "{error}");
    let mut calls = 0;
    let error = process_in_chunks(&x, 2, |rows| {
        calls += 1;
        if calls == 1 { rows.add(0.0) } else { rows.narrow(1, 0, 1) }
    });
    assert!(error.unwrap_err().to_string().contains("rows from 2"));
    assert!(process_in_chunks(&x, 0, |rows| rows.add(1.0)).is_err());
    assert!(process_in_chunks(&Tensor::scalar(1.0, DType::F32)?, 1, |x| x.add(1.0)).is_err());
    Ok(())
}

#[test]
fn evaluation_runs_without_gradients_on_a_device_and_stops_at_an_error() -> Outcome {
    let gpu = stand_in(64 << 20);
    let w = Tensor::ones(&[3], (DType::F32, gpu))?.requires_grad_(true)?;
    let x = Tensor::arange(0, 12, 1, DType::F32)?.view(&[4, 3])?;
    let options = LoaderOptions::new().batch_size(2usize).num_workers(1usize);
    let loader = DataLoader::new(TensorDataset::new(x)?, options)?;
    let evaluation = EvaluateOptions::new().device(gpu).cleanup_every(1usize).final_cleanup(true);
    let sums = evaluate_with(loader.epoch()?, evaluation, |batch| {
        let y = batch.mul(&w)?;
        assert!(!y.requires_grad() && y.device() == gpu);
        y.sum()?.item::<f32>()
    })?;
    assert_eq!(sums, [15.0, 51.0]);
    assert_eq!(memory::memory_allocated(gpu), 512, "the weight alone");
    let mut seen = 0;
    let stopped: Result<Vec<()>> = evaluate(loader.epoch()?, |batch| {
        seen += 1;
        batch.view(&[7]).map(drop)
    });
    assert!(stopped.unwrap_err().is_shape() && seen == 1);
    Ok(())
}
