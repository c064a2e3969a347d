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

// Elements of a tensor of the type that is computed in, or, of f32, of a half type.
enum Width { WHOLE, HALF, BRAIN };

template <typename C> __device__ __forceinline__ C fetched(const void *from, i64 at, i64 width) { return ((const C *)from)[at]; }
template <> __device__ __forceinline__ f32 fetched<f32>(const void *from, i64 at, i64 width) {
  if (width == WHOLE) return ((const f32 *)from)[at];
  u16 bits = ((const u16 *)from)[at];
  return width == HALF ? load(f16{bits}) : load(bf16{bits});
}
template <typename C> __device__ __forceinline__ void put(void *to, i64 at, i64 width, C value) { ((C *)to)[at] = value; }
template <> __device__ __forceinline__ void put<f32>(void *to, i64 at, i64 width, f32 value) {
  if (width == WHOLE) ((f32 *)to)[at] = value;
  else if (width == HALF) ((f16 *)to)[at] = Store<f16>::from(value);
  else ((bf16 *)to)[at] = Store<bf16>::from(value);
}

