//! Random state: a seed and how many counters of its Philox stream are used up. Operations carry
//! the part of the stream that they use in their value, so that they can be run again; the numbers
//! themselves are made in `kernels/*/random`.
//!
//! Note [Draws of a captured graph]
//! A graph that is captured once and replayed holds the very operations that were recorded, yet
//! every replay must draw anew. While a [`RngCapture`] is open, draws count from 0, and operations
//! take the seed and the offset to count from as one more input: two numbers in memory of the
//! device. Before each replay [`RngReplay::advance`] writes the generator's present state there, in
//! the order of the stream, and moves the generator on. Being an input, that memory is pinned,
//! claimed, ordered between streams and kept alive like any other. Other streams than those of the
//! graph draw meanwhile as ever, and move the generator on.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::{DType, Device, Error, Result};
use plimsoll_memory::{Site, with_site};

use crate::Tensor;
use crate::autograd::no_grad;
use crate::device::captures::Capture;
use crate::device::{self, Entry};
use crate::generator::{Capturing, Drawn, Generator, Place, RngState};

/// Draws for an operation on the device of `entry`: from the generator that this thread names for
/// it, else from its default one.
pub(crate) fn draw(entry: &'static Entry, counters: u64) -> Result<Drawn> {
    let device = entry.device();
    let named = NAMED.with_borrow(|list| list.iter().rfind(|g| g.device() == device).cloned());
    let generator = named.as_ref().unwrap_or_else(|| entry.generator());
    let capture = entry.captures().of(entry.current_stream());
    if LOST.with_borrow(|lost| lost.iter().any(|one| one.is(generator))) {
        return Err(match capture {
            Some(capture) => capture.refuse(
                "a checkpoint whose forward is not part of this graph would draw other numbers",
            ),
            None => Error::invalid_argument(
                "a checkpoint whose forward a graph captured would draw other random numbers than \
                 its replays; capture its backward with it, or run both without a graph",
            ),
        });
    }
    let drawn = generator.draw(counters, capture.as_ref());
    // Numbers that are written down as they are would be the same at every replay.
    if drawn.state.is_none()
        && let Some(capture) = capture
    {
        return Err(
            capture.refuse("numbers would be drawn from a generator that the graph does not know")
        );
    }
    Ok(drawn)
}

thread_local! {
    /// Generators that this thread draws from instead of the default ones; the newest counts.
    static NAMED: RefCell<Vec<Generator>> = const { RefCell::new(Vec::new()) };
    /// Generators that could not go back to where this thread's checkpoint drew first.
    static LOST: RefCell<Vec<Generator>> = const { RefCell::new(Vec::new()) };
}

/// Runs `body` with this thread's draws on the generator's device coming from `generator`.
pub fn with_generator<R>(generator: &Generator, body: impl FnOnce() -> R) -> R {
    /// Takes the generator off again, however `body` ends.
    struct Named(usize);
    impl Drop for Named {
        fn drop(&mut self) {
            let _ = NAMED.try_with(|list| list.borrow_mut().truncate(self.0));
        }
    }
    let _named = NAMED.with_borrow_mut(|list| {
        list.push(generator.clone());
        Named(list.len() - 1)
    });
    body()
}

/// Where this thread's next draws come from: the generators that it names, and the places of those
/// and of every device's own.
#[derive(Debug)]
pub(crate) struct Drawing {
    named: Vec<Generator>,
    places: Vec<(Generator, Place)>,
}

impl Drawing {
    pub(crate) fn current() -> Drawing {
        let named = NAMED.with_borrow(Clone::clone);
        let mut places: Vec<_> = named.iter().map(|g| (g.clone(), g.place())).collect();
        device::for_each(|entry| {
            let own = entry.generator();
            places.push((own.clone(), own.place()));
        });
        Drawing { named, places }
    }

    /// Draws come from there again until the guard drops; then the generators are as they were. A
    /// draw that cannot is an error.
    pub(crate) fn resume(&self) -> (RngFork, impl Drop + use<>) {
        /// Puts the thread's own lists back.
        struct Lists {
            named: Vec<Generator>,
            lost: Vec<Generator>,
        }
        impl Drop for Lists {
            fn drop(&mut self) {
                let (named, lost) =
                    (std::mem::take(&mut self.named), std::mem::take(&mut self.lost));
                let _ = NAMED.try_with(|list| list.replace(named));
                let _ = LOST.try_with(|list| list.replace(lost));
            }
        }
        let kept = self.places.iter().map(|(generator, _)| (generator.clone(), generator.place()));
        let fork = RngFork { kept: kept.collect(), not_send: PhantomData };
        let mut lost = Vec::new();
        for (generator, place) in &self.places {
            if !generator.go_to(place) {
                lost.push(generator.clone());
            }
        }
        let lists = Lists { named: NAMED.replace(self.named.clone()), lost: LOST.replace(lost) };
        (fork, lists)
    }
}

/// Restarts the random numbers of every device from `seed`.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, manual_seed};
/// manual_seed(7);
/// let a = Tensor::rand(&[3], DType::F32)?;
/// manual_seed(7);
/// assert_eq!(a.to_vec::<f32>()?, Tensor::rand(&[3], DType::F32)?.to_vec::<f32>()?);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn manual_seed(seed: u64) {
    device::for_each(|entry| entry.generator().manual_seed(seed));
}

/// Restarts the random numbers of one device from `seed`.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// manual_seed_on(own, 5);
/// let first = Tensor::rand(&[4], (DType::F32, own))?.to_vec::<f32>()?;
/// manual_seed_on(own, 5);
/// assert_eq!(Tensor::rand(&[4], (DType::F32, own))?.to_vec::<f32>()?, first);
/// # Ok::<(), Error>(())
/// ```
pub fn manual_seed_on(device: Device, seed: u64) {
    device::entry(device).generator().manual_seed(seed);
}

/// What decides the next random numbers of a device.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// let state = get_rng_state(own);
/// let first = Tensor::rand(&[4], (DType::F32, own))?.to_vec::<f32>()?;
/// set_rng_state(own, state);
/// assert_eq!(Tensor::rand(&[4], (DType::F32, own))?.to_vec::<f32>()?, first);
/// # Ok::<(), Error>(())
/// ```
pub fn get_rng_state(device: Device) -> RngState {
    device::entry(device).generator().state()
}

/// Goes on with the random numbers of a device from a state that was kept.
pub fn set_rng_state(device: Device, state: RngState) {
    device::entry(device).generator().set_state(state);
}

/// Until the guard is dropped, what is drawn on `devices` does not move their generators on: then
/// they are as they were.
///
/// ```
/// # use plimsoll_tensor::*;
/// let own = device::private_cpu(&Default::default())?;
/// let before = get_rng_state(own);
/// {
///     let _fork = fork_rng(&[own]);
///     Tensor::rand(&[4], (DType::F32, own))?;
///     assert_ne!(get_rng_state(own), before);
/// }
/// assert_eq!(get_rng_state(own), before);
/// # Ok::<(), Error>(())
/// ```
pub fn fork_rng(devices: &[Device]) -> RngFork {
    let kept = devices.iter().map(|&device| {
        let generator = Generator::default_of(device);
        let place = generator.place();
        (generator, place)
    });
    RngFork { kept: kept.collect(), not_send: PhantomData }
}

/// Sets generators back to what they were when it is dropped; see [`fork_rng`].
#[must_use = "the generators are set back when the guard drops"]
#[derive(Debug)]
pub struct RngFork {
    kept: Vec<(Generator, Place)>,
    /// Guards nest on one thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for RngFork {
    fn drop(&mut self) {
        for (generator, place) in self.kept.drain(..).rev() {
            generator.go_to(&place);
        }
    }
}

/// While this is open, operations that draw from its generator take the numbers to start from out
/// of device memory. See Note [Draws of a captured graph].
#[derive(Debug)]
pub struct RngCapture {
    generator: Generator,
    recorded: Arc<Capturing>,
}

impl RngCapture {
    /// Opens a capture on `generator`, which can have one at a time. What is recorded meanwhile
    /// runs with the generator's present state, and leaves it as it is.
    #[track_caller]
    pub fn begin(generator: &Generator) -> Result<RngCapture> {
        RngCapture::begin_in(generator, None)
    }

    /// The same for the streams of one capture.
    #[track_caller]
    pub(crate) fn begin_in(generator: &Generator, of: Option<Arc<Capture>>) -> Result<RngCapture> {
        let memory = with_site(Site::caller(), || {
            let memory = Tensor::zeros(&[2], (DType::I64, generator.device()))?;
            write_state(&memory, generator.state())?;
            Ok::<Tensor, Error>(memory)
        })?;
        let mut shared = generator.shared.lock();
        if shared.capture.is_some() {
            return Err(Error::invalid_argument(format!(
                "a capture of the random numbers of {} is open already; end it first",
                generator.device()
            ))
            .in_operation("rng_capture"));
        }
        let recorded = Arc::new(Capturing { memory, counters: AtomicU64::new(0), of });
        shared.capture = Some(recorded.clone());
        drop(shared);
        Ok(RngCapture { generator: generator.clone(), recorded })
    }

    /// Closes the capture; what was recorded can be replayed.
    pub fn end(self) -> RngReplay {
        // First, so that nothing is drawn after the count is read.
        self.close();
        let Capturing { memory, counters, .. } = &*self.recorded;
        let counters = counters.load(Ordering::Relaxed);
        RngReplay { generator: self.generator.clone(), memory: memory.clone(), counters }
    }

    /// Draws are no longer recorded here. Somebody else's capture, which may have begun once this
    /// one was closed, goes on.
    fn close(&self) {
        let mut shared = self.generator.shared.lock();
        let own = shared.capture.take_if(|open| Arc::ptr_eq(open, &self.recorded));
        drop(shared);
        drop(own);
    }
}

impl Drop for RngCapture {
    fn drop(&mut self) {
        self.close();
    }
}

/// Recorded operations and the memory that they start drawing from.
#[derive(Debug)]
pub struct RngReplay {
    generator: Generator,
    memory: Tensor,
    counters: u64,
}

impl RngReplay {
    /// Counters that one replay uses up.
    pub fn counters(&self) -> u64 {
        self.counters
    }

    /// To be called before each replay, on the stream that replays: hands the next part of the
    /// generator's stream to the recorded operations, and moves the generator on.
    #[track_caller]
    pub fn advance(&self) -> Result<()> {
        if self.counters == 0 {
            return Ok(());
        }
        let site = Site::caller();
        let state = {
            let mut shared = self.generator.shared.lock();
            let state = shared.state;
            shared.state.offset = state.offset.wrapping_add(self.counters);
            state
        };
        with_site(site, || write_state(&self.memory, state))
    }
}

/// Writes a state to memory of the device, in the order of the current stream.
fn write_state(memory: &Tensor, state: RngState) -> Result<()> {
    no_grad(|| {
        memory.select(0, 0)?.fill_(state.seed as i64)?;
        memory.select(0, 1)?.fill_(state.offset as i64)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::StandIn;
    use crate::dispatch::{Dest, apply_on, first};
    use crate::generator::Draws;
    use crate::ops::random::{Distribution, Random};
    use plimsoll_kernels::Meta;

    const UNIT: Distribution = Distribution::Uniform { low: 0.0, high: 1.0 };

    fn devices() -> Result<[Device; 2]> {
        let stand_in = StandIn { configuration: Some(Default::default()), ..StandIn::default() };
        Ok([device::private_cpu(&Default::default())?, device::stand_in(stand_in)?])
    }

    fn ten(device: Device) -> Result<Vec<f32>> {
        Tensor::rand(&[10], (DType::F32, device))?.to_vec::<f32>()
    }

    #[test]
    fn states_are_read_set_and_forked_each_device_by_itself() -> Result<()> {
        let [here, there] = devices()?;
        manual_seed_on(here, 3);
        manual_seed_on(there, 3);
        let (first, kept) = (ten(here)?, get_rng_state(here));
        // Ten floats are two and a half counters of four draws.
        assert_eq!(kept, RngState { seed: 3, offset: 3 });
        let second = ten(here)?;
        assert_eq!(get_rng_state(there), RngState { seed: 3, offset: 0 });
        assert_eq!((ten(there)?, ten(there)?), (first.clone(), second.clone()));
        set_rng_state(here, RngState::from_tensor(&kept.to_tensor()?)?);
        {
            let _fork = fork_rng(&[here, there]);
            assert_eq!(ten(here)?, second);
            manual_seed_on(there, 99);
        }
        assert_eq!(ten(here)?, second, "the fork left no trace");
        assert_eq!(get_rng_state(there), RngState { seed: 3, offset: 6 });
        Ok(())
    }

    #[test]
    fn a_state_that_is_none_is_refused() -> Result<()> {
        let short = Tensor::zeros(&[15], DType::U8)?;
        assert!(RngState::from_tensor(&short).unwrap_err().is_shape());
        let wide = Tensor::zeros(&[16], DType::I64)?;
        assert!(RngState::from_tensor(&wide).unwrap_err().is_dtype());
        Ok(())
    }

    #[test]
    fn a_named_generator_serves_its_device_and_its_thread_alone() -> Result<()> {
        let [here, there] = devices()?;
        manual_seed_on(here, 1);
        let expected = ten(here)?;
        manual_seed_on(here, 2);
        let own = Generator::new(here, 1);
        with_generator(&own, || -> Result<()> {
            assert_eq!(ten(here)?, expected);
            ten(there)?;
            assert!(std::thread::scope(|s| s.spawn(|| ten(here)).join().is_ok()));
            Ok(())
        })?;
        assert_eq!(own.state(), RngState { seed: 1, offset: 3 });
        assert_eq!(get_rng_state(here), RngState { seed: 2, offset: 3 }, "the other thread's");
        assert_eq!(get_rng_state(there).offset, 3);
        let panics = std::panic::AssertUnwindSafe(|| with_generator(&own, || panic!("as asked")));
        assert!(std::panic::catch_unwind(panics).is_err());
        ten(here)?;
        assert_eq!(own.state().offset, 3, "a panic took the generator off again");
        Ok(())
    }

    #[test]
    fn recorded_draws_are_drawn_anew_at_each_replay() -> Result<()> {
        for device in devices()? {
            manual_seed_on(device, 11);
            let expected = [ten(device)?, ten(device)?, ten(device)?];
            manual_seed_on(device, 11);
            let generator = Generator::default_of(device);
            let capture = RngCapture::begin(&generator)?;
            assert!(RngCapture::begin(&generator).unwrap_err().is_invalid_argument());
            assert_eq!(ten(device)?, expected[0], "while it is recorded");
            assert_eq!(ten(device)?, expected[1], "the second operation goes on from there");
            let replay = capture.end();
            assert_eq!((replay.counters(), generator.state().offset), (6, 0));
            // What a graph would hold: the second operation, and the memory that it reads.
            let meta = Meta::contiguous(&[10], DType::F32)?;
            let draws = Draws { seed: 0, offset: 3, from_memory: true };
            let recorded = Random { meta, distribution: UNIT, draws };
            let entry = device::entry(device);
            let again = || -> Result<Vec<f32>> {
                replay.advance()?;
                let inputs = [&replay.memory];
                let results = apply_on(entry, &recorded, &inputs, Dest::New, Site::caller())?;
                first(results).to_vec::<f32>()
            };
            assert_eq!(again()?, expected[1]);
            assert_eq!(generator.state().offset, 6);
            let third = again()?;
            assert!(!expected.contains(&third));
            generator.set_state(RngState { seed: 11, offset: 6 });
            assert_eq!(again()?, third);
            generator.manual_seed(11);
            assert_eq!(again()?, expected[1], "a new seed is heard of too");
        }
        Ok(())
    }

    #[test]
    fn a_capture_closes_itself_and_no_other() -> Result<()> {
        for device in devices()? {
            let generator = Generator::default_of(device);
            let first = RngCapture::begin(&generator)?;
            first.close();
            // What another thread may do before the first one is dropped.
            let second = RngCapture::begin(&generator)?;
            drop(first);
            assert!(RngCapture::begin(&generator).is_err(), "the second is open");
            ten(device)?;
            assert_eq!((second.end().counters(), generator.state().offset), (3, 0));
        }
        Ok(())
    }

    #[test]
    fn gradients_of_recorded_dropout_use_its_mask() -> Result<()> {
        for device in devices()? {
            let generator = Generator::default_of(device);
            let capture = RngCapture::begin(&generator)?;
            let x = Tensor::ones(&[64], (DType::F32, device))?.requires_grad_(true)?;
            let y = x.dropout(0.5, true)?;
            y.sum()?.backward()?;
            let grad = x.grad().expect("a gradient").to_vec::<f32>()?;
            assert_eq!(y.to_vec::<f32>()?, grad);
            assert!(grad.contains(&0.0) && grad.contains(&2.0));
            let noise = Tensor::zeros(&[64], (DType::F32, device))?;
            noise.uniform_(1.0, 2.0)?;
            assert!(noise.to_vec::<f32>()?.iter().all(|x| (1.0..2.0).contains(x)));
            drop(capture);
            let next = RngCapture::begin(&generator)?; // dropping it closed it
            assert_eq!(next.end().counters(), 0);
        }
        Ok(())
    }
}
