#include "lab/labs/labs.h"

#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::lab {

namespace {

struct LabEntry {
  const char* folder;
  const char* title;
  Lab (*make)(const Student&);
};

constexpr std::array<LabEntry, kLabCount> kLabs = {{
    {"00-tour", "a tour", lab_tour},
    {"01-count-the-bytes", "count the bytes", lab_count_the_bytes},
    {"02-rooflines", "rooflines and ridge points", lab_rooflines},
    {"03-pointwise-fusion", "pointwise and norm fusion", lab_pointwise_fusion},
    {"04-gemm-epilogues", "GEMM epilogues, and when fusion does not pay", lab_epilogues},
    {"05-attention", "online softmax and fused attention", lab_attention},
    {"06-tiles-and-l2", "tiles, L2 and re-reads", lab_tiles},
    {"07-fusion-planning", "fusion planning as a graph problem", lab_planning},
    {"08-predict-and-measure", "predict, then measure", lab_measure},
    {"09-decode", "decode and the KV cache", lab_decode},
    {"10-own-program", "write an epilogue program", lab_program},
    {"11-number-formats", "weights of few bits", lab_number_formats},
}};

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

const LabEntry& entry(int number) {
  if (number >= 0 && number < kLabCount) return kLabs[static_cast<std::size_t>(number)];
  throw InputError({.file = "command line",
                    .field = "LAB",
                    .value = std::to_string(number),
                    .message = "there is no such lab",
                    .allowed = fmt::format("a whole number from 0 to {}", kLabCount - 1)});
}

}  // namespace

Lab make_lab(int number, const Student& student) {
  const LabEntry& e = entry(number);
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
