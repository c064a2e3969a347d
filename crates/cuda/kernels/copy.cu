// Copies between layouts and dtypes, and a tiled transpose: reading along one dimension and writing
// along another is only fast through shared memory.

template <typename A, typename B> struct Convert {
  static __device__ __forceinline__ B of(A x) { return Store<B>::from(load(x)); }
};
template <typename T> struct Convert<T, T> {
  static __device__ __forceinline__ T of(T x) { return x; }
};

template <typename A, typename B>
__device__ void convert(i64 n, const Strided &s, int dense, const A *x, B *out) {
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 at[2] = {i, i};
    if (!dense) locate<2>(s, i, at);
    out[at[0]] = Convert<A, B>::of(x[at[1]]);
  }
}

#define CAST(from, to)                                                              \
  KERNEL(copy_##from##_##to)(i64 n, Strided s, i32 dense, const from *x, to *out) { \
    in_turn();                                                                      \
    convert<from, to>(n, s, dense, x, out);                                         \
  }
#define CAST_FROM(from) \
  CAST(from, f32) CAST(from, f64) CAST(from, f16) CAST(from, bf16) CAST(from, i64) CAST(from, i32) \
  CAST(from, i16) CAST(from, i8) CAST(from, u8) CAST(from, truth)

CAST_FROM(f32)
CAST_FROM(f64)
CAST_FROM(f16)
CAST_FROM(bf16)
CAST_FROM(i64)
CAST_FROM(i32)
CAST_FROM(i16)
CAST_FROM(i8)
CAST_FROM(u8)
CAST_FROM(truth)

// out[c][r] = x[r][c] for each of gridDim.z matrices: 32 x 32 tiles, blocks of 32 x 8 threads in
// one dimension.
template <typename T>
__device__ void transpose(i64 rows, i64 columns, i64 x_row, i64 out_row, i64 x_batch, i64 out_batch, const T *x, T *out) {
  __shared__ T tile[32][33];
  int tx = threadIdx.x & 31, ty = threadIdx.x >> 5;
  x += blockIdx.z * x_batch;
  out += blockIdx.z * out_batch;
  i64 c = (i64)blockIdx.x * 32 + tx, r0 = (i64)blockIdx.y * 32;
  for (int k = ty; k < 32; k += 8)
    if (r0 + k < rows && c < columns) tile[k][tx] = x[(r0 + k) * x_row + c];
  __syncthreads();
  i64 r = r0 + tx, c0 = (i64)blockIdx.x * 32;
  for (int k = ty; k < 32; k += 8)
    if (c0 + k < columns && r < rows) out[(c0 + k) * out_row + r] = tile[tx][k];
}

#define TRANSPOSE(bytes, type)                                                            \
  KERNEL(transpose_##bytes)(i64 rows, i64 columns, i64 x_row, i64 out_row, i64 x_batch,   \
                                               i64 out_batch, const type *x, type *out) { \
    in_turn();                                                                            \
    transpose<type>(rows, columns, x_row, out_row, x_batch, out_batch, x, out);           \
  }
TRANSPOSE(1, u8)
TRANSPOSE(2, u16)
TRANSPOSE(4, u32)
TRANSPOSE(8, u64)
