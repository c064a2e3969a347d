// Convolutions as implicit products: a block makes a tile of 128 x 64 sums, 16 steps at a time
// through shared memory. Windows are looked up where the tensors lie, in any layout; nothing is
// unrolled in memory. Every sum is made by one thread in one order, or in parts that a second
// kernel adds up in order: the same bits from run to run.

const int WIDE = 128, SIDE = 64, STEPS = 16, DOWN = WIDE / 16, ACROSS = SIDE / 16;

// Two panels of factors in shared memory.
template <typename C> struct Tile {
  alignas(16) C a[STEPS][WIDE + 4];
  alignas(16) C b[STEPS][SIDE + 4];
};

template <typename C> struct alignas(16) Four { C v[4]; };

// A thread has lanes x * 4 and 64 + x * 4 of one panel and y * 4 of the other, and the three after
// each: x is its place in a row of 16 threads, y the row.
__device__ __forceinline__ int wide_lane(int i) { return i / 4 * 64 + threadIdx.x % 16 * 4 + i % 4; }
__device__ __forceinline__ int side_lane(int j) { return threadIdx.x / 16 * 4 + j; }

template <typename C> __device__ __forceinline__ void add_products(const Tile<C> &tile, C (&sums)[DOWN][ACROSS]) {
#pragma unroll 2
  for (int k = 0; k < STEPS; ++k) {
    Four<C> right = *(const Four<C> *)&tile.b[k][side_lane(0)];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Four<C> left = *(const Four<C> *)&tile.a[k][wide_lane(4 * half)];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) sums[4 * half + i][j] += left.v[i] * right.v[j];
    }
  }
}

// What a step of a sum looks at: a channel of the operand through a tap.
struct Step {
  // Where it lies beside a place of the operand, and in the weight; the tap's distance.
  i64 operand, weight, apart[3];
  i64 exists;
};

template <bool backward> __device__ Step step_at(const Geometry &g, i64 index, i64 steps) {
  u32 taps = (u32)(g.kernel[0] * g.kernel[1] * g.kernel[2]);
  Step step = {0, 0, {0, 0, 0}, index < steps};
  if (!step.exists) return step;
  i64 channel = (i64)((u64)index / taps), tap[3];
  unfold3(index - channel * taps, g.kernel, tap);
  step.operand = channel * g.operand[1];
  step.weight = channel * g.weight[1];
  for (int d = 0; d < 3; ++d) {
    step.apart[d] = backward ? -tap[d] * g.dilation[d] : tap[d] * g.dilation[d];
    step.weight += tap[d] * g.weight[3 + d];
  }
  return step;
}

// A place of the result's spacing in that of the operand, or -1. A call: most
// strides are 1.
__device__ __noinline__ i64 spaced(i64 at, i64 stride) {
  if (at < 0 || (u64)at % (u64)stride != 0) return -1;
  return (i64)((u64)at / (u64)stride);
}

// An element of the operand from place `at`, in steps of the operand, on; 0 outside. Backward only
// every `stride`-th place has one.
template <typename C, bool backward>
__device__ __forceinline__ C looked_at(const Geometry &g, const void *from, i64 image, const i64 (&at)[3], const Step &step) {
  i64 place = image + step.operand;
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    i64 own = at[d] + step.apart[d];
    if (backward && g.stride[d] != 1) own = spaced(own, g.stride[d]);
    if ((u64)own >= (u64)g.operand_sizes[d]) return 0;
    place += own * g.operand[2 + d];
  }
  return fetched<C>(from, place, g.width);
}

// Blocks: tiles of pixels, tiles of the result's channels, groups. What the next step needs is on
// its way from memory while this one is multiplied.
template <typename C, bool backward>
__device__ void correlate(const Geometry &g, const void *operand, const void *weight, const void *bias, i64 bias_stride, void *result) {
  __shared__ Tile<C> tile;
  __shared__ Step table[2][STEPS];
  i64 space = g.result_sizes[0] * g.result_sizes[1] * g.result_sizes[2];
  i64 pixels = g.batch * space, steps = g.operands * g.kernel[0] * g.kernel[1] * g.kernel[2];
  i64 first_pixel = (i64)blockIdx.x * WIDE, first_channel = (i64)blockIdx.y * SIDE, group = blockIdx.z;
  // The pixel that this thread looks from: every other step of it.
  int lane = threadIdx.x % WIDE, odd = threadIdx.x / WIDE;
  i64 pixel = first_pixel + lane, at[3];
  bool there = pixel < pixels;
  i64 image = (there ? pixel / space : 0) * g.operand[0] + group * g.operands * g.operand[1];
  unfold3(there ? pixel % space : 0, g.result_sizes, at);
  for (int d = 0; d < 3; ++d) at[d] = backward ? at[d] + g.padding[d] : at[d] * g.stride[d] - g.padding[d];
  C left[STEPS / 2], right[SIDE * STEPS / 256];
  auto fetch = [&](const Step *now) {
#pragma unroll
    for (int i = 0; i < STEPS / 2; ++i) {
      const Step &step = now[2 * i + odd];
      left[i] = there && step.exists ? looked_at<C, backward>(g, operand, image, at, step) : (C)0;
    }
#pragma unroll
    for (int i = 0; i < SIDE * STEPS / 256; ++i) {
      const Step &step = now[threadIdx.x % STEPS];
      i64 channel = first_channel + threadIdx.x / STEPS + i * (256 / STEPS);
      i64 place = group * g.weight[2] + channel * g.weight[0] + step.weight;
      right[i] = step.exists && channel < g.results ? fetched<C>(weight, place, g.width) : (C)0;
    }
  };
  if (threadIdx.x < 2 * STEPS) table[threadIdx.x / STEPS][threadIdx.x % STEPS] = step_at<backward>(g, threadIdx.x, steps);
  __syncthreads();
  C sums[DOWN][ACROSS] = {};
  i64 rounds = (steps + STEPS - 1) / STEPS;
  for (i64 round = -1; round < rounds; ++round) {
    if (round >= 0) {
#pragma unroll
      for (int i = 0; i < STEPS / 2; ++i) tile.a[2 * i + odd][lane] = left[i];
#pragma unroll
      for (int i = 0; i < SIDE * STEPS / 256; ++i) tile.b[threadIdx.x % STEPS][threadIdx.x / STEPS + i * (256 / STEPS)] = right[i];
    }
    __syncthreads();
    if (round + 1 < rounds) fetch(table[(round + 1) % 2]);
    if (round < 0) continue;
    add_products(tile, sums);
    // What this round looked at is done with.
    if (threadIdx.x < STEPS) table[round % 2][threadIdx.x] = step_at<backward>(g, (round + 2) * STEPS + threadIdx.x, steps);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < DOWN; ++i) {
    i64 own = first_pixel + wide_lane(i), to[3];
    if (own >= pixels) continue;
    unfold3(own % space, g.result_sizes, to);
    i64 place = own / space * g.result[0] + to[0] * g.result[2] + to[1] * g.result[3] + to[2] * g.result[4];
#pragma unroll
    for (int j = 0; j < ACROSS; ++j) {
      i64 channel = first_channel + side_lane(j), whole = group * g.results + channel;
      if (channel >= g.results) continue;
      C added = bias ? fetched<C>(bias, whole * bias_stride, g.width) : (C)0;
      put<C>(result, place + whole * g.result[1], g.width, sums[i][j] + added);
    }
  }
}

// A pixel of the gradient: where it lies there, and where the operand's window starts.
struct Pixel {
  i64 result, operand, at[3];
  i64 exists;
};

__device__ Pixel pixel_at(const Geometry &g, i64 index, i64 end, i64 space) {
  Pixel pixel = {0, 0, {0, 0, 0}, index < end};
  if (!pixel.exists) return pixel;
  i64 image = index / space, at[3];
  unfold3(index - image * space, g.result_sizes, at);
  pixel.result = image * g.result[0];
  pixel.operand = image * g.operand[0];
  for (int d = 0; d < 3; ++d) {
    pixel.result += at[d] * g.result[2 + d];
    pixel.at[d] = at[d] * g.stride[d] - g.padding[d];
  }
  return pixel;
}

// Blocks: tiles of (channel of x, tap), tiles of the gradient's channels, groups x parts of the
// pixels. With several parts each writes its sums to `partial`, [part][group][gradient's
// channel][channel of x, tap].
template <typename C>
__device__ void weights(const Geometry &g, const void *x, const void *grad, i64 parts, i64 part_pixels, C *partial, void *out) {
  __shared__ Tile<C> tile;
  __shared__ Pixel table[2][STEPS];
  __shared__ Step columns[WIDE];
  i64 space = g.result_sizes[0] * g.result_sizes[1] * g.result_sizes[2];
  i64 taps = g.kernel[0] * g.kernel[1] * g.kernel[2], all = g.operands * taps;
  i64 first_column = (i64)blockIdx.x * WIDE, first_row = (i64)blockIdx.y * SIDE;
  i64 group = blockIdx.z / parts, part = blockIdx.z % parts;
  i64 begin = part * part_pixels, end = min(begin + part_pixels, g.batch * space);
  i64 first_channel = group * g.operands * g.operand[1], first_grad = group * g.results * g.result[1];
  if (threadIdx.x < WIDE) columns[threadIdx.x] = step_at<false>(g, first_column + threadIdx.x, all);
  int own = threadIdx.x % STEPS, lane = threadIdx.x / STEPS;
  C left[WIDE * STEPS / 256], right[SIDE * STEPS / 256];
  auto fetch = [&](const Pixel *now) {
    Pixel pixel = now[own];
#pragma unroll
    for (int i = 0; i < WIDE * STEPS / 256; ++i) {
      const Step &column = columns[lane + i * (256 / STEPS)];
      left[i] = pixel.exists && column.exists ? looked_at<C, false>(g, x, first_channel + pixel.operand, pixel.at, column) : (C)0;
    }
#pragma unroll
    for (int i = 0; i < SIDE * STEPS / 256; ++i) {
      i64 row = first_row + lane + i * (256 / STEPS);
      right[i] = pixel.exists && row < g.results ? fetched<C>(grad, first_grad + row * g.result[1] + pixel.result, g.width) : (C)0;
    }
  };
  if (threadIdx.x < 2 * STEPS) table[threadIdx.x / STEPS][threadIdx.x % STEPS] = pixel_at(g, begin + threadIdx.x, end, space);
  __syncthreads();
  C sums[DOWN][ACROSS] = {};
  i64 rounds = (end - begin + STEPS - 1) / STEPS;
  for (i64 round = -1; round < rounds; ++round) {
    if (round >= 0) {
#pragma unroll
      for (int i = 0; i < WIDE * STEPS / 256; ++i) tile.a[own][lane + i * (256 / STEPS)] = left[i];
#pragma unroll
      for (int i = 0; i < SIDE * STEPS / 256; ++i) tile.b[own][lane + i * (256 / STEPS)] = right[i];
    }
    __syncthreads();
    if (round + 1 < rounds) fetch(table[(round + 1) % 2]);
    if (round < 0) continue;
    add_products(tile, sums);
    if (threadIdx.x < STEPS) table[round % 2][threadIdx.x] = pixel_at(g, begin + (round + 2) * STEPS + threadIdx.x, end, space);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < DOWN; ++i) {
    i64 column = first_column + wide_lane(i);
    if (column >= all) continue;
    // The weight's place, of which the table has the first row's.
    i64 at = group * g.weight[2] + columns[wide_lane(i)].weight;
#pragma unroll
    for (int j = 0; j < ACROSS; ++j) {
      i64 row = first_row + side_lane(j);
      if (row >= g.results) continue;
      if (parts > 1) partial[((part * g.groups + group) * g.results + row) * all + column] = sums[i][j];
      else put<C>(out, at + row * g.weight[0], g.width, sums[i][j]);
    }
  }
}

// Adds up the parts, in order.
template <typename C> __device__ void add_parts(const Geometry &g, i64 parts, const C *partial, void *out) {
  i64 taps = g.kernel[0] * g.kernel[1] * g.kernel[2], columns = g.operands * taps;
  i64 count = g.groups * g.results * columns;
  for (i64 i = first_index(); i < count; i += all_threads()) {
    C sum = 0;
    for (i64 part = 0; part < parts; ++part) sum += partial[part * count + i];
    i64 column = i % columns, row = i / columns % g.results, group = i / columns / g.results;
    i64 tap[3];
    unfold3(column % taps, g.kernel, tap);
    i64 at = group * g.weight[2] + row * g.weight[0] + column / taps * g.weight[1];
    put<C>(out, at + tap[0] * g.weight[3] + tap[1] * g.weight[4] + tap[2] * g.weight[5], g.width, sum);
  }
}

#define CONV(C)                                                                                               \
  KERNEL_OF(256, conv_##C)(Geometry g, const void *x, const void *weight, const void *bias,                   \
                                                             i64 bias_stride, void *y) {                      \
    in_turn();                                                                                                \
    correlate<C, false>(g, x, weight, bias, bias_stride, y);                                                  \
  }                                                                                                           \
  KERNEL_OF(256, conv_input_##C)(Geometry g, const void *grad, const void *weight, const void *bias,          \
                                                                   i64 bias_stride, void *x) {                \
    in_turn();                                                                                                \
    correlate<C, true>(g, grad, weight, bias, bias_stride, x);                                                \
  }                                                                                                           \
  KERNEL_OF(256, conv_weight_##C)(Geometry g, const void *x, const void *grad, i64 parts,                     \
                                                                    i64 part_pixels, C *partial, void *out) { \
    in_turn();                                                                                                \
    weights<C>(g, x, grad, parts, part_pixels, partial, out);                                                 \
  }
CONV(f32)
CONV(f64)

#define PARTS(C)                                                                      \
  KERNEL(conv_weight_parts_##C)(Geometry g, i64 parts, const C *partial, void *out) { \
    in_turn();                                                                        \
    add_parts<C>(g, parts, partial, out);                                             \
  }
PARTS(f32)
PARTS(f64)
PARTS(i64)

// Adds to each element of a packed tensor the bias of its channel, of which `run` elements lie one
// after another. There are less than 2^31 elements.
template <typename T>
__device__ void add_bias(T *y, const T *bias, i64 bias_stride, u32 count, u32 channels, u32 run) {
  const u32 each = 16 / sizeof(T);
  if (run % each == 0 || (run == 1 && channels % each == 0)) {
    Pack<T> *packs = (Pack<T> *)y;
    four_at_once(
        count / each, [&](i64 i) { return packs[i]; },
        [&](i64 i, Pack<T> pack) {
          u32 channel = (u32)i * each / run % channels, step = run == 1 ? 1 : 0;
#pragma unroll
          for (u32 k = 0; k < each; ++k)
            pack.v[k] = Store<T>::from(load(pack.v[k]) + load(bias[(channel + k * step) * bias_stride]));
          packs[i] = pack;
        });
  } else {
    for (i64 i = first_index(); i < count; i += all_threads())
      y[i] = Store<T>::from(load(y[i]) + load(bias[(u32)i / run % channels * bias_stride]));
  }
}

#define BIAS(type)                                                                                         \
  KERNEL(conv_bias_##type)(type *y, const type *bias, i64 bias_stride, i64 count, i64 channels, i64 run) { \
    in_turn();                                                                                             \
    add_bias<type>(y, bias, bias_stride, count, channels, run);                                            \
  }
BIAS(f32)
BIAS(f64)
BIAS(f16)
BIAS(bf16)
