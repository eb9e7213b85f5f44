#include "base/gzip_text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "base/error.h"

namespace fuseline {
namespace {

// zlib's flag for gzip's header in the place of its own, and its largest window.
constexpr int kGzipHeader = 16;
constexpr std::size_t kStep = std::size_t{1} << 20;  // 1 MiB

class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, MAX_WBITS + kGzipHeader) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream* operator->() { return &stream_; }
  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
};

[[noreturn]] void refuse_gzip(const std::string& file, const std::string& message) {
  throw InputError({.file = file, .message = message, .allowed = "a whole file of gzip"});
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }

std::string gunzip(std::string_view packed, const std::string& file, Bytes limit) {
  Inflater inflater;
  std::string out;
  std::string unread(packed);  // zlib takes no pointer to constant bytes
  inflater->next_in = reinterpret_cast<Bytef*>(unread.data());
  std::size_t left = unread.size();
  while (true) {
    const std::size_t before = out.size();
    out.resize(before + kStep);
    inflater->next_out = reinterpret_cast<Bytef*>(out.data() + before);
    inflater->avail_out = static_cast<uInt>(kStep);
    const auto given =
        static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
    inflater->avail_in = given;
    const int status = inflate(inflater.get(), Z_NO_FLUSH);
    left -= given - inflater->avail_in;
    out.resize(before + kStep - inflater->avail_out);
    if (static_cast<std::int64_t>(out.size()) > limit.value())
      throw InputError({.file = file,
                        .message = "is too large once unpacked",
                        .allowed = fmt::format("at most {} bytes", limit.value())});
    if (status == Z_STREAM_END) {
      if (left == 0) return out;
      if (inflateReset(inflater.get()) != Z_OK) refuse_gzip(file, "the packed text is damaged");
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      refuse_gzip(file, "the packed text is damaged");
    } else if (left == 0 && inflater->avail_out != 0) {
      refuse_gzip(file, "the packed text is cut off");
    }
  }
}

}  // namespace fuseline
