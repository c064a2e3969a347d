// Kernels that are compiled once for f32 and the half types, whose elements are loaded and stored
// by a number that the launch gives.

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

