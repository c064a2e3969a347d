//! What graphs share with the rest of a program, and must not: memory that was freed while they
//! were captured, host memory that they copy, pools, generators, other threads' replays. What a
//! replay computes is the test kit's to show, on every device (`checks/devices/graphs.rs`).

use std::collections::HashSet;

use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, MemPool, StandIn, Stream, with_pool, with_stream};
use plimsoll_tensor::*;

type Outcome = Result<()>;

fn stand_in(settings: &str) -> Result<Device> {
    let configuration = Some(Configuration::parse(settings)?);
    device::stand_in(StandIn { configuration, ..StandIn::default() })
}

fn full(value: f64, n: i64, device: Device) -> Result<Tensor> {
    Tensor::full(&[n], value, (DType::F32, device))
}

#[test]
fn what_was_freed_in_a_capture_stays_the_graphs_without_caching_too() -> Outcome {
    for settings in ["", "caching:False", "expandable_segments:True"] {
        let gpu = stand_in(settings)?;
        let n = 2 << 20;
        let x = full(1.0, n, gpu)?;
        let (graph, y) = Graph::capture(gpu, || x.add(1.0)?.mul(2.0)?.add(3.0))?;
        let reserved = graph.pool().usage().reserved_bytes;
        assert!(reserved >= 2 * 4 * n as usize, "{settings}: the sum and the product");
        memory::empty_cache(gpu);
        // Whoever allocates now must not be given what replays write.
        let others = (0..3).map(|_| full(9.0, n, gpu)).collect::<Result<Vec<Tensor>>>()?;
        for value in [1.0, 5.0] {
            x.fill_(value)?;
            graph.replay()?;
            let expected = ((value + 1.0) * 2.0 + 3.0) as f32;
            assert!(y.to_vec::<f32>()?.iter().all(|&got| got == expected), "{settings}");
        }
        for other in &others {
            assert!(other.to_vec::<f32>()?.iter().all(|&value| value == 9.0), "{settings}");
        }
        assert_eq!(graph.pool().usage().reserved_bytes, reserved);
        drop((graph, x, y, others));
        memory::empty_cache(gpu);
        assert_eq!(memory::memory_reserved(gpu), 0, "{settings}: and it went with the graph");
    }
    Ok(())
}

#[test]
fn host_memory_that_a_graph_copies_stays_in_its_place() -> Outcome {
    let gpu = stand_in("")?;
    let n = 1000;
    let (host, x) = (Tensor::zeros(&[n], DType::F32)?.pin_memory()?, full(6.0, n, gpu)?);
    let elsewhere = || {
        let memory = vec![0_u64; n as usize];
        let address = memory.as_ptr() as usize;
        (memory, address)
    };
    // In both directions: a replay that reads the old place would be as wrong.
    for to_host in [true, false] {
        let (to, from) = if to_host { (&host, &x) } else { (&x, &host) };
        let options = CopyOptions::new().non_blocking(true);
        let (graph, ()) = Graph::capture(gpu, || to.copy_with_(from, options).map(drop))?;
        let (memory, address) = elsewhere();
        // SAFETY: the vector has more bytes at `address` for as long as it lives, and nobody else
        // uses them; no other thread has the tensor.
        let refused = unsafe { host.move_storage(memory, address) }.unwrap_err();
        assert!(refused.is_invalid_argument(), "{refused}");
        assert!(refused.to_string().contains("a captured graph copies"), "{refused}");
        let others = (0..3).map(|_| Tensor::full(&[n], 9.0, DType::F32)?.pin_memory());
        let others = others.collect::<Result<Vec<Tensor>>>()?;
        from.fill_(if to_host { 6.0 } else { 7.0 })?;
        graph.replay()?;
        assert_eq!(to.to_vec::<f32>()?, vec![if to_host { 6.0 } else { 7.0 }; n as usize]);
        for other in others {
            assert_eq!(other.to_vec::<f32>()?, vec![9.0; n as usize]);
        }
    }
    // The graphs are gone.
    let (memory, address) = elsewhere();
    // SAFETY: as above.
    unsafe { host.move_storage(memory, address)? };
    assert_eq!(host.foreign_address(), Some(address));
    assert_eq!(host.to_vec::<f32>()?, vec![7.0; n as usize]);
    Ok(())
}

#[test]
fn a_pool_of_graphs_gives_nobody_what_their_replays_write() -> Outcome {
    let gpu = stand_in("")?;
    let x = full(1.0, 1000, gpu)?;
    let (side, pool) = (Stream::new(gpu)?, MemPool::new(gpu));
    let capture = GraphCapture::begin(&side, Some(&pool), &[])?;
    let y = with_stream(&side, || x.add(1.0)?.mul(2.0)?.add(3.0))?;
    let graph = capture.end()?;
    // On the very stream whose memory of the pool is free: where the sum and the product were.
    let beside = with_stream(&side, || with_pool(&pool, || full(0.0, 1000, gpu)))?;
    let active = pool.usage().active_bytes;
    assert_eq!(active, 2 * 4096, "both are counted as the pool's");
    graph.replay()?;
    assert_eq!(beside.to_vec::<f32>()?, [0.0; 1000]);
    assert_eq!(y.to_vec::<f32>()?, [7.0; 1000]);
    drop((graph, beside, y, pool));
    device::synchronize(gpu)?;
    memory::empty_cache(gpu);
    assert_eq!(memory::memory_reserved(gpu), 2 << 20, "what x lies in");
    Ok(())
}

#[test]
fn draws_beside_a_capture_are_the_programs_own() -> Outcome {
    let gpu = stand_in("")?;
    let draw = || Tensor::rand(&[4], (DType::F32, gpu));
    manual_seed_on(gpu, 3);
    let expected: Vec<_> = (0..6).map(|_| draw()?.to_vec::<f32>()).collect::<Result<_>>()?;
    manual_seed_on(gpu, 3);
    let (inside, beside) = (Stream::new(gpu)?, Stream::new(gpu)?);
    let capture = GraphCapture::begin(&inside, None, &[])?;
    let first = with_stream(&inside, draw)?;
    assert_eq!(with_stream(&beside, draw)?.to_vec::<f32>()?, expected[0]);
    let second = with_stream(&inside, draw)?;
    let elsewhere = std::thread::scope(|scope| {
        scope.spawn(|| draw()?.to_vec::<f32>()).join().expect("it does not panic")
    })?;
    assert_eq!(elsewhere, expected[1]);
    let graph = capture.end()?;
    assert_eq!(draw()?.to_vec::<f32>()?, expected[2]);
    graph.replay()?;
    assert_eq!([first.to_vec::<f32>()?, second.to_vec::<f32>()?], expected[3..5]);
    assert_eq!(draw()?.to_vec::<f32>()?, expected[5]);
    Ok(())
}

#[test]
fn a_capture_seeds_no_generator_that_it_draws_from() -> Outcome {
    let gpu = stand_in("")?;
    manual_seed_on(gpu, 3);
    let draw = || Tensor::rand(&[4], (DType::F32, gpu));
    let expected = [draw()?.to_vec::<f32>()?, draw()?.to_vec::<f32>()?];
    manual_seed_on(gpu, 3);
    draw()?;
    let refused = Graph::capture(gpu, || {
        manual_seed_on(gpu, 4);
        draw()
    });
    assert!(refused.unwrap_err().to_string().contains("seeded anew"));
    assert_eq!(get_rng_state(gpu), RngState { seed: 3, offset: 1 }, "as it was");
    // The seed that it has may be named again, as in PyTorch, and changes nothing.
    let (graph, y) = Graph::capture(gpu, || {
        manual_seed_on(gpu, 3);
        draw()
    })?;
    graph.replay()?;
    assert_eq!(y.to_vec::<f32>()?, expected[1]);
    Ok(())
}

#[test]
fn what_a_checkpoint_runs_again_draws_the_same_at_every_replay() -> Outcome {
    let gpu = stand_in("")?;
    let x = full(1.0, 64, gpu)?.requires_grad_(true)?;
    let after = Tensor::rand(&[4], (DType::F32, gpu))?;
    let (graph, (y, gradient)) = Graph::capture(gpu, || {
        let y = checkpoint(&[&x], |x| x[0].mul(&x[0])?.dropout(0.5, true))?;
        let found = grad(&[&y.sum()?], &[&x], GradOptions::default())?;
        after.uniform_(0.0, 1.0)?;
        Ok((y.detach(), found[0].clone().expect("x is used")))
    })?;
    let (mut masks, mut others) = (HashSet::new(), HashSet::new());
    for _ in 0..8 {
        graph.replay()?;
        let kept = y.to_vec::<f32>()?;
        assert_eq!(gradient.to_vec::<f32>()?, kept.iter().map(|y| 2.0 * y).collect::<Vec<_>>());
        masks.insert(kept.iter().map(|y| *y > 0.0).collect::<Vec<bool>>());
        others.insert(format!("{:?}", after.to_vec::<f32>()?));
    }
    assert_eq!((masks.len(), others.len()), (8, 8), "each replay draws anew");
    Ok(())
}

#[test]
fn a_checkpoint_draws_only_with_its_own_graph() -> Outcome {
    let gpu = stand_in("")?;
    let x = full(1.0, 64, gpu)?.requires_grad_(true)?;
    // The sine saves what was drawn.
    let forward = || checkpoint(&[&x], |x| x[0].mul(&x[0])?.dropout(0.5, true)?.sin());
    let backward = |y: &Tensor| grad(&[&y.sum()?], &[&x], GradOptions::default());
    let (_, y) = Graph::capture(gpu, forward)?;
    let alone = backward(&y).unwrap_err().to_string();
    assert!(alone.contains("whose forward a graph captured"), "{alone}");
    // Backward runs on the stream of forward, which is captured only now.
    let side = Stream::new(gpu)?;
    let y = with_stream(&side, forward)?;
    let capture = GraphCapture::begin(&side, None, &[])?;
    let later = with_stream(&side, || backward(&y)).unwrap_err().to_string();
    assert!(later.contains("whose forward is not part of this graph"), "{later}");
    assert!(capture.end().unwrap_err().to_string().contains("would draw other numbers"));
    // Nothing of it is left: what draws nothing may be in two graphs, and draws go on.
    let y = with_stream(&side, || checkpoint(&[&x], |x| x[0].mul(&x[0])))?;
    let capture = GraphCapture::begin(&side, None, &[])?;
    let found = with_stream(&side, || backward(&y))?;
    let graph = capture.end()?;
    graph.replay()?;
    assert_eq!(found[0].clone().expect("x is used").to_vec::<f32>()?, [2.0; 64]);
    Tensor::rand(&[4], (DType::F32, gpu)).map(drop)
}

#[test]
fn threads_that_replay_one_graph_draw_different_numbers() -> Outcome {
    let gpu = stand_in("")?;
    let (threads, replays) = (2, 1000);
    let rows = Tensor::zeros(&[threads * replays, 4], (DType::F32, gpu))?;
    let next = Tensor::zeros(&[1], (DType::I64, gpu))?;
    let (graph, ()) = Graph::capture(gpu, || {
        rows.index_copy_(0, &next, &Tensor::rand(&[1, 4], (DType::F32, gpu))?)?;
        next.add_(1).map(drop)
    })?;
    replay_from_threads(gpu, &[&graph, &graph], replays)?;
    let drawn = rows.to_vec::<f32>()?;
    let different: HashSet<[u32; 4]> =
        drawn.as_chunks().0.iter().map(|row: &[f32; 4]| row.map(f32::to_bits)).collect();
    assert_eq!(different.len() as i64, threads * replays);
    assert_eq!(next.item::<i64>()?, threads * replays);
    Ok(())
}

#[test]
fn threads_that_replay_graphs_of_one_pool_do_not_meet_in_its_memory() -> Outcome {
    let gpu = stand_in("")?;
    let side = Stream::new(gpu)?;
    let pool = MemPool::for_graph(gpu);
    let wrong = Tensor::zeros(&[1], (DType::I64, gpu))?;
    // Both write, read and free the same blocks on the way to what they compare.
    let chain = |value: f64| {
        let x = full(value, 1 << 12, gpu)?;
        let capture = GraphCapture::begin(&side, Some(&pool), &[])?;
        with_stream(&side, || {
            let mut sum = x.add(1.0)?;
            for _ in 0..6 {
                sum = sum.mul(1.0)?;
            }
            wrong.add_(&sum.ne(value + 1.0)?.sum()?).map(drop)
        })?;
        capture.end()
    };
    let graphs = [chain(1.0)?, chain(1000.0)?];
    replay_from_threads(gpu, &[&graphs[0], &graphs[1]], 1000)?;
    assert_eq!(wrong.item::<i64>()?, 0);
    Ok(())
}

/// Replays each graph on a thread and a stream of its own.
fn replay_from_threads(gpu: Device, graphs: &[&Graph], replays: i64) -> Outcome {
    std::thread::scope(|scope| {
        let replay = |graph: &Graph| {
            let side = Stream::new(gpu)?;
            with_stream(&side, || (0..replays).try_for_each(|_| graph.replay()))
        };
        let threads: Vec<_> =
            graphs.iter().map(|&graph| scope.spawn(move || replay(graph))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    device::synchronize(gpu)
}
