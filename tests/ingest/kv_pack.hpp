// MessagePack for tests: writes values, and a second reader that knows nothing of the decoder's.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warmroute::test {

/// Appends values in the shortest form, as engines' encoders do.
class Pack {
 public:
  Pack& nil() { return byte(0xc0); }
  Pack& boolean(bool b) { return byte(b ? 0xc3 : 0xc2); }
  Pack& u(std::uint64_t v) {
    if (v < 0x80) return byte(static_cast<unsigned>(v));
    if (v < 0x100) return byte(0xcc).be(v, 1);
    if (v < 0x10000) return byte(0xcd).be(v, 2);
    if (v < 0x100000000) return byte(0xce).be(v, 4);
    return byte(0xcf).be(v, 8);
  }
  Pack& i(std::int64_t v) {
    if (v >= 0) return u(static_cast<std::uint64_t>(v));
    if (v >= -32) return byte(static_cast<unsigned>(v & 0xff));
    return byte(0xd3).be(static_cast<std::uint64_t>(v), 8);
  }
  Pack& f64(double d) { return byte(0xcb).be(std::bit_cast<std::uint64_t>(d), 8); }
  Pack& text(std::string_view s) {
    s.size() < 32 ? byte(0xa0 | static_cast<unsigned>(s.size())) : byte(0xda).be(s.size(), 2);
    bytes_ += s;
    return *this;
  }
  Pack& bin(std::string_view s) {
    byte(0xc4).be(s.size(), 1);
    bytes_ += s;
    return *this;
  }
  Pack& array(std::size_t n) {
    if (n < 16) return byte(0x90 | static_cast<unsigned>(n));
    return n < 0x10000 ? byte(0xdc).be(n, 2) : byte(0xdd).be(n, 4);
  }
  Pack& map(std::size_t n) { return n < 16 ? byte(0x80 | static_cast<unsigned>(n)) : byte(0xde).be(n, 2); }
  Pack& raw(std::string_view s) {
    bytes_ += s;
    return *this;
  }
  template <class Values>
  Pack& list(const Values& values) {
    array(values.size());
    for (const auto v : values) u(static_cast<std::uint64_t>(v));
    return *this;
  }
  [[nodiscard]] const std::string& str() const { return bytes_; }
  operator std::string_view() const { return bytes_; }

 private:
  Pack& byte(unsigned b) {
    bytes_.push_back(static_cast<char>(b));
    return *this;
  }
  Pack& be(std::uint64_t v, int n) {
    for (int k = n - 1; k >= 0; --k) byte(static_cast<unsigned>(v >> (8 * k)) & 0xff);
    return *this;
  }
  std::string bytes_;
};

/// A value read by plain recursion; only for bytes that are known to be sound.
struct Unpacked {
  enum Kind { nil, boolean, number, real, text, bytes, list, map } kind = nil;
  std::uint64_t bits = 0;
  bool negative = false;
  double f = 0;
  std::string s;
  std::vector<Unpacked> items;  // of a map: key, value, key, value...

  [[nodiscard]] const Unpacked* find(std::string_view key) const {
    const Unpacked* found = nullptr;
    for (std::size_t k = 0; k + 1 < items.size(); k += 2) {
      if (items[k].kind == text && items[k].s == key) found = &items[k + 1];
    }
    return found;
  }
  /// An event's field by its name, or its position in the array form.
  [[nodiscard]] const Unpacked* field(std::string_view name, std::size_t position) const {
    if (kind == map) return find(name);
    return position < items.size() ? &items[position] : nullptr;
  }
  /// As JSON; bytes as {"bytes":"hex"}.
  [[nodiscard]] std::string json() const {
    std::string out;
    switch (kind) {
      case nil: return "null";
      case boolean: return bits != 0 ? "true" : "false";
      case number: return negative ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
      case real: return std::to_string(f);
      case text: return '"' + s + '"';
      case bytes: return R"({"bytes":")" + hex() + "\"}";
      case list:
      case map: break;
    }
    for (const Unpacked& item : items) out += (out.empty() ? "" : ",") + item.json();
    return '[' + out + ']';
  }
  [[nodiscard]] std::string hex() const {
    std::string out;
    for (const char c : s) {
      for (const int shift : {4, 0}) out += "0123456789abcdef"[(static_cast<unsigned char>(c) >> shift) & 15];
    }
    return out;
  }
};

inline Unpacked unpack(std::string_view& in) {
  const auto take = [&in](std::size_t n) {
    const std::string_view part = in.substr(0, n);
    in.remove_prefix(part.size());
    return part;
  };
  const auto be = [&take](std::size_t n) {
    std::uint64_t v = 0;
    for (const char c : take(n)) v = v << 8 | static_cast<unsigned char>(c);
    return v;
  };
  Unpacked v;
  const auto many = [&](Unpacked::Kind kind, std::uint64_t n) {
    v.kind = kind;
    for (std::uint64_t k = 0; k < n && !in.empty(); ++k) v.items.push_back(unpack(in));
  };
  const auto some = [&](Unpacked::Kind kind, std::uint64_t n) {
    v.kind = kind;
    v.s = take(n);
  };
  const auto tag = static_cast<unsigned>(be(1));
  if (tag < 0x80 || tag >= 0xe0) {
    v.kind = Unpacked::number;
    v.negative = tag >= 0xe0;
    v.bits = v.negative ? ~std::uint64_t{0xff} | tag : tag;
  } else if (tag < 0x90) {
    many(Unpacked::map, 2 * (tag & 15));
  } else if (tag < 0xa0) {
    many(Unpacked::list, tag & 15);
  } else if (tag < 0xc0) {
    some(Unpacked::text, tag & 31);
  } else if (tag == 0xc2 || tag == 0xc3) {
    v.kind = Unpacked::boolean;
    v.bits = tag & 1;
  } else if (tag >= 0xc4 && tag <= 0xc6) {
    some(Unpacked::bytes, be(std::size_t{1} << (tag - 0xc4)));
  } else if (tag == 0xca) {
    v.kind = Unpacked::real;
    v.f = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(be(4))));
  } else if (tag == 0xcb) {
    v.kind = Unpacked::real;
    v.f = std::bit_cast<double>(be(8));
  } else if (tag >= 0xcc && tag <= 0xcf) {
    v.kind = Unpacked::number;
    v.bits = be(std::size_t{1} << (tag - 0xcc));
  } else if (tag >= 0xd0 && tag <= 0xd3) {
    v.kind = Unpacked::number;
    const unsigned width = 8u << (tag - 0xd0);
    v.bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(be(width / 8) << (64 - width)) >> (64 - width));
    v.negative = v.bits >> 63 != 0;
  } else if (tag >= 0xd9 && tag <= 0xdb) {
    some(Unpacked::text, be(std::size_t{1} << (tag - 0xd9)));
  } else if (tag == 0xdc || tag == 0xdd) {
    many(Unpacked::list, be(tag == 0xdc ? 2 : 4));
  } else if (tag == 0xde || tag == 0xdf) {
    many(Unpacked::map, 2 * be(tag == 0xde ? 2 : 4));
  } else if (tag >= 0xc7 && tag <= 0xc9) {
    some(Unpacked::bytes, be(std::size_t{1} << (tag - 0xc7)) + 1);
  } else if (tag >= 0xd4 && tag <= 0xd8) {
    some(Unpacked::bytes, (std::size_t{1} << (tag - 0xd4)) + 1);
  }
  return v;
}

}  // namespace warmroute::test
