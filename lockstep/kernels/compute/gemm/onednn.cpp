// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/gemm/onednn.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include <dnnl.hpp>
#include <fmt/format.h>

#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {
namespace {

using dnnl::memory;

// All that a prepared product depends on.
struct Shape {
  std::size_t rows, columns, inner;
  std::size_t stride_a, stride_b, stride_c;
  DType factors, product;
  bool transposed_a, transposed_b, adds, has_bias;

  bool operator==(const Shape&) const = default;
};

struct ShapeHash {
  std::size_t operator()(const Shape& shape) const {
    std::size_t hash = 0;
    for (std::size_t value :
         {shape.rows, shape.columns, shape.inner, shape.stride_a, shape.stride_b, shape.stride_c,
          std::size_t{shape.transposed_a}, std::size_t{shape.adds}, std::size_t{shape.has_bias}}) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    }
    return hash;
  }
};

memory::data_type type_of(DType dtype) {
  return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc rows_of(std::size_t rows, std::size_t columns, std::size_t stride, DType dtype,
                     bool transposed) {
  const auto step = static_cast<memory::dim>(stride);
  const memory::dims dims = {static_cast<memory::dim>(rows), static_cast<memory::dim>(columns)};
  return {dims, type_of(dtype), transposed ? memory::dims{1, step} : memory::dims{step, 1}};
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Memory for the products of this thread, which run one after the other: a pad for each would take several
// megabytes times the number of shapes.
std::byte* scratchpad_of(std::size_t bytes) {
  thread_local std::unique_ptr<std::byte[]> scratchpad;
  thread_local std::size_t size = 0;
  if (size < bytes) {
    size = 0;
    scratchpad.reset();
    scratchpad = std::make_unique_for_overwrite<std::byte[]>(bytes);
    size = bytes;
  }
  return scratchpad.get();
}

// A product that is ready to run on one thread.
class Prepared {
 public:
  explicit Prepared(const Shape& shape) : description_(describe(shape)), primitive_(description_) {
    bind(DNNL_ARG_SRC, description_.src_desc());
    bind(DNNL_ARG_WEIGHTS, description_.weights_desc());
    bind(DNNL_ARG_DST, description_.dst_desc());
    bind(DNNL_ARG_SCRATCHPAD, description_.scratchpad_desc());
    if (shape.has_bias) bind(DNNL_ARG_BIAS, description_.bias_desc());
  }

  void run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* c) {
    set(DNNL_ARG_SRC, a);
    set(DNNL_ARG_WEIGHTS, b);
    if (bias != nullptr) set(DNNL_ARG_BIAS, bias);
    set(DNNL_ARG_DST, c);
    set(DNNL_ARG_SCRATCHPAD, scratchpad_of(scratchpad_bytes_));
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  static dnnl::matmul::primitive_desc describe(const Shape& shape) {
    const memory::desc a =
        rows_of(shape.rows, shape.inner, shape.stride_a, shape.factors, shape.transposed_a);
    const memory::desc b =
        rows_of(shape.inner, shape.columns, shape.stride_b, shape.factors, shape.transposed_b);
    const memory::desc c = rows_of(shape.rows, shape.columns, shape.stride_c, shape.product, false);
    const memory::desc bias =
        shape.has_bias ? rows_of(1, shape.columns, shape.columns, shape.factors, false) : memory::desc();
#if DNNL_VERSION_MAJOR >= 3
    return {cpu(), a, b, bias, c, attributes(shape)};
#else
    return {dnnl::matmul::desc(a, b, bias, c), attributes(shape), cpu()};
#endif
  }

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

  void bind(int argument, const memory::desc& desc) {
    arguments_.emplace(argument, memory(desc, cpu(), DNNL_MEMORY_NONE));
  }
  // The interface has no word for memory that is only read.
  void set(int argument, const std::byte* data) {
    arguments_[argument].set_data_handle(const_cast<std::byte*>(data));
  }

  dnnl::matmul::primitive_desc description_;
  dnnl::matmul primitive_;
  std::size_t scratchpad_bytes_ = description_.scratchpad_desc().get_size();
  dnnl::stream stream_{cpu()};
  std::unordered_map<int, memory> arguments_;
};

// Preparing takes as long as a small product runs, and a training step repeats the same few dozen.
Prepared& prepared(const Shape& shape) {
  constexpr std::size_t kMost = 512;
  thread_local std::unordered_map<Shape, Prepared, ShapeHash> known;
  if (known.size() >= kMost) known.clear();
  return known.try_emplace(shape, shape).first->second;
}

}  // namespace

DType multiplied_as(DType dtype) {
  static const bool has_bf16 = [] {
    constexpr int kNeeded = dnnl_cpu_isa_avx512_core_bf16;
    return (static_cast<int>(dnnl::get_effective_cpu_isa()) & kNeeded) == kNeeded;
  }();
  return dtype == DType::fp16 || !has_bf16 ? DType::fp32 : dtype;
}

std::string onednn_name() {
  const auto isa = static_cast<int>(dnnl::get_effective_cpu_isa());
  std::string instructions = fmt::format("instructions {:#x}", isa);
  // Those that all versions have.
  for (const auto& [value, name] : {std::pair(dnnl_cpu_isa_sse41, "sse41"),
                                    {dnnl_cpu_isa_avx, "avx"},
                                    {dnnl_cpu_isa_avx2, "avx2"},
                                    {dnnl_cpu_isa_avx512_core, "avx512_core"},
                                    {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
                                    {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"}}) {
    if (isa == static_cast<int>(value)) instructions = name;
  }
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} for {}", version->major, version->minor, version->patch, instructions);
}

void multiply(const Factor& a, const Factor& b, const Matrix& c, const Addend& addend) {
  // The library would use its own threads, and more of them would mean other blocks and another order of
  // addition.
  const OneThread alone;
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
            .adds = addend.store == Store::add,
            .has_bias = addend.bias != nullptr})
      .run(a.matrix.data, b.matrix.data, addend.bias, c.data);
}

}  // namespace lockstep::kernels
