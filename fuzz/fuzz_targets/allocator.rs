//! Random programs on arenas of several configurations, over a device whose streams move only when
//! the program says so. After every step the book balances; no two live blocks overlap; memory that
//! queued work still uses is neither handed to another stream nor given back; and when all is
//! freed, nothing is left.

#![no_main]

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, Block, BlockUse, BlockView, Configuration, External, Fence, FenceState, HistoryLevel,
    Kind, OriginId, PeakScope, Request, Room, Site, Snapshot, Source, SourceFull, StreamId,
    set_step,
};

const STREAMS: usize = 3;
const CAPACITY: usize = 256 << 20;

/// How far each stream's queue was filled and has run.
#[derive(Debug, Default)]
struct Queues {
    queued: [AtomicU64; STREAMS],
    done: [AtomicU64; STREAMS],
}

impl Queues {
    /// Queues one piece of work; returns its place.
    fn queue(&self, stream: usize) -> u64 {
        self.queued[stream].fetch_add(1, Ordering::SeqCst) + 1
    }

    fn run_to(&self, stream: usize, place: u64) {
        self.done[stream].fetch_max(place, Ordering::SeqCst);
    }

    fn run_all(&self, stream: usize) {
        self.run_to(stream, self.queued[stream].load(Ordering::SeqCst));
    }

    fn is_done(&self, stream: usize, place: u64) -> bool {
        self.done[stream].load(Ordering::SeqCst) >= place
    }
}

#[derive(Debug)]
struct Point {
    queues: Arc<Queues>,
    stream: usize,
    place: u64,
}

impl FenceState for Point {
    fn is_done(&self) -> bool {
        self.queues.is_done(self.stream, self.place)
    }

    fn wait(&self) {
        self.queues.run_to(self.stream, self.place);
    }
}

/// Memory that queued work uses although its block is gone.
#[derive(Clone, Copy, Debug)]
struct Used {
    address: usize,
    bytes: usize,
    /// The block's own stream, whose later work is ordered behind.
    home: usize,
    stream: usize,
    place: u64,
}

fn overlap(a: (usize, usize), b: (usize, usize)) -> bool {
    a.0 < b.0 + b.1 && b.0 < a.0 + a.1
}

/// Addresses without memory, a capacity, and streams that move by hand.
#[derive(Clone, Debug)]
struct Machine {
    queues: Arc<Queues>,
    used: Arc<Mutex<Vec<Used>>>,
    reserved: Arc<Mutex<(usize, usize)>>,
}

impl Source for Machine {
    fn name(&self) -> &'static str {
        "fuzzed"
    }

    fn reserve(&self, bytes: usize) -> Result<NonZeroUsize, SourceFull> {
        let mut reserved = self.reserved.lock().unwrap();
        if bytes > CAPACITY - reserved.0 {
            return Err(SourceFull::because("the machine is full"));
        }
        let address = (1 << 40) + reserved.1;
        reserved.0 += bytes;
        // A gap, so that segments never touch.
        reserved.1 += bytes.next_multiple_of(1 << 21) + (1 << 21);
        Ok(NonZeroUsize::new(address).unwrap())
    }

    unsafe fn release(&self, address: NonZeroUsize, bytes: usize) {
        for used in self.used.lock().unwrap().iter() {
            let touched = overlap((used.address, used.bytes), (address.get(), bytes));
            let done = self.queues.is_done(used.stream, used.place);
            assert!(!touched || done, "released under queued work: {used:?}");
        }
        self.reserved.lock().unwrap().0 -= bytes;
    }

    fn room(&self) -> Room {
        let free = CAPACITY - self.reserved.lock().unwrap().0;
        Room { total_bytes: Some(CAPACITY), free_bytes: Some(free), used_by_others_bytes: None }
    }

    fn record(&self, stream: StreamId) -> Fence {
        let stream = stream.0 as usize;
        let place = self.queues.queue(stream);
        Fence::new(Arc::new(Point { queues: self.queues.clone(), stream, place }))
    }

    fn synchronize(&self, stream: StreamId) {
        self.queues.run_all(stream.0 as usize);
    }
}

struct Bench {
    arena: &'static Arena,
    configuration: Configuration,
    machine: Machine,
}

/// Arenas live for ever, so each configuration has one, and every program leaves it empty.
fn benches() -> &'static [Bench] {
    static BENCHES: OnceLock<Vec<Bench>> = OnceLock::new();
    BENCHES.get_or_init(|| {
        let texts = [
            "",
            "memory_limit:64MiB",
            "memory_limit:100MiB,memory_soft_limit:40MiB",
            "max_split_size_mb:20,max_non_split_rounding_mb:4",
            "garbage_collection_threshold:0.3",
            "roundup_power2_divisions:4,large_segment_size_mb:32",
            "per_process_memory_fraction:0.25",
            "caching:false",
        ];
        let bench = |text: &&str| {
            let configuration = Configuration::parse(text).expect("these settings fit");
            let machine =
                Machine { queues: Arc::default(), used: Arc::default(), reserved: Arc::default() };
            let source = Box::new(machine.clone());
            let arena = Arena::open(Device::cpu(), source, &configuration);
            Bench { arena, configuration, machine }
        };
        texts.iter().map(bench).collect()
    })
}

/// A live block and the streams besides its own that use it.
struct Live {
    block: Block,
    users: Vec<usize>,
}

struct Program<'a> {
    bench: &'a Bench,
    live: Vec<Live>,
    externals: Vec<External>,
    scopes: Vec<PeakScope>,
    /// How many snapshots this program may still take: writing one out takes longer than all the
    /// rest.
    snapshots: u32,
}

fn size(bytes: &mut Unstructured<'_>) -> Result<usize> {
    Ok(match bytes.arbitrary::<u8>()? {
        0 => 0,
        1 => usize::MAX - bytes.int_in_range(0..=4096)?,
        2 => 1 << bytes.int_in_range(0..=63)?,
        _ => {
            let low = 1usize << bytes.int_in_range(3..=25)?;
            low + usize::from(bytes.arbitrary::<u16>()?) % low
        }
    })
}

impl Program<'_> {
    fn step(&mut self, bytes: &mut Unstructured<'_>) -> Result<()> {
        let arena = self.bench.arena;
        match bytes.int_in_range(0..=31)? {
            0..=11 => self.allocate(bytes)?,
            12..=19 if !self.live.is_empty() => {
                let at = bytes.choose_index(self.live.len())?;
                self.free(at);
            }
            20 if !self.live.is_empty() => {
                let at = bytes.choose_index(self.live.len())?;
                let kind = *bytes.choose(&Kind::ALL)?;
                self.live[at].block.set_kind(kind);
                assert_eq!(self.live[at].block.kind(), kind);
            }
            21..=23 if !self.live.is_empty() => {
                let at = bytes.choose_index(self.live.len())?;
                let stream = bytes.int_in_range(0..=STREAMS - 1)?;
                self.live[at].block.record_use(StreamId(stream as u64));
                self.live[at].users.push(stream);
            }
            24 | 25 => self.bench.machine.queues.run_all(bytes.int_in_range(0..=STREAMS - 1)?),
            26 => _ = arena.empty_cache(),
            27 => _ = arena.trim(size(bytes)?),
            28 => match bytes.arbitrary::<bool>()? {
                true => arena.reset_peak_stats(),
                false => arena.reset_accumulated_stats(),
            },
            29 => {
                let levels = [
                    HistoryLevel::Off,
                    HistoryLevel::State,
                    HistoryLevel::Alloc,
                    HistoryLevel::All,
                ];
                arena.record_history(*bytes.choose(&levels)?, bytes.int_in_range(0..=200)?);
            }
            30 => match bytes.int_in_range(0..=3)? {
                0 => {
                    let counted = size(bytes)?;
                    let origin = OriginId::intern("external", Site::Unknown);
                    self.externals.push(arena.external(counted, origin, Kind::Input));
                }
                1 => _ = self.externals.pop(),
                2 => self.scopes.push(arena.scoped_peak()),
                _ if !self.scopes.is_empty() => {
                    let at = bytes.choose_index(self.scopes.len())?;
                    let scope = self.scopes.swap_remove(at);
                    let allocated = arena.stats().allocated_bytes.all.current as usize;
                    assert!(scope.allocated_bytes_peak() >= allocated);
                }
                _ => {}
            },
            31 if self.snapshots > 0 => {
                self.snapshots -= 1;
                self.snapshot();
            }
            _ => {}
        }
        Ok(())
    }

    fn allocate(&mut self, bytes: &mut Unstructured<'_>) -> Result<()> {
        let wanted = size(bytes)?;
        let stream = bytes.int_in_range(0..=STREAMS - 1)?;
        let operation = *bytes.choose(&["add", "matmul", "exp"])?;
        let origin = OriginId::intern(operation, Site::Foreign(stream as u32));
        let kind = *bytes.choose(&Kind::ALL)?;
        let request =
            Request { kind, stream: StreamId(stream as u64), ..Request::new(wanted, origin) };
        match self.bench.arena.allocate(&request) {
            Ok(block) => {
                assert_eq!(block.requested_bytes(), wanted);
                assert_eq!(block.address() % 512, 0);
                let range = (block.address(), block.allocated_bytes());
                assert!(range.1 >= wanted);
                for other in self.live.iter().map(|live| &live.block) {
                    let theirs = (other.address(), other.allocated_bytes());
                    assert!(
                        range.1 == 0 || theirs.1 == 0 || !overlap(range, theirs),
                        "{block:?} over {other:?} wanted {wanted}"
                    );
                }
                let queues = &self.bench.machine.queues;
                let mut used = self.bench.machine.used.lock().unwrap();
                used.retain(|used| !queues.is_done(used.stream, used.place));
                for used in used.iter() {
                    let touched = overlap((used.address, used.bytes), range);
                    // Work on the block's own stream comes before whatever the new owner queues
                    // there.
                    let ordered = used.stream == used.home && used.home == stream;
                    assert!(!touched || ordered, "handed out under queued work: {used:?}");
                }
                drop(used);
                self.live.push(Live { block, users: Vec::new() });
            }
            // More than an address space holds is a wrong size, not a lack of memory.
            Err(error) if error.is_invalid_argument() => assert!(wanted > 1 << 40, "{error}"),
            Err(error) => {
                assert!(error.is_out_of_memory(), "{error:?}");
                assert!(error.to_string().len() > 100, "a report: {error}");
                // Without limits nothing small may fail while the machine has room. What a live
                // block shares its segment with is no room: by PyTorch's rules it serves one pool
                // only, and cannot be given back.
                let is_live = |block: &BlockView| block.state != BlockUse::Inactive;
                let taken = self.bench.arena.segments().into_iter();
                let taken = taken.filter(|segment| segment.blocks.iter().any(is_live));
                let taken: usize = taken.map(|segment| segment.bytes).sum();
                let unlimited = self.bench.configuration.to_text().is_empty();
                assert!(!unlimited || taken + wanted.min(CAPACITY) > CAPACITY / 4, "{error}");
            }
        }
        Ok(())
    }

    fn free(&mut self, at: usize) {
        let Live { block, users } = self.live.swap_remove(at);
        let home = block.stream().0 as usize;
        let (address, bytes) = (block.address(), block.allocated_bytes());
        // The last work that uses the block is queued on its own stream and on each user's, then it
        // is dropped.
        let queues = &self.bench.machine.queues;
        if bytes > 0 {
            let mut used = self.bench.machine.used.lock().unwrap();
            for stream in users.into_iter().chain([home]) {
                let place = queues.queue(stream);
                used.push(Used { address, bytes, home, stream, place });
            }
        }
        drop(block);
    }

    fn snapshot(&self) {
        let snapshot = Snapshot::take(&[self.bench.arena], &self.bench.configuration);
        let device = &snapshot.devices[0];
        let reserved: usize = device.segments.iter().map(|segment| segment.bytes).sum();
        assert_eq!(reserved as i64, device.stats.reserved_bytes.all.current);
        let mut written = Vec::new();
        snapshot.write_pickle(&mut written).expect("memory takes everything");
        snapshot.write_json(&mut written).expect("memory takes everything");
    }

    /// The arena's own check, and what the program knows by itself.
    fn check(&self) {
        let arena = self.bench.arena;
        arena.check_balanced().unwrap_or_else(|difference| panic!("{difference}"));
        let stats = arena.stats();
        let blocks =
            || self.live.iter().map(|live| &live.block).filter(|b| b.allocated_bytes() > 0);
        let allocated: usize = blocks().map(Block::allocated_bytes).sum();
        assert_eq!(stats.allocated_bytes.all.current as usize, allocated);
        assert_eq!(stats.allocation.all.current as usize, blocks().count());
        let reserved = self.bench.machine.reserved.lock().unwrap().0;
        assert_eq!(stats.reserved_bytes.all.current as usize, reserved);
        let by_kind: usize = arena.live_by_kind().iter().map(|row| row.bytes).sum();
        assert_eq!(by_kind, allocated);
    }

    fn end(mut self) {
        self.scopes.clear();
        self.externals.clear();
        while !self.live.is_empty() {
            self.free(self.live.len() - 1);
        }
        let arena = self.bench.arena;
        arena.record_history(HistoryLevel::Off, 0);
        arena.empty_cache();
        self.check();
        assert_eq!(arena.live_bytes(), 0);
        assert_eq!(arena.stats().reserved_bytes.all.current, 0);
        self.bench.machine.used.lock().unwrap().clear();
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Unstructured::new(bytes);
    let Ok(bench) = bytes.choose(benches()) else { return };
    let mut program = Program {
        bench,
        live: Vec::new(),
        externals: Vec::new(),
        scopes: Vec::new(),
        snapshots: 1,
    };
    let mut steps = 0;
    while !bytes.is_empty() && program.step(&mut bytes).is_ok() {
        steps += 1;
        // The check walks everything; what is wrong at one step still is a few steps later. A
        // training step leaves marks that every snapshot writes, so it is longer than one step of
        // the program.
        if steps % 8 == 0 {
            set_step(steps);
            program.check();
        }
    }
    program.end();
});
