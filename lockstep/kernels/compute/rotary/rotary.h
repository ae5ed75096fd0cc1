// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding (Su et al., RoFormer, 2021): in each head of width w, the pair of columns i and i + w / 2
// (the layout of Hugging Face's LLaMA) is turned by the angle place * theta^(-2 i / w), or by what
// frequencies.h makes of it for long texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/kernels/compute/matrix.h"
#include "lockstep/kernels/compute/rotary/frequencies.h"
#include "lockstep/kernels/compute/rows/places.h"

namespace lockstep::kernels {

// Sines and cosines of the places 0 .. length - 1, computed once and kept by the caller.
class RotaryTable {
 public:
  // `width` of a head. Errors are those of rotary_frequencies().
  RotaryTable(std::size_t length, std::size_t width, double theta,
              const std::optional<RotaryScaling>& scaling = std::nullopt);

  std::size_t length() const { return length_; }
  std::size_t width() const { return width_; }
  // width / 2 values each
  std::span<const float> cosines(std::size_t place) const { return half_row(cosines_, place); }
  std::span<const float> sines(std::size_t place) const { return half_row(sines_, place); }

 private:
  std::span<const float> half_row(const std::vector<float>& all, std::size_t place) const {
    return std::span(all).subspan(place * (width_ / 2), width_ / 2);
  }

  std::size_t length_;
  std::size_t width_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

// The backward pass turns gradients back.
enum class Rotation : std::uint8_t { forward, backward };

// Turns all heads of the rows (queries or keys), in place. UsageError unless the columns are whole heads, the
// rows whole sequences, and the table has all places.
void rotate(const RotaryTable& table, const Places& places, const Matrix& heads, Rotation rotation);

// The same in plain C++ and fp64, with angles of its own: the twin that tests compare with.
void rotate_reference(std::size_t width, double theta, const Places& places, const Matrix& heads,
                      Rotation rotation);

}  // namespace lockstep::kernels
