// Distances of every row of one matrix to every row of another, by a norm of any order; in batches
// of contiguous matrices. Sums are in f64.

// Mirrors `Sizes` in Rust: [batch, p, m] and [batch, r, m].
struct Sizes { i64 batch, p, r, m; };

const int SIDE = 16;

__device__ __forceinline__ f64 added(f64 sum, f64 apart, f64 order) {
  if (order == 0) return sum + (apart != 0 ? 1 : 0);
  if (order == 1) return sum + apart;
  if (order == 2) return sum + apart * apart;
  // A NaN stays.
  if (isinf(order)) return apart > sum || apart != apart ? apart : sum;
  return sum + pow(apart, order);
}

// A block makes SIDE x SIDE distances.
template <typename T> __device__ void forward(const Sizes &s, f64 order, const T *x, const T *y, T *out) {
  __shared__ T left[SIDE][SIDE + 1], right[SIDE][SIDE + 1];
  int across = threadIdx.x % SIDE, down = threadIdx.x / SIDE;
  i64 columns = (s.r + SIDE - 1) / SIDE, rows = (s.p + SIDE - 1) / SIDE;
  for (i64 unit = blockIdx.x; unit < s.batch * rows * columns; unit += gridDim.x) {
    i64 first_column = unit % columns * SIDE, first_row = unit / columns % rows * SIDE, batch = unit / columns / rows;
    f64 sum = 0;
    for (i64 at = 0; at < s.m; at += SIDE) {
      __syncthreads();
      i64 row = first_row + down, column = first_column + down, k = at + across;
      left[down][across] = row < s.p && k < s.m ? x[(batch * s.p + row) * s.m + k] : (T)0;
      right[down][across] = column < s.r && k < s.m ? y[(batch * s.r + column) * s.m + k] : (T)0;
      __syncthreads();
      for (int k = 0; k < SIDE && at + k < s.m; ++k) sum = added(sum, fabs((f64)left[down][k] - (f64)right[across][k]), order);
    }
    if (order == 2) sum = sqrt(sum);
    else if (order != 0 && order != 1 && !isinf(order)) sum = pow(sum, 1 / order);
    i64 row = first_row + down, column = first_column + across;
    if (row < s.p && column < s.r) out[(batch * s.p + row) * s.r + column] = (T)sum;
  }
}

// The derivative of a distance by one difference; 0 where there is no direction.
__device__ __forceinline__ f64 slope(f64 apart, f64 distance, f64 order) {
  if (order == 0 || distance == 0 || apart == 0) return 0;
  f64 sign = apart > 0 ? 1.0 : apart < 0 ? -1.0 : apart;
  if (order == 1) return sign;
  if (order == 2) return apart / distance;
  if (isinf(order)) return fabs(apart) == distance ? sign : 0.0;
  return sign * pow(fabs(apart) / distance, order - 1);
}

// A thread an element of x.
template <typename T>
__device__ void backward(const Sizes &s, f64 order, const T *grad, const T *x, const T *y, const T *distances, T *out) {
  for (i64 i = first_index(); i < s.batch * s.p * s.m; i += all_threads()) {
    i64 row = i / s.m, column = i % s.m;
    const T *others = y + row / s.p * s.r * s.m + column;
    f64 own = (f64)x[i], sum = 0;
    for (i64 j = 0; j < s.r; ++j) {
      // Rounded as the distance was, so that the largest difference equals it.
      T apart = (T)(own - (f64)others[j * s.m]);
      sum += (f64)grad[row * s.r + j] * slope((f64)apart, (f64)distances[row * s.r + j], order);
    }
    out[i] = (T)sum;
  }
}

#define DISTANCE(type)                                                                              \
  KERNEL(cdist_##type)(Sizes s, f64 order, const type *x, const type *y, type *out) {               \
    in_turn();                                                                                      \
    forward<type>(s, order, x, y, out);                                                             \
  }                                                                                                 \
  KERNEL(cdist_backward_##type)(Sizes s, f64 order, const type *grad, const type *x, const type *y, \
                                                   const type *distances, type *out) {              \
    in_turn();                                                                                      \
    backward<type>(s, order, grad, x, y, distances, out);                                           \
  }
DISTANCE(f32)
DISTANCE(f64)
