//! Random programs over tensors (allocate, free, view, write, backward, on two streams), four
//! threads on one device: the device's arena logs every event, and the memory crate's naive model
//! replays the log and must agree in every counter, at checkpoints and at the end, on a private CPU
//! and on the stand-in.

#[path = "../../memory/tests/model/mod.rs"]
mod model;
#[path = "../../memory/tests/random/mod.rs"]
mod random;

use std::sync::Mutex;

use model::Model;
use plimsoll_memory::{Configuration, HistoryLevel};
use plimsoll_tensor::device::{self, StandIn};
use plimsoll_tensor::*;
use random::Random;

const THREADS: u64 = 4;
const ROUNDS: u64 = 13;
/// Of each thread in each round; 13 rounds of four threads on two devices are 1,040,000 steps.
const STEPS: u64 = 10_000;

impl Random {
    fn pick<'a>(&mut self, from: &'a [Tensor]) -> Option<&'a Tensor> {
        (!from.is_empty()).then(|| &from[self.below(from.len() as u64) as usize])
    }
}

/// Steps of one thread. Tensors are one-dimensional, of 1 to 600 elements, rarely large ones that
/// nothing computes on.
fn program(
    device: Device,
    streams: &[Stream; 2],
    seed: u64,
    held: &mut Vec<Tensor>,
    shared: &Mutex<Vec<Tensor>>,
) -> Result<()> {
    let mut random = Random(seed);
    for _ in 0..STEPS {
        let _scope = StreamScope::enter(&streams[random.below(2) as usize]);
        match random.below(20) {
            0..5 => {
                let size = match random.below(200) {
                    0 => 1 + random.below(3 << 20),
                    1..10 => 1 + random.below(200_000),
                    _ => 1 + random.below(600),
                };
                held.push(Tensor::empty(&[size as i64], (DType::F32, device))?);
            }
            5..10 if !held.is_empty() => {
                let place = random.below(held.len() as u64) as usize;
                drop(held.swap_remove(place));
            }
            10 => {
                if let Some(x) = random.pick(held) {
                    let view = x.narrow(0, 0, 1 + random.below(x.shape()[0] as u64) as i64)?;
                    held.push(view);
                }
            }
            11..14 => {
                if let Some(x) = random.pick(held).filter(|x| x.numel() <= 600) {
                    x.fill_(random.below(100) as f32)?;
                }
            }
            14 | 15 => {
                if let Some(x) = random.pick(held).filter(|x| x.numel() <= 600) {
                    held.push(x.add(1.0)?);
                }
            }
            16 => {
                if let Some(x) = random.pick(held).filter(|x| x.numel() <= 600) {
                    let leaf = x.detach().clone_tensor()?.requires_grad_(true)?;
                    leaf.tanh()?.mul(&leaf)?.sum()?.backward()?;
                    held.extend(leaf.grad());
                }
            }
            17 => shared.lock().unwrap().extend(held.pop()),
            18 => held.extend(shared.lock().unwrap().pop()),
            _ => {
                if random.below(40) == 0 {
                    memory::empty_cache(device);
                } else if let Some(x) = random.pick(held).filter(|x| x.numel() <= 600) {
                    x.add_(x)?;
                }
            }
        }
        if held.len() > 200 {
            held.truncate(100);
        }
    }
    Ok(())
}

fn agrees(device: Device) {
    let arena = memory::arena(device);
    let streams = [Stream::current(device), Stream::new(device).unwrap()];
    let mut model = Model::default();
    let shared = Mutex::new(Vec::new());
    let mut held: Vec<Vec<Tensor>> = (0..THREADS).map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        arena.record_history(HistoryLevel::All, usize::MAX);
        std::thread::scope(|scope| {
            for (thread, held) in held.iter_mut().enumerate() {
                let (streams, shared) = (&streams, &shared);
                let seed = round * THREADS + thread as u64;
                scope.spawn(move || program(device, streams, seed, held, shared).unwrap());
            }
        });
        device::synchronize(device).unwrap();
        // Nothing runs any more, so nothing happens between the log and the counters.
        arena.history().iter().for_each(|entry| model.replay(entry));
        model.agree(arena);
        arena.record_history(HistoryLevel::Off, 0);
    }
    arena.record_history(HistoryLevel::All, usize::MAX);
    drop((held, shared));
    device::synchronize(device).unwrap();
    memory::empty_cache(device);
    arena.history().iter().for_each(|entry| model.replay(entry));
    model.agree(arena);
    assert_eq!(arena.live_bytes(), 0);
    assert_eq!(memory::memory_reserved(device), 0);
    assert!(model.events > ROUNDS * STEPS * THREADS / 2, "{} events", model.events);
}

#[test]
fn the_log_of_the_cpu_replays_to_every_counter() {
    agrees(device::private_cpu(&Configuration::default()).unwrap());
}

#[test]
fn the_log_of_the_stand_in_replays_to_every_counter() {
    agrees_on_the_stand_in(Configuration::default());
}

#[test]
fn the_log_of_the_stand_in_replays_where_segments_expand() {
    agrees_on_the_stand_in(Configuration::default().with_expandable_segments(true));
}

fn agrees_on_the_stand_in(configuration: Configuration) {
    let configuration = Some(configuration);
    agrees(
        device::stand_in(StandIn { capacity_bytes: 4 << 30, configuration, ..StandIn::default() })
            .unwrap(),
    );
}
