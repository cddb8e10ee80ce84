// Control's gauges in Prometheus text exposition, beside the router's of observe/prometheus.hpp.
#include <algorithm>
#include <array>
#include <cstdio>

#include "warmroute/control/applier.hpp"
#include "warmroute/control/sink.hpp"

namespace warmroute {
namespace control {
namespace {

class Families {
 public:
  explicit Families(std::string& out) : out_(out) {}
  void gauge(std::string_view name, std::string_view help, std::string_view value) { add(name, "gauge", help, value); }
  void gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    gauge(name, help, std::to_string(value));
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.9g", value);
    gauge(name, help, std::string_view(text.data()));
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    add(name, "counter", help, std::to_string(value));
  }
  void add(std::string_view name, std::string_view type, std::string_view help, std::string_view value,
           std::string_view labels = {}) {
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
    out_.append(type).append("\n").append(name).append(labels).append(" ").append(value).append("\n");
  }

 private:
  std::string& out_;
};

double seconds_of(Nanos nanos) { return static_cast<double>(nanos.value) / 1e9; }

}  // namespace
}  // namespace control

void append_prometheus(const ControlStatus& s, std::string& out) {
  control::Families f(out);
  const bool ever = s.generation != 0;
  f.gauge("warmroute_control_generation", "Generation of the snapshot in force; 0: none yet.", s.generation);
  f.gauge("warmroute_control_top_generation",
          "The highest generation that ever was: above the one in force after a "
          "forced roll-back.",
          s.top_generation);
  if (ever) f.gauge("warmroute_control_age_seconds", "Since control was last heard of.", control::seconds_of(s.age));
  else f.gauge("warmroute_control_age_seconds", "Since control was last heard of.", "+Inf");
  f.gauge("warmroute_control_max_age_seconds", "The age at which the snapshot expires; 0: never.",
          control::seconds_of(s.max_age));
  const std::string labels = "{on_expired=\"" + std::string(on_expired_name(s.on_expired)) + "\"}";
  f.add("warmroute_control_expired", "gauge", "1 when the snapshot is older than that.", s.expired ? "1" : "0", labels);
  f.gauge("warmroute_control_from_disk", "1 while the last good snapshot serves and control was not heard of.",
          std::uint64_t{s.from_disk});
  f.gauge("warmroute_control_keys", "Keys that are not revoked.", std::uint64_t{s.keys});
  f.gauge("warmroute_control_revoked_keys", "Revocations that are remembered.", std::uint64_t{s.revoked});
  f.counter("warmroute_control_applied_total", "Snapshots that were put in force, roll-backs included.", s.applied);
  f.counter("warmroute_control_confirmed_total", "Times that control had nothing new.", s.confirmed);
  f.counter("warmroute_control_refused_total", "Snapshots that were refused.", s.refused);
  f.counter("warmroute_control_rollbacks_total", "Forced roll-backs.", s.rollbacks);
  f.counter("warmroute_control_keep_failures_total", "Times that the last good snapshot could not be kept on disk.",
            s.keep_failures);
  const std::string code = "{code=\"" + std::string(code_name(s.last_code)) + "\"}";
  f.add("warmroute_control_failing", "gauge", "1 when the last snapshot that came was refused, and why.",
        s.last_code == Code::ok ? "0" : "1", code);
}

void append_prometheus(const HandoverStatus& s, std::string& out) {
  control::Families f(out);
  f.counter("warmroute_handover_events_total", "Usage events that the sink has taken.", s.delivered);
  f.counter("warmroute_handover_batches_total", "Batches of them.", s.batches);
  f.counter("warmroute_handover_failures_total", "Failures of sink, journal or acknowledgement.", s.failures);
  f.gauge("warmroute_handover_failures_in_row", "Of those, since the last success.", s.failures_in_row);
  f.gauge("warmroute_handover_drained", "1 when nothing was left at the last look.", std::uint64_t{s.drained});
  f.gauge("warmroute_handover_acknowledged_segment", "Segment of the journal that the cursor is in.",
          s.acknowledged.segment);
}

}  // namespace warmroute
