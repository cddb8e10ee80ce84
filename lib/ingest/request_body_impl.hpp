// The scratch of RequestBodyParser. In a header of lib/ so that a test can look for text that was left behind.
#pragma once

#include <string>
#include <vector>

#include "ingest/body_reader.hpp"
#include "ingest/prompts.hpp"
#include "warmroute/ingest/request_body.hpp"

namespace warmroute {

struct RequestBodyParser::Impl {
  ingest::JsonTape tape;
  ingest::Canonical canonical{tape};  // the only place that holds prompt text; wiped before parse() returns
  ingest::ByteBuffer hints;           // model, session and the like, for the result's views
  ingest::TokenIds ids;
  std::vector<BlockHash> blocks;
  Error error;

  /// Checks and reads; leaves the first prompt's text in `canonical` (nothing for ids). returns: false with `error` set
  bool read(BodyApi api, std::string_view body, const RequestBodyOptions& options, ParsedBody& out);
  /// Wipes the text; gives back what one huge body made grow.
  void forget_text() noexcept;

 private:
  bool check(BodyApi api, std::string_view body, const RequestBodyOptions& options);
  bool read_hints(ingest::BodyReader& reader, const RequestBodyOptions& options, ParsedBody& out);
  bool read_session(ingest::BodyReader& reader, ParsedBody& out);
  bool read_user(ingest::BodyReader& reader, ParsedBody& out);
  static bool read_limit(ingest::BodyReader& reader, ingest::NodeIndex node, std::string_view name, ParsedBody& out);
  bool read_limits(ingest::BodyReader& reader, ParsedBody& out);
  bool read_prompt(ingest::BodyReader& reader, const RequestBodyOptions& options, ParsedBody& out);
  bool add_text_prompt(const RequestBodyOptions& options, std::size_t start, bool first);
  bool tokenize(const Tokenizer& tokenizer, std::string_view prompt);
  void hash(ingest::BodyReader& reader, const RequestBodyOptions& options, ParsedBody& out);
  std::string_view keep(ingest::BodyReader& reader, ingest::NodeIndex string);
};

}  // namespace warmroute
