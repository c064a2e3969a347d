//! Pruning: the masks are PyTorch's for the same weights; what is pruned stays zero in training.

use plimsoll_nn::prune::{
    Amount, Pruned, global_l1_unstructured, l1_unstructured, ln_structured, random_structured,
    random_unstructured,
};
use plimsoll_nn::{Linear, LinearOptions, Module, Parameter};
use plimsoll_tensor::{AddOptions, DType, Device, Result, Tensor, device, memory, no_grad};

const WEIGHT: [f32; 12] = [0.1, -0.9, 0.3, 0.05, 2.0, -0.2, 0.6, -0.7, 0.01, -1.0, 0.4, 0.5];

fn parameter(values: &[f32], sizes: &[i64]) -> Result<Parameter> {
    Parameter::new(&Tensor::from_slice(values, sizes, Device::cpu())?)
}

fn mask(pruned: &Pruned) -> Result<Vec<u8>> {
    pruned.mask().to(DType::U8)?.to_vec::<u8>()
}

#[test]
fn masks_are_pytorchs() -> Result<()> {
    // `weight_mask` after `torch.nn.utils.prune.*` of PyTorch 2.15 on the same weight.
    let weight = || parameter(&WEIGHT, &[3, 4]);
    let l1 = l1_unstructured(&weight()?, Amount::Fraction(0.4))?;
    assert_eq!(mask(&l1)?, [0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1]);
    let two = l1_unstructured(&weight()?, Amount::Count(2))?;
    assert_eq!(mask(&two)?, [1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1]);
    let columns = ln_structured(&weight()?, Amount::Fraction(0.5), 2.0, 1)?;
    assert_eq!(mask(&columns)?, [1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0]);
    let rows = ln_structured(&weight()?, Amount::Count(1), 1.0, 0)?;
    assert_eq!(mask(&rows)?, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    let both = [parameter(&[0.1, 0.9, 0.3, 0.05], &[2, 2])?, parameter(&[0.02, 0.2], &[1, 2])?];
    let all = global_l1_unstructured(&both, Amount::Fraction(0.5))?;
    assert_eq!((mask(&all[0])?, mask(&all[1])?), (vec![0, 1, 1, 0], vec![0, 1]));

    assert_eq!(random_unstructured(&weight()?, Amount::Fraction(0.25))?.count()?, 3);
    let random = mask(&random_structured(&weight()?, Amount::Count(1), 1)?)?;
    assert!(random[..4] == random[4..8] && random.iter().filter(|kept| **kept == 0).count() == 3);
    for amount in [Amount::Fraction(1.5), Amount::Fraction(-0.1), Amount::Count(13)] {
        assert!(l1_unstructured(&weight()?, amount).unwrap_err().is_invalid_argument());
    }
    let wrong = Tensor::ones(&[2], DType::Bool)?;
    assert!(Pruned::custom(&weight()?, &wrong).unwrap_err().is_shape());
    Ok(())
}

#[test]
fn what_is_pruned_stays_zero_until_it_is_removed() -> Result<()> {
    let weight = parameter(&WEIGHT, &[3, 4])?;
    let pruned = l1_unstructured(&weight, Amount::Fraction(0.5))?;
    let step = || -> Result<Vec<f32>> {
        weight.tensor().set_grad(None)?;
        weight.tensor().mul(3.0)?.sum()?.backward()?;
        let grad = weight.tensor().grad().expect("backward left one");
        no_grad(|| weight.tensor().sub_with_(&grad, AddOptions::new().alpha(0.5)).map(drop))?;
        weight.tensor().to_vec::<f32>()
    };
    let kept = mask(&pruned)?;
    for (at, value) in step()?.into_iter().enumerate() {
        let expected = if kept[at] == 1 { WEIGHT[at] - 1.5 } else { 0.0 };
        assert_eq!(value, expected);
    }
    pruned.remove();
    for (at, value) in step()?.into_iter().enumerate() {
        assert_eq!(value, if kept[at] == 1 { WEIGHT[at] - 3.0 } else { -1.5 });
    }
    Ok(())
}

/// Pruning costs two bytes an element (the mask, and what its hook holds), and gives them back.
#[test]
fn pruning_keeps_keys_and_costs_masks_alone() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let layer = Linear::with(256, 256, LinearOptions::new().bias(false).device(own))?;
    let before = memory::memory_allocated(own);
    let pruned = l1_unstructured(&layer.weight, Amount::Fraction(0.9))?;
    assert_eq!(memory::memory_allocated(own) - before, 2 * 256 * 256);
    assert_eq!(layer.state_dict().keys().collect::<Vec<_>>(), ["weight"]);
    pruned.remove();
    assert_eq!(memory::memory_allocated(own), before);
    Ok(())
}
