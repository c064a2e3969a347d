//! What the oracle of the testkit does not cover: refusals that name operation and remedy,
//! promotion, aliasing, `out=` and in-place forms, what is saved, and that random operations
//! repeat.

use plimsoll_tensor::*;

type Outcome = Result<()>;

fn cpu() -> Device {
    Device::cpu()
}

fn floats(values: &[f32], sizes: &[i64]) -> Tensor {
    Tensor::from_slice(values, sizes, cpu()).unwrap()
}

fn whole(values: &[i64], sizes: &[i64]) -> Tensor {
    Tensor::from_slice(values, sizes, cpu()).unwrap()
}

fn counting(sizes: &[i64]) -> Tensor {
    let count: i64 = sizes.iter().product();
    Tensor::arange(0, count, 1, DType::F64).unwrap().view(sizes).unwrap()
}

/// The message of an error that must name its operation.
fn refusal<T: std::fmt::Debug>(op: &str, result: Result<T>) -> Error {
    let error = result.expect_err("this must be refused");
    assert_eq!(error.operation(), Some(op), "{error}");
    error
}

// ---- matmul ----

#[test]
fn a_product_broadcasts_its_batches() -> Outcome {
    let (a, b) = (counting(&[3, 1, 2, 4]), counting(&[2, 4, 5]));
    let product = a.matmul(&b)?;
    assert_eq!(product.shape(), [3, 2, 2, 5]);
    let (a, b, got) = (a.to_vec::<f64>()?, b.to_vec::<f64>()?, product.to_vec::<f64>()?);
    for (at, &value) in got.iter().enumerate() {
        let (i, j, row, column) = (at / 20, at / 10 % 2, at / 5 % 2, at % 5);
        let want: f64 = (0..4).map(|k| a[i * 8 + row * 4 + k] * b[j * 20 + k * 5 + column]).sum();
        assert_eq!(value, want);
    }
    Ok(())
}

#[test]
fn the_gradient_of_a_product_has_each_operands_shape() -> Outcome {
    let shapes: [(&[i64], &[i64]); 7] = [
        (&[3], &[3]),
        (&[2, 3], &[3]),
        (&[3], &[3, 4]),
        (&[5, 2, 3], &[3]),
        (&[5, 2, 3], &[3, 4]),
        (&[2, 3], &[5, 3, 4]),
        (&[5, 1, 2, 3], &[6, 3, 4]),
    ];
    for (left, right) in shapes {
        let a = counting(left).requires_grad_(true)?;
        let b = counting(right).requires_grad_(true)?;
        let product = a.matmul(&b)?;
        product.sum()?.backward()?;
        // By the rule on sums: each element of a meets every element of b's row (and of each
        // batch).
        let ones = product.detach().ones_like()?;
        let nudged = a.detach().add(1.0)?.matmul(&b.detach())?.sub(&product.detach())?;
        let by_grad = a.grad().unwrap().sum()?.item::<f64>()?;
        assert_eq!(by_grad, nudged.mul(&ones)?.sum()?.item::<f64>()?, "{left:?} {right:?}");
        let nudged = a.detach().matmul(&b.detach().add(1.0)?)?.sub(&product.detach())?;
        let by_grad = b.grad().unwrap().sum()?.item::<f64>()?;
        assert_eq!(by_grad, nudged.sum()?.item::<f64>()?, "{left:?} {right:?}");
        assert_eq!(a.grad().unwrap().shape(), a.shape());
        assert_eq!(b.grad().unwrap().shape(), b.shape());
    }
    Ok(())
}

#[test]
fn products_that_do_not_fit_are_refused() -> Outcome {
    let a = counting(&[2, 3]);
    let error = refusal("matmul", a.matmul(&a));
    assert!(error.is_shape() && error.to_string().contains("[2, 3] by [2, 3]"), "{error}");
    assert!(refusal("matmul", a.matmul(&counting(&[]))).to_string().contains("`mul`"));
    assert!(refusal("matmul", a.matmul(&a.t()?.float()?)).is_dtype());
    let mask = Tensor::zeros(&[2, 2], DType::Bool)?;
    assert!(refusal("matmul", mask.matmul(&mask)).is_dtype());
    // A product cannot be written over its own factor.
    let square = counting(&[2, 2]);
    assert!(refusal("matmul", square.matmul_out(&square, &square)).to_string().contains("shares"));
    assert_eq!(square.to_vec::<f64>()?, [0.0, 1.0, 2.0, 3.0]);
    Ok(())
}

#[test]
fn empty_products_are_zeros_or_empty() -> Outcome {
    let zeros = counting(&[2, 0]).matmul(&counting(&[0, 3]))?;
    assert_eq!(zeros.to_vec::<f64>()?, [0.0; 6]);
    assert_eq!(counting(&[0, 2, 3]).matmul(&counting(&[3, 4]))?.shape(), [0, 2, 4]);
    let w = counting(&[3, 4]).requires_grad_(true)?;
    counting(&[0, 2, 3]).matmul(&w)?.sum()?.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [0.0; 12]);
    Ok(())
}

// ---- reductions ----

#[test]
fn extremes_of_nothing_are_refused_and_sums_are_zero() -> Outcome {
    let empty = Tensor::zeros(&[2, 0], DType::F32)?;
    for result in [empty.amax_with([1]), empty.argmax_with(1), empty.argmin()] {
        assert!(result.unwrap_err().is_index());
    }
    assert_eq!(empty.amax_with([0])?.shape(), [0]);
    assert_eq!(empty.sum_with([1])?.to_vec::<f32>()?, [0.0, 0.0]);
    assert!(empty.all()?.to_bools()?[0] && !empty.any()?.to_bools()?[0]);
    Ok(())
}

#[test]
fn an_extreme_shared_by_several_shares_its_gradient() -> Outcome {
    let x = floats(&[3.0, 1.0, 3.0], &[3]).requires_grad_(true)?;
    x.amax()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.5, 0.0, 0.5]);
    Ok(())
}

// ---- softmax, layer_norm, dropout ----

#[test]
fn softmax_wants_floats_and_takes_a_number() -> Outcome {
    assert!(refusal("softmax", whole(&[1, 2], &[2]).softmax(0)).is_dtype());
    assert!(refusal("log_softmax", counting(&[2]).log_softmax(1)).is_index());
    assert_eq!(counting(&[]).softmax(-1)?.to_vec::<f64>()?, [1.0]);
    let (x, out) = (floats(&[0.0, 0.0], &[2]), Tensor::empty(&[2], DType::F32)?);
    x.softmax_with_out(0, SoftmaxOptions::new(), &out)?;
    assert_eq!(out.to_vec::<f32>()?, [0.5, 0.5]);
    // Over itself, but over no other part of its memory.
    x.softmax_with_out(0, SoftmaxOptions::new(), &x)?;
    assert_eq!(x.to_vec::<f32>()?, [0.5, 0.5]);
    let both = floats(&[0.0, 0.0, 0.0], &[3]);
    let (first, second) = (both.narrow(0, 0, 2)?, both.narrow(0, 1, 2)?);
    let shifted = first.softmax_with_out(0, SoftmaxOptions::new(), &second);
    assert!(refusal("softmax", shifted).is_shape());
    Ok(())
}

#[test]
fn layer_norm_keeps_its_statistics_only_for_backward() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[128, 64], (DType::F32, device))?;
    let w = Tensor::ones(&[64], (DType::F32, device))?;
    let before = memory::memory_allocated(device);
    let y = x.layer_norm_with(&[64], LayerNormOptions::new().weight(&w))?;
    assert_eq!(memory::memory_allocated(device) - before, y.nbytes());
    drop(y);
    let w = w.requires_grad_(true)?;
    let y = x.layer_norm_with(&[64], LayerNormOptions::new().weight(&w))?;
    // Mean and deviation, one float a row each.
    assert_eq!(memory::memory_allocated(device) - before, y.nbytes() + 2 * 128 * 4);
    Ok(())
}

#[test]
fn layer_norm_gradients_agree_with_the_recorded_form() -> Outcome {
    let x = floats(&[0.3, -1.2, 2.0, 0.1, 0.7, -0.4], &[2, 3]).double()?.detach();
    let w = floats(&[0.5, 1.5, -1.0], &[3]).double()?.detach();
    let grads = |create_graph: bool| -> Result<Vec<Vec<f64>>> {
        let (x, w) = (x.clone_tensor()?.requires_grad_(true)?, w.clone_tensor()?);
        let (w, b) = (w.requires_grad_(true)?, w.zeros_like()?.requires_grad_(true)?);
        let y = x.layer_norm_with(&[3], LayerNormOptions::new().weight(&w).bias(&b))?;
        let loss = y.mul(&y)?.mul(&counting(&[2, 3]))?.sum()?;
        let options = GradOptions { create_graph, ..GradOptions::default() };
        let grads = grad(&[&loss], &[&x, &w, &b], options)?;
        grads.iter().map(|g| g.as_ref().unwrap().to_vec::<f64>()).collect()
    };
    for (fused, recorded) in grads(false)?.iter().flatten().zip(grads(true)?.iter().flatten()) {
        assert!((fused - recorded).abs() < 1e-12, "{fused} {recorded}");
    }
    Ok(())
}

/// Weight and bias may be float32 beside halves: the values of the widened form, and no copies.
#[test]
fn layer_norm_of_halves_takes_float32_weights() -> Outcome {
    let numbers = counting(&[6, 40]).sin()?.to(DType::F32)?;
    let slope = counting(&[6, 40]).mul(0.7)?.cos()?;
    let scale = counting(&[40]).cos()?.add(1.5)?.to(DType::F32)?;
    let shift = counting(&[40]).sin()?.to(DType::F32)?;
    let leaf = |x: &Tensor| x.clone_tensor()?.requires_grad_(true);
    for dtype in [DType::BF16, DType::F16] {
        let halves = numbers.to(dtype)?;
        let slope = slope.to(dtype)?;
        // Results and gradients, by the operation and by a float32 copy of the rows.
        let run = |widened: bool, recorded: bool| -> Result<Vec<Tensor>> {
            let (x, w, b) = (leaf(&halves)?, leaf(&scale)?, leaf(&shift)?);
            let options = LayerNormOptions::new().weight(&w).bias(&b);
            let y = match widened {
                true => x.to(DType::F32)?.layer_norm_with(&[40], options)?.to(dtype)?,
                false => x.layer_norm_with(&[40], options)?,
            };
            let loss = y.mul(&slope)?.sum()?;
            let options = GradOptions { create_graph: recorded, ..GradOptions::default() };
            let mut found = vec![y.detach()];
            found.extend(grad(&[&loss], &[&x, &w, &b], options)?.into_iter().flatten());
            Ok(found)
        };
        for recorded in [false, true] {
            let (own, other) = (run(false, recorded)?, run(true, recorded)?);
            assert_eq!((own.len(), other.len()), (4, 4));
            let dtypes = own.iter().map(Tensor::dtype).collect::<Vec<_>>();
            assert_eq!(dtypes, [dtype, dtype, DType::F32, DType::F32]);
            for (own, other) in own.iter().zip(&other) {
                assert_eq!(own.detach().to_f64_vec()?, other.detach().to_f64_vec()?, "{dtype}");
            }
        }
        // Only the bias wants a gradient: sums in float32 of what came.
        let b = leaf(&shift)?;
        let options = LayerNormOptions::new().weight(&scale).bias(&b);
        let y = halves.layer_norm_with(&[40], options)?;
        let gradient = Some(slope.clone());
        y.backward_with(BackwardOptions { gradient, ..BackwardOptions::default() })?;
        let sums = slope.to(DType::F32)?.sum_with([0])?.to_f64_vec()?;
        let grad = b.grad().unwrap();
        assert_eq!((grad.dtype(), grad.to_f64_vec()?), (DType::F32, sums));
        // Behind a sum.
        let options = LayerNormOptions::new().weight(&scale).bias(&shift);
        let (sum, normed) = halves.add_layer_norm(&slope, &[40], options)?;
        let apart = halves.add(&slope)?;
        assert_eq!(sum.to_f64_vec()?, apart.to_f64_vec()?);
        assert_eq!(normed.to_f64_vec()?, apart.layer_norm_with(&[40], options)?.to_f64_vec()?);
        // One of each is refused, as PyTorch refuses it.
        let narrow = shift.to(dtype)?;
        let options = LayerNormOptions::new().weight(&scale).bias(&narrow);
        let error = refusal("layer_norm", halves.layer_norm_with(&[40], options));
        assert!(error.is_dtype() && error.to_string().contains("weight"), "{error}");
    }
    Ok(())
}

#[test]
fn layer_norm_of_halves_with_float32_weights_makes_no_copies() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[128, 64], (DType::BF16, device))?;
    let w = Tensor::ones(&[64], (DType::F32, device))?.requires_grad_(true)?;
    let before = memory::memory_allocated(device);
    memory::reset_peak_memory_stats(device);
    let y = x.layer_norm_with(&[64], LayerNormOptions::new().weight(&w))?;
    // The result, and two numbers a row.
    assert_eq!(memory::max_memory_allocated(device) - before, y.nbytes() + 2 * 128 * 4);
    Ok(())
}

#[test]
fn layer_norm_refuses_shapes_that_are_not_the_last() -> Outcome {
    let x = counting(&[2, 3]);
    assert!(refusal("layer_norm", x.layer_norm(&[2])).is_shape());
    assert!(refusal("layer_norm", x.layer_norm(&[])).is_shape());
    let w = counting(&[2]);
    let error = refusal("layer_norm", x.layer_norm_with(&[3], LayerNormOptions::new().weight(&w)));
    assert!(error.to_string().contains("weight"), "{error}");
    let bias = floats(&[0.0; 3], &[3]);
    let error = refusal("layer_norm", x.layer_norm_with(&[3], LayerNormOptions::new().bias(&bias)));
    assert!(error.is_dtype() && error.to_string().contains("bias"), "{error}");
    Ok(())
}

#[test]
fn dropout_saves_nothing_and_backward_has_the_same_mask() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let x = Tensor::ones(&[1000], (DType::F32, device))?.requires_grad_(true)?;
    let before = memory::memory_allocated(device);
    let y = x.dropout(0.25, true)?;
    assert_eq!(memory::memory_allocated(device) - before, 4096);
    y.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, y.to_vec::<f32>()?);
    let kept = y.to_vec::<f32>()?.iter().filter(|&&v| v != 0.0).count();
    assert!((650..850).contains(&kept), "{kept} of 1000 kept with probability 0.75");
    assert_eq!(x.detach().dropout(1.0, true)?.to_vec::<f32>()?, [0.0; 1000]);
    assert!(refusal("dropout", x.dropout(1.5, true)).is_invalid_argument());
    assert!(refusal("dropout", x.dropout(f64::NAN, true)).is_invalid_argument());
    Ok(())
}

// ---- random ----

#[test]
fn the_same_seed_gives_the_same_numbers_in_any_layout() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    manual_seed_on(device, 3);
    let plain = Tensor::rand(&[4, 6], (DType::F32, device))?;
    let next = Tensor::rand(&[4, 6], (DType::F32, device))?;
    assert_ne!(plain.to_vec::<f32>()?, next.to_vec::<f32>()?);
    manual_seed_on(device, 3);
    let turned = Tensor::zeros(&[6, 4], (DType::F32, device))?.t()?;
    turned.uniform_(0.0, 1.0)?;
    assert_eq!(plain.to_vec::<f32>()?, turned.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn random_ranges_and_dtypes_are_checked() -> Outcome {
    assert!(refusal("randint", Tensor::randint(3, 3, &[2], cpu())).is_invalid_argument());
    assert!(refusal("randint", Tensor::randint(0, 300, &[2], DType::U8)).is_invalid_argument());
    assert!(refusal("rand", Tensor::rand(&[2], DType::I64)).is_dtype());
    assert!(refusal("randn", Tensor::randn(&[-1], DType::F32)).is_shape());
    let x = counting(&[2]);
    assert!(refusal("uniform_", x.uniform_(1.0, 0.0)).is_invalid_argument());
    assert!(refusal("normal_", x.normal_(0.0, -1.0)).is_invalid_argument());
    let all = Tensor::randint(i64::MIN, i64::MAX, &[64], cpu())?.to_vec::<i64>()?;
    assert!(all.iter().any(|&v| v < 0) && all.iter().any(|&v| v > 0));
    Ok(())
}

// ---- cat and stack ----

#[test]
fn joining_promotes_and_skips_the_old_empty_tensor() -> Outcome {
    let (a, b) = (whole(&[1, 2], &[2]), floats(&[0.5], &[1]));
    let joined = Tensor::cat(&[&a, &b], 0)?;
    assert_eq!((joined.dtype(), joined.to_vec::<f32>()?), (DType::F32, vec![1.0, 2.0, 0.5]));
    let (matrix, nothing) = (counting(&[2, 2]), Tensor::zeros(&[0], DType::F64)?);
    assert_eq!(Tensor::cat(&[&nothing, &matrix, &nothing], 1)?.shape(), [2, 2]);
    assert_eq!(Tensor::cat(&[&nothing, &nothing], 0)?.shape(), [0]);
    Ok(())
}

#[test]
fn joining_refuses_what_does_not_fit() -> Outcome {
    assert!(refusal("cat", Tensor::cat(&[], 0)).is_invalid_argument());
    assert!(refusal("cat", Tensor::cat(&[&counting(&[])], 0)).to_string().contains("`stack`"));
    let (a, b) = (counting(&[2, 3]), counting(&[2, 4]));
    assert!(refusal("cat", Tensor::cat(&[&a, &b], 0)).is_shape());
    assert_eq!(Tensor::cat(&[&a, &b], -1)?.shape(), [2, 7]);
    assert!(refusal("stack", Tensor::stack(&[&a, &b], 0)).is_shape());
    assert!(refusal("stack", Tensor::stack(&[&a, &a], 3)).is_index());
    assert!(refusal("cat", Tensor::cat_out(&[&a, &a], 0, &a)).is_shape());
    Ok(())
}

#[test]
fn each_part_of_a_join_gets_its_part_of_the_gradient_in_its_dtype() -> Outcome {
    let a = floats(&[1.0, 2.0], &[2]).requires_grad_(true)?;
    let b = counting(&[3]).requires_grad_(true)?;
    Tensor::cat(&[&a, &b], 0)?.mul(&counting(&[5]))?.sum()?.backward()?;
    assert_eq!(a.grad().unwrap().to_vec::<f32>()?, [0.0, 1.0]);
    assert_eq!(b.grad().unwrap().to_vec::<f64>()?, [2.0, 3.0, 4.0]);
    Ok(())
}

// ---- index ----

#[test]
fn indexed_dimensions_stay_in_place_if_adjacent_and_lead_if_not() -> Outcome {
    let x = counting(&[2, 3, 4, 5]);
    let i = whole(&[0, 1, 0, 1, 0, 1], &[6]);
    assert_eq!(x.index(&[None, Some(&i), Some(&i)])?.shape(), [2, 6, 5]);
    assert_eq!(x.index(&[Some(&i), None, Some(&i)])?.shape(), [6, 3, 5]);
    let row = i.view(&[6, 1])?;
    assert_eq!(x.index(&[None, Some(&row), Some(&i)])?.shape(), [2, 6, 6, 5]);
    let mask = Tensor::ones(&[3, 4], DType::Bool)?;
    assert_eq!(x.index(&[None, Some(&mask)])?.shape(), [2, 12, 5]);
    Ok(())
}

#[test]
fn indices_out_of_range_name_the_index_and_the_size() -> Outcome {
    let x = counting(&[2, 3]);
    let bad = whole(&[3], &[1]);
    for error in [
        refusal("index", x.index(&[None, Some(&bad)])),
        refusal("index_put", x.index_put(&[None, Some(&bad)], &counting(&[]), false)),
        refusal("gather", x.gather(1, &bad.view(&[1, 1])?)),
        refusal("scatter_add", x.scatter_add(1, &bad.view(&[1, 1])?, &counting(&[1, 1]))),
    ] {
        assert!(error.is_index(), "{error}");
        assert!(error.to_string().contains("index 3") && error.to_string().contains("size 3"));
    }
    // Nothing is written by a call that fails.
    let indices = whole(&[0, 9], &[2]);
    assert!(x.index_put_(&[Some(&indices)], &counting(&[]), false).is_err());
    assert_eq!(x.to_vec::<f64>()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    Ok(())
}

#[test]
fn every_index_is_checked_even_the_farthest() -> Outcome {
    let x = Tensor::zeros(&[3], cpu())?;
    for far in [i64::MAX, i64::MIN, 3, -1] {
        let index = Tensor::full(&[2], far, (DType::I64, Device::cpu()))?;
        let source = Tensor::ones(&[2], cpu())?;
        assert!(x.gather(0, &index).unwrap_err().is_index(), "{far}");
        assert!(x.scatter_add(0, &index, &source).unwrap_err().is_index(), "{far}");
        assert!(x.scatter_add_(0, &index, &source).unwrap_err().is_index(), "{far}");
        // Negative ones count from the end here, as in PyTorch.
        let taken = far == -1;
        assert_eq!(x.index(&[Some(&index)]).is_ok(), taken, "{far}");
        assert_eq!(x.index_put(&[Some(&index)], &source, true).is_ok(), taken, "{far}");
    }
    assert_eq!(x.to_vec::<f32>()?, [0.0; 3]);
    Ok(())
}

#[test]
fn lists_of_indices_that_do_not_fit_are_refused() -> Outcome {
    let x = counting(&[2, 3]);
    let (i, mask) = (whole(&[0], &[1]), Tensor::zeros(&[3], DType::Bool)?);
    assert!(refusal("index", x.index(&[])).is_invalid_argument());
    assert!(refusal("index", x.index(&[None])).is_invalid_argument());
    assert!(refusal("index", x.index(&[Some(&i), Some(&i), Some(&i)])).is_index());
    assert!(refusal("index", x.index(&[Some(&mask)])).is_index());
    assert!(refusal("index", x.index(&[Some(&counting(&[1]))])).is_index());
    let (two, three) = (whole(&[0, 0], &[2]), whole(&[0, 0, 0], &[3]));
    assert!(refusal("index", x.index(&[Some(&two), Some(&three)])).is_index());
    assert!(refusal("index_put", x.index_put(&[Some(&i)], &counting(&[2]), false)).is_shape());
    let ints = whole(&[1], &[1]);
    assert!(refusal("index_put", x.index_put(&[Some(&i)], &ints, false)).is_dtype());
    assert!(refusal("index_put", x.index_put_(&[Some(&i)], &x, false)).is_shape());
    assert!(refusal("gather", x.gather(0, &i)).is_shape());
    assert!(refusal("gather", x.gather(0, &counting(&[1, 1]))).is_dtype());
    Ok(())
}

#[test]
fn gradients_add_up_where_an_index_comes_twice() -> Outcome {
    let x = counting(&[3]).requires_grad_(true)?;
    let i = whole(&[0, -1, 0], &[3]);
    x.index(&[Some(&i)])?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0, 0.0, 1.0]);
    let (y, v) = (counting(&[3]).requires_grad_(true)?, counting(&[2]).requires_grad_(true)?);
    let put = y.index_put(&[Some(&whole(&[2, 0], &[2]))], &v, false)?;
    put.mul(&counting(&[3]))?.sum()?.backward()?;
    assert_eq!(y.grad().unwrap().to_vec::<f64>()?, [0.0, 1.0, 0.0]);
    assert_eq!(v.grad().unwrap().to_vec::<f64>()?, [2.0, 0.0]);
    Ok(())
}

#[test]
fn a_source_larger_than_its_index_gives_its_first_part() -> Outcome {
    let source = counting(&[2, 3]).requires_grad_(true)?;
    let index = whole(&[1], &[1, 1]);
    let out = counting(&[2, 2]).scatter_add(1, &index, &source)?;
    assert_eq!(out.to_vec::<f64>()?, [0.0, 1.0, 2.0, 3.0]);
    out.sum()?.backward()?;
    assert_eq!(source.grad().unwrap().to_vec::<f64>()?, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn nonzero_of_everything_nothing_and_a_number() -> Outcome {
    assert_eq!(counting(&[0, 3]).nonzero()?.shape(), [0, 2]);
    assert_eq!(Tensor::ones(&[], DType::F32)?.nonzero()?.shape(), [1, 0]);
    assert_eq!(Tensor::zeros(&[2, 2], DType::F32)?.nonzero()?.shape(), [0, 2]);
    let dry = device::dry(cpu())?;
    let unseen = Tensor::zeros(&[4], (DType::F32, dry))?;
    let error = refusal("nonzero", unseen.nonzero());
    assert!(error.is_unsupported() && error.to_string().contains("dry_upper_bounds"), "{error}");
    Ok(())
}

#[test]
fn masks_broadcast_with_what_they_select_from() -> Outcome {
    let column = Tensor::from_bools(&[true, false], &[2, 1], cpu())?;
    assert_eq!(counting(&[2, 3]).masked_select(&column)?.to_vec::<f64>()?, [0.0, 1.0, 2.0]);
    let yes = Tensor::from_bools(&[true], &[], cpu())?;
    assert_eq!(counting(&[]).masked_select(&yes)?.to_vec::<f64>()?, [0.0]);
    assert!(refusal("masked_select", column.masked_select(&counting(&[1]))).is_dtype());
    Ok(())
}

// ---- sort ----

#[test]
fn sorting_is_stable_and_puts_nan_last() -> Outcome {
    let x = floats(&[2.0, f32::NAN, 1.0, 2.0, -0.0, 0.0], &[6]);
    let (values, indices) = x.sort_with(SortOptions::new().dim(0))?;
    assert_eq!(indices.to_vec::<i64>()?, [4, 5, 2, 0, 3, 1]);
    assert!(values.to_vec::<f32>()?[5].is_nan());
    assert_eq!(
        x.sort_with(SortOptions::new().dim(0).descending(true))?.1.to_vec::<i64>()?,
        [1, 0, 3, 2, 4, 5]
    );
    Ok(())
}

#[test]
fn the_gradient_of_a_sort_goes_back_where_it_came_from() -> Outcome {
    let x = floats(&[3.0, 1.0, 2.0, 9.0, 8.0, 7.0], &[2, 3]).requires_grad_(true)?;
    let weights = floats(&[1.0, 10.0, 100.0], &[3]);
    x.sort()?.0.mul(&weights)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [100.0, 1.0, 10.0, 100.0, 10.0, 1.0]);
    Ok(())
}

#[test]
fn sorting_numbers_nothing_and_into_given_tensors() -> Outcome {
    assert_eq!(counting(&[]).sort()?.1.to_vec::<i64>()?, [0]);
    assert_eq!(counting(&[0, 3]).sort_with(SortOptions::new().dim(0))?.0.shape(), [0, 3]);
    assert!(refusal("sort", counting(&[2]).sort_with(SortOptions::new().dim(1))).is_index());
    let (x, values) = (counting(&[2, 2]), Tensor::empty(&[2, 2], DType::F64)?);
    let indices = Tensor::empty(&[2, 2], DType::I64)?;
    x.sort_with_out(SortOptions::new().dim(0).descending(true), &values, &indices)?;
    assert_eq!(values.to_vec::<f64>()?, [2.0, 3.0, 0.0, 1.0]);
    assert_eq!(indices.to_vec::<i64>()?, [1, 1, 0, 0]);
    assert!(
        refusal("sort", x.sort_with_out(SortOptions::new().dim(0).descending(true), &x, &indices))
            .is_shape()
    );
    assert!(
        refusal(
            "sort",
            x.sort_with_out(SortOptions::new().dim(0).descending(true), &values, &values)
        )
        .is_shape()
    );
    Ok(())
}

// ---- pow ----

#[test]
fn powers_promote_like_pytorch_and_have_gradients_at_zero() -> Outcome {
    let ints = whole(&[2, 3], &[2]);
    assert_eq!(ints.pow(3)?.to_vec::<i64>()?, [8, 27]);
    assert_eq!(ints.pow(0.5)?.dtype(), DType::F32);
    assert!(refusal("pow", ints.pow(-1)).is_invalid_argument());
    assert!(refusal("pow", ints.pow_(0.5)).is_dtype());
    let x = floats(&[0.0, 2.0], &[2]).requires_grad_(true)?;
    x.pow(0.0)?.add(&x.pow(2.0)?)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.0, 4.0]);
    Ok(())
}

// ---- whole numbers past 2^53 ----

#[test]
fn whole_numbers_never_pass_through_a_double() -> Outcome {
    let big = (1i64 << 53) + 1;
    let from = 1i64 << 60;
    let up = Tensor::arange(from, from + 3, 1, DType::I64)?;
    assert_eq!(up.to_vec::<i64>()?, [from, from + 1, from + 2]);
    let down = Tensor::arange(from + 3, from, -2, DType::I64)?;
    assert_eq!(down.to_vec::<i64>()?, [from + 3, from + 1]);
    assert_eq!(Tensor::arange(i64::MIN, i64::MAX, i64::MAX, DType::I64)?.numel(), 3);
    assert!(refusal("arange", Tensor::arange(from + 3, from, 1, DType::I64)).is_invalid_argument());
    assert!(refusal("arange", Tensor::arange(0, 1, 0, DType::I64)).is_invalid_argument());
    assert!(Tensor::arange(i64::MIN, i64::MAX, 1, DType::I64).is_err());
    assert_eq!(Tensor::arange(from, from, 1, DType::I64)?.numel(), 0);
    let x = Tensor::full(&[1], big, DType::I64)?;
    assert_eq!(x.to_scalar()?, Scalar::Int(big));
    assert_eq!(x.add(2)?.to_vec::<i64>()?, [big + 2]);
    assert_eq!(x.add_with(big, AddOptions::new().alpha(3))?.to_vec::<i64>()?, [4 * big]);
    assert_eq!(x.eq(big - 1)?.to_bools()?, [false]);
    Ok(())
}

#[test]
fn numbers_that_do_not_fit_are_refused() -> Outcome {
    assert_eq!(Tensor::full(&[1], -1, DType::U8)?.to_vec::<u8>()?, [255]);
    assert_eq!(Tensor::full(&[1], 2.5, DType::I32)?.to_vec::<i32>()?, [2]);
    assert!(refusal("full", Tensor::full(&[1], 300, DType::U8)).is_invalid_argument());
    assert!(refusal("full", Tensor::full(&[1], 1i64 << 31, DType::I32)).is_invalid_argument());
    assert!(refusal("full", Tensor::full(&[1], f64::NAN, DType::I64)).is_invalid_argument());
    let x = Tensor::zeros(&[1], DType::I32)?;
    assert!(refusal("fill_", x.fill_(1i64 << 40)).is_invalid_argument());
    assert!(refusal("fill_", x.fill_(9_223_372_036_854_775_807.0)).is_invalid_argument());
    assert_eq!(x.to_vec::<i32>()?, [0]);
    Ok(())
}

// ---- replacing memory ----

#[test]
fn a_leaf_stays_itself_when_its_memory_is_replaced() -> Outcome {
    let device = plimsoll_tensor::device::private_cpu(&Default::default())?;
    let allocated = || plimsoll_tensor::memory::memory_allocated(device);
    let mut weight = Tensor::ones(&[256], (DType::F32, device))?.requires_grad_(true)?;
    let x = Tensor::full(&[256], 3.0, (DType::F32, device))?.requires_grad_(true)?;
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = calls.clone();
    weight.register_hook(move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(None)
    })?;
    let loss = weight.mul(&x)?.sum()?;
    weight.set_data(&Tensor::full(&[256], 5.0, (DType::F32, device))?)?;
    assert!(weight.requires_grad() && weight.is_leaf());
    loss.backward()?;
    // As in PyTorch: the graph reads a saved leaf through the leaf.
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [5.0; 256]);
    assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [3.0; 256]);
    weight.mul(2.0)?.sum()?.backward()?;
    assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [5.0; 256]);
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 2);
    drop((loss, x));
    weight.set_grad(None)?;
    assert_eq!(allocated(), 1024); // the old memory is gone
    weight.set_data(&Tensor::zeros(&[2], DType::F64)?)?;
    assert_eq!((weight.dtype(), weight.device(), allocated()), (DType::F64, cpu(), 0));
    assert!(refusal("set_data", weight.set_data(&whole(&[1], &[1]))).is_autograd());
    assert_eq!(weight.to_vec::<f64>()?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn a_result_keeps_its_history_when_its_memory_is_replaced() -> Outcome {
    let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    let mut y = x.mul(2.0)?;
    y.retain_grad()?;
    let old = y.clone();
    y.set_data(&floats(&[7.0, 8.0], &[2]))?;
    y.mul(3.0)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [6.0, 6.0]);
    assert_eq!(y.grad().unwrap().to_vec::<f32>()?, [3.0, 3.0]);
    assert_eq!((old.to_vec::<f32>()?, old.requires_grad()), (vec![2.0, 2.0], false));
    Ok(())
}

#[test]
fn set_is_an_in_place_write() -> Outcome {
    let mut x = Tensor::ones(&[2], DType::F32)?;
    let source = floats(&[1.0, 2.0, 3.0], &[3]);
    x.set_(&source)?;
    assert!(x.shares_storage_with(&source) && x.shape() == [3]);
    assert!(refusal("set_", x.set_(&whole(&[1], &[1]))).is_dtype());
    let mut leaf = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    assert!(refusal("set_", leaf.set_(&source)).is_autograd());
    plimsoll_tensor::no_grad(|| leaf.set_(&source))?;
    assert!(leaf.requires_grad() && leaf.shape() == [3]);
    Ok(())
}

/// Views of another dtype count the same bytes in other units.
#[test]
fn targets_that_share_bytes_with_an_input_under_another_dtype_are_refused() -> Result<()> {
    let b = Tensor::full(&[16], -1.0, DType::F64)?;
    let (input, bytes) = (b.narrow(0, 8, 8)?, b.view(DType::Bool)?);
    for (start, shared) in [(64, true), (120, true), (57, true), (0, false), (56, false)] {
        let written = input.lt_out(0.0, &bytes.narrow(0, start, 8)?);
        assert_eq!(written.is_err(), shared, "from byte {start}: {written:?}");
    }
    assert_eq!(bytes.narrow(0, 56, 8)?.to_bools()?, [true; 8]);
    // Running statistics inside the batch that they are of.
    let x = Tensor::ones(&[8, 4], DType::BF16)?;
    let mean = x.view(DType::F32)?.select(0, 0)?.narrow(0, 0, 2)?;
    let (x, var) = (x.narrow(1, 0, 2)?, Tensor::ones(&[2], DType::F32)?);
    let error = x
        .batch_norm_with(&mean, &var, BatchNormOptions::new().training(true))
        .expect_err("the statistics would overwrite the batch");
    assert!(error.to_string().contains("batch_norm"), "{error}");
    Ok(())
}
