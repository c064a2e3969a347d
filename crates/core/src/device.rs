//! Which device a tensor lives on, as a small copyable id. The devices themselves (allocator,
//! ledger, streams) are entries of an append-only table in the `tensor` crate; this is only their
//! name.

use std::fmt;

/// What sort of machine a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceKind {
    /// Host memory, computed on by the calling thread and the fork-join pool.
    Cpu,
    /// An NVIDIA GPU through the CUDA driver.
    Cuda,
    /// The stand-in accelerator: host memory behind a device's manners (capacity, streams, late
    /// errors).
    StandIn,
}

/// A device id: cheap to copy, compare and print.
///
/// Two ids are equal iff they name the same entry of the device table, so two private arenas of the
/// same kind are different devices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    slot: u32,
    index: u16,
    kind: DeviceKind,
    dry: bool,
    as_cuda: bool,
}

impl Device {
    /// The process-wide host device, always the first entry of the table.
    pub const CPU: Device =
        Device { slot: 0, index: 0, kind: DeviceKind::Cpu, dry: false, as_cuda: false };

    /// The host device, as PyTorch's `torch.device("cpu")`.
    pub const fn cpu() -> Device {
        Device::CPU
    }

    /// Names table entry `slot`. Only the device table calls this; a made-up id names no device.
    #[doc(hidden)]
    pub const fn from_slot(slot: u32, kind: DeviceKind, index: u16, dry: bool) -> Device {
        Device { slot, index, kind, dry, as_cuda: false }
    }

    /// The same device, calling itself `cuda`: for a stand-in in the place of a GPU. Only the
    /// device table calls this.
    #[doc(hidden)]
    pub const fn answering_as_cuda(self) -> Device {
        Device { as_cuda: true, ..self }
    }

    /// The entry of the device table that this id names.
    pub const fn slot(self) -> usize {
        self.slot as usize
    }

    /// What sort of device this is; a dry run has the kind of the device it imitates.
    pub const fn kind(self) -> DeviceKind {
        self.kind
    }

    /// The ordinal within its kind (`cuda:1` has 1).
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Whether operations only account for memory here and compute nothing.
    pub const fn is_dry(self) -> bool {
        self.dry
    }

    /// Whether this is host memory that the calling thread may read.
    pub const fn is_cpu(self) -> bool {
        matches!(self.kind, DeviceKind::Cpu)
    }

    /// Whether programs know it as `cuda`: an NVIDIA GPU, or a stand-in that answers in its place.
    pub const fn answers_as_cuda(self) -> bool {
        self.is_cuda() || self.as_cuda
    }

    /// Whether this is an NVIDIA GPU.
    pub const fn is_cuda(self) -> bool {
        matches!(self.kind, DeviceKind::Cuda)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            DeviceKind::Cpu if self.index == 0 => "cpu".to_string(),
            DeviceKind::Cpu => format!("cpu:{}", self.index),
            DeviceKind::Cuda => format!("cuda:{}", self.index),
            DeviceKind::StandIn if self.as_cuda => format!("cuda:{}", self.index),
            DeviceKind::StandIn => format!("standin:{}", self.index),
        };
        if self.dry { f.pad(&format!("dry({name})")) } else { f.pad(&name) }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}
