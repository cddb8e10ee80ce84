// Arrays in and out without a copy. In: NumPy arrays of exactly the element type, or anything with a buffer of it; bytes,
// bytearray and memoryview of bytes are taken as the raw little-endian elements. Lists are refused: converting one costs
// more than the routing. Out: NumPy views of memory that an object owns, read-only.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "common.hpp"

namespace warmroute::python {

template <class T>
struct ElementName;
template <>
struct ElementName<std::uint32_t> {
  static constexpr const char* kName = "uint32";
  static constexpr auto kSignature =
      pybind11::detail::const_name("numpy.typing.NDArray[numpy.uint32] | bytes | bytearray | memoryview");
};
template <>
struct ElementName<std::uint64_t> {
  static constexpr const char* kName = "uint64";
  static constexpr auto kSignature =
      pybind11::detail::const_name("numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview");
};
template <>
struct ElementName<std::int64_t> {
  static constexpr const char* kName = "int64";
  static constexpr auto kSignature = pybind11::detail::const_name("numpy.typing.NDArray[numpy.int64]");
};

/// Elements of a caller's array. lifetime: holds the buffer (never for NumPy arrays: the call's argument does).
template <class T>
class ArrayView {
 public:
  ArrayView() = default;
  ArrayView(ArrayView&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        buffer_(other.buffer_),
        held_(std::exchange(other.held_, false)) {}
  ArrayView& operator=(ArrayView&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(buffer_, other.buffer_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~ArrayView() {
    if (held_) PyBuffer_Release(&buffer_);
  }

  [[nodiscard]] std::span<const T> span() const noexcept { return {data_, size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// errors: TypeError (not an array of this type), ValueError (not contiguous, not aligned, a part of an element).
  void take(py::handle source) {
    if (py::isinstance<py::array>(source)) return take_numpy(py::reinterpret_borrow<py::array>(source));
    if (PyObject_CheckBuffer(source.ptr()) == 0) refuse(Py_TYPE(source.ptr())->tp_name);
    if (PyObject_GetBuffer(source.ptr(), &buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      throw py::error_already_set();
    }
    held_ = true;
    take_buffer();
  }

 private:
  [[noreturn]] static void refuse(const std::string& got) {
    const std::string name = ElementName<T>::kName;
    throw py::type_error("a C-contiguous one-dimensional " + name + " array is needed, not " + got +
                         ": convert once with numpy.ascontiguousarray(x, dtype=numpy." + name + ")");
  }
  void set(const void* data, std::size_t size) {
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0 && size != 0) {
      throw py::value_error("the buffer is not aligned to its elements: copy it first");
    }
    data_ = static_cast<const T*>(data);
    size_ = size;
  }
  void take_numpy(const py::array& array) {
    constexpr char kKind = std::is_signed_v<T> ? 'i' : 'u';
    const py::dtype type = array.dtype();
    constexpr char kForeign = std::endian::native == std::endian::little ? '>' : '<';
    if (type.kind() != kKind || type.itemsize() != static_cast<py::ssize_t>(sizeof(T)) ||
        type.byteorder() == kForeign) {
      refuse("an array of " + py::str(type).cast<std::string>());
    }
    if (array.ndim() != 1) refuse("one of " + std::to_string(array.ndim()) + " dimensions");
    if ((array.flags() & py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_) == 0) refuse("a strided view");
    set(array.data(), static_cast<std::size_t>(array.size()));
  }
  void take_buffer() {
    std::string_view format = buffer_.format == nullptr ? "B" : buffer_.format;
    if (!format.empty() && (format[0] == '@' || format[0] == '=')) format.remove_prefix(1);
    const auto bytes = static_cast<std::size_t>(buffer_.len);
    if (buffer_.ndim > 1) refuse("one of " + std::to_string(buffer_.ndim) + " dimensions");
    if (buffer_.itemsize == 1 && (format == "B" || format == "b" || format == "c")) {
      if (bytes % sizeof(T) != 0) {
        throw py::value_error(std::to_string(bytes) + " bytes are not a whole number of " + ElementName<T>::kName);
      }
      return set(buffer_.buf, bytes / sizeof(T));
    }
    const bool fits = std::is_signed_v<T> ? (format == "i" || format == "l" || format == "q")
                                          : (format == "I" || format == "L" || format == "Q");
    if (!fits || buffer_.itemsize != static_cast<py::ssize_t>(sizeof(T)))
      refuse("a buffer of '" + std::string(format) + "'");
    set(buffer_.buf, bytes / sizeof(T));
  }

  const T* data_ = nullptr;
  std::size_t size_ = 0;
  Py_buffer buffer_{};
  bool held_ = false;
};

using TokenView = ArrayView<std::uint32_t>;
using HashView = ArrayView<std::uint64_t>;

inline std::span<const BlockHash> as_blocks(std::span<const std::uint64_t> hashes) noexcept {
  return {reinterpret_cast<const BlockHash*>(hashes.data()), hashes.size()};
}

/// Bytes of a body: bytes, bytearray, memoryview, or str (its UTF-8). lifetime: holds the buffer.
class BytesView {
 public:
  BytesView() = default;
  BytesView(BytesView&& other) noexcept
      : data_(other.data_),
        buffer_(other.buffer_),
        held_(std::exchange(other.held_, false)),
        mutable_(other.mutable_) {}
  BytesView& operator=(BytesView&&) = delete;
  ~BytesView() {
    if (held_) PyBuffer_Release(&buffer_);
  }
  bool take(py::handle source) {
    if (PyBytes_Check(source.ptr())) {
      data_ = {PyBytes_AS_STRING(source.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(source.ptr()))};
      return true;
    }
    if (PyUnicode_Check(source.ptr())) {
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
      if (text == nullptr) throw py::error_already_set();
      data_ = {text, static_cast<std::size_t>(size)};
      return true;
    }
    if (PyObject_CheckBuffer(source.ptr()) == 0) return false;
    if (PyObject_GetBuffer(source.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
    held_ = true;
    mutable_ = buffer_.readonly == 0;
    data_ = {static_cast<const char*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
    return true;
  }
  [[nodiscard]] std::string_view text() const noexcept { return data_; }
  /// returns: whether another thread could write it while nobody holds the GIL.
  [[nodiscard]] bool is_mutable() const noexcept { return mutable_; }

 private:
  std::string_view data_;
  Py_buffer buffer_{};
  bool held_ = false;
  bool mutable_ = false;
};

/// returns: a read-only NumPy view. lifetime: keeps `owner` alive; `owner` must not move the memory.
template <class T, class Source>
py::array_t<T> array_view(std::span<const Source> values, py::handle owner) {
  static_assert(sizeof(T) == sizeof(Source));
  py::array_t<T> view({static_cast<py::ssize_t>(values.size())}, {static_cast<py::ssize_t>(sizeof(T))},
                      reinterpret_cast<const T*>(values.data()), owner);
  py::detail::array_proxy(view.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return view;
}

}  // namespace warmroute::python

namespace pybind11::detail {

template <class T>
struct type_caster<warmroute::python::ArrayView<T>> {
  static constexpr auto name = warmroute::python::ElementName<T>::kSignature;
  template <class>
  using cast_op_type = const warmroute::python::ArrayView<T>&;
  operator const warmroute::python::ArrayView<T>&() const noexcept { return view_; }

  bool load(handle source, bool) {
    if (source.is_none()) return false;
    view_.take(source);
    return true;
  }

 private:
  warmroute::python::ArrayView<T> view_;
};

template <>
struct type_caster<warmroute::python::BytesView> {
  static constexpr auto name = const_name("bytes | bytearray | memoryview | str");
  template <class>
  using cast_op_type = const warmroute::python::BytesView&;
  operator const warmroute::python::BytesView&() const noexcept { return view_; }

  bool load(handle source, bool) { return view_.take(source); }

 private:
  warmroute::python::BytesView view_;
};

}  // namespace pybind11::detail
