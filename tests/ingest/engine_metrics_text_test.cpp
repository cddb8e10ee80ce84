// The text reader beside a naive one: on every page of the cases, cut anywhere, mutated, and on pages of random pieces.
#include <limits>
#include <random>

#include "ingest/engine_metrics_file.hpp"
#include "ingest/metrics_text.hpp"
#include "ingest/naive_metrics.hpp"
#include "support/sanitized.hpp"

namespace warmroute {
namespace {

using metrics::Sample;
using metrics::TextReader;

// returns: the page's samples by the fast reader, in the naive one's form.
test::NaivePage fast_page(TextReader& reader, std::string_view page) {
  test::NaivePage out;
  reader.start(page);
  for (Sample sample; reader.next(sample);) {
    test::NaiveSample& copy = out.samples.emplace_back();
    copy.name = sample.name;
    copy.number = sample.number;
    for (const metrics::Label& label : sample.labels) copy.labels.emplace_back(label.name, label.value);
  }
  out.malformed = reader.malformed();
  EXPECT_LE(reader.first_malformed(), page.size());
  return out;
}

// returns: whether both read the same.
bool same(TextReader& reader, const std::string& page) {
  const std::vector<char> exact(page.begin(), page.end());  // a byte read behind it is seen by the sanitizer
  const test::NaivePage fast = fast_page(reader, {exact.data(), exact.size()});
  const test::NaivePage naive = test::naive_page(page);
  return fast.samples == naive.samples && fast.malformed == naive.malformed;
}

constexpr std::size_t kSmallSteps = 20'000;

TEST(EngineMetricsText, ReadsEveryPageOfTheCasesAsTheNaiveReaderDoes) {
  TextReader reader(128, std::size_t{1} << 20);
  std::size_t samples = 0;
  for (const std::string& name : test::metrics_cases()) {
    const std::string page = test::page_of(name);
    if (page.size() > kSmallSteps) continue;
    EXPECT_TRUE(same(reader, page)) << name;
    samples += fast_page(reader, page).samples.size();
  }
  EXPECT_GT(samples, 600u);
}

TEST(EngineMetricsText, ReadsPagesThatAreCutAnywhereAsTheNaiveReaderDoes) {
  TextReader reader(128, std::size_t{1} << 20);
  std::mt19937_64 random(11);
  for (const std::string& name : test::metrics_cases()) {
    const std::string page = test::page_of(name);
    if (page.size() > kSmallSteps) continue;
    for (std::size_t cut = 0; cut < page.size(); cut += page.size() < 800 ? 1 : 1 + random() % (page.size() / 40)) {
      ASSERT_TRUE(same(reader, page.substr(0, cut))) << name << " cut at " << cut;
    }
  }
}

TEST(EngineMetricsText, ReadsMutatedPagesAsTheNaiveReaderDoes) {
  TextReader reader(128, std::size_t{1} << 20);
  std::mt19937_64 random(12);
  std::vector<std::string> pages;
  for (const std::string& name : test::metrics_cases()) {
    std::string page = test::page_of(name);
    if (page.size() <= kSmallSteps && !page.empty()) pages.push_back(page.substr(0, 1'500));
  }
  constexpr std::string_view kBytes{"{}\",=\\#\n\r \t+-.eE0n:_\0\xC3\xA9\xFF", 24};
  for (int round = 0; round < test::rounds(4'000, 4); ++round) {
    std::string page = pages[random() % pages.size()];
    for (std::uint64_t edits = 1 + random() % 6; edits > 0 && !page.empty(); --edits) {
      const std::size_t at = random() % page.size();
      if (random() % 3 == 0) page.erase(at, 1 + random() % 20);
      else if (random() % 2 == 0) page[at] = kBytes[random() % kBytes.size()];
      else page.insert(at, 1, kBytes[random() % kBytes.size()]);
    }
    ASSERT_TRUE(same(reader, page)) << page;
  }
}

// Lines of the right shape with pieces of any sort; one piece in twelve is out of its place.
class RandomPage {
 public:
  explicit RandomPage(std::uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string page = one_in(20) ? "\xEF\xBB\xBF" : "";
    for (std::uint64_t lines = random_() % 6; lines > 0; --lines) page += line() + (one_in(9) ? "\r\n" : "\n");
    return one_in(3) ? page + line() : page;
  }

 private:
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  std::string any(const std::vector<std::string>& choices) {
    if (!one_in(12)) return choices[random_() % choices.size()];
    const std::vector<std::string> odd{
        "",     "{", "}", "\"",       ",",  "=",  "\\", "\\x", "#",        " ",
        "\xFF", "0", "e", "\xC3\xA9", "\r", "\n", "+",  "_",   "infinity", std::string(1, '\0')};
    return odd[random_() % odd.size()];
  }
  std::string blank() { return any({"", "", "", " ", "\t "}); }
  std::string number() {
    return any(
        {"1", "-0.0", "12.0", "1.79e+09", "NaN", "+Inf", "-inf", "Infinity", ".5", "5.", "1E-3", "9007199254740994"});
  }
  std::string text() {
    return "\"" + any({"", "v", "a\\nb", "q\\\"", "\\\\", "0", "harbour-7b", "\xC3\xA9", "a,b", "{}#"}) + "\"";
  }
  std::string labels(bool may_name) {
    std::string out = "{";
    if (may_name && one_in(4)) out += any({"\"vllm:x\"", "\"\xC3\xA9.x\"", "\"\""}) + any({",", ""});
    for (std::uint64_t n = random_() % 4; n > 0; --n) {
      out += blank() + any({"k", "engine", "le", "_x9", "\"quoted\"", "m", "\"\""}) + blank() + any({"="}) + blank() +
             text() + blank();
      if (n > 1 || one_in(5)) out += any({","});
    }
    return out + any({"}"});
  }
  std::string line() {
    if (one_in(8))
      return any({"# HELP a b", "# TYPE a gauge", "#", "", "  ", " # EOF", "# comment"}) +
             (one_in(40) ? "\n# EOF" : "");
    std::string out = blank() + any({"a", "vllm:num_requests_waiting", "_b:9", ""});
    const bool braces = !one_in(3);
    if (braces) out += blank() + labels(true);
    out += braces ? blank() : any({" ", "\t"});
    out += number();
    if (one_in(4)) out += any({" "}) + number();
    if (one_in(4)) out += any({" # ", " #"}) + labels(false) + " " + number() + (one_in(2) ? " " + number() : "");
    return out + blank();
  }

  std::mt19937_64 random_;
};

TEST(EngineMetricsText, ReadsRandomPagesAsTheNaiveReaderDoes) {
  TextReader reader(128, std::size_t{1} << 20);
  RandomPage pages(13);
  std::size_t samples = 0;
  std::size_t malformed = 0;
  for (int round = 0; round < test::rounds(20'000, 4); ++round) {
    const std::string page = pages.next();
    ASSERT_TRUE(same(reader, page)) << page;
    samples += fast_page(reader, page).samples.size();
    malformed += reader.malformed();
  }
  EXPECT_GT(samples, test::rounds(10'000u, 4u));
  EXPECT_GT(malformed, test::rounds(5'000u, 4u));
}

TEST(EngineMetricsText, HasTheValueOfANumberOfAnySpelling) {
  const std::vector<std::pair<std::string, double>> numbers{{"0", 0},
                                                            {"-0.0", 0},
                                                            {"12.0", 12},
                                                            {"+7", 7},
                                                            {"1e3", 1e3},
                                                            {"9007199254740994", 9007199254740994.0},
                                                            {"9999999999999999999", 1e19},
                                                            {"99999999999999999999", 1e20},
                                                            {".5", 0.5},
                                                            {"5.", 5},
                                                            {"1.79E+09", 1.79e9},
                                                            {"-0.25", -0.25},
                                                            {"1e999", std::numeric_limits<double>::infinity()},
                                                            {"-1e999", -std::numeric_limits<double>::infinity()},
                                                            {"1e-999", 0},
                                                            {"INF", std::numeric_limits<double>::infinity()},
                                                            {"-Infinity", -std::numeric_limits<double>::infinity()}};
  for (const auto& [text, value] : numbers) {
    EXPECT_TRUE(metrics::is_number(text)) << text;
    EXPECT_EQ(metrics::number_value(text), value) << text;
  }
  EXPECT_TRUE(std::isnan(metrics::number_value("NaN")));
  for (const char* text : {"", "-", ".", "1e", "0x1p-2", "1_000", "12abc", "infinit", "1 ", "--1", "e5"}) {
    EXPECT_FALSE(metrics::is_number(text)) << text;
  }
}

TEST(EngineMetricsText, SkipsSamplesWithMoreLabelsOrBytesThanAllowed) {
  TextReader reader(3, 64);
  const std::string page = "a{k=\"1\",l=\"2\",m=\"3\"} 1\nb{k=\"1\",l=\"2\",m=\"3\",n=\"4\"} 2\nc{k=\"" +
                           std::string(64, 'x') + "\"} 3\nd 4\n# HELP " + std::string(100, 'h') + "\n";
  const test::NaivePage read = fast_page(reader, page);
  ASSERT_EQ(read.samples.size(), 2u);
  EXPECT_EQ(read.samples[0].name, "a");
  EXPECT_EQ(read.samples[1].name, "d");
  EXPECT_EQ(read.malformed, 2u);
  EXPECT_EQ(reader.first_malformed(), page.find("b{"));
}

}  // namespace
}  // namespace warmroute
