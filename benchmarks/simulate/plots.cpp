#include <algorithm>
#include <cmath>
#include <map>

#include "replay/canvas.hpp"
#include "simulate/experiment.hpp"

namespace warmroute::simulate {
namespace {

using replay::Box;
using replay::Canvas;

struct Line {
  std::string label;
  std::vector<std::pair<double, double>> points;
};
struct Axes {
  std::string title, x_label;
  bool log_y = false;
  double y_floor = 0;
  const char* y_format = "%g";
};

/// A round step that cuts `range` into at most five.
double round_step(double range) {
  const double raw = range / 5, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (power * factor >= raw) return power * factor;
  }
  return power * 10;
}

std::string label_of(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

class Chart {
 public:
  Chart(const Axes& axes, const std::vector<Line>& lines) : axes_(axes), lines_(lines) {
    for (const Line& line : lines) {
      for (const auto& [x, y] : line.points) {
        low_x_ = std::min(low_x_, x);
        high_x_ = std::max(high_x_, x);
        low_y_ = std::min(low_y_, scale(y));
        high_y_ = std::max(high_y_, scale(y));
      }
    }
    if (!axes.log_y) low_y_ = axes.y_floor;
    else low_y_ = std::floor(low_y_);
    if (axes.log_y) high_y_ = std::ceil(high_y_);
    if (!(high_x_ > low_x_)) high_x_ = low_x_ + 1;
    if (!(high_y_ > low_y_)) high_y_ = low_y_ + 1;
  }

  std::string draw() {
    const double legend = 18 * static_cast<double>(lines_.size());
    Canvas canvas{820, 400 + legend};
    canvas.text(box_.x, 26, "start", "font-weight=\"bold\" font-size=\"14\"", axes_.title);
    grid(canvas);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      std::string points;
      for (const auto& [x, y] : lines_[i].points) points += label_of("%.1f,", x_of(x)) + label_of("%.1f ", y_of(y));
      canvas.raw(std::string("<polyline fill=\"none\" stroke=\"") + replay::colour_of(i + 1) +
                 "\" stroke-width=\"2\" points=\"" + points + "\"/>\n");
      const double at = 402 + 18 * static_cast<double>(i);
      canvas.print("<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" fill=\"%s\"/>\n", box_.x, at - 9,
                   replay::colour_of(i + 1));
      canvas.text(box_.x + 20, at, "start", "", lines_[i].label);
    }
    return canvas.finish();
  }

 private:
  [[nodiscard]] double scale(double y) const { return axes_.log_y ? std::log10(std::max(y, 1e-3)) : y; }
  [[nodiscard]] double x_of(double x) const { return box_.x + box_.width * (x - low_x_) / (high_x_ - low_x_); }
  [[nodiscard]] double y_of(double y) const {
    return box_.y + box_.height * (1 - (scale(y) - low_y_) / (high_y_ - low_y_));
  }
  void horizontal(Canvas& canvas, double y) const {
    canvas.line(box_.x, y_of(y), box_.x + box_.width, y_of(y), "#e5e7eb", 1);
    canvas.text(box_.x - 8, y_of(y) + 4, "end", "fill=\"#4b5563\"", label_of(axes_.y_format, y));
  }
  void grid(Canvas& canvas) const {
    if (axes_.log_y) {
      for (double decade = low_y_; decade <= high_y_; ++decade) horizontal(canvas, std::pow(10.0, decade));
    } else {
      const double step = round_step(high_y_ - low_y_);
      for (double y = std::ceil(low_y_ / step) * step; y <= high_y_; y += step) horizontal(canvas, y);
    }
    const double step = round_step(high_x_ - low_x_);
    for (double x = std::ceil(low_x_ / step - 1e-9) * step; x <= high_x_ + 1e-9; x += step) {
      canvas.text(x_of(x), box_.y + box_.height + 18, "middle", "fill=\"#4b5563\"", label_of("%g", x + 0.0));  // no -0
    }
    canvas.text(box_.x + box_.width, box_.y + box_.height + 34, "end", "fill=\"#4b5563\" font-size=\"11\"",
                axes_.x_label);
  }

  Axes axes_;
  const std::vector<Line>& lines_;
  Box box_{80, 44, 700, 300};
  double low_x_ = 1e300, high_x_ = -1e300, low_y_ = 1e300, high_y_ = -1e300;
};

std::string who(const Cell& c, bool with_view) {
  return with_view ? c.rule + " (" + std::string(c.view.name) + ")" : c.rule;
}

/// One line per rule and view, a point per distinct x.
template <class X, class Y>
std::vector<Line> lines_over(const std::vector<Cell>& cells, X&& x, Y&& y) {
  const bool with_view =
      std::any_of(cells.begin(), cells.end(), [&](const Cell& c) { return c.view.name != cells[0].view.name; });
  std::vector<Line> lines;
  for (const Cell& c : cells) {
    const std::string label = who(c, with_view);
    auto it = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.label == label; });
    if (it == lines.end()) it = lines.insert(lines.end(), Line{label, {}});
    it->points.emplace_back(x(c), y(c));
  }
  for (Line& line : lines) std::sort(line.points.begin(), line.points.end());
  std::erase_if(lines,
                [](const Line& l) { return l.points.size() < 2 || l.points.front().first == l.points.back().first; });
  return lines;
}

/// The load of each replica over time, and how much of the prompts was found in caches; of the first seed.
void over_time(const Cell& c, std::size_t number, std::vector<Plot>& out) {
  if (c.runs.empty() || c.runs[0].samples.size() < 2) return;
  const auto& samples = c.runs[0].samples;
  std::vector<Line> loads(samples.back().tokens_in_flight.size());
  Line hits{c.rule, {}};
  for (const trace::LoadSample& s : samples) {
    const double at = static_cast<double>(s.at_us) / 1e6;
    for (std::size_t r = 0; r < s.tokens_in_flight.size(); ++r)
      loads[r].points.emplace_back(at, static_cast<double>(s.tokens_in_flight[r]) / 1e3);
    if (s.input_tokens > 0)
      hits.points.emplace_back(at, 100.0 * static_cast<double>(s.hit_tokens) / static_cast<double>(s.input_tokens));
  }
  for (std::size_t r = 0; r < loads.size(); ++r) loads[r].label = "replica " + std::to_string(r);
  const std::string suffix = "-" + std::to_string(number) + ".svg";
  out.push_back(
      {"replicas" + suffix, Chart({"Thousand tokens in flight per replica: " + c.rule, "seconds"}, loads).draw()});
  if (hits.points.size() > 1) {
    const std::vector<Line> one{hits};
    out.push_back({"hits" + suffix, Chart({"Input tokens found in caches, %: " + c.rule, "seconds"}, one).draw()});
  }
}

}  // namespace

std::vector<Plot> plots(const std::vector<Cell>& cells) {
  std::vector<Plot> out;
  if (cells.empty()) return out;
  const auto ttft = [](const Cell& c) { return c.mean([](const auto& f) { return f.ttft.mean_us / 1e3; }); };
  const auto hit = [](const Cell& c) { return c.mean([](const auto& f) { return f.hit_ratio * 100; }); };
  const auto by_load = lines_over(
      cells, [](const Cell& c) { return c.load; }, ttft);
  if (!by_load.empty()) {
    out.push_back(
        {"ttft.svg",
         Chart({"Mean time to first token, ms", "load: prefill utilisation without caches", true}, by_load).draw()});
  }
  const auto by_capacity = lines_over(
      cells, [](const Cell& c) { return static_cast<double>(c.capacity) / 1e3; }, hit);
  if (!by_capacity.empty()) {
    out.push_back(
        {"hits.svg", Chart({"Input tokens found in caches, %", "thousand KV tokens per replica"}, by_capacity).draw()});
  }
  for (std::size_t i = 0; i < cells.size(); ++i) over_time(cells[i], i, out);
  return out;
}

}  // namespace warmroute::simulate
