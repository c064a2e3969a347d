//! Times the elementwise, reducing and moving kernels of `docs/benchmarks.md`'s table, without
//! tensors: for tuning them.
//!
//! `cargo run --release -p plimsoll-kernels --example kernel_bench -- [threads] [name-part]
//! [repeats]`

use std::ptr::null_mut;

use plimsoll_core::{DType, Layout, Result, Scalar};
use plimsoll_kernels::cpu::{binary, copy, index, join, layer_norm, reduce, softmax, unary};
use plimsoll_kernels::{CpuLaunch, Meta, Operand, Workspace, parallel};

/// A tensor over memory of its own, on huge pages where the system gives them.
struct Owned {
    start: *mut u8,
    meta: Meta,
}

impl Owned {
    fn new(dtype: DType, shape: &[usize]) -> Result<Owned> {
        let meta = Meta::contiguous(shape, dtype)?;
        let bytes = meta.span_bytes().next_multiple_of(2 << 20);
        // SAFETY: a fresh anonymous mapping, kept for the rest of the process.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::mmap(null_mut(), bytes, access, flags, -1, 0);
            assert!(at != libc::MAP_FAILED, "the machine has the memory");
            libc::madvise(at, bytes, libc::MADV_HUGEPAGE);
            at.cast::<u8>()
        };
        let owned = Owned { start, meta };
        owned.fill();
        Ok(owned)
    }

    /// Floats in [-2, 2), indices in 0..4096.
    fn fill(&self) {
        let mut random = 88_172_645_463_325_252u64;
        for i in 0..self.meta.layout.numel() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // SAFETY: the mapping holds `numel` elements of the dtype.
            unsafe {
                match self.meta.dtype {
                    DType::I64 => *self.start.cast::<i64>().add(i) = (random >> 52) as i64,
                    _ => {
                        *self.start.cast::<f32>().add(i) =
                            (random >> 40) as f32 / (1 << 22) as f32 - 2.0;
                    }
                }
            }
        }
    }

    fn transposed(&self) -> Result<Owned> {
        let (shape, strides) = (self.meta.shape(), self.meta.layout.strides());
        let layout = Layout::strided(&[shape[1], shape[0]], &[strides[1], strides[0]], 0)?;
        Ok(Owned { start: self.start, meta: Meta { layout, dtype: self.meta.dtype } })
    }

    fn operand(&self) -> Operand<'_> {
        // SAFETY: the mapping spans the layout and lives on; one launch at a time uses it.
        unsafe { Operand::new(self.start, &self.meta) }
    }
}

/// What a row of the table runs.
type Kernel = fn(&CpuLaunch<'_>) -> Result<()>;

struct Bench {
    wanted: String,
    repeats: usize,
}

impl Bench {
    /// Times `kernel`; `moved` is how many bytes it reads and writes at least.
    #[allow(clippy::print_stdout)]
    fn time(&self, name: &str, out: &Owned, inputs: &[&Owned], kernel: Kernel) -> Result<()> {
        if !name.contains(&self.wanted) {
            return Ok(());
        }
        let inputs: Vec<Operand<'_>> = inputs.iter().map(|input| input.operand()).collect();
        let outputs = [out.operand()];
        let workspace = Workspace::NONE;
        let launch =
            CpuLaunch { operation: "bench", inputs: &inputs, outputs: &outputs, workspace };
        let mut times = Vec::new();
        for _ in 0..self.repeats + 2 {
            let start = now();
            kernel(&launch)?;
            times.push(now() - start);
        }
        let times = &mut times[2..];
        times.sort_by(f64::total_cmp);
        let moved: usize =
            inputs.iter().chain(&outputs).map(|operand| operand.meta().span_bytes()).sum();
        println!(
            "{name:24} min {:8.3} ms  med {:8.3} ms  {:6.2} GB/s",
            times[0] * 1e3,
            times[times.len() / 2] * 1e3,
            moved as f64 / times[0] / 1e9
        );
        Ok(())
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

fn layer_norm(launch: &CpuLaunch<'_>) -> Result<()> {
    let args =
        layer_norm::LayerNormArgs { normalized_rank: 1, weight: false, bias: false, eps: 1e-5 };
    layer_norm::layer_norm(launch, args)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    parallel::set_threads(arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(2));
    let bench = Bench {
        wanted: arguments.get(2).cloned().unwrap_or_default(),
        repeats: arguments.get(3).and_then(|text| text.parse().ok()).unwrap_or(11),
    };
    let f32s = |shape: &[usize]| Owned::new(DType::F32, shape);
    let add_one: Kernel = |launch| binary::add_scalar(launch, Scalar::Int(1));
    let (x, out) = (f32s(&[1000, 1000, 100])?, f32s(&[1000, 1000, 100])?);
    let row = f32s(&[100])?;
    bench.time("add 400 MB", &out, &[&x], add_one)?;
    bench.time("broadcast 400 MB", &out, &[&x, &row], |l| binary::add(l, Scalar::Int(1)))?;
    bench.time("add in place 400 MB", &x, &[&x], add_one)?;
    let (x, out) = (f32s(&[1024, 1024])?, f32s(&[1024, 1024])?);
    bench.time("add 4 MB", &out, &[&x], add_one)?;
    let (x, out) = (f32s(&[4])?, f32s(&[4])?);
    bench.time("add 16 B", &out, &[&x, &x], |l| binary::add(l, Scalar::Int(1)))?;
    let (x, out) = (f32s(&[4096, 4096])?, f32s(&[4096, 4096])?);
    let (half, one) = (f32s(&[2048, 4096])?, f32s(&[])?);
    let index = Owned::new(DType::I64, &[4096, 4096])?;
    bench.time("relu 64 MB", &out, &[&x], unary::relu)?;
    bench.time("exp 64 MB", &out, &[&x], unary::exp)?;
    bench.time("tanh 64 MB", &out, &[&x], unary::tanh)?;
    bench.time("gelu 64 MB", &out, &[&x], unary::gelu)?;
    bench.time("softmax 64 MB", &out, &[&x], |l| softmax::softmax(l, 1))?;
    bench.time("layer_norm 64 MB", &out, &[&x], layer_norm)?;
    bench.time("sum 64 MB", &one, &[&x], |l| reduce::sum(l, &[0, 1]))?;
    bench.time("transposed add 64 MB", &out.transposed()?, &[&x.transposed()?], add_one)?;
    bench.time("turned copy 64 MB", &out, &[&x.transposed()?], copy::copy)?;
    bench.time("turned add 64 MB", &out, &[&x.transposed()?], add_one)?;
    bench.time("gather 64 MB", &out, &[&x, &index], |l| index::gather(l, 1))?;
    bench.time("cat 64 MB", &out, &[&half, &half], |l| join::cat(l, 0))
}
