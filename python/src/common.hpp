// What every part of the extension shares: errors, time, replica ids as ints, enums by member or by name.
// Nothing below this folder knows of Python; nothing here outlives the interpreter.
#pragma once

#include <pybind11/native_enum.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "enum_names.hpp"
#include "gil.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute::python {

namespace py = pybind11;

/// Raises warmroute.Error(message, code, code_number, offset).
[[noreturn]] void raise(const Error& error);
inline void check(const Status& status) {
  if (!status) raise(status.error());
}
template <class T>
T value_of(Result<T>&& result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

/// A replica is one int in Python: generation in the upper half, slot in the lower; compare and store it, nothing else.
constexpr std::uint64_t replica_number(ReplicaId id) noexcept { return (std::uint64_t{id.generation} << 32) | id.slot; }
constexpr ReplicaId replica_of(std::uint64_t number) noexcept {
  return {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)};
}

/// The clock where `now_ns` is left out: the one of time.monotonic_ns(). The library itself reads none.
inline Nanos monotonic_now() noexcept {
  return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
                   .count()};
}

/// An argument that may be a member of the enum, its number, or its name.
template <class E>
struct EnumArg {
  E value{};
  operator E() const noexcept { return value; }  // NOLINT: an argument stands for its value
};

template <class E>
E enum_of(py::handle source) {
  const auto names = EnumNames<E>::kNames;
  if (PyUnicode_Check(source.ptr())) {
    const auto word = source.cast<std::string_view>();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == word) return static_cast<E>(i);
    }
    std::string message = "'" + std::string(word) + "' is no " + EnumNames<E>::kPythonName + ": use one of ";
    for (std::size_t i = 0; i < names.size(); ++i) message.append(i == 0 ? "" : ", ").append(names[i]);
    throw py::value_error(message);
  }
  const long number = PyLong_AsLong(source.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (number < 0 || static_cast<std::size_t>(number) >= names.size()) {
    throw py::value_error(std::to_string(number) + " is no " + EnumNames<E>::kPythonName);
  }
  return static_cast<E>(number);
}

/// Every value of an enum as an enum.IntEnum with the same numbers.
template <class E>
void bind_enum(py::module_& m, const char* doc) {
  py::native_enum<E> bound(m, EnumNames<E>::kPythonName, "enum.IntEnum", doc);
  for (std::size_t i = 0; i < EnumNames<E>::kNames.size(); ++i) {
    bound.value(std::string(EnumNames<E>::kNames[i]).c_str(), static_cast<E>(i));
  }
  bound.finalize();
}

/// Text from outside: it may hold any bytes.
inline py::str text_of(std::string_view bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}

using AnyDict = py::typing::Dict<py::str, py::object>;
using NowArg = std::optional<std::int64_t>;
using LogCallback = std::optional<py::typing::Callable<py::object(LogLevel, py::str)>>;
using TokenizerCallback = std::optional<py::typing::Callable<py::object(py::bytes)>>;
using ClockCallback = std::optional<py::typing::Callable<py::int_()>>;
template <class Callback>
py::object object_or_none(Callback callback) {
  return callback ? py::object(std::move(*callback)) : py::object(py::none());
}

// The parts, one .cpp each. Order matters: a type must be known before another's signature names it.
void bind_enums(py::module_& m);
void bind_hashing(py::module_& m);
void bind_index(py::module_& m);
void bind_ring(py::module_& m);
void bind_policy(py::module_& m);
void bind_replica(py::module_& m);
void bind_decision(py::module_& m);
void bind_request(py::module_& m);
void bind_gateway_ring(py::module_& m);
void bind_body(py::module_& m);
void bind_explain(py::module_& m);
void bind_router(py::module_& m);
void bind_models(py::module_& m);
void bind_events(py::module_& m);
void bind_subscriber(py::module_& m);
void bind_metrics(py::module_& m);
void bind_poller(py::module_& m);
void bind_usage_enums(py::module_& m);
void bind_usage_values(py::module_& m);
void bind_usage_price(py::module_& m);
void bind_usage_meter(py::module_& m);
void bind_usage_request(py::module_& m);
void bind_usage_keys(py::module_& m);
void bind_usage_limits(py::module_& m);
void bind_usage_journal(py::module_& m);
void bind_usage_ledger(py::module_& m);
void bind_control_snapshot(py::module_& m);
void bind_control_applier(py::module_& m);
void bind_control_threads(py::module_& m);
void bind_trace(py::module_& m);
void bind_decision_log(py::module_& m);
void bind_simulate(py::module_& m);
void bind_ratio(py::module_& m);

}  // namespace warmroute::python

namespace pybind11::detail {

template <class E>
struct type_caster<warmroute::python::EnumArg<E>> {
  PYBIND11_TYPE_CASTER(warmroute::python::EnumArg<E>, warmroute::python::EnumNames<E>::kSignature);

  bool load(handle source, bool) {
    if (!PyLong_Check(source.ptr()) && !PyUnicode_Check(source.ptr())) return false;
    if (PyBool_Check(source.ptr())) return false;
    value.value = warmroute::python::enum_of<E>(source);
    return true;
  }
  static handle cast(const warmroute::python::EnumArg<E>& source, return_value_policy, handle) {
    return pybind11::cast(source.value).release();
  }
};

}  // namespace pybind11::detail
