#include "ingest/kv_msgpack.hpp"

#include <array>

namespace warmroute::ingest {
KvFault PackReader::read_container(PackKind kind, std::uint8_t fix, std::uint32_t least_bytes,
                                   std::uint32_t& count) noexcept {
  if (done()) return KvFault::truncated;
  const PackTag tag = kPackTags[*at_];
  if (tag.kind != kind) return unexpected();
  if (left() < 1u + tag.extra) return KvFault::truncated;
  const std::uint64_t n = tag.extra == 0 ? std::uint64_t{*at_} - fix : number(at_ + 1, tag.extra);
  if (n * least_bytes > left() - 1 - tag.extra) return KvFault::length_overrun;
  count = static_cast<std::uint32_t>(n);
  at_ += 1 + tag.extra;
  return KvFault::none;
}

KvFault PackReader::read_sized(PackKind kind, std::string_view& out) noexcept {
  if (done()) return KvFault::truncated;
  const PackTag tag = kPackTags[*at_];
  if (tag.kind != kind) return unexpected();
  if (left() < 1u + tag.extra) return KvFault::truncated;
  const std::uint64_t n = tag.extra == 0 ? std::uint64_t{*at_} & 0x1f : number(at_ + 1, tag.extra);
  if (n > left() - 1 - tag.extra) return KvFault::length_overrun;
  out = {reinterpret_cast<const char*>(at_ + 1 + tag.extra), static_cast<std::size_t>(n)};
  at_ += 1 + tag.extra + n;
  return KvFault::none;
}

KvFault PackReader::read_bytes(std::string_view& bytes) noexcept { return read_sized(PackKind::bytes, bytes); }

KvFault PackReader::read_long_integer(std::uint64_t& bits, bool& negative) noexcept {
  if (done()) return KvFault::truncated;
  const std::uint8_t first = *at_;
  const PackTag tag = kPackTags[first];
  if (tag.kind != PackKind::integer) return unexpected();
  if (left() < 1u + tag.extra) return KvFault::truncated;
  negative = false;
  if (tag.extra == 0) {
    negative = first >= 0xe0;
    bits = negative ? ~std::uint64_t{0xff} | first : first;
  } else {
    bits = number(at_ + 1, tag.extra);
    if (first >= 0xd0) {  // signed: the top bit of its width
      const unsigned unused = 64 - 8u * tag.extra;
      bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
      negative = bits >> 63 != 0;
    }
  }
  at_ += 1 + tag.extra;
  return KvFault::none;
}

KvFault PackReader::read_number(double& value) noexcept {
  if (done()) return KvFault::truncated;
  const PackTag tag = kPackTags[*at_];
  if (tag.kind == PackKind::integer) {
    std::uint64_t bits = 0;
    bool negative = false;
    if (const KvFault fault = read_integer(bits, negative); fault != KvFault::none) return fault;
    value = negative ? static_cast<double>(static_cast<std::int64_t>(bits)) : static_cast<double>(bits);
    return KvFault::none;
  }
  if (tag.kind != PackKind::real) return unexpected();
  if (left() < 1u + tag.extra) return KvFault::truncated;
  const std::uint64_t bits = number(at_ + 1, tag.extra);
  value = tag.extra == 8 ? std::bit_cast<double>(bits)
                         : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  at_ += 1 + tag.extra;
  return KvFault::none;
}

KvFault PackReader::skip() noexcept {
  const std::uint8_t* const start = at_;
  const auto fail = [&](KvFault fault) {
    at_ = start;
    return fault;
  };
  std::array<std::uint64_t, kMaxDepth> open;  // values still to come at each level
  unsigned depth = 0;
  for (std::uint64_t values = 1;;) {
    while (values == 0) {
      if (depth == 0) return KvFault::none;
      values = open[--depth];
    }
    --values;
    if (done()) return fail(KvFault::truncated);
    const std::uint8_t first = *at_;
    const PackTag tag = kPackTags[first];
    if (tag.kind == PackKind::reserved) return fail(KvFault::reserved_byte);
    if (left() < 1u + tag.extra) return fail(KvFault::truncated);
    if (tag.kind == PackKind::array || tag.kind == PackKind::map) {
      std::uint32_t count = 0;
      const KvFault fault = tag.kind == PackKind::array ? read_array(count) : read_map(count);
      if (fault != KvFault::none) return fail(fault);
      if (depth == kMaxDepth) return fail(KvFault::depth);
      open[depth++] = values;
      values = tag.kind == PackKind::array ? count : std::uint64_t{count} * 2;
      continue;
    }
    std::uint64_t length = 0;
    if (tag.kind == PackKind::text || tag.kind == PackKind::bytes) {
      length = tag.extra == 0 ? first & 0x1fu : number(at_ + 1, tag.extra);
    } else if (tag.kind == PackKind::extension) {
      length = 1 + (tag.extra == 0 ? std::uint64_t{1} << (first - 0xd4) : number(at_ + 1, tag.extra));  // and its type
    }
    if (length > left() - 1 - tag.extra) return fail(KvFault::length_overrun);
    at_ += 1 + tag.extra + length;
  }
}

}  // namespace warmroute::ingest
