#include "lab/labs/all_labs.h"

#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::lab {

namespace {

// With some students' shapes a mistake leads to the right number, and is then none.
void drop_harmless_mistakes(NumberKey& key) {
  std::erase_if(key.mistakes, [&](const Mistake& m) {
    return std::abs(m.value - key.value) <= tolerance_of(key.digits) * std::abs(key.value);
  });
}

// Shuffles options with a text by the student's id (Fisher and Yates) and letters them anew.
void shuffle(ChoiceKey& key, const std::string& id, const Student& student) {
  std::vector<Option>& options = key.options;
  if (options.front().text.empty()) return;
  for (std::size_t last = options.size() - 1; last > 0; --last) {
    const std::int64_t other =
        student.between(fmt::format("{} option {}", id, last), 0, static_cast<std::int64_t>(last));
    std::swap(options[last], options[static_cast<std::size_t>(other)]);
  }
  char letter = 'a';
  for (Option& o : options) o.word = letter++;
}

const LabDescription& entry(int number) {
  if (number >= 0 && number < lab_count()) return *labs::kAll[static_cast<std::size_t>(number)];
  throw InputError({.file = "command line",
                    .field = "LAB",
                    .value = std::to_string(number),
                    .message = "there is no such lab",
                    .allowed = fmt::format("a whole number from 0 to {}", lab_count() - 1)});
}

}  // namespace

int lab_count() { return static_cast<int>(std::size(labs::kAll)); }

Lab make_lab(int number, const Student& student) {
  const LabDescription& e = entry(number);
  Lab lab = e.make(student);
  lab.number = number;
  lab.folder = e.folder;
  lab.title = e.title;
  for (Task& task : lab.tasks) {
    if (auto* number_key = std::get_if<NumberKey>(&task.key)) drop_harmless_mistakes(*number_key);
    if (auto* choice = std::get_if<ChoiceKey>(&task.key)) shuffle(*choice, task.id, student);
  }
  return lab;
}

std::string lab_folder(int number) { return entry(number).folder; }

std::string lab_title(int number) { return entry(number).title; }

int points_of(const Lab& lab) {
  int sum = 0;
  for (const Task& task : lab.tasks) sum += task.points;
  return sum;
}

}  // namespace fuseline::lab
