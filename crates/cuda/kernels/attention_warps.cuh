
// Products of attention_packed.cu by single warps, on every GPU with tensor cores for bf16.

// Warps that multiply together.
const int TOGETHER = 1;

// What groups of warps do besides (see attention_warpgroups.cuh), and a warp need not: show others
// what was copied, agree on a number, settle sums and begin products, wait for all but N products.
__device__ __forceinline__ void show_copies() {}
__device__ __forceinline__ u32 uniform(u32 x) { return x; }
template <int M, int N> __device__ __forceinline__ void settle(f32 (&)[M][N][4]) {}
__device__ __forceinline__ void begin_products() {}
template <int N> __device__ __forceinline__ void finish_products_but() {}

// The rows of a block's tile from `first` on, which stay while others come and go, as left factors:
// each warp has its own in registers, straight from memory.
template <int D, int M, int WARPS> struct Kept {
  static const int bytes = 0;
  u32 a[M][D / 16][4];

  __device__ __forceinline__ void bring(u32, const Rows &rows, int first) {
    int lane = threadIdx.x & 31;
    first += (threadIdx.x >> 5) * 16 * M;
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int k = 0; k < D / 16; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a[m][k][i] = word(rows, first + m * 16 + i % 2 * 8 + lane / 4, k * 16 + i / 2 * 8 + lane % 4 * 2);
  }
};

// Where a lane points to for a right factor whose columns, or rows if `turned`, are rows in shared
// memory. Chunk 2 k more is `^ k << 5`, because tiles lie at multiples of a row's bytes.
template <int D> __device__ __forceinline__ u32 right_place(bool turned) {
  int lane = threadIdx.x & 31, low = lane >> 3 & 1, high = lane >> 4;
  return place<D>((turned ? low : high) * 8 + (lane & 7), turned ? high : low);
}

// `sums` (16 M x 8 N) = or, not `fresh`, += rows that are kept times rows in shared memory, of
// which `from` is the lane's `right_place`.
template <typename T, int D, bool fresh, int WARPS, int M, int N>
__device__ __forceinline__ void row_products(f32 (&sums)[M][N][4], const Kept<D, M, WARPS> &left, u32 from) {
  if (fresh) clear(sums);
#pragma unroll
  for (int k = 0; k < D / 16; ++k)
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      u32 b[4];
      load_four(b, (from ^ (k << 5)) + n * 8 * 2 * D);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply(T(), sums[m][n], left.a[m][k], b[0], b[1]);
        multiply(T(), sums[m][n + 1], left.a[m][k], b[2], b[3]);
      }
    }
}

// `sums` (16 M x D) += weights (16 M x 8 N) times rows in shared memory, of which `from` is the
// lane's turned `right_place`.
template <typename T, int D, int M, int N>
__device__ __forceinline__ void weigh(f32 (&sums)[M][D / 8][4], const f32 (&weights)[M][N][4], u32 from) {
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) a[m][i] = pair(T(), weights[m][k + i / 2][i % 2 * 2], weights[m][k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      u32 b[4];
      load_four_turned(b, (from ^ (n << 4)) + k * 8 * 2 * D);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply(T(), sums[m][n], a[m], b[0], b[1]);
        multiply(T(), sums[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// How many 16 rows a warp has, rows of a tile in shared memory, rows of its parts, and blocks of a
// multiprocessor: what fits the registers and was fastest on an H200. Four warps a block; the
// launch knows how many rows that makes.
template <int D> struct Tiling;
template <> struct Tiling<64> {
  static const int forward_own = 2, forward_keys = 64, forward_blocks = 2;
  static const int queries_own = 2, queries_keys = 64, queries_part = 32, queries_blocks = 2;
  static const int keys_own = 1, keys_queries = 64, keys_part = 32, keys_blocks = 3;
};
template <> struct Tiling<128> {
  static const int forward_own = 1, forward_keys = 32, forward_blocks = 3;
  static const int queries_own = 1, queries_keys = 32, queries_part = 32, queries_blocks = 2;
  static const int keys_own = 1, keys_queries = 32, keys_part = 16, keys_blocks = 2;
};
