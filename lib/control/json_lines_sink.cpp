// Usage as lines of JSON in a file.
#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "control/files.hpp"
#include "warmroute/control/sink.hpp"

namespace warmroute {

JsonLinesSink::JsonLinesSink(std::string path) : path_(std::move(path)) {}
JsonLinesSink::~JsonLinesSink() = default;

Status JsonLinesSink::deliver(std::span<const JournalRecord> records) {
  // Opened for each batch: whoever rotates the file need tell nobody.
  control::Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  struct stat about {};
  if (!file.ok() || fstat(file.get(), &about) != 0) return control::file_error("open", path_);
  char last = '\n';
  if (about.st_size > 0 && ::pread(file.get(), &last, 1, about.st_size - 1) != 1)
    return control::file_error("read", path_);
  text_.assign(last == '\n' ? "" : "\n");
  for (const JournalRecord& record : records) append_json_line(record, text_);
  if (!control::write_all(file.get(), text_) || ::fdatasync(file.get()) != 0)
    return control::file_error("write", path_);
  return {};
}

}  // namespace warmroute
