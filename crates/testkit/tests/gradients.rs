//! Gradients agree with differences on every device of this machine; see `checks/gradients.rs`.

use plimsoll_core::Device;
use plimsoll_testkit::checks::gradients::every_gradient_is_right;
use plimsoll_testkit::subject;

fn right(device: Device) {
    let tally = every_gradient_is_right(device);
    tally.assert_right(1_200);
    assert_eq!(tally.without_kernel.len(), 0, "{device} has every kernel");
}

#[test]
fn every_gradient_agrees_with_differences() {
    right(subject::plain_device());
}

#[test]
fn every_gradient_agrees_with_differences_in_chaos() {
    right(subject::chaos_device(0x5EED));
}

#[test]
fn every_gradient_agrees_with_differences_on_the_stand_in() {
    right(subject::stand_in_device());
}
