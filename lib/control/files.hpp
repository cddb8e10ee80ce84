// Files of control: read and replaced as a whole. Private to lib.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "usage/file.hpp"
#include "warmroute/result.hpp"

namespace warmroute::control {

using usage::Descriptor;
using usage::write_all;

inline Error file_error(const char* what, const std::string& path, Code code = Code::io) {
  return Error{code, std::string("cannot ") + what + " " + path + ": " + std::strerror(errno), kNoOffset};
}

}  // namespace warmroute::control
