// Products of integer matrices, which the library does not take: sums in 64 bits, cut to the dtype
// at the end, which is what adding up in the dtype gives. Matrices of any strides, in batches.

// Mirrors `Sizes` in Rust.
struct Sizes {
  i64 batch, m, n, k;
  // Steps between rows and between columns.
  i64 a_row, a_column, b_row, b_column, c_row, c_column;
  i64 code;
  // c = alpha * a * b + beta * c; with beta 0 it is not read.
  i64 alpha, beta;
};

const int SIDE = 64, DEPTH = 16;

KERNEL_OF(256, integer_product)(Sizes s, Strided batches, const void *a, const void *b, void *c) {
  __shared__ i64 left[DEPTH][SIDE + 1], right[DEPTH][SIDE + 1];
  i64 across = (s.n + SIDE - 1) / SIDE, down = (s.m + SIDE - 1) / SIDE;
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  i32 code = (i32)s.code;
  for (i64 unit = blockIdx.x; unit < s.batch * down * across; unit += gridDim.x) {
    i64 first_column = unit % across * SIDE, first_row = unit / across % down * SIDE, at[3];
    locate<3>(batches, unit / across / down, at);
    // Unsigned: sums wrap around.
    u64 sums[4][4] = {};
    for (i64 depth = 0; depth < s.k; depth += DEPTH) {
      __syncthreads();
      for (int i = threadIdx.x; i < SIDE * DEPTH; i += 256) {
        i64 row = first_row + i / DEPTH, k = depth + i % DEPTH;
        left[i % DEPTH][i / DEPTH] = row < s.m && k < s.k ? element<i64>(a, at[0] + row * s.a_row + k * s.a_column, code) : 0;
        i64 column = first_column + i % SIDE, other = depth + i / SIDE;
        right[i / SIDE][i % SIDE] = column < s.n && other < s.k ? element<i64>(b, at[1] + other * s.b_row + column * s.b_column, code) : 0;
      }
      __syncthreads();
#pragma unroll 1
      for (int k = 0; k < DEPTH; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[i][j] += (u64)left[k][y + 16 * i] * (u64)right[k][x + 16 * j];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        i64 row = first_row + y + 16 * i, column = first_column + x + 16 * j;
        if (row >= s.m || column >= s.n) continue;
        i64 place = at[2] + row * s.c_row + column * s.c_column;
        u64 value = sums[i][j] * (u64)s.alpha;
        if (s.beta != 0) value += (u64)element<i64>(c, place, code) * (u64)s.beta;
        keep<i64>(c, place, code, (i64)value);
      }
  }
}
