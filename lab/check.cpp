#include "lab/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"
#include "lab/shown.h"
#include "lab/trick.h"

namespace fuseline::lab {

namespace {

bool near(double got, double want, double tolerance) {
  return std::abs(got - want) <= tolerance * std::abs(want);
}

// Mistakes are told apart from the key by more than rounding, so they get as much room.
const Mistake* known_mistake(const NumberKey& key, double got) {
  const double room = key.digits == 0 ? 1e-9 : tolerance_of(key.digits);
  const Mistake* best = nullptr;
  for (const Mistake& m : key.mistakes) {
    if (!near(got, m.value, room)) continue;
    if (best == nullptr || std::abs(got - m.value) < std::abs(got - best->value)) best = &m;
  }
  return best;
}

struct RatioRule {
  double ratio;  // of the answer over the key
  const char* diagnosis;
};

// What a wrong prefix or unit does to a number of bytes.
constexpr std::array<RatioRule, 8> kByteRatios = {{
    {1.048576, "the number is in MB, the unit says MiB: 1 MiB = 1.048576 MB"},
    {1 / 1.048576, "the number is in MiB, the unit says MB: 1 MiB = 1.048576 MB"},
    {1.073741824, "the number is in GB, the unit says GiB: 1 GiB = 1.073741824 GB"},
    {1 / 1.073741824, "the number is in GiB, the unit says GB: 1 GiB = 1.073741824 GB"},
    {8, "8 times too large: bits or bytes?"},
    {0.125, "8 times too small: bits or bytes?"},
    {2, "twice too large: how many bytes has an element?"},
    {0.5, "half of it: how many bytes has an element, and is anything both read and written?"},
}};

constexpr std::array<RatioRule, 2> kFlopRatios = {{
    {0.5, "half of it: a multiply and an add count two FLOPs"},
    {2, "twice too large: count a multiply and an add once each"},
}};

std::string by_ratio(const NumberKey& key, double got) {
  const double ratio = got / key.value;
  const double room = tolerance_of(std::max(key.digits, 3));
  const auto match = [&](const auto& rules) -> std::string {
    for (const RatioRule& rule : rules) {
      if (near(ratio, rule.ratio, room)) return rule.diagnosis;
    }
    return {};
  };
  if (key.dimension == Dimension::bytes) {
    if (std::string text = match(kByteRatios); !text.empty()) return text;
  }
  if (key.dimension == Dimension::flops) {
    if (std::string text = match(kFlopRatios); !text.empty()) return text;
  }
  if (key.dimension == Dimension::plain) return {};
  for (const int power : {-9, -6, -3, 3, 6, 9}) {
    if (near(ratio, std::pow(10.0, power), room)) {
      return fmt::format("right digits, wrong prefix of the unit: a factor of 10^{}", power);
    }
  }
  if (near(ratio, 100, room) || near(ratio, 0.01, room)) {
    return "right digits, but a factor of 100: a percentage or a ratio?";
  }
  return {};
}

std::string by_size(const NumberKey& key, double got) {
  if (key.value == 0 || got / key.value <= 0) return "not that";
  const double ratio = got / key.value;
  const double tolerance = tolerance_of(key.digits);
  if (key.digits > 0 && near(got, key.value, 4 * tolerance)) {
    return fmt::format("close: {} significant digits are asked for, without rounding on the way",
                       key.digits);
  }
  const char* direction = ratio > 1 ? "too large" : "too small";
  const double factor = ratio > 1 ? ratio : 1 / ratio;
  if (factor > 10) return fmt::format("{} by more than a factor of 10", direction);
  if (factor > 1.5) return fmt::format("{} by a factor of {:.1f}", direction, factor);
  return fmt::format("{}, by less than half", direction);
}

TaskResult judge(const Task& task, const Answer& answer, const std::filesystem::path& folder) {
  if (answer.problem) throw InputError(*answer.problem);
  if (const auto* plan = std::get_if<PlanKey>(&task.key)) return judge_plan(*plan, folder);
  if (const auto* function = std::get_if<FunctionKey>(&task.key)) {
    return judge_function(*function, folder);
  }
  if (const auto* program = std::get_if<ProgramKey>(&task.key)) {
    return judge_program(*program, folder);
  }
  if (answer.text.empty()) return {};
  if (const auto* number = std::get_if<NumberKey>(&task.key)) {
    return judge_number(*number, answer.quantity);
  }
  return judge_choice(std::get<ChoiceKey>(task.key), answer.text);
}

// Several tasks may share a file; one message about it is enough.
void add_once(std::vector<std::string>& messages, const std::string& message) {
  if (std::ranges::find(messages, message) == messages.end()) messages.push_back(message);
}

TaskResult unjudged(const std::string& why) {
  TaskResult result;
  result.verdict = Verdict::unjudged;
  result.diagnosis = shown(why);
  return result;
}

}  // namespace

int LabResult::points() const {
  int sum = 0;
  for (const TaskResult& t : tasks) sum += t.points;
  return sum;
}

int LabResult::of() const {
  int sum = 0;
  for (const TaskResult& t : tasks) sum += t.of;
  return sum;
}

const TaskResult* LabResult::trick() const {
  const auto found = std::ranges::find_if(tasks, &TaskResult::trick);
  return found == tasks.end() ? nullptr : &*found;
}

TaskResult judge_number(const NumberKey& key, const Quantity& quantity) {
  TaskResult result;
  if (near(quantity.value, key.value, tolerance_of(key.digits))) {
    result.verdict = Verdict::right;
    return result;
  }
  result.verdict = Verdict::wrong;
  if (const Mistake* m = known_mistake(key, quantity.value)) {
    result.diagnosis = m->diagnosis;
    return result;
  }
  if (key.digits == 0 && quantity.value != std::round(quantity.value)) {
    // Somebody who forgot to round may have made a known mistake before.
    const Mistake* m = known_mistake(key, std::floor(quantity.value));
    if (m == nullptr) m = known_mistake(key, std::ceil(quantity.value));
    result.diagnosis = m == nullptr ? "a whole number is asked for" : m->diagnosis;
    return result;
  }
  result.diagnosis = by_ratio(key, quantity.value);
  if (result.diagnosis.empty()) result.diagnosis = by_size(key, quantity.value);
  return result;
}

TaskResult judge_choice(const ChoiceKey& key, const std::string& word) {
  const auto chosen =
      std::ranges::find_if(key.options, [&](const Option& o) { return o.word == word; });
  FUSELINE_ASSERT(chosen != key.options.end(), word);
  TaskResult result;
  result.verdict = chosen->diagnosis.empty() ? Verdict::right : Verdict::wrong;
  result.diagnosis = chosen->diagnosis;
  return result;
}

LabResult check_lab(const Lab& lab, const Answers& answers, const std::filesystem::path& folder) {
  LabResult result;
  result.lab = lab.number;
  result.title = lab.title;
  result.student = answers.student;
  for (const Task& task : lab.tasks) {
    const Answer& answer = answers.by_task.at(task.id);
    TaskResult judged;
    try {
      judged = judge(task, answer, folder);
    } catch (const TrickError& error) {
      judged = unjudged(error.problem().message);
      judged.trick = true;
      add_once(result.errors, error.what());
    } catch (const InputError& error) {
      judged = unjudged(error.problem().message);
      add_once(result.errors, error.what());
    } catch (const MissingError& error) {
      judged = unjudged(error.what());
      add_once(result.missing, error.what());
    }
    judged.id = task.id;
    judged.of = task.points;
    judged.points = judged.verdict == Verdict::right ? task.points : 0;
    judged.answer = shown(answer.text);
    result.tasks.push_back(std::move(judged));
  }
  return result;
}

}  // namespace fuseline::lab
