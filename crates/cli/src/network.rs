//! The network of `plimsoll train`, in plain tensor operations: three layers, a loss, and gradient
//! descent with momentum written out. It is what a first program with Plimsoll looks like, so it
//! uses nothing that users cannot.

use plimsoll_core::{DType, Device, Result};
use plimsoll_memory::{Phase, enter_module, enter_phase};
use plimsoll_tensor::{AddOptions, Tensor, no_grad};

const MOMENTUM: f64 = 0.9;

/// A trained tensor and the velocity that descent keeps beside it.
struct Weight {
    value: Tensor,
    velocity: Tensor,
}

/// `[features] -> hidden -> hidden -> 1`, with tanh between.
pub(crate) struct Network {
    /// Weight and bias of each layer in turn.
    weights: Vec<Weight>,
}

impl Network {
    pub(crate) fn new(features: i64, hidden: i64, device: Device) -> Result<Network> {
        let mut weights = Vec::new();
        for (inputs, outputs) in [(features, hidden), (hidden, hidden), (hidden, 1)] {
            let scale = 1.0 / (inputs as f64).sqrt();
            let matrix = Tensor::randn(&[inputs, outputs], (DType::F32, device))?;
            matrix.mul_(scale)?;
            weights.push(Weight::new(matrix)?);
            weights.push(Weight::new(Tensor::zeros(&[outputs], (DType::F32, device))?)?);
        }
        Ok(Network { weights })
    }

    /// One number for each point; positive means the second spiral.
    pub(crate) fn forward(&self, points: &Tensor) -> Result<Tensor> {
        let mut x = points.clone();
        let last = self.weights.len() / 2 - 1;
        for (number, layer) in self.weights.chunks(2).enumerate() {
            let _module = enter_module(&format!("layer{number}"));
            x = x.matmul(&layer[0].value)?.add(&layer[1].value)?;
            if number < last {
                x = x.tanh()?;
            }
        }
        Ok(x)
    }

    /// One step down the gradients, which are freed.
    pub(crate) fn descend(&self, learning_rate: f64) -> Result<()> {
        let _phase = enter_phase(Phase::Optimizer);
        no_grad(|| {
            for weight in &self.weights {
                let Some(gradient) = weight.value.grad() else { continue };
                weight.velocity.mul_(MOMENTUM)?.add_(&gradient)?;
                weight.value.sub_with_(&weight.velocity, AddOptions::new().alpha(learning_rate))?;
                weight.value.set_grad(None)?;
            }
            Ok(())
        })
    }

    /// Numbers that training changes.
    pub(crate) fn parameters(&self) -> usize {
        self.weights.iter().map(|weight| weight.value.numel()).sum()
    }
}

impl Weight {
    fn new(value: Tensor) -> Result<Weight> {
        let velocity = value.zeros_like()?.mark_optimizer_state();
        let value = value.mark_parameter().requires_grad_(true)?;
        Ok(Weight { value, velocity })
    }
}

/// The mean cross-entropy of scores against labels of 0 and 1: `max(x, 0) - x y + log(1 +
/// exp(-|x|))`, which does not overflow for any score.
pub(crate) fn cross_entropy(scores: &Tensor, labels: &Tensor) -> Result<Tensor> {
    let linear = scores.relu()?.sub(&scores.mul(labels)?)?;
    let curved = scores.abs()?.neg()?.exp()?.add(1.0)?.log()?;
    linear.add(&curved)?.mean()
}

/// The share of points on the side that their label says.
pub(crate) fn accuracy(scores: &Tensor, labels: &Tensor) -> Result<f64> {
    let right = scores.gt(0.0)?.eq(&labels.bool()?)?;
    right.to(DType::F64)?.mean()?.item::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spirals::Spirals;

    #[test]
    fn cross_entropy_is_finite_and_right_at_the_ends() {
        let scores = Tensor::from_slice(&[0.0f32, 200.0, -200.0], &[3, 1], Device::cpu()).unwrap();
        let labels = Tensor::from_slice(&[1.0f32, 1.0, 1.0], &[3, 1], Device::cpu()).unwrap();
        let loss = cross_entropy(&scores, &labels).unwrap().item::<f32>().unwrap();
        let expected = (std::f32::consts::LN_2 + 0.0 + 200.0) / 3.0;
        assert!((loss - expected).abs() < 1e-4, "{loss}");
    }

    #[test]
    fn the_spirals_are_learnt() {
        plimsoll_tensor::manual_seed(1);
        let task = Spirals::new(128, 1, Device::cpu()).unwrap();
        let network = Network::new(2, 32, Device::cpu()).unwrap();
        assert_eq!(network.parameters(), 2 * 32 + 32 + 32 * 32 + 32 + 32 + 1);
        for _ in 0..600 {
            let scores = network.forward(&task.points).unwrap();
            cross_entropy(&scores, &task.labels).unwrap().backward().unwrap();
            network.descend(0.1).unwrap();
        }
        let scores = network.forward(&task.points).unwrap();
        assert!(accuracy(&scores, &task.labels).unwrap() > 0.95);
    }
}
