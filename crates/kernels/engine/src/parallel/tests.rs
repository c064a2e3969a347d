//! The pool under every use that has broken such pools: nested, concurrent, panicking, forking.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::*;

fn counts(work: usize) -> Vec<AtomicU32> {
    (0..work).map(|_| AtomicU32::new(0)).collect()
}

fn count(unit: &AtomicU32) {
    unit.fetch_add(1, Relaxed);
}

fn assert_each_once(counts: &[AtomicU32]) {
    assert!(counts.iter().all(|count| count.load(Relaxed) == 1), "every unit runs exactly once");
}

#[test]
fn split_covers_every_unit_once() {
    for threads in [1, 2, 3, 8] {
        with_threads(threads, || {
            for work in [0, 1, 2, 3, 7, 64, 1000] {
                for grain in [0, 1, 3, 100, usize::MAX] {
                    let seen = counts(work);
                    let parts_run = AtomicUsize::new(0);
                    split(work, grain, |range| {
                        parts_run.fetch_add(1, Relaxed);
                        range.for_each(|unit| count(&seen[unit]));
                    });
                    assert_each_once(&seen);
                    assert_eq!(parts_run.into_inner(), parts(work, grain));

                    let seen = counts(work);
                    split_dynamic(work, grain.min(1 << 20), |range| {
                        range.for_each(|unit| count(&seen[unit]));
                    });
                    assert_each_once(&seen);
                }
            }
        });
    }
}

#[test]
fn part_ranges_join_up() {
    for work in 0..40 {
        for parts in 1..9 {
            let mut end = 0;
            for part in 0..parts {
                let range = part_range(work, parts, part);
                assert_eq!(range.start, end);
                assert!(range.len().abs_diff(work / parts) <= 1);
                end = range.end;
            }
            assert_eq!(end, work);
        }
    }
}

#[test]
fn nested_splits_run_inline_with_the_callers_partition() {
    with_threads(4, || {
        let seen = counts(4 * 100);
        fork(4, |outer| {
            assert_eq!(threads(), 4, "the caller's thread count holds inside its parts");
            let inner_parts = AtomicUsize::new(0);
            split(100, 1, |range| {
                inner_parts.fetch_add(1, Relaxed);
                range.for_each(|unit| count(&seen[outer * 100 + unit]));
            });
            assert_eq!(inner_parts.into_inner(), 4);
        });
        assert_each_once(&seen);
    });
}

#[test]
fn many_callers_at_once_all_finish() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..500 {
                    let seen = counts(97);
                    with_threads(2 + round % 3, || {
                        split(97, 1, |range| {
                            range.for_each(|unit| count(&seen[unit]));
                        });
                    });
                    assert_each_once(&seen);
                }
            });
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
    for _ in 0..20 {
        let result = std::panic::catch_unwind(|| {
            with_threads(3, || fork(3, |part| assert!(part != 1, "part one")));
        });
        let payload = result.expect_err("the panic comes through");
        assert!(payload.downcast_ref::<&str>().is_some_and(|text| text.contains("part one")));
        let seen = counts(3);
        with_threads(3, || fork(3, |part| count(&seen[part])));
        assert_each_once(&seen);
    }
    assert_eq!(THREADS_HERE.get(), 0, "overrides are undone while unwinding");
}

#[test]
fn writes_of_every_part_are_seen_after_the_join() {
    with_threads(4, || {
        let mut values = vec![0u64; 4096];
        for round in 1..200u64 {
            let address = values.as_mut_ptr() as usize;
            split(4096, 64, |range| {
                for unit in range {
                    // SAFETY: parts are disjoint ranges of a vector that outlives the call.
                    unsafe { *(address as *mut u64).add(unit) += round };
                }
            });
            assert!(values.iter().all(|&value| value == round * (round + 1) / 2));
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_forked_child_computes_too() {
    with_threads(2, || {
        fork(2, |_| {});
        // SAFETY: the child only runs the pool and leaves with `_exit`, without running
        // destructors.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let sum = AtomicUsize::new(0);
            split(1000, 1, |range| {
                sum.fetch_add(range.sum::<usize>(), Relaxed);
            });
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(if sum.into_inner() == 499_500 { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: `child` is this process's own child and `status` is live.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0, "the child finished its split and left with 0");
    });
}

#[test]
fn there_and_back_covers_every_unit_once() {
    for (parts, work, chunk) in
        [(1, 10, 3), (2, 1000, 7), (3, 5, 1), (4, 0, 8), (8, 4096, 64), (9, 1000, 1), (20, 20, 5)]
    {
        with_threads(parts, || {
            // Twice: once there and once back.
            for _ in 0..2 {
                let seen = counts(work);
                let running: Vec<AtomicBool> = (0..parts).map(|_| AtomicBool::new(false)).collect();
                split_there_and_back(parts, work, chunk, |thread, range| {
                    assert!(!running[thread].swap(true, Ordering::SeqCst), "one chunk at a time");
                    assert!(range.len() <= chunk && !range.is_empty(), "{range:?}");
                    range.for_each(|unit| count(&seen[unit]));
                    running[thread].store(false, Ordering::SeqCst);
                });
                assert_each_once(&seen);
            }
        });
    }
}

#[test]
fn a_share_gives_each_chunk_to_one_of_both_ends() {
    for chunks in 0..9 {
        for far in 0..=chunks {
            let share = Share::new();
            let taken = |from_far| share.take(chunks, from_far);
            let helped: Vec<usize> = (0..far).map_while(|_| taken(true)).collect();
            let own: Vec<usize> = std::iter::from_fn(|| taken(false)).collect();
            assert!(own.iter().copied().eq(0..chunks - far), "{own:?} of {chunks}");
            assert!(helped.iter().copied().eq((chunks - far..chunks).rev()), "{helped:?}");
            assert_eq!((taken(true), taken(false)), (None, None));
        }
    }
}
