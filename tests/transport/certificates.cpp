// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

std::shared_ptr<EVP_PKEY> new_key() {
  std::shared_ptr<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  LOCKSTEP_CHECK(key != nullptr);
  return key;
}

std::shared_ptr<X509> new_certificate(const std::string& name, EVP_PKEY* key, X509* issuer,
                                      EVP_PKEY* issuer_key, bool is_authority) {
  std::shared_ptr<X509> made(X509_new(), X509_free);
  X509_set_version(made.get(), X509_VERSION_3);
  std::int64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial) - 1);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(made.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer == nullptr ? made.get() : issuer));
  X509_EXTENSION* limits = X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints,
                                               is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  X509_add_ext(made.get(), limits, -1);
  X509_EXTENSION_free(limits);
  LOCKSTEP_CHECK(X509_sign(made.get(), issuer_key, EVP_sha256()) != 0);
  return made;
}

std::string text_of(auto&& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
  LOCKSTEP_CHECK(write(memory.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  return text_of([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string pem_of(EVP_PKEY* key) {
  return text_of(
      [&](BIO* out) { return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

}  // namespace

Authority::Authority(const std::string& name)
    : key_(new_key()), certificate_(new_certificate(name, key_.get(), nullptr, key_.get(), true)) {}

std::filesystem::path Authority::write_certificate(const test::TemporaryFolder& where,
                                                   const std::string& name) const {
  return where.write(name, pem_of(certificate_.get()), 0644);
}

TlsFiles Authority::issue(const test::TemporaryFolder& where, const std::string& name) const {
  const auto key = new_key();
  const auto certificate = new_certificate(name, key.get(), certificate_.get(), key_.get(), false);
  return {.certificate = where.write(name + ".crt", pem_of(certificate.get()), 0644),
          .key = where.write(name + ".key", pem_of(key.get())),
          .authority = write_certificate(where, name + ".ca")};
}

}  // namespace lockstep::transport
