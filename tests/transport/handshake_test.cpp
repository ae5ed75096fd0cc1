// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/handshake.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

using Buffer = std::vector<std::byte>;

const Identity kDialer{.role = "tcp", .rank = 3, .run = "run-7", .generation = 2};
const Identity kListener{.role = "tcp", .rank = 0, .run = "run-7", .generation = 2};

Secret good_secret() {
  return Secret::from_value("correct horse battery staple");
}

Nonce nonce_of(int value) {
  Nonce nonce;
  nonce.fill(static_cast<std::byte>(value));
  return nonce;
}

struct Pair {
  Handshake dialer;
  Handshake listener;
  Buffer to_listener;  // everything each side has said so far
  Buffer to_dialer;

  explicit Pair(const Identity& dialer_identity = kDialer, const Secret& dialer_secret = good_secret(),
                const Identity& listener_identity = kListener, const Secret& listener_secret = good_secret())
      : dialer(Side::dialer, dialer_identity, dialer_secret, nonce_of(1)),
        listener(Side::listener, listener_identity, listener_secret, nonce_of(2)) {}

  static bool move(Handshake& from, Handshake& to, Buffer& transcript) {
    const Buffer output = from.take_output();
    transcript.insert(transcript.end(), output.begin(), output.end());
    to.feed(output);
    return !output.empty();
  }

  void run() {
    for (bool moves = true; moves;) {
      const bool there = move(dialer, listener, to_listener);
      const bool back = move(listener, dialer, to_dialer);
      moves = there || back;
    }
  }
};

std::string refusal(auto&& action) {
  try {
    action();
  } catch (const AuthenticationError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Handshake, BothSidesLearnWhoTheOtherIs) {
  Pair pair;
  pair.run();
  ASSERT_TRUE(pair.dialer.done());
  ASSERT_TRUE(pair.listener.done());
  EXPECT_EQ(pair.dialer.peer(), kListener);
  EXPECT_EQ(pair.listener.peer(), kDialer);
  EXPECT_EQ(pair.dialer.wanted(), 0u);
  EXPECT_LE(pair.to_listener.size(), Handshake::kMaxBytes);
  EXPECT_LE(pair.to_dialer.size(), Handshake::kMaxBytes);
}

TEST(Handshake, WorksWithoutSecretWhenBothHaveNone) {
  Pair pair(kDialer, Secret(), kListener, Secret());
  pair.run();
  EXPECT_TRUE(pair.dialer.done());
  EXPECT_TRUE(pair.listener.done());
}

TEST(Handshake, ListenerSaysNothingBeforeTheDialerAndProvesLast) {
  Pair pair;
  EXPECT_TRUE(pair.listener.take_output().empty());
  pair.listener.feed(pair.dialer.take_output());
  const Buffer hello = pair.listener.take_output();
  pair.dialer.feed(hello);
  const Buffer proof = pair.dialer.take_output();
  EXPECT_EQ(proof.size(), 32u);
  EXPECT_TRUE(pair.listener.take_output().empty());
}

void expect_proof_refused(const Secret& dialer_secret, const Secret& listener_secret) {
  Pair pair(kDialer, dialer_secret, kListener, listener_secret);
  EXPECT_NE(refusal([&] { pair.run(); }).find("proof of what calls itself rank 3 is wrong"),
            std::string::npos);
  EXPECT_FALSE(pair.listener.done());
  // The verdict lets the dialer say what happened.
  EXPECT_NE(refusal([&] { pair.dialer.feed(pair.listener.take_output()); }).find("refused our proof"),
            std::string::npos);
  EXPECT_FALSE(pair.dialer.done());
}

TEST(Handshake, RefusesAWrongSecret) {
  expect_proof_refused(Secret::from_value("wrong horse battery staple"), good_secret());
}

TEST(Handshake, RefusesAMissingSecretOnEitherSide) {
  expect_proof_refused(Secret(), good_secret());
  expect_proof_refused(good_secret(), Secret());
}

TEST(Handshake, DialerRefusesAListenerThatCannotProveItself) {
  Pair pair;
  pair.listener.feed(pair.dialer.take_output());
  pair.dialer.feed(pair.listener.take_output());
  Buffer forged(33, std::byte{1});
  EXPECT_NE(refusal([&] { pair.dialer.feed(forged); }).find("cannot prove"), std::string::npos);
}

TEST(Handshake, RefusesAReplayedTranscript) {
  Pair honest;
  honest.run();
  ASSERT_TRUE(honest.listener.done());
  Handshake fresh(Side::listener, kListener, good_secret(), nonce_of(9));
  EXPECT_NE(refusal([&] { fresh.feed(honest.to_listener); }).find("repeats an old proof"), std::string::npos);
  EXPECT_FALSE(fresh.done());

  Handshake dialer(Side::dialer, kDialer, good_secret(), nonce_of(8));
  EXPECT_NE(refusal([&] { dialer.feed(honest.to_dialer); }).find("cannot prove"), std::string::npos);
}

TEST(Handshake, RefusesItsOwnBytesReflected) {
  Handshake dialer(Side::dialer, kDialer, good_secret(), nonce_of(1));
  EXPECT_NE(refusal([&] { dialer.feed(dialer.take_output()); }).find("our own side"), std::string::npos);

  // Reflecting the listener's bytes with the side changed runs into the nonce.
  Pair pair;
  pair.listener.feed(pair.dialer.take_output());
  Buffer hello = pair.listener.take_output();
  hello[10] = std::byte{0};
  Handshake again(Side::listener, kListener, good_secret(), nonce_of(2));
  EXPECT_NE(refusal([&] { again.feed(hello); }).find("own nonce"), std::string::npos);
}

TEST(Handshake, RefusesAProofMadeByTheOtherSide) {
  // A listener's proof (after its verdict byte) presented as a dialer's, in a session with the same nonces.
  Pair honest;
  honest.run();
  Buffer stolen(honest.to_listener.begin(), honest.to_listener.end() - 32);
  stolen.insert(stolen.end(), honest.to_dialer.end() - 32, honest.to_dialer.end());
  Handshake same(Side::listener, kListener, good_secret(), nonce_of(2));
  EXPECT_NE(refusal([&] { same.feed(stolen); }), "not refused");
}

TEST(Handshake, RefusesAnotherRoleRunOrGeneration) {
  const auto both_refuse = [](const Identity& dialer_identity, const std::string& word) {
    Pair pair(dialer_identity);
    EXPECT_NE(refusal([&] { pair.run(); }).find(word), std::string::npos) << word;
    // The listener's hello still goes out, so the dialer knows why.
    EXPECT_NE(refusal([&] { pair.dialer.feed(pair.listener.take_output()); }).find(word), std::string::npos);
    EXPECT_FALSE(pair.listener.done() || pair.dialer.done());
  };
  both_refuse({.role = "shm", .rank = 3, .run = "run-7", .generation = 2}, "role");
  both_refuse({.role = "tcp", .rank = 3, .run = "run-8", .generation = 2}, "'run-8'");
  both_refuse({.role = "tcp", .rank = 3, .run = "run-7", .generation = 3}, "generation");
}

TEST(Handshake, EveryByteOfTheTranscriptCounts) {
  Pair honest;
  honest.run();
  for (std::size_t i = 0; i < honest.to_listener.size(); ++i) {
    Buffer mutated = honest.to_listener;
    mutated[i] ^= std::byte{0x40};
    Handshake listener(Side::listener, kListener, good_secret(), nonce_of(2));
    EXPECT_NE(refusal([&] { listener.feed(mutated); }), "not refused") << "byte " << i;
  }
  for (std::size_t i = 0; i < honest.to_dialer.size(); ++i) {
    Buffer mutated = honest.to_dialer;
    mutated[i] ^= std::byte{0x40};
    Handshake dialer(Side::dialer, kDialer, good_secret(), nonce_of(1));
    EXPECT_NE(refusal([&] { dialer.feed(mutated); }), "not refused") << "byte " << i;
  }
}

TEST(Handshake, MayBeSplitAtEveryByte) {
  Pair honest;
  honest.run();
  for (std::size_t cut = 0; cut <= honest.to_listener.size(); ++cut) {
    Handshake listener(Side::listener, kListener, good_secret(), nonce_of(2));
    const ConstBytes all(honest.to_listener);
    EXPECT_EQ(listener.feed(all.first(cut)), cut);
    EXPECT_EQ(listener.feed(all.subspan(cut)), all.size() - cut);
    EXPECT_TRUE(listener.done());
  }
  Handshake one_by_one(Side::dialer, kDialer, good_secret(), nonce_of(1));
  for (const std::byte& byte : honest.to_dialer) {
    EXPECT_GE(one_by_one.wanted(), 1u);
    one_by_one.feed(ConstBytes(&byte, 1));
  }
  EXPECT_TRUE(one_by_one.done());
}

TEST(Handshake, LeavesTrailingBytesUnread) {
  Pair honest;
  honest.run();
  Buffer with_tail = honest.to_listener;
  with_tail.resize(with_tail.size() + 100);
  Handshake listener(Side::listener, kListener, good_secret(), nonce_of(2));
  EXPECT_EQ(listener.feed(with_tail), honest.to_listener.size());
  EXPECT_EQ(listener.feed(with_tail), 0u);
}

TEST(Handshake, RefusesGarbageAtItsFirstByte) {
  Handshake listener(Side::listener, kListener, good_secret(), nonce_of(2));
  const std::byte letter{'G'};
  EXPECT_NE(refusal([&] { listener.feed(ConstBytes(&letter, 1)); }).find("does not speak"),
            std::string::npos);
  EXPECT_TRUE(listener.take_output().empty());
}

TEST(Handshake, RefusesABadIdentityOfOurOwn) {
  const auto make = [](const Identity& me) { Handshake(Side::dialer, me, good_secret(), nonce_of(1)); };
  EXPECT_THROW(make({.role = "", .run = "r"}), UsageError);
  EXPECT_THROW(make({.role = "TCP", .run = "r"}), UsageError);
  EXPECT_THROW(make({.role = std::string(33, 'a'), .run = "r"}), UsageError);
  EXPECT_THROW(make({.role = "tcp", .run = "a b"}), UsageError);
  EXPECT_THROW(make({.role = "tcp", .run = std::string(65, 'a')}), UsageError);
  EXPECT_THROW(make({.role = "tcp", .rank = -2, .run = "r"}), UsageError);
  EXPECT_NO_THROW(make({.role = std::string(32, 'a'), .run = std::string(64, 'a')}));
}

TEST(Handshake, NoncesAreFresh) {
  EXPECT_NE(random_nonce(), random_nonce());
}

}  // namespace
}  // namespace lockstep::transport
