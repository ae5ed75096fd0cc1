// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/gemm/onednn.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>
#include <omp.h>

namespace lockstep::kernels {
namespace {

using dnnl::memory;

// All that a prepared product depends on.
struct Shape {
  std::size_t rows, columns, inner;
  std::size_t stride_a, stride_b, stride_c;
  DType factors, product;
  bool transposed_a, transposed_b, adds;

  bool operator==(const Shape&) const = default;
};

struct ShapeHash {
  std::size_t operator()(const Shape& shape) const {
    std::size_t hash = 0;
    for (std::size_t value : {shape.rows, shape.columns, shape.inner, shape.stride_a, shape.stride_b,
                              shape.stride_c, std::size_t{shape.transposed_a}, std::size_t{shape.adds}}) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    }
    return hash;
  }
};

memory::data_type type_of(DType dtype) {
  return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc describe(std::size_t rows, std::size_t columns, std::size_t stride, DType dtype,
                      bool transposed) {
  const auto step = static_cast<memory::dim>(stride);
  const memory::dims dims = {static_cast<memory::dim>(rows), static_cast<memory::dim>(columns)};
  return {dims, type_of(dtype), transposed ? memory::dims{1, step} : memory::dims{step, 1}};
}

// The library would use its own threads, and more of them would mean other blocks and another order of
// addition.
class Alone {
 public:
  Alone() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() { omp_set_num_threads(threads_); }

 private:
  int threads_;
};

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A product that is ready to run on one thread.
class Prepared {
 public:
  explicit Prepared(const Shape& shape)
      : a_(describe(shape.rows, shape.inner, shape.stride_a, shape.factors, shape.transposed_a)),
        b_(describe(shape.inner, shape.columns, shape.stride_b, shape.factors, shape.transposed_b)),
        c_(describe(shape.rows, shape.columns, shape.stride_c, shape.product, false)),
        description_(dnnl::matmul::desc(a_, b_, c_), attributes(shape), cpu()),
        primitive_(description_),
        scratchpad_(description_.scratchpad_desc().get_size()) {}

  void run(const void* a, const void* b, void* c) {
    dnnl::stream stream(cpu());
    primitive_.execute(
        stream, {{DNNL_ARG_SRC, memory(a_, cpu(), const_cast<void*>(a))},
                 {DNNL_ARG_WEIGHTS, memory(b_, cpu(), const_cast<void*>(b))},
                 {DNNL_ARG_DST, memory(c_, cpu(), c)},
                 {DNNL_ARG_SCRATCHPAD, memory(description_.scratchpad_desc(), cpu(), scratchpad_.data())}});
    stream.wait();
  }

 private:
  static dnnl::primitive_attr attributes(const Shape& shape) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (shape.adds) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
    return attributes;
  }

  memory::desc a_, b_, c_;
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul primitive_;
  std::vector<std::byte> scratchpad_;
};

// Preparing takes as long as a small product runs, and a training step repeats the same few dozen.
Prepared& prepared(const Shape& shape) {
  constexpr std::size_t kMost = 512;
  thread_local std::unordered_map<Shape, Prepared, ShapeHash> known;
  if (known.size() >= kMost) known.clear();
  return known.try_emplace(shape, shape).first->second;
}

}  // namespace

void multiply(const Factor& a, const Factor& b, const Matrix& c, Store store) {
  const Alone alone;
  prepared({.rows = c.rows,
            .columns = c.columns,
            .inner = a.columns(),
            .stride_a = a.matrix.stride,
            .stride_b = b.matrix.stride,
            .stride_c = c.stride,
            .factors = a.matrix.dtype,
            .product = c.dtype,
            .transposed_a = a.transposed,
            .transposed_b = b.transposed,
            .adds = store == Store::add})
      .run(a.matrix.data, b.matrix.data, c.data);
}

}  // namespace lockstep::kernels
