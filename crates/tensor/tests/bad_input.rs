//! No input makes a public method panic: sizes, dimensions, strides, indices, dtypes and devices
//! drawn at random, sensible and absurd ones mixed, in every method. What is refused is refused by
//! an error that names its operation; what is accepted lies in its memory, or reading it would
//! fail.

#[path = "../../memory/tests/random/mod.rs"]
mod random;

use plimsoll_core::{Error, Result};
use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn};
use plimsoll_tensor::*;
use random::Random;

const ROUNDS: u64 = 400_000;

impl Random {
    /// A size, dimension, index or stride: mostly small, sometimes absurd.
    fn number(&mut self) -> i64 {
        match self.below(24) {
            0 => i64::MAX,
            1 => i64::MIN,
            2 => i64::MAX / 3,
            3 => -(self.below(1 << 40) as i64),
            4 => 1 << 31,
            5 => self.below(1 << 50) as i64,
            6..12 => -(self.below(4) as i64),
            _ => self.below(6) as i64,
        }
    }

    fn numbers(&mut self) -> Vec<i64> {
        (0..self.below(5)).map(|_| self.number()).collect()
    }

    fn small_sizes(&mut self) -> Vec<i64> {
        (0..self.below(4)).map(|_| self.below(5) as i64).collect()
    }

    fn fraction(&mut self) -> f64 {
        let odd = [0.0, -1.0, 0.5, 2.0, f64::NAN, f64::INFINITY, -1e300, 1e-300];
        odd[self.below(odd.len() as u64) as usize]
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    fn dtype(&mut self) -> DType {
        DType::ALL[self.below(DType::ALL.len() as u64) as usize]
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// How many methods `call` knows.
const METHODS: u64 = 58;

/// One call of a method with random arguments; a result joins the tensors at hand.
fn call(
    r: &mut Random,
    method: u64,
    devices: &[Device],
    at_hand: &[Tensor],
) -> Result<Option<Tensor>> {
    let (x, y, z) = (r.pick(at_hand), r.pick(at_hand), r.pick(at_hand));
    let options = TensorOptions::from((r.dtype(), *r.pick(devices)));
    let some = |tensor: Result<Tensor>| tensor.map(Some);
    let none = |done: Result<()>| done.map(|()| None);
    match method {
        0 => some(Tensor::zeros(&r.numbers(), options)),
        1 => some(Tensor::empty_strided(&r.numbers(), &r.numbers(), options)),
        2 => some(Tensor::full(&r.small_sizes(), r.fraction(), options)),
        3 => some(Tensor::arange(r.fraction(), r.number(), r.fraction(), options)),
        4 => some(Tensor::eye(r.number(), options)),
        5 => some(Tensor::randint(r.number(), r.number(), &r.small_sizes(), options)),
        6 => some(Tensor::rand(&r.small_sizes(), options)),
        7 => some(x.view(&r.numbers())),
        8 => some(x.reshape(&r.numbers())),
        9 => some(x.transpose(r.number(), r.number())),
        10 => some(x.permute(&r.numbers())),
        11 => some(x.narrow(r.number(), r.number(), r.number())),
        12 => some(x.slice(r.number(), r.number(), r.number(), r.number())),
        13 => some(x.select(r.number(), r.number())),
        14 => some(x.expand(&r.numbers())),
        15 => some(x.as_strided(&r.numbers(), &r.numbers(), r.number())),
        16 => some(x.squeeze_with(r.number())),
        17 => some(x.unsqueeze(r.number())),
        18 => some(x.flatten(r.number(), r.number())),
        19 => some(x.broadcast_to(&r.numbers())),
        20 => some(x.add(y)),
        21 => some(x.sub_with(y, AddOptions::new().alpha(r.fraction()))),
        22 => some(x.mul(r.fraction())),
        23 => some(x.div(y)),
        24 => none(x.add_(y).map(drop)),
        25 => none(x.mul_out(y, z)),
        26 => some(x.pow(r.fraction())),
        27 => some(x.exp()),
        28 => some(x.gelu()),
        29 => none(x.tanh_().map(drop)),
        30 => some(x.lt(y)),
        31 => some(Tensor::where_(x, y, z)),
        32 => some(x.sum_with(SumOptions::from(&r.numbers()).keepdim(r.flag()))),
        33 => some(x.mean_with(SumOptions::from(&r.numbers()).keepdim(r.flag()))),
        34 => some(x.amax_with(ReduceOptions::from(&r.numbers()).keepdim(r.flag()))),
        35 => some(x.argmax_with(ArgOptions::new().dim(r.number()).keepdim(r.flag()))),
        36 => none(x.sum_with_out(SumOptions::from(&r.numbers()).keepdim(r.flag()), y)),
        37 => some(x.matmul(y)),
        38 => none(x.matmul_out(y, z)),
        39 => some(x.softmax(r.number())),
        40 => some(x.layer_norm_with(
            &r.numbers(),
            LayerNormOptions::new().weight(y).bias(z).eps(r.fraction()),
        )),
        41 => some(Tensor::cat(&[x, y, z], r.number())),
        42 => some(Tensor::stack(&[x, y], r.number())),
        43 => some(x.gather(r.number(), y)),
        44 => some(x.scatter_add(r.number(), y, z)),
        45 => some(x.index(&[Some(y), None, Some(z)])),
        46 => none(x.index_put_(&[Some(y)], z, r.flag()).map(drop)),
        47 => some(x.nonzero()),
        48 => some(x.masked_select(y)),
        49 => some(
            x.sort_with(SortOptions::new().dim(r.number()).descending(r.flag()))
                .map(|(_, indices)| indices),
        ),
        50 => some(x.dropout(r.fraction(), r.flag())),
        51 => none(x.uniform_(r.fraction(), r.fraction()).map(drop)),
        52 => some(x.to(*r.pick(devices))),
        53 => some(x.to(r.dtype())),
        54 => none(x.copy_(y).map(drop)),
        55 => some(x.requires_grad_(r.flag())),
        56 => none(x.sum()?.backward()),
        _ => none(x.to_f64_vec().map(drop)),
    }
}

fn names_its_operation(error: &Error) -> bool {
    error.operation().is_some() || error.is_out_of_memory()
}

fn hammer(devices: &[Device], seed: u64) -> (u64, u64) {
    let mut r = Random(seed);
    let first = || Tensor::ones(&[2, 3], (DType::F32, devices[0])).unwrap();
    let mut at_hand = vec![first()];
    let (mut taken, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        let method = r.below(METHODS);
        match call(&mut r, method, devices, &at_hand) {
            Ok(made) => {
                taken += 1;
                at_hand.extend(made.filter(|tensor| tensor.numel() < 1 << 20));
            }
            Err(error) => {
                refused += 1;
                assert!(names_its_operation(&error), "round {round}, method {method}: {error}");
            }
        }
        if at_hand.len() > 60 {
            at_hand.drain(..30);
        }
        if round % 4096 == 0 {
            at_hand.push(no_grad(first));
        }
    }
    (taken, refused)
}

fn nothing_left(device: Device) {
    let left = memory::live_by_origin(device);
    let lines: Vec<_> =
        left.iter().map(|row| format!("{} {:?}", row.bytes, row.origin.get())).collect();
    assert!(left.is_empty(), "on {device}: {}", lines.join("\n"));
}

#[test]
fn no_arguments_make_a_method_panic() {
    let limited = Configuration::parse("memory_limit:64MiB").unwrap();
    let cpu = device::private_cpu(&limited).unwrap();
    let (taken, refused) = hammer(&[cpu], 11);
    assert!(taken > ROUNDS / 5 && refused > ROUNDS / 5, "{taken} taken, {refused} refused");
    nothing_left(cpu);
    memory::arena(cpu).check_balanced().unwrap();
}

#[test]
fn nor_on_several_devices_at_once() {
    let limited = Configuration::parse("memory_limit:64MiB").unwrap();
    let cpu = device::private_cpu(&limited).unwrap();
    let accelerator =
        device::stand_in(StandIn { capacity_bytes: 64 << 20, ..StandIn::default() }).unwrap();
    let devices = [cpu, accelerator, device::dry(cpu).unwrap()];
    let (taken, refused) = hammer(&devices, 2);
    assert!(taken > ROUNDS / 10 && refused > ROUNDS / 10, "{taken} taken, {refused} refused");
    // Errors of queued work may be left; the books must balance all the same.
    let _ = device::synchronize(accelerator);
    for device in devices {
        nothing_left(device);
        memory::arena(device).check_balanced().unwrap();
    }
}
