//! Every operation agrees with the oracle on every device of this machine, and while storages lose
//! their memory between operations; see `checks/oracle.rs`.

use plimsoll_core::Device;
use plimsoll_testkit::checks::oracle::every_operation_agrees;
use plimsoll_testkit::subject;

fn agrees(device: Device) {
    let tally = every_operation_agrees(device);
    tally.assert_right(16_000);
    assert_eq!(tally.without_kernel.len(), 0, "{device} has every kernel");
}

#[test]
fn every_operation_agrees_with_the_oracle() {
    agrees(subject::plain_device());
}

#[test]
fn every_operation_agrees_with_the_oracle_in_chaos() {
    agrees(subject::chaos_device(0x5EED));
}

#[test]
fn every_operation_agrees_with_the_oracle_on_the_stand_in() {
    agrees(subject::stand_in_device());
}
