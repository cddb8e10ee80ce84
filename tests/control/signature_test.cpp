// Signatures: those of the standard, and no byte of a signed file can be another.
#include "warmroute/control/signature.hpp"

#include <gtest/gtest.h>

#include "control/support.hpp"

namespace warmroute::signature_tests {
namespace {

// RFC 8032, 7.1, test 1: an empty message.
constexpr std::string_view kSeed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
constexpr std::string_view kPublic = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
constexpr std::string_view kSignature =
    "5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw==";
constexpr std::string_view kPem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
constexpr std::string_view kPublicPem =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    "-----END PUBLIC KEY-----\n";

TEST(SnapshotSignature, IsTheStandardsOwn) {
  const auto key = parse_signing_key(std::string(kSeed) + "\n", "rfc");
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(parse_verifying_key(kPublic, "rfc").value(), key->public_key());
  const auto bytes = sign_snapshot("", *key);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, R"({"warmroute_snapshot":1,"key_id":"rfc","signature":")" + std::string(kSignature) + "\"}\n");
  const auto verified = verify_snapshot(*bytes, {{key->public_key()}, false});
  ASSERT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(verified->payload, "");
  EXPECT_EQ(verified->key_id, "rfc");
}

TEST(SnapshotSignature, KeysAreReadAndWrittenAsPem) {
  const auto key = parse_signing_key(kPem);
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->seed(), parse_signing_key(kSeed)->seed());
  EXPECT_EQ(*signing_key_pem(*key), kPem);
  EXPECT_EQ(*verifying_key_pem(key->public_key()), kPublicPem);
  EXPECT_EQ(*parse_verifying_key(kPublicPem), key->public_key());
  EXPECT_EQ(key->key_id().substr(0, 8), "ed25519-");
  EXPECT_EQ(key->key_id().size(), 24u);
  const auto fresh = generate_signing_key();
  ASSERT_TRUE(fresh);
  EXPECT_NE(fresh->seed(), generate_signing_key()->seed());
  EXPECT_EQ(parse_signing_key(*signing_key_pem(*fresh))->public_key(), fresh->public_key());
}

TEST(SnapshotSignature, WhatIsNoKeyIsRefusedWithoutBeingShown) {
  const std::string secret(kSeed.substr(0, 63));
  for (const std::string& bad :
       {std::string{}, secret, secret + "x", std::string(kPublicPem), std::string(kPem.substr(0, 60))}) {
    const auto key = parse_signing_key(bad);
    EXPECT_EQ(key.code(), Code::malformed) << bad;
    EXPECT_EQ(key.error().message.find("9d61"), std::string::npos);
  }
  EXPECT_EQ(parse_verifying_key(kPem).code(), Code::malformed);
  for (const char* id : {"with space", "quote\"", "a/b"}) {
    EXPECT_EQ(parse_signing_key(kSeed, id).code(), Code::invalid_argument);
    EXPECT_EQ(parse_verifying_key(kPublic, id).code(), Code::invalid_argument);
  }
  EXPECT_EQ(generate_signing_key(std::string(65, 'x')).code(), Code::invalid_argument);
}

struct Signed : testing::Test {
  Signed()
      : bytes(*sign_snapshot(payload, control_tests::signer())), trust{{control_tests::signer().public_key()}, false} {}
  const std::string payload = write_snapshot(control_tests::snapshot_of(3, {control_tests::live("a")}));
  const std::string bytes;
  SnapshotTrust trust;
};

TEST_F(Signed, NoByteCanBeAnother) {
  ASSERT_TRUE(verify_snapshot(bytes, trust));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {1, 2, 16, 32, 128}) {
      std::string other = bytes;
      other[i] = static_cast<char>(other[i] ^ flip);
      ASSERT_FALSE(verify_snapshot(other, trust)) << i << " " << flip;
    }
  }
}

TEST_F(Signed, NothingCanBeCutOrAdded) {
  for (std::size_t n = 0; n < bytes.size(); ++n)
    ASSERT_FALSE(verify_snapshot(std::string_view(bytes).substr(0, n), trust)) << n;
  EXPECT_FALSE(verify_snapshot(bytes + "\n", trust));
  EXPECT_FALSE(verify_snapshot(" " + bytes, trust));
}

TEST_F(Signed, OnlyWhoIsTrustedMaySign) {
  const SigningKey other = *generate_signing_key("other");
  const auto foreign = *sign_snapshot(payload, other);
  EXPECT_EQ(verify_snapshot(foreign, trust).code(), Code::not_found);
  const SigningKey pretender = *generate_signing_key("test");
  EXPECT_EQ(verify_snapshot(*sign_snapshot(payload, pretender), trust).code(), Code::invalid_value);
  trust.keys.push_back(pretender.public_key());  // two keys of one name: either
  EXPECT_TRUE(verify_snapshot(*sign_snapshot(payload, pretender), trust));
  EXPECT_TRUE(verify_snapshot(bytes, trust));
  trust.keys.push_back(other.public_key());
  EXPECT_EQ(verify_snapshot(foreign, trust)->key_id, "other");
  // Where anything goes, what is signed wrongly is refused all the same.
  trust = {{control_tests::signer().public_key()}, true};
  EXPECT_EQ(verify_snapshot(foreign, trust).code(), Code::not_found);
}

TEST_F(Signed, UnsignedBytesPassOnlyWhereThatIsSaid) {
  EXPECT_EQ(verify_snapshot(payload, trust).code(), Code::invalid_value);
  EXPECT_EQ(verify_snapshot("{\"warmroute_snapshot\":1}\n" + payload, trust).code(), Code::invalid_value);
  trust.allow_unsigned = true;
  EXPECT_EQ(verify_snapshot(payload, trust)->payload, payload);
  EXPECT_EQ(verify_snapshot("{\"warmroute_snapshot\":1}\n" + payload, trust)->payload, payload);
  EXPECT_EQ(verify_snapshot(payload, trust)->key_id, "");
  EXPECT_EQ(verify_snapshot(bytes, trust)->key_id, "test");
  EXPECT_EQ(verify_snapshot("{\"warmroute_snapshot\":2}\n", trust).code(), Code::unsupported);
  EXPECT_EQ(verify_snapshot("{\"warmroute_snapshot\":x}\n", trust).code(), Code::malformed);
}

}  // namespace
}  // namespace warmroute::signature_tests
