//! Sleeping until a word changes. Raw futexes rather than a condition variable, because their whole
//! state is the word itself: after a fork the child can reset it, where a library lock might be
//! left held.

use std::sync::atomic::AtomicU32;

/// Sleeps while `word` holds `expected`, or until [`wake`]; may return early.
#[cfg(target_os = "linux")]
pub(super) fn wait(word: &AtomicU32, expected: u32) {
    // SAFETY: the kernel only compares the aligned, live word with `expected`; a null timeout means
    // none.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            std::ptr::null::<libc::timespec>(),
        );
    }
}

/// Wakes up to `sleepers` threads that sleep on `word`.
#[cfg(target_os = "linux")]
pub(super) fn wake(word: &AtomicU32, sleepers: u32) {
    // SAFETY: the kernel uses only the word's address, as the key of its queue.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            sleepers.min(i32::MAX as u32),
        );
    }
}

/// Without futexes a sleeper polls: correct everywhere, and only Linux is tuned.
#[cfg(not(target_os = "linux"))]
pub(super) fn wait(word: &AtomicU32, expected: u32) {
    if word.load(std::sync::atomic::Ordering::Relaxed) == expected {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

/// Sleepers poll; nothing to do.
#[cfg(not(target_os = "linux"))]
pub(super) fn wake(_word: &AtomicU32, _sleepers: u32) {}
