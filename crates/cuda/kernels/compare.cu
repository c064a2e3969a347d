// Comparisons of x with y, or with a number where y's address is 0. A NaN equals nothing and is
// below nothing.

template <typename C> __device__ __forceinline__ bool holds(i32 comparison, C x, C y) {
  switch (comparison) {
    case 0: return x == y;
    case 1: return x != y;
    case 2: return x < y;
    case 3: return x <= y;
    case 4: return x > y;
    default: return x >= y;
  }
}

#define COMPARE(C)                                                                                            \
  KERNEL(compare_##C)(i64 n, Strided s, i32 dense, i32 comparison, u64 codes, const void *x, const void *y,   \
                                         u8 *out, f64 real, i64 whole) {                                      \
    in_turn();                                                                                                \
    i32 left = (i32)(codes & 255), right = (i32)(codes >> 8 & 255);                                           \
    C number = chosen<C>(real, whole);                                                                        \
    if (dense) {                                                                                              \
      struct Both { C x, y; };                                                                                \
      auto fetch = [&](i64 i) { return Both{element<C>(x, i, left), y ? element<C>(y, i, right) : number}; }; \
      four_at_once(n, fetch, [&](i64 i, Both both) { out[i] = holds<C>(comparison, both.x, both.y); });       \
      return;                                                                                                 \
    }                                                                                                         \
    for (i64 i = first_index(); i < n; i += all_threads()) {                                                  \
      i64 at[3];                                                                                              \
      locate<3>(s, i, at);                                                                                    \
      C b = y ? element<C>(y, at[2], right) : number;                                                         \
      out[at[0]] = holds<C>(comparison, element<C>(x, at[1], left), b);                                       \
    }                                                                                                         \
  }
COMPARE(f32)
COMPARE(f64)
COMPARE(i64)
