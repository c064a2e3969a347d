// What the sources of convolutions share: where everything lies.

// Mirrors `geometry` in Rust. The operand is x, or backward the gradient; for the weight's
// derivative it is x, and the result is the gradient. Strides are of batch, channels, depth,
// height, width; the weight's of the result's channels, the operand's, a group, and the kernel.
struct Geometry {
  i64 batch, groups, operands, results;
  i64 operand_sizes[3], result_sizes[3], kernel[3], stride[3], padding[3], dilation[3];
  i64 operand[5], result[5], weight[6];
  // Of the elements: see `Width`.
  i64 width;
};

__device__ __forceinline__ void unfold3(i64 index, const i64 (&sizes)[3], i64 (&at)[3]) {
  at[2] = index % sizes[2];
  index /= sizes[2];
  at[1] = index % sizes[1];
  at[0] = index / sizes[1];
}

