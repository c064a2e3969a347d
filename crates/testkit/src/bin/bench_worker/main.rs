//! Plimsoll's side of `cargo xtask bench cpu` and `bench operations`: reads `NAME ITERATIONS`
//! lines, runs that work that often, and answers with the microseconds that it took.
//! `xtask/bench/torch_worker.py` is the other side, with the same names; `xtask/src/bench.rs` asks
//! them in turn.
//!
//! Work that has no other side to compare with is timed in slices, between measurements of the
//! processor's pace: on a shared machine somebody else's program on the same core halves it for a
//! while. Then two numbers follow: the microseconds by those slices alone in which it was the
//! processor's own, and their share (`Timed`).

// A program that talks over its standard streams.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::io::BufRead;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use plimsoll_memory::{Arena, HistoryLevel, Kind, OriginId, Request, Site};
use plimsoll_tensor::{DType, Device, Error, Result, Tensor, device, memory, no_grad, parallel};
use plimsoll_testkit::workloads::{self, Work, batch_norm, one};

/// Work without another side.
const ALONE: [&str; 3] = ["add_of_4", "allocate", "allocate_with_history"];

fn main() -> Result<()> {
    parallel::set_threads(2);
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["peaks"] => {
            println!("{}", workloads::PEAKS.join("\n"));
            return Ok(());
        }
        ["peak", name] => return tell_peak(name),
        _ => {}
    }
    let mut current: Option<(String, Work)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (name, count) = line.rsplit_once(' ').unwrap_or((&line, "1"));
        let count: u32 = count.parse().unwrap_or(1);
        if name.contains("two threads") {
            two_threads(name, count)?.tell();
            continue;
        }
        if current.as_ref().is_none_or(|(have, _)| have != name) {
            // The inputs of the previous work go first, so that only one set is in memory.
            drop(current.take());
            current = work(name)?.map(|work| (name.to_string(), work));
        }
        let Some((_, work)) = &mut current else {
            println!("unknown");
            continue;
        };
        if ALONE.contains(&name) {
            in_slices(count, work, None)?.tell();
            continue;
        }
        let start = Instant::now();
        for _ in 0..count {
            work()?;
        }
        println!("{}", start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(())
}

/// Tells the most bytes that the work took, as the arena, a dry run and the system count them. The
/// system's count is what the process grew by.
fn tell_peak(name: &str) -> Result<()> {
    let cpu = Device::cpu();
    let dry = workloads::peak_bytes(name, device::dry(cpu)?)?;
    let before = resident_kb("VmRSS")?;
    let real = workloads::peak_bytes(name, cpu)?;
    let grown = 1024 * (resident_kb("VmHWM")? - before);
    println!("{} {} {grown}", real.unwrap_or(0), dry.unwrap_or(0));
    Ok(())
}

/// A line of `/proc/self/status`, in KiB.
fn resident_kb(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.ok_or_else(|| Error::invalid_argument(format!("the system does not tell {name}")))
}

/// The work of that name, with its inputs made.
fn work(name: &str) -> Result<Option<Work>> {
    let normal = |sizes: &[i64]| Tensor::randn(sizes, DType::F32);
    let square = || normal(&[4096, 4096]);
    Ok(Some(match name {
        "add_400mb" => one(normal(&[100_000_000])?, |x| x.add(1.0)),
        "broadcast_400mb" => {
            let (x, y) = (normal(&[1000, 1000, 100])?, normal(&[100])?);
            one(x, move |x| x.add(&y))
        }
        "relu_64mb" => one(square()?, Tensor::relu),
        "exp_64mb" => one(square()?, Tensor::exp),
        "tanh_64mb" => one(square()?, Tensor::tanh),
        "gelu_64mb" => one(square()?, Tensor::gelu),
        "softmax_64mb" => one(square()?, |x| x.softmax(-1)),
        "layer_norm_64mb" => one(square()?, |x| x.layer_norm(&[4096])),
        "batch_norm_channels_last_64mb" => {
            batch_norm(normal(&[64, 64, 64, 64])?.permute(&[0, 3, 1, 2])?)?
        }
        "batch_norm_features_64mb" => batch_norm(normal(&[65_536, 256])?)?,
        "add_in_place_400mb" => {
            let x = normal(&[100_000_000])?;
            Box::new(move || x.add_(1.0).map(drop))
        }
        "sum_64mb" => one(square()?, Tensor::sum),
        "add_4mb" => one(normal(&[1024, 1024])?, |x| x.add(1.0)),
        "transposed_add_64mb" => one(square()?, |x| x.t()?.add(1.0)),
        "transposed_contiguous_64mb" => one(square()?, |x| x.t()?.contiguous()),
        "sort_64mb" => {
            let x = square()?;
            Box::new(move || x.sort().map(|sorted| drop(black_box(sorted))))
        }
        "gather_64mb" => {
            let index = Tensor::randint(0, 4096, &[4096, 4096], DType::I64)?;
            one(square()?, move |x| x.gather(1, &index))
        }
        "cat_64mb" => {
            let other = normal(&[2048, 4096])?;
            one(normal(&[2048, 4096])?, move |x| Tensor::cat(&[x, &other], 0))
        }
        "matmul_f32_256" => product(&[256, 256], &[256, 256], DType::F32)?,
        "matmul_f32_1024" => product(&[1024, 1024], &[1024, 1024], DType::F32)?,
        "matmul_f32_2048" => product(&[2048, 2048], &[2048, 2048], DType::F32)?,
        "matmul_f32_1x4096x4096" => product(&[1, 4096], &[4096, 4096], DType::F32)?,
        "matmul_f32_32x4096x4096" => product(&[32, 4096], &[4096, 4096], DType::F32)?,
        "matmul_f32_64_batches_of_128" => product(&[64, 128, 128], &[64, 128, 128], DType::F32)?,
        "matmul_f64_1024" => product(&[1024, 1024], &[1024, 1024], DType::F64)?,
        "matmul_bf16_2048" => product(&[2048, 2048], &[2048, 2048], DType::BF16)?,
        "add_of_4" => {
            let x = normal(&[4])?;
            Box::new(move || no_grad(|| x.add(&x)).map(|sum| drop(black_box(sum))))
        }
        "allocate" => allocate(HistoryLevel::Off)?,
        "allocate_with_history" => allocate(HistoryLevel::All)?,
        _ => return workloads::work(name, Device::cpu()),
    }))
}

fn product(a: &[i64], b: &[i64], dtype: DType) -> Result<Work> {
    let a = Tensor::randn(a, DType::F32)?.to(dtype)?;
    let b = Tensor::randn(b, DType::F32)?.to(dtype)?;
    Ok(one(a, move |a| a.matmul(&b)))
}

/// A cached allocation of 1 KiB and its free, in an arena of its own.
fn allocate(history: HistoryLevel) -> Result<Work> {
    let arena = private_arena(history)?;
    Ok(Box::new(move || allocate_and_free(arena)))
}

fn private_arena(history: HistoryLevel) -> Result<&'static Arena> {
    let own: Device = device::private_cpu(&Default::default())?;
    let arena = memory::arena(own);
    arena.record_history(history, 100_000);
    Ok(arena)
}

fn allocate_and_free(arena: &'static Arena) -> Result<()> {
    let origin = OriginId::intern("bench", Site::caller());
    let request = Request { kind: Kind::Temporary, ..Request::new(1024, origin) };
    arena.allocate(&request).map(|block| drop(black_box(block)))
}

/// The slower of two threads that do the same work at once.
fn two_threads(name: &str, count: u32) -> Result<Timed> {
    let history = if name.contains("history") { HistoryLevel::All } else { HistoryLevel::Off };
    let arena = if name.contains("allocate") { Some(private_arena(history)?) } else { None };
    let together = Barrier::new(2);
    let done = [const { Done(AtomicU32::new(0)) }; 2];
    let timed = |thread: usize| -> Result<Timed> {
        let x = Tensor::randn(&[4], DType::F32)?;
        let mut once = || match arena {
            Some(arena) => allocate_and_free(arena),
            None => no_grad(|| x.add(&x)).map(|sum| drop(black_box(sum))),
        };
        for _ in 0..1000 {
            once()?;
        }
        together.wait();
        in_slices(count, &mut once, Some([&done[thread], &done[1 - thread]]))
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| timed(1));
        let own = timed(0)?;
        let other = other.join().map_err(|_| Error::invalid_argument("a thread panicked"))??;
        Ok(Timed {
            us: own.us.max(other.us),
            undisturbed_us: own.undisturbed_us.max(other.undisturbed_us),
            share: own.share.min(other.share),
        })
    })
}

/// How long some work took.
struct Timed {
    us: f64,
    /// The same, had all slices taken the median of those in which the processor kept its own pace;
    /// of all, if those are too few.
    undisturbed_us: f64,
    /// The share of such slices.
    share: f64,
}

impl Timed {
    fn tell(&self) {
        println!("{} {} {}", self.us, self.undisturbed_us, self.share);
    }
}

/// Turns that a thread has done, on a cache line of its own.
#[repr(align(64))]
struct Done(AtomicU32);

/// Times `count` turns of `once`. Of two threads at once, `[own, other]`, only slices count as
/// undisturbed in which the other has done half as much at least.
fn in_slices(
    count: u32,
    once: &mut dyn FnMut() -> Result<()>,
    threads: Option<[&Done; 2]>,
) -> Result<Timed> {
    const SLICE: u32 = 1000;
    /// Turns after which a thread tells the other.
    const TOLD: u32 = 50;
    /// Slower than the fastest so far by this much, a pace is not the processor's own.
    const TOLERATED: f64 = 1.12;
    /// Fewer slices than this share tell nothing.
    const LEAST_SHARE: f64 = 0.1;
    let other_done = || threads.map_or(0, |[_, other]| other.0.load(Ordering::Relaxed));
    let mut slices = Vec::new();
    let mut before = pace();
    for _ in 0..count.div_ceil(SLICE) {
        let others = other_done();
        let start = Instant::now();
        for _ in 0..SLICE / TOLD {
            for _ in 0..TOLD {
                once()?;
            }
            if let Some([own, _]) = threads {
                own.0.fetch_add(TOLD, Ordering::Relaxed);
            }
        }
        let us = start.elapsed().as_secs_f64() * 1e6;
        let together = threads.is_none() || other_done() - others >= SLICE / 2;
        let after = pace();
        let slowest = if together { before.max(after) } else { f64::INFINITY };
        slices.push((us, slowest));
        before = after;
    }
    let fastest = f64::from_bits(FASTEST.load(Ordering::Relaxed));
    let own = |slice: &&(f64, f64)| slice.1 <= fastest * TOLERATED;
    let mut counted: Vec<f64> = slices.iter().filter(own).map(|slice| slice.0).collect();
    let share = counted.len() as f64 / slices.len() as f64;
    if share < LEAST_SHARE {
        counted = slices.iter().map(|slice| slice.0).collect();
    }
    counted.sort_by(f64::total_cmp);
    let undisturbed_us = counted[counted.len() / 2] * slices.len() as f64;
    Ok(Timed { us: slices.iter().map(|slice| slice.0).sum(), undisturbed_us, share })
}

/// The shortest [`pace`] so far, as bits of an `f64`; positive numbers are ordered as their bits
/// are.
static FASTEST: AtomicU64 = AtomicU64::new(f64::INFINITY.to_bits());

/// Microseconds of a fixed piece of work that keeps several units of the processor busy, so that
/// another program on the same core is noticed.
fn pace() -> f64 {
    let start = Instant::now();
    let mut lanes = black_box([1u64, 2, 3, 4, 5, 6, 7, 8]);
    for turn in 0..2000 {
        for lane in &mut lanes {
            *lane = (*lane << 1 ^ *lane >> 3).wrapping_add(turn);
        }
    }
    black_box(lanes);
    let us = start.elapsed().as_secs_f64() * 1e6;
    FASTEST.fetch_min(us.to_bits(), Ordering::Relaxed);
    us
}
