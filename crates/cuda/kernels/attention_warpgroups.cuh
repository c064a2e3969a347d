
// Products of attention_packed.cu by groups of four warps, which only the GPUs of compute
// capability 9.0 have: tensor cores read factors from shared memory themselves, and warps go on
// meanwhile.

// Warps that multiply together.
const int TOGETHER = 4;

// Before a barrier: what was copied is seen by tensor cores too.
__device__ __forceinline__ void show_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// A number that is the same in all lanes, told to the compiler.
__device__ __forceinline__ u32 uniform(u32 x) { return __shfl_sync(~0u, x, 0); }
// Waits for all products but the last N calls'.
template <int N> __device__ __forceinline__ void finish_products_but() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

// Sums have their first values before the products begin.
template <int M, int N> __device__ __forceinline__ void settle(f32 (&sums)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(sums[m][n][i])::"memory");
}

// Tensor cores are told where a tile starts, not where a lane reads.
template <int D> __device__ __forceinline__ u32 right_place(bool turned) { return 0; }

// Rows of 128 bytes in shared memory whose chunks are exchanged as `place` does, 8 rows 1024 bytes
// from the next.
__device__ __forceinline__ u64 described(u32 tile) { return (u64)((tile & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62; }

#define FOUR(s, n) "+f"(s[n][0]), "+f"(s[n][1]), "+f"(s[n][2]), "+f"(s[n][3])
#define SIXTEEN(s, n) FOUR(s, n), FOUR(s, n + 1), FOUR(s, n + 2), FOUR(s, n + 3)
// sums (64 x 64) = or, `more`, += a (64 x 16) b, both in shared memory; the columns of b are rows.
__device__ __forceinline__ void multiply_kept(bf16, f32 (&s)[8][4], u64 a, u64 b, int more) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,"
      "%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : SIXTEEN(s, 0), SIXTEEN(s, 4)
      : "l"(a), "l"(b), "r"(more));
}
__device__ __forceinline__ void multiply_kept(f16, f32 (&s)[8][4], u64 a, u64 b, int more) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,"
      "%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : SIXTEEN(s, 0), SIXTEEN(s, 4)
      : "l"(a), "l"(b), "r"(more));
}
// sums (64 x 64) += a (64 x 16), in registers, times b, in shared memory.
__device__ __forceinline__ void multiply_weights(bf16, f32 (&s)[8][4], const u32 (&a)[4], u64 b) {
  asm volatile(
      "{\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,"
      "%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;\n}"
      : SIXTEEN(s, 0), SIXTEEN(s, 4)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void multiply_weights(f16, f32 (&s)[8][4], const u32 (&a)[4], u64 b) {
  asm volatile(
      "{\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,"
      "%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;\n}"
      : SIXTEEN(s, 0), SIXTEEN(s, 4)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Registers that were changed are so before the products, which run beside the thread.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// The rows of a block's tile from `first` on, which stay while others come and go: in shared
// memory.
template <int D, int M, int WARPS> struct Kept {
  static_assert(M == 1 && D == 64 && WARPS % TOGETHER == 0, "a group of warps has 64 rows of 128 bytes");
  static const int bytes = WARPS * 16 * 2 * D;
  u32 tile;

  __device__ __forceinline__ void bring(u32 to, const Rows &rows, int first) {
    fetch<D, WARPS * 16, WARPS * 32>(to, rows, first);
    tile = uniform(to + threadIdx.x / (32 * TOGETHER) * 64 * 2 * D);
  }
};

// `sums` (64 x 64) = or, not `fresh`, += rows that are kept times rows in shared memory.
template <typename T, int D, bool fresh, int WARPS, int M, int N>
__device__ __forceinline__ void row_products(f32 (&sums)[M][N][4], const Kept<D, M, WARPS> &left, u32 from) {
  u64 a = described(left.tile), b = described(from);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) multiply_kept(T(), sums[0], a + k * 2, b + k * 2, fresh && k == 0 ? 0 : 1);
  end_products();
}

// `sums` (64 x 64) += weights (64 x 64) times rows in shared memory.
template <typename T, int D, int M, int N>
__device__ __forceinline__ void weigh(f32 (&sums)[M][D / 8][4], const f32 (&weights)[M][N][4], u32 from) {
  u32 a[N / 2][4];
#pragma unroll
  for (int k = 0; k < N / 2; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) a[k][i] = pair(T(), weights[0][2 * k + i / 2][i % 2 * 2], weights[0][2 * k + i / 2][i % 2 * 2 + 1]);
  u64 whole = described(from);
  begin_products();
#pragma unroll
  for (int k = 0; k < N / 2; ++k) multiply_weights(T(), sums[0], a[k], whole + k * 2 * D);
  end_products();
}

// How many 16 rows a warp has, rows of a tile in shared memory, rows of its parts, and blocks of a
// multiprocessor: what fits the registers and was fastest on an H200. Four warps a block; the
// launch knows how many rows that makes.
template <int D> struct Tiling;
template <> struct Tiling<64> {
  static const int forward_own = 1, forward_keys = 64, forward_blocks = 5;
  static const int queries_own = 1, queries_keys = 64, queries_part = 64, queries_blocks = 4;
  static const int keys_own = 1, keys_queries = 64, keys_part = 64, keys_blocks = 3;
};
