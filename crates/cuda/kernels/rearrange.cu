// Whole dimensions moved about: each dimension of the wide side says by itself which index of the
// own side stands at each of its indices. The way back adds up the places where an element stood,
// in one order. And zeros on one side of a diagonal.

// Dimension 0 is the innermost. Mirrors `ways` in Rust.
struct Ways {
  i64 rank;
  i64 kind[8];
  i64 number[8];
  i64 wide[8];
  i64 own[8];
  i64 wide_stride[8];
  i64 own_stride[8];
};

// The own side's index at index `i` of the wide side; -1 if there is none.
__device__ __forceinline__ i64 source(i64 kind, i64 number, i64 i, i64 n) {
  i64 at;
  switch (kind) {
    case 0: at = i - number; break;
    case 1: at = n - 1 - i; break;
    case 2: at = (i - number) % n; if (at < 0) at += n; break;
    case 3: at = i / number; break;
    case 4: at = i - number; if (at < 0) at = -at; if (at >= n) at = 2 * (n - 1) - at; break;
    default: at = i - number; at = at < 0 ? 0 : at >= n ? n - 1 : at; break;
  }
  return at >= 0 && at < n ? at : -1;
}

template <typename T> __device__ void rearrange(i64 n, const Ways &w, const T *x, T *out, T value) {
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 rest = i, to = 0, from = 0;
    bool inside = true;
    for (int d = 0; d < w.rank; ++d) {
      i64 next = rest / w.wide[d], at = rest - next * w.wide[d];
      rest = next;
      to += at * w.wide_stride[d];
      i64 own = w.own[d] == 0 ? -1 : source(w.kind[d], w.number[d], at, w.own[d]);
      inside = inside && own >= 0;
      from += own * w.own_stride[d];
    }
    out[to] = inside ? x[from] : value;
  }
}

// Up to three runs of equally spaced places where an index of the own side stood.
struct Stood {
  i64 start[3];
  i64 step;
  i64 count[3];
};

__device__ __forceinline__ i64 times(i64 start, i64 step, i64 end) { return start >= end ? 0 : (end - start - 1) / step + 1; }

__device__ __forceinline__ Stood stood(i64 kind, i64 number, i64 i, i64 n, i64 wide) {
  Stood s;
  s.step = 1;
  for (int k = 0; k < 3; ++k) s.start[k] = s.count[k] = 0;
  switch (kind) {
    case 0: s.start[0] = i + number; s.count[0] = s.start[0] >= 0 && s.start[0] < wide; break;
    case 1: s.start[0] = n - 1 - i; s.count[0] = 1; break;
    case 2: {
      i64 first = (i + number) % n;
      s.start[0] = first < 0 ? first + n : first;
      s.step = n;
      s.count[0] = times(s.start[0], n, wide);
      break;
    }
    case 3: s.start[0] = i * number; s.count[0] = number; break;
    case 4: {
      i64 mirrored[3] = {number - i, number + i, number + 2 * (n - 1) - i};
      for (int k = 0; k < 3; ++k) {
        bool again = (k == 0 && i == 0) || (k == 2 && i == n - 1);
        s.start[k] = mirrored[k];
        s.count[k] = !again && mirrored[k] >= 0 && mirrored[k] < wide;
      }
      break;
    }
    default: {
      i64 first = i == 0 ? 0 : i + number, end = i == n - 1 ? wide : i + number + 1;
      if (first < 0) first = 0;
      if (end > wide) end = wide;
      s.start[0] = first;
      s.count[0] = end > first ? end - first : 0;
      break;
    }
  }
  return s;
}

// The sum of the gradient over every combination of places, dimension by dimension.
template <typename T>
__device__ void unrearrange(i64 n, const Ways &w, const T *grad, T *out) {
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 rest = i, to = 0, total = 1;
    i64 counts[8];
    Stood places[8];
    for (int d = 0; d < w.rank; ++d) {
      i64 next = rest / w.own[d], at = rest - next * w.own[d];
      rest = next;
      to += at * w.own_stride[d];
      places[d] = stood(w.kind[d], w.number[d], at, w.own[d], w.wide[d]);
      counts[d] = places[d].count[0] + places[d].count[1] + places[d].count[2];
      total *= counts[d];
    }
    f64 sum = 0;
    for (i64 k = 0; k < total; ++k) {
      i64 left = k, from = 0;
      for (int d = 0; d < w.rank; ++d) {
        i64 which = left % counts[d];
        left /= counts[d];
        int run = 0;
        while (which >= places[d].count[run]) which -= places[d].count[run++];
        from += (places[d].start[run] + which * places[d].step) * w.wide_stride[d];
      }
      sum += (f64)load(grad[from]);
    }
    out[to] = Store<T>::from(sum);
  }
}

template <typename T> __device__ void triangle(i64 n, const Ways &w, T *out, i64 diagonal, i32 lower) {
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 rest = i, to = 0;
    for (int d = 0; d < w.rank; ++d) {
      i64 next = rest / w.wide[d];
      to += (rest - next * w.wide[d]) * w.wide_stride[d];
      rest = next;
    }
    i64 column = i % w.wide[0], row = i / w.wide[0] % w.wide[1];
    // `diagonal` may be at the end of the numbers: only what is small is added to.
    i64 over = column - row;
    if (lower ? over > diagonal : over < diagonal) out[to] = (T)0;
  }
}

#define REARRANGE(type)                                                                                 \
  KERNEL(rearrange_##type)(i64 n, Ways w, const type *x, type *out, f64 real, i64 whole, i32 is_real) { \
    in_turn();                                                                                          \
    rearrange<type>(n, w, x, out, is_real ? Store<type>::from(real) : Store<type>::from(whole));        \
  }
REARRANGE(f32)
REARRANGE(f64)
REARRANGE(f16)
REARRANGE(bf16)
REARRANGE(i64)
REARRANGE(i32)
REARRANGE(i16)
REARRANGE(i8)
REARRANGE(u8)
REARRANGE(truth)

#define UNREARRANGE(type)                                                  \
  KERNEL(unrearrange_##type)(i64 n, Ways w, const type *grad, type *out) { \
    in_turn();                                                             \
    unrearrange<type>(n, w, grad, out);                                    \
  }
UNREARRANGE(f32)
UNREARRANGE(f64)
UNREARRANGE(f16)
UNREARRANGE(bf16)

#define TRIANGLE(bytes, type)                                                   \
  KERNEL(triangle_##bytes)(i64 n, Ways w, type *out, i64 diagonal, i32 lower) { \
    in_turn();                                                                  \
    triangle<type>(n, w, out, diagonal, lower);                                 \
  }
TRIANGLE(1, u8)
TRIANGLE(2, u16)
TRIANGLE(4, u32)
TRIANGLE(8, u64)
