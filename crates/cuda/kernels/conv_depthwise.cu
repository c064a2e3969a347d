// Convolutions in which groups have few channels: a thread a result, with no tiles, which would be
// empty for the most part. Integers go this way too, however many channels they have: who convolves
// them is not in a hurry, and tiles take long to compile. The weight's gradient adds up in parts,
// which the second kernel of conv.cu adds up in order.

// The operand's place that result `r` looks at through tap `k`, or -1.
template <bool backward> __device__ __forceinline__ i32 look(i32 r, i32 k, i32 stride, i32 padding, i32 dilation, i32 size) {
  if (!backward) {
    i32 at = r * stride + k * dilation - padding;
    return at >= 0 && at < size ? at : -1;
  }
  i32 at = r + padding - k * dilation;
  if (at < 0) return -1;
  if (stride != 1) {
    if (at % stride != 0) return -1;
    at /= stride;
  }
  return at < size ? at : -1;
}

// Jobs are the channels of each image, or, where channels lie side by side, the rows of each image:
// neighbouring threads write neighbours.
template <typename C, bool backward>
__device__ void direct(const Geometry &g, i64 side_by_side, const void *operand, const void *weight, const void *bias, i64 bias_stride,
                       void *result) {
  i32 depth = (i32)g.result_sizes[0], height = (i32)g.result_sizes[1], width = (i32)g.result_sizes[2];
  i64 channels = g.groups * g.results, lines = (i64)depth * height;
  i64 jobs = side_by_side ? g.batch * lines : g.batch * channels;
  i64 inner = side_by_side ? width * channels : lines * width;
  for (i64 job = blockIdx.x; job < jobs; job += gridDim.x) {
    for (i64 i = (i64)blockIdx.y * blockDim.x + threadIdx.x; i < inner; i += (i64)gridDim.y * blockDim.x) {
      i64 batch, channel;
      i32 z, y, x;
      if (side_by_side) {
        i64 line = job % lines;
        batch = job / lines;
        channel = i % channels;
        x = (i32)(i / channels);
        z = (i32)(line / height);
        y = (i32)(line % height);
      } else {
        i32 line = (i32)i / width;
        batch = job / channels;
        channel = job % channels;
        x = (i32)i - line * width;
        z = line / height;
        y = line - z * height;
      }
      i64 group = channel / g.results;
      i64 from = batch * g.operand[0] + group * g.operands * g.operand[1];
      i64 weights = group * g.weight[2] + (channel - group * g.results) * g.weight[0];
      C sum = bias ? fetched<C>(bias, channel * bias_stride, g.width) : (C)0;
      for (i64 o = 0; o < g.operands; ++o)
        for (i32 a = 0; a < (i32)g.kernel[0]; ++a) {
          i32 at_z = look<backward>(z, a, (i32)g.stride[0], (i32)g.padding[0], (i32)g.dilation[0], (i32)g.operand_sizes[0]);
          if (at_z < 0) continue;
          for (i32 b = 0; b < (i32)g.kernel[1]; ++b) {
            i32 at_y = look<backward>(y, b, (i32)g.stride[1], (i32)g.padding[1], (i32)g.dilation[1], (i32)g.operand_sizes[1]);
            if (at_y < 0) continue;
            i64 row = from + o * g.operand[1] + at_z * g.operand[2] + at_y * g.operand[3];
            i64 taps = weights + o * g.weight[1] + a * g.weight[3] + b * g.weight[4];
            for (i32 c = 0; c < (i32)g.kernel[2]; ++c) {
              i32 at_x = look<backward>(x, c, (i32)g.stride[2], (i32)g.padding[2], (i32)g.dilation[2], (i32)g.operand_sizes[2]);
              if (at_x >= 0)
                sum += fetched<C>(operand, row + at_x * g.operand[4], g.width) * fetched<C>(weight, taps + c * g.weight[5], g.width);
            }
          }
        }
      i64 at = batch * g.result[0] + channel * g.result[1];
      put<C>(result, at + z * g.result[2] + y * g.result[3] + x * g.result[4], g.width, sum);
    }
  }
}

// Taps that a thread adds up at a time.
const int TAPS = 9;

// Blocks: channels of the gradient, parts of the images, TAPS columns (a channel of x and a tap) of
// a row of the weight. Sums go to `partial`, [part][channel][column].
template <typename C> __device__ void weights(const Geometry &g, const void *x, const void *grad, i64 parts, C *partial) {
  i32 height = (i32)g.result_sizes[1], width = (i32)g.result_sizes[2];
  i64 space = g.result_sizes[0] * height * width, taps = g.kernel[0] * g.kernel[1] * g.kernel[2], columns = g.operands * taps;
  i64 channel = blockIdx.x, part = blockIdx.y, first = (i64)blockIdx.z * TAPS, group = channel / g.results;
  i64 begin = g.batch * part / parts, end = g.batch * (part + 1) / parts;
  // Of each column where it looks beside the result's place, and the channel of x.
  i32 offsets[TAPS][3];
  i64 starts[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; ++k) {
    i64 column = first + k < columns ? first + k : columns - 1, tap[3];
    unfold3(column % taps, g.kernel, tap);
#pragma unroll
    for (int d = 0; d < 3; ++d) offsets[k][d] = (i32)(tap[d] * g.dilation[d] - g.padding[d]);
    starts[k] = (group * g.operands + column / taps) * g.operand[1];
  }
  C sums[TAPS] = {};
  for (i64 batch = begin; batch < end; ++batch) {
    i64 grads = batch * g.result[0] + channel * g.result[1], from = batch * g.operand[0];
    for (i64 i = threadIdx.x; i < space; i += blockDim.x) {
      i32 line = (i32)i / width, at_x = (i32)i - line * width, at_z = line / height, at_y = line - at_z * height;
      C slope = fetched<C>(grad, grads + at_z * g.result[2] + at_y * g.result[3] + at_x * g.result[4], g.width);
      i32 z = at_z * (i32)g.stride[0], y = at_y * (i32)g.stride[1], w = at_x * (i32)g.stride[2];
#pragma unroll
      for (int k = 0; k < TAPS; ++k) {
        i32 a = z + offsets[k][0], b = y + offsets[k][1], c = w + offsets[k][2];
        if ((u32)a < (u32)g.operand_sizes[0] && (u32)b < (u32)g.operand_sizes[1] && (u32)c < (u32)g.operand_sizes[2])
          sums[k] += slope * fetched<C>(x, from + starts[k] + a * g.operand[2] + b * g.operand[3] + c * g.operand[4], g.width);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < TAPS; ++k) {
    C sum = block_sum(sums[k]);
    if (threadIdx.x == 0 && first + k < columns) partial[(part * g.groups * g.results + channel) * columns + first + k] = sum;
  }
}

#define DIRECT(C)                                                                                            \
  KERNEL(conv_direct_##C)(Geometry g, i64 side_by_side, const void *x, const void *weight, const void *bias, \
                                             i64 bias_stride, void *y) {                                     \
    in_turn();                                                                                               \
    direct<C, false>(g, side_by_side, x, weight, bias, bias_stride, y);                                      \
  }                                                                                                          \
  KERNEL(conv_input_direct_##C)(Geometry g, i64 side_by_side, const void *grad, const void *weight,          \
                                                   const void *bias, i64 bias_stride, void *x) {             \
    in_turn();                                                                                               \
    direct<C, true>(g, side_by_side, grad, weight, bias, bias_stride, x);                                    \
  }                                                                                                          \
  KERNEL(conv_weight_direct_##C)(Geometry g, const void *x, const void *grad, i64 parts, C *partial) {       \
    in_turn();                                                                                               \
    weights<C>(g, x, grad, parts, partial);                                                                  \
  }
DIRECT(f32)
DIRECT(i64)

// Kernels of K x K over single channels of flat images, in 32 bits: which rows and columns of a
// window are inside is found once for all of its taps.
template <int K> struct Window {
  i32 rows[K], columns[K];
  bool has_row[K], has_column[K];

  // The window from `y` and `x` on, `step` from tap to tap.
  __device__ __forceinline__ Window(const Geometry &g, i32 y, i32 x, i32 row_step, i32 column_step) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      i32 row = y + k * row_step, column = x + k * column_step;
      has_row[k] = (u32)row < (u32)g.operand_sizes[1];
      has_column[k] = (u32)column < (u32)g.operand_sizes[2];
      rows[k] = row * (i32)g.operand[3];
      columns[k] = column * (i32)g.operand[4];
    }
  }
};

// One channel of one image: where it is read and written, its weights and what is added.
template <int K> struct Channel {
  i64 from, to;
  f32 weights[K][K], added;

  __device__ __forceinline__ Channel(const Geometry &g, i64 job, const void *weight, const void *bias, i64 bias_stride) {
    i64 batch = job / g.groups, channel = job - batch * g.groups;
    from = batch * g.operand[0] + channel * g.operand[1];
    to = batch * g.result[0] + channel * g.result[1];
    added = bias ? fetched<f32>(bias, channel * bias_stride, g.width) : 0.0f;
#pragma unroll
    for (int a = 0; a < K; ++a)
#pragma unroll
      for (int b = 0; b < K; ++b) weights[a][b] = fetched<f32>(weight, channel * g.weight[2] + a * g.weight[4] + b * g.weight[5], g.width);
  }
};

// A thread a result of a channel; backward the stride is 1, and windows lie the other way.
template <int K, bool backward>
__device__ void square(const Geometry &g, const void *operand, const void *weight, const void *bias, i64 bias_stride, void *result) {
  i32 width = (i32)g.result_sizes[2], space = (i32)g.result_sizes[1] * width;
  i32 row_step = (i32)(backward ? -g.dilation[1] : g.dilation[1]), column_step = (i32)(backward ? -g.dilation[2] : g.dilation[2]);
  for (i64 job = blockIdx.x; job < g.batch * g.groups; job += gridDim.x) {
    Channel<K> channel(g, job, weight, bias, bias_stride);
    for (i32 i = blockIdx.y * blockDim.x + threadIdx.x; i < space; i += gridDim.y * blockDim.x) {
      i32 y = (i32)((u32)i / (u32)width), x = i - y * width;
      i32 first_row = backward ? y + (i32)g.padding[1] : y * (i32)g.stride[1] - (i32)g.padding[1];
      i32 first_column = backward ? x + (i32)g.padding[2] : x * (i32)g.stride[2] - (i32)g.padding[2];
      Window<K> window(g, first_row, first_column, row_step, column_step);
      f32 sum = channel.added;
#pragma unroll
      for (int a = 0; a < K; ++a)
#pragma unroll
        for (int b = 0; b < K; ++b)
          if (window.has_row[a] && window.has_column[b])
            sum += fetched<f32>(operand, channel.from + (window.rows[a] + window.columns[b]), g.width) * channel.weights[a][b];
      put<f32>(result, channel.to + (y * (i32)g.result[3] + x * (i32)g.result[4]), g.width, sum);
    }
  }
}

// Results that a thread computes side by side.
const int RESULTS = 4;

// As `square` with stride and dilation 1: a thread computes neighbours in a row, whose windows
// share most of what they see.
template <int K, bool backward>
__device__ void square_rows(const Geometry &g, const void *operand, const void *weight, const void *bias, i64 bias_stride, void *result) {
  const int SEEN = RESULTS + K - 1;
  i32 height = (i32)g.result_sizes[1], width = (i32)g.result_sizes[2], each = (width + RESULTS - 1) / RESULTS;
  i32 operand_height = (i32)g.operand_sizes[1], operand_width = (i32)g.operand_sizes[2];
  for (i64 job = blockIdx.x; job < g.batch * g.groups; job += gridDim.x) {
    Channel<K> channel(g, job, weight, bias, bias_stride);
    for (i32 i = blockIdx.y * blockDim.x + threadIdx.x; i < height * each; i += gridDim.y * blockDim.x) {
      i32 y = (i32)((u32)i / (u32)each), x = (i - y * each) * RESULTS;
      i32 first_row = backward ? y + (i32)g.padding[1] : y - (i32)g.padding[1];
      i32 first_column = backward ? x + (i32)g.padding[2] - (K - 1) : x - (i32)g.padding[2];
      f32 sums[RESULTS];
#pragma unroll
      for (int r = 0; r < RESULTS; ++r) sums[r] = channel.added;
#pragma unroll
      for (int a = 0; a < K; ++a) {
        i32 row = backward ? first_row - a : first_row + a;
        if ((u32)row >= (u32)operand_height) continue;
        f32 seen[SEEN];
#pragma unroll
        for (int c = 0; c < SEEN; ++c)
          if ((u32)(first_column + c) < (u32)operand_width)
            seen[c] = fetched<f32>(operand, channel.from + (row * (i32)g.operand[3] + (first_column + c) * (i32)g.operand[4]), g.width);
#pragma unroll
        for (int b = 0; b < K; ++b)
#pragma unroll
          for (int r = 0; r < RESULTS; ++r) {
            int c = r + (backward ? K - 1 - b : b);
            // What is outside counts as nothing, however large the weight.
            if ((u32)(first_column + c) < (u32)operand_width) sums[r] += seen[c] * channel.weights[a][b];
          }
      }
#pragma unroll
      for (int r = 0; r < RESULTS; ++r)
        if (x + r < width) put<f32>(result, channel.to + (y * (i32)g.result[3] + (x + r) * (i32)g.result[4]), g.width, sums[r]);
    }
  }
}

// Blocks: channels, parts of the images. Sums go to `partial`, as those of `weights`.
template <int K> __device__ void square_weights(const Geometry &g, const void *x, const void *grad, i64 parts, f32 *partial) {
  i32 width = (i32)g.result_sizes[2], space = (i32)g.result_sizes[1] * width;
  i64 channel = blockIdx.x, part = blockIdx.y;
  f32 sums[K][K] = {};
  for (i64 batch = g.batch * part / parts; batch < g.batch * (part + 1) / parts; ++batch) {
    i64 from = batch * g.operand[0] + channel * g.operand[1], grads = batch * g.result[0] + channel * g.result[1];
    for (i32 i = threadIdx.x; i < space; i += blockDim.x) {
      i32 at_y = (i32)((u32)i / (u32)width), at_x = i - at_y * width;
      f32 slope = fetched<f32>(grad, grads + (at_y * (i32)g.result[3] + at_x * (i32)g.result[4]), g.width);
      Window<K> window(g, at_y * (i32)g.stride[1] - (i32)g.padding[1], at_x * (i32)g.stride[2] - (i32)g.padding[2], (i32)g.dilation[1],
                       (i32)g.dilation[2]);
#pragma unroll
      for (int a = 0; a < K; ++a)
#pragma unroll
        for (int b = 0; b < K; ++b)
          if (window.has_row[a] && window.has_column[b])
            sums[a][b] += slope * fetched<f32>(x, from + (window.rows[a] + window.columns[b]), g.width);
    }
  }
#pragma unroll
  for (int k = 0; k < K * K; ++k) {
    f32 sum = block_sum(sums[k / K][k % K]);
    if (threadIdx.x == 0) partial[(part * g.groups + channel) * K * K + k] = sum;
  }
}

#define SQUARE(K)                                                                                                               \
  KERNEL(conv_square_##K)(Geometry g, const void *x, const void *weight, const void *bias, i64 bias_stride, void *y) {          \
    in_turn();                                                                                                                  \
    square<K, false>(g, x, weight, bias, bias_stride, y);                                                                       \
  }                                                                                                                             \
  KERNEL(conv_input_square_##K)(Geometry g, const void *grad, const void *weight, const void *bias, i64 bias_stride, void *x) { \
    in_turn();                                                                                                                  \
    square<K, true>(g, grad, weight, bias, bias_stride, x);                                                                     \
  }                                                                                                                             \
  KERNEL(conv_rows_##K)(Geometry g, const void *x, const void *weight, const void *bias, i64 bias_stride, void *y) {            \
    in_turn();                                                                                                                  \
    square_rows<K, false>(g, x, weight, bias, bias_stride, y);                                                                  \
  }                                                                                                                             \
  KERNEL(conv_input_rows_##K)(Geometry g, const void *grad, const void *weight, const void *bias, i64 bias_stride, void *x) {   \
    in_turn();                                                                                                                  \
    square_rows<K, true>(g, grad, weight, bias, bias_stride, x);                                                                \
  }                                                                                                                             \
  KERNEL(conv_weight_square_##K)(Geometry g, const void *x, const void *grad, i64 parts, f32 *partial) {                        \
    in_turn();                                                                                                                  \
    square_weights<K>(g, x, grad, parts, partial);                                                                              \
  }
SQUARE(3)
SQUARE(5)
