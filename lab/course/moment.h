// Moments as people write them: "2026-11-02 23:59 +01:00".
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace fuseline::lab {

using Moment = std::chrono::sys_seconds;

// What parse_moment() and parse_utc_offset() take, for messages.
inline constexpr const char* kMomentSyntax =
    "a day and a time as in \"2026-11-02 23:59\", perhaps with seconds and an offset from UTC: "
    "\"2026-11-02T23:59:00+01:00\", \"2026-11-02 22:59 Z\"";

// Minutes east of UTC of "+01:00", "-0530" or "Z"; nothing for another text.
std::optional<std::chrono::minutes> parse_utc_offset(const std::string& text);

// A time without an offset is meant at `offset`. Nothing for another text, and for a day that no
// calendar has.
std::optional<Moment> parse_moment(const std::string& text, std::chrono::minutes offset);

// "2026-11-02 23:59 +01:00"; seconds are left out.
std::string moment_text(Moment moment, std::chrono::minutes offset);

}  // namespace fuseline::lab
