//! Plimsoll's side of `cargo xtask bench cpu`: reads `NAME ITERATIONS` lines, runs that work that often, and answers with the
//! microseconds that it took. `torch_worker.py` is the other side, with the same names; `bench.rs` asks them in turn.

// A program that talks over its standard streams.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::io::BufRead;
use std::sync::Barrier;
use std::time::Instant;

use plimsoll_memory::{Arena, HistoryLevel, Kind, OriginId, Request, Site, StreamId};
use plimsoll_tensor::{DType, Device, Result, Tensor, device, memory, no_grad, parallel};

type Work = Box<dyn FnMut() -> Result<()>>;

fn main() -> Result<()> {
    parallel::set_threads(2);
    let mut current: Option<(String, Work)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (name, count) = line.rsplit_once(' ').unwrap_or((&line, "1"));
        let count: u32 = count.parse().unwrap_or(1);
        if name.contains("two threads") {
            println!("{}", two_threads(name, count)?);
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
        let start = Instant::now();
        for _ in 0..count {
            work()?;
        }
        println!("{}", start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(())
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
        "layer_norm_64mb" => one(square()?, |x| x.layer_norm(&[4096], None, None, 1e-5)),
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
            Box::new(move || x.sort(-1, false).map(|sorted| drop(black_box(sorted))))
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
        _ => return Ok(None),
    }))
}

/// A function of one tensor; its result is dropped at once.
fn one(x: Tensor, function: impl Fn(&Tensor) -> Result<Tensor> + 'static) -> Work {
    Box::new(move || function(&x).map(|result| drop(black_box(result))))
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
    let request = Request { bytes: 1024, origin, kind: Kind::Temporary, stream: StreamId::DEFAULT };
    arena.allocate(&request).map(|block| drop(black_box(block)))
}

/// Microseconds of the slower of two threads that do the same work at once.
fn two_threads(name: &str, count: u32) -> Result<f64> {
    let history = if name.contains("history") { HistoryLevel::All } else { HistoryLevel::Off };
    let arena = if name.contains("allocate") { Some(private_arena(history)?) } else { None };
    let together = Barrier::new(2);
    let timed = || -> Result<f64> {
        let x = Tensor::randn(&[4], DType::F32)?;
        let once = || match arena {
            Some(arena) => allocate_and_free(arena),
            None => no_grad(|| x.add(&x)).map(|sum| drop(black_box(sum))),
        };
        for _ in 0..1000 {
            once()?;
        }
        together.wait();
        let start = Instant::now();
        for _ in 0..count {
            once()?;
        }
        Ok(start.elapsed().as_secs_f64() * 1e6)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(timed);
        let own = timed()?;
        let other = other.join().unwrap_or(Ok(f64::INFINITY))?;
        Ok(own.max(other))
    })
}
