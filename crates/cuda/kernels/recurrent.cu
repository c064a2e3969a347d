// What comes between the products of a recurrent layer: the cells of one step, forward and
// backward, a thread an element of the state; and sums over rows for the biases.

enum Cell { LSTM, GRU, TANH, RELU };

__device__ __forceinline__ f32 exponential(f32 x) { return expf(x); }
__device__ __forceinline__ f64 exponential(f64 x) { return exp(x); }
__device__ __forceinline__ f32 hyperbolic(f32 x) { return tanhf(x); }
__device__ __forceinline__ f64 hyperbolic(f64 x) { return tanh(x); }
template <typename T> __device__ __forceinline__ T sigmoid(T x) { return 1 / (1 + exponential(-x)); }

// Pointers are to the step's first row. Sums of products in `gates` become activated gates; a plain
// cell's gates are the result. A GRU's lie in the order n, r, z and the hidden side of n.
template <typename T>
__device__ void forward(i64 cell, i64 count, i64 hidden, T *gates, const T *input_bias, const T *own_bias, T *memory, T *state, T *out,
                        T *kept) {
  for (i64 i = first_index(); i < count * hidden; i += all_threads()) {
    i64 row = i / hidden, at = i % hidden;
    T *line = gates + row * (cell <= GRU ? 4 : 1) * hidden + at;
    auto bias = [&](i64 gate) { return input_bias ? input_bias[gate * hidden + at] : (T)0; };
    auto own = [&](i64 gate) { return own_bias ? own_bias[gate * hidden + at] : (T)0; };
    if (cell == LSTM) {
      T in = sigmoid(line[0] + bias(0) + own(0)), forget = sigmoid(line[hidden] + bias(1) + own(1));
      T fresh = hyperbolic(line[2 * hidden] + bias(2) + own(2)), shown = sigmoid(line[3 * hidden] + bias(3) + own(3));
      T after = forget * memory[i] + in * fresh, result = shown * hyperbolic(after);
      line[0] = in;
      line[hidden] = forget;
      line[2 * hidden] = fresh;
      line[3 * hidden] = shown;
      memory[i] = after;
      state[i] = result;
      out[i] = result;
      if (kept) kept[i] = after;
    } else if (cell == GRU) {
      T reset = sigmoid(line[hidden] + bias(0) + own(0)), update = sigmoid(line[2 * hidden] + bias(1) + own(1));
      T side = line[3 * hidden] + own(2), fresh = hyperbolic(line[0] + bias(2) + reset * side);
      T result = (state[i] - fresh) * update + fresh;
      line[0] = fresh;
      line[hidden] = reset;
      line[2 * hidden] = update;
      line[3 * hidden] = side;
      state[i] = result;
      out[i] = result;
    } else {
      T sum = line[0] + bias(0) + own(0);
      T result = cell == TANH ? hyperbolic(sum) : sum > 0 || sum != sum ? sum : (T)0;
      line[0] = result;
      state[i] = result;
    }
  }
}

// `state` and `memory` are the gradients after the step and become what goes past the products to
// the step before, of which `kept` sequences have rows in `before`; the others started here.
template <typename T>
__device__ void backward(i64 cell, i64 count, i64 hidden, i64 kept, const T *gates, T *slopes, const T *grad, T *state, T *memory,
                         const T *after, const T *before, const T *initial) {
  for (i64 i = first_index(); i < count * hidden; i += all_threads()) {
    i64 row = i / hidden, at = i % hidden, start = row * (cell <= GRU ? 4 : 1) * hidden + at;
    const T *line = gates + start;
    T *to = slopes + start;
    T slope = state[i];
    if (grad) slope += grad[i];
    if (cell == LSTM) {
      T earlier = row < kept ? before[i] : initial[i];
      T in = line[0], forget = line[hidden], fresh = line[2 * hidden], open = line[3 * hidden], shown = hyperbolic(after[i]);
      T along = memory[i] + slope * open * (1 - shown * shown);
      to[0] = along * fresh * in * (1 - in);
      to[hidden] = along * earlier * forget * (1 - forget);
      to[2 * hidden] = along * in * (1 - fresh * fresh);
      to[3 * hidden] = slope * shown * open * (1 - open);
      memory[i] = along * forget;
    } else if (cell == GRU) {
      T earlier = row < kept ? before[i] : initial[i];
      T fresh = line[0], reset = line[hidden], update = line[2 * hidden], side = line[3 * hidden];
      T inner = slope * (1 - update) * (1 - fresh * fresh);
      to[0] = inner;
      to[hidden] = inner * side * reset * (1 - reset);
      to[2 * hidden] = slope * (earlier - fresh) * update * (1 - update);
      to[3 * hidden] = inner * reset;
      state[i] = slope * update;
    } else {
      T result = line[0];
      to[0] = cell == TANH ? slope * (1 - result * result) : result > 0 ? slope : (T)0;
    }
  }
}

// Sums of the columns of slopes into both biases: 32 columns a block, 8 threads a column.
template <typename T> __device__ void biases(i64 cell, i64 rows, i64 hidden, const T *slopes, T *of_input, T *of_hidden) {
  __shared__ f64 parts[8][33];
  i64 width = (cell <= GRU ? 4 : 1) * hidden, column = (i64)blockIdx.x * 32 + threadIdx.x % 32;
  int part = threadIdx.x / 32;
  f64 sum = 0;
  if (column < width)
    for (i64 row = part; row < rows; row += 8) sum += (f64)slopes[row * width + column];
  parts[part][threadIdx.x % 32] = sum;
  __syncthreads();
  if (part != 0 || column >= width) return;
  for (int other = 1; other < 8; ++other) sum += parts[other][threadIdx.x];
  i64 gate = column / hidden;
  if (cell != GRU) {
    of_input[column] = of_hidden[column] = (T)sum;
  } else if (gate == 0) {
    of_input[column + 2 * hidden] = (T)sum;
  } else if (gate == 3) {
    of_hidden[column - hidden] = (T)sum;
  } else {
    of_input[column - hidden] = of_hidden[column - hidden] = (T)sum;
  }
}

#define RECURRENT(type)                                                                                                 \
  KERNEL(recurrent_##type)(i64 cell, i64 count, i64 hidden, type *gates, const type *input_bias,                        \
                                              const type *own_bias, type *memory, type *state, type *out, type *kept) { \
    in_turn();                                                                                                          \
    forward<type>(cell, count, hidden, gates, input_bias, own_bias, memory, state, out, kept);                          \
  }                                                                                                                     \
  KERNEL(recurrent_backward_##type)(i64 cell, i64 count, i64 hidden, i64 kept, const type *gates, type *slopes,         \
                                                       const type *grad, type *state, type *memory, const type *after,  \
                                                       const type *before, const type *initial) {                       \
    in_turn();                                                                                                          \
    backward<type>(cell, count, hidden, kept, gates, slopes, grad, state, memory, after, before, initial);              \
  }                                                                                                                     \
  KERNEL(recurrent_biases_##type)(i64 cell, i64 rows, i64 hidden, const type *slopes, type *of_input,                   \
                                                     type *of_hidden) {                                                 \
    in_turn();                                                                                                          \
    biases<type>(cell, rows, hidden, slopes, of_input, of_hidden);                                                      \
  }
RECURRENT(f32)
RECURRENT(f64)
