// Growth moves text to new memory and wipes the old.
#include "ingest/byte_buffer.hpp"

#include <utility>

namespace warmroute::ingest {

void ByteBuffer::grow(std::size_t bytes) {
  const std::size_t size = size_;
  const std::size_t capacity = std::max(size + bytes, capacity_ + capacity_ / 2) + 64;
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (size != 0) std::memcpy(larger.get(), data_.get(), size);
  wipe();
  data_ = std::move(larger);
  capacity_ = capacity;
  size_ = size;
}

}  // namespace warmroute::ingest
