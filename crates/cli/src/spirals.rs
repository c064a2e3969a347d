//! The task that `plimsoll train` learns: two intertwined spirals, told apart by a network. Made
//! here, so that the command needs no files; the same seed gives the same points.

use std::f32::consts::PI;

use plimsoll_core::{Device, Result};
use plimsoll_tensor::Tensor;

/// Turns of each spiral around the centre.
const TURNS: f32 = 1.5;

/// Points of the plane, and to which spiral each belongs.
pub(crate) struct Spirals {
    /// `[points, 2]`.
    pub(crate) points: Tensor,
    /// `[points, 1]`, 0 or 1.
    pub(crate) labels: Tensor,
}

impl Spirals {
    pub(crate) fn new(count: i64, seed: u64, device: Device) -> Result<Spirals> {
        let (mut points, mut labels) = (Vec::new(), Vec::new());
        let mut noise = Noise(seed);
        for index in 0..count {
            let spiral = (index % 2) as f32;
            let radius = (0.05 + 0.95 * index as f32 / count as f32).sqrt();
            let angle = 2.0 * PI * TURNS * radius + PI * spiral;
            points.push(radius * angle.cos() + 0.02 * noise.next());
            points.push(radius * angle.sin() + 0.02 * noise.next());
            labels.push(spiral);
        }
        Ok(Spirals {
            points: Tensor::from_slice(&points, &[count, 2], device)?.mark_input(),
            labels: Tensor::from_slice(&labels, &[count, 1], device)?.mark_input(),
        })
    }
}

/// Numbers from -1 to 1, evenly spread (SplitMix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_points_lie_on_each_spiral_and_near_the_unit_disc() {
        let spirals = Spirals::new(100, 3, Device::cpu()).unwrap();
        assert_eq!(spirals.labels.sum().unwrap().item::<f32>().unwrap(), 50.0);
        let points = spirals.points.to_vec::<f32>().unwrap();
        assert!(points.chunks(2).all(|p| p[0].hypot(p[1]) < 1.1));
        let again = Spirals::new(100, 3, Device::cpu()).unwrap();
        assert_eq!(again.points.to_vec::<f32>().unwrap(), points);
    }
}
