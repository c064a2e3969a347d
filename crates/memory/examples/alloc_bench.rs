//! Prints what a cached allocation and its free cost, in nanoseconds, beside its budget.
//!
//! `cargo run --release -p plimsoll-memory --example alloc_bench`
//!
//! A figure of one thread is the least of many rounds, each shorter than a slice of the scheduler:
//! the machine may be busy with other things, and what the code costs is what it costs when left
//! alone. A figure of two threads is the median of the rounds in which both ran.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Configuration, DrySource, HistoryLevel, Kind, OriginId, Request, Site,
};

const PAIRS: u32 = 4000;
const ROUNDS: u32 = 500;

fn arena() -> &'static Arena {
    Arena::open(Device::cpu(), Box::new(DrySource::new(None)), &Configuration::default())
}

fn pair(arena: &'static Arena, bytes: usize) {
    let origin = OriginId::intern("bench", Site::caller());
    let request = Request { kind: Kind::Temporary, ..Request::new(bytes, origin) };
    let block = arena.allocate(&request).expect("a dry source without end has room");
    black_box(block.address());
}

/// Nanoseconds of one pair, the least of the rounds.
fn measure(mut run: impl FnMut(u32)) -> f64 {
    run(PAIRS / 10);
    let round = |_| {
        let start = Instant::now();
        run(PAIRS);
        start.elapsed().as_nanos() as f64 / f64::from(PAIRS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn one_thread(arena: &'static Arena, bytes: usize) -> f64 {
    measure(|pairs| (0..pairs).for_each(|_| pair(arena, bytes)))
}

/// Nanoseconds of one pair on each of two threads that use one arena at once: the median over the
/// rounds in which both ran at the same time and neither waited for a processor.
fn two_threads(arena: &'static Arena, bytes: usize) -> f64 {
    const SHORT_PAIRS: u32 = 1000;
    let arrived = AtomicU32::new(0);
    // Both spin until both are there, so both are on a processor when a round starts.
    let rounds = || -> Vec<(Instant, Instant, u128)> {
        let round = |number: u32| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 * (number + 1) {
                std::hint::spin_loop();
            }
            let waited = processor_wait_ns();
            let start = Instant::now();
            (0..SHORT_PAIRS).for_each(|_| pair(arena, bytes));
            let end = Instant::now();
            (start, end, processor_wait_ns() - waited)
        };
        (0..ROUNDS * 8).map(round).collect()
    };
    let (own, other) = std::thread::scope(|scope| {
        let other = scope.spawn(rounds);
        (rounds(), other.join().expect("the loop does not panic"))
    });
    let counted = own.iter().zip(&other).filter_map(|(own, other)| {
        let longer = (own.1 - own.0).max(other.1 - other.0);
        let both = own.1.min(other.1).saturating_duration_since(own.0.max(other.0));
        let undisturbed = own.2.max(other.2) * 20 < longer.as_nanos();
        let counts = undisturbed && both * 10 > longer * 8;
        counts.then(|| longer.as_nanos() as f64 / f64::from(SHORT_PAIRS))
    });
    let mut counted: Vec<f64> = counted.collect();
    counted.sort_by(f64::total_cmp);
    // The median: the least of these would be a round in which one ran ahead of the other.
    counted.get(counted.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// How long this thread has waited for a processor in all; 0 where the system does not tell.
fn processor_wait_ns() -> u128 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn row(what: &str, ns: f64, at_most: f64) {
    let verdict = match ns {
        f64::INFINITY => "  NOT MEASURED: other programs took the processors in every round",
        _ if ns <= at_most => "",
        _ => "  OVER",
    };
    println!("{what:<44} {ns:7.1} ns  at most {at_most:5.0}{verdict}");
}

fn main() {
    let plain = arena();
    row(
        "intern an origin",
        measure(|n| {
            (0..n).for_each(|_| {
                black_box(OriginId::intern("bench", Site::caller()));
            })
        }),
        10.0,
    );
    row("allocate + free 4 KiB", one_thread(plain, 4096), 150.0);
    row("allocate + free 1 MiB", one_thread(plain, 1 << 20), 150.0);
    row("allocate + free 4 MiB (large pool)", one_thread(plain, 4 << 20), 150.0);
    row("allocate + free 64 MiB (large pool)", one_thread(plain, 64 << 20), 150.0);
    let mixed = arena();
    let held: Vec<_> = (0..20_000_usize)
        .map(|n| {
            mixed.allocate(&Request::new(512 + n % 97 * 1024, OriginId::UNKNOWN)).expect("room")
        })
        .collect();
    let kept: Vec<_> = held.into_iter().enumerate().filter(|(n, _)| n % 3 != 0).collect();
    row("allocate + free 4 KiB among 13,000 live", one_thread(mixed, 4096), 150.0);
    row("two threads at once, 4 KiB", two_threads(plain, 4096), 300.0);
    row("two threads at once, 4 MiB", two_threads(plain, 4 << 20), 300.0);
    let recorded = arena();
    recorded.record_history(HistoryLevel::All, 100_000);
    row("allocate + free 4 KiB, history", one_thread(recorded, 4096), 250.0);
    row("two threads at once, 4 KiB, history", two_threads(recorded, 4096), 500.0);
    drop(kept);
}
