// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/embedding.h"

#include <span>

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>

#include "lockstep/kernels/compute/embedding/embedding.h"
#include "lockstep/nn/additions.h"
#include "lockstep/nn/fan.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

// A negative token is a number beyond every table, and refused as such.
std::span<const std::uint32_t> ids_of(const at::Tensor& tokens) {
  return {reinterpret_cast<const std::uint32_t*>(tokens.data_ptr<std::int32_t>()),
          static_cast<std::size_t>(tokens.numel())};
}

struct Embedding : torch::autograd::Function<Embedding> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tokens, const at::Tensor& table,
                            const at::Tensor& table_gradient, const OptionalTensor& places,
                            const OptionalTensor& places_gradient, std::int64_t first) {
    const at::Tensor ids = tokens.contiguous();
    at::Tensor out = at::empty({tokens.size(0), tokens.size(1), table.size(1)}, table.options());
    kernels::PlaceTable<kernels::ConstMatrix> by_place;
    if (places) {
      by_place = {matrix_of(*places),
                  {static_cast<std::size_t>(tokens.size(1)), static_cast<std::size_t>(first)}};
    }
    kernels::embedding_forward(matrix_of(table), ids_of(ids), by_place, matrix_of(out));
    context->save_for_backward({ids});
    context->saved_data["table_gradient"] = table_gradient;
    context->saved_data["first"] = first;
    if (places) context->saved_data["places_gradient"] = *places_gradient;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto places = context->saved_data.find("places_gradient");
    add_to_gradients(
        [ids = context->get_saved_variables()[0], dy = as_rows(gradients[0]),
         table_gradient = context->saved_data["table_gradient"].toTensor(),
         places_gradient = places == context->saved_data.end() ? at::Tensor() : places->second.toTensor(),
         first = context->saved_data["first"].toInt()] {
          kernels::PlaceTable<kernels::Matrix> by_place;
          if (places_gradient.defined()) {
            by_place = {matrix_of(places_gradient),
                        {static_cast<std::size_t>(ids.size(1)), static_cast<std::size_t>(first)}};
          }
          kernels::embedding_backward(ids_of(ids), matrix_of(dy), matrix_of(table_gradient), by_place);
        });
    return {{}, {}, {}, {}, {}, {}};
  }
};

kernels::Matrix rows_of_lane(const at::Tensor& part, const LaneRun& run) {
  return matrix_of(part.narrow(0, 0, run.count));
}
kernels::TablePart part_of(const LaneRun& run, std::int64_t vocabulary) {
  return {static_cast<std::uint32_t>(run.first), static_cast<std::uint32_t>(vocabulary)};
}

struct DividedEmbedding : torch::autograd::Function<DividedEmbedding> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tokens, at::TensorList parts,
                            const std::vector<at::Tensor>& gradients, std::int64_t vocabulary,
                            const Lanes& lanes) {
    const at::Tensor ids = tokens.contiguous();
    const at::Tensor room = room_for_sums(lanes, parts[0].size(1), parts[0].options()).zero_();
    const at::Tensor rows = room.narrow(0, 0, lanes.tokens);
    for (int i = 0; i < lanes.here(); ++i) {
      const LaneRun run = lanes.run_of(vocabulary, i);
      kernels::embedding_part_forward(rows_of_lane(parts[static_cast<std::size_t>(i)], run),
                                      part_of(run, vocabulary), ids_of(ids), matrix_of(rows));
    }
    context->save_for_backward({ids});
    context->saved_data["gradients"] = gradients;
    context->saved_data["vocabulary"] = vocabulary;
    context->saved_data["lanes"] = keep(lanes);
    const at::Tensor sum = sum_over_members(room, lanes);
    return lanes.divide_tokens() ? sum : sum.view({tokens.size(0), tokens.size(1), -1});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Lanes lanes = kept<Lanes>(context->saved_data["lanes"]);
    const std::int64_t vocabulary = context->saved_data["vocabulary"].toInt();
    const std::vector<at::Tensor> parts = context->saved_data["gradients"].toTensorVector();
    const std::size_t inputs = parts.size() + 4;
    add_to_gradients([ids = saved[0], rows = gather_tokens(gradients[0], lanes), parts, vocabulary, lanes] {
      for (int i = 0; i < lanes.here(); ++i) {
        const LaneRun run = lanes.run_of(vocabulary, i);
        kernels::embedding_part_backward(ids_of(ids), matrix_of(rows),
                                         rows_of_lane(parts[static_cast<std::size_t>(i)], run),
                                         part_of(run, vocabulary));
      }
    });
    return variable_list(inputs);
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& tokens, const Parameter& table, const Parameter* places,
                     std::int64_t first) {
  if (!has_kernels(table.value)) {
    const at::Tensor rows = at::embedding(tracked(table), tokens.to(at::kLong));
    return places == nullptr ? rows : rows.add(tracked(*places).narrow(0, first, tokens.size(1)));
  }
  return Embedding::apply(tokens, table.value, table.gradient, value_of(places), gradient_of(places), first);
}

at::Tensor embedding(const at::Tensor& tokens, const DividedTable& table, const Lanes& lanes) {
  if (!lanes.several()) return embedding(tokens, *table.parts[0]);
  std::vector<at::Tensor> parts, gradients;
  for (const Parameter* part : table.parts) {
    require_kernels_for_lanes(part->value, lanes);
    parts.push_back(part->value);
    gradients.push_back(part->gradient);
  }
  return DividedEmbedding::apply(tokens, at::TensorList(parts), gradients, table.vocabulary, lanes);
}

}  // namespace lockstep::nn
