// Scaled gradients over a table of tensors (`table.cuh`): multiplied by one number, with a look for
// what is not finite; and the scale after a step. The twin of
// `kernels/elementwise/src/optim/unscale.rs`.

// A gradient whose elements fill their memory. Mirrors `Table` in Rust.
struct Entry {
  u64 grad;
  i64 count, chunks;
};
const int ENTRIES = 1000;
struct Table {
  const f32 *inverse;
  f32 *found;
  i64 entries, chunk;
  Entry entry[ENTRIES];
};

// Infinities and NaNs alone differ from themselves by something other than 0.
template <typename C> __device__ __forceinline__ bool is_finite(C x) { return x - x == 0; }

// Multiplies N elements; whether all of them were finite.
template <int N, typename T, typename C> __device__ __forceinline__ bool multiply(T *at, C inverse) {
  Some<T, N> some = *(const Some<T, N> *)at;
  bool finite = true;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    C value = (C)load(some.v[k]);
    finite = finite && is_finite(value);
    some.v[k] = Store<T>::from(value * inverse);
  }
  // By 1 it is only a look.
  if (inverse != (C)1) *(Some<T, N> *)at = some;
  return finite;
}

template <typename T> __device__ void over_table(const Table &table) {
  typedef typename Compute<T>::number C;
  Part part = part_of_block(table);
  const Entry &e = table.entry[part.place];
  T *grad = (T *)e.grad;
  C inverse = (C)*table.inverse;
  bool finite = true;
  over_part(part, e.grad, [&](auto some, i64 i) { finite = multiply<some.count>(grad + i, inverse) && finite; });
  // All who write, write the same.
  if (!finite) *table.found = 1;
}

// One gradient of any layout.
template <typename T> __device__ void over_layout(T *grad, const f32 *by, f32 *found, i64 count, const Strided &layout) {
  typedef typename Compute<T>::number C;
  C inverse = (C)*by;
  bool finite = true;
  for (i64 i = first_index(); i < count; i += all_threads()) {
    i64 at[1];
    locate<1>(layout, i, at);
    finite = multiply<1>(grad + at[0], inverse) && finite;
  }
  if (!finite) *found = 1;
}

#define UNSCALE(T)                                                                                            \
  KERNEL(unscale_table_##T)(const __grid_constant__ Table table) {                                            \
    in_turn();                                                                                                \
    over_table<T>(table);                                                                                     \
  }                                                                                                           \
  KERNEL(unscale_layout_##T)(T *grad, const f32 *inverse, f32 *found, i64 count, Strided layout) {            \
    in_turn();                                                                                                \
    over_layout<T>(grad, inverse, found, count, layout);                                                      \
  }

UNSCALE(f32)
UNSCALE(f64)
UNSCALE(f16)
UNSCALE(bf16)

// The scale and the count of steps since it changed, after a step.
KERNEL(update_scale)(f32 *scale, i32 *tracker, const f32 *found, f64 growth, f64 backoff, i64 interval) {
  in_turn();
  if (first_index() != 0) return;
  if (*found != 0) {
    *scale = (f32)(*scale * backoff);
    *tracker = 0;
    return;
  }
  i32 steps = *tracker + 1;
  if (steps != interval) {
    *tracker = steps;
    return;
  }
  // It stops growing before it is infinite.
  f32 grown = (f32)(*scale * growth);
  if (is_finite(grown)) *scale = grown;
  *tracker = 0;
}
