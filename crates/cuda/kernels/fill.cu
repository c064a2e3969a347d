// New elements: one value, counting up, the identity.

template <typename T> __device__ void fill(i64 n, const Strided &s, int dense, T *out, T value) {
  const int wide = 16 / sizeof(T);
  i64 packs = dense && aligned(out) ? n / wide : 0;
  Pack<T> pack;
#pragma unroll
  for (int k = 0; k < wide; ++k) pack.v[k] = value;
  for (i64 i = first_index(); i < packs; i += all_threads()) ((Pack<T> *)out)[i] = pack;
  for (i64 i = packs * wide + first_index(); i < n; i += all_threads()) {
    i64 at[1] = {i};
    if (!dense) locate<1>(s, i, at);
    out[at[0]] = value;
  }
}

#define FILL(type)                                                                                                   \
  KERNEL(fill_##type)(i64 n, Strided s, i32 dense, type *out, f64 real, i64 whole, i32 is_real) {                    \
    in_turn();                                                                                                       \
    fill<type>(n, s, dense, out, is_real ? Store<type>::from(real) : Store<type>::from(whole));                      \
  }                                                                                                                  \
  KERNEL(arange_##type)(i64 n, type *out, f64 start, f64 step, i64 whole_start, i64 whole_step,                      \
                                           i32 is_real) {                                                            \
    in_turn();                                                                                                       \
    for (i64 i = first_index(); i < n; i += all_threads())                                                           \
      out[i] = is_real ? Store<type>::from(start + step * (f64)i) : Store<type>::from(whole_start + whole_step * i); \
  }                                                                                                                  \
  KERNEL(eye_##type)(i64 rows, i64 columns, type *out) {                                                             \
    in_turn();                                                                                                       \
    for (i64 i = first_index(); i < rows * columns; i += all_threads())                                              \
      out[i] = Store<type>::from((i64)(i / columns == i % columns));                                                 \
  }
FILL(f32)
FILL(f64)
FILL(f16)
FILL(bf16)
FILL(i64)
FILL(i32)
FILL(i16)
FILL(i8)
FILL(u8)
FILL(truth)
