// Every count is held against the bytes that are left before anything is reserved for it.
#include "route/cache_body.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>
#include <set>
#include <tuple>

namespace warmroute {
namespace {

constexpr std::uint64_t kBodyVersion = 2;  // 1: without what was learned of hardware
constexpr std::uint64_t kMostReplicas = 65'535;
constexpr std::uint64_t kMostNameBytes = 1'024;             // as validate(ReplicaSpec)
constexpr std::uint64_t kMostAge = std::uint64_t{1} << 60;  // ns: 36 years
constexpr std::size_t kLeastRunBytes = 3;                   // parent, age, count
constexpr std::size_t kLeastReplicaBytes = 12;
constexpr std::size_t kLeastPoolBytes = 3;  // name, kinds, replicas
constexpr std::size_t kLeastKindBytes = 5 + 2 + LearnedKind::kSums;
constexpr std::size_t kLeastSlownessBytes = 4;  // name of one byte, rank, slowness

void append_varint(std::string& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
  out.push_back(static_cast<char>(v));
}
void append_count(std::string& out, std::int64_t v) {
  append_varint(out, static_cast<std::uint64_t>(std::max<std::int64_t>(0, v)));
}
void append_whole(std::string& out, std::int64_t v) {
  append_varint(out, static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(v >> 63));
}
void append_u64(std::string& out, std::uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(v >> (8 * i)));
}
void append_text(std::string& out, std::string_view text) {
  append_varint(out, text.size());
  out.append(text);
}

// Reads on after a fault give zeros; the first fault is what is told.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t varint(std::uint64_t most, const char* what) {
    std::uint64_t v = 0;
    const std::size_t start = at_;
    for (unsigned shift = 0;; shift += 7) {
      if (failed()) return 0;
      if (at_ == bytes_.size()) return fail(Code::malformed, at_, {"ends within ", what});
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      if (shift == 63 && byte > 1) return fail(Code::malformed, start, {"overlong number: ", what});
      v |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) break;
    }
    if (v > most) {
      return fail(Code::too_large, start, {what, " is ", std::to_string(v), ", at most ", std::to_string(most)});
    }
    return v;
  }
  // A number of things that take at least `each` bytes and are still to come.
  std::uint64_t count(std::uint64_t most, std::size_t each, const char* what) {
    const std::size_t start = at_;
    const std::uint64_t v = varint(most, what);
    if (v > left() / each)
      return fail(Code::malformed, start, {what, " is more than the bytes that are left can hold"});
    return v;
  }
  std::int64_t amount(std::uint64_t most, const char* what) { return static_cast<std::int64_t>(varint(most, what)); }
  std::int64_t whole(const char* what) {
    const std::uint64_t v = varint(std::numeric_limits<std::uint64_t>::max(), what);
    return static_cast<std::int64_t>(v >> 1 ^ (0 - (v & 1)));
  }
  std::string text(const char* what) {
    const auto size = static_cast<std::size_t>(count(kMostNameBytes, 1, what));
    std::string out(bytes_.substr(at_, size));
    at_ += size;
    return out;
  }
  std::uint64_t fixed(unsigned bytes, const char* what) {
    if (failed()) return 0;
    if (left() < bytes) return fail(Code::malformed, at_, {"ends within ", what});
    std::uint64_t v = 0;
    for (unsigned i = 0; i < bytes; ++i) v |= std::uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
    at_ += bytes;
    return v;
  }
  std::uint64_t fail(Code code, std::size_t offset, std::initializer_list<std::string_view> parts) {
    if (failed()) return 0;
    error_ = Error{code, "cache export: ", offset};
    for (const std::string_view part : parts) error_.message.append(part);
    return 0;
  }
  void expect_zeros() {
    const std::size_t other = bytes_.find_first_not_of('\0', at_);
    if (other != std::string_view::npos) fail(Code::malformed, other, {"something follows the last replica"});
  }
  [[nodiscard]] bool failed() const { return error_.code != Code::ok; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  Error error_{Code::ok, {}, kNoOffset};
};

void read_tree(Reader& in, CachedTree& tree) {
  const std::uint64_t runs = in.count(kNoParentRun - 1, kLeastRunBytes, "count of runs");
  const std::uint64_t blocks = in.count(std::numeric_limits<std::uint32_t>::max(), 8, "count of blocks");
  std::vector<std::uint32_t> ends;  // blocks from block 0 to each run's end
  tree.runs.reserve(runs);
  ends.reserve(runs);
  std::uint64_t age = 0, total = 0;
  for (std::uint64_t i = 0; i < runs && !in.failed(); ++i) {
    const std::size_t start = in.at();
    CachedRun run;
    std::uint32_t depth = 0;
    if (const std::uint64_t back = in.varint(i, "parent"); back != 0) {
      run.parent = static_cast<std::uint32_t>(i - back);
      const CachedRun& parent = tree.runs[run.parent];
      // 0: behind all of it
      run.parent_end = parent.count - static_cast<std::uint32_t>(in.varint(parent.count - 1, "place in the parent"));
      depth = ends[run.parent] - parent.count + run.parent_end;
    }
    age += in.varint(kMostAge - age, "age");
    run.last_use = Nanos{-static_cast<std::int64_t>(age)};
    run.count = static_cast<std::uint32_t>(in.varint(kMaxCachedDepth - depth, "length of a run"));
    total += run.count;
    if (!in.failed() && run.count == 0) in.fail(Code::malformed, start, {"an empty run"});
    if (total > blocks) in.fail(Code::malformed, start, {"the runs hold more blocks than were announced"});
    tree.runs.push_back(run);
    ends.push_back(depth + run.count);
  }
  if (total != blocks) in.fail(Code::malformed, in.at(), {"the runs hold fewer blocks than were announced"});
  if (in.failed() || blocks > in.left() / 8) {
    in.fail(Code::malformed, in.at(), {"ends within the blocks"});
    return;
  }
  tree.blocks.reserve(blocks);
  for (std::uint64_t b = 0; b < blocks; ++b) tree.blocks.push_back(BlockHash{in.fixed(8, "block")});
}

void read_replica(Reader& in, NamedReplicaCache& out) {
  constexpr std::uint64_t kMostBlocks = 1'000'000'000'000;
  constexpr std::uint64_t kMostMean = std::uint64_t{1} << 50;
  out.pool = in.text("pool");
  const std::size_t name_at = in.at();
  out.name = in.text("name");
  if (!in.failed() && out.name.empty()) in.fail(Code::malformed, name_at, {"a replica without a name"});
  out.dp_rank = static_cast<std::uint32_t>(in.varint(std::numeric_limits<std::uint32_t>::max(), "dp_rank"));
  ReplicaCache& c = out.cache;
  c.capacity_tokens = in.amount(std::uint64_t{1} << 62, "capacity_tokens");
  c.capacity_blocks = in.varint(kMostBlocks, "capacity_blocks");
  c.trust_milli = in.amount(1'000, "trust");
  c.tokens_per_block_milli = in.amount(1'000'000'000, "tokens per block");
  for (LearnedMean* mean : {&c.bytes_per_token, &c.output_tokens}) {
    mean->milli = in.amount(kMostMean, "learned mean");
    mean->count = in.amount(kMostMean, "weight of a learned mean");
  }
  read_tree(in, c.tree);
}

void read_learned(Reader& in, NamedLearned& out) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  out.pool = in.text("pool");
  const std::uint64_t kinds = in.count(kMostReplicas, kLeastKindBytes, "count of kinds");
  out.learned.kinds.resize(in.failed() ? 0 : kinds);
  for (LearnedKind& kind : out.learned.kinds) {
    for (std::int64_t* rate : {&kind.declared.floor_ns, &kind.declared.token_ps, &kind.declared.pair_ps,
                               &kind.declared.context_ps, &kind.declared.overhead_ns}) {
      *rate = in.amount(kMost, "declared rate");
    }
    kind.samples = in.amount(kMost, "count of samples");
    kind.trusted = in.varint(1, "whether rates are trusted") == 1;
    for (std::int64_t& sum : kind.sums) sum = in.whole("sum of samples");
  }
  const std::uint64_t replicas = in.count(kMostReplicas, kLeastSlownessBytes, "count of replicas of a pool");
  out.learned.replicas.resize(in.failed() ? 0 : replicas);
  for (LearnedSlowness& replica : out.learned.replicas) {
    replica.name = in.text("name");
    replica.dp_rank = static_cast<std::uint32_t>(in.varint(std::numeric_limits<std::uint32_t>::max(), "dp_rank"));
    replica.slowness = in.amount(kMost, "slowness");
  }
}

void read_pools(Reader& in, std::vector<NamedLearned>& out) {
  const std::uint64_t pools = in.count(kMostReplicas, kLeastPoolBytes, "count of pools");
  std::set<std::string_view> seen;  // views into `out`'s names: reserved once
  out.reserve(pools);
  for (std::uint64_t i = 0; i < pools && !in.failed(); ++i) {
    const std::size_t start = in.at();
    read_learned(in, out.emplace_back());
    if (!in.failed() && !seen.insert(out.back().pool).second) {
      in.fail(Code::malformed, start, {"a pool that came before"});
    }
  }
}

}  // namespace

void append_body_header(std::string& out, std::uint32_t block_size, std::uint32_t seed_digest, std::uint64_t replicas) {
  append_varint(out, kBodyVersion);
  append_varint(out, block_size);
  append_u64(out, seed_digest, 4);
  append_varint(out, replicas);
}

void append_replica_cache(std::string& out, std::string_view pool, std::string_view name, std::uint32_t dp_rank,
                          const ReplicaCache& cache) {
  append_text(out, pool);
  append_text(out, name);
  append_varint(out, dp_rank);
  append_count(out, cache.capacity_tokens);
  append_varint(out, cache.capacity_blocks);
  append_count(out, cache.trust_milli);
  append_count(out, cache.tokens_per_block_milli);
  for (const LearnedMean* mean : {&cache.bytes_per_token, &cache.output_tokens}) {
    append_count(out, mean->milli);
    append_count(out, mean->count);
  }
  const CachedTree& tree = cache.tree;
  append_varint(out, tree.runs.size());
  append_varint(out, tree.blocks.size());
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < tree.runs.size(); ++i) {
    const CachedRun& run = tree.runs[i];
    append_varint(out, run.parent == kNoParentRun ? 0 : i - run.parent);
    if (run.parent != kNoParentRun) append_varint(out, tree.runs[run.parent].count - run.parent_end);
    const auto age = static_cast<std::uint64_t>(std::clamp<std::int64_t>(cache.taken_at.value - run.last_use.value,
                                                                         static_cast<std::int64_t>(before),
                                                                         static_cast<std::int64_t>(kMostAge)));
    append_varint(out, age - before);
    before = age;
    append_varint(out, run.count);
  }
  if constexpr (std::endian::native == std::endian::little) {
    out.append(reinterpret_cast<const char*>(tree.blocks.data()), tree.blocks.size() * sizeof(BlockHash));
  } else {
    for (const BlockHash block : tree.blocks) append_u64(out, to_u64(block), 8);
  }
}

void append_pool_count(std::string& out, std::uint64_t pools) { append_varint(out, pools); }

void append_learned(std::string& out, std::string_view pool, const LearnedPool& learned) {
  append_text(out, pool);
  append_varint(out, learned.kinds.size());
  for (const LearnedKind& kind : learned.kinds) {
    const Rates& r = kind.declared;
    for (const std::int64_t rate : {r.floor_ns, r.token_ps, r.pair_ps, r.context_ps, r.overhead_ns}) {
      append_count(out, rate);
    }
    append_count(out, kind.samples);
    append_varint(out, kind.trusted ? 1 : 0);
    for (const std::int64_t sum : kind.sums) append_whole(out, sum);
  }
  append_varint(out, learned.replicas.size());
  for (const LearnedSlowness& replica : learned.replicas) {
    append_text(out, replica.name);
    append_varint(out, replica.dp_rank);
    append_count(out, replica.slowness);
  }
}

// Lengths keep as many leading bits as their exponent has bits (the "Padme" rule of Nikitin et al., PURBs, 2019); at least 4 KiB.
void pad_body(std::string& out, std::size_t from) {
  const std::uint64_t length = std::max<std::uint64_t>(out.size() - from, 4'096);
  const auto exponent = static_cast<unsigned>(std::bit_width(length) - 1);
  const std::uint64_t low_bits = (std::uint64_t{1} << (exponent - std::bit_width(exponent))) - 1;
  out.resize(from + static_cast<std::size_t>((length + low_bits) & ~low_bits), '\0');
}

Result<CacheBody> read_cache_body(std::string_view body) {
  Reader in(body);
  CacheBody out;
  const std::uint64_t version = in.varint(std::numeric_limits<std::uint64_t>::max(), "version");
  if (!in.failed() && (version < 1 || version > kBodyVersion)) {
    in.fail(Code::unsupported, 0, {"body of version ", std::to_string(version), ", this reads versions 1 and 2"});
  }
  out.block_size = static_cast<std::uint32_t>(in.varint(512, "block_size"));
  out.seed_digest = static_cast<std::uint32_t>(in.fixed(4, "seed digest"));
  const std::uint64_t replicas = in.count(kMostReplicas, kLeastReplicaBytes, "count of replicas");
  std::set<std::tuple<std::string_view, std::string_view, std::uint32_t>>
      seen;  // views into `body`'s copies: reserved once
  out.replicas.reserve(replicas);
  for (std::uint64_t i = 0; i < replicas && !in.failed(); ++i) {
    const std::size_t start = in.at();
    NamedReplicaCache& replica = out.replicas.emplace_back();
    read_replica(in, replica);
    replica.cache.block_size = out.block_size;
    replica.cache.seed_digest = out.seed_digest;
    if (!in.failed() && !seen.emplace(replica.pool, replica.name, replica.dp_rank).second) {
      in.fail(Code::malformed, start, {"a replica that came before"});
    }
  }
  if (version >= 2) read_pools(in, out.learned);
  if (!in.failed()) in.expect_zeros();
  if (in.failed()) return in.error();
  return out;
}

}  // namespace warmroute
