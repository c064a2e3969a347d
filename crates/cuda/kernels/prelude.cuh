// What every kernel file starts with: element types, conversions, strided indexing. Prepended as
// text, since NVRTC has no include path of ours, and free of toolkit headers, since a machine with
// a driver need not have them.

// A kernel's head: `KERNEL(name)(parameters) { body }`, or with the most threads that a block has,
// or also with how many blocks a multiprocessor shall hold, for which registers are saved. A cold
// start compiles one kernel of a file at a time: then `ONLY` is defined, and `WANTED_name` as `~,
// 1`. The others become templates that nobody instantiates.
#define KERNEL_1(name) extern "C" __global__ void name
#define KERNEL_OF_1(threads, name) extern "C" __global__ void __launch_bounds__(threads) name
#define KERNEL_BY_1(threads, blocks, name) extern "C" __global__ void __launch_bounds__(threads, blocks) name
#ifdef ONLY
#define KERNEL_0(name) template <int> __global__ void name
#define KERNEL_OF_0(threads, name) KERNEL_0(name)
#define KERNEL_BY_0(threads, blocks, name) KERNEL_0(name)
#define SECOND(first, second, ...) second
#define IS_WANTED(...) SECOND(__VA_ARGS__, 0, 0)
#define PASTE(a, b) a##b
#define CHOOSE(a, b) PASTE(a, b)
#define KERNEL(name) CHOOSE(KERNEL_, IS_WANTED(WANTED_##name))(name)
#define KERNEL_OF(threads, name) CHOOSE(KERNEL_OF_, IS_WANTED(WANTED_##name))(threads, name)
#define KERNEL_BY(threads, blocks, name) CHOOSE(KERNEL_BY_, IS_WANTED(WANTED_##name))(threads, blocks, name)
#else
#define KERNEL(name) KERNEL_1(name)
#define KERNEL_OF(threads, name) KERNEL_OF_1(threads, name)
#define KERNEL_BY(threads, blocks, name) KERNEL_BY_1(threads, blocks, name)
#endif

// What every kernel says first: it may have been brought to the GPU before what the work before it
// wrote can be seen, and waits here until that is so.
__device__ __forceinline__ void in_turn() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

struct f16 { u16 bits; };
struct bf16 { u16 bits; };
// A byte that is 0 or 1; any other byte reads as true.
struct truth { u8 byte; };

// The type that elements are computed in: half types in float, all else in itself.
template <typename T> struct Compute { typedef T number; };
template <> struct Compute<f16> { typedef f32 number; };
template <> struct Compute<bf16> { typedef f32 number; };
template <> struct Compute<truth> { typedef i32 number; };

__device__ __forceinline__ f32 load(f16 x) {
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ f32 load(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ i32 load(truth x) { return x.byte != 0; }
template <typename T> __device__ __forceinline__ T load(T x) { return x; }

template <typename T> struct Store {
  template <typename C> static __device__ __forceinline__ T from(C x) { return (T)x; }
};
// Narrow integers go through a 64-bit one, so that -1.0 becomes 255 in a u8 as on the host.
template <> struct Store<u8> {
  template <typename C> static __device__ __forceinline__ u8 from(C x) { return (u8)(i64)x; }
};
template <> struct Store<i8> {
  template <typename C> static __device__ __forceinline__ i8 from(C x) { return (i8)(i64)x; }
};
template <> struct Store<i16> {
  template <typename C> static __device__ __forceinline__ i16 from(C x) { return (i16)(i64)x; }
};
template <> struct Store<i32> {
  template <typename C> static __device__ __forceinline__ i32 from(C x) { return (i32)(i64)x; }
};
template <> struct Store<f16> {
  template <typename C> static __device__ __forceinline__ f16 from(C x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"((f32)x));
    return y;
  }
};
template <> struct Store<bf16> {
  template <typename C> static __device__ __forceinline__ bf16 from(C x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"((f32)x));
    return y;
  }
};
template <> struct Store<truth> {
  template <typename C> static __device__ __forceinline__ truth from(C x) {
    truth y;
    y.byte = x != (C)0;
    return y;
  }
};

// Sizes and, for up to four operands, strides in elements; dimension 0 is the innermost. Mirrors
// `Strided` in Rust.
struct Strided {
  i64 rank;
  i64 sizes[8];
  i64 strides[4][8];
};

// Positions of element `index` in the first N operands.
template <int N> __device__ __forceinline__ void locate(const Strided &s, i64 index, i64 (&at)[N]) {
#pragma unroll
  for (int k = 0; k < N; ++k) at[k] = 0;
  // Copies of a loop with divisions would take longer to compile than they save.
#pragma unroll 1
  for (int d = 0; d < s.rank; ++d) {
    i64 size = s.sizes[d];
    // The outermost dimension takes what is left: a division less.
    i64 rest = d + 1 < s.rank ? index / size : 0;
    i64 here = index - rest * size;
#pragma unroll
    for (int k = 0; k < N; ++k) at[k] += here * s.strides[k][d];
    index = rest;
  }
}

// As many elements as 16 bytes hold: the widest load there is.
template <typename T> struct alignas(16) Pack { T v[16 / sizeof(T)]; };

// Number k of a pack. Of two bfloat16 in a word either is one instruction away; by themselves they
// would be cut out first.
template <typename T> __device__ __forceinline__ typename Compute<T>::number number(const Pack<T> &pack, int k) { return load(pack.v[k]); }
template <> __device__ __forceinline__ f32 number(const Pack<bf16> &pack, int k) {
  u32 word = ((const u32(&)[4])pack)[k / 2];
  return __uint_as_float(k % 2 ? word & 0xffff0000u : word << 16);
}

template <typename T> __device__ __forceinline__ bool aligned(const T *p) { return ((u64)p & 15) == 0; }

__device__ __forceinline__ i64 first_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 all_threads() { return (i64)gridDim.x * blockDim.x; }

// Calls `use(i, fetch(i))` for every i below `count`. Threads have four fetches on their way at
// once, and blocks go through neighbouring memory: one load at a time does not keep the memory
// busy.
template <typename Fetch, typename Use> __device__ __forceinline__ void four_at_once(i64 count, Fetch fetch, Use use) {
  i64 side = blockDim.x, chunk = 4 * side;
  for (i64 base = blockIdx.x * chunk; base < count; base += gridDim.x * chunk) {
    i64 i = base + threadIdx.x;
    if (base + chunk <= count) {
      auto a = fetch(i), b = fetch(i + side), c = fetch(i + 2 * side), d = fetch(i + 3 * side);
      use(i, a);
      use(i + side, b);
      use(i + 2 * side, c);
      use(i + 3 * side, d);
    } else {
      for (; i < count; i += side) use(i, fetch(i));
    }
  }
}

// What a kernel finds wrong. Mirrors `Record` in fault.rs: state 0 is free, 1 is being written, 2
// is written; the host reads it after it has waited.
struct FaultRecord {
  u32 state, origin, wrong, unused;
  i64 value, dim, size;
};
// Where to write it, and on whose behalf: an argument of every kernel that may find something.
struct Fault {
  FaultRecord *record;
  u64 origin;
};

// Writes down the first fault since the host last looked; others are lost. The launch goes on.
__device__ __noinline__ void tell(Fault fault, u32 wrong, i64 value, i64 dim, i64 size) {
  if (atomicCAS(&fault.record->state, 0u, 1u) != 0u) return;
  volatile FaultRecord *record = fault.record;
  record->origin = (u32)fault.origin;
  record->wrong = wrong;
  record->value = value;
  record->dim = dim;
  record->size = size;
  __threadfence_system();
  record->state = 2;
}

// Whether 0 <= index < size; tells of it if not. The caller then reads and writes nothing there.
__device__ __forceinline__ bool within(const Fault &fault, i64 index, i64 size, i64 dim) {
  if ((u64)index < (u64)size) return true;
  tell(fault, 0, index, dim, size);
  return false;
}

