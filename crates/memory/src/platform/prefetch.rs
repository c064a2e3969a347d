//! Asking for a cache line before it is written, so that the processor fetches it while it does
//! something else. A hint and nothing more: it reads and writes nothing, and a processor may ignore
//! it.

/// Asks for the line at the start of `place`, to write to it.
#[inline(always)]
pub(crate) fn for_write<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction has no effect on memory, registers or flags whatever the address, and
    // processors that do not know it take it as one without effect.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) std::ptr::from_ref(place),
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}
