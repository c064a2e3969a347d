//! Choosing between two operands, element by element.

use plimsoll_core::{Error, Result};

use crate::on::On;
use plimsoll_engine::CpuLaunch;
use plimsoll_engine::map::{Map3, map3};
use plimsoll_engine::simd::Level;
use plimsoll_engine::{Element, Truth, match_dtype};

#[derive(Clone, Copy)]
struct Choose;

impl<T: Element> Map3 for On<Choose, T> {
    type A = Truth;
    type B = T;
    type C = T;
    type Out = T;
    #[inline(always)]
    fn call<L: Level>(self, condition: Truth, a: T, b: T) -> T {
        if condition.get() { a } else { b }
    }
}

/// [condition, a, b] -> a where the condition (bool) holds, else b.
pub fn where_(launch: &CpuLaunch<'_>) -> Result<()> {
    let Some(out) = launch.outputs.first() else {
        return Err(
            Error::invalid_argument("the kernel needs an output").in_operation(launch.operation)
        );
    };
    match_dtype!(out.dtype(), T => map3(launch, On::<_, T>::new(Choose)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;
    use plimsoll_engine::testing::{Held, Lot, assert_close, launch_all, shapes};

    #[test]
    fn chooses_in_every_layout() {
        let mut lot = Lot(5);
        for dtype in DType::ALL {
            for shape in shapes() {
                let condition = Held::random(&mut lot, DType::Bool, &shape, false);
                let a = Held::random(&mut lot, dtype, &shape, true);
                let b = Held::random(&mut lot, dtype, &shape, true);
                let want: Vec<f64> = condition
                    .values()
                    .iter()
                    .zip(a.values().into_iter().zip(b.values()))
                    .map(|(&c, (a, b))| if c != 0.0 { a } else { b })
                    .collect();
                let mut out = [Held::output(&mut lot, dtype, &shape)];
                launch_all(&[&condition, &a, &b], &mut out, 0, where_, |out| {
                    assert_close(&out[0].values(), &want, 0.0, 0.0, "where");
                });
            }
        }
    }
}
