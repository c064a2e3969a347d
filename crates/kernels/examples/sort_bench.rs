//! Times sorting 64 MB of `f32`, as 4096 rows of 4096 and as one row: for tuning the kernel.
//!
//! `cargo run --release -p plimsoll-kernels --example sort_bench -- [threads] [repeats]`

use plimsoll_core::DType;
use plimsoll_kernels::cpu::sort::SortPlan;
use plimsoll_kernels::parallel;

/// Seconds: of this thread's CPU where one thread works, else of the clock.
fn now() -> f64 {
    let clock = if parallel::threads() == 1 {
        libc::CLOCK_THREAD_CPUTIME_ID
    } else {
        libc::CLOCK_MONOTONIC
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is live for the call to write.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[allow(clippy::print_stdout)]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    parallel::set_threads(arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(2));
    let repeats = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut random = 88_172_645_463_325_252u64;
    let keys: Vec<f32> = (0..1 << 24)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // The sum of a few uniforms, near enough to a normal distribution for a sort.
            (0..4).map(|i| (random >> (i * 16) & 0xffff) as f32 / 65536.0 - 0.5).sum()
        })
        .collect();
    let (mut sorted, mut positions) = (vec![0f32; keys.len()], vec![0i64; keys.len()]);
    for (rows, len) in [(4096, 4096), (512, 4096), (1 << 18, 64), (1, 1 << 21), (1, 1 << 24)] {
        let plan = SortPlan::new(DType::F32, rows, len);
        let mut workspace = vec![0u64; plan.workspace_bytes() / 8];
        let mut times: Vec<f64> = (0..repeats)
            .map(|_| {
                let start = now();
                let (from, to) = (keys.as_ptr().cast(), sorted.as_mut_ptr().cast());
                let space = workspace.as_mut_ptr().cast();
                // SAFETY: the vectors hold at least the plan's sizes.
                unsafe { plan.run(from, to, positions.as_mut_ptr(), false, space) };
                now() - start
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let each = times[0] * 1e9 / (rows * len) as f64;
        println!("{rows} x {len}: min {:.1} ms, {each:.1} ns an element", times[0] * 1e3);
    }
}
