// What the sources of convolutions share: where everything lies.

// Mirrors `geometry` in Rust. The operand is x, or backward the gradient; for the weight's
// derivative it is x, and the result is the gradient. Strides are of batch, channels, depth,
// height, width; the weight's of the result's channels, the operand's, a group, and the kernel.
struct Geometry {
  i64 batch, groups, operands, results;
  i64 operand_sizes[3], result_sizes[3], kernel[3], stride[3], padding[3], dilation[3];
  i64 operand[5], result[5], weight[6];
};

__device__ __forceinline__ void unfold3(i64 index, const i64 (&sizes)[3], i64 (&at)[3]) {
  at[2] = index % sizes[2];
  index /= sizes[2];
  at[1] = index % sizes[1];
  at[0] = index / sizes[1];
}

// Where result `r` looks through tap `k` along dimension `d`, or -1.
template <bool backward> __device__ __forceinline__ i64 place(const Geometry &g, int d, i64 r, i64 k) {
  if (!backward) {
    i64 at = r * g.stride[d] + k * g.dilation[d] - g.padding[d];
    return at >= 0 && at < g.operand_sizes[d] ? at : -1;
  }
  i64 at = r + g.padding[d] - k * g.dilation[d];
  if (at < 0 || at % g.stride[d] != 0) return -1;
  at /= g.stride[d];
  return at < g.operand_sizes[d] ? at : -1;
}

