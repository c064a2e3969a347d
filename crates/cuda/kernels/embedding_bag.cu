// Bags of rows of a table: their sum (mode 0), mean (1) or largest elements (2), and the gradients.
// A warp takes a bag, or a row of the gradient, and 32 columns.

// Indices into the table, and the samples of the bags among them.
struct Bags {
  const i64 *indices;
  i64 index_step;
  const i64 *offsets;
  i64 offset_step;
  i64 count;
  // One more where the last offset ends the last bag.
  i64 offsets_count;
  i64 samples;
  i64 rows;
  // The row that counts for nothing; negative for none.
  i64 padding;
};
// A matrix by its strides.
struct Table {
  void *first;
  i64 row;
  i64 column;
};

__device__ __forceinline__ i64 offset_at(const Bags &bags, i64 bag) {
  if (bag >= bags.offsets_count) return bags.samples;
  i64 offset = bags.offsets[bag * bags.offset_step];
  return offset < 0 ? 0 : min(offset, bags.samples);
}
// The row of a sample; negative if it counts for nothing.
__device__ __forceinline__ i64 row_at(const Bags &bags, i64 sample) {
  i64 row = bags.indices[sample * bags.index_step];
  return (u64)row < (u64)bags.rows && row != bags.padding ? row : -1;
}
// How many samples of a bag count; a warp counts together.
__device__ i64 counted(const Bags &bags, i64 from, i64 to) {
  i64 count = 0;
  for (i64 sample = from + (threadIdx.x & 31); sample < to; sample += 32) count += row_at(bags, sample) >= 0;
  for (int distance = 16; distance > 0; distance >>= 1) count += __shfl_xor_sync(~0u, count, distance);
  return count;
}

// Tells of indices outside the table, and of offsets that fall or lie outside the indices.
KERNEL(bag_check)(Bags bags, Fault fault) {
  in_turn();
  for (i64 i = first_index(); i < bags.samples; i += all_threads()) within(fault, bags.indices[i * bags.index_step], bags.rows, 0);
  for (i64 i = first_index(); i < bags.offsets_count; i += all_threads()) {
    i64 start = bags.offsets[i * bags.offset_step];
    i64 before = i > 0 ? bags.offsets[(i - 1) * bags.offset_step] : 0;
    if (start < before || start > bags.samples || (i == 0 && start != 0)) tell(fault, 1, start, i, bags.samples);
  }
}

// `from` gets the row that each largest element is from, if its address is not 0.
#define FORWARD(C)                                                                                             \
  KERNEL(bag_##C)(Bags bags, i64 width, i32 mode, i32 code, Table table, const void *weights, i64 weight_step, \
                                     Table out, Table from) {                                                  \
    in_turn();                                                                                                 \
    i64 chunks = (width + 31) / 32, lane = threadIdx.x & 31;                                                   \
    for (i64 job = first_index() >> 5; job < bags.count * chunks; job += all_threads() >> 5) {                 \
      i64 bag = job / chunks, column = (job - bag * chunks) * 32 + lane;                                       \
      i64 start = offset_at(bags, bag), end = offset_at(bags, bag + 1);                                        \
      i64 count = mode == 1 ? counted(bags, start, end) : 1, whose = -1;                                       \
      if (column >= width) continue;                                                                           \
      C sum = 0;                                                                                               \
      for (i64 sample = start; sample < end; ++sample) {                                                       \
        i64 row = row_at(bags, sample);                                                                        \
        if (row < 0) continue;                                                                                 \
        C value = element<C>(table.first, row * table.row + column * table.column, code);                      \
        if (mode == 2) {                                                                                       \
          if (whose < 0 || value > sum) {                                                                      \
            sum = value;                                                                                       \
            whose = row;                                                                                       \
          }                                                                                                    \
          continue;                                                                                            \
        }                                                                                                      \
        f64 weight = weights ? element<f64>(weights, sample * weight_step, code) : 1.0;                        \
        sum += value * (C)(weight / (f64)count);                                                               \
      }                                                                                                        \
      keep<C>(out.first, bag * out.row + column * out.column, code, sum);                                      \
      if (from.first) ((i64 *)from.first)[bag * from.row + column * from.column] = whose;                      \
    }                                                                                                          \
  }
FORWARD(f32)
FORWARD(f64)

// How many samples of each bag count.
KERNEL(bag_counts)(Bags bags, i64 *counts) {
  in_turn();
  for (i64 bag = first_index() >> 5; bag < bags.count; bag += all_threads() >> 5) {
    i64 count = counted(bags, offset_at(bags, bag), offset_at(bags, bag + 1));
    if ((threadIdx.x & 31) == 0) counts[bag] = count;
  }
}

// The bag of a sample by halving: the last that starts at or before it. Negative for none.
__device__ i64 bag_of(const Bags &bags, i64 sample) {
  i64 low = 0, high = bags.offsets_count;
  while (low < high) {
    i64 middle = low + (high - low) / 2;
    if (offset_at(bags, middle) <= sample) low = middle + 1;
    else high = middle;
  }
  return low - 1 < bags.count ? low - 1 : -1;
}

// Each sample's bag, and what its row is multiplied by there.
KERNEL(bag_shares)(Bags bags, i32 mode, i32 code, const void *weights, i64 weight_step, const i64 *counts, i64 *owners,
                                      f64 *shares) {
  in_turn();
  for (i64 sample = first_index(); sample < bags.samples; sample += all_threads()) {
    i64 bag = bag_of(bags, sample);
    f64 weight = weights ? element<f64>(weights, sample * weight_step, code) : 1.0;
    owners[sample] = bag;
    shares[sample] = bag < 0 ? 0.0 : mode == 1 ? weight / (f64)counts[bag] : weight;
  }
}

// The gradient of the table, whose rows are 0 so far; samples are sorted by their rows.
#define BACKWARD(C)                                                                                               \
  KERNEL(bag_backward_##C)(Keys keys, const u32 *positions, const i64 *owners, const f64 *shares,                 \
                                              i32 by_frequency, i64 width, i32 code, Table grad, Table out) {     \
    in_turn();                                                                                                    \
    i64 chunks = (width + 31) / 32, lane = threadIdx.x & 31;                                                      \
    for (i64 job = first_index() >> 5; job < keys.count * chunks; job += all_threads() >> 5) {                    \
      i64 i = job / chunks, column = (job - i * chunks) * 32 + lane;                                              \
      u64 row = key_at(keys, i);                                                                                  \
      if (row == keys.bad || !starts(keys, i, row)) continue;                                                     \
      i64 end = end_of(keys, i, row);                                                                             \
      if (column >= width) continue;                                                                              \
      f64 often = by_frequency ? (f64)(end - i) : 1.0;                                                            \
      C sum = 0;                                                                                                  \
      for (i64 j = i; j < end; ++j) {                                                                             \
        u32 sample = positions[j];                                                                                \
        i64 bag = owners[sample];                                                                                 \
        if (bag < 0) continue;                                                                                    \
        sum += element<C>(grad.first, bag * grad.row + column * grad.column, code) * (C)(shares[sample] / often); \
      }                                                                                                           \
      keep<C>(out.first, (i64)row * out.row + column * out.column, code, sum);                                    \
    }                                                                                                             \
  }
BACKWARD(f32)
BACKWARD(f64)

// The gradient of the samples' weights: a warp a sample.
KERNEL(bag_weights_backward)(Bags bags, i64 width, i32 code, Table grad, Table table, void *out, i64 out_step) {
  in_turn();
  i64 lane = threadIdx.x & 31;
  for (i64 sample = first_index() >> 5; sample < bags.samples; sample += all_threads() >> 5) {
    i64 row = row_at(bags, sample), bag = bag_of(bags, sample);
    f64 sum = 0;
    if (row >= 0 && bag >= 0)
      for (i64 column = lane; column < width; column += 32)
        sum += element<f64>(table.first, row * table.row + column * table.column, code) *
               element<f64>(grad.first, bag * grad.row + column * grad.column, code);
    for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_xor_sync(~0u, sum, distance);
    if (lane == 0) keep<f64>(out, sample * out_step, code, sum);
  }
}
