//! Ten ways in which programs use memory, generated: the shapes of real training and serving, and
//! the ones that hurt a best-fit allocator. The same numbers every time.

use super::trace::TraceEvent;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A small generator of numbers (splitmix64): no dependency, and the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// As many sizes between each power of two and the next.
    fn log_uniform(&mut self, low: usize, high: usize) -> usize {
        let doublings = (high / low).ilog2() as usize;
        let floor = low << self.below(doublings);
        floor + self.below(floor)
    }
}

/// Events being written, with numbers for allocations.
#[derive(Default)]
struct Program {
    events: Vec<TraceEvent>,
    allocations: usize,
}

impl Program {
    fn allocate_on(&mut self, stream: u64, bytes: usize) -> usize {
        let id = self.allocations;
        self.allocations += 1;
        self.events.push(TraceEvent::Allocate { id, bytes, stream });
        id
    }

    fn allocate(&mut self, bytes: usize) -> usize {
        self.allocate_on(0, bytes)
    }

    fn free(&mut self, id: usize) {
        self.events.push(TraceEvent::Free { id });
    }
}

/// All patterns by name.
pub(crate) fn all() -> Vec<(&'static str, Vec<TraceEvent>)> {
    vec![
        ("transformer training", transformer_training()),
        ("variable sequence lengths", variable_lengths()),
        ("many small tensors", many_small()),
        ("around the small pool's edge", around(MIB, 3)),
        ("around the large segment's edge", around(10 * MIB, 5)),
        ("growing cache", growing_cache()),
        ("random large blocks", random_large()),
        ("two streams", two_streams()),
        ("checkpointed stack", checkpointed()),
        ("every second one kept", every_second_kept()),
    ]
}

/// Parameters and optimizer state stay; activations pile up and are released in reverse while
/// gradients appear.
fn transformer_training() -> Vec<TraceEvent> {
    let mut program = Program::default();
    let layers: Vec<usize> = (0..12).flat_map(|_| [9 * MIB, 3 * MIB, 12 * MIB, 12 * KIB]).collect();
    layers.iter().for_each(|&bytes| _ = program.allocate(bytes));
    let mut moments = Vec::new();
    for _step in 0..6 {
        let input = program.allocate(32 * KIB);
        let saved: Vec<(usize, usize)> = layers
            .iter()
            .map(|&weight| {
                let scratch = program.allocate(weight / 3 + 1000);
                let kept = program.allocate(weight / 2 + 40);
                program.free(scratch);
                (kept, weight)
            })
            .collect();
        let mut flowing = program.allocate(6 * MIB);
        let mut gradients = Vec::new();
        for (kept, weight) in saved.into_iter().rev() {
            let next = program.allocate(6 * MIB);
            gradients.push(program.allocate(weight));
            program.free(kept);
            program.free(flowing);
            flowing = next;
        }
        program.free(flowing);
        if moments.is_empty() {
            moments = layers.iter().flat_map(|&bytes| [bytes, bytes]).collect();
            moments.iter().for_each(|&bytes| _ = program.allocate(bytes));
        }
        gradients.into_iter().for_each(|id| program.free(id));
        program.free(input);
    }
    program.events
}

/// Batches whose length differs at every step.
fn variable_lengths() -> Vec<TraceEvent> {
    let mut program = Program::default();
    let mut numbers = Numbers(2);
    (0..8).for_each(|_| _ = program.allocate(5 * MIB));
    for _step in 0..40 {
        let length = 64 + numbers.below(960);
        let kept: Vec<usize> = (0..8)
            .map(|layer| {
                let scratch = program.allocate(length * length * 16);
                let kept = program.allocate(length * (layer + 1) * 3 * KIB);
                program.free(scratch);
                kept
            })
            .collect();
        kept.into_iter().rev().for_each(|id| program.free(id));
    }
    program.events
}

fn many_small() -> Vec<TraceEvent> {
    let mut numbers = Numbers(3);
    churn(3000, 400, |program, _| {
        let bytes = numbers.log_uniform(16, 256 * KIB);
        program.allocate(bytes)
    })
}

/// Sizes a little below, at and above an edge of the rules.
fn around(edge: usize, seed: u64) -> Vec<TraceEvent> {
    let mut numbers = Numbers(seed);
    churn(800, 24, |program, _| {
        let shift = [0, 1, 512, 4 * KIB, edge / 8, edge / 2][numbers.below(6)];
        let bytes = if numbers.below(2) == 0 { edge + shift } else { edge - shift };
        program.allocate(bytes)
    })
}

/// A key-value cache that is copied into a larger one at every token.
fn growing_cache() -> Vec<TraceEvent> {
    let mut program = Program::default();
    let mut caches: Vec<usize> = (0..4).map(|_| program.allocate(128 * KIB)).collect();
    for token in 1..150 {
        for cache in &mut caches {
            let larger = program.allocate((token + 1) * 128 * KIB);
            let scores = program.allocate((token + 1) * 2 * KIB);
            program.free(*cache);
            program.free(scores);
            *cache = larger;
        }
    }
    program.events
}

fn random_large() -> Vec<TraceEvent> {
    let mut numbers = Numbers(7);
    churn(600, 30, |program, _| {
        let bytes = numbers.log_uniform(MIB, 128 * MIB);
        program.allocate(bytes)
    })
}

fn two_streams() -> Vec<TraceEvent> {
    let mut numbers = Numbers(8);
    churn(1200, 60, |program, turn| {
        let bytes = numbers.log_uniform(KIB, 32 * MIB);
        program.allocate_on((turn % 2) as u64, bytes)
    })
}

/// Only every fourth activation is kept; the others are computed again on the way back.
fn checkpointed() -> Vec<TraceEvent> {
    let mut program = Program::default();
    for step in 0..5 {
        let activation = 4 * MIB + step * 300 * KIB;
        let mut kept = Vec::new();
        for layer in 0..24 {
            let out = program.allocate(activation);
            if layer % 4 == 0 { kept.push(out) } else { program.free(out) }
        }
        for checkpoint in kept.into_iter().rev() {
            let again: Vec<usize> = (0..4).map(|_| program.allocate(activation)).collect();
            for out in again.into_iter().rev() {
                let gradient = program.allocate(activation / 2);
                program.free(out);
                program.free(gradient);
            }
            program.free(checkpoint);
        }
    }
    program.events
}

/// Fragmentation on purpose: of each burst every second block stays, and the next burst is larger.
fn every_second_kept() -> Vec<TraceEvent> {
    let mut program = Program::default();
    let mut stayed = Vec::new();
    for burst in 0..12 {
        let bytes = 600 * KIB + burst * 350 * KIB;
        let ids: Vec<usize> = (0..20).map(|_| program.allocate(bytes)).collect();
        for (place, id) in ids.into_iter().enumerate() {
            if place % 2 == 0 { stayed.push(id) } else { program.free(id) }
        }
        if burst % 3 == 2 {
            stayed.drain(..).for_each(|id| program.free(id));
        }
    }
    program.events
}

/// `turns` allocations of which about `live_max` live at once, freed in random order.
fn churn(
    turns: usize,
    live_max: usize,
    mut allocate: impl FnMut(&mut Program, usize) -> usize,
) -> Vec<TraceEvent> {
    let mut program = Program::default();
    let mut numbers = Numbers(turns as u64);
    let mut live = Vec::new();
    for turn in 0..turns {
        live.push(allocate(&mut program, turn));
        // Waves: the ceiling itself rises and falls, so that peaks are reached more than once.
        let ceiling = 1 + live_max * (1 + turn * 8 / turns % 4) / 4;
        while live.len() > ceiling {
            let at = numbers.below(live.len());
            program.free(live.swap_remove(at));
        }
    }
    program.events
}
