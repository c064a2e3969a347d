// Group normalisation of [samples, channels, places], row-major or channels last: a block a group
// of a sample. Mean and 1/deviation are kept for backward, which leaves two sums a channel of each
// sample on its way.

// Mirrors `Sizes` in Rust.
struct Sizes {
  i64 samples, channels, places, groups;
  __device__ i64 units() const { return samples * groups; }
  __device__ i64 group_channels() const { return channels / groups; }
  __device__ i64 length() const { return group_channels() * places; }
  __device__ i64 first_channel(i64 unit) const { return unit % groups * group_channels(); }
};

// Sizes with the order of the elements. `LAST`: the channels of a place lie side by side.
template <bool LAST> struct Ordered : Sizes {
  __device__ Ordered(const Sizes &sizes) : Sizes(sizes) {}
  // Where a group starts, and the steps between its channels and its places.
  __device__ i64 start(i64 unit) const { return LAST ? unit / groups * channels * places + first_channel(unit) : unit * length(); }
  __device__ i64 channel_step() const { return LAST ? 1 : places; }
  __device__ i64 place_step() const { return LAST ? channels : 1; }
  // The i-th element of a group as it lies in memory: its channel in the group, and where it is
  // from the group's start.
  __device__ i64 channel_of(i64 i) const { return LAST ? i % group_channels() : i / places; }
  __device__ i64 at(i64 i) const { return LAST ? i / group_channels() * channels + i % group_channels() : i; }
};

// Calls `use(i, pack of elements from i on)` for a thread's share of `length` elements: as many at
// once as 16 bytes hold, or one.
template <typename T, bool packed, typename Use> __device__ __forceinline__ void each(i64 length, Use use) {
  const i64 wide = packed ? 16 / sizeof(T) : 1;
  for (i64 i = (i64)threadIdx.x * wide; i < length; i += (i64)blockDim.x * wide) use(i);
}

template <typename T, bool packed, bool LAST>
__device__ void forward(const Ordered<LAST> &sizes, f64 eps, const T *x, const T *weight, const T *bias, T *out,
                        typename Compute<T>::number *mean, typename Compute<T>::number *rstd) {
  typedef typename Compute<T>::number C;
  const int wide = packed ? 16 / sizeof(T) : 1;
  struct alignas(packed ? 16 : sizeof(T)) Some { T v[wide]; };
  i64 length = sizes.length();
  for (i64 unit = blockIdx.x; unit < sizes.units(); unit += gridDim.x) {
    const T *in = x + sizes.start(unit);
    C total = 0;
    each<T, packed>(length, [&](i64 i) {
      Some own = *(const Some *)(in + sizes.at(i));
#pragma unroll
      for (int k = 0; k < wide; ++k) total += (C)load(own.v[k]);
    });
    C mu = (C)(block_sum((f64)total) / (f64)length), square = 0;
    each<T, packed>(length, [&](i64 i) {
      Some own = *(const Some *)(in + sizes.at(i));
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C d = (C)load(own.v[k]) - mu;
        square += d * d;
      }
    });
    f64 scale = 1 / sqrt(block_sum((f64)square) / (f64)length + eps);
    i64 first = sizes.first_channel(unit);
    each<T, packed>(length, [&](i64 i) {
      Some own = *(const Some *)(in + sizes.at(i)), result;
      i64 channel = first + sizes.channel_of(i);
      C by = weight ? (C)(scale * (f64)load(weight[channel])) : (C)scale;
      C shift = bias ? (C)load(bias[channel]) : (C)0;
#pragma unroll
      for (int k = 0; k < wide; ++k) result.v[k] = Store<T>::from(((C)load(own.v[k]) - mu) * by + shift);
      *(Some *)(out + sizes.start(unit) + sizes.at(i)) = result;
    });
    if (threadIdx.x == 0 && mean) {
      mean[unit] = mu;
      rstd[unit] = (C)scale;
    }
  }
}

// The sums over a channel's places of grad * (x - mean) and of grad, by `count` threads of which
// this one is the `at`-th.
template <typename C>
__device__ void channel_sums(const void *grad, const void *x, i64 width, i64 start, i64 places, i64 step, C mu, i64 at, i64 count,
                             C &product, C &sum) {
  product = 0;
  sum = 0;
  for (i64 i = start + at * step, end = start + places * step; i < end; i += count * step) {
    C g = fetched<C>(grad, i, width);
    product += g * (fetched<C>(x, i, width) - mu);
    sum += g;
  }
}

// Leaves [sum of grad * (x - mean), sum of grad] of each channel of each sample, and the gradient
// of x unless `out` is 0.
template <typename C, bool LAST>
__device__ void backward(const Ordered<LAST> &sizes, i64 width, const void *grad, const void *x, const C *mean, const C *rstd, const void *weight,
                         f64 *sums, void *out) {
  i64 length = sizes.length(), channels = sizes.group_channels(), places = sizes.places;
  i64 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  for (i64 unit = blockIdx.x; unit < sizes.units(); unit += gridDim.x) {
    i64 start = sizes.start(unit), by_channel = sizes.channel_step(), by_place = sizes.place_step();
    i64 first = sizes.first_channel(unit), place = unit * channels;
    C mu = mean[unit], scale = rstd[unit], product, sum;
    f64 products = 0, grads = 0;
    if (channels >= warps) {
      for (i64 channel = warp; channel < channels; channel += warps) {
        channel_sums<C>(grad, x, width, start + channel * by_channel, places, by_place, mu, lane, 32, product, sum);
        f64 wide_product = warp_sum((f64)product), wide_sum = warp_sum((f64)sum);
        f64 by = weight ? (f64)fetched<C>(weight, first + channel, width) : 1.0;
        if (lane == 0) {
          sums[2 * (place + channel)] = wide_product;
          sums[2 * (place + channel) + 1] = wide_sum;
          products += wide_product * by;
          grads += wide_sum * by;
        }
      }
    } else {
      for (i64 channel = 0; channel < channels; ++channel) {
        channel_sums<C>(grad, x, width, start + channel * by_channel, places, by_place, mu, threadIdx.x, blockDim.x, product, sum);
        f64 wide_product = block_sum((f64)product), wide_sum = block_sum((f64)sum);
        f64 by = weight ? (f64)fetched<C>(weight, first + channel, width) : 1.0;
        if (threadIdx.x == 0) {
          sums[2 * (place + channel)] = wide_product;
          sums[2 * (place + channel) + 1] = wide_sum;
          products += wide_product * by;
          grads += wide_sum * by;
        }
      }
    }
    if (!out) continue;
    products = block_sum(products);
    grads = block_sum(grads);
    f64 wide = (f64)scale;
    C along = (C)(-products * wide * wide * wide / (f64)length), constant = (C)(-grads * wide / (f64)length);
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
      i64 at = start + sizes.at(i);
      C by = weight ? scale * fetched<C>(weight, first + sizes.channel_of(i), width) : scale;
      C value = fetched<C>(grad, at, width) * by + (fetched<C>(x, at, width) - mu) * along + constant;
      put<C>(out, at, width, value);
    }
  }
}

// A warp a channel adds up what the samples left.
template <typename C> __device__ void parameters(const Sizes &sizes, i64 width, const f64 *sums, const C *rstd, void *weight, void *bias) {
  i64 lane = threadIdx.x & 31, channel = first_index() >> 5;
  if (channel >= sizes.channels) return;
  f64 scale = 0, shift = 0;
  i64 group = channel / sizes.group_channels();
  for (i64 sample = lane; sample < sizes.samples; sample += 32) {
    const f64 *own = sums + 2 * (sample * sizes.channels + channel);
    scale += own[0] * (f64)rstd[sample * sizes.groups + group];
    shift += own[1];
  }
  scale = warp_sum(scale);
  shift = warp_sum(shift);
  if (lane != 0) return;
  if (weight) put<C>(weight, channel, width, (C)scale);
  if (bias) put<C>(bias, channel, width, (C)shift);
}

#define GROUP_NORM(type)                                                                                              \
  KERNEL(group_norm_##type)(Sizes sizes, f64 eps, const type *x, const type *weight, const type *bias,                \
                                               type *out, Compute<type>::number *mean, Compute<type>::number *rstd) { \
    in_turn();                                                                                                        \
    if (sizes.places % (i64)(16 / sizeof(type)) == 0 && aligned(x) && aligned(out))                                   \
      forward<type, true, false>(sizes, eps, x, weight, bias, out, mean, rstd);                                       \
    else                                                                                                              \
      forward<type, false, false>(sizes, eps, x, weight, bias, out, mean, rstd);                                      \
  }                                                                                                                   \
  KERNEL(group_norm_last_##type)(Sizes sizes, f64 eps, const type *x, const type *weight, const type *bias,           \
                                               type *out, Compute<type>::number *mean, Compute<type>::number *rstd) { \
    in_turn();                                                                                                        \
    forward<type, false, true>(sizes, eps, x, weight, bias, out, mean, rstd);                                         \
  }
GROUP_NORM(f32)
GROUP_NORM(f64)
GROUP_NORM(f16)
GROUP_NORM(bf16)

#define BACKWARD(C)                                                                                             \
  KERNEL(group_norm_backward_##C)(Sizes sizes, i64 width, const void *grad, const void *x, const C *mean,       \
                                                     const C *rstd, const void *weight, f64 *sums, void *out) { \
    in_turn();                                                                                                  \
    backward<C, false>(sizes, width, grad, x, mean, rstd, weight, sums, out);                                   \
  }                                                                                                             \
  KERNEL(group_norm_backward_last_##C)(Sizes sizes, i64 width, const void *grad, const void *x, const C *mean,  \
                                                     const C *rstd, const void *weight, f64 *sums, void *out) { \
    in_turn();                                                                                                  \
    backward<C, true>(sizes, width, grad, x, mean, rstd, weight, sums, out);                                    \
  }                                                                                                             \
  KERNEL(group_norm_parameters_##C)(Sizes sizes, i64 width, const f64 *sums, const C *rstd, void *weight,       \
                                                       void *bias) {                                            \
    in_turn();                                                                                                  \
    parameters<C>(sizes, width, sums, rstd, weight, bias);                                                      \
  }
BACKWARD(f32)
BACKWARD(f64)
