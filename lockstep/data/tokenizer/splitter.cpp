// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/splitter.h"

#include <utility>

namespace lockstep::data {

SplitterChain::SplitterChain(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) stages_.push_back(regex_splitter(pattern));
}

void SplitterChain::split(std::string_view text, std::vector<std::size_t>& ends) const {
  ends.clear();
  if (text.empty()) return;
  if (stages_.empty()) return ends.push_back(text.size());
  stages_.front()->split(text, ends);
  std::vector<std::size_t> finer, within;
  for (std::size_t stage = 1; stage < stages_.size(); ++stage) {
    finer.clear();
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      stages_[stage]->split(text.substr(begin, end - begin), within);
      for (const std::size_t inner : within) finer.push_back(begin + inner);
      begin = end;
    }
    std::swap(ends, finer);
  }
}

}  // namespace lockstep::data
