// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/handshake.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/wire.h"

namespace lockstep::transport {
namespace {

constexpr std::string_view kMagic = "LOCKSTEP";
constexpr std::uint16_t kVersion = 1;
constexpr std::string_view kProofContext = "lockstep handshake 1";
constexpr std::size_t kProofBytes = 32;
constexpr std::size_t kMaxRole = 32;
constexpr std::size_t kMaxRun = 64;
// magic, version, side, zero, rank, generation, role and run padded with zeros, nonce
constexpr std::size_t kHelloBytes = 8 + 2 + 1 + 1 + 4 + 8 + kMaxRole + kMaxRun + kNonceBytes;
constexpr std::size_t kVerdictBytes = 1 + kProofBytes;
constexpr std::byte kRefused{0};
constexpr std::byte kAccepted{1};
static_assert(kHelloBytes + kProofBytes + kVerdictBytes <= Handshake::kMaxBytes);

Side other(Side side) {
  return side == Side::dialer ? Side::listener : Side::dialer;
}

bool is_role(std::string_view text) {
  return !text.empty() && text.size() <= kMaxRole &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

bool is_run(std::string_view text) {
  return text.size() <= kMaxRun && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                  c == '_' || c == '-';
         });
}

void check_own(const Identity& me) {
  if (!is_role(me.role)) throw UsageError(fmt::format("bad role '{}': use 1 to 32 of a-z and _", me.role));
  if (!is_run(me.run)) {
    throw UsageError(fmt::format("bad run name '{}': use at most 64 of A-Z a-z 0-9 . _ -", me.run));
  }
  if (me.rank < -1) throw UsageError(fmt::format("bad rank {}", me.rank));
}

// The text without its zero padding; a text with zeros inside fails is_role and is_run.
std::string unpadded(ConstBytes field) {
  std::string text(reinterpret_cast<const char*>(field.data()), field.size());
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

void put_padded(WireWriter& out, const std::string& text, std::size_t size) {
  out.put(std::as_bytes(std::span(text)));
  for (std::size_t i = text.size(); i < size; ++i) out.put(std::uint8_t{0});
}

std::vector<std::byte> encode_hello(Side side, const Identity& me, const Nonce& nonce) {
  std::vector<std::byte> hello(kHelloBytes);
  WireWriter out(hello);
  out.put(std::as_bytes(std::span(kMagic)));
  out.put(kVersion);
  out.put(static_cast<std::uint8_t>(side));
  out.put(std::uint8_t{0});
  out.put(static_cast<std::uint32_t>(me.rank));
  out.put(me.generation);
  put_padded(out, me.role, kMaxRole);
  put_padded(out, me.run, kMaxRun);
  out.put(ConstBytes(nonce));
  return hello;
}

[[noreturn]] void refuse(const std::string& why) {
  throw AuthenticationError(why);
}

// Looks at a hello of which `bytes` have arrived, so that a stranger is refused at its first wrong byte.
void check_magic(ConstBytes hello) {
  const ConstBytes magic = std::as_bytes(std::span(kMagic));
  const std::size_t known = std::min(hello.size(), magic.size());
  if (!std::ranges::equal(hello.first(known), magic.first(known))) {
    refuse(
        "the other side does not speak the Lockstep handshake (is TLS on at one side only, or is this "
        "the port of another program?)");
  }
}

Identity decode_hello(ConstBytes hello, Side expected) {
  WireReader in(hello.subspan(kMagic.size()));
  const auto version = in.get<std::uint16_t>();
  if (version != kVersion) {
    refuse(
        fmt::format("the other side speaks version {} of the handshake, we speak {}: use the same release "
                    "of Lockstep everywhere",
                    version, kVersion));
  }
  const auto side = in.get<std::uint8_t>();
  const auto zero = in.get<std::uint8_t>();
  Identity peer;
  peer.rank = static_cast<Rank>(in.get<std::uint32_t>());
  peer.generation = in.get<std::uint64_t>();
  peer.role = unpadded(in.get_bytes(kMaxRole));
  peer.run = unpadded(in.get_bytes(kMaxRun));
  if (side != static_cast<std::uint8_t>(expected)) refuse("our own side of the handshake came back");
  if (zero != 0 || peer.rank < -1 || !is_role(peer.role) || !is_run(peer.run)) {
    refuse("the hello of the other side is malformed");
  }
  return peer;
}

ConstBytes nonce_of(const std::vector<std::byte>& hello) {
  return ConstBytes(hello).last(kNonceBytes);
}

void check_same_run(const Identity& mine, const Identity& theirs) {
  if (theirs.role != mine.role) {
    refuse(fmt::format("the other side has the role '{}', we have '{}'", theirs.role, mine.role));
  }
  if (theirs.run != mine.run) {
    refuse(fmt::format("the other side belongs to run '{}', we belong to '{}'", theirs.run, mine.run));
  }
  if (theirs.generation != mine.generation) {
    refuse(fmt::format("the other side is of generation {} of run '{}', we are of {}", theirs.generation,
                       mine.run, mine.generation));
  }
}

bool equal_in_constant_time(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Handshake::Handshake(Side side, const Identity& me, const Secret& secret, const Nonce& fresh_nonce)
    : side_(side), me_(me), secret_(secret) {
  check_own(me);
  my_hello_ = encode_hello(side, me, fresh_nonce);
  if (side_ == Side::dialer) send_hello();
}

std::vector<std::byte> Handshake::take_output() {
  return std::exchange(output_, {});
}

std::size_t Handshake::wanted() const {
  switch (state_) {
    case State::hello:
      return kHelloBytes - input_.size();
    case State::proof:
      return kProofBytes - input_.size();
    case State::verdict:
      return input_.empty() ? 1 : kVerdictBytes - input_.size();
    case State::done:
      return 0;
  }
  return 0;
}

std::size_t Handshake::feed(ConstBytes received) {
  std::size_t used = 0;
  while (used < received.size() && !done()) {
    const std::size_t taken = std::min(wanted(), received.size() - used);
    const ConstBytes piece = received.subspan(used, taken);
    input_.insert(input_.end(), piece.begin(), piece.end());
    used += taken;
    if (state_ == State::hello) check_magic(input_);
    if (state_ == State::verdict && input_.front() != kAccepted) {
      refuse(input_.front() == kRefused
                 ? "the other side refused our proof: give both sides the same secret (LOCKSTEP_SECRET_FILE)"
                 : "the verdict of the other side is malformed");
    }
    if (wanted() > 0) continue;
    if (state_ == State::hello) {
      take_hello();
    } else if (state_ == State::proof) {
      take_proof();
    } else {
      take_verdict();
    }
  }
  return used;
}

void Handshake::send_hello() {
  output_.insert(output_.end(), my_hello_.begin(), my_hello_.end());
}

void Handshake::take_hello() {
  peer_hello_ = std::exchange(input_, {});
  // Also when we are about to refuse: our identity tells the dialer what is different.
  if (side_ == Side::listener) send_hello();
  claimed_ = decode_hello(peer_hello_, other(side_));
  if (equal_in_constant_time(nonce_of(peer_hello_), nonce_of(my_hello_))) refuse("our own nonce came back");
  check_same_run(me_, claimed_);
  if (side_ == Side::dialer) {
    const auto proof = proof_of(Side::dialer);
    output_.insert(output_.end(), proof.begin(), proof.end());
    state_ = State::verdict;
  } else {
    state_ = State::proof;
  }
}

void Handshake::take_proof() {
  const std::vector<std::byte> received = std::exchange(input_, {});
  if (!equal_in_constant_time(received, proof_of(Side::dialer))) {
    output_.push_back(kRefused);
    refuse(
        fmt::format("the proof of what calls itself rank {} is wrong: it has another secret or none, or "
                    "repeats an old proof",
                    claimed_.rank));
  }
  const auto proof = proof_of(Side::listener);
  output_.push_back(kAccepted);
  output_.insert(output_.end(), proof.begin(), proof.end());
  state_ = State::done;
  peer_ = claimed_;
}

void Handshake::take_verdict() {
  const std::vector<std::byte> received = std::exchange(input_, {});
  if (!equal_in_constant_time(ConstBytes(received).subspan(1), proof_of(Side::listener))) {
    refuse("the other side accepted us but cannot prove that it knows the secret");
  }
  state_ = State::done;
  peer_ = claimed_;
}

std::array<std::byte, 32> Handshake::proof_of(Side speaker) const {
  const auto& dialer_hello = side_ == Side::dialer ? my_hello_ : peer_hello_;
  const auto& listener_hello = side_ == Side::dialer ? peer_hello_ : my_hello_;
  std::vector<std::byte> message(kProofContext.size() + 1 + 2 * kHelloBytes);
  WireWriter out(message);
  out.put(std::as_bytes(std::span(kProofContext)));
  out.put(static_cast<std::uint8_t>(speaker));
  out.put(ConstBytes(dialer_hello));
  out.put(ConstBytes(listener_hello));

  std::array<std::byte, kProofBytes> proof{};
  unsigned int length = 0;
  const ConstBytes key = secret_.bytes();
  const auto* result = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                            reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                            reinterpret_cast<unsigned char*>(proof.data()), &length);
  LOCKSTEP_CHECK(result != nullptr && length == kProofBytes, "HMAC-SHA256 failed");
  return proof;
}

Nonce random_nonce() {
  Nonce nonce;
  const int made = RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size()));
  LOCKSTEP_CHECK(made == 1, "the system gives no random bytes");
  return nonce;
}

}  // namespace lockstep::transport
