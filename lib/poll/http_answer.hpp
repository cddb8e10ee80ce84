// Reads one HTTP/1.x answer as its bytes come: length, chunks, or until the connection ends. Bounded in every part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace warmroute::poll {

class HttpAnswer {
 public:
  enum class State : std::uint8_t { more, done, failed };

  explicit HttpAnswer(std::size_t max_body) : max_body_(max_body) {}

  // Forgets the answer before; memory of its body is kept.
  void begin();
  State feed(std::string_view bytes);
  // The peer will send no more.
  State end();

  [[nodiscard]] bool began() const noexcept { return began_; }
  [[nodiscard]] bool has_head() const noexcept { return phase_ > Phase::head; }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  [[nodiscard]] bool keeps_alive() const noexcept { return keep_alive_; }
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

 private:
  enum class Phase : std::uint8_t { status, head, sized, to_end, chunk_size, chunk, chunk_end, trailer, done, failed };

  // returns: whether `line_` is a whole line now, without its end.
  bool take_line(std::string_view& bytes);
  void take_body(std::string_view& bytes);
  void on_line();
  void read_status();
  void read_field();
  void read_chunk_size();
  void begin_body();
  void fail(std::string why);
  [[nodiscard]] State state() const noexcept;

  std::size_t max_body_;
  Phase phase_ = Phase::status;
  bool began_ = false;
  bool keep_alive_ = false;
  bool chunked_ = false;
  bool fresh_line_ = false;  // line_ is a finished one
  int status_ = 0;
  std::size_t head_bytes_ = 0;
  std::uint64_t left_ = 0;  // of the body or the chunk
  std::optional<std::uint64_t> length_;
  std::string reason_;
  std::string line_;
  std::string body_;
  std::string fault_;
};

}  // namespace warmroute::poll
