// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/folder_name.h"

#include <charconv>

#include <fmt/format.h>

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kPartial = ".partial-";
constexpr std::string_view kOld = ".old-";

bool is_id(std::string_view text) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
  return !text.empty() && text.size() <= 128 && text.find_first_not_of(kAllowed) == text.npos;
}

}  // namespace

std::string to_text(const FolderName& name) {
  std::string plain = fmt::format("{}{}", kStep, name.step);
  if (name.kind == FolderName::Kind::plain) return plain;
  return fmt::format("{}{}{}", plain, name.kind == FolderName::Kind::partial ? kPartial : kOld, name.id);
}

std::optional<FolderName> parse_folder_name(std::string_view text) {
  if (!text.starts_with(kStep)) return std::nullopt;
  FolderName name;
  const std::string_view number = text.substr(kStep.size(), text.find('.') - kStep.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.step);
  if (error != std::errc() || end != number.data() + number.size() || name.step < 0) return std::nullopt;
  const std::string_view rest = text.substr(kStep.size() + number.size());
  for (const auto& [infix, kind] :
       {std::pair(kPartial, FolderName::Kind::partial), std::pair(kOld, FolderName::Kind::old)}) {
    if (!rest.starts_with(infix)) continue;
    name.kind = kind;
    name.id = rest.substr(infix.size());
  }
  const bool is_good = rest.empty() || is_id(name.id);
  // Also refuses other ways to write a number, such as 007.
  return is_good && to_text(name) == text ? std::optional(name) : std::nullopt;
}

}  // namespace lockstep::checkpoint
