//! Captured graphs: replays do what the captured function would, memory is the graph's own, and
//! what cannot be captured is refused without harm. A tensor whose memory was taken away is refused
//! too, so none of these runs under the chaos of tests.

use plimsoll_tensor::device::{MemPool, Stream, synchronize, with_stream};
use plimsoll_tensor::{
    AdamWOptions, CopyOptions, DType, Device, Generator, Graph, GraphCapture, Result, Tensor,
    device, get_rng_state, manual_seed_on, memory, no_grad, with_generator,
};

use super::values;

/// A small network with dropout, and what AdamW keeps beside its weights.
struct Training {
    x: Tensor,
    target: Tensor,
    weights: [Tensor; 2],
    kept: [[Tensor; 2]; 2],
    steps: [Tensor; 2],
    lr: Tensor,
}

impl Training {
    fn new(device: Device) -> Result<Training> {
        let flat = |n: i64, shape: &[i64]| values(n).mul(0.1)?.view(shape)?.to(device);
        let leaf = |n: i64, shape: &[i64]| flat(n, shape)?.requires_grad_(true);
        let weights = [leaf(96, &[8, 12])?, leaf(12, &[12, 1])?];
        let zeros = |like: &Tensor| like.detach().mul(0.0);
        let kept = [
            [zeros(&weights[0])?, zeros(&weights[0])?],
            [zeros(&weights[1])?, zeros(&weights[1])?],
        ];
        let number = |value: f64| Tensor::full(&[], value, (DType::F32, device));
        Ok(Training {
            x: flat(32, &[4, 8])?,
            target: flat(4, &[4, 1])?,
            weights,
            kept,
            steps: [number(0.0)?, number(0.0)?],
            lr: number(0.01)?,
        })
    }

    /// Forward, backward and a step; the loss stays on the device.
    fn step(&self) -> Result<Tensor> {
        let [first, second] = &self.weights;
        let hidden = self.x.matmul(first)?.tanh()?.dropout(0.25, true)?;
        let loss = hidden.matmul(second)?.mse_loss(&self.target)?;
        self.weights.iter().try_for_each(|weight| weight.set_grad(None))?;
        loss.backward()?;
        let grads: Vec<Tensor> = self.weights.iter().filter_map(Tensor::grad).collect();
        no_grad(|| {
            self.steps.iter().try_for_each(|step| step.add_(1.0).map(drop))?;
            Tensor::fused_adamw_from_(
                &self.weights.iter().collect::<Vec<_>>(),
                &grads.iter().collect::<Vec<_>>(),
                &self.kept.iter().map(|kept| &kept[0]).collect::<Vec<_>>(),
                &self.kept.iter().map(|kept| &kept[1]).collect::<Vec<_>>(),
                &[],
                &self.steps.iter().collect::<Vec<_>>(),
                AdamWOptions::new().tensor_lr(&self.lr),
            )
        })?;
        Ok(loss.detach())
    }
}

/// Ten steps of training, with draws, a step count and a learning rate that change: captured, they
/// are what they are one operation after the other, bit for bit.
pub fn replayed_training_is_training(device: Device) -> Result<()> {
    device::set_chaos(device, None);
    let schedule = |step: usize| 0.05 / (1.0 + step as f64);
    manual_seed_on(device, 3);
    let eager = Training::new(device)?;
    let mut expected = Vec::new();
    for step in 0..10 {
        eager.lr.fill_(schedule(step))?;
        eager.x.mul_(1.1)?;
        expected.push(eager.step()?.to_f64_vec()?[0]);
    }
    let drawn = get_rng_state(device);

    manual_seed_on(device, 3);
    let captured = Training::new(device)?;
    let (graph, loss) = Graph::capture(device, || captured.step())?;
    assert!(graph.nodes() > 10, "{graph:?}");
    assert_eq!(get_rng_state(device).offset, 0, "nothing ran, so nothing was drawn");
    for (step, expected) in expected.iter().enumerate() {
        captured.lr.fill_(schedule(step))?;
        captured.x.mul_(1.1)?;
        graph.replay()?;
        assert_eq!(loss.to_f64_vec()?[0], *expected, "step {step} on {device}");
    }
    assert_eq!(get_rng_state(device), drawn, "replays draw as many numbers as the steps");
    for (eager, captured) in eager.weights.iter().zip(&captured.weights) {
        assert_eq!(eager.to_f64_vec()?, captured.to_f64_vec()?);
    }
    Ok(())
}

/// Memory of a capture is reused within it and by nobody else, is counted where it is, and goes
/// with the graph; inputs stay as long as the graph.
pub fn a_graph_has_memory_of_its_own(device: Device) -> Result<()> {
    device::set_chaos(device, None);
    synchronize(device)?;
    let arena = memory::arena(device);
    memory::empty_cache(device);
    let (allocated, reserved) = (memory::memory_allocated(device), memory::memory_reserved(device));
    let x = Tensor::ones(&[1 << 20], (DType::F32, device))?;
    let (graph, y) = Graph::capture(device, || {
        // Three results of 4 MiB, of which one stays, and no two intermediate ones live at once.
        x.add(1.0)?.mul(2.0)?.add(1.0)
    })?;
    assert_eq!(graph.pool().usage().active_bytes, 4 << 20, "{graph:?}");
    assert_eq!(graph.pool().usage().reserved_bytes, 20 << 20, "{graph:?}");
    // x, y, and a block with the seed and the offset that replays would draw from.
    assert_eq!(memory::memory_allocated(device) - allocated, (8 << 20) + 512);
    // Nobody else is given what is free there.
    let other = Tensor::zeros(&[1 << 20], (DType::F32, device))?;
    let inside = graph.pool().id();
    let segments = arena.segments();
    let of_graph = segments.iter().find(|segment| segment.pool_id.pair() == inside).unwrap();
    let range = of_graph.address..of_graph.address + of_graph.bytes;
    assert!(range.contains(&y.data_ptr()?) && !range.contains(&other.data_ptr()?));
    assert_eq!(memory::empty_cache(device), 0);
    drop(x); // the graph holds it
    graph.replay()?;
    assert_eq!(y.sum()?.to_scalar()?.to_f64(), 5.0 * 1_048_576.0);
    // A tensor of the pool outlives the graph.
    drop((graph, other));
    assert_eq!(y.sum()?.to_scalar()?.to_f64(), 5.0 * 1_048_576.0);
    drop(y);
    synchronize(device)?;
    memory::empty_cache(device);
    assert_eq!(memory::memory_allocated(device), allocated);
    assert_eq!(memory::memory_reserved(device), reserved);
    arena.check_balanced().unwrap();
    Ok(())
}

/// What makes the host wait, and more memory than there is, end the capture with an error that says
/// so; the device, its books and the next capture are as if it had not been.
pub fn what_cannot_be_captured_is_refused_without_harm(device: Device) -> Result<()> {
    // Chaos that never strikes: the device lets go of a tensor when it is told to.
    device::set_chaos(device, Some(1));
    device::set_chaos(device, None);
    let x = values(1000).to(device)?;
    assert!(device::take_back(&x, false));
    let error = Graph::capture(device, || x.add(1.0)).unwrap_err().to_string();
    assert!(error.contains("whose 4000 bytes were taken off it"), "{error}");
    x.add(1.0)?; // brings it back
    let (host, pinned) = (values(1000), values(1000).pin_memory()?);
    let own = Generator::new(device, 1);
    let before = memory::memory_allocated(device);
    let waits: [(&str, &dyn Fn() -> Result<()>); 9] = [
        ("item", &|| x.sum()?.to_scalar().map(drop)),
        ("cpu", &|| x.cpu().map(drop)),
        ("nonzero", &|| x.nonzero().map(drop)),
        ("to a device", &|| host.to(device).map(drop)),
        ("blocking copy", &|| pinned.to(device).map(drop)),
        ("synchronize", &|| synchronize(device)),
        ("stream", &|| Stream::current(device).synchronize()),
        ("work outside", &|| Stream::current(device).wait_stream(&Stream::default_of(device))),
        ("draws", &|| with_generator(&own, || Tensor::rand(&[8], (DType::F32, device))).map(drop)),
    ];
    for (name, wait) in waits {
        let refused = Graph::capture(device, || {
            x.add(1.0)?;
            let error = wait().expect_err(name);
            assert!(error.to_string().contains("when stream is capturing"), "{name}: {error}");
            // A program that goes on all the same gets no graph.
            Ok(())
        });
        let error = refused.expect_err(name).to_string();
        assert!(error.contains("the capture failed"), "{name}: {error}");
        assert!(!Stream::current(device).is_capturing());
        assert_eq!(memory::memory_allocated(device), before, "{name}");
        synchronize(device)?;
    }
    let arena = memory::arena(device);
    memory::empty_cache(device);
    let limit = arena.set_limit(Some(memory::memory_reserved(device) + (64 << 20)));
    let large = || Tensor::ones(&[32 << 20], (DType::F32, device));
    let full = Graph::capture(device, || x.add(&large()?.narrow(0, 0, 1000)?));
    let error = full.unwrap_err();
    arena.set_limit(limit);
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(memory::memory_allocated(device), before);
    arena.check_balanced().unwrap();
    let stream = Stream::default_of(device);
    assert!(GraphCapture::begin(&stream, None, &[]).is_err(), "the default stream has no captures");
    let (graph, y) = Graph::capture(device, || x.add(1.0))?;
    graph.replay()?;
    assert_eq!(y.to_f64_vec()?, x.add(1.0)?.to_f64_vec()?);
    Ok(())
}

/// Streams that join a capture are ordered by what they touch, and must be waited for before it
/// ends; replays are ordered with work on other streams.
pub fn streams_of_a_graph_are_ordered(device: Device) -> Result<()> {
    device::set_chaos(device, None);
    let (origin, side) = (Stream::new(device)?, Stream::new(device)?);
    let x = Tensor::ones(&[1 << 13], (DType::F32, device))?;
    let capture = GraphCapture::begin(&origin, None, &[])?;
    let y = with_stream(&origin, || {
        let a = x.add(1.0)?;
        side.wait_stream(&origin)?;
        assert!(side.is_capturing());
        let b = with_stream(&side, || a.mul(3.0)?.add(1.0))?; // 7
        let c = a.mul(10.0)?; // beside it: 20
        let sum = c.add(&b)?; // waits for the side by itself: 27
        drop((a, b, c));
        with_stream(&side, || x.add_(1.0).map(drop))?; // after the reads of x
        origin.wait_stream(&side)?;
        Ok::<_, plimsoll_tensor::Error>(sum)
    })?;
    let graph = capture.end()?;
    for round in 0..20 {
        let other = Stream::new(device)?;
        // The first replay of a round on one stream, the second on another, read on a third.
        graph.replay()?;
        with_stream(&other, || graph.replay())?;
        let x = f64::from(2 + 2 * round);
        let expected = (x + 1.0) * 13.0 + 1.0;
        assert_eq!(y.mean()?.to_scalar()?.to_f64(), expected, "round {round}");
    }
    let capture = GraphCapture::begin(&origin, None, &[])?;
    with_stream(&origin, || x.add(1.0).map(drop))?;
    side.wait_stream(&origin)?;
    with_stream(&side, || x.add(1.0).map(drop))?;
    let error = capture.end().expect_err("nobody waited for the side").to_string();
    assert!(error.contains("wait_stream"), "{error}");
    assert!(!side.is_capturing() && !origin.is_capturing());
    assert_eq!(with_stream(&side, || x.mul(0.0))?.sum()?.to_scalar()?.to_f64(), 0.0);
    Ok(())
}

/// Graphs that share a pool share its memory; copies from pinned memory bring what it holds at each
/// replay; draws come from generators that the capture was told of.
pub fn graphs_share_pools_and_read_pinned_memory(device: Device) -> Result<()> {
    device::set_chaos(device, None);
    let (stream, pool) = (Stream::new(device)?, MemPool::for_graph(device));
    let host = Tensor::zeros(&[1 << 20], DType::F32)?.pin_memory()?;
    let input = Tensor::zeros(&[1 << 20], (DType::F32, device))?;
    let non_blocking = || CopyOptions::new().non_blocking(true);
    let capture = GraphCapture::begin(&stream, Some(&pool), &[])?;
    let first = with_stream(&stream, || {
        input.copy_with_(&host, non_blocking())?;
        input.add(1.0)?.add(1.0)
    })?;
    let first_graph = capture.end()?;
    let used = pool.usage().reserved_bytes;
    let own = Generator::new(device, 5);
    let capture = GraphCapture::begin(&stream, Some(&pool), std::slice::from_ref(&own))?;
    let second = with_stream(&stream, || {
        let drawn = with_generator(&own, || Tensor::rand(&[1 << 20], (DType::F32, device)))?;
        first.add(&drawn.floor()?)?.mul(2.0)
    })?;
    let second_graph = capture.end()?;
    assert_eq!(pool.usage().reserved_bytes, used, "what the first does not need serves the second");
    for value in [3.0, 5.0, 7.0] {
        host.fill_(value)?; // waits for the copy of the replay before
        first_graph.replay()?;
        second_graph.replay()?;
        assert_eq!(second.mean()?.to_scalar()?.to_f64(), 2.0 * (value + 2.0));
    }
    assert_eq!(own.state().offset, 3 * (1 << 18), "four numbers a counter");
    drop((first_graph, second_graph, first, second, pool));
    synchronize(device)?;
    memory::arena(device).check_balanced().unwrap();
    Ok(())
}

/// A dry run of a capture takes what the capture takes.
pub fn a_dry_capture_takes_the_same(device: Device) -> Result<()> {
    device::set_chaos(device, None);
    let usage = |device: Device| -> Result<_> {
        let training = Training::new(device)?;
        let (graph, loss) = Graph::capture(device, || training.step())?;
        graph.replay()?;
        // What is freed now may have to wait for the replay.
        let usage = graph.pool().usage();
        drop(loss);
        Ok(usage)
    };
    assert_eq!(usage(device)?, usage(device::dry(device)?)?);
    Ok(())
}
