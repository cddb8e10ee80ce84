/// KV that one engine computes for another, as far as bodies and answers speak of it (vLLM's kv_transfer_params and their usual members).
/// A request that asks for remote decode is answered with where its KV lies; one that brings such an answer needs no prefill for it.
/// Does not: move anything, or ask the other engine: what is said to lie there is taken to be there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warmroute::examples {

struct KvTransfer {
  bool sends = false;                ///< do_remote_decode: another engine goes on
  std::int64_t received_blocks = 0;  ///< do_remote_prefill: so many of the prompt lie elsewhere, computed
};

/// returns: what a request's body says; nothing of both where it has no kv_transfer_params.
[[nodiscard]] KvTransfer read_kv_transfer(std::string_view body);

/// Appends to an answer, a JSON object, where the KV of a prompt of so many blocks lies.
void append_kv_transfer(std::string& answer, std::string_view engine, std::string_view host, std::uint16_t port,
                        std::int64_t blocks);

}  // namespace warmroute::examples
