// The plot of several runs: how many requests had their first token by when, and how much of the prompts came from
// caches.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "replay/canvas.hpp"
#include "replay/report.hpp"

namespace warmroute::replay {
namespace {

std::string short_time(double ms) {
  char text[32];
  if (ms < 1000) std::snprintf(text, sizeof text, "%g ms", ms);
  else std::snprintf(text, sizeof text, "%g s", ms / 1000);
  return text;
}

void draw_ttft(Canvas& canvas, const Box& box, const std::vector<Report>& reports) {
  double low = 1e300, high = 1;
  for (const Report& r : reports) {
    low = std::min(low, std::max(1.0, r.ttft_percentiles[1]));
    high = std::max(high, r.ttft_percentiles[100]);
  }
  const double first = std::floor(std::log10(low)), last = std::max(first + 1, std::ceil(std::log10(high)));
  const auto x_of = [&](double ms) {
    return box.x + box.width * std::clamp((std::log10(std::max(ms, 0.001)) - first) / (last - first), 0.0, 1.0);
  };
  const auto y_of = [&](double share) { return box.y + box.height * (1 - share); };

  canvas.text(box.x, box.y - 14, "start", "font-weight=\"bold\" font-size=\"14\"",
              "Time to first token: share of requests answered by");
  for (int step = 0; step <= 4; ++step) {
    const double share = step / 4.0;
    canvas.line(box.x, y_of(share), box.x + box.width, y_of(share), "#e5e7eb", 1);
    canvas.text(box.x - 8, y_of(share) + 4, "end", "fill=\"#4b5563\"", std::to_string(step * 25) + " %");
  }
  for (double decade = first; decade <= last; ++decade) {
    const double ms = std::pow(10.0, decade);
    canvas.line(x_of(ms), box.y, x_of(ms), box.y + box.height, "#e5e7eb", 1);
    canvas.text(x_of(ms), box.y + box.height + 18, "middle", "fill=\"#4b5563\"", short_time(ms));
  }
  for (std::size_t i = 0; i < reports.size(); ++i) {
    std::string points;
    for (std::size_t p = 0; p <= 100; ++p) {
      char point[48];
      std::snprintf(point, sizeof point, "%.1f,%.1f ", x_of(reports[i].ttft_percentiles[p]),
                    y_of(static_cast<double>(p) / 100));
      points += point;
    }
    canvas.raw("<polyline fill=\"none\" stroke=\"" + std::string(colour_of(i)) + "\" stroke-width=\"2.5\" points=\"" +
               points + "\"/>\n");
    const double mean_x = x_of(reports[i].ttft.mean);
    canvas.print(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"1.5\" stroke-dasharray=\"4 "
        "3\"/>\n",
        mean_x, box.y, mean_x, box.y + box.height, colour_of(i));
  }
  canvas.text(box.x + box.width, box.y + box.height + 36, "end", "fill=\"#4b5563\" font-size=\"11\"",
              "simulated time, logarithmic scale; dashed: mean");
}

void draw_hits(Canvas& canvas, const Box& box, const std::vector<Report>& reports) {
  double bound = 0, top = 0.05;
  for (const Report& r : reports) {
    bound = std::max(bound, r.bound_ratio);
    top = std::max({top, r.hit_ratio, r.bound_ratio});
  }
  double step_size = 0.25;  // a round number of percent, so that four steps hold the highest bar
  for (const double candidate : {0.2, 0.15, 0.1, 0.05, 0.025}) {
    if (candidate * 4 >= top * 1.02) step_size = candidate;
  }
  top = step_size * 4;
  const auto y_of = [&](double ratio) { return box.y + box.height * (1 - ratio / top); };
  canvas.text(box.x, box.y - 14, "start", "font-weight=\"bold\" font-size=\"14\"", "Input tokens served from caches");
  for (int step = 0; step <= 4; ++step) {
    const double ratio = step_size * step;
    canvas.line(box.x, y_of(ratio), box.x + box.width, y_of(ratio), "#e5e7eb", 1);
    char label[32];
    std::snprintf(label, sizeof label, "%.3g %%", ratio * 100);
    canvas.text(box.x - 8, y_of(ratio) + 4, "end", "fill=\"#4b5563\"", label);
  }
  const double slot = box.width / static_cast<double>(reports.size());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const double x = box.x + slot * (static_cast<double>(i) + 0.2);
    canvas.print("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x,
                 y_of(reports[i].hit_ratio), slot * 0.6, std::max(0.0, box.y + box.height - y_of(reports[i].hit_ratio)),
                 colour_of(i));
    char label[32];
    std::snprintf(label, sizeof label, "%.1f %%", reports[i].hit_ratio * 100);
    const double bar_top = y_of(reports[i].hit_ratio);
    const bool fits_inside = box.y + box.height - bar_top > 24;
    canvas.text(x + slot * 0.3, fits_inside ? bar_top + 17 : bar_top - 6, "middle",
                fits_inside ? "font-weight=\"bold\" fill=\"#ffffff\"" : "font-weight=\"bold\"", label);
  }
  if (bound > 0) {
    canvas.print(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#111827\" stroke-dasharray=\"5 4\"/>\n", box.x,
        y_of(bound), box.x + box.width, y_of(bound));
    char label[64];
    std::snprintf(label, sizeof label, "dashed: one infinite cache, %.1f %%", bound * 100);
    canvas.text(box.x + box.width, box.y + box.height + 18, "end", "fill=\"#4b5563\" font-size=\"11\"", label);
  }
}

void draw_legend(Canvas& canvas, double x, double y, const std::vector<Report>& reports) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const double at = y + 18 * static_cast<double>(i);
    canvas.print("<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" fill=\"%s\"/>\n", x, at - 9, colour_of(i));
    char figures[160];
    std::snprintf(figures, sizeof figures, ": TTFT mean %.0f ms, p99 %.0f ms; end to end %.1f s; %lld of %lld answered",
                  reports[i].ttft.mean, reports[i].ttft.p99, reports[i].e2e.mean / 1000,
                  static_cast<long long>(reports[i].completed), static_cast<long long>(reports[i].requests));
    canvas.text(x + 20, at, "start", "", reports[i].label + figures);
  }
}

}  // namespace

std::string to_svg(const std::vector<Report>& reports) {
  const double legend = 18 * static_cast<double>(reports.size());
  Canvas canvas{960, 420 + legend};
  draw_ttft(canvas, {70, 50, 500, 300}, reports);
  draw_hits(canvas, {670, 50, 250, 300}, reports);
  draw_legend(canvas, 70, 412, reports);
  return canvas.finish();
}

}  // namespace warmroute::replay
