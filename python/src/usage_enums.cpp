// Every enum of usage/ as an enum.IntEnum with the same numbers.
#include "usage_enum_names.hpp"

namespace warmroute::python {

void bind_usage_enums(py::module_& m) {
  bind_enum<AnswerApi>(m, "Whose vocabulary an answer speaks. automatic tells by its members' names.");
  bind_enum<CalendarUnit>(m, "What a budget's window is made of.");
  bind_enum<CostSource>(m, "Where a cost is from.");
  bind_enum<HangupMode>(m, "What becomes of an upstream whose client left: cut it, or drain it for its usage.");
  bind_enum<JournalFull>(m, "When the disk is full: refuse what cannot be billed, or serve it unbilled.");
  bind_enum<JournalSync>(m, "When the disk is asked to write, for machines that lose power.");
  bind_enum<KeyDigestKind>(m, "What a digest is of: the secret under a pepper, the secret alone, or the whole key.");
  bind_enum<KeyVerdict>(m, "What a key is. A client may learn KeyGrant.status alone.");
  bind_enum<LimitKind>(m, "A rate (GCRA), a budget per calendar window, or how many at once.");
  bind_enum<LimitOutcome>(m, "What became of a reservation; allowed is 0.");
  bind_enum<LimitProgress>(m, "Whether a stream may go on.");
  bind_enum<LimitUnit>(m, "What a limit counts. cost_nanos: 1e-9 USD.");
  bind_enum<OnExpired>(
      m,
      "What serving does when control is silent for longer than max_age. deny_new_keys: keys that were "
      "accepted since the process began go on.");
  bind_enum<OrphanCharge>(m, "What a reservation becomes when its lease ends.");
  bind_enum<PriceMeter>(m, "What is metered: the rows of a bill.");
  bind_enum<PriceTier>(m, "How urgent a request is served, which is priced apart.");
  bind_enum<StaleKeys>(
      m,
      "What a KeySet does when control is silent for longer than max_age_ns. refuse_new: keys that it has "
      "accepted before go on.");
  bind_enum<UsageSource>(m, "Where counts are from.");
  py::native_enum<JournalKind>(m, "JournalKind", "enum.IntEnum",
                               "incomplete: it began, and the process ended before it did. withdrawn: it never left.")
      .value("begin", JournalKind::begin)
      .value("end", JournalKind::end)
      .value("incomplete", JournalKind::incomplete)
      .value("withdrawn", JournalKind::withdrawn)
      .finalize();
}

}  // namespace warmroute::python
