// Whatever the page, a reading keeps its promises; random pages of two engines beside an obvious model of the rules.
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "ingest/engine_metrics_file.hpp"
#include "ingest/naive_metrics.hpp"
#include "support/sanitized.hpp"

namespace warmroute {
namespace {

// Touches every byte that a reading shows. returns: empty, or what is wrong with it.
std::string wrong_with(const EngineRank& rank) {
  for (const auto& count : {rank.waiting, rank.running, rank.prefix_hits, rank.prefix_queries, rank.block_tokens,
                            rank.block_count, rank.lora_max, rank.waiting_tokens}) {
    if (count && *count < 0) return "a negative count";
  }
  for (const auto& ratio : {rank.kv_usage, rank.prefix_hit_rate}) {
    if (ratio && !(*ratio >= 0 && *ratio <= 1)) return "a ratio beyond 0..1";
  }
  if (rank.prefix_hits.has_value() != rank.prefix_queries.has_value()) return "half a pair";
  if (rank.prefix_hits.has_value() != (rank.prefix_unit != PrefixUnit::unknown)) return "a unit without counts";
  if (rank.dp_rank && *rank.dp_rank > 65'535) return "a huge rank";
  if (rank.ttft) {
    if (rank.ttft->buckets.empty() || !std::isinf(rank.ttft->buckets.back().le)) return "no last bucket";
    for (std::size_t i = 1; i < rank.ttft->buckets.size(); ++i) {
      if (!(rank.ttft->buckets[i - 1].le < rank.ttft->buckets[i].le)) return "buckets out of order";
    }
  }
  return {};
}

// Reads from a buffer of the exact size, so that a sanitizer sees every byte too far.
std::string wrong_with(EngineMetricsParser& parser, const std::string& page) {
  const std::vector<char> exact(page.begin(), page.end());
  const auto reading = parser.parse({exact.data(), exact.size()});
  if (!reading.ok()) {
    const Error& error = reading.error();
    if (error.message.empty()) return "no message";
    return error.offset == kNoOffset || error.offset <= page.size() ? "" : "an offset behind the page";
  }
  if (test::described(*reading).empty()) return "nothing";
  if (reading->skipped_lines != parser.skipped_lines()) return "two counts of skipped lines";
  std::set<std::pair<std::string_view, std::optional<std::uint32_t>>> keys;
  for (const EngineRank& rank : reading->ranks) {
    if (!keys.emplace(rank.model, rank.dp_rank).second) return "a rank twice";
    if (const std::string wrong = wrong_with(rank); !wrong.empty()) return wrong;
  }
  return reading->shared ? wrong_with(*reading->shared) : "";
}

constexpr std::size_t kSmall = 20'000;

TEST(EngineMetricsRobustness, PagesMayBeCutAnywhere) {
  EngineMetricsParser parser;
  std::mt19937_64 random(21);
  for (const std::string& name : test::metrics_cases()) {
    const std::string page = test::page_of(name);
    if (page.size() > kSmall) continue;
    for (std::size_t cut = 0; cut < page.size(); cut += page.size() < 1'000 ? 1 : 1 + random() % (page.size() / 60)) {
      ASSERT_EQ(wrong_with(parser, page.substr(0, cut)), "") << name << " cut at " << cut;
    }
  }
}

TEST(EngineMetricsRobustness, PagesMayBeMutatedAndMixed) {
  EngineMetricsParser parser;
  std::mt19937_64 random(22);
  std::vector<std::string> lines;
  for (const std::string& name : test::metrics_cases()) {
    const std::string page = test::page_of(name);
    if (page.size() > kSmall) continue;
    for (std::size_t at = 0; at < page.size();) {
      const std::size_t end = std::min(page.find('\n', at), page.size() - 1);
      lines.push_back(page.substr(at, end + 1 - at));
      at = end + 1;
    }
  }
  constexpr std::string_view kBytes{"{}\",=\\#\n\r \t+-.eE019n:_\0\xC3\xA9\xFF", 26};
  std::size_t read = 0;
  for (int round = 0; round < test::rounds(6'000, 4); ++round) {
    std::string page;
    const std::size_t start = random() % lines.size();
    for (std::uint64_t n = random() % 30, i = 0; i < n; ++i) {
      page += random() % 4 == 0 ? lines[random() % lines.size()] : lines[(start + i) % lines.size()];
    }
    for (std::uint64_t edits = random() % 8; edits > 0 && !page.empty(); --edits) {
      const std::size_t at = random() % page.size();
      if (random() % 3 == 0) page.erase(at, 1 + random() % 20);
      else if (random() % 2 == 0) page[at] = kBytes[random() % kBytes.size()];
      else page.insert(at, 1, kBytes[random() % kBytes.size()]);
    }
    ASSERT_EQ(wrong_with(parser, page), "") << page;
    read += parser.parse(page).ok() ? 1 : 0;
  }
  EXPECT_GT(read, test::rounds(1'000u, 4u));
}

// The rules for gauges and counters of vLLM and SGLang, one sentence each, from the naive reader's samples.
class Model {
 public:
  Model(const std::string& page, bool sglang) : sglang_(sglang) {
    const std::string prefix = sglang ? "sglang:" : "vllm:";
    for (const test::NaiveSample& sample : test::naive_page(page).samples) {
      if (sample.name.rfind(prefix, 0) != 0) continue;
      std::map<std::string, std::string> labels(sample.labels.begin(), sample.labels.end());
      const std::string rank = labels[sglang ? "dp_rank" : "engine"];
      series_[sample.name.substr(prefix.size())][rank][labels] =
          std::strtod(sample.number.c_str(), nullptr);  // the last wins
    }
  }
  std::optional<double> gauge(const std::string& name, const std::string& rank) {
    std::map<std::string, std::optional<double>> parts;  // by priority
    for (const auto& [labels, value] : series_[name][rank]) {
      const auto priority = labels.find("priority");
      std::optional<double>& part = parts[sglang_ && priority != labels.end() ? priority->second : ""];
      const bool count = name.find("usage") == std::string::npos;
      if (count && value != std::floor(value)) continue;  // unknown; what is known of the part is its maximum
      part = std::max(part.value_or(value), value);
    }
    if (parts.empty()) return std::nullopt;
    if (parts.count("") != 0) return parts[""];
    double sum = 0;
    for (const auto& part : parts) {
      if (!part.second) return std::nullopt;
      sum += *part.second;
    }
    return sum;
  }
  std::optional<double> counter(const std::string& name, const std::string& rank) {
    if (series_[name][rank].empty()) return std::nullopt;
    double sum = 0;
    for (const auto& series : series_[name][rank]) sum += series.second;
    return sum;
  }
  std::set<std::string> ranks() const {
    std::set<std::string> all;
    for (const auto& metric : series_) {
      for (const auto& rank : metric.second) {
        if (!rank.second.empty()) all.insert(rank.first);
      }
    }
    return all;
  }

 private:
  bool sglang_;
  std::map<std::string, std::map<std::string, std::map<std::map<std::string, std::string>, double>>> series_;
};

std::optional<double> as_double(const std::optional<std::int64_t>& count) {
  return count ? std::optional<double>(static_cast<double>(*count)) : std::nullopt;
}

TEST(EngineMetricsRobustness, RandomPagesReadAsTheRulesSay) {
  EngineMetricsParser parser;
  std::mt19937_64 random(23);
  std::size_t several_ranks = 0;
  for (int round = 0; round < test::rounds(3'000, 4); ++round) {
    const bool sglang = random() % 2 == 0;
    const std::vector<std::string> names =
        sglang ? std::vector<std::string>{"num_queue_reqs", "num_running_reqs", "token_usage", "cached_tokens_total",
                                          "prompt_tokens_total"}
               : std::vector<std::string>{"num_requests_waiting", "num_requests_running", "kv_cache_usage_perc",
                                          "prefix_cache_hits_total", "prefix_cache_queries_total"};
    std::string page;
    for (std::uint64_t n = 1 + random() % 40; n > 0; --n) {
      const std::size_t which = random() % names.size();
      page += (sglang ? "sglang:" : "vllm:") + names[which] + (sglang ? "{dp_rank=\"" : "{engine=\"") +
              std::to_string(random() % 3) + "\"";
      if (random() % 3 == 0) page += ",pid=\"" + std::to_string(random() % 2) + "\"";
      if (sglang && which < 2) page += ",priority=\"" + (random() % 3 == 0 ? "" : std::to_string(random() % 3)) + "\"";
      page += "} " + std::to_string(random() % 100);
      if (which == 2) page = page.substr(0, page.rfind(' ')) + " 0." + std::to_string(random() % 100);
      if (which < 2 && random() % 9 == 0) page += random() % 2 == 0 ? ".5" : "e-400";
      page += "\n";
    }
    Model model(page, sglang);
    const auto reading = parser.parse(page);
    ASSERT_TRUE(reading.ok()) << page;
    const std::set<std::string> ranks = model.ranks();
    ASSERT_EQ(reading->ranks.size(), ranks.size()) << page;
    several_ranks += ranks.size() > 1 ? 1 : 0;
    std::size_t i = 0;
    for (const std::string& label : ranks) {  // single digits: the same order
      const EngineRank& rank = reading->ranks[i++];
      ASSERT_EQ(std::to_string(*rank.dp_rank), label);
      EXPECT_EQ(as_double(rank.waiting), model.gauge(names[0], label)) << page;
      EXPECT_EQ(as_double(rank.running), model.gauge(names[1], label)) << page;
      EXPECT_EQ(rank.kv_usage, model.gauge(names[2], label)) << page;
      const auto hits = model.counter(names[3], label);
      const auto queries = model.counter(names[4], label);
      EXPECT_EQ(as_double(rank.prefix_hits), hits && queries ? hits : std::nullopt) << page;
      EXPECT_EQ(as_double(rank.prefix_queries), hits && queries ? queries : std::nullopt) << page;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(several_ranks, test::rounds(1'000u, 4u));
}

TEST(EngineMetricsRobustness, APageReadsAsItDidBeforeOtherPages) {
  EngineMetricsParser reused;
  std::mt19937_64 random(24);
  std::vector<std::string> pages;
  for (const std::string& name : test::metrics_cases()) {
    std::string page = test::page_of(name);
    if (page.size() <= kSmall) pages.push_back(std::move(page));
  }
  for (int round = 0; round < 600; ++round) {
    const std::string& page = pages[random() % pages.size()];
    EngineMetricsParser fresh;
    const auto a = reused.parse(page);
    const auto b = fresh.parse(page);
    ASSERT_EQ(a.code(), b.code());
    if (!a.ok()) continue;
    ASSERT_EQ(test::described(*a), test::described(*b));
  }
}

}  // namespace
}  // namespace warmroute
