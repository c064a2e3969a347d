//! A trace for Perfetto and `chrome://tracing`: the JSON that PyTorch's `export_chrome_trace`
//! writes, with the host's threads, the devices' streams, arrows from calls to kernels, every
//! change of memory, and counters of allocated and reserved bytes.

use std::io::{BufWriter, Write};
use std::path::Path;

use plimsoll_core::{Device, DeviceKind, Error, Result};
use serde_json::{Value, json};

use crate::averages::device_word;
use crate::event::{Event, EventKind, MemoryPoint};
use crate::recording::Recording;
use crate::stacks::frame_words;

impl Recording {
    /// The trace as text.
    ///
    /// ```
    /// use plimsoll_profile::Profile;
    /// use plimsoll_tensor::{DType, Tensor};
    /// let work = || Tensor::ones(&[8], DType::F32).map(drop);
    /// let recording = Profile::new().memory(true).run(work)?;
    /// let trace = recording.trace_json();
    /// assert!(trace.contains("\"aten::ones\"") && trace.contains("\"allocated_bytes\":512"));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn trace_json(&self) -> String {
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = self.write_trace(&mut bytes);
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// Writes the trace to a file: PyTorch's `export_chrome_trace`.
    pub fn chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let write = || {
            let mut file = BufWriter::new(std::fs::File::create(path)?);
            self.write_trace(&mut file)?;
            file.flush()
        };
        write().map_err(|cause: std::io::Error| {
            Error::invalid_argument(format!("cannot write {}", path.display()))
                .in_operation("export_chrome_trace")
                .because(cause)
        })
    }

    /// One event a line, so that no second copy of a long trace is made.
    fn write_trace(&self, out: &mut impl Write) -> std::io::Result<()> {
        write!(
            out,
            "{{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":{},\"traceEvents\":[",
            self.began_unix_ns
        )?;
        let mut separator = "\n";
        let mut put = |value: Value| -> std::io::Result<()> {
            write!(out, "{separator}{value}")?;
            separator = ",\n";
            Ok(())
        };
        self.names().into_iter().try_for_each(&mut put)?;
        for (index, event) in self.events.iter().enumerate() {
            match event.kind {
                // It has a counter and an instant below.
                EventKind::Memory => {}
                EventKind::Kernel => {
                    put(kernel(index, event))?;
                    self.arrow(index, event).into_iter().flatten().try_for_each(&mut put)?;
                }
                _ => put(call(index, event))?,
            }
        }
        let told = self.memory.iter().flat_map(|point| [counter(point), instant(point)]);
        told.flatten().try_for_each(&mut put)?;
        out.write_all(b"\n]}\n")
    }

    /// Names of processes and threads: the host is process 0, devices follow.
    fn names(&self) -> Vec<Value> {
        let mut named = vec![json!({
            "ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "host"}
        })];
        for (thread, name) in &self.threads {
            let name = name.clone().unwrap_or_else(|| format!("thread {thread}"));
            named.push(json!({
                "ph": "M", "name": "thread_name", "pid": 0, "tid": thread, "args": {"name": name}
            }));
        }
        let mut devices: Vec<Device> =
            self.events.iter().filter(|e| e.is_on_device()).map(|e| e.device).collect();
        devices.sort();
        devices.dedup();
        named.extend(devices.into_iter().map(|device| {
            json!({
                "ph": "M", "name": "process_name", "pid": process(device), "tid": 0,
                "args": {"name": device.to_string()}
            })
        }));
        named
    }

    /// From the call that launched a kernel to the kernel.
    fn arrow(&self, index: usize, event: &Event) -> Option<[Value; 2]> {
        let from = &self.events[event.parent?];
        let end = |ph: &str, at_ns: u64, pid: u64, tid: u64| {
            json!({
                "ph": ph, "id": index, "cat": "ac2g", "name": "ac2g", "bp": "e",
                "pid": pid, "tid": tid, "ts": us(at_ns)
            })
        };
        Some([
            end("s", from.start_ns, 0, from.thread),
            end("f", event.start_ns, process(event.device), event.stream),
        ])
    }
}

/// Microseconds, as the format has them.
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// The number of a device's process; the host's is 0.
fn process(device: Device) -> u64 {
    device.slot() as u64 + 1
}

fn span(event: &Event, category: &str, pid: u64, tid: u64, arguments: Value) -> Value {
    json!({
        "ph": "X", "cat": category, "name": event.name, "pid": pid, "tid": tid,
        "ts": us(event.start_ns), "dur": us(event.end_ns - event.start_ns), "args": arguments
    })
}

fn call(index: usize, event: &Event) -> Value {
    let category = match event.kind {
        EventKind::Range => "user_annotation",
        EventKind::Wait => "cuda_runtime",
        _ => "cpu_op",
    };
    let mut arguments = json!({"External id": index});
    let mut set = |key: &str, value: Value| arguments[key] = value;
    if !event.input_shapes.is_empty() {
        set("Input Dims", json!(event.input_shapes));
        set("Input type", json!(event.input_dtypes));
    }
    if !event.stack.is_empty() {
        let frames: Vec<String> = event.stack.iter().rev().map(|&site| frame_words(site)).collect();
        set("Call stack", json!(frames.join(";")));
    }
    if !event.module.is_root() {
        set("Module Hierarchy", json!(event.module.to_string()));
    }
    if event.flops > 0 {
        set("flops", json!(event.flops));
    }
    if event.cpu_bytes != 0 || event.device_bytes != 0 {
        set("CPU bytes", json!(event.cpu_bytes));
        set("Device bytes", json!(event.device_bytes));
    }
    span(event, category, 0, event.thread, arguments)
}

fn kernel(index: usize, event: &Event) -> Value {
    let copy = event.name.starts_with("Memcpy");
    let mut arguments = json!({
        "External id": index, "device": event.device.index(), "stream": event.stream
    });
    if copy {
        arguments["bytes"] = json!(event.copied_bytes);
    }
    let category = if copy { "gpu_memcpy" } else { "kernel" };
    span(event, category, process(event.device), event.stream, arguments)
}

fn arena_word(point: &MemoryPoint) -> String {
    point.arena.map_or_else(|| point.device.to_string(), str::to_string)
}

/// The bytes of an arena from now on.
fn counter(point: &MemoryPoint) -> Option<Value> {
    Some(json!({
        "ph": "C", "name": format!("memory {}", arena_word(point)), "pid": 0, "tid": 0,
        "ts": us(point.at_ns),
        "args": {"allocated_bytes": point.allocated_bytes, "reserved_bytes": point.reserved_bytes}
    }))
}

/// A block that came or went, as PyTorch's memory view reads it.
fn instant(point: &MemoryPoint) -> Option<Value> {
    if point.change_bytes == 0 {
        return None;
    }
    // PyTorch's numbers of sorts of devices.
    let sort = match point.device.kind() {
        DeviceKind::Cpu => 0,
        DeviceKind::Cuda => 1,
        DeviceKind::StandIn => 20,
    };
    let cpu = point.device.kind() == DeviceKind::Cpu;
    let number = if cpu { -1 } else { point.device.index() as i64 };
    Some(json!({
        "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 0, "tid": 0,
        "ts": us(point.at_ns),
        "args": {
            "Device Type": sort, "Device Id": number, "Addr": point.address,
            "Bytes": point.change_bytes, "Total Allocated": point.allocated_bytes,
            "Total Reserved": point.reserved_bytes, "Device": device_word(point.device.kind())
        }
    }))
}
