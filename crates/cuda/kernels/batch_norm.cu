// Batch normalisation of any layout. A block measures a part of a channel, a thread a channel
// settles what follows from the parts, and blocks go over the channels' parts again. Parts follow
// from sizes alone and are joined in order, so results never vary.

// How many values, their mean, and the sum of their squared distances from it (Chan, Golub and
// LeVeque).
template <typename C> struct Moments {
  C count, mean, squares;
  __device__ Moments() : count(0), mean(0), squares(0) {}
  __device__ void add(C x) {
    count += 1;
    C off = x - mean;
    mean += off / count;
    squares += off * (x - mean);
  }
  __device__ void join(C other_count, C other_mean, C other_squares) {
    if (other_count == (C)0) return;
    C total = count + other_count, apart = other_mean - mean;
    mean += apart * (other_count / total);
    squares += other_squares + apart * apart * (count * (other_count / total));
    count = total;
  }
};

template <typename C> __device__ void block_join(Moments<C> &m) {
  __shared__ C warps[3][32];
  for (int distance = 16; distance > 0; distance >>= 1) {
    C count = __shfl_down_sync(~0u, m.count, distance), mean = __shfl_down_sync(~0u, m.mean, distance);
    C squares = __shfl_down_sync(~0u, m.squares, distance);
    m.join(count, mean, squares);
  }
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) {
    warps[0][warp] = m.count;
    warps[1][warp] = m.mean;
    warps[2][warp] = m.squares;
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < (blockDim.x >> 5); ++w) m.join(warps[0][w], warps[1][w], warps[2][w]);
  __syncthreads();
}

// Thread 0 has the sum.
template <typename C> __device__ C block_sum(C value) {
  __shared__ C warps[32];
  for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_down_sync(~0u, value, distance);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < (blockDim.x >> 5); ++w) value += warps[w];
  __syncthreads();
  return value;
}

// A tensor with an element a channel, of any float type: 0 f16, 1 bf16, 2 f32, 3 f64. Mirrors
// `parameter` in Rust.
struct Parameter {
  void *data;
  i64 type;
  i64 stride;
};
__device__ f64 read(const Parameter &p, i64 channel) {
  i64 at = channel * p.stride;
  switch (p.type) {
  case 0: return load(((const f16 *)p.data)[at]);
  case 1: return load(((const bf16 *)p.data)[at]);
  case 2: return ((const f32 *)p.data)[at];
  default: return ((const f64 *)p.data)[at];
  }
}
__device__ void write(const Parameter &p, i64 channel, f64 value) {
  i64 at = channel * p.stride;
  switch (p.type) {
  case 0: ((f16 *)p.data)[at] = Store<f16>::from((f32)value); break;
  case 1: ((bf16 *)p.data)[at] = Store<bf16>::from((f32)value); break;
  case 2: ((f32 *)p.data)[at] = (f32)value; break;
  default: ((f64 *)p.data)[at] = value;
  }
}

// Positions of element `index` of a channel, for layouts of up to two dimensions without divisions
// of 64 bits.
template <int N> __device__ __forceinline__ void place(const Strided &s, i64 index, i64 (&at)[N]) {
  if (s.rank == 1) {
#pragma unroll
    for (int k = 0; k < N; ++k) at[k] = index * s.strides[k][0];
  } else if (s.rank == 2 && index <= 0xffffffffLL && s.sizes[0] <= 0xffffffffLL) {
    u32 rest = (u32)index / (u32)s.sizes[0], here = (u32)index - rest * (u32)s.sizes[0];
#pragma unroll
    for (int k = 0; k < N; ++k) at[k] = here * s.strides[k][0] + rest * s.strides[k][1];
  } else {
    locate<N>(s, index, at);
  }
}

// The jobs of a grid: a part of a channel each. `channel` are the operands' strides from one
// channel to the next.
struct Jobs {
  i64 channels, parts, count;
  i64 channel[3];
};
template <typename Body> __device__ __forceinline__ void each_job(const Jobs &jobs, Body body) {
  i64 length = (jobs.count + jobs.parts - 1) / jobs.parts;
  for (i64 job = blockIdx.x; job < jobs.channels * jobs.parts; job += gridDim.x) {
    i64 channel = job / jobs.parts, from = (job - channel * jobs.parts) * length;
    body(job, channel, from, min(from + length, jobs.count));
  }
}

template <typename T> __device__ void measure(const Jobs &jobs, const Strided &inner, const T *x, f64 *partial) {
  typedef typename Compute<T>::number C;
  each_job(jobs, [&](i64 job, i64 channel, i64 from, i64 to) {
    const T *base = x + channel * jobs.channel[0];
    Moments<C> m;
    for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) {
      i64 at[1];
      place<1>(inner, i, at);
      m.add((C)load(base[at[0]]));
    }
    block_join(m);
    if (threadIdx.x == 0) {
      partial[3 * job] = m.count;
      partial[3 * job + 1] = m.mean;
      partial[3 * job + 2] = m.squares;
    }
  });
}

// What is done to each channel, `(x - center) * scale + shift` as three doubles, and what is kept.
// In evaluation `mean` and `var` are read, in training written if they are there.
KERNEL(batch_norm_settle)(i64 channels, i64 parts, i32 training, f64 momentum, f64 eps, Parameter weight,
                                             Parameter bias, Parameter mean, Parameter var, Parameter mean_out,
                                             Parameter rstd_out, const f64 *partial, f64 *affine) {
  in_turn();
  for (i64 channel = first_index(); channel < channels; channel += all_threads()) {
    f64 center, variance;
    if (training) {
      Moments<f64> m;
      for (i64 part = 0; part < parts; ++part) {
        const f64 *p = partial + 3 * (channel * parts + part);
        m.join(p[0], p[1], p[2]);
      }
      center = m.mean;
      variance = m.squares / m.count;
      if (mean.data && m.count > 0) {
        write(mean, channel, (1 - momentum) * read(mean, channel) + momentum * center);
        write(var, channel, (1 - momentum) * read(var, channel) + momentum * (m.squares / (m.count - 1)));
      }
    } else {
      center = read(mean, channel);
      variance = read(var, channel);
    }
    f64 rstd = 1 / sqrt(variance + eps);
    affine[3 * channel] = center;
    affine[3 * channel + 1] = (weight.data ? read(weight, channel) : 1.0) * rstd;
    affine[3 * channel + 2] = bias.data ? read(bias, channel) : 0.0;
    if (mean_out.data) {
      write(mean_out, channel, center);
      write(rstd_out, channel, rstd);
    }
  }
}

template <typename T> __device__ void apply(const Jobs &jobs, const Strided &inner, const T *x, T *out, const f64 *affine) {
  typedef typename Compute<T>::number C;
  each_job(jobs, [&](i64, i64 channel, i64 from, i64 to) {
    const T *base = x + channel * jobs.channel[0];
    T *result = out + channel * jobs.channel[1];
    C center = (C)affine[3 * channel], scale = (C)affine[3 * channel + 1], shift = (C)affine[3 * channel + 2];
    for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) {
      i64 at[2];
      place<2>(inner, i, at);
      result[at[1]] = Store<T>::from(((C)load(base[at[0]]) - center) * scale + shift);
    }
  });
}

// For each channel center, 1 / deviation and weight / deviation, as three doubles of four. `spread`
// is 1 / deviation in training, the variance in evaluation.
KERNEL(batch_norm_backward_prepare)(i64 channels, i32 training, f64 eps, Parameter mean, Parameter spread,
                                                       Parameter weight, f64 *slopes) {
  in_turn();
  for (i64 channel = first_index(); channel < channels; channel += all_threads()) {
    f64 rstd = training ? read(spread, channel) : 1 / sqrt(read(spread, channel) + eps);
    slopes[4 * channel] = read(mean, channel);
    slopes[4 * channel + 1] = rstd;
    slopes[4 * channel + 2] = (weight.data ? read(weight, channel) : 1.0) * rstd;
  }
}

// Sums of the gradient (operand 1) and of its products with the centered input (operand 0).
template <typename T>
__device__ void backward_measure(const Jobs &jobs, const Strided &inner, const T *x, const T *grad, const f64 *slopes,
                                 f64 *partial) {
  typedef typename Compute<T>::number C;
  each_job(jobs, [&](i64 job, i64 channel, i64 from, i64 to) {
    const T *x_base = x + channel * jobs.channel[0], *grad_base = grad + channel * jobs.channel[1];
    C center = (C)slopes[4 * channel], total = 0, product = 0;
    for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) {
      i64 at[2];
      place<2>(inner, i, at);
      C g = (C)load(grad_base[at[1]]);
      total += g;
      product += g * ((C)load(x_base[at[0]]) - center);
    }
    total = block_sum(total);
    product = block_sum(product);
    if (threadIdx.x == 0) {
      partial[2 * job] = total;
      partial[2 * job + 1] = product;
    }
  });
}

// The gradients of weight and bias, and for the input's `(grad - mean - (x - center) * slope) *
// scale`: four doubles a channel.
KERNEL(batch_norm_backward_settle)(i64 channels, i64 parts, i64 count, i32 training, Parameter weight_out,
                                                      Parameter bias_out, const f64 *partial, f64 *slopes) {
  in_turn();
  for (i64 channel = first_index(); channel < channels; channel += all_threads()) {
    f64 total = 0, product = 0;
    for (i64 part = 0; part < parts; ++part) {
      total += partial[2 * (channel * parts + part)];
      product += partial[2 * (channel * parts + part) + 1];
    }
    f64 *slope = slopes + 4 * channel, rstd = slope[1], scale = slope[2];
    if (weight_out.data) write(weight_out, channel, product * rstd);
    if (bias_out.data) write(bias_out, channel, total);
    slope[1] = training ? total / count : 0.0;
    slope[3] = scale;
    slope[2] = training ? product * rstd * rstd / count : 0.0;
  }
}

// Operands: x, grad, the gradient of x. In evaluation x is not read.
template <typename T>
__device__ void backward_apply(const Jobs &jobs, const Strided &inner, i32 training, const T *x, const T *grad, T *out,
                               const f64 *slopes) {
  typedef typename Compute<T>::number C;
  each_job(jobs, [&](i64, i64 channel, i64 from, i64 to) {
    const T *x_base = x + channel * jobs.channel[0], *grad_base = grad + channel * jobs.channel[1];
    T *result = out + channel * jobs.channel[2];
    const f64 *s = slopes + 4 * channel;
    C center = (C)s[0], mean = (C)s[1], slope = (C)s[2], scale = (C)s[3];
    for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) {
      i64 at[3];
      place<3>(inner, i, at);
      C g = (C)load(grad_base[at[1]]);
      if (training) g = g - mean - ((C)load(x_base[at[0]]) - center) * slope;
      result[at[2]] = Store<T>::from(g * scale);
    }
  });
}

#define BATCH_NORM(type)                                                                                             \
  KERNEL(batch_norm_measure_##type)(Jobs jobs, Strided inner, const type *x, f64 *partial) {                         \
    in_turn();                                                                                                       \
    measure<type>(jobs, inner, x, partial);                                                                          \
  }                                                                                                                  \
  KERNEL(batch_norm_apply_##type)(Jobs jobs, Strided inner, const type *x, type *out,                                \
                                                     const f64 *affine) {                                            \
    in_turn();                                                                                                       \
    apply<type>(jobs, inner, x, out, affine);                                                                        \
  }                                                                                                                  \
  KERNEL(batch_norm_backward_measure_##type)(Jobs jobs, Strided inner, const type *x,                                \
                                                                const type *grad, const f64 *slopes, f64 *partial) { \
    in_turn();                                                                                                       \
    backward_measure<type>(jobs, inner, x, grad, slopes, partial);                                                   \
  }                                                                                                                  \
  KERNEL(batch_norm_backward_apply_##type)(Jobs jobs, Strided inner, i32 training, const type *x,                    \
                                                              const type *grad, type *out, const f64 *slopes) {      \
    in_turn();                                                                                                       \
    backward_apply<type>(jobs, inner, training, x, grad, out, slopes);                                               \
  }
BATCH_NORM(f32)
BATCH_NORM(f64)
BATCH_NORM(f16)
BATCH_NORM(bf16)
