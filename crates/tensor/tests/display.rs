//! Printed tensors against what PyTorch printed: `data/display.txt`, made by `data/make_display.py`
//! from the same names.

use plimsoll_tensor::*;

fn counting(sizes: &[i64], dtype: DType) -> Result<Tensor> {
    Tensor::arange(0, sizes.iter().product::<i64>(), 1, dtype)?.view(sizes)
}

fn floats(values: &[f32]) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len() as i64], Device::cpu())
}

fn doubles(values: &[f64], dtype: DType) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len() as i64], Device::cpu())?.to(dtype)
}

fn sevenths(count: i64, dtype: DType) -> Result<Tensor> {
    counting(&[count], dtype)?.div(7)?.detach().requires_grad_(true)
}

/// The tensor that `make_display.py` printed under this name.
fn build(name: &str) -> Result<Tensor> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    match name {
        "scalar" => Tensor::scalar(2.5, DType::F32),
        "whole scalar" => Tensor::scalar(3.0, DType::F32),
        "int scalar" => Tensor::scalar(-7, DType::I64),
        "bool scalar" => Tensor::scalar(true, DType::Bool),
        "whole floats" => floats(&[1.0, -20.0, 300.0]),
        "fractions" => floats(&[0.5, -1.25, 10.0]),
        "rounded" => floats(&[0.123_456_78, 99.999_99, 0.000_15]),
        "scientific by ratio" => floats(&[0.001, 10.0, -3.5]),
        "scientific by size" => floats(&[1.0e9, 2.0e9]),
        "scientific by smallness" => floats(&[0.000_01, 0.000_02]),
        "scientific whole" => floats(&[1.0, 20_000.0, 0.0]),
        "huge" => doubles(&[1e300, -1e-300], DType::F64),
        "zeros" => Tensor::zeros(&[2, 2], DType::F32),
        "negative zero" => floats(&[-0.0, 1.0]),
        "not finite" => floats(&[nan, inf, -inf]),
        "not finite among whole" => floats(&[1.0, nan, -inf, 22.0]),
        "not finite among fractions" => floats(&[1.5, nan, -inf, 22.0]),
        "not finite scientific" => floats(&[1.5e-7, nan, inf]),
        "ints" => Tensor::from_slice(&[1i64, -200, 30, 4], &[2, 2], Device::cpu()),
        "large ints" => Tensor::from_slice(&[9_007_199_254_740_993i64, -1], &[2], Device::cpu()),
        "bools" => Tensor::from_bools(&[true, false, false, false], &[2, 2], Device::cpu()),
        "float64" => doubles(&[1.5], DType::F64),
        "float16" => doubles(&[1.5, 65504.0], DType::F16),
        "bfloat16" => doubles(&[0.1], DType::BF16),
        "int32" => doubles(&[1.0, 2.0], DType::I32),
        "uint8" => doubles(&[1.0, 255.0], DType::U8),
        "empty" => Tensor::zeros(&[0], DType::F32),
        "empty matrix" => Tensor::zeros(&[2, 0], DType::F32),
        "empty ints" => Tensor::zeros(&[0], DType::I64),
        "empty double matrix" => Tensor::zeros(&[0, 3], DType::F64),
        "wrapped" => counting(&[40], DType::F32)?.div(8),
        "three dimensions" => counting(&[2, 2, 3], DType::F32),
        "four dimensions" => counting(&[2, 1, 2, 2], DType::I64),
        "summary of a vector" => counting(&[2000], DType::I64),
        "summary of a matrix" => counting(&[40, 50], DType::F32)?.div(4),
        "summary of rows" => counting(&[500, 3], DType::I64),
        "summary of columns" => counting(&[2, 3, 400], DType::I64),
        "thousand" => counting(&[50, 20], DType::F32),
        "transposed" => counting(&[2, 3], DType::I64)?.t(),
        "leaf" => floats(&[1.5])?.requires_grad_(true),
        "wide leaf" => sevenths(12, DType::F32),
        "wide double leaf" => sevenths(11, DType::F64),
        "double leaf" => sevenths(8, DType::F64),
        other => panic!("display.txt has a case that is not built here: {other}"),
    }
}

#[test]
fn tensors_print_as_in_pytorch() -> Result<()> {
    let golden = include_str!("data/display.txt");
    let mut seen = 0;
    for case in golden.split("== ").skip(1) {
        let (name, expected) = case.split_once('\n').expect("a name line");
        assert_eq!(build(name)?.to_string(), expected.trim_end_matches('\n'), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 43);
    Ok(())
}

#[test]
fn history_and_place_follow_the_values() -> Result<()> {
    let x = floats(&[1.0])?.requires_grad_(true)?;
    assert_eq!(x.add(1)?.to_string(), "tensor([2.], grad_fn=<AddBackward0>)");
    assert_eq!(x.log_softmax(0)?.to_string(), "tensor([0.], grad_fn=<LogSoftmaxBackward0>)");
    let dry = device::dry(Device::cpu())?;
    let unseen = Tensor::zeros(&[2, 3], (DType::F64, dry))?;
    let expected = format!("tensor(..., device='{dry}', size=(2, 3), dtype=torch.float64)");
    assert_eq!(unseen.to_string(), expected);
    Ok(())
}

#[test]
fn printing_a_large_tensor_reads_its_edges_only() -> Result<()> {
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::zeros(&[4096, 1024], (DType::F32, device))?.t()?;
    memory::reset_peak_memory_stats(device);
    let (before, text) = (memory::memory_allocated(device), x.to_string());
    assert!(text.contains("..."));
    assert!(memory::max_memory_allocated(device) - before < 4096);
    Ok(())
}
