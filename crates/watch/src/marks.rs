//! From a number that only rises (a training step's, a graph node's) to the step of the watch in
//! which it was given out.

/// Marks that are kept; beyond, every second one is dropped, and old numbers are told by the step
/// before.
const MOST_MARKS: usize = 4096;

/// Where each step began.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// The first number of a step, and the step.
    marks: Vec<(u64, u64)>,
}

impl Marks {
    /// Says that `step` begins with the number `first`. Returns whether that is possible: numbers
    /// that fall begin anew, and nothing before is known any more.
    ///
    /// ```
    /// use plimsoll_watch::Marks;
    /// let mut marks = Marks::default();
    /// marks.begin(1, 10);
    /// marks.begin(2, 15);
    /// assert_eq!((marks.step_of(9), marks.step_of(12), marks.step_of(15)), (0, 1, 2));
    /// assert!(!marks.begin(3, 4));
    /// assert_eq!(marks.step_of(15), 3);
    /// ```
    pub fn begin(&mut self, step: u64, first: u64) -> bool {
        let rises = self.marks.last().is_none_or(|(last, _)| *last <= first);
        if !rises {
            self.marks.clear();
        }
        if self.marks.len() >= MOST_MARKS {
            let mut at = 0;
            self.marks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        self.marks.push((first, step));
        rises
    }

    /// The step in which `number` was given out, 0 before the first.
    pub fn step_of(&self, number: u64) -> u64 {
        let after = self.marks.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).map_or(0, |at| self.marks[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_bounded_and_old_numbers_stay_in_order() {
        let mut marks = Marks::default();
        for step in 1..=10_000 {
            assert!(marks.begin(step, 2 * step));
        }
        assert!(marks.marks.len() <= MOST_MARKS);
        assert_eq!(marks.step_of(20_000), 10_000);
        assert_eq!(marks.step_of(2 * 9_999 + 1), 9_999);
        let told: Vec<u64> = (1..=10_000).map(|step| marks.step_of(2 * step)).collect();
        assert!(told.is_sorted() && told.iter().zip(1..).all(|(told, step)| *told <= step));
    }
}
