// Layer normalisation over rows of `length` contiguous elements. Mean and 1/deviation are kept for
// backward. A team of threads takes a row: a warp, or a block where rows are long.

template <typename C> __device__ C inverse_root(C x) { return (C)1 / (C)sqrt((f64)x); }
template <> __device__ f32 inverse_root<f32>(f32 x) { return rsqrtf(x); }

// The thread's place in its team, and its team's place among all.
template <bool by_warp> struct Team {
  __device__ static int place() { return by_warp ? threadIdx.x & 31 : threadIdx.x; }
  __device__ static int threads() { return by_warp ? 32 : blockDim.x; }
  __device__ static i64 first() { return by_warp ? (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5) : blockIdx.x; }
  __device__ static i64 teams() { return by_warp ? (i64)gridDim.x * (blockDim.x >> 5) : gridDim.x; }
  template <typename C> __device__ static C sum(C value) { return by_warp ? warp_sum(value) : block_sum(value); }
  // Two sums, for one wait.
  template <typename C> __device__ static void sum(C &a, C &b) {
    a = warp_sum(a);
    b = warp_sum(b);
    if (by_warp) return;
    __shared__ C warps[2][32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) {
      warps[0][warp] = a;
      warps[1][warp] = b;
    }
    __syncthreads();
    bool is_there = lane < (blockDim.x >> 5);
    a = warp_sum(is_there ? warps[0][lane] : (C)0);
    b = warp_sum(is_there ? warps[1][lane] : (C)0);
    __syncthreads();
  }
};

// A thread's share of a row, 16 bytes at a time. The first packs stay in registers, so that a row
// of up to 4 packs a thread is read once; what is longer is read again from the caches.
template <typename T, bool by_warp> struct Share {
  static const int kept = 4, wide = 16 / sizeof(T);
  Pack<T> own[kept];
  const Pack<T> *row;
  i64 packs;

  __device__ Share(const T *in, i64 length) : row((const Pack<T> *)in), packs(length / wide) {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      i64 i = at(j);
      if (i < packs) own[j] = row[i];
    }
  }

  __device__ static i64 at(int j) { return Team<by_warp>::place() + (i64)j * Team<by_warp>::threads(); }

  // Calls `use(i, pack i)` for the thread's packs.
  template <typename Use> __device__ __forceinline__ void each(Use use) const {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      i64 i = at(j);
      if (i < packs) use(i, own[j]);
    }
    for (i64 i = at(kept); i < packs; i += Team<by_warp>::threads()) use(i, row[i]);
  }
};

// One row after the other by packs: the rows' starts and lengths are multiples of 16 bytes, and so
// are those of weight and bias.
template <typename T, bool by_warp>
__device__ void forward_packed(i64 rows, i64 length, f64 eps, const T *x, const T *weight, const T *bias, T *out,
                               typename Compute<T>::number *mean, typename Compute<T>::number *rstd) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  for (i64 row = Team<by_warp>::first(); row < rows; row += Team<by_warp>::teams()) {
    Share<T, by_warp> share(x + row * length, length);
    C total = 0;
    share.each([&](i64, const Pack<T> &p) {
#pragma unroll
      for (int k = 0; k < wide; ++k) total += (C)load(p.v[k]);
    });
    C mu = Team<by_warp>::sum(total) / (C)length;
    C square = 0;
    // A second pass keeps the precision that sum(x*x) - mean^2 loses.
    share.each([&](i64, const Pack<T> &p) {
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C d = (C)load(p.v[k]) - mu;
        square += d * d;
      }
    });
    C scale = inverse_root<C>(Team<by_warp>::sum(square) / (C)length + (C)eps);
    Pack<T> *result = (Pack<T> *)(out + row * length);
    share.each([&](i64 i, const Pack<T> &p) {
      Pack<T> y, scales, shifts;
      if (weight) scales = ((const Pack<T> *)weight)[i];
      if (bias) shifts = ((const Pack<T> *)bias)[i];
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C value = ((C)load(p.v[k]) - mu) * scale;
        if (weight) value *= (C)load(scales.v[k]);
        if (bias) value += (C)load(shifts.v[k]);
        y.v[k] = Store<T>::from(value);
      }
      result[i] = y;
    });
    if (Team<by_warp>::place() == 0 && mean) {
      mean[row] = mu;
      rstd[row] = scale;
    }
  }
}

template <typename T>
__device__ void forward(i64 rows, i64 length, f64 eps, const T *x, const T *weight, const T *bias, T *out,
                        typename Compute<T>::number *mean, typename Compute<T>::number *rstd) {
  typedef typename Compute<T>::number C;
  bool packs = aligned(x) && aligned(out) && aligned(weight) && aligned(bias);
  if (length % (i64)(16 / sizeof(T)) == 0 && packs) {
    forward_packed<T, false>(rows, length, eps, x, weight, bias, out, mean, rstd);
    return;
  }
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *in = x + row * length;
    T *result = out + row * length;
    C total = 0;
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) total += (C)load(in[i]);
    C mu = block_sum(total) / (C)length;
    C square = 0;
    // The row is in cache now; a second pass keeps the precision that sum(x*x) - mean^2 loses.
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
      C d = (C)load(in[i]) - mu;
      square += d * d;
    }
    C scale = inverse_root<C>(block_sum(square) / (C)length + (C)eps);
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
      C y = ((C)load(in[i]) - mu) * scale;
      if (weight) y *= (C)load(weight[i]);
      if (bias) y += (C)load(bias[i]);
      result[i] = Store<T>::from(y);
    }
    if (threadIdx.x == 0 && mean) {
      mean[row] = mu;
      rstd[row] = scale;
    }
  }
}

// With `added` the gradient of x is added to what `out` holds.
template <typename T>
__device__ void backward_input(i64 rows, i64 length, const T *grad, const T *x, const typename Compute<T>::number *mean,
                               const typename Compute<T>::number *rstd, const T *weight, T *out, i64 added) {
  typedef typename Compute<T>::number C;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    i64 at = row * length;
    C mu = mean[row], scale = rstd[row];
    C sum = 0, dot = 0;
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
      C g = (C)load(grad[at + i]);
      if (weight) g *= (C)load(weight[i]);
      sum += g;
      dot += g * ((C)load(x[at + i]) - mu) * scale;
    }
    sum = block_sum(sum) / (C)length;
    dot = block_sum(dot) / (C)length;
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
      C g = (C)load(grad[at + i]);
      if (weight) g *= (C)load(weight[i]);
      C hat = ((C)load(x[at + i]) - mu) * scale;
      C value = scale * (g - sum - hat * dot);
      if (added) value += (C)load(out[at + i]);
      out[at + i] = Store<T>::from(value);
    }
  }
}

// All gradients from one reading of `grad` and `x`, for rows of up to 4 packs a thread. The sums
// over rows for weight and bias go to `parts`, of shape [blocks, 2, length], if they are wanted;
// the gradient of x to `out`, if that is: added to what it holds with `added`. All that a row needs
// is asked for at once, so that it waits for memory once.
template <typename T, bool by_warp>
__device__ void backward_packed(i64 rows, i64 length, const T *grad, const T *x, const typename Compute<T>::number *mean,
                                const typename Compute<T>::number *rstd, const T *weight, T *out, i64 added,
                                typename Compute<T>::number *parts) {
  typedef typename Compute<T>::number C;
  typedef Share<T, by_warp> Row;
  const int kept = Row::kept, wide = Row::wide;
  i64 packs = length / wide;
  C dw[kept * wide], db[kept * wide];
#pragma unroll
  for (int j = 0; j < kept * wide; ++j) dw[j] = db[j] = 0;
  for (i64 row = Team<by_warp>::first(); row < rows; row += Team<by_warp>::teams()) {
    Row grads(grad + row * length, length), values(x + row * length, length);
    Pack<T> *result = (Pack<T> *)(out + row * length), before[kept];
    if (added) {
#pragma unroll
      for (int j = 0; j < kept; ++j)
        if (Row::at(j) < packs) before[j] = result[Row::at(j)];
    }
    C mu = mean[row], scale = rstd[row], sum = 0, dot = 0;
    // The gradient times the weight, and the normalised value.
    auto scaled = [&](int j, int k) {
      C g = (C)load(grads.own[j].v[k]);
      return weight ? g * (C)load(((const Pack<T> *)weight)[Row::at(j)].v[k]) : g;
    };
    auto normal = [&](int j, int k) { return ((C)load(values.own[j].v[k]) - mu) * scale; };
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      if (Row::at(j) >= packs) continue;
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C g = (C)load(grads.own[j].v[k]), hat = normal(j, k), to_x = scaled(j, k);
        dw[j * wide + k] += g * hat;
        db[j * wide + k] += g;
        sum += to_x;
        dot += to_x * hat;
      }
    }
    if (!out) continue;
    Team<by_warp>::sum(sum, dot);
    sum /= (C)length;
    dot /= (C)length;
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      if (Row::at(j) >= packs) continue;
      Pack<T> y;
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C value = scale * (scaled(j, k) - sum - normal(j, k) * dot);
        if (added) value += (C)load(before[j].v[k]);
        y.v[k] = Store<T>::from(value);
      }
      result[Row::at(j)] = y;
    }
  }
  if (!parts) return;
  C *own = parts + (i64)blockIdx.x * 2 * length;
  if (!by_warp) {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      if (Row::at(j) >= packs) continue;
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        own[Row::at(j) * wide + k] = dw[j * wide + k];
        own[length + Row::at(j) * wide + k] = db[j * wide + k];
      }
    }
    return;
  }
  // One warp after the other adds its sums to the block's, so that their order never varies.
  __shared__ C sums[2][kept * wide][32];
  int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  for (int turn = 0; turn < warps; ++turn) {
    if (turn == threadIdx.x >> 5) {
#pragma unroll
      for (int j = 0; j < kept * wide; ++j) {
        sums[0][j][lane] = (turn ? sums[0][j][lane] : (C)0) + dw[j];
        sums[1][j][lane] = (turn ? sums[1][j][lane] : (C)0) + db[j];
      }
    }
    __syncthreads();
  }
  for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
    int pack = (int)i / wide, place = pack / 32 * wide + (int)i % wide;
    own[i] = sums[0][place][pack & 31];
    own[length + i] = sums[1][place][pack & 31];
  }
}

// The sums over rows for weight and bias alone, whatever the rows' length: a thread a column of
// each of `gridDim.y` parts.
template <typename T>
__device__ void backward_parameters(i64 rows, i64 length, const T *grad, const T *x, const typename Compute<T>::number *mean,
                                    const typename Compute<T>::number *rstd, typename Compute<T>::number *parts) {
  typedef typename Compute<T>::number C;
  i64 i = first_index();
  if (i >= length) return;
  C dw = 0, db = 0;
  for (i64 row = blockIdx.y; row < rows; row += gridDim.y) {
    C g = (C)load(grad[row * length + i]);
    dw += g * ((C)load(x[row * length + i]) - mean[row]) * rstd[row];
    db += g;
  }
  C *own = parts + (i64)blockIdx.y * 2 * length;
  own[i] = dw;
  own[length + i] = db;
}

// Adds up the parts' sums in a fixed order: a block for 32 columns, its 32 warps share the parts.
template <typename T>
__device__ void add_parts(i64 count, i64 length, const typename Compute<T>::number *parts, T *weight, T *bias) {
  typedef typename Compute<T>::number C;
  const int warps = 32;
  __shared__ C sums[2][warps][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 i = (i64)blockIdx.x * 32 + lane;
  C dw = 0, db = 0;
#pragma unroll 4
  for (i64 part = warp; part < count && i < length; part += warps) {
    dw += parts[part * 2 * length + i];
    db += parts[part * 2 * length + length + i];
  }
  sums[0][warp][lane] = dw;
  sums[1][warp][lane] = db;
  __syncthreads();
  if (warp > 1 || i >= length) return;
  C sum = 0;
  for (int j = 0; j < warps; ++j) sum += sums[warp][j][lane];
  T *out = warp == 0 ? weight : bias;
  if (out) out[i] = Store<T>::from(sum);
}

#define LAYER_NORM(type)                                                                                                  \
  KERNEL(layer_norm_##type)(i64 rows, i64 length, f64 eps, const type *x, const type *weight, const type *bias, type *out, \
                            Compute<type>::number *mean, Compute<type>::number *rstd) {                                   \
    forward<type>(rows, length, eps, x, weight, bias, out, mean, rstd);                                                   \
  }                                                                                                                       \
  KERNEL(layer_norm_by_warp_##type)(i64 rows, i64 length, f64 eps, const type *x, const type *weight, const type *bias,   \
                                    type *out, Compute<type>::number *mean, Compute<type>::number *rstd) {                \
    forward_packed<type, true>(rows, length, eps, x, weight, bias, out, mean, rstd);                                      \
  }                                                                                                                       \
  KERNEL(layer_norm_backward_##type)(i64 rows, i64 length, const type *grad, const type *x,                               \
                                     const Compute<type>::number *mean, const Compute<type>::number *rstd,                \
                                     const type *weight, type *out, i64 added) {                                          \
    backward_input<type>(rows, length, grad, x, mean, rstd, weight, out, added);                                          \
  }                                                                                                                       \
  KERNEL_BY(128, 3, layer_norm_backward_by_warp_##type)(i64 rows, i64 length, const type *grad, const type *x,            \
                                                        const Compute<type>::number *mean,                                \
                                                        const Compute<type>::number *rstd, const type *weight, type *out, \
                                                        i64 added, Compute<type>::number *parts) {                        \
    backward_packed<type, true>(rows, length, grad, x, mean, rstd, weight, out, added, parts);                            \
  }                                                                                                                       \
  KERNEL_OF(512, layer_norm_backward_by_block_##type)(i64 rows, i64 length, const type *grad, const type *x,              \
                                                      const Compute<type>::number *mean,                                  \
                                                      const Compute<type>::number *rstd, const type *weight, type *out,   \
                                                      i64 added, Compute<type>::number *parts) {                          \
    backward_packed<type, false>(rows, length, grad, x, mean, rstd, weight, out, added, parts);                           \
  }                                                                                                                       \
  KERNEL(layer_norm_parameters_##type)(i64 rows, i64 length, const type *grad, const type *x,                             \
                                       const Compute<type>::number *mean, const Compute<type>::number *rstd,              \
                                       Compute<type>::number *parts) {                                                    \
    backward_parameters<type>(rows, length, grad, x, mean, rstd, parts);                                                  \
  }                                                                                                                       \
  KERNEL_OF(1024, layer_norm_parts_##type)(i64 count, i64 length, const Compute<type>::number *parts, type *weight,       \
                                           type *bias) {                                                                  \
    add_parts<type>(count, length, parts, weight, bias);                                                                  \
  }
LAYER_NORM(f32)
LAYER_NORM(f64)
LAYER_NORM(f16)
LAYER_NORM(bf16)
