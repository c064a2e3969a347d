//! Who keeps these bytes alive: all six ways, each with the one who does; and when tensors are
//! registered for that.

use std::sync::{Mutex, PoisonError};

use plimsoll_memory::Configuration;
use plimsoll_tensor::device::{self, take_back};
use plimsoll_tensor::memory::{Holder, HolderKind, LeakWatch, holders, track_holders};
use plimsoll_tensor::*;

/// The tests switch one registry.
static REGISTRY: Mutex<()> = Mutex::new(());

/// Kind, operation and line of each holder.
fn told(tensor: &Tensor) -> Vec<(HolderKind, &'static str, u32)> {
    let line = |holder: &Holder| holder.origin.get().site.resolve().map_or(0, |site| site.line);
    holders(tensor).iter().map(|holder| (holder.kind, holder.operation, line(holder))).collect()
}

#[test]
fn six_kinds_of_holders_are_named() -> Result<()> {
    let _alone = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(!track_holders(true));
    let spilling = Configuration::parse("spill:true")?;
    let device = device::private_cpu(&spilling)?;
    let options = (DType::F32, device);
    let first = line!();
    let x = Tensor::ones(&[4, 4], options)?; // + 1
    let row = x.select(0, 1)?;
    let weight = Tensor::ones(&[4, 4], options)?.requires_grad_(true)?; // + 3
    let product = weight.mul(&x)?; // + 4
    let leaf = Tensor::zeros(&[4, 4], options)?.requires_grad_(true)?; // + 5
    leaf.set_grad(Some(&x))?;
    let hook = leaf.register_hook_holding(vec![x.clone()], |_, grad| grad.neg().map(Some))?; // + 7
    let dropped = x.exp()?; // + 8
    assert!(take_back(&dropped, true));
    let expected = [
        (HolderKind::Handle, "ones", first + 1),
        (HolderKind::View, "select", first + 1),
        (HolderKind::Saved, "mul", first + 4),
        (HolderKind::Gradient, "zeros", first + 5),
        (HolderKind::Hook, "register_hook", first + 7),
        (HolderKind::Recipe, "exp", first + 8),
    ];
    assert_eq!(told(&x), expected);
    assert!(holders(&x)[2].to_string().starts_with("saved value by mul (mul at "));

    // Each is gone with its holder; what is left is the tensor itself.
    let kinds = |tensor: &Tensor| told(tensor).iter().map(|holder| holder.0).collect::<Vec<_>>();
    drop(row);
    assert!(!kinds(&x).contains(&HolderKind::View));
    drop(product);
    assert!(!kinds(&x).contains(&HolderKind::Saved));
    leaf.set_grad(None)?;
    assert!(!kinds(&x).contains(&HolderKind::Gradient));
    hook.remove();
    assert!(!kinds(&x).contains(&HolderKind::Hook));
    assert_eq!(dropped.to_vec::<f32>()?.len(), 16); // at home it needs nothing
    assert_eq!(kinds(&x), [HolderKind::Handle]);
    assert!(track_holders(false));
    Ok(())
}

#[test]
fn the_registry_changes_nothing_else() -> Result<()> {
    let _alone = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let step = |device: Device| -> Result<usize> {
        let x = Tensor::ones(&[1000], (DType::F32, device))?.requires_grad_(true)?;
        for _ in 0..200 {
            x.mul(&x)?.add(&x)?.sum()?.backward()?;
        }
        x.set_grad(None)?;
        Ok(memory::max_memory_allocated(device))
    };
    let plain = step(device::private_cpu(&Default::default())?)?;
    track_holders(true);
    let device = device::private_cpu(&Default::default())?;
    assert_eq!(step(device)?, plain, "gradients are taken over in both");
    assert_eq!(memory::memory_allocated(device), 0, "and nothing is held");
    track_holders(false);
    Ok(())
}

#[test]
fn running_out_of_memory_names_holders_while_they_are_tracked() -> Result<()> {
    let _alone = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let device = device::private_cpu(&Default::default())?;
    memory::set_limit(device, Some(4 << 20));
    let asked = |device: Device| Tensor::zeros(&[2 << 20], (DType::F32, device)).unwrap_err();
    assert!(!asked(device).to_string().contains("held by"));
    track_holders(true);
    let weight = Tensor::ones(&[1 << 16], (DType::F32, device))?.requires_grad_(true)?;
    let kept: Vec<Tensor> = (0..4).map(|_| weight.exp()?.sum()).collect::<Result<_>>()?;
    let error = asked(device);
    track_holders(false);
    let text = error.to_string();
    assert!(error.is_out_of_memory() && text.starts_with("zeros: out of memory on "), "{text}");
    let holder = text.lines().find(|line| line.trim_start().starts_with("held by")).expect("told");
    assert!(
        holder.contains("1.00 MiB in 8 blocks, activation kept by a graph: 4 tensors"),
        "{text}"
    );
    assert!(holder.contains("made by sum at ") && holder.contains(file!()), "{text}");
    let report = error.detail::<memory::OutOfMemory>().expect("the report is there still");
    assert_eq!(report.requested_bytes, 8 << 20);
    drop(kept);
    Ok(())
}

#[test]
fn a_watch_has_tensors_registered_as_long_as_it_lives() -> Result<()> {
    let _alone = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let registered = || -> Result<bool> {
        let x = Tensor::ones(&[4], DType::F32)?;
        Ok(!holders(&x).is_empty())
    };
    assert!(!registered()?);
    let (first, second) = (LeakWatch::new(), LeakWatch::new());
    assert!(!track_holders(true) && track_holders(false), "the switch is another's");
    drop(first);
    assert!(registered()?, "the second wants them");
    drop(second);
    assert!(!registered()?);
    assert!(!track_holders(true));
    drop(LeakWatch::new());
    assert!(registered()?, "it was switched on");
    assert!(track_holders(false));
    Ok(())
}
