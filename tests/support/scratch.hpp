// A name for a file that no other run of the tests uses, at the same time either.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace warmroute::test {

inline std::string scratch_path(const std::string& name) {
  return ::testing::TempDir() + "warmroute_" + std::to_string(::getpid()) + "_" + name;
}

}  // namespace warmroute::test
