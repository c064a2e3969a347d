//! Four threads take a million random steps on one arena; a naive model then replays the event log,
//! in its order, and must arrive at every counter: current, peak and totals, of both pools, and the
//! breakdown now and at the peak. The model knows addresses and sizes from the log, nothing else.

mod model;
mod random;
mod support;

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use model::Model;
use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Block, Configuration, HistoryLevel, HostSource, Kind, OriginId, Request, Site, StreamId,
};
use random::Random;
use support::{Helm, MIB, arena};

const THREADS: u64 = 4;
const ROUNDS: u64 = if cfg!(miri) { 1 } else { 20 };
const STEPS: u64 = if cfg!(miri) { 40 } else { 12_500 };

fn program(
    arena: &'static Arena,
    helm: &Helm,
    seed: u64,
    held: &mut Vec<Block>,
    others: &Mutex<Vec<Block>>,
) {
    let mut random = Random(seed);
    for _ in 0..STEPS {
        match random.below(20) {
            0..9 => {
                let bytes = match random.below(20) {
                    0 => random.below(15 << 20),
                    1..5 => random.below(1 << 20),
                    _ => random.below(20_000),
                } as usize;
                let origin = OriginId::intern("program", Site::Foreign(random.below(5) as u32));
                let kind = Kind::ALL[random.below(8) as usize];
                let stream = StreamId(random.below(2));
                held.push(
                    arena
                        .allocate(&Request { kind, stream, ..Request::new(bytes, origin) })
                        .unwrap(),
                );
            }
            9..16 if !held.is_empty() => {
                let place = random.below(held.len() as u64) as usize;
                drop(held.swap_remove(place));
            }
            16 if !held.is_empty() => others.lock().unwrap().extend(held.pop()),
            17 => {
                let taken = others.lock().unwrap().pop();
                drop(taken);
            }
            18 if !held.is_empty() => {
                let block = &held[random.below(held.len() as u64) as usize];
                block.set_kind(Kind::ALL[random.below(8) as usize]);
                block.record_use(StreamId(random.below(2)));
            }
            _ => helm.pass(StreamId(random.below(2))),
        }
        if held.len() > 300 {
            held.truncate(150);
        }
        if random.below(5000) == 0 {
            arena.trim(8 * MIB);
        }
    }
}

#[test]
fn a_million_steps_of_four_threads_replay_to_every_counter() {
    replay_to_every_counter(&Configuration::default());
}

#[test]
fn so_do_as_many_where_segments_expand() {
    replay_to_every_counter(&Configuration::default().with_expandable_segments(true));
}

fn replay_to_every_counter(configuration: &Configuration) {
    let (arena, helm) = arena(None, configuration);
    helm.slow_streams.store(true, Ordering::SeqCst);
    let mut model = Model::default();
    let others = Mutex::new(Vec::new());
    let mut held: Vec<Vec<Block>> = (0..THREADS).map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        arena.record_history(HistoryLevel::All, usize::MAX);
        std::thread::scope(|scope| {
            for (thread, held) in held.iter_mut().enumerate() {
                let (helm, others) = (&*helm, &others);
                let seed = round * THREADS + thread as u64;
                scope.spawn(move || program(arena, helm, seed, held, others));
            }
        });
        // The threads are gone, so nothing happens between the log and the counters.
        arena.history().iter().for_each(|entry| model.replay(entry));
        model.agree(arena);
        arena.record_history(HistoryLevel::Off, 0);
        if round % 5 == 4 {
            arena.reset_peak_stats();
            model.sums.0.values_mut().for_each(|stat| stat.peak = stat.current);
            model.rows_at_peak = model.rows.clone();
            model.agree(arena);
        }
    }
    arena.record_history(HistoryLevel::All, usize::MAX);
    drop((held, others));
    (0..2).for_each(|stream| helm.pass(StreamId(stream)));
    arena.empty_cache();
    arena.history().iter().for_each(|entry| model.replay(entry));
    model.agree(arena);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    assert!(helm.pages.lock().unwrap().is_empty() && helm.ranges.lock().unwrap().is_empty());
    assert!(model.events >= ROUNDS * STEPS * THREADS, "most steps are events");
}

/// The system hands an address out again as soon as it has it back, to whichever thread asks first.
#[test]
fn a_segment_leaves_the_log_before_its_address_comes_back() {
    let source = Box::new(HostSource::default());
    let arena = Arena::open(Device::cpu(), source, &Configuration::default());
    arena.record_history(HistoryLevel::All, usize::MAX);
    let origin = OriginId::intern("program", Site::Foreign(0));
    let rounds = if cfg!(miri) { 3 } else { 500 };
    let large = Request::new(11 * MIB, origin);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..rounds {
                    drop(arena.allocate(&large).unwrap());
                    arena.empty_cache();
                }
            });
        }
    });
    let mut model = Model::default();
    arena.history().iter().for_each(|entry| model.replay(entry));
    model.agree(arena);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
}
