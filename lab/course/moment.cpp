#include "lab/course/moment.h"

#include <cstdlib>

#include <fmt/format.h>

namespace fuseline::lab {

namespace {

// Walks along a text and takes what it expects.
class MomentReader {
 public:
  explicit MomentReader(const std::string& text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Exactly so many digits, or -1.
  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      if (at_end() || text_[at_] < '0' || text_[at_] > '9') return -1;
      value = value * 10 + (text_[at_] - '0');
    }
    return value;
  }
  [[nodiscard]] std::string rest() const { return text_.substr(at_); }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::chrono::minutes> parse_utc_offset(const std::string& text) {
  if (text == "Z" || text == "UTC") return std::chrono::minutes{0};
  MomentReader in(text);
  const bool west = in.take('-');
  if (!west && !in.take('+')) return std::nullopt;
  const int hours = in.number(2);
  in.take(':');
  const int minutes = in.number(2);
  // The largest in use is +14:00.
  if (hours < 0 || hours > 14 || minutes < 0 || minutes > 59 || !in.at_end()) return std::nullopt;
  const std::chrono::minutes east{hours * 60 + minutes};
  return west ? -east : east;
}

std::optional<Moment> parse_moment(const std::string& text, std::chrono::minutes offset) {
  MomentReader in(text);
  const int year = in.number(4);
  if (year < 0 || !in.take('-')) return std::nullopt;
  const int month = in.number(2);
  if (month < 0 || !in.take('-')) return std::nullopt;
  const int day = in.number(2);
  if (day < 0 || (!in.take(' ') && !in.take('T'))) return std::nullopt;
  const int hour = in.number(2);
  if (hour < 0 || hour > 23 || !in.take(':')) return std::nullopt;
  const int minute = in.number(2);
  if (minute < 0 || minute > 59) return std::nullopt;
  int second = 0;
  if (in.take(':')) second = in.number(2);
  if (second < 0 || second > 59) return std::nullopt;
  in.take(' ');
  if (!in.at_end()) {
    const auto own = parse_utc_offset(in.rest());
    if (!own) return std::nullopt;
    offset = *own;
  }
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
         std::chrono::seconds{second} - offset;
}

std::string moment_text(Moment moment, std::chrono::minutes offset) {
  const Moment local = moment + offset;
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date{day};
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(local - day).count();
  const auto east = std::abs(offset.count());
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} {}{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     minutes / 60, minutes % 60, offset.count() < 0 ? '-' : '+', east / 60,
                     east % 60);
}

}  // namespace fuseline::lab
