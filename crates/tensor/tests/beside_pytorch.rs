//! Small answers that are PyTorch 2.15's: what activations in place save, what a resize may do to
//! memory that others see, which versions count on, and what is refused.

use plimsoll_tensor::*;

type Outcome = Result<()>;

type InPlace = fn(&Tensor) -> Result<Tensor>;

/// Activations in place whose result tells their derivative, beside the forms that save the input.
const IN_PLACE: [(&str, InPlace, InPlace); 5] = [
    (
        "leaky_relu",
        |x| x.leaky_relu_with(LeakyReluOptions::new().inplace(true)),
        Tensor::leaky_relu,
    ),
    (
        "elu",
        |x| x.elu_with(EluOptions::new().alpha(1.5).inplace(true)),
        |x| x.elu_with(EluOptions::new().alpha(1.5)),
    ),
    ("selu", |x| x.selu_with(InplaceOptions::new().inplace(true)), Tensor::selu),
    (
        "celu",
        |x| x.celu_with(CeluOptions::new().alpha(0.5).inplace(true)),
        |x| x.celu_with(CeluOptions::new().alpha(0.5)),
    ),
    ("rrelu", |x| x.rrelu_with(RreluOptions::new().inplace(true)), Tensor::rrelu),
];

#[test]
fn activations_in_place_save_their_result_and_copy_nothing() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    for (name, in_place, plain) in IN_PLACE {
        let leaf = || {
            let x = Tensor::arange(-2048, 2048, 1, DType::F64)?.div(512.0)?.to(device)?;
            x.requires_grad_(true)
        };
        let (x, other) = (leaf()?, leaf()?);
        let h = x.mul(1.0)?;
        let before = memory::memory_allocated(device);
        let y = in_place(&h)?;
        assert_eq!(memory::memory_allocated(device), before, "{name}");
        y.sin()?.sum()?.backward()?;
        plain(&other)?.sin()?.sum()?.backward()?;
        let (found, expected) = (x.grad().unwrap(), other.grad().unwrap());
        let error = found.sub(&expected)?.abs()?.max()?.item::<f64>()?;
        assert!(error < 1e-12, "{name}: {error}");
        // As in PyTorch, the result must stay as it is until then.
        let h = x.mul(1.0)?;
        let y = in_place(&h)?;
        no_grad(|| y.add_(1.0).map(drop))?;
        let refused = y.sum()?.backward().unwrap_err().to_string();
        assert!(refused.contains("modified by an inplace operation"), "{name}: {refused}");
    }
    Ok(())
}

/// The gradient of a gradient of the forms that save their result.
#[test]
fn activations_in_place_are_differentiable_twice() -> Outcome {
    for (name, in_place, plain) in IN_PLACE {
        let twice = |f: InPlace| -> Result<Vec<f64>> {
            let x = Tensor::arange(-4, 5, 1, DType::F64)?.add(0.25)?.requires_grad_(true)?;
            let y = f(&x.mul(0.5)?)?.pow(3.0)?.sum()?;
            let options = || GradOptions { create_graph: true, ..GradOptions::default() };
            let first = grad(&[&y], &[&x], options())?.remove(0).unwrap();
            let second = grad(&[&first.sin()?.sum()?], &[&x], options())?.remove(0).unwrap();
            second.to_vec::<f64>()
        };
        for (found, expected) in twice(in_place)?.iter().zip(twice(plain)?) {
            assert!((found - expected).abs() < 1e-12, "{name}: {found} {expected}");
        }
    }
    Ok(())
}

#[test]
fn memory_that_others_see_is_not_left_by_a_resize() -> Outcome {
    let mut own = [1.0f64, 2.0, 3.0];
    // SAFETY: the array outlives the tensor, has three float64, and nobody else uses it meanwhile.
    let mut x =
        unsafe { Tensor::from_foreign((), own.as_mut_ptr().addr(), &[3], &[1], DType::F64)? };
    x.resize_(&[2])?;
    let refused = x.resize_(&[5]).unwrap_err().to_string();
    assert!(refused.contains("Trying to resize storage that is not resizable"), "{refused}");
    x.fill_(7)?;
    drop(x);
    assert_eq!(own, [7.0, 7.0, 3.0]);
    Ok(())
}

#[test]
fn a_tensor_with_other_memory_goes_on_counting() -> Outcome {
    let mut x = Tensor::ones(&[4], DType::F64)?;
    x.add_(1)?;
    x.resize_(&[4])?;
    assert_eq!(x.version(), 1);
    x.resize_(&[7])?;
    assert_eq!(x.version(), 2);
    let source = Tensor::ones(&[3], DType::F64)?;
    source.add_(1)?;
    x.set_(&source)?;
    assert_eq!((x.version(), source.version()), (3, 1));
    x.add_(1)?;
    assert_eq!(x.version(), 4);
    x.set_data(&Tensor::zeros(&[2], DType::F64)?)?;
    assert_eq!(x.version(), 4);
    // Memory that a tensor got is written by others without its count, as in PyTorch.
    let (mut a, mut b) = (Tensor::ones(&[2], DType::F64)?, Tensor::ones(&[2], DType::F64)?);
    let flat = Tensor::arange(0, 4, 1, DType::F64)?;
    for (part, at) in [(&mut a, 0), (&mut b, 2)] {
        part.requires_grad_(true)?;
        part.set_data(&flat.narrow(0, at, 2)?)?;
    }
    let loss = a.mul(&a)?.sum()?;
    no_grad(|| b.add_(1).map(drop))?;
    assert_eq!((a.version(), b.version(), flat.version()), (0, 1, 0));
    loss.backward()?;
    assert_eq!(a.grad().unwrap().to_vec::<f64>()?, [0.0, 2.0]);
    // What was saved before it got other memory is told from what was written there.
    let mut w = Tensor::ones(&[2], DType::F64)?.requires_grad_(true)?;
    let loss = w.mul(&w)?.sum()?;
    w.set_data(&Tensor::full(&[2], 3.0, DType::F64)?)?;
    no_grad(|| w.add_(1).map(drop))?;
    let refused = loss.backward().unwrap_err().to_string();
    assert!(refused.contains("is at version 1; expected version 0"), "{refused}");
    // What was saved before the count moved on is still told from what came after.
    let mut w = Tensor::ones(&[2], DType::F64)?.requires_grad_(true)?;
    w.set_data(&Tensor::full(&[2], 3.0, DType::F64)?)?;
    let loss = w.mul(&w)?.sum()?;
    no_grad(|| w.add_(1).map(drop))?;
    assert!(loss.backward().is_err());
    let loss = w.mul(&w)?.sum()?;
    loss.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [8.0, 8.0]);
    Ok(())
}

fn said<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("this must be refused").to_string()
}

#[test]
fn what_pytorch_refuses_is_refused() -> Outcome {
    let x = Tensor::arange(0, 5, 1, DType::F32)?;
    let one_edge = Tensor::ones(&[1], DType::F32)?;
    let refused = said(x.histogram_between(&one_edge, HistogramOptions::new()));
    assert!(refused.contains("bins must be > 0, but got 0"), "{refused}");
    let table = Tensor::ones(&[3, 2], DType::F32)?;
    let refused = said(table.embedding(&Tensor::zeros(&[0], DType::F32)?));
    assert!(refused.contains("scalar types: Long, Int"), "{refused}");
    assert_eq!(table.embedding(&Tensor::zeros(&[0], DType::I64)?)?.shape(), [0, 2]);
    let half = Tensor::full(&[1], 0.5, DType::F32)?;
    for dtype in [DType::I64, DType::F64] {
        let refused = said(half.binary_cross_entropy(&Tensor::ones(&[1], dtype)?));
        assert!(refused.contains("Found dtype"), "{refused}");
    }
    let refused = said(table.tensor_split(1 << 50, 0));
    assert!(refused.contains("sections"), "{refused}");
    assert_eq!(table.tensor_split(5, 0)?.len(), 5);
    Ok(())
}
