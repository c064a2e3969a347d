//! Resampling of spatial dimensions, a dimension at a time.

use plimsoll_tensor::InterpolateMode as Mode;

use super::{Array, Number};

/// The pixels, and how much of each, that an output place is made of.
fn taps(mode: Mode, align_corners: bool, from: usize, to: usize, at: usize) -> Vec<(usize, f64)> {
    let (size, place) = (from as f64, at as f64);
    let step = size / to as f64;
    let last = from as i64 - 1;
    let inside = |pixel: f64| (pixel as i64).clamp(0, last) as usize;
    let centre = match align_corners {
        true if to > 1 => place * (size - 1.0) / (to as f64 - 1.0),
        true => 0.0,
        false => (place + 0.5) * step - 0.5,
    };
    match mode {
        Mode::Nearest => vec![(inside((place * step).floor()), 1.0)],
        Mode::NearestExact => vec![(inside(((place + 0.5) * step).floor()), 1.0)],
        Mode::Linear => {
            let centre = centre.clamp(0.0, size - 1.0);
            let part = centre - centre.floor();
            vec![(inside(centre.floor()), 1.0 - part), (inside(centre.floor() + 1.0), part)]
        }
        Mode::Cubic => {
            let weight = |distance: f64| {
                let (a, d) = (-0.75, distance.abs());
                if d <= 1.0 {
                    (a + 2.0) * d.powi(3) - (a + 3.0) * d.powi(2) + 1.0
                } else if d < 2.0 {
                    a * d.powi(3) - 5.0 * a * d.powi(2) + 8.0 * a * d - 4.0 * a
                } else {
                    0.0
                }
            };
            let pixels = (-1..=2).map(|offset| centre.floor() + f64::from(offset));
            pixels.map(|pixel| (inside(pixel), weight(pixel - centre))).collect()
        }
        Mode::Area => {
            let (first, end) = (at * from / to, ((at + 1) * from).div_ceil(to));
            (first..end).map(|pixel| (pixel, 1.0 / (end - first) as f64)).collect()
        }
    }
}

/// `x` with other sizes from dimension 2 on.
pub fn interpolate(x: &Array, sizes: &[usize], mode: Mode, align_corners: bool) -> Array {
    let mut shape = x.shape()[..2].to_vec();
    shape.extend(sizes);
    Array::build(x.dtype(), &shape, |i| {
        let mut places = vec![(i[..2].to_vec(), 1.0)];
        for (dim, &size) in sizes.iter().enumerate() {
            let here = taps(mode, align_corners, x.shape()[2 + dim], size, i[2 + dim]);
            places = places
                .into_iter()
                .flat_map(|(place, weight)| {
                    let longer = |&(pixel, share): &(usize, f64)| {
                        ([place.as_slice(), &[pixel]].concat(), weight * share)
                    };
                    here.iter().map(longer).collect::<Vec<_>>()
                })
                .collect();
        }
        let sum: f64 = places.iter().map(|(place, w)| x.at(place).to_f64() * w).sum();
        match x.dtype().is_float() {
            true => Number::Float(sum),
            false => Number::Int((sum + 0.5).floor().clamp(0.0, 255.0) as i64),
        }
    })
}
