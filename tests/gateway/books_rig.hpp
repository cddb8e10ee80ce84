/// A gateway with books: a folder that goes, a signing key, snapshots of few words, and what /usage and /metrics say.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/rig.hpp"
#include "warmroute/control/applier.hpp"
#include "warmroute/control/signature.hpp"

namespace warmroute::testing {

struct Books {
  Books() : path((access("/dev/shm", W_OK) == 0 ? std::string("/dev/shm") : ::testing::TempDir()) + "/books-XXXXXX") {
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    write("trust.pem", *verifying_key_pem(signer.public_key()));
    write("pepper", "0123456789abcdef\n");
    snapshot.generation = 0;
  }
  Books(const Books&) = delete;
  Books& operator=(const Books&) = delete;
  ~Books() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::string operator/(std::string_view name) const { return path + "/" + std::string(name); }
  void write(std::string_view name, std::string_view bytes) const {
    std::ofstream(*this / name, std::ios::binary | std::ios::trunc) << bytes;
  }

  void add_key(const std::string& id, const std::string& team, std::uint64_t version = 1) {
    KeyRecord record;
    record.public_id = id;
    record.team_id = team;
    record.version = version;
    record.digests.push_back(*key_digest(key_of(id), KeyDigestKind::hmac_sha256, 1, "0123456789abcdef"));
    snapshot.keys.push_back(std::move(record));
  }
  void limit(std::string dimension, std::optional<std::string> value, LimitSpec spec) {
    for (auto& there : snapshot.limits) {
      if (there.dimension == dimension && there.value == value) return there.limits.push_back(std::move(spec));
    }
    snapshot.limits.push_back({std::move(dimension), std::move(value), {std::move(spec)}});
  }
  [[nodiscard]] std::string bytes() const { return *sign_snapshot(write_snapshot(snapshot), signer); }
  /// One generation more, in its place as a whole.
  void publish() {
    ++snapshot.generation;
    EXPECT_TRUE(replace_file(*this / "snapshot", bytes()));
  }

  /// returns: the configuration of a gateway with these books, replicas at those ports.
  [[nodiscard]] gateway::Config config(const std::vector<std::uint16_t>& ports) const {
    auto config = config_for(ports);
    for (auto& replica : config.replicas) replica.spec.pool = "m";
    config.usage.control = *this / "snapshot";
    config.usage.trust = {*this / "trust.pem"};
    config.usage.peppers = {{1, *this / "pepper"}};
    config.usage.control_dir = *this / "last-good";
    config.usage.journal = *this / "journal";
    config.usage.journal_options.sync = JournalSync::none;
    return config;
  }

  static std::string key_of(const std::string& id) { return "sk-" + id + "-secret"; }
  static std::string bearer(const std::string& id) { return "Authorization: Bearer " + key_of(id) + "\r\n"; }

  std::string path;
  SigningKey signer = *SigningKey::from_seed({7, 7, 7});
  Snapshot snapshot;
};

inline double number_on(const std::string& page, const std::string& name) {
  const auto at = ("\n" + page).find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::atof(page.c_str() + at + name.size() + 1);
}
inline double metric_of(std::uint16_t port, const std::string& name) {
  return number_on(call(port, "GET", "/metrics").body, "warmroute_" + name);
}

/// returns: a number of /usage, in the row with `where` in it ("\"key\":\"a\""), or of the total; -1: none.
inline double usage_of(std::uint16_t port, const std::string& query, const std::string& where,
                       const std::string& name) {
  const std::string page = call(port, "GET", "/usage" + query).body;
  const auto row = page.find(where);
  const auto at = page.find("\"" + name + "\":", row == std::string::npos ? page.size() : row);
  return at == std::string::npos ? -1 : std::atof(page.c_str() + at + name.size() + 3);
}

/// Every begin has its end and every reservation its settlement, on the page and in the router.
#define EXPECT_BOOKS_CLOSED(rig)                                         \
  EXPECT_BOOKS_EMPTY(rig);                                               \
  EXPECT_TRUE(eventually([&] {                                           \
    const std::string page = call((rig).port(), "GET", "/metrics").body; \
    return number_on(page, "warmroute_gateway_journal_open") == 0 &&     \
           number_on(page, "warmroute_gateway_limits_open") == 0 &&      \
           number_on(page, "warmroute_gateway_journal_begins_total") ==  \
               number_on(page, "warmroute_gateway_journal_ends_total");  \
  })) << call((rig).port(), "GET", "/metrics").body

}  // namespace warmroute::testing
