// Choosing between two operands by a third. Elements are runs of bytes.

// With `flat` every operand is one run of elements, or one element for all: a step of 0.
template <typename T>
__device__ void choose(i64 n, const Strided &s, i32 flat, const u8 *condition, const T *a, i64 a_step, const T *b, i64 b_step, T *out) {
  const int wide = 16 / sizeof(T);
  if (flat) {
    bool packed = aligned(out) && (!a_step || aligned(a)) && (!b_step || aligned(b)) && ((u64)condition & (wide - 1)) == 0;
    struct alignas(wide) Truths { u8 v[wide]; };
    struct Three { Truths c; Pack<T> a, b; };
    auto spread = [](T x) {
      Pack<T> pack;
#pragma unroll
      for (int k = 0; k < wide; ++k) pack.v[k] = x;
      return pack;
    };
    auto fetch = [&](i64 i) {
      Three x;
      x.c = ((const Truths *)condition)[i];
      x.a = a_step ? ((const Pack<T> *)a)[i] : spread(a[0]);
      x.b = b_step ? ((const Pack<T> *)b)[i] : spread(b[0]);
      return x;
    };
    i64 packs = packed ? n / wide : 0;
    four_at_once(packs, fetch, [&](i64 i, const Three &x) {
      Pack<T> chosen;
#pragma unroll
      for (int k = 0; k < wide; ++k) chosen.v[k] = x.c.v[k] ? x.a.v[k] : x.b.v[k];
      ((Pack<T> *)out)[i] = chosen;
    });
    for (i64 i = packs * wide + first_index(); i < n; i += all_threads()) out[i] = condition[i] ? a[i * a_step] : b[i * b_step];
    return;
  }
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 at[4];
    locate<4>(s, i, at);
    out[at[0]] = condition[at[1]] ? a[at[2]] : b[at[3]];
  }
}

#define WHERE(bytes, T)                                                                                      \
  KERNEL(where_##bytes)(i64 n, Strided s, i32 flat, const u8 *condition, const T *a, i64 a_step, const T *b, \
                                           i64 b_step, T *out) {                                             \
    in_turn();                                                                                               \
    choose<T>(n, s, flat, condition, a, a_step, b, b_step, out);                                             \
  }
WHERE(1, u8)
WHERE(2, u16)
WHERE(4, u32)
WHERE(8, u64)
