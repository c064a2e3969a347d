//! Prints what a cached allocation and its free cost, in nanoseconds, beside its budget.
//!
//! `cargo run --release -p plimsoll-memory --example alloc_bench`
//!
//! Each figure is the least of several rounds: the machine may be busy with other things, and what
//! the code costs is what it costs when left alone.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Configuration, DrySource, HistoryLevel, Kind, OriginId, Request, Site, StreamId,
};

const PAIRS: u32 = 200_000;
const ROUNDS: u32 = 15;

fn arena() -> &'static Arena {
    Arena::open(Device::cpu(), Box::new(DrySource::new(None)), &Configuration::default())
}

fn pair(arena: &'static Arena, bytes: usize) {
    let origin = OriginId::intern("bench", Site::caller());
    let request = Request { bytes, origin, kind: Kind::Temporary, stream: StreamId::DEFAULT };
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

/// Nanoseconds of one pair on each of two threads that use one arena at once.
fn two_threads(arena: &'static Arena, bytes: usize) -> f64 {
    let slower = |_| {
        let together = Barrier::new(2);
        let timed = || {
            (0..1000).for_each(|_| pair(arena, bytes));
            together.wait();
            let start = Instant::now();
            (0..PAIRS).for_each(|_| pair(arena, bytes));
            start.elapsed().as_nanos() as f64 / f64::from(PAIRS)
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(timed);
            let own = timed();
            own.max(other.join().expect("the loop does not panic"))
        })
    };
    (0..ROUNDS).map(slower).fold(f64::INFINITY, f64::min)
}

fn row(what: &str, ns: f64, at_most: f64) {
    let verdict = if ns <= at_most { "" } else { "  OVER" };
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
    let recorded = arena();
    recorded.record_history(HistoryLevel::All, 100_000);
    row("allocate + free 4 KiB, history", one_thread(recorded, 4096), 250.0);
    row("two threads at once, 4 KiB, history", two_threads(recorded, 4096), 500.0);
    drop(kept);
}
