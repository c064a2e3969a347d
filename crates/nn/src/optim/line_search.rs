//! The search along a direction for a step that satisfies the strong Wolfe conditions: the loss
//! falls enough, and its slope flattens enough. First steps grow until they enclose such a place,
//! then the interval shrinks.

use plimsoll_tensor::{Result, Tensor};

/// How much of the promised fall the loss must have.
const FALL: f64 = 1e-4;
/// How much of the slope may be left.
const SLOPE: f64 = 0.9;

/// A place along the direction: how far, the loss, its gradient, and its slope along the direction.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) step: f64,
    pub(super) loss: f64,
    pub(super) grad: Tensor,
    pub(super) slope: f64,
}

/// Where the cubic through two points has its minimum, within the bounds.
fn minimum(a: &Point, b: &Point, bounds: Option<(f64, f64)>) -> f64 {
    let (a, b) = if a.step > b.step { (b, a) } else { (a, b) };
    let (low, high) = bounds.unwrap_or((a.step, b.step));
    let first = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.step - b.step);
    let square = first.powi(2) - a.slope * b.slope;
    // Also where it is NaN.
    if square.is_nan() || square < 0.0 {
        return (low + high) / 2.0;
    }
    let root = square.sqrt();
    let share = (b.slope + root - first) / (b.slope - a.slope + 2.0 * root);
    (b.step - (b.step - a.step) * share).max(low).min(high)
}

/// One search: `evaluate(step)` gives loss and gradient at a place along `direction`.
pub(super) struct LineSearch<'a> {
    pub(super) evaluate: &'a mut dyn FnMut(f64) -> Result<(f64, Tensor)>,
    pub(super) direction: &'a Tensor,
    pub(super) start: Point,
    pub(super) evaluations: i64,
}

impl LineSearch<'_> {
    fn at(&mut self, step: f64) -> Result<Point> {
        self.evaluations += 1;
        let (loss, grad) = (self.evaluate)(step)?;
        let slope = grad.dot(self.direction)?.to_scalar()?.to_f64();
        Ok(Point { step, loss, grad, slope })
    }

    /// Whether the loss did not fall enough.
    fn is_high(&self, point: &Point) -> bool {
        point.loss > self.start.loss + FALL * point.step * self.start.slope
    }

    fn is_flat(&self, point: &Point) -> bool {
        point.slope.abs() <= -SLOPE * self.start.slope
    }

    /// The best place found with at most so many evaluations after the first.
    pub(super) fn run(&mut self, step: f64, tolerance: f64, most: i64) -> Result<Point> {
        let (mut before, mut point) = (self.start.clone(), self.at(step)?);
        let mut rounds = 0;
        while rounds < most {
            let rose = rounds > 1 && point.loss >= before.loss;
            if self.is_high(&point) || rose {
                return self.shrunk([before, point], rounds, tolerance, most);
            }
            if self.is_flat(&point) {
                return Ok(point);
            }
            if point.slope >= 0.0 {
                return self.shrunk([before, point], rounds, tolerance, most);
            }
            let bounds = (point.step + 0.01 * (point.step - before.step), point.step * 10.0);
            let next = minimum(&before, &point, Some(bounds));
            (before, point) = (point, self.at(next)?);
            rounds += 1;
        }
        Ok(if self.start.loss <= point.loss { self.start.clone() } else { point })
    }

    /// Shrinks the interval between two points until one of them will do.
    fn shrunk(
        &mut self,
        mut ends: [Point; 2],
        mut rounds: i64,
        tolerance: f64,
        most: i64,
    ) -> Result<Point> {
        let largest = self.direction.abs()?.amax()?.to_scalar()?.to_f64();
        let lower = |ends: &[Point; 2]| usize::from(ends[0].loss > ends[1].loss);
        let (mut slow, mut low) = (false, lower(&ends));
        while rounds < most {
            if (ends[1].step - ends[0].step).abs() * largest < tolerance {
                break;
            }
            let step;
            (step, slow) = next(&ends, slow);
            let point = self.at(step)?;
            rounds += 1;
            let high = 1 - low;
            if self.is_high(&point) || point.loss >= ends[low].loss {
                ends[high] = point;
                low = lower(&ends);
                continue;
            }
            let done = self.is_flat(&point);
            if !done && point.slope * (ends[high].step - ends[low].step) >= 0.0 {
                ends[high] = ends[low].clone();
            }
            ends[low] = point;
            if done {
                break;
            }
        }
        Ok(ends[low].clone())
    }
}

/// The next place to look at, and whether it lies so near an end that the one after must not.
fn next(ends: &[Point; 2], slow: bool) -> (f64, bool) {
    let step = minimum(&ends[0], &ends[1], None);
    let (least, most) = (ends[0].step.min(ends[1].step), ends[0].step.max(ends[1].step));
    let margin = 0.1 * (most - least);
    if (most - step).min(step - least) >= margin {
        return (step, false);
    }
    if !slow && least < step && step < most {
        return (step, true);
    }
    let is_far = (step - most).abs() < (step - least).abs();
    (if is_far { most - margin } else { least + margin }, false)
}
