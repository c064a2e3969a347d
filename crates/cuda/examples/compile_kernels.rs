//! Compiles every CUDA source by NVRTC, without a GPU, into a folder of cubins: `compile_kernels
//! FOLDER [CAPABILITY]`. The check that the sources are sound, and the way that `cargo xtask
//! gpu-bundle` makes its cubins. One kernel alone is compiled too, as a cold start does.

#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::Result;
use plimsoll_cuda::{KernelSource, source_files};

/// Calls `work` for every source, on as many threads as there are processors.
fn side_by_side(work: impl Fn(&KernelSource) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let all = || {
        while let Some(source) = source_files::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(source)?;
        }
        Ok(())
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(all)).collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        ends.fold(Ok(()), Result::and)
    })
}

/// A kernel that touches memory before its turn is refused, and one whose wait does not hold the
/// compiler back is compiled without the promise that it may use for that.
fn kernels_wait_for_their_turn(architecture: &str) -> Result<()> {
    let kernel = |first: &str| {
        let head = "extern \"C\" __global__ void add(const float* x, float* y)";
        let text = format!("{head} {{ {first} y[threadIdx.x] += x[threadIdx.x]; }}");
        plimsoll_cuda::compile("add", &text, architecture)
    };
    kernel("asm volatile(\"griddepcontrol.wait;\");")?;
    let told = kernel("").expect_err("it does not wait").to_string();
    assert!(told.contains("`add`: `ld.global"), "{told}");
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "target/cubins".to_string()));
    let capability: u32 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(90);
    std::fs::create_dir_all(&folder)?;
    side_by_side(|source| {
        if !source.runs_on(capability) {
            return Ok(());
        }
        let architecture = source.architecture(capability);
        let path = folder.join(source.cubin_name(capability));
        let code = match std::fs::read(&path) {
            Ok(code) => code,
            Err(_) => {
                let code = plimsoll_cuda::compile(source.name, source.text, &architecture)?;
                std::fs::write(&path, &code)?;
                code
            }
        };
        println!("{}.cu: {} bytes for {architecture}", source.name, code.len());
        // No kernel of that name: what is left must compile all the same.
        plimsoll_cuda::compile(source.name, &source.text_of("none"), &architecture).map(drop)
    })?;
    let unary = &source_files::UNARY;
    let start = std::time::Instant::now();
    let architecture = unary.architecture(capability);
    let alone = plimsoll_cuda::compile("unary", &unary.text_of("exp_f32"), &architecture)?;
    let has = |name: &str| alone.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(has("exp_f32") && !has("log_f32"), "one kernel is compiled alone");
    println!("exp_f32 of unary.cu alone: {} bytes in {:?}", alone.len(), start.elapsed());
    kernels_wait_for_their_turn(&source_files::UNARY.architecture(90))?;
    let count = source_files::ALL.iter().filter(|source| source.runs_on(capability)).count();
    println!("test result: ok. {count} passed; 0 failed");
    Ok(())
}
