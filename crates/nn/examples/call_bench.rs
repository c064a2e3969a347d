//! What a call of a module costs above its operation: `cargo run --release --example call_bench`.
//! Prints nanoseconds a call of `ReLU` on four elements: the operation itself, the module called
//! by nobody, and the module as a field of one that is running.

use std::hint::black_box;
use std::time::Instant;

use plimsoll_nn::{Forward, Linear, Module, ReLU};
use plimsoll_tensor::{DType, Result, Tensor, no_grad};

/// Short rounds, of which some find the processor to themselves.
const ROUNDS: u32 = 2_000;
const CALLS: u32 = 200;

#[derive(Module)]
struct Net {
    first: Linear,
    second: Linear,
    third: Linear,
    activation: ReLU,
    list: Vec<ReLU>,
}

impl Forward<&Tensor> for Net {
    type Output = (f64, f64, f64);

    fn forward(&self, x: &Tensor) -> Result<(f64, f64, f64)> {
        Ok((
            nanoseconds(|| x.relu())?,
            nanoseconds(|| self.activation.call(x))?,
            nanoseconds(|| self.list[self.list.len() / 2].call(x))?,
        ))
    }
}

/// The best of many rounds.
fn nanoseconds(mut call: impl FnMut() -> Result<Tensor>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call()?);
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    Ok(best)
}

#[allow(clippy::print_stdout)]
fn main() -> Result<()> {
    let x = Tensor::ones(&[4], DType::F32)?;
    let net = Net {
        first: Linear::new(4, 4)?,
        second: Linear::new(4, 4)?,
        third: Linear::new(4, 4)?,
        activation: ReLU::new(),
        list: (0..100).map(|_| ReLU::new()).collect(),
    };
    no_grad(|| {
        let alone = nanoseconds(|| net.activation.call(&x))?;
        let (operation, field, element) = net.call(&x)?;
        println!("the operation itself          {operation:7.1} ns");
        println!("a module, called by nobody    {alone:7.1} ns, {:+.1}", alone - operation);
        println!("the fourth field of a module  {field:7.1} ns, {:+.1}", field - operation);
        println!("an element of a list of 100   {element:7.1} ns, {:+.1}", element - operation);
        Ok(())
    })
}
