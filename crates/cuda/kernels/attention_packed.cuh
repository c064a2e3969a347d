
// What the kernels of attention_packed.cu share: rows of up to D elements on their way from memory
// to tensor cores.
//
// In shared memory a row is D elements, and its 16-byte chunks are exchanged by the row's number,
// so that equal chunks of eight rows lie in different banks. A warp has M times 16 rows of a tile.
// Products are in attention_warps.cuh and attention_warpgroups.cuh, of which a source has one.

// The rows of a head. Elements of a row are neighbours; rows start at multiples of 16 bytes, and
// `width` is a multiple of 8. The launch sees to it.
struct Rows {
  u16 *start;
  i64 step;
  int count, width;
};

// As `Heads::start`, with divisions of 32 bits: heads are fewer than 2^31.
__device__ __forceinline__ Rows rows_of(const Heads &of, u32 head, i64 count, i64 width) {
  i64 at = 0;
#pragma unroll 1
  for (int d = 0; d + 1 < of.rank; ++d) {
    u32 size = (u32)of.sizes[d], rest = head / size;
    at += (i64)(head - rest * size) * of.strides[d];
    head = rest;
  }
  if (of.rank > 0) at += (i64)head * of.strides[of.rank - 1];
  return Rows{(u16 *)of.address + at, of.row, (int)count, (int)width};
}

// Where a chunk of a row lies, in bytes.
template <int D> __device__ __forceinline__ int place(int row, int chunk) { return row * 2 * D + ((chunk ^ (row & 7)) << 4); }

// Starts the copy of COUNT rows from `first` on to shared memory; zeros beyond the end and past the
// width.
template <int D, int COUNT, int THREADS> __device__ __forceinline__ void fetch(u32 to, const Rows &rows, int first) {
  const int chunks = D / 8, together = THREADS / chunks;
  int row = threadIdx.x / chunks, chunk = threadIdx.x % chunks, left = rows.count - first - row;
  const u16 *from = rows.start + (i64)(first + row) * rows.step + chunk * 8;
  to += place<D>(row, chunk);
  if (chunk * 8 >= rows.width) left = 0;
#pragma unroll
  for (int i = 0; i < COUNT; i += together) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + i * 2 * D), "l"(from), "r"(i < left ? 16 : 0) : "memory");
    from += together * rows.step;
  }
}

// Two neighbours of a row; zeros beyond the end and past the width.
__device__ __forceinline__ u32 word(const Rows &rows, int row, int column) {
  return row < rows.count && column < rows.width ? *(const u32 *)(rows.start + row * rows.step + column) : 0u;
}

template <int M, int N> __device__ __forceinline__ void clear(f32 (&tiles)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) tiles[m][n][i] = 0;
}

// 2 to the power of x; 0 of minus infinity.
__device__ __forceinline__ f32 power_of_two(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x, to the last but one bit.
__device__ __forceinline__ f32 reciprocal(f32 x) {
  f32 y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
template <int M, int N> __device__ __forceinline__ void scale_by(f32 (&tiles)[M][N][4], const f32 (&by)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) tiles[m][n][i] *= by[m][n][i];
}

// Takes out the scores of a warp that are not seen: rows are queries, columns keys before `keys`.
template <int M, int N> __device__ __forceinline__ void hide(f32 (&scores)[M][N][4], bool causal, int keys, int first_row, int first_column) {
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = first_row + m * 16 + half * 8 + lane / 4;
      int until = (causal && row + 1 < keys ? row + 1 : keys) - first_column - lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (n * 8 + i >= until) scores[m][n][2 * half + i] = lowest<f32>();
    }
}

// Writes a warp's rows from `first` on of its sums, times a factor for each row, by way of its part
// of shared memory, so that rows go out whole.
template <typename T, int D, int M>
__device__ __forceinline__ void put_rows(const f32 (&sums)[M][D / 8][4], const f32 (&by)[M][2], u8 *part, const Rows &to, int first) {
  const int chunks = D / 8;
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *(u32 *)(part + place<D>(m * 16 + half * 8 + lane / 4, n) + lane % 4 * 4) =
            pair(T(), sums[m][n][2 * half] * by[m][half], sums[m][n][2 * half + 1] * by[m][half]);
  __syncwarp();
  int chunk = lane % chunks;
#pragma unroll
  for (int row = lane / chunks; row < 16 * M; row += 32 / chunks)
    if (first + row < to.count && chunk * 8 < to.width)
      *(Pack<u16> *)(to.start + (i64)(first + row) * to.step + chunk * 8) = *(const Pack<u16> *)(part + place<D>(row, chunk));
  __syncwarp();
}
