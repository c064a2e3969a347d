// Writing where indices say. Several values for one place are brought together in their order, and
// without atomics on floats, so that every run gives the same bits: by one thread for each line
// along the indexed dimension where lines are short, by a block for each line that fits its shared
// memory, and otherwise after the values were sorted by their places (sort.cu).

// 0 takes the newest, 1 adds, 2 multiplies, 3 and 4 keep the least and the greatest; a NaN stays.
template <typename C> __device__ __forceinline__ C combined(i32 combine, C old, C given) {
  if (combine < 3) return combine == 0 ? given : combine == 1 ? old + given : old * given;
  return old != old || (combine == 3 ? old < given : old > given) ? old : given;
}

// Operands of `s`: the output, the index and the source, each without the indexed dimension, along
// which `length` indices and values lie.
#define LINES(C)                                                                                                                 \
  KERNEL(scatter_lines_##C)(i64 lines, Strided s, i64 length, i64 index_step, i64 source_step, i64 size,                         \
                                               i64 stride, i64 dim, i32 combine, i32 code, const i64 *index, const void *source, \
                                               void *out, Fault fault) {                                                         \
    in_turn();                                                                                                                   \
    for (i64 line = first_index(); line < lines; line += all_threads()) {                                                        \
      i64 at[3];                                                                                                                 \
      locate<3>(s, line, at);                                                                                                    \
      for (i64 i = 0; i < length; ++i) {                                                                                         \
        i64 place = index[at[1] + i * index_step];                                                                               \
        if (!within(fault, place, size, dim)) continue;                                                                          \
        i64 to = at[0] + place * stride;                                                                                         \
        C given = element<C>(source, at[2] + i * source_step, code);                                                             \
        keep<C>(out, to, code, combine ? combined<C>(combine, element<C>(out, to, code), given) : given);                        \
      }                                                                                                                          \
    }                                                                                                                            \
  }
LINES(f32)
LINES(f64)
LINES(i64)

// The most indices and places of a line that a block of 256 threads holds, and a thread's share.
#define TABLE 4096
#define SHARE 16
// How many of them a thread has on their way at once.
#define BATCH 8
// Values of one place that are sorted by their positions; of more, the whole line is looked
// through.
#define FEW 64

// A hole after every 16 places: threads that each sum up 16 neighbours meet no bank twice.
__device__ __forceinline__ int holed(int place) { return place + (place >> 4); }

// A batch of a thread's share of a line: every 256th element from `from` on.
template <typename C>
__device__ __forceinline__ void take_batch(const void *p, i64 first, i64 step, i32 from, i32 count, i32 code, C (&batch)[BATCH]) {
#pragma unroll
  for (int q = 0; q < BATCH; ++q) batch[q] = 0;
  if (code == Own<C>::code) {
#pragma unroll
    for (int q = 0; q < BATCH; ++q)
      if (from + q * 256 < count) batch[q] = ((const C *)p)[first + (from + q * 256) * step];
    return;
  }
#pragma unroll
  for (int q = 0; q < BATCH; ++q)
    if (from + q * 256 < count) batch[q] = converted<C>(p, first + (from + q * 256) * step, code);
}

// A block of 256 threads takes a line. Positions are put down by place, in no order, and then
// brought into theirs place by place. Operands of `s`: the output, the index, the source and x,
// each without the indexed dimension. If it is `fresh` all of the output is written.
template <typename C>
__device__ void scatter_table(i64 lines, const Strided &s, i32 length, i32 size, i64 index_step, i64 source_step, i64 stride,
                              i64 x_stride, i64 dim, i32 combine, i32 code, i32 fresh, const i64 *index, const void *source, const void *x,
                              void *out, const Fault &fault) {
  // Values of 4 bytes are held too; others are read where they are.
  const bool holds = sizeof(C) == 4;
  // Of each place first the count, then where its positions start, then where they end.
  __shared__ u32 ends[TABLE + TABLE / 16];
  __shared__ u16 positions[TABLE];
  __shared__ C values[holds ? TABLE : 1];
  __shared__ u32 warps[8];
  int t = threadIdx.x, lane = t & 31;
  for (i64 line = blockIdx.x; line < lines; line += gridDim.x) {
    i64 at[4];
    locate<4>(s, line, at);
    for (int k = t; k < TABLE + TABLE / 16; k += 256) ends[k] = 0;
    __syncthreads();
    // A place out of range becomes none.
    int places[SHARE];
#pragma unroll
    for (int h = 0; h < SHARE / BATCH; ++h) {
      int from = h * BATCH * 256 + t;
      i64 given[BATCH];
      take_batch<i64>(index, at[1], index_step, from, length, I64, given);
#pragma unroll
      for (int q = 0; q < BATCH; ++q) {
        bool good = from + q * 256 < length && within(fault, given[q], size, dim);
        places[h * BATCH + q] = good ? (int)given[q] : -1;
        if (good) atomicAdd(&ends[holed((int)given[q])], 1u);
      }
      if (holds) {
        C held[BATCH];
        take_batch<C>(source, at[2], source_step, from, length, code, held);
#pragma unroll
        for (int q = 0; q < BATCH; ++q)
          if (from + q * 256 < length) values[from + q * 256] = held[q];
      }
    }
    __syncthreads();
    // Each thread sums up neighbouring places.
    int first = t * SHARE;
    u32 own = 0;
    for (int k = first; k < first + SHARE; ++k) own += ends[holed(k)];
    u32 sum = own;
    for (int distance = 1; distance < 32; distance <<= 1) {
      u32 before = __shfl_up_sync(~0u, sum, distance);
      if (lane >= distance) sum += before;
    }
    if (lane == 31) warps[t >> 5] = sum;
    __syncthreads();
    u32 start = sum - own;
    for (int w = 0; w < t >> 5; ++w) start += warps[w];
    for (int k = first; k < first + SHARE; ++k) {
      u32 count = ends[holed(k)];
      ends[holed(k)] = start;
      start += count;
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < SHARE; ++q)
      if (places[q] >= 0) positions[atomicAdd(&ends[holed(places[q])], 1u)] = (u16)(q * 256 + t);
    __syncthreads();
    auto value = [&](int i) { return holds ? values[i] : element<C>(source, at[2] + i * source_step, code); };
    auto fold = [&](int k, C result) {
      int from = k > 0 ? (int)ends[holed(k - 1)] : 0, to = (int)ends[holed(k)], count = to - from;
      if (count == 0 && !fresh) return;
      if (count > FEW) {
        for (int i = 0; i < length; ++i)
          if (index[at[1] + i * index_step] == k) result = combined<C>(combine, result, value(i));
      } else {
        for (int i = from + 1; i < to; ++i) {
          u16 moved = positions[i];
          int j = i;
          for (; j > from && positions[j - 1] > moved; --j) positions[j] = positions[j - 1];
          positions[j] = moved;
        }
        for (int i = from; i < to; ++i) result = combined<C>(combine, result, value(positions[i]));
      }
      keep<C>(out, at[0] + k * stride, code, result);
    };
    // Four elements of x are on their way at once.
    for (int base = t; base < size; base += 1024) {
      C old[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        int k = base + q * 256;
        old[q] = k < size ? element<C>(x, at[3] + k * x_stride, code) : (C)0;
      }
#pragma unroll 1
      for (int q = 0; q < 4; ++q) {
        int k = base + q * 256;
        if (k < size) fold(k, q == 0 ? old[0] : q == 1 ? old[1] : q == 2 ? old[2] : old[3]);
      }
    }
    __syncthreads();
  }
}
#define SCATTER_TABLE(C)                                                                                                             \
  KERNEL_BY(256, 5, scatter_table_##C)(i64 lines, Strided s, i32 length, i32 size, i64 index_step, i64 source_step,                  \
                                               i64 stride, i64 x_stride, i64 dim, i32 combine, i32 code, i32 fresh,                  \
                                               const i64 *index, const void *source, const void *x, void *out, Fault fault) {        \
    in_turn();                                                                                                                       \
    scatter_table<C>(lines, s, length, size, index_step, source_step, stride, x_stride, dim, combine, code, fresh, index, source, x, \
                     out, fault);                                                                                                    \
  }
SCATTER_TABLE(f32)
SCATTER_TABLE(f64)
SCATTER_TABLE(i64)

// The place that each index says, as a key to sort by. Operands of `s`: the index, and the output
// without the indexed dimension. Indices out of range, and `skipped` ones if `skips`, get the key
// `bad`, the largest.
#define TARGETS(K)                                                                                        \
  KERNEL(scatter_targets_##K)(i64 n, Strided s, const i64 *index, K *keys, i64 size, i64 stride, i64 dim, \
                                                 i32 skips, i64 skipped, u64 bad, Fault fault) {          \
    in_turn();                                                                                            \
    for (i64 i = first_index(); i < n; i += all_threads()) {                                              \
      i64 at[2];                                                                                          \
      locate<2>(s, i, at);                                                                                \
      i64 place = index[at[0]];                                                                           \
      bool good = !(skips && place == skipped) && within(fault, place, size, dim);                        \
      keys[i] = good ? (K)(at[1] + place * stride) : (K)bad;                                              \
    }                                                                                                     \
  }                                                                                                       \
  /* The same of a list of offsets, of which those below 0 are bad. */                                    \
  KERNEL(offset_targets_##K)(i64 n, const i64 *list, K *keys, u64 bad) {                                  \
    in_turn();                                                                                            \
    for (i64 i = first_index(); i < n; i += all_threads()) keys[i] = list[i] < 0 ? (K)bad : (K)list[i];   \
  }                                                                                                       \
  /* The same of a view, which names an element several times. */                                         \
  KERNEL(view_targets_##K)(i64 n, Strided s, i64 offset, K *keys) {                                       \
    in_turn();                                                                                            \
    for (i64 i = first_index(); i < n; i += all_threads()) {                                              \
      i64 at[1];                                                                                          \
      locate<1>(s, i, at);                                                                                \
      keys[i] = (K)(offset + at[0]);                                                                      \
    }                                                                                                     \
  }
TARGETS(u32)
TARGETS(u64)

// What a thread adds up by itself before its warp helps.
#define SHORT 32

// One value a key, which is where it goes. `places` locates a value in the source by its position.
template <typename C>
__device__ void combine_elements(const Keys &keys, const u32 *positions, const Strided &places, i32 combine, i32 code, const void *source,
                                 void *out) {
  auto value = [&](i64 i) {
    i64 at[1];
    locate<1>(places, positions[i], at);
    return element<C>(source, at[0], code);
  };
  int lane = threadIdx.x & 31;
  // All threads of a warp go round together.
  for (i64 base = first_index() - lane; base < keys.count; base += all_threads()) {
    i64 i = base + lane;
    u64 key = i < keys.count ? key_at(keys, i) : keys.bad;
    bool good = key != keys.bad;
    if (combine == 0) {
      if (good && ends(keys, i, key)) keep<C>(out, key, code, value(i));
      continue;
    }
    bool own = good && starts(keys, i, key), more = false;
    C sum = 0;
    if (own) {
      sum = combined<C>(combine, element<C>(out, key, code), value(i));
      i64 j = i + 1;
      for (; j < i + SHORT && j < keys.count && key_at(keys, j) == key; ++j) sum = combined<C>(combine, sum, value(j));
      more = j < keys.count && key_at(keys, j) == key;
      if (!more) keep<C>(out, key, code, sum);
    }
    for (u32 waiting = __ballot_sync(~0u, more); waiting; waiting &= waiting - 1) {
      int whose = __ffs(waiting) - 1;
      u64 target = __shfl_sync(~0u, key, whose);
      C part = 0;
      i32 has = 0;
      i64 j = base + whose + SHORT + lane;
      for (; __any_sync(~0u, j < keys.count && key_at(keys, j) == target); j += 32) {
        if (j < keys.count && key_at(keys, j) == target) {
          C given = value(j);
          part = has ? combined<C>(combine, part, given) : given;
          has = 1;
        }
      }
      for (int distance = 1; distance < 32; distance <<= 1) {
        C other = __shfl_down_sync(~0u, part, distance);
        i32 theirs = __shfl_down_sync(~0u, has, distance);
        if (theirs && lane + distance < 32) {
          part = has ? combined<C>(combine, part, other) : other;
          has = 1;
        }
      }
      part = __shfl_sync(~0u, part, 0);
      if (lane == whose) keep<C>(out, key, code, combined<C>(combine, sum, part));
    }
  }
}

// Columns that a warp takes at once.
#define COLUMNS 128

// Keys of a run that one warp adds up; of more, a block does.
#define LONG 64
#define LONG_WARPS 16

// An element; of the floats that models are made of without a call, so that loads overlap.
template <typename C> __device__ __forceinline__ C quick(const void *p, i64 at, i32 code) { return element<C>(p, at, code); }
template <> __device__ __forceinline__ f32 quick<f32>(const void *p, i64 at, i32 code) {
  if (code == BF16) return load(((const bf16 *)p)[at]);
  return code == F16 ? load(((const f16 *)p)[at]) : element<f32>(p, at, code);
}

// Where a lane's four columns of a chunk lie in the output and in the source.
struct Columns {
  i64 to[4], from[4];
  bool in[4];
  __device__ __forceinline__ Columns(i64 chunk, i64 columns, i64 first, const Strided &slice) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      i64 column = chunk * COLUMNS + q * 32 + (threadIdx.x & 31), at[2] = {0, 0};
      in[q] = column < columns;
      if (in[q]) locate<2>(slice, column, at);
      to[q] = first + at[0];
      from[q] = at[1];
    }
  }
};

// Combines the slices of the sorted keys from..to, four of them on their way at once.
template <typename C>
__device__ __forceinline__ void combine_run(i64 from, i64 to, const u32 *positions, const Strided &places, const Columns &columns,
                                            i32 combine, i32 code, const void *source, C (&sum)[4]) {
  int lane = threadIdx.x & 31;
  for (i64 first = from; first < to; first += 32) {
    i64 at[1] = {0};
    if (first + lane < to) locate<1>(places, positions[first + lane], at);
    i32 count = (i32)min(to - first, (i64)32);
    for (i32 k = 0; k < count; k += 4) {
      C some[4][4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        i64 start = __shfl_sync(~0u, at[0], min(k + j, count - 1));
#pragma unroll
        for (int q = 0; q < 4; ++q)
          if (columns.in[q] && k + j < count) some[j][q] = quick<C>(source, start + columns.from[q], code);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          if (columns.in[q] && k + j < count) sum[q] = combined<C>(combine, sum[q], some[j][q]);
    }
  }
}

// A slice of `columns` elements a key, which times `unit` is where it goes. Operands of `slice`:
// the output and the source. With `mean` the sum is divided by how many there were, which is right
// where the output was 0. Long sums are left to `add_long_runs`.
template <typename C>
__device__ void combine_slices(const Keys &keys, const u32 *positions, i64 unit, i64 columns, const Strided &slice, const Strided &places,
                               i32 combine, i32 mean, i32 code, const void *source, void *out) {
  i64 chunks = (columns + COLUMNS - 1) / COLUMNS;
  i64 warps = all_threads() >> 5;
  for (i64 job = first_index() >> 5; job < keys.count * chunks; job += warps) {
    i64 i = job / chunks, chunk = job - i * chunks;
    u64 key = key_at(keys, i);
    if (key == keys.bad || !(combine ? starts(keys, i, key) : ends(keys, i, key))) continue;
    if (combine == 1 && i + LONG < keys.count && key_at(keys, i + LONG) == key) continue;
    i64 end = combine ? end_of(keys, i, key) : i + 1;
    Columns own(chunk, columns, key * unit, slice);
    C sum[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) sum[q] = own.in[q] && combine ? quick<C>(out, own.to[q], code) : (C)0;
    combine_run<C>(i, end, positions, places, own, combine, code, source, sum);
#pragma unroll
    for (int q = 0; q < 4; ++q)
      if (own.in[q]) keep<C>(out, own.to[q], code, mean ? (C)(sum[q] / (C)(end - i)) : sum[q]);
  }
}

// The sums of runs of more than LONG keys: a block a run and chunk, whose warps share the run. Of
// every LONG keys the first is looked at; the first of those that a run holds finds the run.
template <typename C>
__device__ void add_long_runs(const Keys &keys, const u32 *positions, i64 unit, i64 columns, const Strided &slice, const Strided &places,
                              i32 mean, i32 code, const void *source, void *out) {
  __shared__ C sums[LONG_WARPS][COLUMNS];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 chunks = (columns + COLUMNS - 1) / COLUMNS, marks = (keys.count + LONG - 1) / LONG;
  for (i64 job = blockIdx.x; job < marks * chunks; job += gridDim.x) {
    i64 mark = job / chunks * LONG, chunk = job % chunks;
    u64 key = key_at(keys, mark);
    if (key == keys.bad || (mark > 0 && key_at(keys, mark - LONG) == key)) continue;
    i64 start = mark;
    for (int back = 0; back < LONG; back += 32) {
      i64 at = mark - 1 - back - lane;
      u32 others = ~__ballot_sync(~0u, at >= 0 && key_at(keys, at) == key);
      start -= others ? __ffs(others) - 1 : 32;
      if (others) break;
    }
    i64 end = end_of(keys, mark, key), length = (end - start + LONG_WARPS - 1) / LONG_WARPS;
    if (end - start <= LONG) continue;
    Columns own(chunk, columns, key * unit, slice);
    C sum[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) sum[q] = own.in[q] && warp == 0 ? quick<C>(out, own.to[q], code) : (C)0;
    i64 from = min(start + warp * length, end);
    combine_run<C>(from, min(from + length, end), positions, places, own, 1, code, source, sum);
#pragma unroll
    for (int q = 0; q < 4; ++q) sums[warp][q * 32 + lane] = sum[q];
    __syncthreads();
    if (warp < 4) {
      C all = 0;
      for (int w = 0; w < LONG_WARPS; ++w) all += sums[w][warp * 32 + lane];
      // The columns of a lane in turn: warp q has the q-th.
      i64 column = chunk * COLUMNS + warp * 32 + lane, at[2] = {0, 0};
      if (column < columns) {
        locate<2>(slice, column, at);
        keep<C>(out, key * unit + at[0], code, mean ? (C)(all / (C)(end - start)) : all);
      }
    }
    __syncthreads();
  }
}

// Sorted keys that a warp adds up together.
#define SEGMENT 32

// The sums of slices of neighbouring elements, of as many bytes as packs: a warp a segment of
// sorted keys, a lane a pack of columns. What a run adds up to is written where it ends in the
// segment that it began in. Otherwise the segment's share goes to `parts`, of shape [segments, 2,
// columns]: first that of a run from before, then that of a run that begins here and goes on. `out`
// is 0 if `fresh`.
template <typename T>
__device__ void add_segments(const Keys &keys, const u32 *positions, i64 unit, i64 columns, const Strided &places, i32 fresh,
                             const T *source, T *out, f32 *parts) {
  const int wide = 16 / sizeof(T), at_once = 4;
  int lane = threadIdx.x & 31;
  i64 chunks = (columns / wide + 31) / 32, segments = (keys.count + SEGMENT - 1) / SEGMENT;
  for (i64 job = first_index() >> 5; job < segments * chunks; job += all_threads() >> 5) {
    i64 segment = job / chunks, column = ((job - segment * chunks) * 32 + lane) * wide, first = segment * SEGMENT, at[1] = {0};
    int count = (int)min(keys.count - first, (i64)SEGMENT);
    bool in = column < columns;
    u64 key = keys.bad;
    if (lane < count) {
      key = key_at(keys, first + lane);
      locate<1>(places, positions[first + lane], at);
    }
    u32 last_of_runs = __ballot_sync(~0u, lane < count && ends(keys, first + lane, key));
    bool is_from_before = !starts(keys, first, __shfl_sync(~0u, key, 0));
    f32 sum[wide];
#pragma unroll
    for (int q = 0; q < wide; ++q) sum[q] = 0;
    for (int k = 0; k < count; k += at_once) {
      Pack<T> some[at_once];
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        i64 start = __shfl_sync(~0u, at[0], min(k + j, count - 1));
        if (in && k + j < count) some[j] = *(const Pack<T> *)(source + start + column);
      }
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        if (k + j >= count) break;
#pragma unroll
        for (int q = 0; q < wide; ++q) sum[q] += (f32)number(some[j], q);
        bool ends_here = last_of_runs >> (k + j) & 1;
        if (!ends_here && k + j + 1 < count) continue;
        u64 own = __shfl_sync(~0u, key, k + j);
        if (in && own != keys.bad) {
          if (ends_here && !is_from_before) {
            Pack<T> *to = (Pack<T> *)(out + own * unit + column), result;
            if (!fresh) {
              result = *to;
#pragma unroll
              for (int q = 0; q < wide; ++q) sum[q] += (f32)number(result, q);
            }
#pragma unroll
            for (int q = 0; q < wide; ++q) result.v[q] = Store<T>::from(sum[q]);
            *to = result;
          } else {
            f32 *to = parts + (segment * 2 + !is_from_before) * columns + column;
#pragma unroll
            for (int q = 0; q < wide; q += 4) *(Pack<f32> *)(to + q) = Pack<f32>{sum[q], sum[q + 1], sum[q + 2], sum[q + 3]};
          }
        }
        is_from_before = false;
#pragma unroll
        for (int q = 0; q < wide; ++q) sum[q] = 0;
      }
    }
  }
}

// Adds up what `add_segments` left of the runs that begin in a segment and end in a later one: a
// block a segment and COLUMNS columns, whose warps share the segments that the run goes through.
template <typename T>
__device__ void add_parts(const Keys &keys, i64 unit, i64 columns, i32 fresh, const f32 *parts, T *out) {
  const int warps = 8;
  __shared__ Pack<f32> sums[warps][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 chunks = (columns + COLUMNS - 1) / COLUMNS, segments = (keys.count + SEGMENT - 1) / SEGMENT;
  for (i64 job = blockIdx.x; job < segments * chunks; job += gridDim.x) {
    i64 segment = job / chunks, column = (job - segment * chunks) * COLUMNS + 4 * lane, last = (segment + 1) * SEGMENT - 1;
    if (last + 1 >= keys.count) continue;
    u64 key = key_at(keys, last);
    bool is_from_before = segment > 0 && key_at(keys, segment * SEGMENT - 1) == key;
    if (key == keys.bad || is_from_before || key_at(keys, last + 1) != key) continue;
    i64 final_segment = (end_of(keys, last, key) - 1) / SEGMENT;
    Pack<f32> sum = {0, 0, 0, 0};
    if (column < columns) {
#pragma unroll 4
      for (i64 s = segment + warp; s <= final_segment; s += warps) {
        Pack<f32> part = *(const Pack<f32> *)(parts + (s * 2 + (s == segment)) * columns + column);
#pragma unroll
        for (int q = 0; q < 4; ++q) sum.v[q] += part.v[q];
      }
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < columns) {
      T *to = out + key * unit + column;
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        f32 all = fresh ? 0 : (f32)load(to[q]);
        for (int w = 0; w < warps; ++w) all += sums[w][lane].v[q];
        to[q] = Store<T>::from(all);
      }
    }
    __syncthreads();
  }
}

#define SEGMENTS(T)                                                                                                               \
  KERNEL(add_segments_##T)(Keys keys, const u32 *positions, i64 unit, i64 columns, Strided places, i32 fresh, const T *source,    \
                           T *out, f32 *parts) {                                                                                  \
    in_turn();                                                                                                                    \
    add_segments<T>(keys, positions, unit, columns, places, fresh, source, out, parts);                                           \
  }                                                                                                                               \
  KERNEL_OF(256, add_parts_##T)(Keys keys, i64 unit, i64 columns, i32 fresh, const f32 *parts, T *out) {                          \
    in_turn();                                                                                                                    \
    add_parts<T>(keys, unit, columns, fresh, parts, out);                                                                         \
  }
SEGMENTS(f32)
SEGMENTS(f16)
SEGMENTS(bf16)

#define COMBINE(C)                                                                                                                \
  KERNEL(combine_elements_##C)(Keys keys, const u32 *positions, Strided places, i32 combine, i32 code,                            \
                                                  const void *source, void *out) {                                                \
    in_turn();                                                                                                                    \
    combine_elements<C>(keys, positions, places, combine, code, source, out);                                                     \
  }                                                                                                                               \
  KERNEL(combine_slices_##C)(Keys keys, const u32 *positions, i64 unit, i64 columns, Strided slice,                               \
                                                Strided places, i32 combine, i32 mean, i32 code, const void *source, void *out) { \
    in_turn();                                                                                                                    \
    combine_slices<C>(keys, positions, unit, columns, slice, places, combine, mean, code, source, out);                           \
  }                                                                                                                               \
  KERNEL_OF(32 * LONG_WARPS, add_long_runs_##C)(Keys keys, const u32 *positions, i64 unit, i64 columns, Strided slice,            \
                                                Strided places, i32 mean, i32 code, const void *source, void *out) {              \
    in_turn();                                                                                                                    \
    add_long_runs<C>(keys, positions, unit, columns, slice, places, mean, code, source, out);                                     \
  }
COMBINE(f32)
COMBINE(f64)
COMBINE(i64)
