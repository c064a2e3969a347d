//! Nanoseconds of an add of four elements, recording off: what dispatch costs.
#![allow(clippy::print_stdout)]
use plimsoll_tensor::*;
fn main() -> Result<()> {
    let a = Tensor::ones(&[4], DType::F32)?;
    let b = Tensor::ones(&[4], DType::F32)?;
    let n: u32 = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(200_000);
    no_grad(|| -> Result<()> {
        for _ in 0..5 {
            let start = std::time::Instant::now();
            for _ in 0..n {
                std::hint::black_box(a.add(&b)?);
            }
            println!("{:.1} ns", start.elapsed().as_nanos() as f64 / f64::from(n));
        }
        Ok(())
    })
}
