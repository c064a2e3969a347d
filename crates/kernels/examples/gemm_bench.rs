//! Times the matrix products that `docs/benchmarks.md` speaks of, without tensors: for tuning the
//! kernels.
//!
//! `cargo run --release -p plimsoll-kernels --example gemm_bench -- [threads] [name-part]
//! [repeats]`

use plimsoll_core::DType;
use plimsoll_kernels::cpu::gemm::{BatchDim, Gemm, GemmShape, Plan, Strides};
use plimsoll_kernels::parallel;

/// Zeroed memory on huge pages where the system gives them, 64-byte aligned.
fn buffer(bytes: usize) -> *mut u8 {
    let bytes = bytes.max(1).next_multiple_of(2 << 20);
    // SAFETY: a fresh anonymous mapping, kept for the rest of the process.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert!(at != libc::MAP_FAILED, "the machine has the memory");
        libc::madvise(at, bytes, libc::MADV_HUGEPAGE);
        at.cast()
    }
}

fn fill(dtype: DType, at: *mut u8, count: usize) {
    for i in 0..count {
        let value = ((i * 7919) % 1000) as f32 / 1000.0 - 0.5;
        // SAFETY: `at` holds `count` elements of `dtype`.
        unsafe {
            match dtype {
                DType::F64 => *at.cast::<f64>().add(i) = f64::from(value),
                DType::BF16 => *at.cast::<u16>().add(i) = (value.to_bits() >> 16) as u16,
                _ => *at.cast::<f32>().add(i) = value,
            }
        }
    }
}

/// Seconds: of this thread's CPU where one thread works (a loaded machine then disturbs less), else
/// of the clock.
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
fn bench(
    name: &str,
    dtype: DType,
    batch: usize,
    [m, k, n]: [usize; 3],
    b_transposed: bool,
    repeats: usize,
) {
    let size = dtype.size_bytes();
    let (a, b, c) =
        (buffer(batch * m * k * size), buffer(batch * k * n * size), buffer(batch * m * n * size));
    fill(dtype, a, batch * m * k);
    fill(dtype, b, batch * k * n);
    let dims =
        [BatchDim { size: batch, a: (m * k) as isize, b: (k * n) as isize, c: (m * n) as isize }];
    let shape = GemmShape {
        dtype,
        batch: if batch > 1 { &dims } else { &[] },
        m,
        n,
        k,
        a: Strides::row_major(k),
        b: if b_transposed { Strides::column_major(k) } else { Strides::row_major(n) },
        c: Strides::row_major(n),
    };
    let problem = Gemm { shape, a, b, c, alpha: 1.0, beta: 0.0 };
    let plan = Plan::new(&shape);
    let workspace = buffer(plan.workspace_bytes());
    let mut times: Vec<f64> = (0..repeats + 3)
        .map(|_| {
            let start = now();
            // SAFETY: buffers of the shape's sizes, and the plan's workspace.
            unsafe { plan.run(&problem, workspace) };
            now() - start
        })
        .skip(3)
        .collect();
    times.sort_by(f64::total_cmp);
    let work = 2.0 * (batch * m * n * k) as f64;
    println!(
        "{name:24} min {:10.1} us  med {:10.1} us  {:8.1} GF/s(min)  workspace {} KiB",
        times[0] * 1e6,
        times[times.len() / 2] * 1e6,
        work / times[0] / 1e9,
        plan.workspace_bytes() >> 10
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    parallel::set_threads(arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(2));
    let wanted = arguments.get(2).cloned().unwrap_or_default();
    let scale: f64 = arguments.get(3).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let table = [
        ("f32 64", DType::F32, 1, [64, 64, 64], false, 3000),
        ("f32 64 t", DType::F32, 1, [64, 64, 64], true, 3000),
        ("f32 256", DType::F32, 1, [256, 256, 256], false, 1000),
        ("f32 256 t", DType::F32, 1, [256, 256, 256], true, 1000),
        ("f32 1024", DType::F32, 1, [1024, 1024, 1024], false, 40),
        ("f32 2048", DType::F32, 1, [2048, 2048, 2048], false, 10),
        ("f32 1x4096x4096", DType::F32, 1, [1, 4096, 4096], false, 100),
        ("f32 1x4096x4096 t", DType::F32, 1, [1, 4096, 4096], true, 100),
        ("f32 32x4096x4096", DType::F32, 1, [32, 4096, 4096], false, 60),
        ("f32 32x4096x4096 t", DType::F32, 1, [32, 4096, 4096], true, 60),
        ("f32 64b128", DType::F32, 64, [128, 128, 128], false, 200),
        ("f64 1024", DType::F64, 1, [1024, 1024, 1024], false, 30),
        ("bf16 256", DType::BF16, 1, [256, 256, 256], false, 1000),
        ("bf16 2048", DType::BF16, 1, [2048, 2048, 2048], false, 30),
        ("bf16 2048 t", DType::BF16, 1, [2048, 2048, 2048], true, 30),
    ];
    for (name, dtype, batch, sizes, transposed, repeats) in table {
        if name.contains(&wanted) {
            bench(name, dtype, batch, sizes, transposed, (repeats as f64 * scale).ceil() as usize);
        }
    }
}
