//! The append-only table behind [`Device`] ids. Entries live for ever, so that a storage can hold a
//! plain reference to its own.

use std::sync::OnceLock;

use plimsoll_core::{Device, DeviceKind, Error, Result};
use plimsoll_memory::{Arena, Configuration};

use super::{Backend, Entry, host_source};
use crate::lock::RwLock;

static TABLE: OnceLock<RwLock<Vec<&'static Entry>>> = OnceLock::new();

fn table() -> &'static RwLock<Vec<&'static Entry>> {
    TABLE.get_or_init(|| RwLock::new(vec![keep(host())]))
}

fn keep(entry: Entry) -> &'static Entry {
    let entry: &'static Entry = Box::leak(Box::new(entry));
    entry.opened();
    entry
}

/// The process-wide host device, with the configuration in force.
fn host() -> Entry {
    // A mistake in the environment is told by every allocation; see `Entry::fault`.
    let (configuration, fault) = match Configuration::process() {
        Ok(configuration) => (configuration.clone(), None),
        Err(error) => (Configuration::default(), Some(error)),
    };
    let arena = Arena::open(Device::cpu(), Box::new(host_source(&configuration)), &configuration);
    Entry::new(Device::cpu(), arena, Backend::Cpu, configuration).with_fault(fault)
}

/// The entry that `device` names.
pub(crate) fn entry(device: Device) -> &'static Entry {
    table().read()[device.slot()]
}

/// Visits every device.
pub(crate) fn for_each(visit: impl FnMut(&'static Entry)) {
    let entries = table().read().clone();
    entries.into_iter().for_each(visit);
}

/// Appends a device of `kind`; its index is the number of devices of that kind before it.
pub(super) fn add(
    kind: DeviceKind,
    dry: bool,
    make: impl FnOnce(Device) -> Result<Entry>,
) -> Result<Device> {
    add_called(kind, dry, false, make)
}

/// As [`add`]; with `as_cuda` programs know it as `cuda`, with a number among those that they do.
pub(super) fn add_called(
    kind: DeviceKind,
    dry: bool,
    as_cuda: bool,
    make: impl FnOnce(Device) -> Result<Entry>,
) -> Result<Device> {
    let mut entries = table().write();
    let as_cuda = as_cuda || kind == DeviceKind::Cuda;
    let is_same = |device: &Device| {
        device.kind() == kind && device.is_dry() == dry && device.answers_as_cuda() == as_cuda
    };
    let index = entries.iter().map(|entry| entry.device()).filter(is_same).count();
    append(
        &mut entries,
        |slot, index| {
            let device = Device::from_slot(slot, kind, index, dry);
            if kind == DeviceKind::StandIn && as_cuda { device.answering_as_cuda() } else { device }
        },
        index,
        make,
    )
}

/// Appends a device of `kind` whose index is given: a GPU's ordinal.
pub(super) fn add_at(
    kind: DeviceKind,
    index: usize,
    make: impl FnOnce(Device) -> Result<Entry>,
) -> Result<Device> {
    let name = |slot, index| Device::from_slot(slot, kind, index, false);
    append(&mut table().write(), name, index, make)
}

fn append(
    entries: &mut Vec<&'static Entry>,
    name: impl FnOnce(u32, u16) -> Device,
    index: usize,
    make: impl FnOnce(Device) -> Result<Entry>,
) -> Result<Device> {
    let (Ok(slot), Ok(index)) = (u32::try_from(entries.len()), u16::try_from(index)) else {
        return Err(Error::invalid_argument("there are too many devices in this process"));
    };
    let device = name(slot, index);
    let entry = make(device)?;
    entries.push(keep(entry));
    Ok(device)
}
