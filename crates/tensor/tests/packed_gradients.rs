//! Gradients of a tensor that is used through parts of it: queries, keys and values of one product
//! above all. Attention writes theirs as parts of one tensor, which then is the gradient: nothing
//! is copied, added or filled. The truth is the same program over three leaves; bytes and launches
//! are those that the book and an observer count.

mod counted;

use std::sync::{Arc, Mutex};

use counted::{devices, launches, numbers};
use plimsoll_tensor::device;
use plimsoll_tensor::*;

type Outcome = Result<()>;

/// Batch and length, heads and their width.
const B: i64 = 2;
const T: i64 = 24;
const H: i64 = 3;
const D: i64 = 8;

/// How a product `[B, T, 3 H D]` becomes queries, keys and values `[B, H, T, D]`.
#[derive(Clone, Copy, Debug)]
enum Way {
    Split,
    Chunk,
    Select,
    Slice,
    Unbind,
}

const WAYS: [Way; 5] = [Way::Split, Way::Chunk, Way::Select, Way::Slice, Way::Unbind];

fn heads(x: &Tensor) -> Result<Tensor> {
    x.view(&[B, T, H, D])?.transpose(1, 2)
}

fn parts(x: &Tensor, way: Way) -> Result<[Tensor; 3]> {
    let width = H * D;
    let parts: Vec<Tensor> = match way {
        Way::Split => x.split(width, 2)?.iter().map(heads).collect::<Result<_>>()?,
        Way::Chunk => x.chunk(3, -1)?.iter().map(heads).collect::<Result<_>>()?,
        Way::Select => {
            let all = x.view(&[B, T, 3, H, D])?;
            (0..3).map(|at| all.select(2, at)?.transpose(1, 2)).collect::<Result<_>>()?
        }
        Way::Slice => {
            let part = |at: i64| heads(&x.slice(-1, at * width, (at + 1) * width, 1)?);
            (0..3).map(part).collect::<Result<_>>()?
        }
        Way::Unbind => x.view(&[B, T, 3, H, D])?.permute(&[2, 0, 3, 1, 4])?.unbind(0)?,
    };
    Ok(parts.try_into().expect("three parts"))
}

fn attention(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor> {
    let past = ScaledDotProductAttentionOptions::new().is_causal(true);
    query.scaled_dot_product_attention_with(key, value, past)
}

fn leaf(sizes: &[i64], to: impl Into<To>) -> Result<Tensor> {
    numbers(sizes, to)?.requires_grad_(true)
}

fn backward_from(tensor: &Tensor, gradient: &Tensor) -> Outcome {
    let gradient = Some(gradient.clone());
    tensor.backward_with(BackwardOptions { gradient, ..Default::default() })
}

#[test]
fn packed_queries_keys_and_values_get_their_gradient_without_copies() -> Outcome {
    for device in devices()? {
        for way in WAYS {
            let on = (DType::F32, device);
            let leaf = |sizes: &[i64]| Tensor::ones(sizes, on)?.requires_grad_(true);
            let (x, weight, bias) =
                (leaf(&[B * T, H * D])?, leaf(&[H * D, 3 * H * D])?, leaf(&[3 * H * D])?);
            let product = bias.addmm(&x, &weight)?.view(&[B, T, 3 * H * D])?;
            let [q, k, v] = parts(&product, way)?;
            let seen = attention(&q, &k, &v)?;
            drop((product, q, k, v));
            let gradient = Tensor::ones(&[B, H, T, D], on)?;
            let found = launches(device, || backward_from(&seen, &gradient))?;
            // The gradient of the product is read as it is by all three derivatives.
            assert_eq!(
                found,
                ["attention_backward", "sum", "matmul", "matmul"],
                "{device} {way:?}"
            );
        }
    }
    Ok(())
}

/// The sizes of GPT-2, planned: in one piece too.
#[test]
fn the_gradient_of_gpt2s_product_is_attentions_own_memory() -> Outcome {
    let device = device::dry(device::private_cpu(&Default::default())?)?;
    let on = (DType::BF16, device);
    let x = Tensor::empty(&[16, 1024, 3 * 768], on)?.requires_grad_(true)?;
    let all = x.view(&[16, 1024, 3, 12, 64])?;
    let ways: [Vec<Tensor>; 3] = [
        x.split(768, 2)?
            .iter()
            .map(|part| part.view(&[16, 1024, 12, 64])?.transpose(1, 2))
            .collect::<Result<_>>()?,
        (0..3).map(|at| all.select(2, at)?.transpose(1, 2)).collect::<Result<_>>()?,
        all.permute(&[2, 0, 3, 1, 4])?.unbind(0)?,
    ];
    for way in ways {
        let seen = attention(&way[0], &way[1], &way[2])?;
        drop(way);
        x.set_grad(None)?;
        let gradient = Tensor::empty(&[16, 12, 1024, 64], on)?;
        let found = launches(device, || backward_from(&seen, &gradient))?;
        assert_eq!(found, ["attention_backward"]);
        assert_eq!(x.grad().unwrap().strides(), x.strides());
    }
    Ok(())
}

/// Attention's gradients become the leaf's: of a packed leaf in one piece of memory, at the same
/// peak as those of three leaves, on every device and in a dry run.
#[test]
fn the_gradient_of_a_packed_leaf_is_attentions_own_memory() -> Outcome {
    for way in WAYS {
        let mut all = Vec::new();
        for device in devices()? {
            let on = (DType::F32, device);
            let x = Tensor::ones(&[B, T, 3 * H * D], on)?.requires_grad_(true)?;
            let packed = measured(device, parts(&x, way)?)?;
            let grad = x.grad().unwrap();
            assert_eq!((grad.strides(), grad.storage_nbytes()), (x.strides(), x.nbytes()));
            let leaf = || Tensor::ones(&[B, H, T, D], on)?.requires_grad_(true);
            let leaves = [leaf()?, leaf()?, leaf()?];
            let apart = measured(device, leaves.clone())?;
            // One gradient or three, and attention's workspace.
            assert_eq!((packed.1, apart.1), (2, 4), "{device} {way:?}");
            assert_eq!(packed.0, apart.0, "{device} {way:?}");
            all.push(packed);
        }
        assert!(all.iter().all(|found| *found == all[0]), "{way:?}: {all:?}");
    }
    Ok(())
}

/// What backward of attention takes at its peak, and in how many pieces.
fn measured(device: Device, [q, k, v]: [Tensor; 3]) -> Result<(usize, i64)> {
    let seen = attention(&q, &k, &v)?;
    drop((q, k, v));
    let gradient = Tensor::ones(&[B, H, T, D], (DType::F32, device))?;
    let (before, pieces) = (memory::memory_allocated(device), allocations(device));
    let scope = memory::peak_scope(device);
    let found = launches(device, || backward_from(&seen, &gradient))?;
    assert_eq!(found, ["attention_backward"], "{device}");
    Ok((scope.allocated_bytes_peak() - before, allocations(device) - pieces))
}

fn allocations(device: Device) -> i64 {
    memory::memory_stats(device).allocation.all.allocated
}

/// What is made of queries, keys and values.
type Program = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;

/// The gradients that `program` gives a packed leaf, and three leaves of their own.
fn both(program: Program, way: Way, dtype: DType) -> Result<[Vec<f64>; 2]> {
    let x = leaf(&[B, T, 3 * H * D], dtype)?;
    let [q, k, v] = parts(&x, way)?;
    program(&q, &k, &v)?.sum()?.backward()?;
    let packed = x.grad().unwrap().double()?.to_vec::<f64>()?;
    let apart = parts(&x.detach(), way)?.map(|part| {
        let part = part.clone_tensor()?;
        part.requires_grad_(true)
    });
    let [q, k, v] = apart;
    let apart = [q?, k?, v?];
    program(&apart[0], &apart[1], &apart[2])?.sum()?.backward()?;
    let whole = Tensor::zeros(&[B, T, 3 * H * D], dtype)?;
    for (place, leaf) in parts(&whole, way)?.iter().zip(&apart) {
        if let Some(grad) = leaf.grad() {
            place.copy_(&grad)?;
        }
    }
    Ok([packed, whole.double()?.to_vec::<f64>()?])
}

fn weighted(x: &Tensor) -> Result<Tensor> {
    let sizes: Vec<i64> = x.shape().iter().map(|&size| size as i64).collect();
    x.mul(&numbers(&sizes, x.dtype())?)
}

#[test]
fn packed_gradients_are_those_of_three_leaves() -> Outcome {
    let programs: [(&str, Program); 9] = [
        ("all", |q, k, v| weighted(&attention(q, k, v)?)),
        ("without a query", |_, k, v| weighted(&attention(&k.tanh()?, k, v)?)),
        ("the value alone", |_, _, v| weighted(v)),
        ("nothing but a sum of keys", |_, k, _| k.sum()),
        ("the key twice", |q, k, v| weighted(&attention(q, k, v)?.add(&weighted(k)?)?)),
        ("the key as the value", |q, k, v| weighted(&attention(q, k, k)?.add(&v.tanh()?)?)),
        ("turned heads of another", |q, k, v| weighted(&attention(k, q, v)?)),
        ("two attentions", |q, k, v| weighted(&attention(q, k, v)?.add(&attention(v, k, q)?)?)),
        ("a query with a function", |q, k, v| weighted(&attention(&q.sin()?, k, v)?)),
    ];
    for (name, program) in programs {
        for way in WAYS {
            for dtype in [DType::F64, DType::F32, DType::BF16] {
                let [packed, apart] = both(program, way, dtype)?;
                let error =
                    packed.iter().zip(&apart).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                // Sums of several gradients may be added in another order.
                let most = if dtype == DType::BF16 { 0.02 } else { 1e-6 };
                assert!(error <= most, "{name}, {way:?}, {dtype}: {error}");
                assert!(packed.iter().any(|value| *value != 0.0), "{name}");
            }
        }
    }
    Ok(())
}

/// Fewer heads of keys and values, which lie behind the queries in one product.
#[test]
fn packed_heads_that_share_keys_get_their_gradient_without_copies() -> Outcome {
    const KEYS: i64 = 2;
    let device = device::private_cpu(&Default::default())?;
    let (heads, sizes) = (2 * KEYS, [2 * KEYS * D, KEYS * D, KEYS * D]);
    let x = leaf(&[B, T, sizes.iter().sum()], (DType::F64, device))?;
    let options = ScaledDotProductAttentionOptions::new().enable_gqa(true);
    let run = |parts: &[Tensor]| -> Result<Tensor> {
        let turn = |x: &Tensor, heads: i64| x.view(&[B, T, heads, D])?.transpose(1, 2);
        let [q, k, v] = [turn(&parts[0], heads)?, turn(&parts[1], KEYS)?, turn(&parts[2], KEYS)?];
        q.scaled_dot_product_attention_with(&k, &v, options.clone())
    };
    let seen = run(&x.split_with_sizes(&sizes, -1)?)?;
    let gradient = numbers(&[B, heads, T, D], (DType::F64, device))?;
    let found = launches(device, || backward_from(&seen, &gradient))?;
    assert_eq!(found, ["attention_backward"]);
    let apart: Vec<Tensor> = x
        .detach()
        .split_with_sizes(&sizes, -1)?
        .iter()
        .map(|part| part.clone_tensor()?.requires_grad_(true))
        .collect::<Result<_>>()?;
    backward_from(&run(&apart)?, &gradient)?;
    let grads: Vec<Tensor> = apart.iter().map(|part| part.grad().unwrap()).collect();
    let whole = Tensor::cat(&grads.iter().collect::<Vec<_>>(), -1)?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, whole.to_vec::<f64>()?);
    Ok(())
}

/// A hook sees a part's gradient and may write it, or give another one; it changes that part alone.
#[test]
fn hooks_change_the_gradient_of_their_part_alone() -> Outcome {
    for way in WAYS {
        for writes in [false, true] {
            for at in 0..3 {
                let plain = leaf(&[B, T, 3 * H * D], DType::F64)?;
                let [q, k, v] = parts(&plain, way)?;
                weighted(&attention(&q, &k, &v)?)?.sum()?.backward()?;
                let x = plain.detach().requires_grad_(true)?;
                let cut = parts(&x, way)?;
                let held = Arc::new(Mutex::new(None));
                let kept = held.clone();
                cut[at].register_hook(move |grad| {
                    *kept.lock().unwrap() = Some(grad.clone());
                    if writes { grad.mul_(3.0).map(|_| None) } else { grad.mul(3.0).map(Some) }
                })?;
                let [q, k, v] = &cut;
                // The whole gets a gradient besides, which must not be added to what is held.
                let all = weighted(&attention(q, k, v)?)?.sum()?.add(&x.sum()?)?;
                all.backward()?;
                let expected = plain.grad().unwrap();
                no_grad(|| parts(&expected, way)?[at].mul_(3.0).map(drop))?;
                let seen = held.lock().unwrap().take().unwrap();
                let factor = if writes { 1.0 } else { 3.0 };
                let part = parts(&expected, way)?[at].contiguous()?.to_vec::<f64>()?;
                assert_eq!(seen.mul(factor)?.contiguous()?.to_vec::<f64>()?, part);
                let grad = x.grad().unwrap();
                assert!(!grad.shares_storage_with(&seen) && grad.storage_nbytes() == x.nbytes());
                let close = grad.sub(1.0)?.sub(&expected)?.abs()?.max()?.item::<f64>()?;
                assert!(close < 1e-12, "{way:?} {at} {writes}: {close}");
            }
        }
    }
    Ok(())
}

#[test]
fn packed_gradients_of_a_retained_graph_add_up() -> Outcome {
    let x = leaf(&[B, T, 3 * H * D], DType::F64)?;
    let product = x.mul(1.0)?;
    product.retain_grad()?;
    let [q, k, v] = parts(&product, Way::Unbind)?;
    q.retain_grad()?;
    let loss = weighted(&attention(&q, &k, &v)?)?.sum()?;
    let again = || BackwardOptions { retain_graph: true, ..Default::default() };
    loss.backward_with(again())?;
    let first = x.grad().unwrap().to_vec::<f64>()?;
    let of_query = q.grad().unwrap();
    assert_eq!(of_query.storage_nbytes(), of_query.nbytes());
    loss.backward_with(again())?;
    let twice: Vec<f64> = first.iter().map(|value| 2.0 * value).collect();
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, twice);
    assert_eq!(product.grad().unwrap().to_vec::<f64>()?, twice);
    Ok(())
}

/// The second derivative, by differences of the first.
#[test]
fn packed_gradients_are_differentiated_again() -> Outcome {
    for way in WAYS {
        let x = leaf(&[B, T, 3 * H * D], DType::F64)?;
        let along = numbers(&[B, T, 3 * H * D], DType::F64)?.cos()?;
        let first = |x: &Tensor, create_graph: bool| -> Result<Tensor> {
            let [q, k, v] = parts(x, way)?;
            let loss = weighted(&attention(&q, &k, &v)?)?.sum()?;
            let options = GradOptions { create_graph, ..Default::default() };
            Ok(grad(&[&loss], &[x], options)?.remove(0).unwrap())
        };
        let product = first(&x, true)?.mul(&along)?.sum()?;
        let second = grad(&[&product], &[&x], GradOptions::default())?.remove(0).unwrap();
        const STEP: f64 = 1e-5;
        let at = |step: f64| -> Result<Tensor> {
            let there = x.detach().add(&along.mul(step)?)?.requires_grad_(true)?;
            first(&there, false)
        };
        let expected = at(STEP)?.sub(&at(-STEP)?)?.div(2.0 * STEP)?;
        let error = second.sub(&expected)?.abs()?.max()?.item::<f64>()?;
        assert!(error < 1e-7, "{way:?}: {error}");
    }
    Ok(())
}

/// Gradients that are asked for are those of three leaves, whichever are asked for.
#[test]
fn gradients_of_some_parts_are_asked_for() -> Outcome {
    let x = leaf(&[B, T, 3 * H * D], DType::F64)?;
    let product = x.mul(1.0)?;
    let [q, k, v] = parts(&product, Way::Select)?;
    let loss = weighted(&attention(&q, &k, &v)?)?.sum()?;
    let retain = || GradOptions { retain_graph: true, ..Default::default() };
    let all = grad(&[&loss], &[&product, &q, &k, &v], retain())?;
    let all: Vec<Tensor> = all.into_iter().map(Option::unwrap).collect();
    let cut = parts(&all[0], Way::Select)?;
    for (index, part) in [&q, &k, &v].into_iter().enumerate() {
        let alone = grad(&[&loss], &[part], retain())?.remove(0).unwrap();
        let expected = cut[index].contiguous()?.to_vec::<f64>()?;
        assert_eq!(alone.contiguous()?.to_vec::<f64>()?, expected);
        assert_eq!(all[1 + index].contiguous()?.to_vec::<f64>()?, expected);
    }
    Ok(())
}

/// `cat` hands out slices of one gradient: put together again in the same order they are it.
#[test]
fn what_is_split_and_joined_again_gets_its_gradient_without_copies() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    for (dim, reversed) in [(0, false), (1, false), (0, true), (1, true)] {
        let x = leaf(&[4, 6], (DType::F64, device))?;
        let mut parts = x.split(2, dim)?;
        if reversed {
            parts.reverse();
        }
        let joined = Tensor::cat(&parts.iter().collect::<Vec<_>>(), dim)?;
        let gradient = numbers(&[4, 6], (DType::F64, device))?;
        let found = launches(device, || backward_from(&joined, &gradient))?;
        let mut pieces = gradient.split(2, dim)?;
        if reversed {
            pieces.reverse();
        }
        let expected = Tensor::cat(&pieces.iter().collect::<Vec<_>>(), dim)?;
        assert_eq!(x.grad().unwrap().to_vec::<f64>()?, expected.to_vec::<f64>()?);
        // The first gradient was given, so the leaf's is a copy of it; or each part is copied.
        let copies = if reversed { pieces.len() } else { 1 };
        assert_eq!(found.len(), copies, "{dim} {reversed} {found:?}");
        assert!(!x.grad().unwrap().shares_storage_with(&gradient));
    }
    Ok(())
}

/// Parts that meet nothing are copied into place; only what they leave out is filled.
#[test]
fn parts_are_copied_into_place_and_the_rest_is_zero() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let x = leaf(&[3, 7], (DType::F64, device))?;
    let [a, b] = [x.narrow(1, 1, 2)?.exp()?, x.select(1, 4)?.exp()?];
    let ones = [a.ones_like()?, b.ones_like()?];
    let roots = [(&a, Some(&ones[0])), (&b, Some(&ones[1]))];
    let found = launches(device, || backward(&roots, Default::default()))?;
    let count = |name: &str| found.iter().filter(|launch| launch.contains(name)).count();
    assert_eq!((count("copy"), count("fill"), count("unview")), (2, 3, 0), "{found:?}");
    assert_eq!(count("add"), 0, "{found:?}");
    let exp = x.detach().exp()?.to_vec::<f64>()?;
    let expected: Vec<f64> = exp
        .iter()
        .enumerate()
        .map(|(i, e)| if [1, 2, 4].contains(&(i % 7)) { *e } else { 0.0 })
        .collect();
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, expected);
    Ok(())
}

/// The gradient of parts of a turned tensor lies as that does: turning it back is a view.
#[test]
fn gradients_of_parts_lie_as_what_they_are_parts_of() -> Outcome {
    let x = leaf(&[2, 3, 4], DType::F64)?;
    let turned = x.mul(1.0)?.permute(&[2, 0, 1])?;
    let parts = turned.split(2, 0)?;
    let sum = parts[0].exp()?.sum()?.add(&parts[1].sin()?.sum()?)?;
    let found = grad(&[&sum], &[&turned], GradOptions::default())?.remove(0).unwrap();
    assert_eq!((found.shape(), found.strides()), (turned.shape(), turned.strides()));
    assert!(found.permute(&[1, 2, 0])?.is_contiguous());
    Ok(())
}

/// Random parts of one tensor, each with a gradient of its own, in every order. The truth counts
/// them element by element.
#[test]
fn random_parts_add_up() -> Outcome {
    let mut state = 1u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % limit
    };
    const SHAPE: [i64; 3] = [4, 1, 5];
    let places = Tensor::arange(0, 20, 1, DType::I64)?.view(&SHAPE)?;
    for round in 0..600 {
        let x = leaf(&SHAPE, DType::F64)?;
        // Also parts of what is no leaf, lies otherwise, or has holes around it.
        let (base, known) = match round % 4 {
            0 => (x.clone(), places.clone()),
            1 => (x.mul(1.0)?, places.clone()),
            2 => (x.mul(1.0)?.permute(&[2, 1, 0])?, places.permute(&[2, 1, 0])?),
            _ => (x.mul(1.0)?.slice(2, 0, 5, 2)?, places.slice(2, 0, 5, 2)?),
        };
        let mut expected = [0.0; 20];
        let mut total = Tensor::zeros(&[], DType::F64)?;
        let mut joined = Vec::new();
        for _ in 0..1 + below(5) {
            let dim = below(3) as i64;
            let size = base.size(dim)?;
            let start = below(size as usize) as i64;
            let length = below((size - start) as usize + 1) as i64;
            let kind = below(6);
            let cut = |x: &Tensor| match kind {
                0 | 1 => x.narrow(dim, start, length),
                2 => x.select(dim, start),
                3 => x.slice(dim, start, size, 2),
                4 => x.slice(dim, start - size, i64::MAX, 1),
                _ => Ok(x.clone()),
            };
            let (part, there) = (cut(&base)?, cut(&known)?);
            let factor = 1.0 + below(9) as f64;
            for place in there.contiguous()?.to_vec::<i64>()? {
                expected[place as usize] += factor;
            }
            let scaled = part.mul(factor)?;
            if below(3) == 0 {
                joined.push(scaled.reshape(&[-1])?);
            } else {
                total = total.add(&scaled.sum()?)?;
            }
        }
        if !joined.is_empty() {
            total = total.add(&Tensor::cat(&joined.iter().collect::<Vec<_>>(), 0)?.sum()?)?;
        }
        total.backward()?;
        // What joins no elements has none of their gradients.
        let Some(found) = x.grad() else {
            assert_eq!(expected, [0.0; 20], "round {round}");
            continue;
        };
        assert_eq!(found.to_vec::<f64>()?, expected, "round {round}");
        assert_eq!(found.storage_nbytes(), x.nbytes());
    }
    Ok(())
}
