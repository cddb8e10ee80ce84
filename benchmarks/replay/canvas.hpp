/// A few SVG elements, for the plots of replays and simulations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

namespace warmroute::replay {

inline constexpr std::array<const char*, 10> kColours{"#8a8f98", "#0f766e", "#c2410c", "#4338ca", "#a16207",
                                                      "#9d174d", "#0369a1", "#4d7c0f", "#7e22ce", "#111827"};
inline const char* colour_of(std::size_t run) { return kColours[run % kColours.size()]; }

struct Box {
  double x, y, width, height;
};

/// Appends SVG elements. Coordinates are pixels from the top left.
class Canvas {
 public:
  Canvas(double width, double height) {
    print(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n",
        width, height, width, height);
    print("<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", width, height);
  }
  template <class... Args>
  void print(const char* pattern, Args... args) {
    char text[512];
    std::snprintf(text, sizeof text, pattern, args...);
    out_ += text;
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, double width) {
    print("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%g\"/>\n", x1, y1, x2, y2,
          colour, width);
  }
  void text(double x, double y, const char* anchor, const char* style, const std::string& words) {
    print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>", x, y, anchor, style);
    for (const char c : words) {
      if (c == '<') out_ += "&lt;";
      else if (c == '&') out_ += "&amp;";
      else out_ += c;
    }
    out_ += "</text>\n";
  }
  void raw(const std::string& element) { out_ += element; }
  std::string finish() { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

}  // namespace warmroute::replay
