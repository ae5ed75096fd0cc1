// SPDX-License-Identifier: Apache-2.0
//
// The corpus formats that can be read. Each function checks the whole structure of its files, and gives a
// source whose tokens are all below `vocab_size` or raise when read. UsageError: a file cannot be opened;
// DataError: it breaks its format, with file and offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/data/corpus/token_source.h"

namespace lockstep::data {

// PREFIX.bin and PREFIX.idx; see megatron_index.h.
std::unique_ptr<TokenSource> open_megatron(const std::string& prefix, std::uint64_t vocab_size);

// llm.c: i32 header[256] = {20240520, 1, tokens} and u16 tokens, or {20240801, 7, tokens} and u32 tokens.
std::unique_ptr<TokenSource> open_llmc(const std::string& path, std::uint64_t vocab_size);
bool is_llmc(const std::string& path);

// nanoGPT: u16 tokens and nothing else.
std::unique_ptr<TokenSource> open_nanogpt(const std::string& path, std::uint64_t vocab_size);

}  // namespace lockstep::data
