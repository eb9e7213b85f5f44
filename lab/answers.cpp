#include "lab/answers.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/toml_file.h"
#include "base/toml_text.h"
#include "lab/workspace.h"

namespace fuseline::lab {

namespace {

std::string lowered(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::vector<std::string> words_of(const ChoiceKey& key) {
  std::vector<std::string> words;
  for (const Option& o : key.options) words.push_back(o.word);
  return words;
}

// The answer's meaning; the table says where a wrong one stands.
Answer parse_answer(const TomlTable& table, const Task& task) {
  Answer answer;
  if (table.has(task.id) && !table.is_text(task.id)) {
    table.fail(task.id, "is not a text", "the answer in quotes, as in \"12.5 MB\"");
  }
  answer.text = table.text(task.id);
  answer.text.erase(0, answer.text.find_first_not_of(" \t"));
  answer.text.erase(answer.text.find_last_not_of(" \t") + 1);
  if (answer.text == kNoAnswer || answer.text.empty()) {
    answer.text.clear();
    return answer;
  }
  if (const auto* number = std::get_if<NumberKey>(&task.key)) {
    const auto parsed = parse_quantity(answer.text, number->dimension);
    if (const auto* problem = std::get_if<QuantityProblem>(&parsed)) {
      table.fail(task.id, problem->message, problem->allowed, problem->nearest);
    }
    answer.quantity = std::get<Quantity>(parsed);
  } else if (const auto* choice = std::get_if<ChoiceKey>(&task.key)) {
    const std::vector<std::string> words = words_of(*choice);
    answer.text = lowered(answer.text);
    if (std::ranges::find(words, answer.text) == words.end()) {
      table.fail(task.id, "is none of the answers offered",
                 fmt::format("{}", fmt::join(words, ", ")), nearest_name(answer.text, words));
    }
  }
  return answer;
}

std::string comment_for(const Task& task) {
  if (const auto* number = std::get_if<NumberKey>(&task.key)) {
    if (number->dimension == Dimension::plain) {
      return number->digits == 0 ? "a whole number"
                                 : fmt::format("a number, {} digits", number->digits);
    }
    return fmt::format("in {}, {} digits", fmt::join(units_of(number->dimension), " "),
                       number->digits);
  }
  if (const auto* choice = std::get_if<ChoiceKey>(&task.key)) {
    return fmt::format("one of {}", fmt::join(words_of(*choice), ", "));
  }
  return "a file in this folder";
}

TomlTable load_head(const std::filesystem::path& path, Answers& answers) {
  require_plain_file(path);
  TomlTable top = TomlTable::load(path);
  top.refuse_other_keys({"lab", "student", "secret", "tag", "answers"});
  answers.lab = static_cast<int>(top.whole("lab", {0, lab_count() - 1}));
  answers.student = top.text("student");
  try {
    static_cast<void>(Student(answers.student));
  } catch (const InputError& error) {
    top.fail("student", error.problem().message, error.problem().allowed);
  }
  answers.secret = top.text("secret");
  answers.tag = top.text("tag");
  return top;
}

}  // namespace

Answers read_answers_head(const std::filesystem::path& path) {
  Answers answers;
  static_cast<void>(load_head(path, answers));
  return answers;
}

Answers read_answers(const std::filesystem::path& path, const Lab& lab) {
  Answers answers;
  const TomlTable top = load_head(path, answers);
  if (answers.lab != lab.number) {
    top.fail("lab", fmt::format("these are the answers of another lab than {}", lab.number));
  }
  const TomlTable table = top.table("answers");
  std::vector<std::string> ids;
  for (const Task& task : lab.tasks) ids.push_back(task.id);
  table.refuse_other_keys(ids);
  for (const Task& task : lab.tasks) {
    try {
      answers.by_task[task.id] = parse_answer(table, task);
    } catch (const InputError& error) {
      answers.by_task[task.id].text = error.problem().value;
      answers.by_task[task.id].problem = error.problem();
    }
  }
  return answers;
}

std::string file_of(const Task& task) {
  if (const auto* function = std::get_if<FunctionKey>(&task.key)) return function->file;
  if (const auto* program = std::get_if<ProgramKey>(&task.key)) return program->file;
  if (std::holds_alternative<PlanKey>(task.key)) return "plan.toml";
  return {};
}

std::string answers_text(const Lab& lab, const Student& student,
                         const std::map<std::string, std::string>& answers) {
  std::string text =
      fmt::format("# Answers to lab {}: {}. Check them with: fuseline lab check {}\n", lab.number,
                  lab.title, lab.number);
  text += "# Numbers need their unit; \"?\" is not answered yet.\n";
  text += fmt::format(
      "# The tag says that this folder is this student's: with another one no answer counts.\n"
      "lab = {}\nstudent = {}\nsecret = {}\ntag = {}\n\n[answers]\n",
      lab.number, toml_text(student.id()), toml_text(student.secret().name()),
      toml_text(student.secret().tag(student.id(), lab.number)));
  for (const Task& task : lab.tasks) {
    const auto given = answers.find(task.id);
    const std::string file = file_of(task);
    const std::string value = given != answers.end() ? given->second
                              : file.empty()         ? std::string(kNoAnswer)
                                                     : file;
    const std::string field = fmt::format("{} = {}", toml_text(task.id), toml_text(value));
    text += fmt::format("{:<24}  # {}\n", field, comment_for(task));
  }
  return text;
}

}  // namespace fuseline::lab
