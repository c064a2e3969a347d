// Convolutions as implicit products: a block makes a tile of 64 x 64 sums, 16 steps at a time
// through shared memory. Windows are looked up where the tensors lie, in any layout; nothing is
// unrolled in memory. Every sum is made by one thread in one order, or in parts that a second
// kernel adds up in order: the same bits from run to run.

// Mirrors `geometry` in Rust. The operand is x, or backward the gradient; for the weight's
// derivative it is x, and the result is the gradient. Strides are of batch, channels, depth,
// height, width; the weight's of the result's channels, the operand's, a group, and the kernel.
struct Geometry {
  i64 batch, groups, operands, results;
  i64 operand_sizes[3], result_sizes[3], kernel[3], stride[3], padding[3], dilation[3];
  i64 operand[5], result[5], weight[6];
};

const int SIDE = 64, STEPS = 16, EACH = 4;

__device__ __forceinline__ void unfold3(i64 index, const i64 (&sizes)[3], i64 (&at)[3]) {
  at[2] = index % sizes[2];
  index /= sizes[2];
  at[1] = index % sizes[1];
  at[0] = index / sizes[1];
}

// Where result `r` looks through tap `k` along dimension `d`, or -1.
template <bool backward> __device__ __forceinline__ i64 place(const Geometry &g, int d, i64 r, i64 k) {
  if (!backward) {
    i64 at = r * g.stride[d] + k * g.dilation[d] - g.padding[d];
    return at >= 0 && at < g.operand_sizes[d] ? at : -1;
  }
  i64 at = r + g.padding[d] - k * g.dilation[d];
  if (at < 0 || at % g.stride[d] != 0) return -1;
  at /= g.stride[d];
  return at < g.operand_sizes[d] ? at : -1;
}

// The tile's sums from two shared panels.
template <typename C> struct Tile {
  C a[STEPS][SIDE + 1], b[STEPS][SIDE + 1];
};

template <typename C> __device__ __forceinline__ void add_products(const Tile<C> &tile, C (&sums)[EACH][EACH]) {
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int k = 0; k < STEPS; ++k) {
    C left[EACH], right[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      left[i] = tile.a[k][x + 16 * i];
      right[i] = tile.b[k][y + 16 * i];
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i)
#pragma unroll
      for (int j = 0; j < EACH; ++j) sums[i][j] += left[i] * right[j];
  }
}

// Blocks: tiles of pixels, tiles of the result's channels, groups.
template <typename T, bool backward>
__device__ void correlate(const Geometry &g, const T *operand, const T *weight, const T *bias, i64 bias_stride, T *result) {
  typedef typename Compute<T>::number C;
  __shared__ Tile<C> tile;
  __shared__ i64 places[SIDE][4];
  i64 space = g.result_sizes[0] * g.result_sizes[1] * g.result_sizes[2];
  i64 pixels = g.batch * space, taps = g.kernel[0] * g.kernel[1] * g.kernel[2], steps = g.operands * taps;
  i64 first_pixel = (i64)blockIdx.x * SIDE, first_channel = (i64)blockIdx.y * SIDE, group = blockIdx.z;
  if (threadIdx.x < SIDE) {
    i64 pixel = first_pixel + threadIdx.x;
    i64 at[3] = {0, 0, 0};
    if (pixel < pixels) unfold3(pixel % space, g.result_sizes, at);
    places[threadIdx.x][0] = pixel < pixels ? pixel / space : -1;
    for (int d = 0; d < 3; ++d) places[threadIdx.x][d + 1] = at[d];
  }
  __syncthreads();
  C sums[EACH][EACH] = {};
  const T *from = operand + group * g.operands * g.operand[1];
  const T *weights = weight + group * g.weight[2];
  for (i64 start = 0; start < steps; start += STEPS) {
    for (int i = threadIdx.x; i < SIDE * STEPS; i += blockDim.x) {
      int lane = i % SIDE, k = i / SIDE;
      i64 step = start + k;
      C value = 0;
      if (step < steps && places[lane][0] >= 0) {
        i64 tap[3];
        unfold3(step % taps, g.kernel, tap);
        i64 d = place<backward>(g, 0, places[lane][1], tap[0]);
        i64 h = place<backward>(g, 1, places[lane][2], tap[1]);
        i64 w = place<backward>(g, 2, places[lane][3], tap[2]);
        if (d >= 0 && h >= 0 && w >= 0) {
          i64 at = places[lane][0] * g.operand[0] + step / taps * g.operand[1];
          value = (C)load(from[at + d * g.operand[2] + h * g.operand[3] + w * g.operand[4]]);
        }
      }
      tile.a[k][lane] = value;
    }
    for (int i = threadIdx.x; i < SIDE * STEPS; i += blockDim.x) {
      int k = i % STEPS, lane = i / STEPS;
      i64 step = start + k, channel = first_channel + lane;
      C value = 0;
      if (step < steps && channel < g.results) {
        i64 tap[3];
        unfold3(step % taps, g.kernel, tap);
        i64 at = channel * g.weight[0] + step / taps * g.weight[1];
        value = (C)load(weights[at + tap[0] * g.weight[3] + tap[1] * g.weight[4] + tap[2] * g.weight[5]]);
      }
      tile.b[k][lane] = value;
    }
    __syncthreads();
    add_products(tile, sums);
    __syncthreads();
  }
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (int j = 0; j < EACH; ++j) {
    i64 channel = first_channel + y + 16 * j;
    if (channel >= g.results) continue;
    i64 whole = group * g.results + channel;
    C added = bias ? (C)load(bias[whole * bias_stride]) : (C)0;
    for (int i = 0; i < EACH; ++i) {
      int lane = x + 16 * i;
      if (places[lane][0] < 0) continue;
      i64 at = places[lane][0] * g.result[0] + whole * g.result[1];
      at += places[lane][1] * g.result[2] + places[lane][2] * g.result[3] + places[lane][3] * g.result[4];
      result[at] = Store<T>::from(sums[i][j] + added);
    }
  }
}

// Blocks: tiles of the gradient's channels, tiles of (channel of x, tap), groups x parts of the
// pixels. With several parts each writes its sums to `partial`, [part][group][gradient's
// channel][channel of x, tap].
template <typename T>
__device__ void weights(const Geometry &g, const T *x, const T *grad, i64 parts, i64 part_pixels,
                        typename Compute<T>::number *partial, T *out) {
  typedef typename Compute<T>::number C;
  __shared__ Tile<C> tile;
  __shared__ i64 pixel_places[STEPS][4];
  i64 space = g.result_sizes[0] * g.result_sizes[1] * g.result_sizes[2];
  i64 taps = g.kernel[0] * g.kernel[1] * g.kernel[2], columns = g.operands * taps;
  i64 first_row = (i64)blockIdx.x * SIDE, first_column = (i64)blockIdx.y * SIDE;
  i64 group = blockIdx.z / parts, part = blockIdx.z % parts;
  i64 end = min((part + 1) * part_pixels, g.batch * space);
  const T *from = x + group * g.operands * g.operand[1];
  const T *grads = grad + group * g.results * g.result[1];
  C sums[EACH][EACH] = {};
  for (i64 start = part * part_pixels; start < end; start += STEPS) {
    if (threadIdx.x < STEPS) {
      i64 pixel = start + threadIdx.x;
      i64 at[3] = {0, 0, 0};
      if (pixel < end) unfold3(pixel % space, g.result_sizes, at);
      pixel_places[threadIdx.x][0] = pixel < end ? pixel / space : -1;
      for (int d = 0; d < 3; ++d) pixel_places[threadIdx.x][d + 1] = at[d];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SIDE * STEPS; i += blockDim.x) {
      int k = i % STEPS, lane = i / STEPS;
      const i64 *at = pixel_places[k];
      i64 row = first_row + lane, column = first_column + lane;
      C left = 0, right = 0;
      if (at[0] >= 0 && row < g.results) {
        i64 place = at[0] * g.result[0] + row * g.result[1];
        left = (C)load(grads[place + at[1] * g.result[2] + at[2] * g.result[3] + at[3] * g.result[4]]);
      }
      if (at[0] >= 0 && column < columns) {
        i64 tap[3];
        unfold3(column % taps, g.kernel, tap);
        i64 d = place<false>(g, 0, at[1], tap[0]);
        i64 h = place<false>(g, 1, at[2], tap[1]);
        i64 w = place<false>(g, 2, at[3], tap[2]);
        if (d >= 0 && h >= 0 && w >= 0) {
          i64 place = at[0] * g.operand[0] + column / taps * g.operand[1];
          right = (C)load(from[place + d * g.operand[2] + h * g.operand[3] + w * g.operand[4]]);
        }
      }
      tile.a[k][lane] = left;
      tile.b[k][lane] = right;
    }
    __syncthreads();
    add_products(tile, sums);
    __syncthreads();
  }
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  for (int i = 0; i < EACH; ++i) {
    i64 row = first_row + tx + 16 * i;
    if (row >= g.results) continue;
    for (int j = 0; j < EACH; ++j) {
      i64 column = first_column + ty + 16 * j;
      if (column >= columns) continue;
      if (parts > 1) {
        partial[((part * g.groups + group) * g.results + row) * columns + column] = sums[i][j];
      } else {
        i64 tap[3];
        unfold3(column % taps, g.kernel, tap);
        i64 at = group * g.weight[2] + row * g.weight[0] + column / taps * g.weight[1];
        out[at + tap[0] * g.weight[3] + tap[1] * g.weight[4] + tap[2] * g.weight[5]] = Store<T>::from(sums[i][j]);
      }
    }
  }
}

// Adds up the parts, in order.
template <typename T>
__device__ void add_parts(const Geometry &g, i64 parts, const typename Compute<T>::number *partial, T *out) {
  typedef typename Compute<T>::number C;
  i64 taps = g.kernel[0] * g.kernel[1] * g.kernel[2], columns = g.operands * taps;
  i64 count = g.groups * g.results * columns;
  for (i64 i = first_index(); i < count; i += all_threads()) {
    C sum = 0;
    for (i64 part = 0; part < parts; ++part) sum += partial[part * count + i];
    i64 column = i % columns, row = i / columns % g.results, group = i / columns / g.results;
    i64 tap[3];
    unfold3(column % taps, g.kernel, tap);
    i64 at = group * g.weight[2] + row * g.weight[0] + column / taps * g.weight[1];
    out[at + tap[0] * g.weight[3] + tap[1] * g.weight[4] + tap[2] * g.weight[5]] = Store<T>::from(sum);
  }
}

#define CONV(type)                                                                                            \
  KERNEL(conv_##type)(Geometry g, const type *x, const type *weight, const type *bias,                        \
                                         i64 bias_stride, type *y) {                                          \
    correlate<type, false>(g, x, weight, bias, bias_stride, y);                                               \
  }                                                                                                           \
  KERNEL(conv_input_##type)(Geometry g, const type *grad, const type *weight, const type *bias,               \
                                               i64 bias_stride, type *x) {                                    \
    correlate<type, true>(g, grad, weight, bias, bias_stride, x);                                             \
  }                                                                                                           \
  KERNEL(conv_weight_##type)(Geometry g, const type *x, const type *grad, i64 parts,                          \
                                                i64 part_pixels, Compute<type>::number *partial, type *out) { \
    weights<type>(g, x, grad, parts, part_pixels, partial, out);                                              \
  }                                                                                                           \
  KERNEL(conv_weight_parts_##type)(Geometry g, i64 parts, const Compute<type>::number *partial,               \
                                                      type *out) {                                            \
    add_parts<type>(g, parts, partial, out);                                                                  \
  }
CONV(f32)
CONV(f64)
CONV(f16)
CONV(bf16)
CONV(i64)
