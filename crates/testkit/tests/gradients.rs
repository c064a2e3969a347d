//! Gradients agree with differences on every device of this machine; see `checks/gradients.rs`. The
//! differences are most of the work, so each is taken once for all devices; and the cases are cut
//! in parts, for as many cores.

use plimsoll_testkit::checks::gradients::every_gradient_is_right;
use plimsoll_testkit::subject;

fn right(part: usize) {
    let devices =
        [subject::plain_device(), subject::chaos_device(0x5EED), subject::stand_in_device()];
    let tally = every_gradient_is_right(&devices, (part, 4));
    tally.assert_right(1_500);
    assert_eq!(tally.without_kernel.len(), 0, "these devices have every kernel");
}

#[test]
fn every_gradient_agrees_with_differences_first_part() {
    right(0);
}

#[test]
fn every_gradient_agrees_with_differences_second_part() {
    right(1);
}

#[test]
fn every_gradient_agrees_with_differences_third_part() {
    right(2);
}

#[test]
fn every_gradient_agrees_with_differences_fourth_part() {
    right(3);
}
