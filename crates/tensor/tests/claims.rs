//! Races and deadlocks: what would hang a design with a lock per tensor finishes here, with the
//! right values. Small enough for Miri, which runs the same file with fewer rounds.

use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_tensor::*;

const THREADS: usize = if cfg!(miri) { 3 } else { 8 };
const ROUNDS: usize = if cfg!(miri) { 4 } else { 2_000 };
/// Past the size from which kernels use the thread pool, except under Miri.
const LARGE: i64 = if cfg!(miri) { 8 } else { 300_000 };

/// Gives cached memory back at the end of a test: Miri would take what the arena keeps for a leak.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        memory::empty_cache(Device::cpu());
    }
}

fn zeros(size: i64) -> Tensor {
    Tensor::zeros(&[size], DType::F32).unwrap()
}

#[test]
fn an_operand_may_be_given_twice() -> Result<()> {
    let _give_back = GiveBack;
    let x = Tensor::ones(&[4], DType::F32)?;
    x.add_(&x)?;
    x.mul_(&x)?;
    let y = Tensor::where_(&x.gt(0.0)?, &x, &x)?;
    assert_eq!(y.add(&y)?.to_vec::<f32>()?, [8.0; 4]);
    Ok(())
}

#[test]
fn writers_of_one_tensor_take_turns() {
    let _give_back = GiveBack;
    let shared = zeros(16);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    shared.add_(1.0).unwrap();
                }
            });
        }
    });
    assert_eq!(shared.to_vec::<f32>().unwrap(), [(THREADS * ROUNDS) as f32; 16]);
}

#[test]
fn a_reader_never_sees_half_of_a_write() {
    let _give_back = GiveBack;
    let shared = zeros(64);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    if (thread + round) % 3 == 0 {
                        shared.fill_(round as f32).unwrap();
                    } else {
                        let seen = shared.to_vec::<f32>().unwrap();
                        assert!(seen.iter().all(|&value| value == seen[0]), "{seen:?}");
                    }
                }
            });
        }
    });
}

/// Each thread moves ones between two tensors of a ring in its own order: claims in the order of
/// the operands would deadlock.
#[test]
fn claims_of_several_tensors_do_not_wait_in_circles() {
    let _give_back = GiveBack;
    let ring: Vec<Tensor> = (0..4).map(|_| zeros(8)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let ring = &ring;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let (a, b) = (&ring[(thread + round) % 4], &ring[(thread * 3 + round * 2) % 4]);
                    // Both read both; `a` is written.
                    let step = b.sub(b).unwrap().add(1.0).unwrap();
                    a.add_(&step).unwrap();
                }
            });
        }
    });
    let total: f32 = ring.iter().map(|x| x.to_vec::<f32>().unwrap()[0]).sum();
    assert_eq!(total, (THREADS * ROUNDS) as f32);
}

/// User code that is itself a part of the kernels' thread pool calls operations on shared tensors,
/// large enough to ask for the pool.
#[test]
fn operations_may_be_called_from_inside_the_thread_pool() {
    let _give_back = GiveBack;
    let shared = zeros(LARGE);
    let calls = AtomicU32::new(0);
    let rounds = if cfg!(miri) { 1 } else { 20 };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..rounds {
                    parallel::fork(4, |_| {
                        shared.add_(1.0).unwrap();
                        let own = shared.mul(0.0).unwrap();
                        own.add_(&own).unwrap();
                        assert_eq!(own.sum().unwrap().item::<f32>().unwrap(), 0.0);
                        calls.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    let calls = calls.into_inner();
    assert_eq!(calls as usize, THREADS * rounds * 4);
    for end in [shared.amax_with([0]), shared.amin_with([0])] {
        assert_eq!(end.unwrap().item::<f32>().unwrap(), calls as f32);
    }
}

/// Random mixes of operations whose sum of all elements is known at the end whatever their order.
#[test]
fn random_mixes_on_shared_tensors_end_with_the_right_values() {
    let _give_back = GiveBack;
    let tensors: Vec<Tensor> = (0..5).map(|_| zeros(32)).collect();
    let added = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (tensors, added) = (&tensors, &added);
            scope.spawn(move || {
                let mut state = thread as u64 + 1;
                for _ in 0..ROUNDS {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let at = |shift: u64| &tensors[(state >> shift) as usize % 5];
                    match (state >> 60) % 4 {
                        0 => {
                            at(33).narrow(0, 0, 16).unwrap().add_(1.0).unwrap();
                            added.fetch_add(16, Ordering::Relaxed);
                        }
                        1 => {
                            // Adds zeros made from another tensor, which others write meanwhile.
                            let other = at(40).clone_tensor().unwrap();
                            at(33).add_(&other.sub(&other).unwrap()).unwrap();
                        }
                        2 => {
                            at(33).view(&[4, 8]).unwrap().t().unwrap().add_(1.0).unwrap();
                            added.fetch_add(32, Ordering::Relaxed);
                        }
                        _ => drop(at(33).exp().unwrap()),
                    }
                }
            });
        }
    });
    let total: f32 = tensors.iter().map(|x| x.sum().unwrap().item::<f32>().unwrap()).sum();
    assert_eq!(total, added.into_inner() as f32);
}
