//! The allocator from outside: sizes, reuse, splitting and merging, streams, kinds, peaks, each
//! asserted in bytes worked out by hand from PyTorch's published rules.

use plimsoll_core::Device;
use plimsoll_memory::{
    Arena, BlockUse, Configuration, DrySource, HostSource, Kind, OriginId, Request, Site, StreamId,
};

const MIB: usize = 1 << 20;

fn dry() -> &'static Arena {
    Arena::open(Device::cpu(), Box::new(DrySource::new(None)), &Configuration::default())
}

fn request(bytes: usize) -> Request {
    Request::new(bytes, OriginId::intern("test", Site::Unknown))
}

#[test]
fn a_small_block_is_cut_from_a_segment_and_merges_back() {
    let arena = dry();
    let a = arena.allocate(&request(1)).unwrap();
    let b = arena.allocate(&request(513)).unwrap();
    assert_eq!((a.allocated_bytes(), b.allocated_bytes()), (512, 1024));
    assert_eq!(b.address(), a.address() + 512);
    let stats = arena.stats();
    assert_eq!(stats.reserved_bytes.small_pool.current, 2 * MIB as i64);
    assert_eq!(stats.allocated_bytes.all.current, 1536);
    assert_eq!(stats.requested_bytes.all.current, 514);
    assert_eq!(stats.inactive_split.all.current, 1);
    assert_eq!(stats.inactive_split_bytes.all.current, 2 * MIB as i64 - 1536);
    arena.check_balanced().unwrap();
    drop(a);
    assert_eq!(arena.stats().inactive_split.all.current, 2);
    drop(b);
    let stats = arena.stats();
    assert_eq!(stats.inactive_split.all.current, 0);
    assert_eq!(stats.allocated_bytes.all.peak, 1536);
    assert_eq!(stats.allocated_bytes.all.freed, 1536);
    arena.check_balanced().unwrap();
    assert_eq!(arena.empty_cache(), 2 * MIB);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    arena.check_balanced().unwrap();
}

#[test]
fn the_best_fit_is_the_smallest_block_and_then_the_oldest() {
    let arena = dry();
    let keep = |bytes| arena.allocate(&request(bytes)).unwrap();
    let (a, gap1, b, gap2, c, gap3) =
        (keep(2048), keep(512), keep(1024), keep(512), keep(1024), keep(512));
    let (b_address, c_address) = (b.address(), c.address());
    drop((a, b, c));
    let first = keep(1000);
    let second = keep(1000);
    assert_eq!(first.address(), b_address);
    assert_eq!(second.address(), c_address);
    drop((gap1, gap2, gap3));
    arena.check_balanced().unwrap();
}

#[test]
fn large_blocks_share_a_segment_of_20_mib_below_10_and_own_one_above() {
    let arena = dry();
    let a = arena.allocate(&request(2 * MIB)).unwrap();
    let b = arena.allocate(&request(4 * MIB)).unwrap();
    assert_eq!(arena.stats().reserved_bytes.large_pool.current, 20 * MIB as i64);
    let c = arena.allocate(&request(11 * MIB + 1)).unwrap();
    assert_eq!(c.allocated_bytes(), 11 * MIB + 512);
    let stats = arena.stats();
    assert_eq!(stats.segment.large_pool.current, 1, "what is left of the first has room for it");
    let d = arena.allocate(&request(11 * MIB + 1)).unwrap();
    assert_eq!(d.allocated_bytes(), 12 * MIB, "a rest of 1 MiB or less is not cut off");
    assert_eq!(arena.stats().reserved_bytes.all.current, 32 * MIB as i64);
    drop((a, b, c, d));
    arena.check_balanced().unwrap();
}

#[test]
fn streams_do_not_share_free_blocks() {
    let arena = dry();
    let on = |stream| Request { stream: StreamId(stream), ..request(512) };
    let first = arena.allocate(&on(0)).unwrap();
    let address = first.address();
    drop(first);
    let other = arena.allocate(&on(7)).unwrap();
    assert_ne!(other.address(), address);
    assert_eq!(arena.allocate(&on(0)).unwrap().address(), address);
    assert_eq!(arena.stats().segment.all.current, 2);
    arena.check_balanced().unwrap();
}

#[test]
fn zero_bytes_take_no_memory_and_impossible_sizes_are_an_error() {
    let arena = dry();
    let empty = arena.allocate(&request(0)).unwrap();
    assert_ne!(empty.address(), 0);
    assert_eq!(empty.address() % 512, 0);
    assert_eq!((empty.requested_bytes(), empty.allocated_bytes()), (0, 0));
    empty.set_kind(Kind::Parameter);
    empty.record_use(StreamId(3));
    assert_eq!(empty.kind(), Kind::Parameter);
    drop(empty);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    for bytes in [usize::MAX, usize::MAX - 511, 1 << 63] {
        let error = arena.allocate(&request(bytes)).unwrap_err();
        assert!(error.is_invalid_argument() || error.is_out_of_memory());
    }
    arena.check_balanced().unwrap();
}

#[test]
fn kinds_and_origins_add_up_now_and_at_the_peak() {
    let arena = dry();
    let of = |operation, kind, bytes| {
        let origin = OriginId::intern(operation, Site::Unknown);
        arena.allocate(&Request { kind, ..Request::new(bytes, origin) }).unwrap()
    };
    let weight = of("linear", Kind::Parameter, 4096);
    let hidden = of("relu", Kind::Temporary, 1024);
    hidden.set_kind(Kind::Activation);
    drop(of("exp", Kind::Temporary, 2048));
    drop(hidden);
    let rows = arena.live_by_kind();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].kind, rows[0].bytes, rows[0].count), (Kind::Parameter, 4096, 1));
    let at_peak: Vec<_> = arena
        .peak_by_origin()
        .iter()
        .map(|row| (row.origin.get().operation, row.kind, row.bytes))
        .collect();
    assert_eq!(
        at_peak,
        [
            ("linear", Kind::Parameter, 4096),
            ("exp", Kind::Temporary, 2048),
            ("relu", Kind::Activation, 1024)
        ]
    );
    arena.reset_peak_stats();
    assert_eq!(arena.peak_by_kind(), arena.live_by_kind());
    arena.check_balanced().unwrap();
    drop(weight);
}

#[test]
fn scoped_peaks_nest_overlap_and_ignore_resets() {
    let arena = dry();
    let take = |bytes| arena.allocate(&request(bytes)).unwrap();
    let outer = arena.scoped_peak();
    let base = take(1024);
    let inner = arena.scoped_peak();
    drop(take(4096));
    arena.reset_peak_stats();
    assert_eq!(inner.allocated_bytes_peak(), 5120);
    assert_eq!(outer.allocated_bytes_peak(), 5120);
    let third = arena.scoped_peak();
    drop(take(8192));
    // The middle one ends first; the others keep what they saw.
    drop(inner);
    assert_eq!(third.allocated_bytes_peak(), 9216);
    drop(third);
    assert_eq!(outer.allocated_bytes_peak(), 9216);
    assert_eq!(outer.reserved_bytes_peak(), 2 * MIB);
    let late = arena.scoped_peak();
    assert_eq!(late.allocated_bytes_peak(), 1024);
    drop(base);
    assert_eq!(arena.stats().allocated_bytes.all.peak, 9216);
}

#[test]
fn without_caching_every_block_is_its_own_segment() {
    let configuration = Configuration::default().with_caching(false);
    let arena = Arena::open(Device::cpu(), Box::new(HostSource::default()), &configuration);
    let a = arena.allocate(&request(700)).unwrap();
    let b = arena.allocate(&request(3 * MIB)).unwrap();
    assert_eq!(arena.stats().reserved_bytes.all.current, 1024 + 3 * MIB as i64);
    assert_eq!(arena.stats().segment.all.current, 2);
    arena.check_balanced().unwrap();
    drop(a);
    drop(b);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    assert_eq!(arena.stats().num_device_free, 2);
    arena.check_balanced().unwrap();
}

#[test]
fn a_dry_run_reserves_to_the_byte_what_the_host_does() {
    let host = HostSource::default();
    let dry = DrySource::imitating(&host);
    let run = |arena: &'static Arena| {
        let mut held = Vec::new();
        let mut size: usize = 1;
        for round in 0..200 {
            size = size * 31 % 6_000_017;
            held.push(arena.allocate(&request(size)).unwrap());
            if round % 3 == 2 {
                held.swap_remove(size % held.len());
            }
            if round == 120 {
                arena.empty_cache();
            }
        }
        drop(held);
        let stats = arena.stats();
        (stats.reserved_bytes, stats.allocated_bytes, stats.inactive_split_bytes, stats.segment)
    };
    let wet = Arena::open(Device::cpu(), Box::new(host), &Configuration::default());
    let dry = Arena::open(Device::cpu(), Box::new(dry), &Configuration::default());
    assert_eq!(run(wet), run(dry));
    wet.empty_cache();
}

#[test]
fn external_bytes_are_in_the_book_and_in_no_pool() {
    let arena = dry();
    let origin = OriginId::intern("from_numpy", Site::Unknown);
    let external = arena.external(1000, origin, Kind::Input);
    assert_eq!(arena.live_bytes(), 1000);
    assert_eq!(arena.stats().reserved_bytes.all.current, 0);
    assert_eq!(arena.external_by_origin()[0].bytes, 1000);
    drop(external);
    assert_eq!(arena.live_bytes(), 0);
    assert_eq!(arena.stats().external_bytes.peak, 1000);
}

#[test]
fn a_view_of_the_segments_adds_up_to_the_counters() {
    let arena = dry();
    let blocks: Vec<_> =
        [512, 4096, 3 * MIB, 30 * MIB].map(|bytes| arena.allocate(&request(bytes)).unwrap()).into();
    let segments = arena.segments();
    let reserved: usize = segments.iter().map(|segment| segment.bytes).sum();
    assert_eq!(reserved as i64, arena.stats().reserved_bytes.all.current);
    let allocated: usize = segments
        .iter()
        .flat_map(|segment| &segment.blocks)
        .filter(|block| block.state == BlockUse::Allocated)
        .map(|block| block.bytes)
        .sum();
    assert_eq!(allocated as i64, arena.stats().allocated_bytes.all.current);
    assert!(segments.windows(2).all(|pair| pair[0].address < pair[1].address));
    drop(blocks);
}
