#include "lab/course/race.h"

#include "base/error.h"
#include "lab/embedded_files.h"
#include "model/programs/program_file.h"

namespace fuseline::lab {

namespace {

constexpr const char* kSizes = "size M = 4096, D = 4096, F = 11008\n";
// Some tiles at the edges, no multiple of a tile in any direction, and quick on one core.
constexpr const char* kSmallSizes = "size M = 152, D = 104, F = 328\n";

constexpr const char* kSolution =
    "activation parts[M,⌈F/128⌉], fp32\n\n"
    "let swish(z) = z * sigmoid(1.5 * z)\n\n"
    "program up\n"
    "  y = x[M,D] · w[F,D]ᵀ\n"
    "  rows = load_rows s[M,1]\n"
    "  scaled = y * rows\n"
    "  bias = load_cols b[1,F]\n"
    "  z = scaled + bias\n"
    "  a = swish(z)\n"
    "  rest = load r[M,F]\n"
    "  o = a + rest\n"
    "  store act[M,F] = o\n"
    "  store parts[M,⌈F/128⌉] = max(o)\n\n"
    "program finish\n"
    "  for each row of [M, ⌈F/128⌉]\n"
    "  p = load parts[M,⌈F/128⌉]\n"
    "  m = row_max(p)\n"
    "  store_rows largest[M,1] = m\n";

// The text with small sizes in place of the race's; empty when the race's are not in it.
std::string with_small_sizes(std::string text) {
  const std::size_t at = text.find(kSizes);
  if (at == std::string::npos) return {};
  return text.replace(at, std::string(kSizes).size(), kSmallSizes);
}

}  // namespace

std::string race_head() { return embedded_files().at("docs/labs/10-own-program/race.fuse"); }

TaskResult judge_race(const std::string& text, const std::string& file) {
  TaskResult result;
  result.verdict = Verdict::wrong;
  const std::string small = with_small_sizes(text);
  if (small.empty()) {
    result.diagnosis = std::string("the line '") +
                       std::string(kSizes, std::string(kSizes).size() - 1) +
                       "' is not in it: all run the race at these sizes";
    return result;
  }
  ProgramKey key;
  key.file = file;
  key.gpu = "h100";
  key.wanted = with_small_sizes(race_head()) + "\n" + kSolution;
  key.outputs = {"act", "largest"};
  key.most = Bytes(std::int64_t{1} << 60);  // time is judged, not bytes
  return judge_program(key, read_program_text(small, file));
}

}  // namespace fuseline::lab
