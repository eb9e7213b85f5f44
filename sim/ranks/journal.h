// What a long piece of work has finished, written as it goes, so that nothing of it is lost.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace fuseline {

// A file of lines: a header that says of what, then one for each finished point, with a checksum.
// A line that was cut off, because the process was killed or the disk was full, is left out when
// the file is read, and cut away before anything is added.
class Journal {
 public:
  // `subject`: one line that must be the same when the work goes on. Without `resume` the file must
  // not be there; with it, it may be. InputError: an unfinished journal is there and `resume` was
  // not said, one of other work, one that another process writes, a folder that cannot be written.
  Journal(std::filesystem::path path, const std::string& subject, bool resume);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // The points that are finished, by their numbers.
  [[nodiscard]] const std::map<std::size_t, std::string>& finished() const { return finished_; }
  // Reaches the operating system before this returns, and the disk now and then. InputError: it
  // cannot be written (a full disk); the points before it stay.
  void add(std::size_t point, const std::string& text);
  // The work is done: the file goes.
  void remove();

 private:
  void read(const std::string& header);
  void append(const std::string& line);

  std::filesystem::path path_;
  int file_ = -1;
  long long end_ = 0;  // bytes that hold whole lines
  int unsynced_ = 0;
  std::map<std::size_t, std::string> finished_;
};

}  // namespace fuseline
