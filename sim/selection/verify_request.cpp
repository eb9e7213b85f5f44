#include "sim/selection/verify_request.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace fuseline {

namespace {

constexpr std::int64_t kVerifiedTokens = 128;

std::uint64_t parse_seed(const std::string& text) {
  return static_cast<std::uint64_t>(
      parse_whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
}

// "6G", "800M": powers of 1000.
Bytes parse_memory(const std::string& text) {
  std::int64_t unit = 1;
  std::string digits = text;
  const std::string units = "KMGT";
  const std::size_t found = digits.empty() ? std::string::npos : units.find(digits.back());
  if (found != std::string::npos) {
    digits.pop_back();
    for (std::size_t i = 0; i <= found; ++i) unit *= 1000;
  }
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / unit;
  return Bytes(parse_whole_number("--memory-limit", digits, 1, most) * unit);
}

// A number, positive unless `any`.
double finite_number(const std::string& option, const std::string& text, bool any = false) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || !std::isfinite(value) || (!any && value <= 0))
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = text.empty() ? "\"\"" : text,
                      .message = any ? "is not a number" : "is not a positive number",
                      .allowed = any ? "a number, like -3 or 0.5" : "a number above 0, like 1e-3"});
  return value;
}

}  // namespace

executor::VerifyOptions verify_options(const VerifyWords& texts) {
  executor::VerifyOptions o;
  o.workers.threads =
      texts.threads
          ? static_cast<int>(parse_whole_number("--threads", *texts.threads, 1, kMostThreads))
          : executor::available_threads();
  if (texts.seed) o.seed = parse_seed(*texts.seed);
  if (texts.fault) o.fault = executor::parse_fault(*texts.fault);
  if (texts.outliers) o.inputs.outliers = finite_number("--outliers", *texts.outliers);
  if (texts.input_scale) o.inputs.scale = finite_number("--input-scale", *texts.input_scale);
  if (texts.input_shift) o.inputs.shift = finite_number("--input-shift", *texts.input_shift, true);
  if (texts.gradient_scale)
    o.inputs.gradient_scale = finite_number("--gradient-scale", *texts.gradient_scale);
  if (texts.memory_limit) o.memory_limit = parse_memory(*texts.memory_limit);
  return o;
}

Selection verify_selection(const std::optional<std::string>& scenario_path, SelectionWords words,
                           const VerifyWords& how) {
  if (how.layers.value_or("1") != "1")
    throw InputError({.file = kCommandLine,
                      .field = "--layers",
                      .value = *how.layers,
                      .message = "verify executes one block",
                      .allowed = "1"});
  // A plan is one of some sizes. Where nobody says which, it was made with the usual ones.
  const bool sized = words.seq || words.context || words.plan;
  if (!scenario_path && !sized) {
    const bool decode = words.phase == "decode";
    (decode ? words.context : words.seq) = std::to_string(kVerifiedTokens);
  }
  return resolve_selection(scenario_path, words);
}

}  // namespace fuseline
