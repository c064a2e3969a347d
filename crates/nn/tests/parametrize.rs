//! Parameters that are computed of others: bytes, paths, threads, checkpoints, and what is refused.
//! Their values beside PyTorch's: `golden_layers/computed.rs`.

use plimsoll_memory::Kind;
use plimsoll_nn::parametrizations::{
    OrthogonalMap, OrthogonalOptions, WeightNorm, WeightNormOptions, orthogonal, orthogonal_with,
    spectral_norm, weight_norm, weight_norm_with,
};
use plimsoll_nn::parametrize::{Parametrization, Parametrized};
use plimsoll_nn::{Forward, Linear, LinearOptions, Module, optim};
use plimsoll_tensor::{DType, Device, Result, Tensor, device, memory};

/// Twice what is trained.
#[derive(Module)]
struct Doubled;

impl Forward<&[Tensor]> for Doubled {
    type Output = Tensor;

    fn forward(&self, originals: &[Tensor]) -> Result<Tensor> {
        originals[0].mul(2.0)
    }
}

impl Parametrization for Doubled {
    fn right_inverse(&self, value: &Tensor) -> Result<Option<Vec<Tensor>>> {
        Ok(Some(vec![value.mul(0.5)?]))
    }
}

/// A row too many.
#[derive(Module)]
struct Longer;

impl Forward<&[Tensor]> for Longer {
    type Output = Tensor;

    fn forward(&self, originals: &[Tensor]) -> Result<Tensor> {
        Tensor::cat(&[&originals[0], &originals[0]], 0)
    }
}

impl Parametrization for Longer {}

#[derive(Module)]
struct Net {
    hidden: Parametrized<Linear>,
    out: Linear,
}

impl Forward<&Tensor> for Net {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.out.call(&self.hidden.call(x)?)
    }
}

#[test]
fn weights_begin_as_they_were_and_come_back() -> Result<()> {
    let plain = Linear::new(3, 2)?;
    let before = plain.weight.tensor().to_vec::<f32>()?;
    let x = Tensor::ones(&[4, 3], DType::F32)?;
    let expected = plain.call(&x)?;

    let cell = plain.weight.clone();
    let mut layer = Parametrized::new(plain, "weight", Doubled)?;
    assert!(layer.call(&x)?.allclose(&expected)?);
    let halves: Vec<f32> = before.iter().map(|x| x / 2.0).collect();
    assert_eq!(cell.tensor().to_vec::<f32>()?, halves, "the cell holds what is trained");
    layer = layer.register("weight", Doubled)?;
    let twice: Vec<f32> = before.iter().map(|x| x * 2.0).collect();
    assert_eq!(layer.value("weight")?.to_vec::<f32>()?, twice, "the value changes, as in PyTorch");

    let one = Tensor::ones(&[2, 3], DType::F32)?;
    layer.assign("weight", &one)?;
    assert_eq!(cell.tensor().to_vec::<f32>()?, [0.25; 6]);
    let again = layer.into_layer()?;
    assert!(again.weight.is_same(&cell));
    assert_eq!(again.weight.tensor().to_vec::<f32>()?, [1.0; 6]);
    let keys: Vec<String> = again.state_dict().keys().map(str::to_string).collect();
    assert_eq!(keys, ["weight", "bias"]);

    let mut left = Parametrized::new(again, "weight", Doubled)?;
    left.remove("weight", false)?;
    assert_eq!(left.layer().weight.tensor().to_vec::<f32>()?, [0.5; 6]);
    assert_eq!(left.to_string(), "Linear(in_features=3, out_features=2, bias=True)");
    Ok(())
}

/// A weight and its lengths; nothing lies in memory twice.
#[test]
fn bytes_of_a_normed_weight() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let options = || LinearOptions::new().bias(false).device(own);
    let plain = Linear::with(256, 512, options())?;
    let weight = 256 * 512 * 4;
    assert_eq!(memory::memory_allocated(own), weight);
    let layer = weight_norm(plain)?;
    assert_eq!(memory::memory_allocated(own), weight + 512 * 4);
    let kinds: Vec<(Kind, usize)> =
        memory::live_by_kind(own).iter().map(|row| (row.kind, row.bytes)).collect();
    assert_eq!(kinds, [(Kind::Parameter, weight + 512 * 4)]);
    assert_eq!(layer.num_parameters(), 256 * 512 + 512);

    let plain = layer.into_layer()?;
    assert_eq!(memory::memory_allocated(own), weight);
    drop(plain);
    assert_eq!(memory::memory_allocated(own), 0);
    Ok(())
}

#[test]
fn a_normed_layer_learns_and_loads() -> Result<()> {
    let make = || -> Result<Net> {
        Ok(Net { hidden: weight_norm(Linear::new(4, 3)?)?, out: Linear::new(3, 1)? })
    };
    let net = make()?;
    let mut optimizer = optim::SGD::new(net.parameters(), optim::SGDOptions::new().lr(0.05))?;
    let x = Tensor::from_slice(&[1.0f32, 2.0, -1.0, 0.5], &[1, 4], Device::cpu())?;
    let mut losses = Vec::new();
    for _ in 0..20 {
        optimizer.zero_grad()?;
        let loss = net.call(&x)?.sub(1.0)?.square()?.sum()?;
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item::<f32>()?);
    }
    assert!(losses[19] < 0.2 * losses[0].max(1e-3) || losses[19] < 1e-3, "{losses:?}");

    let other = make()?;
    other.load_state_dict(&net.state_dict())?;
    assert!(other.call(&x)?.allclose(&net.call(&x)?)?);
    let error = other.load_state_dict(&Linear::new(4, 3)?.state_dict()).unwrap_err().to_string();
    assert!(error.contains("\"hidden.parametrizations.weight.original0\""), "{error}");
    assert!(error.contains("Unexpected key(s) in state_dict: \"weight\", \"bias\""), "{error}");
    Ok(())
}

/// What is computed is booked below `parametrizations`, and every thread computes its own.
#[test]
fn paths_and_threads() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let hidden = weight_norm(Linear::with(64, 64, LinearOptions::new().device(own))?)?;
    let net = Net { hidden, out: Linear::with(64, 1, LinearOptions::new().device(own))? };
    let x = Tensor::ones(&[2, 64], (DType::F32, own))?;
    let result = net.call(&x)?;
    let modules: Vec<String> =
        memory::live_by_module(own).iter().map(|row| row.part.to_string()).collect();
    assert!(modules.iter().any(|path| path == "hidden.parametrizations.weight.0"), "{modules:?}");
    let expected = result.to_vec::<f32>()?;
    std::thread::scope(|scope| {
        let run = || (0..20).map(|_| net.call(&x)?.to_vec::<f32>()).collect::<Result<Vec<_>>>();
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
        for thread in threads {
            for found in thread.join().expect("no thread panics")? {
                assert_eq!(found, expected);
            }
        }
        Ok(())
    })
}

#[test]
fn orthogonal_weights_stay_orthogonal() -> Result<()> {
    for (inputs, outputs) in [(4, 4), (3, 5), (5, 3)] {
        for map in [OrthogonalMap::MatrixExp, OrthogonalMap::Cayley, OrthogonalMap::Householder] {
            let options = LinearOptions::new().dtype(DType::F64);
            let plain = Linear::with(inputs, outputs, options)?;
            let by = OrthogonalOptions::new().orthogonal_map(map);
            let layer = orthogonal_with(plain, by)?;
            let mut optimizer =
                optim::Adam::new(layer.parameters(), optim::AdamOptions::new().lr(0.1))?;
            let first = layer.value("weight")?.to_vec::<f64>()?;
            for _ in 0..3 {
                let x = Tensor::ones(&[2, inputs], DType::F64)?;
                layer.call(&x)?.square()?.sum()?.backward()?;
                optimizer.step()?;
            }
            let weight = layer.value("weight")?;
            assert_ne!(weight.to_vec::<f64>()?, first, "it is trained");
            let tall = if outputs < inputs { weight.t()? } else { weight };
            let size = inputs.min(outputs);
            let one = Tensor::eye([size, size], DType::F64)?;
            let off = tall.t()?.matmul(&tall)?.sub(&one)?.abs()?.amax()?.item::<f64>()?;
            // A step of the exponential or Cayley's moves it along; of reflections it may end a
            // column, whose sign is cut to a whole number, as in PyTorch.
            assert!(off < 1e-9 || map == OrthogonalMap::Householder, "{map:?}: {off}");
        }
    }
    // A square weight that is orthogonal already is kept as it is.
    let turned = orthogonal(Linear::new(3, 3)?)?;
    let value = turned.value("weight")?.detach();
    turned.assign("weight", &value)?;
    assert!(turned.value("weight")?.allclose(&value)?);
    Ok(())
}

#[test]
fn spectral_norms_learn_the_largest_value_in_training_alone() -> Result<()> {
    let layer = spectral_norm(Linear::with(8, 6, LinearOptions::new().dtype(DType::F64))?)?;
    let x = Tensor::ones(&[1, 8], DType::F64)?;
    for _ in 0..200 {
        layer.call(&x)?;
    }
    let largest = layer.value("weight")?.linalg_svdvals()?.amax()?.item::<f64>()?;
    assert!((largest - 1.0).abs() < 1e-6, "{largest}");
    let u = || layer.state_dict().get("parametrizations.weight.0._u").unwrap().to_vec::<f64>();
    layer.eval();
    let before = u()?;
    layer.call(&x)?;
    assert_eq!(u()?, before);
    Ok(())
}

#[test]
fn what_cannot_be_is_refused() -> Result<()> {
    let layer = || Linear::new(3, 2);
    let error = Parametrized::new(layer()?, "wieght", Doubled).unwrap_err().to_string();
    assert!(error.contains("with name 'wieght'"), "{error}");
    let error = Parametrized::new(layer()?, "weight", Longer).unwrap_err();
    assert!(error.is_shape() && error.to_string().contains("[4, 3]"), "{error}");
    let mut normed = weight_norm(layer()?)?;
    let error = normed.remove("weight", false).unwrap_err().to_string();
    assert!(error.contains("several tensors"), "{error}");
    assert!(normed.remove("bias", true).is_err());
    let error = weight_norm_with(layer()?, WeightNormOptions::new().dim(2)).unwrap_err();
    assert!(error.is_shape(), "{error}");
    let error = orthogonal_with(layer()?, OrthogonalOptions::new().name("bias")).unwrap_err();
    assert!(error.is_shape(), "{error}");
    let cayley = OrthogonalOptions::new().orthogonal_map(OrthogonalMap::Cayley);
    let fixed = orthogonal_with(layer()?, cayley.use_trivialization(false))?;
    let error = fixed.assign("weight", &Tensor::ones(&[2, 3], DType::F32)?).unwrap_err();
    assert!(error.to_string().contains("does not implement right_inverse"), "{error}");
    // The layer is as it was if a parametrization is refused.
    let kept = layer()?;
    let (cell, before) = (kept.weight.clone(), kept.weight.tensor().to_vec::<f32>()?);
    assert!(Parametrized::new(kept, "weight", Longer).is_err());
    assert_eq!(cell.tensor().to_vec::<f32>()?, before);
    let both = Parametrized::new(layer()?, "weight", WeightNorm::new(0))?;
    assert_eq!(both.parametrization("weight").unwrap().len(), 1);
    Ok(())
}
