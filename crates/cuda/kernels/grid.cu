// Sampling of images and volumes at places that a grid names: gathering, its transpose, and the
// slope along the grid, each with the weights or with their derivative along a direction. The
// transpose sorts what every pixel is part of by the pixel first, so that a pixel's sum has one
// thread and a fixed order. Operands are contiguous.

enum Mode { LINEAR, NEAREST, CUBIC };
enum Padding { ZEROS, BORDER, REFLECTION };

// Mirrors `Job` in Rust: [batch, channels, depth, height, width] at `places` a batch.
struct Job {
  i64 mode, padding, align_corners, directed, spatial;
  i64 sizes[3];
  i64 batch, channels, places, code;
  __device__ i64 pixels() const { return sizes[0] * sizes[1] * sizes[2]; }
  // The most pixels of a sample along a dimension.
  __device__ i64 wide() const { return mode == CUBIC ? 4 : mode == LINEAR ? 2 : 1; }
  __device__ i64 most() const {
    i64 all = 1;
    for (i64 dim = 0; dim < spatial; ++dim) all *= wide();
    return all;
  }
};

// Channels that share the weights of a sample.
const i64 CHANNELS = 8;

// A pixel's part along one dimension: its weight, and the first and second derivative of that by
// the grid.
template <typename C> struct Tap {
  i64 place;
  C weight, slope, curve;
};

// The pixels along one dimension that a sample is made of; those outside are left away.
template <typename C> struct Taps {
  Tap<C> all[4];
  int count;

  __device__ void push(C place, i64 size, C weight, C slope, C curve) {
    if (!(place >= 0 && place < (C)size)) return;
    Tap<C> own = {(i64)place, weight, slope, curve};
    all[count++] = own;
  }
};

// Products that are not fused with what follows: the pixel and the part past it must agree.
__device__ __forceinline__ f32 times(f32 a, f32 b) { return __fmul_rn(a, b); }
__device__ __forceinline__ f64 times(f64 a, f64 b) { return __dmul_rn(a, b); }
__device__ __forceinline__ f32 rest_of(f32 a, f32 b) { return fmodf(a, b); }
__device__ __forceinline__ f64 rest_of(f64 a, f64 b) { return fmod(a, b); }
__device__ __forceinline__ f32 to_even(f32 a) { return rintf(a); }
__device__ __forceinline__ f64 to_even(f64 a) { return rint(a); }

// Brings a place inside; `factor` is what this does to slopes.
template <typename C> __device__ C inside(const Job &job, C at, i64 size, C &factor) {
  C last = (C)(size - 1);
  factor = 1;
  if (job.padding == ZEROS) return at;
  if (job.padding == REFLECTION) {
    C low = job.align_corners ? (C)0 : (C)-0.5, span = job.align_corners ? last : (C)size;
    if (span == 0) {
      factor = 0;
      return 0;
    }
    at = at - low;
    if (at < 0) {
      at = -at;
      factor = -factor;
    }
    i64 flips = (i64)floor(at / span);
    C rest = rest_of(at, span);
    if (flips % 2 == 0) {
      at = rest + low;
    } else {
      at = span - rest + low;
      factor = -factor;
    }
  }
  if (at > 0 && at < last) return at;
  // What is no number counts as the first pixel.
  factor = 0;
  return at >= last && at > 0 ? last : (C)0;
}

template <typename C> __device__ void near(C x, C sign, C *out) {
  C p = (C)1.25, q = (C)2.25;
  out[0] = (p * x - q) * x * x + 1;
  out[1] = sign * ((3 * p * x - 2 * q) * x);
  out[2] = 6 * p * x - 2 * q;
}
template <typename C> __device__ void far(C x, C sign, C *out) {
  C a = (C)-0.75;
  out[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  out[1] = sign * ((3 * a * x - 10 * a) * x + 8 * a);
  out[2] = 6 * a * x - 10 * a;
}

// The pixels along a dimension of `size` pixels for a place of the grid.
template <typename C> __device__ __noinline__ void find(const Job &job, C grid, i64 size, Taps<C> &taps) {
  C pixels = (C)size, at, scale, factor;
  taps.count = 0;
  if (job.align_corners) {
    at = times(times(grid + 1, (C)0.5), pixels - 1);
    scale = (pixels - 1) * (C)0.5;
  } else {
    at = times(times(grid + 1, pixels) - 1, (C)0.5);
    scale = pixels * (C)0.5;
  }
  if (job.mode != CUBIC) {
    at = inside(job, at, size, factor);
    scale *= factor;
  }
  // A place that is no number, or far away, is outside.
  if (at != at || fabs(at) >= (C)2147483648.0) at = -100;
  C below = floor(at), part = at - below;
  if (job.mode == NEAREST) {
    taps.push(to_even(at), size, 1, 0, 0);
  } else if (job.mode == LINEAR) {
    taps.push(below, size, 1 - part, -scale, 0);
    taps.push(below + 1, size, part, scale, 0);
  } else {
    C parts[4][3];
    far<C>(part + 1, 1, parts[0]);
    near<C>(part, 1, parts[1]);
    near<C>(1 - part, -1, parts[2]);
    far<C>(2 - part, -1, parts[3]);
    for (int i = 0; i < 4; ++i) {
      C place = inside(job, below + (C)(i - 1), size, factor);
      taps.push(place, size, parts[i][0], parts[i][1] * scale, parts[i][2] * scale * scale);
    }
  }
}

// A sample's pixels along depth, height and width, and the direction, if there is one.
template <typename C> struct Sample {
  Taps<C> along[3];
  C direction[3];
};

template <typename C> __device__ void find_all(const Job &job, const void *grid, const void *direction, i64 place, Sample<C> &sample) {
  i32 code = (i32)job.code;
  for (int dim = 0; dim < 3; ++dim) {
    i64 own = 2 - dim;
    sample.direction[dim] = 0;
    if (own >= job.spatial) {
      Tap<C> through = {0, 1, 0, 0};
      sample.along[dim].all[0] = through;
      sample.along[dim].count = 1;
      continue;
    }
    find<C>(job, element<C>(grid, place * job.spatial + own, code), job.sizes[dim], sample.along[dim]);
    if (job.directed) sample.direction[dim] = element<C>(direction, place * job.spatial + own, code);
  }
}

// The weight of a pixel, or its derivative along the direction; `turned` is a dimension that is
// differentiated by itself, or -1.
template <typename C> __device__ C weight_of(const Job &job, const Sample<C> &sample, const Tap<C> *(&taps)[3], int turned) {
  C weights[3], slopes[3];
  for (int dim = 0; dim < 3; ++dim) {
    weights[dim] = dim == turned ? taps[dim]->slope : taps[dim]->weight;
    slopes[dim] = dim == turned ? taps[dim]->curve : taps[dim]->slope;
  }
  if (!job.directed) return weights[0] * weights[1] * weights[2];
  return sample.direction[0] * slopes[0] * weights[1] * weights[2] + sample.direction[1] * weights[0] * slopes[1] * weights[2] +
         sample.direction[2] * weights[0] * weights[1] * slopes[2];
}

// Calls `use(pixel, its parts)` for the pixels of a sample.
template <typename C, typename Use> __device__ void each_pixel(const Job &job, const Sample<C> &sample, Use use) {
  const Tap<C> *taps[3];
  for (int z = 0; z < sample.along[0].count; ++z)
    for (int y = 0; y < sample.along[1].count; ++y)
      for (int x = 0; x < sample.along[2].count; ++x) {
        taps[0] = &sample.along[0].all[z];
        taps[1] = &sample.along[1].all[y];
        taps[2] = &sample.along[2].all[x];
        use((taps[0]->place * job.sizes[1] + taps[1]->place) * job.sizes[2] + taps[2]->place, taps);
      }
}

template <typename C> __device__ void gather(const Job &job, const void *x, const void *grid, const void *direction, void *out) {
  i32 code = (i32)job.code;
  i64 pixels = job.pixels(), chunks = (job.channels + CHANNELS - 1) / CHANNELS;
  for (i64 i = first_index(); i < job.batch * chunks * job.places; i += all_threads()) {
    i64 place = i % job.places, first = i / job.places % chunks * CHANNELS, batch = i / job.places / chunks;
    Sample<C> sample;
    find_all<C>(job, grid, direction, batch * job.places + place, sample);
    C sums[CHANNELS] = {};
    each_pixel<C>(job, sample, [&](i64 pixel, const Tap<C> *(&taps)[3]) {
      C weight = weight_of<C>(job, sample, taps, -1);
#pragma unroll
      for (i64 c = 0; c < CHANNELS; ++c)
        if (first + c < job.channels) sums[c] += element<C>(x, (batch * job.channels + first + c) * pixels + pixel, code) * weight;
    });
#pragma unroll
    for (i64 c = 0; c < CHANNELS; ++c)
      if (first + c < job.channels) keep<C>(out, (batch * job.channels + first + c) * job.places + place, code, sums[c]);
  }
}

// The gradient of the grid.
template <typename C>
__device__ void slope(const Job &job, const void *grads, const void *x, const void *grid, const void *direction, void *out) {
  i32 code = (i32)job.code;
  i64 pixels = job.pixels();
  for (i64 i = first_index(); i < job.batch * job.places; i += all_threads()) {
    i64 place = i % job.places, batch = i / job.places;
    Sample<C> sample;
    find_all<C>(job, grid, direction, i, sample);
    C sums[3] = {0, 0, 0};
    each_pixel<C>(job, sample, [&](i64 pixel, const Tap<C> *(&taps)[3]) {
      C along = 0;
      for (i64 c = 0; c < job.channels; ++c) {
        i64 plane = batch * job.channels + c;
        along += element<C>(x, plane * pixels + pixel, code) * element<C>(grads, plane * job.places + place, code);
      }
#pragma unroll
      for (int dim = 0; dim < 3; ++dim) sums[dim] += along * weight_of<C>(job, sample, taps, dim);
    });
    for (i64 dim = 0; dim < job.spatial; ++dim) keep<C>(out, i * job.spatial + dim, code, sums[2 - dim]);
  }
}

// The pixels and weights of all samples; those that are not there have a pixel past the last.
template <typename C> __device__ void keys(const Job &job, const void *grid, const void *direction, u32 *keys, C *weights) {
  i64 most = job.most();
  for (i64 i = first_index(); i < job.batch * job.places; i += all_threads()) {
    Sample<C> sample;
    find_all<C>(job, grid, direction, i, sample);
    i64 at = i * most;
    each_pixel<C>(job, sample, [&](i64 pixel, const Tap<C> *(&taps)[3]) {
      keys[at] = (u32)pixel;
      weights[at++] = weight_of<C>(job, sample, taps, -1);
    });
    for (; at < (i + 1) * most; ++at) {
      keys[at] = (u32)job.pixels();
      weights[at] = 0;
    }
  }
}

// Where each pixel's samples start among the sorted ones of its batch, and where the last one's
// end.
KERNEL(grid_starts)(i64 batch, i64 length, i64 pixels, const u32 *sorted, u32 *starts) {
  in_turn();
  for (i64 i = first_index(); i < batch * length; i += all_threads()) {
    i64 at = i % length, row = i / length;
    u32 *own = starts + row * (pixels + 1);
    i64 before = at == 0 ? -1 : (i64)sorted[i - 1], here = (i64)sorted[i];
    for (i64 pixel = before + 1; pixel <= here; ++pixel) own[pixel] = (u32)at;
    if (at == length - 1)
      for (i64 pixel = here + 1; pixel <= pixels; ++pixel) own[pixel] = (u32)length;
  }
}

// Each pixel adds up its samples in order.
template <typename C>
__device__ void scatter(const Job &job, const void *grads, const u32 *starts, const u32 *positions, const C *weights, void *out) {
  i32 code = (i32)job.code;
  i64 pixels = job.pixels(), most = job.most(), chunks = (job.channels + CHANNELS - 1) / CHANNELS;
  for (i64 i = first_index(); i < job.batch * chunks * pixels; i += all_threads()) {
    i64 pixel = i % pixels, first = i / pixels % chunks * CHANNELS, batch = i / pixels / chunks;
    const u32 *range = starts + batch * (pixels + 1) + pixel;
    i64 base = batch * job.places * most;
    C sums[CHANNELS] = {};
    for (i64 at = range[0]; at < range[1]; ++at) {
      i64 position = positions[base + at], place = position / most;
      C weight = weights[base + position];
#pragma unroll
      for (i64 c = 0; c < CHANNELS; ++c)
        if (first + c < job.channels) sums[c] += element<C>(grads, (batch * job.channels + first + c) * job.places + place, code) * weight;
    }
#pragma unroll
    for (i64 c = 0; c < CHANNELS; ++c)
      if (first + c < job.channels) keep<C>(out, (batch * job.channels + first + c) * pixels + pixel, code, sums[c]);
  }
}

#define GRID(C)                                                                                                   \
  KERNEL(grid_sample_##C)(Job job, const void *x, const void *grid, const void *direction, void *out) {           \
    in_turn();                                                                                                    \
    gather<C>(job, x, grid, direction, out);                                                                      \
  }                                                                                                               \
  KERNEL(grid_slope_##C)(Job job, const void *grads, const void *x, const void *grid, const void *direction,      \
                                            void *out) {                                                          \
    in_turn();                                                                                                    \
    slope<C>(job, grads, x, grid, direction, out);                                                                \
  }                                                                                                               \
  KERNEL(grid_keys_##C)(Job job, const void *grid, const void *direction, u32 *found, C *weights) {               \
    in_turn();                                                                                                    \
    keys<C>(job, grid, direction, found, weights);                                                                \
  }                                                                                                               \
  KERNEL(grid_scatter_##C)(Job job, const void *grads, const u32 *starts, const u32 *positions, const C *weights, \
                                              void *out) {                                                        \
    in_turn();                                                                                                    \
    scatter<C>(job, grads, starts, positions, weights, out);                                                      \
  }
GRID(f32)
GRID(f64)
