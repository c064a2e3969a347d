//! From the logs of threads to events: calls that lie in each other become a tree, kernels get the
//! times that their devices measured, bytes go to the innermost event that was open, and what
//! happened outside of all becomes an event of its own (`[memory]`).

use std::collections::HashMap;
use std::time::Duration;

use plimsoll_core::{DType, Device, DeviceKind};
use plimsoll_memory::{ModulePath, Phase, Site};
use plimsoll_tensor::observe::{CallKind, CopyWay};

use crate::event::{Event, EventKind, MemoryPoint};
use crate::flops;
use crate::log::{Enter, Entry, InputMeta, Kernel, MemoryEntry, What};
use crate::profile::Profile;

/// Builds the events of a session.
pub(crate) struct Builder {
    asked: Profile,
    ended_ns: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) memory: Vec<MemoryPoint>,
    /// The first kernel of each device: others' times are from its.
    anchors: HashMap<Device, Kernel>,
}

/// A call of the log that has not ended.
struct Open {
    event: usize,
    /// It was folded into the event, which another call opened and will end.
    folded: bool,
    /// It is a call by name, and whether the operation of that name was found in it.
    named: bool,
    found: bool,
    /// Operands, for the count of floating point operations.
    operation: Option<(&'static str, Vec<InputMeta>)>,
}

impl Builder {
    pub(crate) fn new(asked: Profile, ended_ns: u64) -> Builder {
        let (events, memory, anchors) = (Vec::new(), Vec::new(), HashMap::new());
        Builder { asked, ended_ns, events, memory, anchors }
    }

    /// Adds the events of one thread.
    pub(crate) fn add_thread(&mut self, thread: u64, entries: Vec<Entry>) {
        let mut open: Vec<Open> = Vec::new();
        for entry in entries {
            match entry {
                Entry::Enter(enter) => self.enter(&mut open, thread, *enter),
                // Without a beginning: it began before the session did.
                Entry::Leave { at_ns, outputs } => {
                    if let Some(call) = open.pop() {
                        self.leave(call, at_ns, &outputs);
                    }
                }
                Entry::Kernel(kernel) => {
                    self.kernel(open.last().map(|call| call.event), thread, &kernel);
                }
                Entry::Memory(entry) => {
                    self.memory(open.last().map(|call| call.event), thread, &entry);
                }
            }
        }
        while let Some(call) = open.pop() {
            self.leave(call, self.ended_ns, &[]);
        }
    }

    fn enter(&mut self, open: &mut Vec<Open>, thread: u64, enter: Enter) {
        let parent = open.last().map(|call| call.event);
        let operation = match (enter.what, &enter.name) {
            (What::Call(CallKind::Operation { .. }), std::borrow::Cow::Borrowed(name)) => {
                Some(*name)
            }
            _ => None,
        };
        let operation =
            operation.filter(|_| self.asked.flops).map(|name| (name, enter.inputs.clone()));
        let named = enter.what == What::Call(CallKind::Named);
        if let Some(event) = self.folds(open, &enter) {
            self.describe(event, enter);
            if let Some(outer) = open.last_mut() {
                outer.found = true;
            }
            open.push(Open { event, folded: true, named, found: false, operation });
            return;
        }
        let event = self.events.len();
        let blank = blank(thread, enter.at_ns);
        self.events.push(Event { parent, ..blank });
        self.describe(event, enter);
        open.push(Open { event, folded: false, named, found: false, operation });
    }

    /// The event that `enter` is another word for: `add` of tensors that had to be converted first
    /// is a call by name with the operation of that name in it.
    fn folds(&self, open: &[Open], enter: &Enter) -> Option<usize> {
        let What::Call(CallKind::Operation { .. }) = enter.what else { return None };
        // Once the operation is found, others of its name are its parts.
        let outer = open.last().filter(|outer| outer.named && !outer.found)?;
        let same = self.events[outer.event].name == operation_name(&enter.name, false);
        same.then_some(outer.event)
    }

    /// Fills in what a call says of itself.
    fn describe(&mut self, event: usize, enter: Enter) {
        let Enter { name, what, origin, inputs, stack, .. } = enter;
        let event = &mut self.events[event];
        let full = origin.get();
        (event.kind, event.name) = match what {
            What::Range => (EventKind::Range, name.into_owned()),
            What::Call(CallKind::Wait) => (EventKind::Wait, name.into_owned()),
            What::Call(CallKind::Evaluation | CallKind::Node) => {
                (EventKind::Backward, name.into_owned())
            }
            What::Call(CallKind::Operation { in_place }) => {
                (EventKind::Operation, operation_name(&name, in_place))
            }
            What::Call(_) => (EventKind::Operation, operation_name(&name, false)),
        };
        event.site = full.site;
        event.phase = if event.kind == EventKind::Backward { Phase::Backward } else { full.phase };
        if self.asked.modules {
            event.module = full.module;
        }
        if self.asked.shapes {
            event.input_dtypes = inputs.iter().map(|input| dtype_word(input.dtype)).collect();
            event.input_shapes = inputs.into_iter().map(|input| input.shape).collect();
        }
        if !stack.is_empty() {
            event.stack = stack;
        }
    }

    fn leave(&mut self, call: Open, at_ns: u64, outputs: &[Vec<usize>]) {
        let event = &mut self.events[call.event];
        if let Some((name, inputs)) = call.operation {
            event.flops += flops::count(name, &inputs, outputs);
        }
        if !call.folded {
            event.end_ns = at_ns.max(event.start_ns);
        }
    }

    /// A kernel, at the time and for as long as its device says.
    fn kernel(&mut self, parent: Option<usize>, thread: u64, kernel: &Kernel) {
        let took = kernel.time.wait().unwrap_or(Duration::ZERO).as_nanos() as u64;
        let anchor = self.anchors.entry(kernel.device).or_insert_with(|| kernel.clone());
        let after = kernel.time.started_after(&anchor.time).unwrap_or(Duration::ZERO);
        let start_ns = anchor.at_ns + after.as_nanos() as u64;
        let pageable = kernel.copy.is_some_and(|way| way.pageable);
        self.events.push(Event {
            name: kernel_name(kernel),
            kind: EventKind::Kernel,
            parent,
            device: kernel.device,
            stream: kernel.stream,
            end_ns: start_ns + took,
            device_ns: took,
            self_device_ns: took,
            pageable,
            copied_bytes: kernel.copy.map_or(0, |_| kernel.bytes as u64),
            moved_bytes: kernel.moved_bytes as u64,
            ..blank(thread, start_ns)
        });
        if let Some(parent) = parent {
            self.events[parent].self_device_ns += took;
            self.events[parent].pageable |= pageable;
        }
    }

    fn memory(&mut self, open: Option<usize>, thread: u64, entry: &MemoryEntry) {
        if self.asked.memory {
            self.memory.push(MemoryPoint {
                at_ns: entry.at_ns,
                device: entry.device,
                arena: entry.arena,
                address: entry.address,
                change_bytes: entry.change_bytes,
                allocated_bytes: entry.allocated_bytes,
                reserved_bytes: entry.reserved_bytes,
            });
        } else if open.is_none() {
            // Segments are heard of at any rate, for advice on the calls that took them.
            return;
        }
        let event = open.unwrap_or_else(|| {
            let origin = entry.origin.get();
            self.events.push(Event {
                name: "[memory]".to_string(),
                kind: EventKind::Memory,
                site: origin.site,
                phase: origin.phase,
                ..blank(thread, entry.at_ns)
            });
            self.events.len() - 1
        });
        let event = &mut self.events[event];
        if entry.device.kind() == DeviceKind::Cpu {
            event.self_cpu_bytes += entry.change_bytes;
        } else {
            event.self_device_bytes += entry.change_bytes;
        }
        event.source_bytes += entry.source_bytes.max(0) as u64;
    }

    /// Adds up what lies in each event and orders all by their beginnings.
    pub(crate) fn finish(mut self) -> (Vec<Event>, Vec<MemoryPoint>) {
        for event in &mut self.events {
            event.self_cpu_ns = event.cpu_ns();
            event.cpu_bytes = event.self_cpu_bytes;
            event.device_bytes = event.self_device_bytes;
            event.device_ns = event.self_device_ns;
        }
        // What lies in an event was made after it, so all of its own parts are in it already.
        for index in (0..self.events.len()).rev() {
            let event = &self.events[index];
            let Some(parent) = event.parent.filter(|_| !event.is_on_device()) else { continue };
            let (cpu_ns, device_ns) = (event.cpu_ns(), event.device_ns);
            let (cpu_bytes, device_bytes) = (event.cpu_bytes, event.device_bytes);
            let parent = &mut self.events[parent];
            parent.self_cpu_ns = parent.self_cpu_ns.saturating_sub(cpu_ns);
            parent.device_ns += device_ns;
            parent.cpu_bytes += cpu_bytes;
            parent.device_bytes += device_bytes;
        }
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        order.sort_by_key(|&at| {
            (self.events[at].start_ns, std::cmp::Reverse(self.events[at].end_ns), at)
        });
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &at)| places[at] = place);
        let mut events: Vec<Option<Event>> = self.events.into_iter().map(Some).collect();
        let ordered = order.iter().filter_map(|&at| events[at].take());
        let events =
            ordered.map(|e| Event { parent: e.parent.map(|at| places[at]), ..e }).collect();
        self.memory.sort_by_key(|point| point.at_ns);
        (events, self.memory)
    }
}

fn blank(thread: u64, at_ns: u64) -> Event {
    Event {
        name: String::new(),
        kind: EventKind::Operation,
        parent: None,
        thread,
        device: Device::CPU,
        stream: 0,
        start_ns: at_ns,
        end_ns: at_ns,
        self_cpu_ns: 0,
        device_ns: 0,
        self_device_ns: 0,
        cpu_bytes: 0,
        self_cpu_bytes: 0,
        device_bytes: 0,
        self_device_bytes: 0,
        source_bytes: 0,
        input_shapes: Vec::new(),
        input_dtypes: Vec::new(),
        stack: Vec::new(),
        site: Site::Unknown,
        module: ModulePath::ROOT,
        phase: Phase::Other,
        flops: 0,
        pageable: false,
        copied_bytes: 0,
        moved_bytes: 0,
    }
}

fn operation_name(name: &str, in_place: bool) -> String {
    format!("aten::{name}{}", if in_place && !name.ends_with('_') { "_" } else { "" })
}

/// What a kernel is called; of copies, as PyTorch's profiler has them from the driver.
fn kernel_name(kernel: &Kernel) -> String {
    let Some(CopyWay { from, to, pageable, .. }) = kernel.copy else {
        return format!("{}_kernel", kernel.operation);
    };
    let host = if pageable { "Pageable" } else { "Pinned" };
    match (from.is_cpu(), to.is_cpu()) {
        (true, false) => format!("Memcpy HtoD ({host} -> Device)"),
        (false, true) => format!("Memcpy DtoH (Device -> {host})"),
        _ => "Memcpy DtoD (Device -> Device)".to_string(),
    }
}

/// A dtype as PyTorch's traces have it.
fn dtype_word(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::F16 => "c10::Half",
        DType::BF16 => "c10::BFloat16",
        DType::I64 => "long int",
        DType::I32 => "int",
        DType::I16 => "short int",
        DType::I8 => "signed char",
        DType::U8 => "unsigned char",
        DType::Bool => "bool",
    }
}
