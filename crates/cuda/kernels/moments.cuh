// Sums of exponentials that cannot overflow.

// The largest number so far and the sum of exp(number - largest). A NaN is left for the sum to
// carry.
template <typename C> struct Moments {
  C top, sum;

  __device__ Moments() : top(lowest<C>()), sum(0) {}

  // Nothing is subtracted from numbers of minus infinity, so that they count 0 and not NaN.
  __device__ C base() const { return top == lowest<C>() ? (C)0 : top; }

  __device__ void raise(C other) {
    if (!(other > top)) return;
    sum *= exponential<C>(top - other);
    top = other;
  }

  __device__ void take(C number) {
    raise(number);
    sum += exponential<C>(number - base());
  }
};

template <typename C> __device__ __forceinline__ Moments<C> warp_moments(const Moments<C> &own) {
  Moments<C> all;
  all.top = Team<true>::template fold<Larger>(own.top, lowest<C>());
  all.sum = Team<true>::sum(own.sum * exponential<C>(own.top - all.base()));
  return all;
}

// The moments of a team's threads together, of which a block waits at one barrier; every thread has
// the result. `turn` is that of `Team::fold`.
template <bool by_warp, typename C> __device__ __forceinline__ Moments<C> team_moments(const Moments<C> &own, int turn = 0) {
  Moments<C> all = warp_moments(own);
  if (by_warp) return all;
  __shared__ C tops[2][32], sums[2][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) {
    tops[turn][warp] = all.top;
    sums[turn][warp] = all.sum;
  }
  __syncthreads();
  bool is_there = lane < (blockDim.x >> 5);
  all.top = is_there ? tops[turn][lane] : lowest<C>();
  all.sum = is_there ? sums[turn][lane] : (C)0;
  return warp_moments(all);
}
