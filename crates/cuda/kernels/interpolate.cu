// Resampling of one to three spatial dimensions of planes, row-major or channels last. Every output
// is a weighted sum over a few places along each dimension; backward every input gathers the
// outputs that it is part of, whose range along each dimension a kernel of its own finds first.

enum Mode { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, AREA };

// One spatial dimension: sizes, and input places to an output place. Mirrors `Axis` in Rust.
struct Axis {
  i64 from, to;
  f64 step;
  i64 exists;
};

// Steps between the channels and between the places of a plane.
struct Order {
  i64 channels, channel, place;
  // The i-th element as it lies in memory: its plane and its place.
  __device__ void locate(i64 i, i64 places, i64 &plane, i64 &at) const {
    if (place == 1) {
      plane = i / places;
      at = i % places;
    } else {
      at = i / channels % places;
      plane = i / channels / places * channels + i % channels;
    }
  }
  __device__ i64 start(i64 plane, i64 places) const { return plane / channels * channels * places + plane % channels * channel; }
};

// Mirrors `Job` in Rust; the axes are depth, height and width.
struct Job {
  i64 mode, align_corners, planes, code;
  Axis axes[3];
  // Of what is read and of what is written.
  Order from, to;
  __device__ i64 inputs() const { return axes[0].from * axes[1].from * axes[2].from; }
  __device__ i64 outputs() const { return axes[0].to * axes[1].to * axes[2].to; }
};

// Outputs from `first` to before `end` are made of an input place.
struct Range { i64 first, end; };

template <typename C> struct Taps {
  i64 first, count;
  C weights[4];
  // What areas' pixels all count.
  C alike;

  __device__ C weight(i64 tap, bool is_area) const {
    if (is_area) return alike;
    return tap == 0 ? weights[0] : tap == 1 ? weights[1] : tap == 2 ? weights[2] : weights[3];
  }
  // Past the ends it is the end.
  __device__ i64 place(i64 tap, i64 size) const {
    i64 at = first + tap;
    return at < 0 ? 0 : at >= size ? size - 1 : at;
  }
};

template <typename C> __device__ __forceinline__ C near(C x) { return (((C)-0.75 + 2) * x - ((C)-0.75 + 3)) * x * x + 1; }
template <typename C> __device__ __forceinline__ C far(C x) {
  return (((C)-0.75 * x - 5 * (C)-0.75) * x + 8 * (C)-0.75) * x - 4 * (C)-0.75;
}

template <typename C> __device__ Taps<C> taps(const Job &job, const Axis &axis, i64 at) {
  Taps<C> own = {0, 1, {1, 0, 0, 0}, 0};
  if (!axis.exists) return own;
  C step = (C)axis.step, place = (C)at, half = (C)0.5;
  C centre = job.align_corners ? step * place : step * (place + half) - half;
  switch (job.mode) {
    case NEAREST:
    case NEAREST_EXACT: {
      // In single precision, whatever the input is.
      f32 single = job.mode == NEAREST ? (f32)at : (f32)at + 0.5f;
      own.first = (i64)floorf(single * (f32)axis.step);
      if (own.first > axis.from - 1) own.first = axis.from - 1;
      break;
    }
    case LINEAR: {
      C source = centre < 0 ? (C)0 : centre;
      own.first = (i64)floor(source);
      if (own.first > axis.from - 1) own.first = axis.from - 1;
      C part = source - (C)own.first;
      if (part > 1) part = 1;
      own.count = 2;
      own.weights[0] = 1 - part;
      own.weights[1] = part;
      break;
    }
    case CUBIC: {
      C below = floor(centre), t = centre - below;
      own.first = (i64)below - 1;
      own.count = 4;
      own.weights[0] = far(t + 1);
      own.weights[1] = near(t);
      own.weights[2] = near(1 - t);
      own.weights[3] = far(2 - t);
      break;
    }
    default: {
      own.first = at * axis.from / axis.to;
      own.count = ((at + 1) * axis.from + axis.to - 1) / axis.to - own.first;
      own.alike = (C)1 / (C)own.count;
    }
  }
  return own;
}

template <typename C> __device__ void forward(const Job &job, const void *x, void *out) {
  const Axis &depth = job.axes[0], &height = job.axes[1], &width = job.axes[2];
  bool is_area = job.mode == AREA;
  i32 code = (i32)job.code;
  i64 outputs = job.outputs();
  for (i64 i = first_index(); i < job.planes * outputs; i += all_threads()) {
    i64 plane, at;
    job.to.locate(i, outputs, plane, at);
    i64 base = job.from.start(plane, job.inputs()), step = job.from.place;
    Taps<C> along_x = taps<C>(job, width, at % width.to);
    Taps<C> along_y = taps<C>(job, height, at / width.to % height.to);
    Taps<C> along_z = taps<C>(job, depth, at / width.to / height.to);
    C sum = 0;
    for (i64 a = 0; a < along_z.count; ++a) {
      i64 layer = along_z.place(a, depth.from) * height.from;
      C of_plane = along_z.weight(a, is_area && depth.exists);
      for (i64 b = 0; b < along_y.count; ++b) {
        i64 row = (layer + along_y.place(b, height.from)) * width.from;
        C of_row = of_plane * along_y.weight(b, is_area && height.exists);
        for (i64 c = 0; c < along_x.count; ++c)
          sum += element<C>(x, base + (row + along_x.place(c, width.from)) * step, code) * (of_row * along_x.weight(c, is_area));
      }
    }
    if (code == U8) {
      sum = floor(sum + (C)0.5);
      sum = sum < 0 ? (C)0 : sum > 255 ? (C)255 : sum;
    }
    keep<C>(out, i, code, sum);
  }
}

// The range of outputs for each input place of each dimension, one dimension after another. First
// places and last ones never fall from one output to the next, so halving finds both ends.
template <typename C> __device__ void ranges(const Job &job, Range *out) {
  i64 at = first_index();
  int d = 0;
  while (d < 3 && at >= job.axes[d].from) at -= job.axes[d++].from;
  if (d == 3) return;
  const Axis &axis = job.axes[d];
  // The first output whose last place is not before this one.
  i64 low = 0, high = at == 0 ? 0 : axis.to;
  while (low < high) {
    i64 middle = (low + high) / 2;
    Taps<C> own = taps<C>(job, axis, middle);
    if (own.first + own.count - 1 >= at) high = middle;
    else low = middle + 1;
  }
  // The first output that starts after it.
  i64 end_low = low, end_high = axis.to;
  while (at != axis.from - 1 && end_low < end_high) {
    i64 middle = (end_low + end_high) / 2;
    if (taps<C>(job, axis, middle).first > at) end_high = middle;
    else end_low = middle + 1;
  }
  Range range = {low, end_high};
  out[first_index()] = range;
}

// What a place counts in an output: all taps that end up on it.
template <typename C> __device__ C counted(const Job &job, const Axis &axis, i64 output, i64 place) {
  if (!axis.exists) return 1;
  Taps<C> own = taps<C>(job, axis, output);
  if (job.mode == AREA) return place >= own.first && place < own.first + own.count ? own.alike : (C)0;
  C sum = 0;
#pragma unroll
  for (int tap = 0; tap < 4; ++tap)
    if (tap < own.count && own.place(tap, axis.from) == place) sum += own.weights[tap];
  return sum;
}

template <typename C> __device__ void backward(const Job &job, const Range *ranges, const void *grad, void *out) {
  const Axis &depth = job.axes[0], &height = job.axes[1], &width = job.axes[2];
  i32 code = (i32)job.code;
  i64 inputs = job.inputs(), outputs = job.outputs();
  for (i64 i = first_index(); i < job.planes * inputs; i += all_threads()) {
    i64 plane, at;
    job.to.locate(i, inputs, plane, at);
    i64 base = job.from.start(plane, outputs), step = job.from.place;
    i64 x = at % width.from, y = at / width.from % height.from, z = at / width.from / height.from;
    Range in_depth = ranges[z], in_height = ranges[depth.from + y], in_width = ranges[depth.from + height.from + x];
    C sum = 0;
    for (i64 a = in_depth.first; a < in_depth.end; ++a) {
      C of_plane = counted<C>(job, depth, a, z);
      for (i64 b = in_height.first; b < in_height.end; ++b) {
        C of_row = of_plane * counted<C>(job, height, b, y);
        i64 row = (a * height.to + b) * width.to;
        for (i64 c = in_width.first; c < in_width.end; ++c)
          sum += element<C>(grad, base + (row + c) * step, code) * (of_row * counted<C>(job, width, c, x));
      }
    }
    keep<C>(out, i, code, sum);
  }
}

#define INTERPOLATE(C)                                                                         \
  KERNEL(interpolate_##C)(Job job, const void *x, void *out) {                                 \
    in_turn();                                                                                 \
    forward<C>(job, x, out);                                                                   \
  }                                                                                            \
  KERNEL(interpolate_ranges_##C)(Job job, Range *out) {                                        \
    in_turn();                                                                                 \
    ranges<C>(job, out);                                                                       \
  }                                                                                            \
  KERNEL(interpolate_backward_##C)(Job job, const Range *found, const void *grad, void *out) { \
    in_turn();                                                                                 \
    backward<C>(job, found, grad, out);                                                        \
  }
INTERPOLATE(f32)
INTERPOLATE(f64)
