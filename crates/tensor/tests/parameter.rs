//! Parameters as cells: replaced, moved and loaded in place, seen by everybody who holds them.

use plimsoll_memory::Kind;
use plimsoll_tensor::{DType, Parameter, Result, Tensor, device, memory};

/// A graph that was recorded before the move accumulates into the moved parameter, as after
/// PyTorch's `model.to(...)`, and its bytes are a parameter's before and after.
#[test]
fn a_moved_parameter_keeps_gradient_hooks_graph_and_kind() -> Result<()> {
    let (here, there) =
        (device::private_cpu(&Default::default())?, device::private_cpu(&Default::default())?);
    let weight = Parameter::new(&Tensor::full(&[256], 2.0, (DType::F32, here))?)?;
    let tied = weight.clone();
    weight.tensor().register_hook(|grad| grad.mul(10.0).map(Some))?;
    weight.tensor().mul(3.0)?.sum()?.backward()?;
    assert_eq!(memory::live_by_kind(here)[0].kind, Kind::Parameter);

    weight.to(there)?;
    let moved = tied.tensor();
    assert_eq!((moved.device(), moved.grad().unwrap().device()), (there, there));
    assert_eq!(moved.grad().unwrap().to_vec::<f32>()?, [30.0; 256]);
    assert_eq!(memory::memory_allocated(here), 0, "nothing stays behind");
    let kinds: Vec<(Kind, usize)> =
        memory::live_by_kind(there).iter().map(|row| (row.kind, row.bytes)).collect();
    assert_eq!(kinds, [(Kind::Parameter, 1024), (Kind::Gradient, 1024)]);

    // The hook moved along, and gradients go on adding up.
    tied.tensor().sum()?.backward()?;
    assert_eq!(weight.tensor().grad().unwrap().to_vec::<f32>()?, [40.0; 256]);
    Ok(())
}

#[test]
fn loading_is_seen_by_all_and_a_wrong_dtype_is_refused() -> Result<()> {
    let weight = Parameter::new(&Tensor::zeros(&[2], DType::F32)?)?;
    let tied = weight.clone();
    let loss = tied.tensor().mul(&tied.tensor())?.sum()?;
    weight.set_data(&Tensor::full(&[2], 5.0, DType::F32)?)?;
    assert_eq!(tied.tensor().to_vec::<f32>()?, [5.0, 5.0]);
    assert!(tied.tensor().requires_grad() && tied.tensor().is_leaf());
    loss.backward()?;
    assert!(weight.tensor().grad().is_some(), "the graph of before reaches it");

    let error = weight.set_data(&Tensor::zeros(&[2], DType::I64)?).unwrap_err();
    assert!(error.is_autograd(), "{error}");
    assert_eq!(weight.tensor().to_vec::<f32>()?, [5.0, 5.0]);
    assert!(!weight.is_same(&Parameter::new(&weight.tensor())?));
    Ok(())
}
