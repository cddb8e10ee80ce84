// Request bodies in Python: a pool of parsers, the tokenizer callback, and a parsed body that owns what it shows.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "warmroute/ingest/request_body.hpp"

namespace warmroute::python {

/// One parse's tokenizer: calls `callable(bytes) -> uint32 array or sequence of ints` once, keeps ids and exception.
/// threads: encode takes the GIL itself; construct, destroy and rethrow with the GIL held.
class TokenizerCall {
 public:
  explicit TokenizerCall(py::handle callable) : callable_(callable) {}
  TokenizerCall(const TokenizerCall&) = delete;
  TokenizerCall& operator=(const TokenizerCall&) = delete;

  [[nodiscard]] Tokenizer tokenizer() noexcept {
    if (callable_.is_none()) return {};
    return {this, &encode};
  }
  void rethrow() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  static std::size_t encode(void* user, std::string_view prompt, std::uint32_t* out, std::size_t capacity);
  void call(std::string_view prompt);

  py::handle callable_;  // of the object that parses, which lives until the call returns
  std::vector<std::uint32_t> ids_;
  bool called_ = false;
  std::exception_ptr error_;
};

/// Parsers at hand: one per call that is inside at the same time. threads: any.
class ParserPool {
 public:
  class Lease {
   public:
    explicit Lease(ParserPool& pool) : pool_(pool), parser_(pool.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.give(std::move(parser_)); }
    RequestBodyParser& operator*() const noexcept { return *parser_; }

   private:
    ParserPool& pool_;
    std::unique_ptr<RequestBodyParser> parser_;
  };

 private:
  static constexpr std::size_t kKept = 16;
  std::unique_ptr<RequestBodyParser> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<RequestBodyParser>();
    auto parser = std::move(free_.back());
    free_.pop_back();
    return parser;
  }
  void give(std::unique_ptr<RequestBodyParser> parser) noexcept {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kKept) free_.push_back(std::move(parser));
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<RequestBodyParser>> free_;
};

/// Reads `body`; long ones without the GIL. Bytes that another thread could change meanwhile are copied first.
/// errors: raises warmroute.Error, or what the tokenizer raised. lifetime: views into `parser`.
ParsedBody parse_body(RequestBodyParser& parser, BodyApi api, const BytesView& body, RequestBodyOptions options,
                      py::handle tokenizer);

/// A copy of a ParsedBody that lives on its own. Not movable: `view` points inside.
struct PyParsedBody {
  explicit PyParsedBody(const ParsedBody& parsed);
  PyParsedBody(const PyParsedBody&) = delete;
  PyParsedBody& operator=(const PyParsedBody&) = delete;

  std::string model, adapter, session, user, cache_salt, tenant;
  std::vector<BlockHash> blocks;
  std::vector<std::uint32_t> all_token_ids;
  std::vector<std::uint64_t> prompt_ends;
  ParsedBody view;
};

}  // namespace warmroute::python
