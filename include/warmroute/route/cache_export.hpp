/// What a router believes of all its replicas' caches, and what it has learned of their hardware, as bytes for a file: a proxy that
/// restarts with them starts warm.
/// Encrypted and authenticated (ChaCha20-Poly1305 under a key derived per export), and padded: without the key nobody reads a hash, a
/// name or a count from it, nor confirms a guess; with it, not one changed byte goes unnoticed.
/// Invariant: bytes that are not whole, of this version, under this key and of the policy's hashes change nothing.
/// Does not: write files, keep keys, or carry load, tickets and sessions: those are over when a process ends. In lib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "warmroute/result.hpp"
#include "warmroute/route/router.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// 32 random bytes that the deployment keeps; not a passphrase.
using CacheExportKey = std::span<const std::uint8_t, 32>;

struct CacheImportOptions {
  Nanos away{
      0};  ///< how long ago the export was made, by the caller's wall clock: blocks aged meanwhile (policy residency_ttl)
  std::size_t max_bytes = std::size_t{1} << 30;  ///< larger exports are refused (too_large)
};

struct CacheImportReport {
  std::uint64_t replicas_restored = 0;
  std::uint64_t replicas_unknown =
      0;  ///< not in the router by (pool, name, dp_rank), or without a model (role prefill): skipped
  std::uint64_t blocks_offered = 0;   ///< in the export, those of unknown replicas included
  std::uint64_t blocks_restored = 0;  ///< believed now and not before
  std::uint64_t rates_restored = 0;   ///< kinds of hardware that begin with learned rates (Router::restore_learned)
};

/// returns: a self-contained export; the same state gives other bytes each time. units: `now` as for every call of the router.
/// errors: internal (no random bytes, or no such cipher in the OpenSSL at hand).
/// threads: any. cost: one replica at a time under its pool's lock (Router::cached), the rest outside: bench_cache_export.
/// alloc: the bytes, and one replica's copy.
Result<std::string> export_caches(const Router& router, CacheExportKey key, Nanos now);

/// Believes what `bytes` say of the replicas that are in the router by now: add them first. Best before the first request; what was
/// used since counts as younger. An engine that restarted meanwhile has lost its cache: Router::clear_cache says so.
/// errors: malformed (no export, cut short, changed), unsupported (another version), invalid_argument (another key, block size or
/// hash seed), too_large. Nothing changes then. Offsets: in `bytes`; for a fault in the decrypted body, within that, and the message says so.
/// threads: any. cost: bench_cache_export. alloc: twice the bytes.
Result<CacheImportReport> import_caches(Router& router, std::string_view bytes, CacheExportKey key, Nanos now,
                                        const CacheImportOptions& options = {});

}  // namespace warmroute
