// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace lockstep::data {
namespace {

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
using Code = std::unique_ptr<pcre2_code, Release<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Release<pcre2_match_context_free>>;

constexpr std::uint32_t kMatchLimit = 10'000'000;
constexpr std::size_t kMaxPattern = 1 << 16;

// White space by Unicode's property, which is what Hugging Face's \s means; that of PCRE2 has U+180E too.
constexpr const char kSpaces[] = R"(\t-\r \x{85}\p{Z})";

std::string with_unicode_spaces(std::string_view pattern) {
  std::string result;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char escaped = c == '\\' && i + 1 < pattern.size() ? pattern[++i] : '\0';
    if (escaped == 's') {
      result += in_class ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
    } else if (escaped == 'S' && !in_class) {
      result += fmt::format("[^{}]", kSpaces);
    } else if (escaped != '\0') {
      result += {c, escaped};
    } else {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      result += c;
    }
  }
  return result;
}

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

PCRE2_SPTR as_subject(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::size_t next_character(std::string_view text, std::size_t at) {
  do ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

class RegexSplitter : public Splitter {
 public:
  explicit RegexSplitter(const std::string& pattern) : context_(pcre2_match_context_create(nullptr)) {
    if (pattern.size() > kMaxPattern)
      throw UsageError("a pre-tokenizer pattern of the tokenizer is too long");
    const std::string ours = with_unicode_spaces(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(as_subject(ours), ours.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                              &error, &offset, nullptr));
    if (!code_) {
      throw UsageError(
          fmt::format("cannot use the pre-tokenizer pattern '{}' of the tokenizer: {} near character {}",
                      pattern.substr(0, 200), message_of(error), offset));
    }
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // without it matching is slower, not wrong
    pcre2_set_match_limit(context_.get(), kMatchLimit);
  }

  void split(std::string_view text, std::vector<std::size_t>& ends) const override {
    ends.clear();
    const MatchData match(pcre2_match_data_create(1, nullptr));
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(match.get());
    std::size_t from = 0;
    std::size_t cut = 0;  // where the last word ended
    while (from < text.size()) {
      // The text has been checked once; checking it again at every match would take quadratic time.
      const int count = pcre2_match(code_.get(), as_subject(text), text.size(), from, PCRE2_NO_UTF_CHECK,
                                    match.get(), context_.get());
      if (count == PCRE2_ERROR_NOMATCH) break;
      if (count < 0)
        throw DataError(
            fmt::format("cutting a text of {} bytes into words: {}", text.size(), message_of(count)));
      from = found[1];
      if (found[1] == found[0]) {
        from = next_character(text, from);
        continue;
      }
      if (found[0] > cut) ends.push_back(found[0]);
      ends.push_back(found[1]);
      cut = found[1];
    }
    if (cut < text.size()) ends.push_back(text.size());
  }

 private:
  Code code_;
  MatchContext context_;
};

}  // namespace

std::unique_ptr<Splitter> regex_splitter(const std::string& pattern) {
  return std::make_unique<RegexSplitter>(pattern);
}

}  // namespace lockstep::data
