// Pooling by the largest, where planes lie one after another and windows are of one size, evenly
// apart: pool.cu in 32 bits, a block for a plane or a part of one. Nothing is divided but by a
// product with the inverse.

// Mirrors `Planes` in Rust; sizes are of depth, height and width.
struct Planes {
  i64 planes, width;
  i64 x[3], y[3], kernel[3], stride[3], padding[3], dilation[3];
};

// Division by one number, of numbers below 2^22, whose floats are exact.
struct Divisor {
  i32 by;
  f32 inverse;
  __device__ explicit Divisor(i64 number) : by((i32)number), inverse(1 / (f32)number) {}
  __device__ i32 quotient(i32 number) const {
    i32 found = (i32)((f32)number * inverse), rest = number - found * by;
    return rest < 0 ? found - 1 : rest >= by ? found + 1 : found;
  }
};

// The elements of a window that are inside: the first, and how many.
struct Inside { i32 first, count; };

__device__ __forceinline__ Inside inside(const Planes &p, int d, i32 result, const Divisor &dilation) {
  i32 first = result * (i32)p.stride[d] - (i32)p.padding[d], skipped = 0, size = (i32)p.x[d];
  if (first < 0) skipped = dilation.quotient(-first + dilation.by - 1);
  first += skipped * dilation.by;
  i32 room = first < size ? dilation.quotient(size - first + dilation.by - 1) : 0, left = (i32)p.kernel[d] - skipped;
  i32 count = left < room ? left : room;
  return Inside{first, count > 0 ? count : 0};
}

KERNEL(max_pool_planes)(Planes p, const void *x, void *y, i64 *places) {
  in_turn();
  i32 height = (i32)p.y[1], width = (i32)p.y[2], space = (i32)p.y[0] * height * width;
  i32 rows = (i32)p.x[1], columns = (i32)p.x[2];
  i64 elements = p.x[0] * p.x[1] * p.x[2];
  Divisor by_width(width), by_height(height), by_depth_step(p.dilation[0]), by_row_step(p.dilation[1]), by_column_step(p.dilation[2]);
  for (i64 plane = blockIdx.x; plane < p.planes; plane += gridDim.x) {
    i64 from = plane * elements;
    for (i32 i = blockIdx.y * blockDim.x + threadIdx.x; i < space; i += gridDim.y * blockDim.x) {
      i32 line = by_width.quotient(i), at_z = by_height.quotient(line);
      Inside z = inside(p, 0, at_z, by_depth_step), h = inside(p, 1, line - at_z * height, by_row_step);
      Inside w = inside(p, 2, i - line * width, by_column_step);
      f32 best = __int_as_float((int)0xff800000);
      i32 place = (z.first * rows + h.first) * columns + w.first;
      for (i32 a = 0; a < z.count; ++a)
        for (i32 b = 0; b < h.count; ++b) {
          i32 row = ((z.first + a * by_depth_step.by) * rows + h.first + b * by_row_step.by) * columns + w.first;
          for (i32 c = 0; c < w.count; ++c) {
            f32 value = fetched<f32>(x, from + row + c * by_column_step.by, p.width);
            if (value > best || value != value) {
              best = value;
              place = row + c * by_column_step.by;
            }
          }
        }
      put<f32>(y, plane * space + i, p.width, best);
      if (places) places[plane * space + i] = place;
    }
  }
}

// The results whose windows may have element `at`: from, until.
__device__ __forceinline__ void seen_by(const Planes &p, int d, i32 at, const Divisor &stride, i32 &from, i32 &until) {
  i32 last = at + (i32)p.padding[d], first = last - ((i32)p.kernel[d] - 1) * (i32)p.dilation[d];
  from = first <= 0 ? 0 : stride.quotient(first + stride.by - 1);
  until = stride.quotient(last) + 1;
  if (until > (i32)p.y[d]) until = (i32)p.y[d];
}

// What comes back to each element of x from the results that it was the largest of, in their order.
KERNEL(max_pool_planes_backward)(Planes p, const void *grad, const i64 *places, void *x) {
  in_turn();
  i32 height = (i32)p.x[1], width = (i32)p.x[2], space = (i32)p.x[0] * height * width;
  i32 rows = (i32)p.y[1], columns = (i32)p.y[2];
  i64 results = p.y[0] * p.y[1] * p.y[2];
  Divisor by_width(width), by_height(height), by_depth(p.stride[0]), by_row(p.stride[1]), by_column(p.stride[2]);
  for (i64 plane = blockIdx.x; plane < p.planes; plane += gridDim.x) {
    i64 base = plane * results;
    for (i32 i = blockIdx.y * blockDim.x + threadIdx.x; i < space; i += gridDim.y * blockDim.x) {
      i32 line = by_width.quotient(i), at_z = by_height.quotient(line), from[3], until[3];
      seen_by(p, 0, at_z, by_depth, from[0], until[0]);
      seen_by(p, 1, line - at_z * height, by_row, from[1], until[1]);
      seen_by(p, 2, i - line * width, by_column, from[2], until[2]);
      f32 sum = 0;
      for (i32 a = from[0]; a < until[0]; ++a)
        for (i32 b = from[1]; b < until[1]; ++b)
          for (i32 c = from[2]; c < until[2]; ++c) {
            i64 at = base + (a * rows + b) * columns + c;
            if (places[at] == i) sum += fetched<f32>(grad, at, p.width);
          }
      put<f32>(x, plane * space + i, p.width, sum);
    }
  }
}
