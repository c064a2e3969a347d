//! Sampling at places that a grid names, a dimension at a time.

use plimsoll_tensor::{GridMode as Mode, GridPadding as Padding};

use super::Array;

/// A place in pixels brought inside.
fn inside(padding: Padding, align_corners: bool, place: f64, size: f64) -> f64 {
    let clamped = |place: f64| place.clamp(0.0, size - 1.0);
    match padding {
        Padding::Zeros => place,
        Padding::Border => clamped(place),
        Padding::Reflection => {
            let (low, high) = if align_corners { (0.0, size - 1.0) } else { (-0.5, size - 0.5) };
            if low == high {
                return 0.0;
            }
            // A triangle wave over twice the span.
            let period = 2.0 * (high - low);
            let along = (place - low).rem_euclid(period);
            clamped(low + along.min(period - along))
        }
    }
}

/// The pixels along a dimension, and how much of each, for a place from -1 to 1.
fn taps(
    mode: Mode,
    padding: Padding,
    align_corners: bool,
    at: f64,
    size: usize,
) -> Vec<(usize, f64)> {
    let pixels = size as f64;
    let place = match align_corners {
        true => (at + 1.0) / 2.0 * (pixels - 1.0),
        false => ((at + 1.0) * pixels - 1.0) / 2.0,
    };
    let bring = |place: f64| inside(padding, align_corners, place, pixels);
    let found: Vec<(f64, f64)> = match mode {
        Mode::Nearest => vec![(bring(place).round_ties_even(), 1.0)],
        Mode::Linear => {
            let place = bring(place);
            let part = place - place.floor();
            vec![(place.floor(), 1.0 - part), (place.floor() + 1.0, part)]
        }
        Mode::Cubic => {
            let weight = |distance: f64| {
                let (a, d) = (-0.75, distance.abs());
                match d {
                    _ if d <= 1.0 => (a + 2.0) * d.powi(3) - (a + 3.0) * d.powi(2) + 1.0,
                    _ if d < 2.0 => a * (d.powi(3) - 5.0 * d.powi(2) + 8.0 * d - 4.0),
                    _ => 0.0,
                }
            };
            let near = (-1..=2).map(|offset| place.floor() + f64::from(offset));
            near.map(|pixel| (bring(pixel), weight(pixel - place))).collect()
        }
    };
    let exists = |&(pixel, _): &(f64, f64)| pixel >= 0.0 && pixel < pixels;
    found.into_iter().filter(exists).map(|(pixel, part)| (pixel as usize, part)).collect()
}

/// `x` at the places of `grid`.
pub fn grid_sample(
    x: &Array,
    grid: &Array,
    mode: Mode,
    padding: Padding,
    align_corners: bool,
) -> Array {
    let spatial = x.shape().len() - 2;
    let mut shape = x.shape()[..2].to_vec();
    shape.extend(&grid.shape()[1..=spatial]);
    Array::build(x.dtype(), &shape, |i| {
        let mut places = vec![(i[..2].to_vec(), 1.0)];
        for dim in 0..spatial {
            // Grids have the last dimension first.
            let index = [&[i[0]], &i[2..], &[spatial - 1 - dim]].concat();
            let at = grid.at(&index).to_f64();
            let here = taps(mode, padding, align_corners, at, x.shape()[2 + dim]);
            let mut longer = Vec::new();
            for (place, weight) in &places {
                for &(pixel, part) in &here {
                    longer.push(([place.as_slice(), &[pixel]].concat(), weight * part));
                }
            }
            places = longer;
        }
        places.iter().map(|(place, weight)| x.at(place).to_f64() * weight).sum::<f64>()
    })
}
