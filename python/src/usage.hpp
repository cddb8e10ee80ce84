// What the accounting's parts share: the two clocks, calls that take turns, reports that own their text, money, anomalies by name.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "usage_enum_names.hpp"

namespace warmroute::python {

/// A release of the GIL costs 200 ns; a meter reads so many bytes in 10 us and more.
inline constexpr std::size_t kLongBytes = 16'384;

/// Where a time is left out: time.monotonic_ns() and time.time_ns().
inline UsageTime usage_time(NowArg now_ns, NowArg wall_ns) noexcept {
  const auto wall = [] {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  };
  return {now_ns ? Nanos{*now_ns} : monotonic_now(), WallNanos{wall_ns ? *wall_ns : wall()}};
}
inline Nanos steady_time(NowArg now_ns) noexcept { return now_ns ? Nanos{*now_ns} : monotonic_now(); }

template <class Call>
auto without_gil(Call&& call) {
  const ReleasedGil gil;
  return call();
}

/// Lets one thread at a time in. Whoever has to wait gives the GIL away first, and whoever is inside may do so: no deadlock.
class Turn {
 public:
  explicit Turn(std::mutex& mutex) : lock_(mutex, std::try_to_lock) {
    if (lock_.owns_lock()) return;
    const ReleasedGil gil;
    lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// `call(bytes)`, long ones without the GIL. Bytes that another thread could change meanwhile are read with it.
template <class Call>
auto with_bytes(const BytesView& bytes, Call&& call) {
  if (bytes.text().size() < kLongBytes || bytes.is_mutable()) return call(bytes.text());
  const ReleasedGil gil;
  return call(bytes.text());
}

template <class T>
py::object value_or_none(const std::optional<T>& value) {
  return value ? py::cast(*value) : py::object(py::none());
}

/// Names in the order of their bits.
using AnomalyNames = py::typing::Tuple<py::str, py::ellipsis>;
AnomalyNames anomaly_names(UsageAnomalies anomalies);
/// errors: ValueError: no such anomaly.
UsageAnomalies anomalies_of(const std::vector<std::string>& names);

/// A report that owns its text. Not movable: `view` points inside.
struct PyReport {
  PyReport() = default;
  explicit PyReport(const UsageReport& report);
  PyReport(const PyReport&) = delete;
  PyReport& operator=(const PyReport&) = delete;

  std::array<std::string, 6> texts;
  std::vector<std::string> other_names;
  std::vector<OtherModelUsage> others;
  UsageReport view;
};

/// A cost that owns its key. `view.price_key` points into `price_key`.
struct PyCost {
  PyCost() = default;
  explicit PyCost(const Cost& cost) : price_key(cost.price_key), view(cost) { view.price_key = price_key; }
  PyCost(const PyCost&) = delete;
  PyCost& operator=(const PyCost&) = delete;

  std::string price_key;
  Cost view;
};

/// decimal.Decimal of an amount in 1e-12 USD, exact.
class DecimalObject : public py::object {
 public:
  PYBIND11_OBJECT(DecimalObject, py::object, PyObject_Type)  // NOLINT: pybind11's
};
DecimalObject usd_of(const py::int_& picos);

/// JSON as bytes or str, or a mapping that is dumped. lifetime: as BytesView.
struct JsonText {
  BytesView bytes;
  std::string dumped;
  [[nodiscard]] std::string_view text() const noexcept { return dumped.empty() ? bytes.text() : dumped; }
};

/// Prices that readers share and a change has alone. Changes hold no GIL, so a reader may wait with it.
struct PyPrices {
  PyPrices() : PyPrices(std::make_shared<PriceTable>()) {}
  explicit PyPrices(std::shared_ptr<PriceTable> mine) noexcept : table(mine), own(mine.get()) {}
  explicit PyPrices(std::shared_ptr<const PriceTable> of_slot) noexcept : table(std::move(of_slot)) {}
  PyPrices(const PyPrices&) = delete;
  PyPrices& operator=(const PyPrices&) = delete;

  mutable std::shared_mutex mutex;
  std::shared_ptr<const PriceTable> table;
  PriceTable* own = nullptr;  // null: of a slot, or was put into one
};

/// As dicts of the fields of warmroute.usage.LimitSpec and KeyRecord.
py::typing::List<AnyDict> spec_dicts(const std::vector<LimitSpec>& specs);
py::dict key_fields(const KeyRecord& record);

}  // namespace warmroute::python

namespace pybind11::detail {

template <>
struct handle_type_name<warmroute::python::DecimalObject> {
  static constexpr auto name = const_name("decimal.Decimal");
};

template <>
struct type_caster<warmroute::python::JsonText> {
  static constexpr auto name =
      const_name("bytes | bytearray | memoryview | str | collections.abc.Mapping[str, typing.Any]");
  template <class>
  using cast_op_type = const warmroute::python::JsonText&;
  operator const warmroute::python::JsonText&() const noexcept { return json_; }

  bool load(handle source, bool) {
    if (json_.bytes.take(source)) return true;
    if (PyMapping_Check(source.ptr()) == 0 || !hasattr(source, "keys")) return false;
    json_.dumped = module_::import("json").attr("dumps")(dict(reinterpret_borrow<object>(source))).cast<std::string>();
    return true;
  }

 private:
  warmroute::python::JsonText json_;
};

}  // namespace pybind11::detail
