//! A dry run's peaks are those of the real run, to the byte: allocated and reserved, on the CPU and
//! on the stand-in, also where its segments expand, for programs of every sort. The programs never
//! look at values, which a dry run does not have.

use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, StandIn};
use plimsoll_tensor::*;

type Outcome = Result<()>;

/// What a program leaves in the book: peaks, and what is still there at its end.
#[derive(Debug, PartialEq, Eq)]
struct Bytes {
    peak_allocated: usize,
    peak_reserved: usize,
    allocated: usize,
    reserved: usize,
    allocations: i64,
}

fn bytes_of(device: Device, program: fn(Device) -> Outcome) -> Result<Bytes> {
    program(device)?;
    device::synchronize(device)?;
    Ok(Bytes {
        peak_allocated: memory::max_memory_allocated(device),
        peak_reserved: memory::max_memory_reserved(device),
        allocated: memory::memory_allocated(device),
        reserved: memory::memory_reserved(device),
        allocations: memory::memory_stats(device).allocation.all.allocated,
    })
}

/// Runs `program` on fresh devices, dry and real, and compares.
#[track_caller]
fn agrees(program: fn(Device) -> Outcome) {
    let plain = Configuration::default();
    let stand_in = |configuration: &Configuration| {
        let configuration = Some(configuration.clone());
        device::stand_in(StandIn { capacity_bytes: 2 << 30, configuration, ..StandIn::default() })
            .unwrap()
    };
    let expandable = plain.clone().with_expandable_segments(true);
    let cpu = device::private_cpu(&plain).unwrap();
    for real in [cpu, stand_in(&plain), stand_in(&expandable)] {
        let dry = device::dry(real).unwrap();
        let planned = bytes_of(dry, program).unwrap();
        assert_eq!(planned, bytes_of(real, program).unwrap(), "{dry}");
        assert!(planned.peak_allocated > 0 && planned.peak_reserved >= planned.peak_allocated);
        memory::arena(dry).check_balanced().unwrap();
    }
}

fn filled(sizes: &[i64], device: Device) -> Result<Tensor> {
    Tensor::full(sizes, 0.5, (DType::F32, device))
}

fn weight(sizes: &[i64], device: Device) -> Result<Tensor> {
    filled(sizes, device)?.requires_grad_(true)
}

/// One step of plain gradient descent.
fn descend(weights: &[&Tensor]) -> Outcome {
    no_grad(|| {
        for weight in weights {
            if let Some(grad) = weight.grad() {
                weight.sub_(&grad.mul(0.01)?)?;
            }
            weight.set_grad(None)?;
        }
        Ok(())
    })
}

#[test]
fn chains_of_elementwise_operations() {
    agrees(|device| {
        let mut x = filled(&[300, 1000], device)?;
        for _ in 0..20 {
            x = x.mul(1.5)?.tanh()?.add(&x)?.exp()?.relu()?;
        }
        let y = x.double()?.gelu()?;
        y.to(DType::BF16)?.add(1.0)?;
        Ok(())
    });
}

#[test]
fn broadcasts_and_comparisons() {
    agrees(|device| {
        let (rows, columns) = (filled(&[512, 1], device)?, filled(&[1, 700], device)?);
        let table = rows.add(&columns)?;
        let mask = table.gt(0.5)?;
        let chosen = Tensor::where_(&mask, &table, &rows)?;
        chosen.sub(&columns)?.div(&rows)?;
        Ok(())
    });
}

#[test]
fn views_and_the_copies_that_some_need() {
    agrees(|device| {
        let x = filled(&[64, 128, 32], device)?;
        let turned = x.permute(&[2, 0, 1])?;
        let flat = turned.reshape(&[-1])?; // copies
        let part = x.narrow(1, 5, 60)?.select(0, 3)?;
        let stepped = flat.slice(0, 10, 1000, 3)?.contiguous()?;
        part.contiguous()?.add(&stepped.narrow(0, 0, 32)?)?;
        x.expand(&[2, 64, 128, 32])?.clone_tensor()?;
        Ok(())
    });
}

#[test]
fn writes_in_place_and_into_given_tensors() {
    agrees(|device| {
        let (x, y) = (filled(&[1 << 18], device)?, filled(&[1 << 18], device)?);
        for _ in 0..10 {
            x.add_(&y)?.mul_(0.5)?.tanh_()?;
            x.add_(&x)?;
        }
        let out = x.empty_like()?;
        x.add_out(&y, &out)?;
        out.view(&[512, 512])?.t()?.zero_()?;
        Ok(())
    });
}

#[test]
fn reductions_of_every_layout() {
    agrees(|device| {
        let x = filled(&[200, 300, 40], device)?;
        x.sum()?;
        x.mean_with(SumOptions::from(&[0, 2]).keepdim(true))?.mul(&x)?;
        x.permute(&[2, 1, 0])?.sum_with([1])?;
        x.amax_with([-1])?.sub(1.0)?.sum()?;
        Ok(())
    });
}

#[test]
fn memory_of_many_sizes_that_comes_and_goes() {
    agrees(|device| {
        let mut held = Vec::new();
        for n in 0..400i64 {
            held.push(filled(&[1 + (n * 7919) % 300_000], device)?);
            if n % 3 == 0 {
                held.swap_remove((n * 31) as usize % held.len());
            }
            if n == 200 {
                held.clear();
                memory::empty_cache(device);
            }
        }
        Ok(())
    });
}

#[test]
fn a_graph_and_its_backward() {
    agrees(|device| {
        let x = weight(&[1000, 200], device)?;
        let loss = x.tanh()?.mul(&x)?.exp()?.add(&x.relu()?)?.mean()?;
        loss.backward()?;
        x.mul(2.0)?.sum()?.backward() // added to the gradient that is there
    });
}

#[test]
fn gradients_of_gradients() {
    agrees(|device| {
        let x = weight(&[500, 100], device)?;
        let y = x.mul(&x)?.tanh()?.sum()?;
        let options = GradOptions { create_graph: true, ..GradOptions::default() };
        let first = grad(&[&y], &[&x], options)?.remove(0).unwrap();
        first.mul(&first)?.sum()?.backward()
    });
}

#[test]
fn training_steps_of_an_elementwise_network() {
    agrees(|device| {
        let (scale, shift) = (weight(&[300], device)?, weight(&[300], device)?);
        let x = filled(&[256, 300], device)?;
        for _ in 0..5 {
            let hidden = x.mul(&scale)?.add(&shift)?.gelu()?;
            let error = hidden.sub(&x)?;
            error.mul(&error)?.mean()?.backward()?;
            descend(&[&scale, &shift])?;
        }
        Ok(())
    });
}

#[test]
fn training_steps_of_a_perceptron_with_dropout_and_norms() {
    agrees(|device| {
        let (w1, w2) = (weight(&[64, 256], device)?, weight(&[256, 10], device)?);
        let (scale, shift) = (weight(&[256], device)?, weight(&[256], device)?);
        let x = Tensor::randn(&[128, 64], (DType::F32, device))?;
        let labels = Tensor::zeros(&[128, 1], (DType::I64, device))?;
        for _ in 0..4 {
            let hidden = x
                .matmul(&w1)?
                .layer_norm_with(&[256], LayerNormOptions::new().weight(&scale).bias(&shift))?;
            let hidden = hidden.gelu()?.dropout(0.1, true)?;
            let loss = hidden.matmul(&w2)?.log_softmax(-1)?.gather(1, &labels)?.mean()?.neg()?;
            loss.backward()?;
            descend(&[&w1, &w2, &scale, &shift])?;
        }
        Ok(())
    });
}

#[test]
fn products_of_every_shape_with_their_workspaces() {
    agrees(|device| {
        let (a, b) = (filled(&[200, 300], device)?, filled(&[300, 400], device)?);
        a.matmul(&b)?;
        a.t()?.matmul(&filled(&[200, 33], device)?)?;
        filled(&[7, 200, 300], device)?.matmul(&b)?;
        a.to(DType::BF16)?.matmul(&b.to(DType::BF16)?)?;
        filled(&[1, 1024], device)?.matmul(&filled(&[1024, 1024], device)?)?;
        a.double()?.matmul(&b.double()?)?;
        Ok(())
    });
}

#[test]
fn sorts_joins_and_indices() {
    agrees(|device| {
        let x = Tensor::rand(&[100, 1000], (DType::F32, device))?;
        let (values, order) = x.sort_with(SortOptions::new().dim(1).descending(true))?;
        let joined = Tensor::cat(&[&values, &x, &values.narrow(1, 0, 10)?], 1)?;
        joined.softmax(1)?.t()?.sort_with(SortOptions::new().dim(1))?;
        let gathered = x.gather(1, &order)?;
        gathered.scatter_add(1, &order, &values)?;
        Tensor::stack(&[&x, &gathered], 0)?.sum_with([0])?;
        Ok(())
    });
}

#[test]
fn recomputing_instead_of_saving() {
    agrees(|device| {
        let w = weight(&[400, 400], device)?;
        let block = |x: &Tensor| -> Result<Tensor> { x.tanh()?.mul(&w)?.exp()?.tanh() };
        let mut inputs = vec![filled(&[400, 400], device)?];
        for _ in 0..4 {
            let next = no_grad(|| block(&inputs[inputs.len() - 1]))?;
            inputs.push(next);
        }
        let mut grad = inputs.pop().unwrap().ones_like()?;
        while let Some(input) = inputs.pop() {
            let input = input.detach().requires_grad_(true)?;
            let options = BackwardOptions { gradient: Some(grad), ..BackwardOptions::default() };
            block(&input)?.backward_with(options)?;
            grad = input.grad().unwrap();
        }
        Ok(())
    });
}

#[test]
fn two_streams_have_pools_of_their_own() {
    agrees(|device| {
        let side = Stream::new(device)?;
        for _ in 0..4 {
            let here = filled(&[1 << 18], device)?.add(1.0)?;
            let there = with_stream(&side, || filled(&[1 << 18], device)?.tanh())?;
            drop((here, there));
        }
        Ok(())
    });
}

#[test]
fn what_does_not_fit_fails_in_the_dry_run_too() {
    for expandable in [false, true] {
        let configuration = Some(Configuration::default().with_expandable_segments(expandable));
        let options = StandIn { capacity_bytes: 64 << 20, configuration, ..StandIn::default() };
        let real = device::stand_in(options).unwrap();
        for device in [device::dry(real).unwrap(), real] {
            let held = filled(&[10 << 20], device).unwrap();
            assert!(filled(&[10 << 20], device).unwrap_err().is_out_of_memory());
            drop(held);
            filled(&[10 << 20], device).unwrap();
        }
    }
}

#[test]
fn a_dry_tensor_has_no_values_to_read() {
    let dry = device::dry(Device::cpu()).unwrap();
    let x = filled(&[4], dry).unwrap();
    let error = x.to_vec::<f32>().unwrap_err();
    assert!(error.is_device() && error.to_string().contains("dry(cpu"), "{error}");
    assert!(x.to(Device::cpu()).unwrap_err().is_unsupported());
}
