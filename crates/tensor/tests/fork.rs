//! A fork in the middle of work: threads that hold claims and locks exist in the parent only, and
//! the child goes on computing with the same tensors all the same.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_tensor::*;

/// Takes every kind of lock that an operation, a graph or a random number takes.
fn work(shared: &Tensor, weight: &Tensor, round: i64) -> Result<()> {
    shared.add_(1.0)?;
    shared.sub_(1.0)?;
    let hidden = weight.mul(weight)?.tanh()?;
    hidden.register_hook(|grad| grad.mul(0.5).map(Some))?;
    hidden.view(&[-1])?.sum()?.backward()?;
    weight.set_grad(None)?;
    let drawn = Tensor::rand(&[64 + round % 7], DType::F32)?
        .matmul(&Tensor::ones(&[64 + round % 7], DType::F32)?)?;
    drawn.item::<f32>().map(drop)
}

/// Runs `child` in a forked process; returns whether it ended well within a minute.
fn forked(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs only code that is safe with one thread (which is what is tested) and
    // ends with `_exit`, so nothing of the parent's test harness runs twice.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: an alarm ends a child that hangs; `_exit` ends this process and returns nothing.
        unsafe {
            libc::alarm(60);
            libc::_exit(if child() { 0 } else { 1 });
        }
    }
    let mut status = 0;
    // SAFETY: `pid` is our own child and `status` a place for its result.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    waited == pid && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn a_child_forked_in_the_middle_of_work_computes_with_the_same_tensors() -> Result<()> {
    let shared = Tensor::zeros(&[64, 64], DType::F32)?;
    let weight = Tensor::ones(&[64, 64], DType::F32)?.requires_grad_(true)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (shared, weight, stop) = (&shared, &weight, &stop);
            scope.spawn(move || {
                let mut round = thread;
                while !stop.load(Ordering::Relaxed) {
                    work(shared, weight, round).unwrap();
                    round += 3;
                }
            });
        }
        for round in 0..40 {
            let survived = forked(|| {
                let sound = (0..5).all(|more| work(&shared, &weight, more).is_ok());
                // Claims were waited for, so every write of a thread that is not here any more is
                // whole: 0, or up to 3 more.
                let values = shared.to_vec::<f32>().unwrap();
                sound
                    && values
                        .iter()
                        .all(|&value| value == values[0] && (0.0..=3.0).contains(&value))
            });
            if !survived {
                stop.store(true, Ordering::Relaxed);
            }
            assert!(survived, "the child of fork {round} hung or saw half of an operation");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(shared.to_vec::<f32>()?, [0.0; 64 * 64]);
    memory::arena(Device::CPU).check_balanced().unwrap();
    Ok(())
}
