// A step of AdamW over a table of tensors: blocks take chunks of elements, and find their tensor in
// the table. The twin of `kernels/elementwise/src/optim.rs`.

// The numbers of a step. `rate`, `scale` and `skip` point to numbers that are in memory, or are
// null: the learning rate, what the gradients were multiplied by, and whether nothing is to happen
// (1).
// Mirrors `numbers` in Rust.
struct Numbers {
  f64 learning_rate, beta1, beta2, eps, weight_decay, step, sign;
  const f32 *rate, *scale, *skip;
};

__device__ __forceinline__ bool skips(const Numbers &n) { return n.skip && *n.skip == 1; }

// What every element uses.
template <typename C> struct Factors {
  C kept, new1, beta2, new2, root, eps, size, sign, scale;
  bool scaled;
  // Powers are slow: thread 0 takes them for its block. The step is a number, or where `from`
  // points.
  __device__ Factors(const Numbers &n, const f32 *from) {
    __shared__ f64 corrections[2];
    if (threadIdx.x == 0) {
      f64 step = from ? (f64)*from : n.step;
      corrections[0] = 1 - pow(n.beta1, step);
      corrections[1] = 1 - pow(n.beta2, step);
    }
    __syncthreads();
    f64 rate = n.rate ? (f64)*n.rate : n.learning_rate;
    scaled = n.scale;
    scale = scaled ? (C)*n.scale : (C)1;
    kept = (C)(1 - rate * n.weight_decay);
    new1 = (C)(1 - n.beta1);
    beta2 = (C)n.beta2;
    new2 = (C)(1 - n.beta2);
    root = (C)sqrt(corrections[1]);
    eps = (C)n.eps;
    size = (C)(rate / corrections[0]);
    sign = (C)n.sign;
  }
};

__device__ __forceinline__ f32 root_of(f32 x) { return sqrtf(x); }
__device__ __forceinline__ f64 root_of(f64 x) { return sqrt(x); }

// `largest` is null without AMSGrad. A gradient is written only if it is scaled.
template <typename T, typename C>
__device__ __forceinline__ void adamw(const Factors<C> &f, T *p, T *g, T *m, T *v, T *largest) {
  C grad = (C)load(*g);
  if (f.scaled) {
    grad = grad / f.scale;
    *g = Store<T>::from(grad);
  }
  grad = grad * f.sign;
  C mean = (C)load(*m);
  mean = mean + (grad - mean) * f.new1;
  C square = (C)load(*v) * f.beta2 + grad * grad * f.new2;
  C under = square;
  if (largest) {
    C before = (C)load(*largest);
    under = before > square ? before : square;
    *largest = Store<T>::from(under);
  }
  C divisor = root_of(under) / f.root + f.eps;
  *p = Store<T>::from((C)load(*p) * f.kept - f.size * (mean / divisor));
  *m = Store<T>::from(mean);
  *v = Store<T>::from(square);
}

// Tensors of which all operands lie alike and densely. `chunks` counts those of this tensor and of
// all before it. Mirrors `Table` in Rust.
struct Entry {
  u64 parameter, grad, mean, square, largest, step;
  i64 count, chunks;
};
const int ENTRIES = 400;
struct Table {
  Numbers numbers;
  i64 entries, chunk;
  Entry entry[ENTRIES];
};

template <typename T> __device__ void over_table(const Table &table) {
  typedef typename Compute<T>::number C;
  if (skips(table.numbers))
    return;
  __shared__ int found;
  if (threadIdx.x == 0) {
    int low = 0, high = (int)table.entries - 1;
    while (low < high) {
      int middle = (low + high) / 2;
      if (table.entry[middle].chunks > (i64)blockIdx.x)
        high = middle;
      else
        low = middle + 1;
    }
    found = low;
  }
  __syncthreads();
  const Entry &e = table.entry[found];
  i64 before = found ? table.entry[found - 1].chunks : 0;
  i64 from = ((i64)blockIdx.x - before) * table.chunk, to = min(from + table.chunk, e.count);
  Factors<C> factors(table.numbers, (const f32 *)e.step);
  T *p = (T *)e.parameter, *m = (T *)e.mean, *v = (T *)e.square, *largest = (T *)e.largest;
  T *g = (T *)e.grad;
  for (i64 i = from + threadIdx.x; i < to; i += blockDim.x)
    adamw<T, C>(factors, p + i, g + i, m + i, v + i, largest ? largest + i : (T *)0);
}

// One tensor of any layout; `last` locates `largest` as its operand 0.
template <typename T>
__device__ void over_layout(i64 count, const Numbers &numbers, const Strided &all, const Strided &last, T *p, T *g, T *m, T *v,
                            T *largest, const f32 *step) {
  typedef typename Compute<T>::number C;
  if (skips(numbers))
    return;
  Factors<C> factors(numbers, step);
  for (i64 i = first_index(); i < count; i += all_threads()) {
    i64 at[4], at_last[1];
    locate<4>(all, i, at);
    locate<1>(last, i, at_last);
    adamw<T, C>(factors, p + at[0], g + at[1], m + at[2], v + at[3], largest ? largest + at_last[0] : (T *)0);
  }
}

#define ADAMW(type)                                                                                           \
  KERNEL(adamw_table_##type)(const __grid_constant__ Table table) { over_table<type>(table); }                \
  KERNEL(adamw_layout_##type)(i64 count, Numbers numbers, Strided all, Strided last, type *p,                 \
                                                 type *g, type *m, type *v, type *largest, const f32 *step) { \
    over_layout<type>(count, numbers, all, last, p, g, m, v, largest, step);                                  \
  }
ADAMW(f32)
ADAMW(f64)
ADAMW(f16)
ADAMW(bf16)
