// Random numbers: the CPU's, from the same words. Element i (its place in row-major order) takes
// its words from Philox at counter `offset + i * draws / 4`; a thread computes a counter's four
// words and the elements made of them. Sums and products that the CPU rounds apart are never
// fused here.

// Philox 4x32 with 10 rounds; see the CPU's `philox.rs`.
struct Four { u32 v[4]; };

__device__ __forceinline__ Four philox(u64 seed, u64 counter) {
  Four state = {{(u32)counter, (u32)(counter >> 32), 0, 0}};
  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    u64 a = 0xd2511f53ull * state.v[0], b = 0xcd9e8d57ull * state.v[2];
    state = {{(u32)(b >> 32) ^ state.v[1] ^ k0, (u32)b, (u32)(a >> 32) ^ state.v[3] ^ k1, (u32)a}};
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return state;
}

// Where numbers come from. In a captured graph `memory` holds the seed and what the offset counts
// from.
struct Stream { u64 seed, offset; };

__device__ __forceinline__ Stream stream_of(u64 seed, u64 offset, const u64 *memory) {
  if (!memory) return {seed, offset};
  return {memory[0], memory[1] + offset};
}

__device__ __forceinline__ i64 place(const Strided &s, i32 dense, i64 i) {
  if (dense) return i;
  i64 at[1];
  locate<1>(s, i, at);
  return at[0];
}

// Calls `make(words, i)` for groups of `each` elements from i on.
template <typename Make> __device__ __forceinline__ void draw(i64 n, int each, Stream stream, Make make) {
  for (i64 group = first_index(); group * each < n; group += all_threads()) make(philox(stream.seed, stream.offset + group), group * each);
}

__device__ __forceinline__ u64 joined(u32 low, u32 high) { return (u64)high << 32 | low; }
// A uniform number in [0, 1) of as many bits as each type holds exactly.
__device__ __forceinline__ f64 unit64(u32 low, u32 high) { return (f64)(joined(low, high) >> 11) * (1.0 / 9007199254740992.0); }
__device__ __forceinline__ f32 unit32(u32 word, int bits) { return (f32)(i32)(word >> (32 - bits)) * (1.0f / (f32)(1u << bits)); }

#define RANDOM(name, ...) \
  KERNEL(name)(i64 n, Strided s, i32 dense, i32 code, u64 seed, u64 offset, const u64 *memory, __VA_ARGS__)

RANDOM(uniform, f64 low, f64 high, void *out) {
  in_turn();
  Stream stream = stream_of(seed, offset, memory);
  if (code == F64) {
    draw(n, 2, stream, [&](Four w, i64 i) {
      for (int k = 0; k < 2 && i + k < n; ++k) {
        f64 value = __dadd_rn(__dmul_rn(unit64(w.v[2 * k], w.v[2 * k + 1]), high - low), low);
        ((f64 *)out)[place(s, dense, i + k)] = value >= high ? low : value;
      }
    });
    return;
  }
  int bits = code == F32 ? 24 : code == F16 ? 11 : 8;
  f32 width = (f32)(high - low), from = (f32)low;
  draw(n, 4, stream, [&](Four w, i64 i) {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (i + k < n) {
        f32 value = __fadd_rn(__fmul_rn(unit32(w.v[k], bits), width), from);
        f32 kept = code == F32 ? value : code == F16 ? load(Store<f16>::from(value)) : load(Store<bf16>::from(value));
        // What is rounded up to the end goes to the start, which gets half of its share.
        keep<f32>(out, place(s, dense, i + k), code, kept >= (f32)high ? from : value);
      }
  });
}

// The natural logarithm of numbers in (0, 1] as the CPU's `math32.rs` computes it, to the bit.
__device__ f32 logarithm(f32 x) {
  i32 bits = __float_as_int(x), exponent = (bits - 0x3f3504f3) >> 23;
  f32 f = __fsub_rn(__int_as_float(bits - (exponent << 23)), 1.0f), power = (f32)exponent;
  const f32 terms[8] = {0.3333333f,  -0.25000826f, 0.20001236f, -0.16623144f, 0.14201373f, -0.13162017f, 0.12765402f, -0.07634321f};
  f32 tail = terms[7];
#pragma unroll
  for (int k = 6; k >= 0; --k) tail = __fmaf_rn(tail, f, terms[k]);
  f32 square = __fmul_rn(f, f);
  f32 small = __fmaf_rn(power, -2.1219444e-4f, __fmul_rn(__fmul_rn(square, f), tail));
  small = __fmaf_rn(square, -0.5f, small);
  return __fmaf_rn(power, 0.6933594f, __fadd_rn(f, small));
}

__device__ __forceinline__ f32 horner(f32 z, f32 a, f32 b, f32 c, f32 d, f32 e) {
  return __fmaf_rn(__fmaf_rn(__fmaf_rn(__fmaf_rn(e, z, d), z, c), z, b), z, a);
}

// Sine and cosine of full turns, as the CPU's.
__device__ void sin_cos_turns(f32 turns, f32 &sine, f32 &cosine) {
  f32 quarters = __fmul_rn(4.0f, turns), shifted = __fadd_rn(quarters, 12582912.0f);
  f32 r = __fsub_rn(quarters, __fsub_rn(shifted, 12582912.0f)), z = __fmul_rn(r, r);
  u32 quadrant = __float_as_uint(shifted);
  f32 sin = __fmul_rn(r, horner(z, 1.5707964f, -0.6459641f, 0.07969258f, -0.004681266f, 0.00015820585f));
  f32 cos = horner(z, 1.0f, -1.2337005f, 0.2536692f, -0.020860069f, 0.0009036255f);
  bool odd = quadrant & 1;
  sine = __uint_as_float(__float_as_uint(odd ? cos : sin) ^ (quadrant & 2) << 30);
  cosine = __uint_as_float(__float_as_uint(odd ? sin : cos) ^ (quadrant + 1 & 2) << 30);
}

// Box and Muller's pairs.
RANDOM(normal, f64 mean, f64 deviation, void *out) {
  in_turn();
  Stream stream = stream_of(seed, offset, memory);
  if (code == F64) {
    draw(n, 2, stream, [&](Four w, i64 i) {
      f64 radius = ::sqrt(-2.0 * ::log(1.0 - unit64(w.v[0], w.v[1]))), sine, cosine;
      ::sincos(2.0 * 3.14159265358979323846 * unit64(w.v[2], w.v[3]), &sine, &cosine);
      f64 pair[2] = {radius * cosine, radius * sine};
      for (int k = 0; k < 2 && i + k < n; ++k) ((f64 *)out)[place(s, dense, i + k)] = ::fma(pair[k], deviation, mean);
    });
    return;
  }
  f32 around = (f32)mean, wide = (f32)deviation;
  draw(n, 4, stream, [&](Four w, i64 i) {
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
      f32 radius = __fsqrt_rn(__fmul_rn(-2.0f, logarithm(__fsub_rn(1.0f, unit32(w.v[j], 24))))), pair[2];
      sin_cos_turns(unit32(w.v[j + 1], 24), pair[1], pair[0]);
      for (int k = 0; k < 2 && i + j + k < n; ++k)
        keep<f32>(out, place(s, dense, i + j + k), code, __fmaf_rn(__fmul_rn(radius, pair[k]), wide, around));
    }
  });
}

RANDOM(integer, i64 low, u64 range, void *out) {
  in_turn();
  draw(n, 2, stream_of(seed, offset, memory), [&](Four w, i64 i) {
    for (int k = 0; k < 2 && i + k < n; ++k) {
      i64 value = low + (i64)__umul64hi(joined(w.v[2 * k], w.v[2 * k + 1]), range), at = place(s, dense, i + k);
      if (code >= F16) keep<f64>(out, at, code, (f64)value);
      else keep<i64>(out, at, code, value);
    }
  });
}

enum Formula { EXPONENTIAL, CAUCHY, GEOMETRIC, BERNOULLI };

__device__ f64 by(i32 which, f64 a, f64 b, f64 u) {
  switch (which) {
    case EXPONENTIAL: return -::log1p(-u) / a;
    case CAUCHY: return a + b * ::tan(3.14159265358979323846 * (u + 1.0 / 18014398509481984.0 - 0.5));
    case GEOMETRIC: return a >= 1 ? 1.0 : ::fmax(::ceil(::log1p(-u) / ::log1p(-a)), 1.0);
    default: return u < a;
  }
}

RANDOM(formula, i32 which, f64 a, f64 b, void *out) {
  in_turn();
  draw(n, 2, stream_of(seed, offset, memory), [&](Four w, i64 i) {
    for (int k = 0; k < 2 && i + k < n; ++k)
      keep<f64>(out, place(s, dense, i + k), code, by(which, a, b, unit64(w.v[2 * k], w.v[2 * k + 1])));
  });
}

// Operand 0 of the layout is the output, operand 1 is x. Words from `threshold` on keep their
// element.
RANDOM(dropout, u64 threshold, f64 scale, const void *x, void *out) {
  in_turn();
  draw(n, 4, stream_of(seed, offset, memory), [&](Four w, i64 i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (i + k >= n) break;
      i64 at[2] = {i + k, i + k};
      if (!dense) locate<2>(s, i + k, at);
      bool kept = (w.v[k] >> 8) >= threshold;
      if (code == F64) ((f64 *)out)[at[0]] = kept ? ((const f64 *)x)[at[1]] * scale : 0.0;
      else keep<f32>(out, at[0], code, kept ? element<f32>(x, at[1], code) * (f32)scale : 0.0f);
    }
  });
}
