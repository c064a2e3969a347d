//! The matrix unit of recent x86 servers (AMX): whether this process may use it, and its inner
//! kernel.
//!
//! Eight tile registers of 16 rows x 64 bytes. `tdpbf16ps` multiplies a tile of A (16 rows x 32
//! `bf16`) by a tile of B (16 pairs of k x 16 columns) and adds to a tile of sums (16 x 16 `f32`).
//! Four tiles of sums, two of A and two of B make a 32 x 32 block with four products for four
//! loads.
//!
//! `asm!` rather than intrinsics, which are not stable. Packing and blocking are in `amx.rs`.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// Rows and columns of a block of sums.
pub(super) const BLOCK: usize = 32;
/// Elements of k that one step of the kernel takes.
pub(super) const STEP: usize = 32;
/// Bytes of A, and of B, that one step reads: two tiles.
pub(super) const STEP_BYTES: usize = 2048;

/// Whether the CPU has AMX for `bf16` and the kernel lets this process use it. Asked once; children
/// of a fork inherit the permission.
pub(super) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| cpu_has_amx_bf16() && ask_kernel())
}

fn cpu_has_amx_bf16() -> bool {
    const AMX_BF16: u32 = 1 << 22;
    const AMX_TILE: u32 = 1 << 24;
    if __cpuid(0).eax < 7 {
        return false;
    }
    let features = __cpuid_count(7, 0).edx;
    features & AMX_BF16 != 0 && features & AMX_TILE != 0
}

/// Tile data is 8 KiB a thread that the kernel must save, so a process asks for it first.
fn ask_kernel() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: this call reads its two numbers only; a kernel that does not know it returns an
    // error.
    let refused =
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
    refused == 0
}

/// `ldtilecfg`'s operand: palette 1, and for each tile its rows and the bytes of a row.
#[repr(C, align(64))]
struct TileConfiguration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

const ALL_FULL: TileConfiguration = TileConfiguration {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};
const _: () = assert!(size_of::<TileConfiguration>() == 64);

/// The tiles of this thread, configured; released on drop, so that the thread's context is small
/// again.
pub(super) struct Tiles(());

impl Tiles {
    /// # Safety
    /// [`available`] said yes.
    pub(super) unsafe fn configure() -> Tiles {
        static CONFIGURATION: TileConfiguration = ALL_FULL;
        // SAFETY: the operand is a valid 64-byte configuration, and the caller vouches for AMX.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const CONFIGURATION, options(nostack, readonly));
        }
        Tiles(())
    }

    /// Adds `steps` steps of packed A and B to a 32 x 32 block of sums, or sets it where `first`.
    /// With `half` only the upper 16 rows are computed.
    ///
    /// # Safety
    /// `a` and `b` hold `steps * STEP_BYTES` bytes; `sums` is writable (and unless `first`,
    /// readable) for 32 rows (16 with `half`) of 32 `f32`, `row_bytes` apart.
    #[inline]
    pub(super) unsafe fn multiply(
        &self,
        steps: usize,
        a: *const u8,
        b: *const u8,
        sums: *mut f32,
        row_bytes: usize,
        (first, half): (bool, bool),
    ) {
        // SAFETY: by the contract above; `self` is the witness that the tiles are configured.
        unsafe {
            if half {
                multiply_half(steps, a, b, sums, row_bytes, first);
            } else {
                multiply_whole(steps, a, b, sums, row_bytes, first);
            }
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: gives up the tile state that `configure` set up on this thread.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// # Safety
/// [`Tiles::multiply`]'s.
unsafe fn multiply_whole(
    steps: usize,
    a: *const u8,
    b: *const u8,
    sums: *mut f32,
    row_bytes: usize,
    first: bool,
) {
    // SAFETY: reads and writes what the contract names; the loop runs `steps >= 1` times.
    unsafe {
        asm!(
            "test {first}, {first}",
            "jnz 2f",
            "tileloadd tmm0, [{top} + {row}*1]",
            "tileloadd tmm1, [{top} + {row}*1 + 64]",
            "tileloadd tmm2, [{bottom} + {row}*1]",
            "tileloadd tmm3, [{bottom} + {row}*1 + 64]",
            "jmp 3f",
            "2:",
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "3:",
            "tileloadd tmm4, [{a} + {line}*1]",
            "tileloadd tmm6, [{b} + {line}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b} + {line}*1 + 1024]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{a} + {line}*1 + 1024]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, 2048",
            "add {b}, 2048",
            "dec {steps}",
            "jnz 3b",
            "tilestored [{top} + {row}*1], tmm0",
            "tilestored [{top} + {row}*1 + 64], tmm1",
            "tilestored [{bottom} + {row}*1], tmm2",
            "tilestored [{bottom} + {row}*1 + 64], tmm3",
            first = in(reg) u64::from(first),
            top = in(reg) sums,
            bottom = in(reg) sums.byte_add(16 * row_bytes),
            row = in(reg) row_bytes,
            line = in(reg) 64usize,
            a = inout(reg) a => _,
            b = inout(reg) b => _,
            steps = inout(reg) steps => _,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// # Safety
/// [`Tiles::multiply`]'s.
unsafe fn multiply_half(
    steps: usize,
    a: *const u8,
    b: *const u8,
    sums: *mut f32,
    row_bytes: usize,
    first: bool,
) {
    // SAFETY: as in `multiply_whole`, without the lower tile of A.
    unsafe {
        asm!(
            "test {first}, {first}",
            "jnz 2f",
            "tileloadd tmm0, [{top} + {row}*1]",
            "tileloadd tmm1, [{top} + {row}*1 + 64]",
            "jmp 3f",
            "2:",
            "tilezero tmm0",
            "tilezero tmm1",
            "3:",
            "tileloadd tmm4, [{a} + {line}*1]",
            "tileloadd tmm6, [{b} + {line}*1]",
            "tileloadd tmm7, [{b} + {line}*1 + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "add {a}, 2048",
            "add {b}, 2048",
            "dec {steps}",
            "jnz 3b",
            "tilestored [{top} + {row}*1], tmm0",
            "tilestored [{top} + {row}*1 + 64], tmm1",
            first = in(reg) u64::from(first),
            top = in(reg) sums,
            row = in(reg) row_bytes,
            line = in(reg) 64usize,
            a = inout(reg) a => _,
            b = inout(reg) b => _,
            steps = inout(reg) steps => _,
            out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}
