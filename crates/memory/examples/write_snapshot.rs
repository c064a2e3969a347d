//! Runs a small made-up training loop over the allocator and writes its snapshot, as a pickle and
//! as JSON, into the folder given. `tests/viz.py` opens the result with PyTorch's own tools:
//!
//! ```text
//! cargo run -p plimsoll-memory --example write_snapshot -- FOLDER
//! python crates/memory/tests/viz.py FOLDER
//! ```

use std::path::PathBuf;

use plimsoll_core::{Device, Result};
use plimsoll_memory::{
    Arena, Block, Configuration, HistoryLevel, HostSource, Kind, OriginId, Phase, Request, Site,
    Snapshot, enter_module, enter_phase, set_step,
};

#[track_caller]
fn allocate(
    arena: &'static Arena,
    operation: &'static str,
    bytes: usize,
    kind: Kind,
) -> Result<Block> {
    let origin = OriginId::intern(operation, Site::caller());
    arena.allocate(&Request { kind, ..Request::new(bytes, origin) })
}

fn train(arena: &'static Arena, steps: u64) -> Result<Vec<Block>> {
    let mut kept = Vec::new();
    for layer in 0..4 {
        let _module = enter_module(&format!("layers.{layer}"));
        kept.push(allocate(arena, "randn", (layer + 1) * 700_000, Kind::Parameter)?);
    }
    for step in 1..=steps {
        set_step(step);
        let batch = allocate(arena, "from_slice", 123_456, Kind::Input)?;
        let mut saved = Vec::new();
        {
            let _phase = enter_phase(Phase::Forward);
            for layer in 0..4 {
                let _module = enter_module(&format!("layers.{layer}"));
                let scratch = allocate(arena, "matmul", 3 << 20, Kind::Workspace)?;
                let output = allocate(arena, "relu", 1_500_000 + 1000 * layer, Kind::Temporary)?;
                output.set_kind(Kind::Activation);
                drop(scratch);
                saved.push(output);
            }
        }
        let _phase = enter_phase(Phase::Backward);
        let mut gradients = Vec::new();
        while let Some(activation) = saved.pop() {
            gradients.push(allocate(arena, "matmul", 900_000, Kind::Gradient)?);
            drop(activation);
        }
        if step == steps {
            kept.append(&mut gradients);
        }
        drop(batch);
    }
    Ok(kept)
}

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_string()));
    let configuration = Configuration::builder()
        .history(HistoryLevel::All)
        .history_entries(50_000)
        .memory_limit_bytes(1 << 30)
        .build()?;
    let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    let kept = train(arena, 300)?;
    // An out-of-memory entry, and a segment that went back.
    let refused = allocate(arena, "zeros", 4 << 30, Kind::Unknown).err();
    assert!(refused.is_some_and(|error| error.is_out_of_memory()));
    let last = allocate(arena, "zeros", 40 << 20, Kind::Temporary)?;
    let snapshot = Snapshot::take(&[arena], &configuration);
    snapshot.save(folder.join("snapshot.pickle"))?;
    snapshot.save(folder.join("snapshot.json"))?;
    drop((kept, last));
    Ok(())
}
