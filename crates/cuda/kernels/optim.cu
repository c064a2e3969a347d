// Steps of optimizers over a table of tensors (`table.cuh`): rules, and one body under all. The
// twin of `kernels/elementwise/src/optim`.

// The numbers of a step; `own` are the rule's. `rate`, `scale` and `skip` point to numbers that are
// in memory, or are null: the learning rate, what the gradients were multiplied by, and whether
// nothing is to happen (1).
// Mirrors `numbers` in Rust.
struct Numbers {
  f64 learning_rate, weight_decay, decoupled, sign, step;
  f64 own[6];
  const f32 *rate, *scale, *skip;
};

__device__ __forceinline__ bool skips(const Numbers &n) { return n.skip && *n.skip == 1; }

// Where a parameter's training is: steps taken, this one among them; how far a step goes; the
// product of all momenta.
struct At {
  f64 step, rate, product;
};

const int MOST_STATES = 3, MOST_FACTORS = 8;

__device__ __forceinline__ f32 root_of(f32 x) { return sqrtf(x); }
__device__ __forceinline__ f64 root_of(f64 x) { return sqrt(x); }
// The running mean of a value after one more.
template <typename C> __device__ __forceinline__ C mean(C before, C value, C fresh) { return before + (value - before) * fresh; }
// A NaN if there is one.
template <typename C> __device__ __forceinline__ C larger(C a, C b) { return a > b || a != a ? a : b; }
template <typename C> __device__ __forceinline__ C sign_of(C x) { return x > 0 ? (C)1 : x < 0 ? (C)-1 : (C)0; }

// Rules: `factors` says what all elements of a parameter use, `element` is the parameter's element
// after the step. Numbers are in the order of `Rule::numbers` in Rust.
struct Sgd {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f[0] = at.rate, f[1] = n[0], f[2] = 1 - n[1], f[3] = n[2], f[4] = n[3];
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    C by = grad;
    if (f[1] != 0) {
      C buffer = f[4] != 0 ? grad : state[0] * f[1] + grad * f[2];
      state[0] = buffer;
      by = f[3] != 0 ? grad + buffer * f[1] : buffer;
    }
    return param - f[0] * by;
  }
};

struct Adam {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f[0] = 1 - n[0], f[1] = n[1], f[2] = 1 - n[1], f[3] = sqrt(1 - pow(n[1], at.step)), f[4] = n[2];
    f[5] = at.rate / (1 - pow(n[0], at.step)), f[6] = n[3];
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    state[0] = mean(state[0], grad, f[0]);
    state[1] = state[1] * f[1] + grad * grad * f[2];
    C under = state[1];
    if (f[6] != 0) state[2] = under = larger(state[2], under);
    return param - f[5] * (state[0] / (root_of(under) / f[3] + f[4]));
  }
};

struct NAdam {
  static __device__ f64 momentum(const f64 *n, f64 step) { return n[0] * (1 - 0.5 * pow(0.96, step * n[3])); }
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f64 now = momentum(n, at.step), next = momentum(n, at.step + 1);
    f[0] = 1 - n[0], f[1] = n[1], f[2] = 1 - n[1], f[3] = 1 - pow(n[1], at.step), f[4] = n[2];
    f[5] = at.rate * (1 - now) / (1 - at.product), f[6] = at.rate * next / (1 - at.product * next);
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    state[0] = mean(state[0], grad, f[0]);
    state[1] = state[1] * f[1] + grad * grad * f[2];
    C divisor = root_of(state[1] / f[3]) + f[4];
    return param - f[5] * (grad / divisor) - f[6] * (state[0] / divisor);
  }
};

struct RAdam {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f64 left = pow(n[1], at.step), size = at.rate / (1 - pow(n[0], at.step));
    f64 most = 2 / (1 - n[1]) - 1, length = most - 2 * at.step * left / (1 - left);
    bool rectified = length > 5;
    f64 part = (length - 4) * (length - 2) * most, whole = (most - 4) * (most - 2) * length;
    f[0] = 1 - n[0], f[1] = n[1], f[2] = 1 - n[1], f[3] = n[2];
    f[4] = rectified ? size * (sqrt(1 - left) * sqrt(part / whole)) : size, f[5] = rectified;
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    state[0] = mean(state[0], grad, f[0]);
    state[1] = state[1] * f[1] + grad * grad * f[2];
    C divisor = f[5] != 0 ? root_of(state[1]) + f[3] : (C)1;
    return param - f[4] * (state[0] / divisor);
  }
};

struct Adagrad {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f[0] = at.rate / (1 + (at.step - 1) * n[0]), f[1] = n[1];
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    state[0] = state[0] + grad * grad;
    return param - f[0] * (grad / (root_of(state[0]) + f[1]));
  }
};

struct Adadelta {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f[0] = at.rate, f[1] = n[0], f[2] = 1 - n[0], f[3] = n[1];
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    state[0] = state[0] * f[1] + grad * grad * f[2];
    C delta = root_of(state[1] + f[3]) / root_of(state[0] + f[3]) * grad;
    state[1] = state[1] * f[1] + delta * delta * f[2];
    return param - f[0] * delta;
  }
};

struct RmsProp {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f[0] = at.rate, f[1] = n[0], f[2] = 1 - n[0], f[3] = n[1], f[4] = n[2], f[5] = n[3];
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    state[0] = state[0] * f[1] + grad * grad * f[2];
    C under = state[0];
    if (f[5] != 0) {
      state[2] = mean(state[2], grad, f[2]);
      under = under - state[2] * state[2];
    }
    C by = grad / (root_of(under) + f[3]);
    if (f[4] != 0) state[1] = by = state[1] * f[4] + by;
    return param - f[0] * by;
  }
};

struct Rprop {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f[0] = n[0], f[1] = n[1], f[2] = n[2], f[3] = n[3];
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    C turn = grad * state[0];
    C size = turn < 0 ? state[1] * f[0] : turn > 0 ? state[1] * f[1] : state[1];
    size = size < f[2] ? f[2] : size;
    state[1] = size > f[3] ? f[3] : size;
    state[0] = turn < 0 ? (C)0 : grad;
    return param - sign_of(state[0]) * state[1];
  }
};

struct Adamax {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f[0] = at.rate / (1 - pow(n[0], at.step)), f[1] = 1 - n[0], f[2] = n[1], f[3] = n[2];
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    state[0] = mean(state[0], grad, f[1]);
    state[1] = larger(state[1] * f[2], (grad < 0 ? -grad : grad) + f[3]);
    return param - f[0] * (state[0] / state[1]);
  }
};

struct Lion {
  static __device__ void factors(const f64 *n, const At &at, f64 *f) {
    f[0] = at.rate, f[1] = n[0], f[2] = 1 - n[0], f[3] = n[1], f[4] = 1 - n[1];
  }
  template <typename C> static __device__ __forceinline__ C element(const C *f, C param, C grad, C *state) {
    C by = sign_of(state[0] * f[1] + grad * f[2]);
    state[0] = state[0] * f[3] + grad * f[4];
    return param - f[0] * by;
  }
};

// What every element uses: what weight decay and direction need, and the rule's own.
template <typename C> struct Factors {
  C sign, added, kept, scale, own[MOST_FACTORS];
  bool scaled;
};

// Powers are slow: thread 0 takes them for its block. The step is a number, or where `from` points.
template <typename Rule, typename C> __device__ Factors<C> factors_of(const Numbers &n, const f32 *from, const f32 *product) {
  __shared__ f64 own[MOST_FACTORS];
  f64 rate = n.rate ? (f64)*n.rate : n.learning_rate;
  if (threadIdx.x == 0) {
    At at = {from ? (f64)*from : n.step, rate, product ? (f64)*product : 1};
    for (int i = 0; i < MOST_FACTORS; ++i) own[i] = 0;
    Rule::factors(n.own, at, own);
  }
  __syncthreads();
  Factors<C> f;
  f.scaled = n.scale;
  f.scale = f.scaled ? (C)*n.scale : (C)1;
  f.sign = (C)n.sign;
  f.added = n.decoupled != 0 ? (C)0 : (C)n.weight_decay;
  f.kept = n.decoupled != 0 ? (C)(1 - rate * n.weight_decay) : (C)1;
#pragma unroll
  for (int i = 0; i < MOST_FACTORS; ++i) f.own[i] = (C)own[i];
  return f;
}

template <typename Rule, typename C>
__device__ __forceinline__ C changed(const Factors<C> &f, C param, C grad, C *state) {
  C slope = grad * f.sign;
  if (f.added != 0) slope = slope + param * f.added;
  return Rule::element(f.own, param * f.kept, slope, state);
}

template <int N, typename T, typename C> __device__ __forceinline__ void read(const T *from, C (&to)[N]) {
  Some<T, N> some = *(const Some<T, N> *)from;
#pragma unroll
  for (int k = 0; k < N; ++k) to[k] = (C)load(some.v[k]);
}
template <int N, typename T, typename C> __device__ __forceinline__ void write(T *to, const C (&from)[N]) {
  Some<T, N> some;
#pragma unroll
  for (int k = 0; k < N; ++k) some.v[k] = Store<T>::from(from[k]);
  *(Some<T, N> *)to = some;
}

// A tensor of which all operands lie alike and densely; those that are not there are null. Mirrors
// `Table` in Rust.
struct Entry {
  u64 param, grad, master, state[MOST_STATES], step, product;
  i64 count, chunks;
};
const int ENTRIES = 400;
struct Table {
  Numbers numbers;
  i64 entries, chunk, counted;
  Entry entry[ENTRIES];
};

// N elements from index `i` on. States are of type S, as is the copy that the step changes in place
// of the parameter, if there is one.
template <typename Rule, int N, typename T, typename S, typename C>
__device__ __forceinline__ void some_of(const Factors<C> &f, const Entry &e, i64 i) {
  C grad[N], param[N], state[MOST_STATES][N];
  T *g = (T *)e.grad + i, *p = (T *)e.param + i;
  S *master = e.master ? (S *)e.master + i : (S *)0;
  read<N>(g, grad);
  if (master)
    read<N>(master, param);
  else
    read<N>(p, param);
#pragma unroll
  for (int s = 0; s < MOST_STATES; ++s) {
#pragma unroll
    for (int k = 0; k < N; ++k) state[s][k] = 0;
    if (e.state[s]) read<N>((S *)e.state[s] + i, state[s]);
  }
  if (f.scaled) {
#pragma unroll
    for (int k = 0; k < N; ++k) grad[k] = grad[k] / f.scale;
    write<N>(g, grad);
  }
#pragma unroll
  for (int k = 0; k < N; ++k) {
    C own[MOST_STATES] = {state[0][k], state[1][k], state[2][k]};
    param[k] = changed<Rule, C>(f, param[k], grad[k], own);
#pragma unroll
    for (int s = 0; s < MOST_STATES; ++s) state[s][k] = own[s];
  }
  if (master) write<N>(master, param);
  write<N>(p, param);
#pragma unroll
  for (int s = 0; s < MOST_STATES; ++s)
    if (e.state[s]) write<N>((S *)e.state[s] + i, state[s]);
}

template <typename Rule, typename T, typename S> __device__ void over_table(const Table &table) {
  typedef typename Compute<T>::number C;
  if (skips(table.numbers)) return;
  Part part = part_of_block(table);
  const Entry &e = table.entry[part.place];
  Factors<C> factors = factors_of<Rule, C>(table.numbers, (const f32 *)e.step, (const f32 *)e.product);
  u64 all = e.param | e.grad | e.master | e.state[0] | e.state[1] | e.state[2];
  over_part(part, all, [&](auto some, i64 i) { some_of<Rule, some.count, T, S, C>(factors, e, i); });
}

// What an operand of any layout holds: 1 is C itself, 2 float16, 3 bfloat16.
template <typename C> __device__ __forceinline__ C read_kind(u64 from, i64 i, i64 kind) {
  return kind == 2 ? (C)load(((const f16 *)from)[i]) : kind == 3 ? (C)load(((const bf16 *)from)[i]) : ((const C *)from)[i];
}
template <typename C> __device__ __forceinline__ void write_kind(u64 to, i64 i, i64 kind, C value) {
  if (kind == 2)
    ((f16 *)to)[i] = Store<f16>::from(value);
  else if (kind == 3)
    ((bf16 *)to)[i] = Store<bf16>::from(value);
  else
    ((C *)to)[i] = value;
}

// One tensor of any layout: `first` locates parameter, gradient and copy, `then` the states. Rare,
// so what the operands hold is asked for each element.
template <typename Rule, typename C>
__device__ void over_layout(const Numbers &numbers, const Entry &e, const Strided &first, const Strided &then, i64 kind, i64 kept) {
  if (skips(numbers)) return;
  Factors<C> f = factors_of<Rule, C>(numbers, (const f32 *)e.step, (const f32 *)e.product);
  for (i64 i = first_index(); i < e.count; i += all_threads()) {
    i64 at[3], at_state[MOST_STATES];
    locate<3>(first, i, at);
    locate<MOST_STATES>(then, i, at_state);
    C grad = read_kind<C>(e.grad, at[1], kind), state[MOST_STATES];
    C param = e.master ? read_kind<C>(e.master, at[2], kept) : read_kind<C>(e.param, at[0], kind);
    for (int s = 0; s < MOST_STATES; ++s) state[s] = e.state[s] ? read_kind<C>(e.state[s], at_state[s], kept) : (C)0;
    if (f.scaled) {
      grad = grad / f.scale;
      write_kind<C>(e.grad, at[1], kind, grad);
    }
    param = changed<Rule, C>(f, param, grad, state);
    if (e.master) write_kind<C>(e.master, at[2], kept, param);
    write_kind<C>(e.param, at[0], kind, param);
    for (int s = 0; s < MOST_STATES; ++s)
      if (e.state[s]) write_kind<C>(e.state[s], at_state[s], kept, state[s]);
  }
}

// Counts a step of each tensor, and multiplies NAdam's products by its momentum.
KERNEL(advance)(const __grid_constant__ Table table) {
  in_turn();
  if (skips(table.numbers)) return;
  i64 i = first_index();
  if (i >= table.entries) return;
  const Entry &e = table.entry[i];
  f32 *count = (f32 *)e.step, *product = (f32 *)e.product;
  f64 step = count ? (f64)*count + (table.counted ? 1 : 0) : table.numbers.step;
  if (count && table.counted) *count = (f32)step;
  if (product) *product = *product * (f32)NAdam::momentum(table.numbers.own, step);
}

#define STEP_OF(rule, name, form, T, S)                              \
  KERNEL(name##_table_##form)(const __grid_constant__ Table table) { \
    in_turn();                                                       \
    over_table<rule, T, S>(table);                                   \
  }
#define STEP_BY(rule, name, C)                                                                                             \
  KERNEL(name##_layout_##C)(Numbers numbers, Entry entry, Strided first, Strided then, i64 kind, i64 kept) {               \
    in_turn();                                                                                                             \
    over_layout<rule, C>(numbers, entry, first, then, kind, kept);                                                         \
  }
#define STEP(rule, name)                       \
  STEP_OF(rule, name, f32, f32, f32)           \
  STEP_OF(rule, name, f64, f64, f64)           \
  STEP_OF(rule, name, f16, f16, f16)           \
  STEP_OF(rule, name, bf16, bf16, bf16)        \
  STEP_OF(rule, name, f16_master, f16, f32)    \
  STEP_OF(rule, name, bf16_master, bf16, f32)  \
  STEP_BY(rule, name, f32)                     \
  STEP_BY(rule, name, f64)

STEP(Sgd, sgd)
STEP(Adam, adam)
STEP(NAdam, nadam)
STEP(RAdam, radam)
STEP(Adagrad, adagrad)
STEP(Adadelta, adadelta)
STEP(RmsProp, rmsprop)
STEP(Rprop, rprop)
STEP(Adamax, adamax)
STEP(Lion, lion)
