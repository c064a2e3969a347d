// Layer normalisation over rows of `length` contiguous elements: a block a row. Mean and
// 1/deviation are kept for backward.

template <typename C> __device__ C block_sum(C value) {
  __shared__ C warps[32];
  for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_down_sync(~0u, value, distance);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  value = lane < (blockDim.x >> 5) ? warps[lane] : (C)0;
  for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_xor_sync(~0u, value, distance);
  __syncthreads();
  return value;
}

template <typename C> __device__ C inverse_root(C x) { return (C)1 / (C)sqrt((f64)x); }
template <> __device__ f32 inverse_root<f32>(f32 x) { return rsqrtf(x); }

// A thread's share of a row, 16 bytes at a time. The first packs stay in registers, so that a row
// of up to 4 packs a thread is read once; what is longer is read again from the caches.
template <typename T> struct Share {
  static const int kept = 4, wide = 16 / sizeof(T);
  Pack<T> own[kept];
  const Pack<T> *row;
  i64 packs;

  __device__ Share(const T *in, i64 length) : row((const Pack<T> *)in), packs(length / wide) {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      i64 i = threadIdx.x + (i64)j * blockDim.x;
      if (i < packs) own[j] = row[i];
    }
  }

  // Calls `use(i, pack i)` for the thread's packs.
  template <typename Use> __device__ __forceinline__ void each(Use use) const {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      i64 i = threadIdx.x + (i64)j * blockDim.x;
      if (i < packs) use(i, own[j]);
    }
    for (i64 i = threadIdx.x + (i64)kept * blockDim.x; i < packs; i += blockDim.x) use(i, row[i]);
  }
};

// One row after the other by packs: the rows' starts and lengths are multiples of 16 bytes.
template <typename T>
__device__ void forward_packed(i64 rows, i64 length, f64 eps, const T *x, const T *weight, const T *bias, T *out,
                               typename Compute<T>::number *mean, typename Compute<T>::number *rstd) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    Share<T> share(x + row * length, length);
    C total = 0;
    share.each([&](i64, const Pack<T> &p) {
#pragma unroll
      for (int k = 0; k < wide; ++k) total += (C)load(p.v[k]);
    });
    C mu = block_sum(total) / (C)length;
    C square = 0;
    // A second pass keeps the precision that sum(x*x) - mean^2 loses.
    share.each([&](i64, const Pack<T> &p) {
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C d = (C)load(p.v[k]) - mu;
        square += d * d;
      }
    });
    C scale = inverse_root<C>(block_sum(square) / (C)length + (C)eps);
    Pack<T> *result = (Pack<T> *)(out + row * length);
    share.each([&](i64 i, const Pack<T> &p) {
      Pack<T> y;
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C value = ((C)load(p.v[k]) - mu) * scale;
        if (weight) value *= (C)load(weight[i * wide + k]);
        if (bias) value += (C)load(bias[i * wide + k]);
        y.v[k] = Store<T>::from(value);
      }
      result[i] = y;
    });
    if (threadIdx.x == 0 && mean) {
      mean[row] = mu;
      rstd[row] = scale;
    }
  }
}

template <typename T>
__device__ void forward(i64 rows, i64 length, f64 eps, const T *x, const T *weight, const T *bias, T *out,
                        typename Compute<T>::number *mean, typename Compute<T>::number *rstd) {
  typedef typename Compute<T>::number C;
  if (length % (i64)(16 / sizeof(T)) == 0 && aligned(x) && aligned(out)) {
    forward_packed<T>(rows, length, eps, x, weight, bias, out, mean, rstd);
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

template <typename T>
__device__ void backward_input(i64 rows, i64 length, const T *grad, const T *x, const typename Compute<T>::number *mean,
                               const typename Compute<T>::number *rstd, const T *weight, T *out) {
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
      out[at + i] = Store<T>::from(scale * (g - sum - hat * dot));
    }
  }
}

// A thread a column: sums over rows in a fixed order, so the result never varies.
template <typename T>
__device__ void backward_parameters(i64 rows, i64 length, const T *grad, const T *x, const typename Compute<T>::number *mean,
                                    const typename Compute<T>::number *rstd, T *weight, T *bias) {
  typedef typename Compute<T>::number C;
  i64 i = first_index();
  if (i >= length) return;
  C dw = 0, db = 0;
  for (i64 row = 0; row < rows; ++row) {
    C g = (C)load(grad[row * length + i]);
    dw += g * ((C)load(x[row * length + i]) - mean[row]) * rstd[row];
    db += g;
  }
  if (weight) weight[i] = Store<T>::from(dw);
  if (bias) bias[i] = Store<T>::from(db);
}

#define LAYER_NORM(type)                                                                                                 \
  KERNEL(layer_norm_##type)(i64 rows, i64 length, f64 eps, const type *x, const type *weight,                            \
                                               const type *bias, type *out, Compute<type>::number *mean,                 \
                                               Compute<type>::number *rstd) {                                            \
    forward<type>(rows, length, eps, x, weight, bias, out, mean, rstd);                                                  \
  }                                                                                                                      \
  KERNEL(layer_norm_backward_##type)(i64 rows, i64 length, const type *grad, const type *x,                              \
                                                        const Compute<type>::number *mean,                               \
                                                        const Compute<type>::number *rstd, const type *weight,           \
                                                        type *out) {                                                     \
    backward_input<type>(rows, length, grad, x, mean, rstd, weight, out);                                                \
  }                                                                                                                      \
  KERNEL(layer_norm_parameters_##type)(i64 rows, i64 length, const type *grad, const type *x,                            \
                                                          const Compute<type>::number *mean,                             \
                                                          const Compute<type>::number *rstd, type *weight, type *bias) { \
    backward_parameters<type>(rows, length, grad, x, mean, rstd, weight, bias);                                          \
  }
LAYER_NORM(f32)
LAYER_NORM(f64)
LAYER_NORM(f16)
LAYER_NORM(bf16)
