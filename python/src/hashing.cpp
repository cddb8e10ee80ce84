// Block and sequence hashes over NumPy arrays.
#include <vector>

#include "arrays.hpp"
#include "warmroute/prefix/block_hash.hpp"

namespace warmroute::python {
namespace {

// Below this the release costs more than the hashing: 200 ns against 4 ns per 16-token block.
constexpr std::size_t kReleaseTokens = 16'384;

void check_block_size(std::uint32_t block_size) {
  if (block_size == 0 || block_size > kMaxBlockTokens)
    raise({Code::invalid_argument, "block_size must lie in 1..512", kNoOffset});
}
std::span<BlockHash> blocks_of(py::array_t<std::uint64_t>& out) {
  return {reinterpret_cast<BlockHash*>(out.mutable_data()), static_cast<std::size_t>(out.size())};
}
py::array_t<std::uint64_t> hashes(std::size_t count) {
  return py::array_t<std::uint64_t>(static_cast<py::ssize_t>(count));
}

template <class Call>
void maybe_released(std::size_t tokens, Call&& call) {
  if (tokens < kReleaseTokens) return call();
  const ReleasedGil released;
  call();
}

py::array_t<std::uint64_t> token_blocks(const TokenView& ids, std::uint32_t block_size, std::uint64_t seed) {
  check_block_size(block_size);
  auto out = hashes(ids.size() / block_size);
  const auto room = blocks_of(out);
  maybe_released(ids.size(), [&] { hash_token_blocks(ids.span(), block_size, seed, room); });
  return out;
}

py::array_t<std::uint64_t> eagle_blocks(const TokenView& ids, std::uint32_t block_size, std::uint64_t seed) {
  check_block_size(block_size);
  auto out = hashes(ids.size() <= block_size ? 0 : (ids.size() - 1) / block_size);
  const auto room = blocks_of(out);
  maybe_released(ids.size(), [&] { hash_eagle_blocks(ids.span(), block_size, seed, room); });
  return out;
}

py::array_t<std::uint64_t> multimodal_blocks(const TokenView& ids,
                                             const std::vector<std::vector<std::uint64_t>>& objects,
                                             std::uint32_t block_size, std::uint64_t seed, bool eagle) {
  check_block_size(block_size);
  const std::size_t tokens = ids.size();
  auto out = hashes(eagle ? (tokens <= block_size ? 0 : (tokens - 1) / block_size) : tokens / block_size);
  const std::vector<std::span<const std::uint64_t>> spans(objects.begin(), objects.end());
  hash_multimodal_blocks(ids.span(), block_size, seed, spans, eagle, blocks_of(out));
  return out;
}

py::array_t<std::uint64_t> text_blocks(const BytesView& text, std::uint64_t seed) {
  auto out = hashes(text.text().size() / kTextBlockBytes);
  hash_text_blocks(text.text(), seed, blocks_of(out));
  return out;
}

py::array_t<std::uint64_t> chain(const HashView& blocks) {
  auto out = hashes(blocks.size());
  const std::span room{reinterpret_cast<SequenceHash*>(out.mutable_data()), blocks.size()};
  sequence_hashes(as_blocks(blocks.span()), room);
  return out;
}

py::typing::Tuple<py::array_t<std::uint64_t>, py::array_t<std::uint64_t>> token_blocks_chained(const TokenView& ids,
                                                                                               std::uint32_t block_size,
                                                                                               std::uint64_t seed) {
  check_block_size(block_size);
  auto blocks = hashes(ids.size() / block_size);
  auto chained = hashes(ids.size() / block_size);
  const std::span room{reinterpret_cast<SequenceHash*>(chained.mutable_data()),
                       static_cast<std::size_t>(chained.size())};
  const auto block_room = blocks_of(blocks);
  maybe_released(ids.size(), [&] { hash_token_blocks_chained(ids.span(), block_size, seed, block_room, room); });
  return py::make_tuple(blocks, chained);
}

}  // namespace

void bind_hashing(py::module_& m) {
  m.attr("DYNAMO_HASH_SEED") = kDynamoHashSeed;
  m.attr("TEXT_BLOCK_BYTES") = kTextBlockBytes;
  m.attr("MAX_BLOCK_TOKENS") = kMaxBlockTokens;
  m.def(
      "block_seed",
      [](std::uint64_t hash_seed, std::string_view adapter, std::string_view cache_salt, std::string_view isolation_key,
         bool text) {
        return block_seed({hash_seed, adapter, cache_salt, isolation_key, text});
      },
      py::arg("hash_seed") = kDynamoHashSeed, py::kw_only(), py::arg("adapter") = "", py::arg("cache_salt") = "",
      py::arg("isolation_key") = "", py::arg("text") = false,
      "The seed of every block hash of one space: what two requests must agree on before they may share KV blocks.\n\n"
      "Empty strings are absent. isolation_key is the tenant, from the verified key, never from the body.");
  m.def("hash_token_blocks", &token_blocks, py::arg("ids"), py::arg("block_size") = 16,
        py::arg("seed") = kDynamoHashSeed,
        "Hashes of the whole blocks of `block_size` tokens (1..512); a partial tail has none.\n\n"
        "shape: uint64[len(ids) // block_size], block 0 first. Compatible with Dynamo's block hashes.\n"
        "errors: Error invalid_argument (block_size), TypeError (ids not a uint32 array).");
  m.def("hash_eagle_blocks", &eagle_blocks, py::arg("ids"), py::arg("block_size") = 16,
        py::arg("seed") = kDynamoHashSeed,
        "As hash_token_blocks for EAGLE draft models: block i covers block_size + 1 tokens from i * block_size on.");
  m.def("hash_multimodal_blocks", &multimodal_blocks, py::arg("ids"), py::arg("objects"), py::arg("block_size") = 16,
        py::arg("seed") = kDynamoHashSeed, py::arg("eagle") = false,
        "As hash_token_blocks, with the hashes of the multimodal objects that lie in each block.\n\n"
        "shape: objects[k] belongs to block k; fewer than blocks: the rest have none; surplus is ignored.");
  m.def("hash_text_blocks", &text_blocks, py::arg("text"), py::arg("seed"),
        "Hashes of the whole blocks of TEXT_BLOCK_BYTES bytes of canonical prompt text; seed from "
        "block_seed(text=True).");
  m.def("sequence_hashes", &chain, py::arg("blocks"),
        "Chains block hashes: element i stands for blocks 0..i. shape: uint64[len(blocks)].");
  m.def("hash_token_blocks_chained", &token_blocks_chained, py::arg("ids"), py::arg("block_size") = 16,
        py::arg("seed") = kDynamoHashSeed, "hash_token_blocks and sequence_hashes in one pass: (blocks, chain).");
}

}  // namespace warmroute::python
