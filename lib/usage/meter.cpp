// The public face of AnswerStream.
#include "warmroute/usage/meter.hpp"

#include "usage/answer_stream.hpp"

namespace warmroute {

struct Meter::Impl : usage::AnswerStream {
  using AnswerStream::AnswerStream;
};

Meter::Meter(const MeterOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Meter::~Meter() = default;
Meter::Meter(Meter&&) noexcept = default;
Meter& Meter::operator=(Meter&&) noexcept = default;

void Meter::reset(const MeterOptions& options) noexcept { impl_->reset(options); }
bool Meter::feed(std::string_view bytes) noexcept { return impl_->feed(bytes); }
void Meter::finish() noexcept { impl_->finish(); }
UsageReport Meter::report() const noexcept { return impl_->report(); }
bool Meter::complete() const noexcept { return impl_->complete(); }
std::uint64_t Meter::revision() const noexcept { return impl_->revision(); }
std::optional<std::uint64_t> Meter::first_token_end() const noexcept { return impl_->first_token_end(); }
std::uint64_t Meter::bytes() const noexcept { return impl_->bytes(); }
bool Meter::is_stream() const noexcept {
  using usage::Framing;
  const Framing framing = impl_->framing();
  return framing == Framing::events || framing == Framing::array || framing == Framing::frames;
}

UsageReport read_usage(Meter& meter, std::string_view body, const MeterOptions& options) noexcept {
  meter.reset(options);
  meter.feed(body);
  meter.finish();
  return meter.report();
}

}  // namespace warmroute
