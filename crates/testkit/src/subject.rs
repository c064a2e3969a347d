//! The runtime under test: devices to run on, inputs as its tensors, and its tensors as arrays
//! again.

use half::{bf16, f16};
use plimsoll_core::{DType, Device, Result};
use plimsoll_memory::Configuration;
use plimsoll_tensor::{Element, Tensor, Truth, device};

use crate::cases::{Inputs, Instance};
use crate::layouts::Placed;
use crate::oracle::{Array, Number};

/// A host device with an arena of its own, so that tests in parallel count their bytes alone.
pub fn plain_device() -> Device {
    device::private_cpu(&Configuration::default()).expect("a private CPU device opens")
}

/// As [`plain_device`], with storages losing their memory at random between operations.
pub fn chaos_device(seed: u64) -> Device {
    let device = plain_device();
    device::set_chaos(device, Some(seed));
    device
}

/// A stand-in accelerator of the test's own.
pub fn stand_in_device() -> Device {
    let configuration = Some(Configuration::default());
    let options = device::StandIn { configuration, ..device::StandIn::default() };
    device::stand_in(options).expect("a stand-in opens")
}

/// As [`stand_in_device`], with expandable segments.
pub fn expandable_device() -> Device {
    let configuration = Some(Configuration::default().with_expandable_segments(true));
    let options = device::StandIn { configuration, ..device::StandIn::default() };
    device::stand_in(options).expect("a stand-in opens")
}

/// GPU 0 with an arena of the test's own.
pub fn cuda_device() -> Result<Device> {
    device::private_cuda_over(0, |source| source, &Configuration::default())
}

/// A tensor over the whole storage of `placed`, and the view of it that the layout describes.
pub fn place(placed: &Placed, device: Device) -> Result<(Tensor, Tensor)> {
    let base = flat(placed.dtype, &placed.storage, device)?;
    let sizes = |v: &[usize]| v.iter().map(|&n| n as i64).collect::<Vec<_>>();
    let view =
        base.as_strided(&sizes(&placed.shape), &sizes(&placed.strides), placed.offset as i64)?;
    Ok((base, view))
}

/// A contiguous tensor with the values of `array`.
pub fn tensor(array: &Array, device: Device) -> Result<Tensor> {
    let sizes: Vec<i64> = array.shape().iter().map(|&n| n as i64).collect();
    flat(array.dtype(), array.values(), device)?.view(&sizes)
}

fn flat(dtype: DType, numbers: &[Number], device: Device) -> Result<Tensor> {
    fn of<T: Element>(
        numbers: &[Number],
        device: Device,
        convert: impl Fn(Number) -> T,
    ) -> Result<Tensor> {
        let values: Vec<T> = numbers.iter().map(|&n| convert(n)).collect();
        // A dry run has no memory to write values to.
        let host = if device.is_dry() { Device::cpu() } else { device };
        Tensor::from_slice(&values, &[values.len() as i64], host)?.to(device)
    }
    match dtype {
        DType::Bool => of(numbers, device, |n| Truth::new(n.is_true())),
        DType::U8 => of(numbers, device, |n| n.to_i64() as u8),
        DType::I8 => of(numbers, device, |n| n.to_i64() as i8),
        DType::I16 => of(numbers, device, |n| n.to_i64() as i16),
        DType::I32 => of(numbers, device, |n| n.to_i64() as i32),
        DType::I64 => of(numbers, device, Number::to_i64),
        DType::F16 => of(numbers, device, |n| f16::from_f64(n.to_f64())),
        DType::BF16 => of(numbers, device, |n| bf16::from_f64(n.to_f64())),
        DType::F32 => of(numbers, device, |n| n.to_f64() as f32),
        DType::F64 => of(numbers, device, Number::to_f64),
    }
}

/// A tensor's values, dtype and shape.
pub fn read(tensor: &Tensor) -> Result<Array> {
    fn of<T: Element>(tensor: &Tensor, convert: impl Fn(T) -> Number) -> Result<Vec<Number>> {
        Ok(tensor.to_vec::<T>()?.into_iter().map(convert).collect())
    }
    let values = match tensor.dtype() {
        DType::Bool => of(tensor, |v: Truth| Number::from(v.get())),
        DType::U8 => of(tensor, |v: u8| Number::Int(i64::from(v))),
        DType::I8 => of(tensor, |v: i8| Number::Int(i64::from(v))),
        DType::I16 => of(tensor, |v: i16| Number::Int(i64::from(v))),
        DType::I32 => of(tensor, |v: i32| Number::Int(i64::from(v))),
        DType::I64 => of(tensor, Number::Int),
        DType::F16 => of(tensor, |v: f16| Number::Float(v.to_f64())),
        DType::BF16 => of(tensor, |v: bf16| Number::Float(v.to_f64())),
        DType::F32 => of(tensor, |v: f32| Number::Float(f64::from(v))),
        DType::F64 => of(tensor, Number::Float),
    }?;
    Ok(Array::new(tensor.dtype(), tensor.shape(), values))
}

/// An instance's inputs as tensors, with the storages that they lie in.
#[derive(Debug)]
pub struct Stage {
    /// How the inputs lie in memory.
    pub placed: Vec<Placed>,
    /// Each input's whole storage.
    pub bases: Vec<Tensor>,
    /// The inputs.
    pub inputs: Inputs,
}

impl Stage {
    /// Makes the inputs of `instance` on `device`.
    pub fn new(instance: &Instance<'_>, device: Device) -> Result<Stage> {
        let placed = instance.inputs();
        let mut bases = Vec::new();
        let mut tensors = Vec::new();
        for input in &placed {
            let (base, view) = place(input, device)?;
            bases.push(base);
            tensors.push(view);
        }
        let (dtype, other) = (instance.dtype, instance.other);
        Ok(Stage { placed, bases, inputs: Inputs { tensors, device, dtype, other } })
    }

    /// Says which storage was written outside of what the call may write, if one was.
    pub fn disturbed(&self, writes: &[usize]) -> Result<Option<String>> {
        for (i, (placed, base)) in self.placed.iter().zip(&self.bases).enumerate() {
            let now = read(base)?;
            let watched: Vec<usize> = if writes.contains(&i) {
                placed.holes()
            } else {
                (0..placed.storage.len()).collect()
            };
            for position in watched {
                if now.values()[position] != placed.storage[position] {
                    return Ok(Some(format!(
                        "input {i}: position {position} of its storage changed from {:?} to {:?}",
                        placed.storage[position],
                        now.values()[position]
                    )));
                }
            }
        }
        Ok(None)
    }
}
