// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/address.h"

#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

constexpr std::size_t kMaxHost = 253;                                    // of a DNS name
constexpr std::size_t kMaxUnixName = sizeof(sockaddr_un::sun_path) - 1;  // the leading zero takes one

[[noreturn]] void reject(std::string_view text, std::string_view why) {
  constexpr std::size_t kShown = 80;
  throw UsageError(fmt::format("bad address '{}{}': {}; write host:port, [ipv6]:port or @name",
                               text.substr(0, kShown), text.size() > kShown ? "..." : "", why));
}

bool is_graphic(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

std::uint16_t parse_port(std::string_view text, std::string_view port) {
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) {
    reject(text, "the port is not a number from 0 to 65535");
  }
  return value;
}

void check_host(std::string_view text, std::string_view host, bool bracketed) {
  if (host.empty()) reject(text, "the host is missing");
  if (host.size() > kMaxHost) reject(text, "the host name is longer than 253 characters");
  if (bracketed) {
    in6_addr parsed;
    if (inet_pton(AF_INET6, std::string(host).c_str(), &parsed) != 1) {
      reject(text, "what stands in brackets is not an IPv6 address");
    }
    return;
  }
  for (const char c : host) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         c == '.' || c == '-' || c == '_';
    if (!allowed) reject(text, c == ':' ? "an IPv6 address needs brackets" : "the host has a bad character");
  }
}

}  // namespace

std::string Address::to_string() const {
  if (is_unix()) return "@" + unix_name;
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Address parse_address(std::string_view text) {
  if (!is_graphic(text)) reject("", "it holds blanks or unprintable characters");
  if (text.starts_with('@')) {
    const std::string_view name = text.substr(1);
    if (name.empty()) reject(text, "the name after '@' is missing");
    if (name.size() > kMaxUnixName) reject(text, "the name is longer than 107 characters");
    return {.host = {}, .port = 0, .unix_name = std::string(name)};
  }
  const bool bracketed = text.starts_with('[');
  const std::size_t host_end = bracketed ? text.find(']') : text.rfind(':');
  if (host_end == std::string_view::npos) reject(text, bracketed ? "']' is missing" : "the port is missing");
  const std::string_view host = bracketed ? text.substr(1, host_end - 1) : text.substr(0, host_end);
  std::string_view rest = text.substr(bracketed ? host_end + 1 : host_end);
  if (!rest.starts_with(':')) reject(text, "the port is missing");
  check_host(text, host, bracketed);
  return {.host = std::string(host), .port = parse_port(text, rest.substr(1)), .unix_name = {}};
}

bool is_loopback(const Address& address) {
  if (address.is_unix() || address.host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace lockstep::transport
