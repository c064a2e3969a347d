// Layer normalisation over rows of `length` contiguous elements. Mean and 1/deviation are kept for
// backward. A team of threads takes a row: a warp, or a block where rows are long. Weight and bias
// have the rows' type `T`, or another, `W`, which is as wide or wider.

template <typename C> __device__ C inverse_root(C x) { return (C)1 / (C)sqrt((f64)x); }
template <> __device__ f32 inverse_root<f32>(f32 x) { return rsqrtf(x); }

// A thread's share of a row, 16 bytes at a time. The first packs stay in registers, so that a row
// of up to 4 packs a thread is read once; what is longer is read again from the caches.
template <typename T, bool by_warp> struct Share {
  static const int kept = 4, wide = 16 / sizeof(T);
  Pack<T> own[kept];
  const Pack<T> *row;
  i64 packs;

  __device__ Share(const T *in, i64 length) : row((const Pack<T> *)in), packs(length / wide) {
#pragma unroll
    for (int j = 0; j < kept; ++j)
      if (at(j) < packs) own[j] = row[at(j)];
  }

  // Makes it the sum with another row's share, which goes to `sum`.
  __device__ __forceinline__ void add(const T *other, T *sum) {
    const Pack<T> *second = (const Pack<T> *)other;
    Pack<T> added[kept], *to = (Pack<T> *)sum;
#pragma unroll
    for (int j = 0; j < kept; ++j)
      if (at(j) < packs) added[j] = second[at(j)];
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      if (at(j) >= packs) continue;
      own[j] = plus(own[j], added[j]);
      // Kept as the pack that it is, and not in twice as many registers as numbers.
      u32(&words)[4] = (u32(&)[4])own[j];
      asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));
      to[at(j)] = own[j];
    }
    for (i64 i = at(kept); i < packs; i += Team<by_warp>::threads()) to[i] = plus(row[i], second[i]);
    row = to;
  }

  __device__ __forceinline__ static Pack<T> plus(Pack<T> a, const Pack<T> &b) {
#pragma unroll
    for (int k = 0; k < wide; ++k) a.v[k] = Store<T>::from(load(a.v[k]) + load(b.v[k]));
    return a;
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

// What is multiplied by or added to a pack of `T`s: as many numbers, of the parameters' type.
template <typename T, typename W> struct Beside {
  static const int wide = 16 / sizeof(W), packs = sizeof(W) / sizeof(T);
  Pack<W> own[packs];

  // Those of pack `i` of a row.
  __device__ __forceinline__ void read(const W *from, i64 i) {
#pragma unroll
    for (int j = 0; j < packs; ++j) own[j] = ((const Pack<W> *)from)[i * packs + j];
  }

  __device__ __forceinline__ void fill(W value) {
#pragma unroll
    for (int j = 0; j < packs * wide; ++j) own[j / wide].v[j % wide] = value;
  }

  __device__ __forceinline__ typename Compute<T>::number operator[](int k) const { return load(own[k / wide].v[k % wide]); }
};

// One row after the other by packs: the rows' starts and lengths are multiples of 16 bytes, and so
// are those of weight and bias. If it `adds`, the rows are sums with those of `other`, and go to
// `sum`.
template <typename T, typename W, bool by_warp, bool adds>
__device__ void forward_packed(i64 rows, i64 length, f64 eps, const T *x, const T *other, T *sum, const W *weight, const W *bias, T *out,
                               typename Compute<T>::number *mean, typename Compute<T>::number *rstd) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  for (i64 row = Team<by_warp>::first(); row < rows; row += Team<by_warp>::teams()) {
    Share<T, by_warp> share(x + row * length, length);
    if (adds) share.add(other + row * length, sum + row * length);
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
    C scale = inverse_root<C>(Team<by_warp>::sum(square, 1) / (C)length + (C)eps);
    Pack<T> *result = (Pack<T> *)(out + row * length);
    share.each([&](i64 i, const Pack<T> &p) {
      Pack<T> y;
      Beside<T, W> scales, shifts;
      if (weight) scales.read(weight, i);
      if (bias) shifts.read(bias, i);
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C value = ((C)load(p.v[k]) - mu) * scale;
        if (weight) value *= scales[k];
        if (bias) value += shifts[k];
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

// The same for rows of halves that are held whole, a block a row. There is enough to be computed
// for them that memory would wait.
template <typename T, typename W>
__device__ void forward_ahead(i64 rows, i64 length, f64 eps, const T *x, const W *weight, const W *bias, T *out, f32 *mean, f32 *rstd) {
  typedef Ahead<T, false, 4> Rows;
  typedef Team<false> Block;
  const int wide = Rows::wide;
  Rows ahead = {(int)(length / wide)};
  int turn = 0;
  ahead.ask(x + blockIdx.x * length, 0, blockIdx.x < rows);
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    ahead.ask(x + (row + gridDim.x) * length, turn ^ 1, row + gridDim.x < rows);
    wait_for_all_but<1>();
    f32 total = 0, square = 0;
    ahead.each(turn, [&](int, const Pack<T> &p) {
#pragma unroll
      for (int k = 0; k < wide; ++k) total += load(p.v[k]);
    });
    f32 mu = Block::sum(total) / (f32)length;
    ahead.each(turn, [&](int, const Pack<T> &p) {
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        f32 d = load(p.v[k]) - mu;
        square += d * d;
      }
    });
    f32 scale = rsqrtf(Block::sum(square, 1) / (f32)length + (f32)eps);
    ahead.each(turn, [&](int i, const Pack<T> &p) {
      Pack<T> y;
      Beside<T, W> scales, shifts;
      if (weight) scales.read(weight, i);
      if (bias) shifts.read(bias, i);
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        // Not value * scale - mean * scale, which is not 0 where all values are one.
        f32 value = (load(p.v[k]) - mu) * scale;
        if (weight) value *= scales[k];
        if (bias) value += shifts[k];
        y.v[k] = Store<T>::from(value);
      }
      ((Pack<T> *)(out + row * length))[i] = y;
    });
    if (threadIdx.x == 0 && mean) {
      mean[row] = mu;
      rstd[row] = scale;
    }
  }
}

template <typename T, typename W, bool adds>
__device__ void forward(i64 rows, i64 length, f64 eps, const T *x, const T *other, T *sum, const W *weight, const W *bias, T *out,
                        typename Compute<T>::number *mean, typename Compute<T>::number *rstd) {
  typedef typename Compute<T>::number C;
  bool packs = aligned(x) && aligned(other) && aligned(sum) && aligned(out) && aligned(weight) && aligned(bias);
  if (length % (i64)(16 / sizeof(T)) == 0 && packs) {
    forward_packed<T, W, false, adds>(rows, length, eps, x, other, sum, weight, bias, out, mean, rstd);
    return;
  }
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *in = x + row * length;
    T *result = out + row * length;
    C total = 0;
    if (adds) {
      T *to = sum + row * length;
      for (i64 i = threadIdx.x; i < length; i += blockDim.x) to[i] = Store<T>::from((C)load(in[i]) + (C)load(other[row * length + i]));
      in = to;
    }
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
template <typename T, typename W>
__device__ void backward_input(i64 rows, i64 length, const T *grad, const T *x, const typename Compute<T>::number *mean,
                               const typename Compute<T>::number *rstd, const W *weight, T *out, i64 added) {
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

// All gradients from one reading of `grad` and `x`, for rows that a team's threads hold whole,
// `kept` packs each. The sums over rows for weight and bias go to `parts`, of shape [blocks, 2,
// length], if they are wanted; the gradient of x to `out`, if that is: added to what it holds with
// `added`.
//
// Memory, sums and results overlap. The team's next row is on its way to shared memory; and where a
// block takes a row, it sums up one before it writes the gradient of the row before that, so that
// no thread waits for others but at one barrier a row.
template <typename T, typename W, bool by_warp, int kept>
__device__ void backward_packed(i64 rows, i64 length, const T *grad, const T *x, const typename Compute<T>::number *mean,
                                const typename Compute<T>::number *rstd, const W *weight, T *out, i64 added,
                                typename Compute<T>::number *parts) {
  typedef typename Compute<T>::number C;
  typedef Ahead<T, by_warp, 2 * kept> Rows;
  const int wide = Rows::wide, turns = 3;
  int packs = (int)(length / wide), lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  i64 row = Team<by_warp>::first(), step = Team<by_warp>::teams();
  auto ask = [&](i64 row, int turn) {
    if (row < rows) {
#pragma unroll
      for (int j = 0; j < kept; ++j) {
        if (Rows::at(j) >= packs) continue;
        fetch_pack(Rows::slot(turn, j), (const Pack<T> *)(grad + row * length) + Rows::at(j));
        fetch_pack(Rows::slot(turn, kept + j), (const Pack<T> *)(x + row * length) + Rows::at(j));
      }
    }
    fetched_so_far();
  };
  C dw[kept][wide], db[kept][wide];
  Pack<T> held[kept];
  Beside<T, W> weights[kept];
#pragma unroll
  for (int j = 0; j < kept; ++j) {
    if (!weight) weights[j].fill(Store<W>::from((C)1));
    else if (Rows::at(j) < packs) weights[j].read(weight, Rows::at(j));
#pragma unroll
    for (int k = 0; k < wide; ++k) dw[j][k] = db[j][k] = 0;
  }
  // What `out` holds of a row, asked for before it is needed.
  auto hold = [&](i64 row) {
#pragma unroll
    for (int j = 0; j < kept; ++j)
      if (Rows::at(j) < packs) held[j] = ((const Pack<T> *)(out + row * length))[Rows::at(j)];
  };
  auto finish = [&](i64 row, int turn, C mu, C scale, C sum, C dot) {
    sum *= -scale / (C)length;
    dot *= -scale / (C)length;
    // What multiplies the distance from the mean.
    C slope = scale * dot;
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      if (Rows::at(j) >= packs) continue;
      Pack<T> grads = *Rows::slot(turn, j), values = *Rows::slot(turn, kept + j), y;
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C to_x = (C)load(grads.v[k]) * weights[j][k];
        C value = to_x * scale + (((C)load(values.v[k]) - mu) * slope + sum);
        if (added) value += (C)load(held[j].v[k]);
        y.v[k] = Store<T>::from(value);
      }
      ((Pack<T> *)(out + row * length))[Rows::at(j)] = y;
    }
  };
  // Sums of the row before, of each warp, and of this one.
  __shared__ C sums[2][2][32];
  auto finish_before = [&](i64 row, int turn, C mu, C scale, int side) {
    C sum = warp_sum(lane < warps ? sums[side][0][lane] : (C)0), dot = warp_sum(lane < warps ? sums[side][1][lane] : (C)0);
    finish(row, turn, mu, scale, sum, dot);
  };
  int turn = 0, side = 0, turn_before = 0;
  i64 before = -1;
  C next_mu = row < rows ? mean[row] : (C)0, next_scale = row < rows ? rstd[row] : (C)0, mu_before = 0, scale_before = 0;
  ask(row, 0);
  for (; row < rows; row += step) {
    int next_turn = turn + 1 == turns ? 0 : turn + 1;
    ask(row + step, next_turn);
    if (added && out && (by_warp || before >= 0)) hold(by_warp ? row : before);
    C mu = next_mu, scale = next_scale, sum = 0, dot = 0;
    if (row + step < rows) {
      next_mu = mean[row + step];
      next_scale = rstd[row + step];
    }
    wait_for_all_but<1>();
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      if (Rows::at(j) >= packs) continue;
      Pack<T> grads = *Rows::slot(turn, j), values = *Rows::slot(turn, kept + j);
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        C g = (C)load(grads.v[k]), to_x = g * weights[j][k], hat = ((C)load(values.v[k]) - mu) * scale;
        dw[j][k] += g * hat;
        db[j][k] += g;
        sum += to_x;
        dot += to_x * hat;
      }
    }
    if (out) {
      sum = warp_sum(sum);
      dot = warp_sum(dot);
      if (by_warp) {
        finish(row, turn, mu, scale, sum, dot);
      } else {
        if (lane == 0) {
          sums[side][0][warp] = sum;
          sums[side][1][warp] = dot;
        }
        if (before >= 0) finish_before(before, turn_before, mu_before, scale_before, side ^ 1);
        __syncthreads();
        side ^= 1;
        before = row;
        turn_before = turn;
        mu_before = mu;
        scale_before = scale;
      }
    }
    turn = next_turn;
  }
  if (!by_warp && before >= 0) {
    if (added) hold(before);
    finish_before(before, turn_before, mu_before, scale_before, side ^ 1);
  }
  if (!parts) return;
  C *own = parts + (i64)blockIdx.x * 2 * length;
  if (!by_warp) {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      if (Rows::at(j) >= packs) continue;
#pragma unroll
      for (int k = 0; k < wide; ++k) {
        own[Rows::at(j) * wide + k] = dw[j][k];
        own[length + Rows::at(j) * wide + k] = db[j][k];
      }
    }
    return;
  }
  // One warp after the other adds its sums to the block's, so that their order never varies. They
  // lie where the rows were: [2, kept, wide, 32].
  __syncthreads();
  C *all = (C *)Rows::slot(0, 0) - threadIdx.x * wide * sizeof(T) / sizeof(C);
  for (int owner = 0; owner < warps; ++owner) {
    if (owner == warp) {
#pragma unroll
      for (int j = 0; j < kept * wide; ++j) {
        C *to = all + j * 32 + lane;
        to[0] = (owner ? to[0] : (C)0) + dw[j / wide][j % wide];
        to[kept * wide * 32] = (owner ? to[kept * wide * 32] : (C)0) + db[j / wide][j % wide];
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < length; i += blockDim.x) {
    int pack = i / wide, place = (pack / 32 * wide + i % wide) * 32 + (pack & 31);
    own[i] = all[place];
    own[length + i] = all[kept * wide * 32 + place];
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
template <typename C, typename W> __device__ void add_parts(i64 count, i64 length, const C *parts, W *weight, W *bias) {
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
  W *out = warp == 0 ? weight : bias;
  if (out) out[i] = Store<W>::from(sum);
}

#define LAYER_NORM(name, type, W)                                                                                          \
  KERNEL_BY(512, 2, layer_norm_##name)(i64 rows, i64 length, f64 eps, const type *x, const W *weight, const W *bias,       \
                                       type *out, Compute<type>::number *mean, Compute<type>::number *rstd) {              \
    in_turn();                                                                                                             \
    forward<type, W, false>(rows, length, eps, x, x, out, weight, bias, out, mean, rstd);                                  \
  }                                                                                                                        \
  KERNEL(layer_norm_by_warp_##name)(i64 rows, i64 length, f64 eps, const type *x, const W *weight, const W *bias,          \
                                    type *out, Compute<type>::number *mean, Compute<type>::number *rstd) {                 \
    in_turn();                                                                                                             \
    forward_packed<type, W, true, false>(rows, length, eps, x, x, out, weight, bias, out, mean, rstd);                     \
  }                                                                                                                        \
  KERNEL_OF(512, add_layer_norm_##name)(i64 rows, i64 length, f64 eps, const type *x, const W *weight, const W *bias,      \
                                        type *out, Compute<type>::number *mean, Compute<type>::number *rstd,               \
                                        const type *other, type *sum) {                                                    \
    in_turn();                                                                                                             \
    forward<type, W, true>(rows, length, eps, x, other, sum, weight, bias, out, mean, rstd);                               \
  }                                                                                                                        \
  KERNEL_BY(256, 3, add_layer_norm_by_warp_##name)(i64 rows, i64 length, f64 eps, const type *x, const W *weight,          \
                                                   const W *bias, type *out, Compute<type>::number *mean,                  \
                                                   Compute<type>::number *rstd, const type *other, type *sum) {            \
    in_turn();                                                                                                             \
    forward_packed<type, W, true, true>(rows, length, eps, x, other, sum, weight, bias, out, mean, rstd);                  \
  }                                                                                                                        \
  KERNEL(layer_norm_backward_##name)(i64 rows, i64 length, const type *grad, const type *x,                                \
                                     const Compute<type>::number *mean, const Compute<type>::number *rstd,                 \
                                     const W *weight, type *out, i64 added) {                                              \
    in_turn();                                                                                                             \
    backward_input<type, W>(rows, length, grad, x, mean, rstd, weight, out, added);                                        \
  }                                                                                                                        \
  KERNEL_BY(128, 3, layer_norm_backward_by_warp_##name)(i64 rows, i64 length, const type *grad, const type *x,             \
                                                        const Compute<type>::number *mean,                                 \
                                                        const Compute<type>::number *rstd, const W *weight, type *out,     \
                                                        i64 added, Compute<type>::number *parts) {                         \
    in_turn();                                                                                                             \
    backward_packed<type, W, true, 4>(rows, length, grad, x, mean, rstd, weight, out, added, parts);                       \
  }                                                                                                                        \
  KERNEL_OF(512, layer_norm_backward_by_block_##name)(i64 rows, i64 length, const type *grad, const type *x,               \
                                                      const Compute<type>::number *mean,                                   \
                                                      const Compute<type>::number *rstd, const W *weight, type *out,       \
                                                      i64 added, Compute<type>::number *parts) {                           \
    in_turn();                                                                                                             \
    backward_packed<type, W, false, 4>(rows, length, grad, x, mean, rstd, weight, out, added, parts);                      \
  }                                                                                                                        \
  KERNEL(layer_norm_parameters_##name)(i64 rows, i64 length, const type *grad, const type *x,                              \
                                       const Compute<type>::number *mean, const Compute<type>::number *rstd,               \
                                       Compute<type>::number *parts) {                                                     \
    in_turn();                                                                                                             \
    backward_parameters<type>(rows, length, grad, x, mean, rstd, parts);                                                   \
  }                                                                                                                        \
  KERNEL_OF(1024, layer_norm_parts_##name)(i64 count, i64 length, const Compute<type>::number *parts, W *weight,           \
                                           W *bias) {                                                                      \
    in_turn();                                                                                                             \
    add_parts<Compute<type>::number, W>(count, length, parts, weight, bias);                                               \
  }
LAYER_NORM(f32, f32, f32)
LAYER_NORM(f64, f64, f64)
LAYER_NORM(f16, f16, f16)
LAYER_NORM(bf16, bf16, bf16)
LAYER_NORM(f16_by_f32, f16, f32)
LAYER_NORM(bf16_by_f32, bf16, f32)

// Halves have twice as many elements in a pack: with two packs a thread has the registers for all.
#define LAYER_NORM_OF_HALVES(name, type, W)                                                                                 \
  KERNEL_OF(512, layer_norm_ahead_##name)(i64 rows, i64 length, f64 eps, const type *x, const W *weight, const W *bias,     \
                                          type *out, f32 *mean, f32 *rstd) {                                                \
    in_turn();                                                                                                              \
    forward_ahead<type, W>(rows, length, eps, x, weight, bias, out, mean, rstd);                                            \
  }                                                                                                                         \
  KERNEL_OF(512, layer_norm_backward_by_wide_block_##name)(i64 rows, i64 length, const type *grad, const type *x,           \
                                                           const f32 *mean, const f32 *rstd, const W *weight, type *out,    \
                                                           i64 added, f32 *parts) {                                         \
    in_turn();                                                                                                              \
    backward_packed<type, W, false, 2>(rows, length, grad, x, mean, rstd, weight, out, added, parts);                       \
  }
LAYER_NORM_OF_HALVES(f16, f16, f16)
LAYER_NORM_OF_HALVES(bf16, bf16, bf16)
LAYER_NORM_OF_HALVES(f16_by_f32, f16, f32)
LAYER_NORM_OF_HALVES(bf16_by_f32, bf16, f32)
