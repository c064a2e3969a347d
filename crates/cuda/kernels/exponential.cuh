// Exponentials, and what sums of them begin with.

// 2 to the power of x, as the processor gives it: what is below the least normal number is 0.
__device__ __forceinline__ f32 power_of_two(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

const f32 LOG2_E = 1.4426950408889634f;

// As exact as `T` is: halves keep less than the processor's own exponential gives, which takes what
// is below the least normal number for 0.
template <typename T> __device__ __forceinline__ typename Compute<T>::number exponential(typename Compute<T>::number x) {
  if constexpr (sizeof(T) == 2) {
    return power_of_two(x * LOG2_E);
  } else {
    return ::exp(x);
  }
}

template <typename C> __device__ C lowest();
template <> __device__ __forceinline__ f32 lowest<f32>() { return __int_as_float((int)0xff800000); }
template <> __device__ __forceinline__ f64 lowest<f64>() { return __longlong_as_double((i64)0xfff0000000000000ull); }
