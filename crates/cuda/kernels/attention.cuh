// What the sources of attention share: sizes, and heads of any strides.

// Mirrors `Shape` in Rust.
struct Shape {
  i64 heads, queries, keys, width, values;
  // Heads of queries that share a head of keys.
  i64 group;
  i64 causal;
  f64 scale;
};

// A matrix for each head; an address of 0 is no operand. Dimension 0 is the innermost. Mirrors
// `Heads` in Rust.
struct Heads {
  u64 address;
  i64 code;
  i64 rank;
  i64 sizes[6], strides[6];
  i64 row, column;

  __device__ i64 start(i64 head) const {
    i64 at = 0;
    for (int d = 0; d < rank; ++d) {
      at += head % sizes[d] * strides[d];
      head /= sizes[d];
    }
    return at;
  }
};

const f32 LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

__device__ __forceinline__ f32 infinite() { return __int_as_float(0x7f800000); }
template <typename C> __device__ C lowest();
template <> __device__ __forceinline__ f32 lowest<f32>() { return __int_as_float((int)0xff800000); }
template <> __device__ __forceinline__ f64 lowest<f64>() { return __longlong_as_double((i64)0xfff0000000000000ull); }

// The product of each row's result and gradient, by a warp.
template <typename C> __device__ void products(const Shape &shape, const Heads &grad, const Heads &result, C *along) {
  i64 lane = threadIdx.x & 31;
  for (i64 row = first_index() >> 5; row < shape.heads * shape.queries; row += all_threads() >> 5) {
    i64 head = row / shape.queries, at = row % shape.queries;
    i64 a = grad.start(head) + at * grad.row, b = result.start(head) + at * result.row;
    f64 sum = 0;
    for (i64 i = lane; i < shape.values; i += 32)
      sum += (f64)element<C>((const void *)grad.address, a + i * grad.column, (i32)grad.code) *
             (f64)element<C>((const void *)result.address, b + i * result.column, (i32)result.code);
    for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_xor_sync(~0u, sum, distance);
    if (lane == 0) along[row] = (C)sum;
  }
}

