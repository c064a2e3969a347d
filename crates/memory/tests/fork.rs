//! After a fork in the middle of everything, parent and child both go on allocating with balanced
//! books.

#![cfg(not(miri))]

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Configuration, HistoryLevel, HostSource, Kind, OriginId, Request, Site, annotate,
    enter_module,
};

/// New origins keep the table's lock busy; a few thousand do, and every one more is memory that
/// each fork has to share.
fn request(bytes: usize, site: u32) -> Request {
    Request::new(bytes, OriginId::intern("fork", Site::Foreign(site % 4096)))
}

/// Uses every lock of the crate: arena, origins, modules, annotations, release.
fn work(arena: &'static Arena, round: u32) {
    let _span = annotate("work");
    let _module = enter_module(&format!("m{}", round % 1000));
    let small = arena.allocate(&request(512 + round as usize % 4096, round)).unwrap();
    let large = arena.allocate(&request(2 << 20, round + 1)).unwrap();
    small.set_kind(Kind::Activation);
    drop(large);
    if round.is_multiple_of(16) {
        arena.empty_cache();
    }
}

/// Runs `child` in a forked process; returns whether it ended well within two minutes.
fn forked(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs only code that is safe with one thread (which is what is tested) and
    // ends with `_exit`, so nothing of the parent's test harness runs twice.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: an alarm ends a child that hangs; `_exit` ends this process and returns nothing.
        unsafe {
            libc::alarm(120);
            libc::_exit(if child() { 0 } else { 1 });
        }
    }
    let mut status = 0;
    // SAFETY: `pid` is our own child and `status` a place for its result.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    waited == pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn parent_and_child_go_on_after_a_fork_among_busy_threads() {
    let arena =
        Arena::open(Device::cpu(), Box::new(HostSource::default()), &Configuration::default());
    let second =
        Arena::open(Device::cpu(), Box::new(HostSource::default()), &Configuration::default());
    second.record_history(HistoryLevel::All, 1000);
    let held = arena.allocate(&request(4096, 0)).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3_u32 {
            let stop = &stop;
            scope.spawn(move || {
                let mut round = thread * 1_000_000;
                while !stop.load(Ordering::Relaxed) {
                    work(if round % 2 == 0 { arena } else { second }, round);
                    round += 1;
                }
            });
        }
        for round in 0..30 {
            let survived = forked(|| {
                for more in 0..20 {
                    work(arena, 50_000_000 + round * 100 + more);
                    work(second, 60_000_000 + round * 100 + more);
                }
                arena.check_balanced().is_ok() && second.check_balanced().is_ok()
            });
            if !survived {
                stop.store(true, Ordering::Relaxed);
            }
            assert!(survived, "the child of fork {round} hung or its book does not balance");
            work(arena, 70_000_000 + round);
        }
        stop.store(true, Ordering::Relaxed);
    });
    arena.check_balanced().unwrap();
    second.check_balanced().unwrap();
    assert_eq!(arena.live_bytes(), 4096);
    drop(held);
    assert_eq!(arena.live_bytes(), 0);
}
