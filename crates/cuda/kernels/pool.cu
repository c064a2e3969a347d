// Pooling: a thread makes one result. What comes back to an element is added up by that element's
// thread, in the order of the windows that have it, so there are no atomics and every run gives the
// same bits.

// Mirrors `window` in Rust. Kind 0: of one size, evenly apart; 1: as many as there are results; 2:
// of one size, by a sample.
struct Window {
  i64 kind, kernel, stride, padding, dilation;
};

// Mirrors `Volume` in Rust: sizes and strides of [batch, channels, depth, height, width].
struct Volume {
  i64 batch, channels, sizes[3], strides[5];
};

struct Pooling {
  Volume x, y;
  Window windows[3];
};

// The elements of a window that are inside: the first, how many, how far apart.
struct Inside {
  i64 first, count, step;
};

__device__ __forceinline__ i64 ceil_over(i64 a, i64 b) { return a <= 0 ? 0 : (a + b - 1) / b; }

template <typename S> __device__ i64 fractional(i64 result, i64 results, i64 room, S sample) {
  if (result + 1 >= results) return room;
  S alpha = (S)room / (S)(results - 1);
  i64 at = (i64)(((S)result + sample) * alpha) - (i64)(sample * alpha);
  return at < 0 ? 0 : at < room ? at : room;
}

template <typename S> __device__ Inside inside(const Pooling &p, int d, i64 result, S sample) {
  const Window &w = p.windows[d];
  i64 size = p.x.sizes[d], results = p.y.sizes[d];
  Inside in;
  if (w.kind == 0) {
    i64 at = result * w.stride;
    i64 skipped = ceil_over(w.padding - at, w.dilation);
    in.first = at + skipped * w.dilation - w.padding;
    i64 room = ceil_over(size - in.first, w.dilation);
    i64 left = w.kernel > skipped ? w.kernel - skipped : 0;
    in.count = left < room ? left : room;
    in.step = w.dilation;
  } else if (w.kind == 1) {
    in.first = result * size / results;
    in.count = ((result + 1) * size + results - 1) / results - in.first;
    in.step = 1;
  } else {
    in.first = fractional<S>(result, results, size - w.kernel, sample);
    in.count = w.kernel;
    in.step = 1;
  }
  return in;
}

// The results whose windows may have element `at`: from, until.
__device__ void seen_by(const Pooling &p, int d, i64 at, i64 &from, i64 &until) {
  const Window &w = p.windows[d];
  i64 size = p.x.sizes[d], results = p.y.sizes[d];
  if (w.kind == 0) {
    from = ceil_over(at + w.padding - (w.kernel - 1) * w.dilation, w.stride);
    until = (at + w.padding) / w.stride + 1;
  } else {
    from = at * results / size;
    until = ((at + 1) * results + size - 1) / size;
  }
  if (until > results) until = results;
}

__device__ __forceinline__ void unfold5(const Volume &v, i64 index, i64 (&at)[5]) {
  for (int d = 4; d > 1; --d) {
    at[d] = index % v.sizes[d - 2];
    index /= v.sizes[d - 2];
  }
  at[1] = index % v.channels;
  at[0] = index / v.channels;
}

__device__ __forceinline__ i64 locate5(const Volume &v, const i64 (&at)[5]) {
  i64 place = 0;
  for (int d = 0; d < 5; ++d) place += at[d] * v.strides[d];
  return place;
}

__device__ __forceinline__ i64 elements(const Volume &v) {
  return v.batch * v.channels * v.sizes[0] * v.sizes[1] * v.sizes[2];
}

template <typename C> struct Lowest;
template <> struct Lowest<f32> { static __device__ f32 value() { return -__int_as_float(0x7f800000); } };
template <> struct Lowest<f64> { static __device__ f64 value() { return -__longlong_as_double(0x7ff0000000000000ll); } };
template <> struct Lowest<u8> { static __device__ u8 value() { return 0; } };
template <> struct Lowest<i8> { static __device__ i8 value() { return -128; } };
template <> struct Lowest<i16> { static __device__ i16 value() { return -32768; } };
template <> struct Lowest<i32> { static __device__ i32 value() { return -2147483647 - 1; } };
template <> struct Lowest<i64> { static __device__ i64 value() { return -9223372036854775807ll - 1; } };

template <typename T, typename S>
__device__ void largest(const Pooling &p, const T *x, const T *samples, const i64 *sample_strides, const i64 *order, T *y,
                        i64 *places, const Volume &places_layout) {
  typedef typename Compute<T>::number C;
  for (i64 i = first_index(); i < elements(p.y); i += all_threads()) {
    i64 at[5];
    unfold5(p.y, i, at);
    Inside in[3];
    for (int d = 0; d < 3; ++d) {
      S sample = 0;
      if (samples)
        sample = (S)load(samples[at[0] * sample_strides[0] + at[1] * sample_strides[1] + order[d] * sample_strides[2]]);
      in[d] = inside<S>(p, d, at[d + 2], sample);
    }
    C best = Lowest<C>::value();
    i64 place = (in[0].first * p.x.sizes[1] + in[1].first) * p.x.sizes[2] + in[2].first;
    const T *from = x + at[0] * p.x.strides[0] + at[1] * p.x.strides[1];
    for (i64 a = 0; a < in[0].count; ++a)
      for (i64 b = 0; b < in[1].count; ++b)
        for (i64 c = 0; c < in[2].count; ++c) {
          i64 d = in[0].first + a * in[0].step, h = in[1].first + b * in[1].step, w = in[2].first + c * in[2].step;
          C value = (C)load(from[d * p.x.strides[2] + h * p.x.strides[3] + w * p.x.strides[4]]);
          if (value > best || value != value) {
            best = value;
            place = (d * p.x.sizes[1] + h) * p.x.sizes[2] + w;
          }
        }
    y[locate5(p.y, at)] = Store<T>::from(best);
    if (places) places[locate5(places_layout, at)] = place;
  }
}

// What the sum of a window is divided by; 0 where it has no elements.
__device__ i64 divisor(const Pooling &p, const i64 (&at)[5], i64 count_padding, i64 has_divisor, i64 given) {
  i64 count = 1;
  for (int d = 0; d < 3; ++d) {
    Inside in = inside<f32>(p, d, at[d + 2], 0);
    if (in.count == 0) return 0;
    i64 own = in.count;
    const Window &w = p.windows[d];
    if (w.kind == 0 && count_padding) {
      i64 room = p.x.sizes[d] + 2 * w.padding - at[d + 2] * w.stride;
      own = w.kernel < room ? w.kernel : room;
    }
    count *= own;
  }
  return has_divisor ? given : count;
}

template <typename T>
__device__ void mean(const Pooling &p, i64 count_padding, i64 has_divisor, i64 given, const T *x, T *y) {
  typedef typename Compute<T>::number C;
  for (i64 i = first_index(); i < elements(p.y); i += all_threads()) {
    i64 at[5];
    unfold5(p.y, i, at);
    Inside in[3];
    for (int d = 0; d < 3; ++d) in[d] = inside<f32>(p, d, at[d + 2], 0);
    C sum = 0;
    const T *from = x + at[0] * p.x.strides[0] + at[1] * p.x.strides[1];
    for (i64 a = 0; a < in[0].count; ++a)
      for (i64 b = 0; b < in[1].count; ++b)
        for (i64 c = 0; c < in[2].count; ++c) {
          i64 d = in[0].first + a * in[0].step, h = in[1].first + b * in[1].step, w = in[2].first + c * in[2].step;
          sum += (C)load(from[d * p.x.strides[2] + h * p.x.strides[3] + w * p.x.strides[4]]);
        }
    i64 count = divisor(p, at, count_padding, has_divisor, given);
    y[locate5(p.y, at)] = Store<T>::from(count == 0 ? (C)0 : sum / (C)count);
  }
}

template <typename T>
__device__ void mean_backward(const Pooling &p, i64 count_padding, i64 has_divisor, i64 given, const T *grad, T *x) {
  typedef typename Compute<T>::number C;
  for (i64 i = first_index(); i < elements(p.x); i += all_threads()) {
    i64 at[5], from[3], until[3];
    unfold5(p.x, i, at);
    for (int d = 0; d < 3; ++d) seen_by(p, d, at[d + 2], from[d], until[d]);
    C sum = 0;
    i64 o[5] = {at[0], at[1], 0, 0, 0};
    for (o[2] = from[0]; o[2] < until[0]; ++o[2])
      for (o[3] = from[1]; o[3] < until[1]; ++o[3])
        for (o[4] = from[2]; o[4] < until[2]; ++o[4]) {
          bool has = true;
          for (int d = 0; d < 3; ++d) {
            Inside in = inside<f32>(p, d, o[d + 2], 0);
            i64 distance = at[d + 2] - in.first;
            has = has && distance >= 0 && distance % in.step == 0 && distance / in.step < in.count;
          }
          i64 count = has ? divisor(p, o, count_padding, has_divisor, given) : 0;
          if (count != 0) sum += (C)load(grad[locate5(p.y, o)]) / (C)count;
        }
    x[locate5(p.x, at)] = Store<T>::from(sum);
  }
}

// What comes back to each element of x from the results that it was the largest of.
template <typename T>
__device__ void places_backward(const Pooling &p, const T *grad, const i64 *places, const Volume &places_layout, T *x) {
  typedef typename Compute<T>::number C;
  for (i64 i = first_index(); i < elements(p.x); i += all_threads()) {
    i64 at[5], from[3], until[3];
    unfold5(p.x, i, at);
    for (int d = 0; d < 3; ++d) seen_by(p, d, at[d + 2], from[d], until[d]);
    i64 own = (at[2] * p.x.sizes[1] + at[3]) * p.x.sizes[2] + at[4];
    C sum = 0;
    i64 o[5] = {at[0], at[1], 0, 0, 0};
    for (o[2] = from[0]; o[2] < until[0]; ++o[2])
      for (o[3] = from[1]; o[3] < until[1]; ++o[3])
        for (o[4] = from[2]; o[4] < until[2]; ++o[4])
          if (places[locate5(places_layout, o)] == own) sum += (C)load(grad[locate5(p.y, o)]);
    x[locate5(p.x, at)] = Store<T>::from(sum);
  }
}

// Values to any places of their channel: a thread a channel, so that the order is always the same.
// `to` is zeros before.
template <typename T>
__device__ void scatter(const Pooling &p, i64 accumulate, const T *values, const i64 *places, const Volume &places_layout, T *to,
                        const Fault &fault) {
  typedef typename Compute<T>::number C;
  i64 space = p.x.sizes[0] * p.x.sizes[1] * p.x.sizes[2], count = p.y.sizes[0] * p.y.sizes[1] * p.y.sizes[2];
  for (i64 channel = first_index(); channel < p.x.batch * p.x.channels; channel += all_threads())
    for (i64 i = 0; i < count; ++i) {
      i64 at[5], target[5];
      unfold5(p.y, channel * count + i, at);
      i64 place = places[locate5(places_layout, at)];
      if (place < 0 || place >= space) {
        tell(fault, 1, place, -1, space);
        continue;
      }
      unfold5(p.x, channel * space + place, target);
      T *slot = to + locate5(p.x, target);
      T value = values[locate5(p.y, at)];
      *slot = accumulate ? Store<T>::from((C)load(*slot) + (C)load(value)) : value;
    }
}

template <typename T>
__device__ void gather(const Pooling &p, const T *from, const i64 *places, const Volume &places_layout, T *values,
                       const Fault &fault) {
  i64 space = p.x.sizes[0] * p.x.sizes[1] * p.x.sizes[2];
  for (i64 i = first_index(); i < elements(p.y); i += all_threads()) {
    i64 at[5], source[5];
    unfold5(p.y, i, at);
    i64 place = places[locate5(places_layout, at)];
    if (place < 0 || place >= space) {
      tell(fault, 1, place, -1, space);
      values[locate5(p.y, at)] = Store<T>::from(0);
      continue;
    }
    unfold5(p.x, (at[0] * p.x.channels + at[1]) * space + place, source);
    values[locate5(p.y, at)] = from[locate5(p.x, source)];
  }
}

// Windows as columns: y is [batch, channels x kernel, 1, 1, windows], `rows` of windows of `wide`.
template <typename T> __device__ void unfold_windows(const Pooling &p, i64 wide, const T *x, T *columns) {
  const Window &h = p.windows[1], &w = p.windows[2];
  i64 taps = h.kernel * w.kernel;
  for (i64 i = first_index(); i < elements(p.y); i += all_threads()) {
    i64 at[5];
    unfold5(p.y, i, at);
    i64 tap = at[1] % taps;
    i64 row = at[4] / wide * h.stride + tap / w.kernel * h.dilation - h.padding;
    i64 column = at[4] % wide * w.stride + tap % w.kernel * w.dilation - w.padding;
    T value = Store<T>::from(0);
    if (row >= 0 && row < p.x.sizes[1] && column >= 0 && column < p.x.sizes[2]) {
      i64 from[5] = {at[0], at[1] / taps, 0, row, column};
      value = x[locate5(p.x, from)];
    }
    columns[locate5(p.y, at)] = value;
  }
}

// Columns added up into images, by the image's elements.
template <typename T> __device__ void fold_windows(const Pooling &p, i64 high, i64 wide, const T *columns, T *x) {
  typedef typename Compute<T>::number C;
  const Window &h = p.windows[1], &w = p.windows[2];
  i64 taps = h.kernel * w.kernel;
  for (i64 i = first_index(); i < elements(p.x); i += all_threads()) {
    i64 at[5];
    unfold5(p.x, i, at);
    C sum = 0;
    for (i64 tap = 0; tap < taps; ++tap) {
      i64 row = at[3] + h.padding - tap / w.kernel * h.dilation;
      i64 column = at[4] + w.padding - tap % w.kernel * w.dilation;
      if (row < 0 || column < 0 || row % h.stride != 0 || column % w.stride != 0) continue;
      row /= h.stride;
      column /= w.stride;
      if (row >= high || column >= wide) continue;
      i64 from[5] = {at[0], at[1] * taps + tap, 0, 0, row * wide + column};
      sum += (C)load(columns[locate5(p.y, from)]);
    }
    x[locate5(p.x, at)] = Store<T>::from(sum);
  }
}

// What the places of fractional windows are computed in.
template <typename T> struct SampleOf { typedef f32 number; };
template <> struct SampleOf<f64> { typedef f64 number; };

struct Samples {
  i64 strides[3], order[3];
};

#define POOL(type)                                                                                 \
  KERNEL(max_pool_##type)(Pooling p, Samples s, Volume layout, const type *x, const type *samples, \
                                             type *y, i64 *places) {                               \
    in_turn();                                                                                     \
    largest<type, SampleOf<type>::number>(p, x, samples, s.strides, s.order, y, places, layout);   \
  }                                                                                                \
  KERNEL(max_pool_backward_##type)(Pooling p, Volume layout, const type *grad, const i64 *places,  \
                                                      type *x) {                                   \
    in_turn();                                                                                     \
    places_backward<type>(p, grad, places, layout, x);                                             \
  }                                                                                                \
  KERNEL(scatter_places_##type)(Pooling p, Volume layout, i64 accumulate, const type *values,      \
                                const i64 *places, type *to, Fault fault) {                        \
    in_turn();                                                                                     \
    scatter<type>(p, accumulate, values, places, layout, to, fault);                               \
  }                                                                                                \
  KERNEL(gather_places_##type)(Pooling p, Volume layout, const type *from, const i64 *places,      \
                               type *values, Fault fault) {                                        \
    in_turn();                                                                                     \
    gather<type>(p, from, places, layout, values, fault);                                          \
  }
#define MEANS(type)                                                                               \
  KERNEL(mean_pool_##type)(Pooling p, i64 padding, i64 has, i64 given, const type *x, type *y) {  \
    in_turn();                                                                                    \
    mean<type>(p, padding, has, given, x, y);                                                     \
  }                                                                                               \
  KERNEL(mean_pool_backward_##type)(Pooling p, i64 padding, i64 has, i64 given, const type *grad, \
                                                       type *x) {                                 \
    in_turn();                                                                                    \
    mean_backward<type>(p, padding, has, given, grad, x);                                         \
  }
#define COLUMNS(type)                                                                \
  KERNEL(unfold_##type)(Pooling p, i64 wide, const type *x, type *columns) {         \
    in_turn();                                                                       \
    unfold_windows<type>(p, wide, x, columns);                                       \
  }                                                                                  \
  KERNEL(fold_##type)(Pooling p, i64 high, i64 wide, const type *columns, type *x) { \
    in_turn();                                                                       \
    fold_windows<type>(p, high, wide, columns, x);                                   \
  }
#define ALL(type) POOL(type) MEANS(type) COLUMNS(type)
ALL(f32)
ALL(f64)
ALL(f16)
ALL(bf16)
POOL(i64)
MEANS(i64)
POOL(u8)
POOL(i8)
POOL(i16)
POOL(i32)
COLUMNS(truth)
