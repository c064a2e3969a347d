//! A dry run takes what the real run takes, case by case; see `checks/dry.rs`.

use plimsoll_core::Device;
use plimsoll_tensor::device;
use plimsoll_testkit::checks::dry::every_operation_takes_the_same;
use plimsoll_testkit::subject;

fn takes_the_same(real: Device) {
    let dry = device::dry(real).expect("a dry run opens");
    every_operation_takes_the_same(real, dry).assert_right(16_000);
}

#[test]
fn every_operation_takes_what_the_cpu_takes() {
    takes_the_same(subject::plain_device());
}

#[test]
fn every_operation_takes_what_the_stand_in_takes_where_segments_expand() {
    takes_the_same(subject::expandable_device());
}

#[test]
fn every_operation_takes_what_the_stand_in_takes() {
    takes_the_same(subject::stand_in_device());
}
