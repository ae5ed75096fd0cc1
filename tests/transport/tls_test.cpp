// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/tls.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/connect/socket.h"

#include "tests/support/credentials.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/scoped_variable.h"
#include "tests/transport/certificates.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;
using test::credentials;
using test::error_of;
using testing::HasSubstr;

class Tls : public testing::Test {
 protected:
  test::TemporaryFolder scratch_;
  Authority ours_{"our authority"};
  Authority foreign_{"foreign authority"};
  std::shared_ptr<TlsContext> tls_ = load_tls(ours_.issue(scratch_, "rank"));
  Address any_port_{.host = "127.0.0.1", .port = 0, .unix_name = {}};
  Listener listener_{any_port_, credentials(0, {.tls = tls_})};
};

TEST_F(Tls, CarriesBytesBothWays) {
  auto dialer = dial(listener_.address(), credentials(1, {.tls = tls_}), Deadline::after(20s));
  auto accepted = listener_.accept(Deadline::after(20s));
  EXPECT_EQ(accepted.peer.rank, 1);
  std::vector<std::byte> sent(3'000'001);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  const auto transfer = [&](Connection& from, Connection& to) {
    std::jthread writer([&] { from.write_all(sent, Deadline::after(20s)); });
    std::vector<std::byte> received(sent.size());
    to.read_all(received, Deadline::after(20s));
    EXPECT_TRUE(received == sent);
  };
  transfer(*dialer.connection, *accepted.connection);
  transfer(*accepted.connection, *dialer.connection);
}

TEST_F(Tls, WritesPiecesInOrderAndReportsDecryptedBytes) {
  auto dialer = dial(listener_.address(), credentials(1, {.tls = tls_}), Deadline::after(20s));
  auto accepted = listener_.accept(Deadline::after(20s));
  const std::string head = "head ", body(100, 'b');
  const std::vector<ConstBytes> pieces = {std::as_bytes(std::span(head)), std::as_bytes(std::span(body))};
  EXPECT_EQ(dialer.connection->try_write(pieces), 105);
  std::string received(105, ' ');
  const Bytes into = std::as_writable_bytes(std::span(received));
  accepted.connection->read_all(into.first(1), Deadline::after(20s));
  EXPECT_TRUE(accepted.connection->has_buffered());
  accepted.connection->read_all(into.subspan(1), Deadline::after(20s));
  EXPECT_FALSE(accepted.connection->has_buffered());
  EXPECT_EQ(received, head + body);
}

TEST_F(Tls, ClosingIsSeenAsClosed) {
  auto dialer = dial(listener_.address(), credentials(1, {.tls = tls_}), Deadline::after(20s));
  auto accepted = listener_.accept(Deadline::after(20s));
  dialer.connection.reset();
  std::vector<std::byte> buffer(10);
  EXPECT_THROW(accepted.connection->read_all(buffer, Deadline::after(20s)), PeerLost);
  EXPECT_FALSE(accepted.connection->protocol_failed());
}

TEST_F(Tls, RefusesADialerOfAnotherAuthority) {
  TlsFiles files = foreign_.issue(scratch_, "stranger");
  files.authority = ours_.write_certificate(scratch_, "ours.ca");  // it believes us, we do not believe it
  const auto stranger = load_tls(files);
  EXPECT_THAT(error_of<AuthenticationError>([&] {
                dial(listener_.address(), credentials(1, {.tls = stranger}), Deadline::after(60s));
              }),
              HasSubstr("TLS failed: "));
  // TLS tells the dialer before the listener has counted it.
  const Deadline deadline = Deadline::after(20s);
  while (listener_.counters().refused == 0 && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(listener_.counters().refused, 1u);
}

TEST_F(Tls, RefusesAListenerOfAnotherAuthority) {
  const auto stranger = load_tls(foreign_.issue(scratch_, "stranger"));
  EXPECT_THAT(error_of<AuthenticationError>([&] {
                dial(listener_.address(), credentials(1, {.tls = stranger}), Deadline::after(60s));
              }),
              HasSubstr("certificate verify failed"));
}

TEST_F(Tls, RefusesAPlainDialer) {
  EXPECT_THAT(
      error_of<AuthenticationError>([&] { dial(listener_.address(), credentials(1), Deadline::after(60s)); }),
      HasSubstr("is TLS on at one side only"));
  EXPECT_EQ(listener_.counters().refused, 1u);
}

TEST_F(Tls, PlainListenerRefusesATlsDialer) {
  Listener plain(any_port_, credentials(0));
  EXPECT_THAT(error_of<AuthenticationError>(
                  [&] { dial(plain.address(), credentials(1, {.tls = tls_}), Deadline::after(60s)); }),
              HasSubstr("TLS failed: wrong version number"));
  EXPECT_EQ(plain.counters().refused, 1u);
}

// TLS writes only after it has read, so the dialer must wait for that, and no longer than it may.
TEST_F(Tls, ADialerDoesNotWaitForASilentListenerBeyondItsDeadline) {
  const Descriptor silent = open_listening_socket(any_port_);
  const Address where = bound_address(silent.get(), any_port_);
  EXPECT_THAT(error_of<Timeout>([&] { dial(where, credentials(1, {.tls = tls_}), Deadline::after(200ms)); }),
              HasSubstr("it accepted the connection but does not answer"));
}

TEST_F(Tls, StillNeedsTheSecret) {
  Credentials wrong = credentials(1, {.tls = tls_});
  wrong.secret = Secret::from_value("another secret 1");
  EXPECT_THAT(error_of<AuthenticationError>([&] { dial(listener_.address(), wrong, Deadline::after(60s)); }),
              HasSubstr("refused our proof"));
}

TEST_F(Tls, NamesTheFileThatIsWrong) {
  const TlsFiles good = ours_.issue(scratch_, "good");
  const auto with = [&](auto&& change) {
    TlsFiles files = good;
    change(files);
    return error_of<UsageError>([&] { load_tls(files); });
  };
  const auto junk = scratch_.write("junk", "no certificate");
  EXPECT_THAT(with([&](TlsFiles& f) { f.certificate = "/nonexistent"; }), HasSubstr("/nonexistent"));
  EXPECT_THAT(with([&](TlsFiles& f) { f.certificate = junk; }), HasSubstr("certificate " + junk));
  EXPECT_THAT(with([&](TlsFiles& f) { f.key = junk; }), HasSubstr("key " + junk));
  EXPECT_THAT(with([&](TlsFiles& f) { f.key = ours_.issue(scratch_, "other").key; }),
              HasSubstr("key values mismatch"));
  EXPECT_THAT(with([&](TlsFiles& f) { f.authority = junk; }), HasSubstr("authority " + junk));
  ::chmod(good.key.c_str(), 0644);
  EXPECT_THAT(with([](TlsFiles&) {}), HasSubstr("chmod 600"));
}

TEST_F(Tls, EnvironmentNeedsAllThreeOrNone) {
  const TlsFiles files = ours_.issue(scratch_, "env");
  const test::ScopedVariable no_certificate("LOCKSTEP_TLS_CERT", nullptr);
  const test::ScopedVariable no_key("LOCKSTEP_TLS_KEY", nullptr);
  const test::ScopedVariable no_authority("LOCKSTEP_TLS_CA", nullptr);
  EXPECT_EQ(tls_from_environment(), nullptr);
  const test::ScopedVariable certificate("LOCKSTEP_TLS_CERT", files.certificate.c_str());
  const test::ScopedVariable key("LOCKSTEP_TLS_KEY", files.key.c_str());
  EXPECT_THAT(error_of<UsageError>([] { tls_from_environment(); }), HasSubstr("only 2 of the three"));
  const test::ScopedVariable authority("LOCKSTEP_TLS_CA", files.authority.c_str());
  EXPECT_NE(tls_from_environment(), nullptr);
}

}  // namespace
}  // namespace lockstep::transport
