// The three kinds of failure, told apart by cause: the user's input, the surroundings, and our own
// bugs.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

// What was wrong with one input. Empty parts are left out of the message.
struct InputProblem {
  std::string file{};     // path, or "command line"
  std::string field{};    // "--model", "gpu.sm_count"
  std::string value{};    // as written by the user
  std::string message{};  // what is wrong, without a full stop
  std::string allowed{};  // "a whole number from 1 to 65536"
  std::string nearest{};  // the nearest valid spelling
  int line = 0;           // 1-based, 0 = unknown
  int column = 0;
  std::string shown{};  // that line of the file, shown below the message with the column marked
};

// The user's input is wrong: exit status 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(InputProblem problem);
  [[nodiscard]] const InputProblem& problem() const { return problem_; }

 private:
  InputProblem problem_;
};

// Something needed is not here (a GPU, a toolkit, counters, a data file of the installation): exit
// status 3.
class MissingError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A bug of ours: exit status 70.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_assertion(const char* condition, const char* file, int line,
                                 std::string_view context);

// One line: "file:line:column: field = 'value': message; allowed: ...; did you mean '...'?", and
// two more where the problem shows its line of the file.
std::string format_problem(const InputProblem& problem);

// The candidate nearest to `name` by edit distance (case-insensitive); empty when none is near
// (distance above max(2, half the name's length)).
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace fuseline

#define FUSELINE_ASSERT(condition, context)                                                \
  do {                                                                                     \
    if (!(condition)) ::fuseline::fail_assertion(#condition, __FILE__, __LINE__, context); \
  } while (false)
