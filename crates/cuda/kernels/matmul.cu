// Products of matrices that the library does not take, integers, or is not to take: of floats in a
// fixed order on every GPU. Sums of integers are 64 bits, cut to the dtype at the end, which is
// what adding up in the dtype gives. Matrices of any strides, in batches.

// Mirrors `Sizes` in Rust.
struct Sizes {
  i64 batch, m, n, k;
  // Steps between rows and between columns.
  i64 a_row, a_column, b_row, b_column, c_row, c_column;
  i64 code;
  // c = alpha * a * b + beta * c; with beta 0 it is not read. Those of floats are doubles.
  i64 alpha, beta;
};

const int SIDE = 64, DEPTH = 16;

// Sums of integers wrap around.
template <typename C> struct Sum { typedef C Type; };
template <> struct Sum<i64> { typedef u64 Type; };

template <typename C> __device__ __forceinline__ C factor_of(i64 word) { return (C)__longlong_as_double(word); }
template <> __device__ __forceinline__ i64 factor_of<i64>(i64 word) { return word; }

template <typename C> __device__ void product(const Sizes &s, const Strided &batches, const void *a, const void *b, void *c) {
  typedef typename Sum<C>::Type S;
  __shared__ C left[DEPTH][SIDE + 1], right[DEPTH][SIDE + 1];
  i64 across = (s.n + SIDE - 1) / SIDE, down = (s.m + SIDE - 1) / SIDE;
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  i32 code = (i32)s.code;
  S alpha = (S)factor_of<C>(s.alpha), beta = (S)factor_of<C>(s.beta);
  for (i64 unit = blockIdx.x; unit < s.batch * down * across; unit += gridDim.x) {
    i64 first_column = unit % across * SIDE, first_row = unit / across % down * SIDE, at[3];
    locate<3>(batches, unit / across / down, at);
    S sums[4][4] = {};
    for (i64 depth = 0; depth < s.k; depth += DEPTH) {
      __syncthreads();
      for (int i = threadIdx.x; i < SIDE * DEPTH; i += 256) {
        i64 row = first_row + i / DEPTH, k = depth + i % DEPTH;
        left[i % DEPTH][i / DEPTH] = row < s.m && k < s.k ? element<C>(a, at[0] + row * s.a_row + k * s.a_column, code) : (C)0;
        i64 column = first_column + i % SIDE, other = depth + i / SIDE;
        right[i / SIDE][i % SIDE] = column < s.n && other < s.k ? element<C>(b, at[1] + other * s.b_row + column * s.b_column, code) : (C)0;
      }
      __syncthreads();
#pragma unroll 1
      for (int k = 0; k < DEPTH; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[i][j] += (S)left[k][y + 16 * i] * (S)right[k][x + 16 * j];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        i64 row = first_row + y + 16 * i, column = first_column + x + 16 * j;
        if (row >= s.m || column >= s.n) continue;
        i64 place = at[2] + row * s.c_row + column * s.c_column;
        S value = sums[i][j] * alpha;
        if (s.beta != 0) value += (S)element<C>(c, place, code) * beta;
        keep<C>(c, place, code, (C)value);
      }
  }
}

#define PRODUCT(C)                                                                                           \
  KERNEL_OF(256, product_##C)(Sizes s, Strided batches, const void *a, const void *b, void *c) {             \
    in_turn();                                                                                               \
    product<C>(s, batches, a, b, c);                                                                         \
  }
PRODUCT(i64)
PRODUCT(f32)
PRODUCT(f64)
