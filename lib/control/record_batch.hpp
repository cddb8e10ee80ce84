// Journal records that outlive their reader's next step. Private to lib.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "warmroute/usage/journal.hpp"

namespace warmroute::control {

class RecordBatch {
 public:
  void add(const JournalRecord& record);
  void clear() {
    used_ = 0;
    records_.clear();
  }
  [[nodiscard]] std::span<const JournalRecord> records() const noexcept { return records_; }
  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }

 private:
  struct Own {  // what a record's views look at
    std::string text;
    std::vector<CostLine> bill;
  };
  std::deque<Own> own_;  // used again
  std::size_t used_ = 0;
  std::vector<JournalRecord> records_;
};

}  // namespace warmroute::control
