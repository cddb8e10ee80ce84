#include "keys/commands.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "keys/store.hpp"

namespace warmroute::keys {
namespace {

int fail(const std::string& message) {
  std::fprintf(stderr, "warmroute-keys: %s\n", message.c_str());
  return 1;
}
int fail(const Error& error) { return fail(error.message); }

// A document of one member, to have times and limits read and judged by the same code as everybody's.
Result<Snapshot> probe(const std::string& members) {
  return parse_snapshot(R"({"format":1,"generation":1,"issued_at":"1970-01-01T00:00:00Z")" + members + "}");
}

Result<WallNanos> read_time(const std::string& text) {
  if (text.find_first_of("\"\\") != std::string::npos)
    return Error{Code::invalid_argument, "a time like 2027-01-31T00:00:00Z is wanted", kNoOffset};
  const auto read = probe(R"(,"keys":[{"public_id":"x","version":1,"digests":[{"kind":"sha256_secret","hex":")" +
                          std::string(64, '0') + R"(","not_after":")" + text + R"("}]}])");
  if (!read) return Error{read.code(), "'" + text + "': a time like 2027-01-31T00:00:00Z is wanted", kNoOffset};
  return read->keys[0].digests[0].not_after;
}

Result<std::vector<LimitSpec>> read_limits(const std::string& json) {
  auto read = probe(R"(,"keys":[],"limits":[{"dimension":"key","limits":)" + json + "}]");
  if (!read) return Error{read.code(), "--limits: " + read.error().message, kNoOffset};
  if (read->limits.size() != 1) return Error{Code::invalid_argument, "--limits: one JSON array is wanted", kNoOffset};
  return std::move(read->limits[0].limits);
}

std::string time_text(WallNanos time) {
  const std::time_t seconds = time.value / 1'000'000'000;
  std::tm parts{};
  std::array<char, 32> text{};
  gmtime_r(&seconds, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

const std::string& name_of(const KeyRecord& key) { return key.key_id.empty() ? key.public_id : key.key_id; }

// By public id, or by what the books call it. returns: nullptr: none, or several, which is said.
KeyRecord* find_key(Snapshot& snapshot, const std::string& name) {
  KeyRecord* found = nullptr;
  for (KeyRecord& key : snapshot.keys) {
    if (key.public_id == name) return &key;
    if (key.key_id != name) continue;
    if (found != nullptr) {
      fail("several keys are called '" + name + "': give the public id");
      return nullptr;
    }
    found = &key;
  }
  if (found == nullptr) fail("there is no key '" + name + "'");
  return found;
}

struct NewSecret {
  std::string key;  // what the client gets
  KeyDigest digest;
};

Result<NewSecret> new_secret(const std::string& public_id, const Pepper& pepper) {
  const auto secret = random_text(52);  // 260 bits
  if (!secret) return secret.error();
  NewSecret out;
  out.key = "sk-" + public_id + "-" + *secret;
  auto digest = key_digest(out.key, KeyDigestKind::hmac_sha256, pepper.version, pepper.text);
  if (!digest) return digest.error();
  out.digest = *digest;
  return out;
}

int saved(const Status& status, SnapshotStore& store, const std::string& what) {
  if (!status) return fail(status.error());
  std::fprintf(stderr, "%s; generation %llu\n", what.c_str(),
               static_cast<unsigned long long>(store.snapshot().generation));
  return 0;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

int init(const Arguments& arguments) {
  const std::string& folder = arguments.words.at(0);
  const auto in = [&](const char* name) { return folder + "/" + name; };
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail("cannot make " + folder + ": " + std::strerror(errno));
  for (const char* name : {"signing.pem", "verifying.pem", "pepper.1", "snapshot"}) {
    if (exists(in(name))) return fail(in(name) + " is there already: nothing was changed");
  }
  const auto key = generate_signing_key();
  if (!key) return fail(key.error());
  const auto secret_pem = signing_key_pem(*key);
  const auto public_pem = verifying_key_pem(key->public_key());
  const auto pepper = random_text(52);
  if (!secret_pem || !public_pem || !pepper) return fail("no random bytes");
  Snapshot first;
  first.generation = 1;
  first.issued_at = now();
  const auto bytes = sign_snapshot(write_snapshot(first), *key);
  if (!bytes) return fail(bytes.error());
  // The snapshot last: with it, the folder is whole.
  for (const auto& [name, text, mode] : {std::tuple{"signing.pem", *secret_pem, 0600U},
                                         {"verifying.pem", *public_pem, 0644U},
                                         {"pepper.1", *pepper + "\n", 0600U},
                                         {"snapshot", *bytes, 0600U}}) {
    if (const Status s = replace_file(in(name), text, mode); !s) return fail(s.error());
  }
  std::printf(
      "%s: signed by %s\n%s: whom gateways trust\n%s: version 1, for gateways too; secret\n%s: secret, stays here\n",
      in("snapshot").c_str(), key->key_id().c_str(), in("verifying.pem").c_str(), in("pepper.1").c_str(),
      in("signing.pem").c_str());
  return 0;
}

int issue(const Arguments& arguments) {
  const std::string& path = arguments.words.at(0);
  const auto team = arguments.option("team");
  KeyRecord key;
  key.team_id = team.value_or("");
  key.key_id = arguments.option("key-id").value_or("");
  key.version = 1;
  std::vector<LimitSpec> limits;
  if (const auto json = arguments.option("limits")) {
    auto read = read_limits(*json);
    if (!read) return fail(read.error());
    limits = std::move(*read);
  }
  const auto pepper = load_pepper(arguments, path);
  if (!pepper) return fail(pepper.error());
  auto store = SnapshotStore::open(arguments, path);
  if (!store) return fail(store.error());
  Snapshot& snapshot = store->snapshot();
  auto id = random_text(12);
  if (!id) return fail(id.error());
  key.public_id = *id;
  for (const KeyRecord& other : snapshot.keys) {
    if (!key.key_id.empty() && name_of(other) == key.key_id) return fail("there is a key '" + key.key_id + "' already");
    if (other.public_id == key.public_id) return fail("an unlikely accident: try again");
  }
  const auto known = [&](const SnapshotTeam& t) { return t.team_id == key.team_id; };
  if (!key.team_id.empty() && std::none_of(snapshot.teams.begin(), snapshot.teams.end(), known) &&
      !snapshot.teams.empty())
    return fail("there is no team '" + key.team_id + "' in the snapshot");
  auto secret = new_secret(key.public_id, *pepper);
  if (!secret) return fail(secret.error());
  if (const auto until = arguments.option("not-after")) {
    const auto time = read_time(*until);
    if (!time) return fail("--not-after " + time.error().message);
    if (*time <= now()) return fail("--not-after is over already");
    secret->digest.not_after = *time;
  }
  key.digests = {secret->digest};
  if (!limits.empty()) snapshot.limits.push_back({"key", name_of(key), std::move(limits)});
  snapshot.keys.push_back(key);
  if (const Status s = store->save(); !s) return fail(s.error());
  std::printf("%s\n", secret->key.c_str());
  return saved({}, *store, "issued " + key.public_id + "; its secret is shown this once");
}

int rotate(const Arguments& arguments) {
  const std::string& path = arguments.words.at(1);
  std::int64_t overlap = 86'400;
  if (const auto given = arguments.option("overlap")) {
    const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), overlap);
    if (error != std::errc{} || end != given->data() + given->size() || overlap < 0 || overlap > 31'536'000)
      return fail("--overlap: seconds, 0 to a year");
  }
  const auto pepper = load_pepper(arguments, path);
  if (!pepper) return fail(pepper.error());
  auto store = SnapshotStore::open(arguments, path);
  if (!store) return fail(store.error());
  KeyRecord* const key = find_key(store->snapshot(), arguments.words.at(0));
  if (key == nullptr) return 1;
  if (key->revoked) return fail("the key is revoked: issue another");
  if (key->public_id.empty()) return fail("the key has no public id: issue another, and revoke this one");
  auto secret = new_secret(key->public_id, *pepper);
  if (!secret) return fail(secret.error());
  const WallNanos until = now() + WallNanos{overlap * 1'000'000'000};
  const WallNanos here = now();
  for (KeyDigest& digest : key->digests) digest.not_after = std::min(digest.not_after, until);
  std::erase_if(key->digests, [&](const KeyDigest& d) { return d.not_after <= here || d.not_before >= d.not_after; });
  key->digests.push_back(secret->digest);
  ++key->version;
  const std::string name = key->public_id;
  if (const Status s = store->save(); !s) return fail(s.error());
  std::printf("%s\n", secret->key.c_str());
  return saved({}, *store, "rotated " + name + "; the old secret holds until " + time_text(until));
}

int revoke(const Arguments& arguments) {
  auto store = SnapshotStore::open(arguments, arguments.words.at(1));
  if (!store) return fail(store.error());
  KeyRecord* const key = find_key(store->snapshot(), arguments.words.at(0));
  if (key == nullptr) return 1;
  const std::string name = name_of(*key);
  if (key->revoked && key->version == kRevokedForever) {
    std::fprintf(stderr, "%s was revoked before\n", name.c_str());
    return 0;
  }
  key->revoked = true;
  key->version = kRevokedForever;
  if (!key->public_id.empty()) key->digests.clear();
  return saved(store->save(), *store, "revoked " + name);
}

int list(const Arguments& arguments) {
  auto store = SnapshotStore::open(arguments, arguments.words.at(0));
  if (!store) return fail(store.error());
  const Snapshot& s = store->snapshot();
  std::printf("generation %llu, issued %s\n%-14s %-20s %-16s %-8s %s\n", static_cast<unsigned long long>(s.generation),
              time_text(s.issued_at).c_str(), "PUBLIC_ID", "KEY_ID", "TEAM", "STATE", "UNTIL");
  const WallNanos here = now();
  for (const KeyRecord& key : s.keys) {
    WallNanos until{std::numeric_limits<std::int64_t>::min()};
    for (const KeyDigest& d : key.digests) until = std::max(until, d.not_after);
    const bool open = until == KeyDigest{}.not_after;
    const char* const state = key.revoked ? "revoked" : until <= here ? "expired" : "live";
    std::printf("%-14s %-20s %-16s %-8s %s\n", key.public_id.empty() ? "-" : key.public_id.c_str(),
                name_of(key).c_str(), key.team_id.empty() ? "-" : key.team_id.c_str(), state,
                key.revoked || open ? "-" : time_text(until).c_str());
  }
  return 0;
}

int rollback(const Arguments& arguments) {
  const auto reason = arguments.option("reason");
  const auto to = arguments.option("to");
  if (!reason || reason->empty() || !to) return fail("rollback needs --to GENERATION and --reason TEXT");
  std::uint64_t generation = 0;
  const auto [end, error] = std::from_chars(to->data(), to->data() + to->size(), generation);
  if (error != std::errc{} || end != to->data() + to->size()) return fail("--to: a generation is wanted");
  auto store = SnapshotStore::open(arguments, arguments.words.at(0));
  if (!store) return fail(store.error());
  const std::uint64_t from = store->snapshot().generation;
  if (generation >= from) return fail("generation " + std::to_string(from) + " is in the file: --to must be below it");
  auto old = store->earlier(generation);
  if (!old) return fail(old.error());
  // What was revoked since stays so, for receivers too that never saw it.
  for (const KeyRecord& key : store->snapshot().keys) {
    if (!key.revoked) continue;
    const auto same = [&](const KeyRecord& k) {
      return key.public_id.empty() ? k.public_id.empty() && k.key_id == key.key_id : k.public_id == key.public_id;
    };
    const auto it = std::find_if(old->keys.begin(), old->keys.end(), same);
    if (it == old->keys.end()) old->keys.push_back(key);
    else if (!it->revoked || it->version < key.version) *it = key;
  }
  return saved(store->roll_back(std::move(*old), *reason), *store, "rolled back from " + std::to_string(from));
}

int verify(const Arguments& arguments) {
  const std::string& path = arguments.words.at(0);
  const std::string key_file = arguments.option("verifying-key").value_or(beside(path, "verifying.pem"));
  const auto text = read_file(key_file, 65'536);
  if (!text) return fail(text.error());
  const auto key = parse_verifying_key(*text);
  if (!key) return fail(key_file + ": " + key.error().message);
  const auto bytes = read_file(path, std::size_t{1} << 30);
  if (!bytes) return fail(bytes.error());
  const auto verified = verify_snapshot(*bytes, {{*key}, false});
  if (!verified) return fail(path + ": " + verified.error().message);
  SnapshotOptions options;
  options.max_bytes = bytes->size();
  const auto snapshot = parse_snapshot(verified->payload, options);
  if (!snapshot) return fail(path + ": " + snapshot.error().message);
  const auto revoked =
      std::count_if(snapshot->keys.begin(), snapshot->keys.end(), [](const KeyRecord& k) { return k.revoked; });
  std::printf("good: generation %llu, issued %s, signed by %s, %zu keys of which %td revoked\n",
              static_cast<unsigned long long>(snapshot->generation), time_text(snapshot->issued_at).c_str(),
              verified->key_id.c_str(), snapshot->keys.size(), revoked);
  return 0;
}

}  // namespace warmroute::keys
