#include "lab/workspace.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/output_file.h"
#include "base/path_kind.h"
#include "base/toml_text.h"
#include "lab/answers.h"
#include "lab/embedded_files.h"
#include "lab/trick.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

std::string answer_line(const Task& task) {
  if (const auto* number = std::get_if<NumberKey>(&task.key)) {
    if (number->digits == 0) return "a whole number";
    if (number->dimension == Dimension::plain) {
      return fmt::format("a number, to {} significant digits, without a unit", number->digits);
    }
    return fmt::format("{}, to {} significant digits, as in `\"12.3 {}\"`",
                       name_of(number->dimension), number->digits, number->unit);
  }
  if (const auto* choice = std::get_if<ChoiceKey>(&task.key)) {
    std::vector<std::string> words;
    for (const Option& o : choice->options) words.push_back("`" + o.word + "`");
    return fmt::format("one of {}", fmt::join(words, ", "));
  }
  if (const auto* program = std::get_if<ProgramKey>(&task.key)) {
    return fmt::format("the file `{}`", program->file);
  }
  if (std::holds_alternative<PlanKey>(task.key)) return "the file `plan.toml`";
  return "the file `stub.cpp`";
}

std::string options_text(const ChoiceKey& key) {
  std::string text;
  for (const Option& o : key.options) {
    if (o.text.empty()) continue;
    text += fmt::format("{}- **{}** {}", text.empty() ? "\n\n" : "\n", o.word, o.text);
  }
  return text;
}

std::string function_text(const FunctionKey& key) {
  std::string text = fmt::format(
      "\n\n```cpp\n{}\n```\n\nIt is compared with the fp64 reference on "
      "these and on hidden shapes:\n\n",
      key.signature);
  for (const FunctionCase& c : key.cases) {
    if (!c.hidden) text += "- " + c.name + "\n";
  }
  return text +
         "\nEvery load and store is counted (see `fuseline_lab.h`); what a vector holds counts\n"
         "against the chip's capacity.";
}

std::string plan_text(const Lab& lab, const PlanKey& key) {
  return fmt::format(
      "# Task {}.8 and {}.9: which edges stay on chip. Only [custom] is judged.\n"
      "#   fuseline explain plan.toml                      kernels, and why edges are apart\n"
      "#   fuseline predict plan.toml --fidelity roofline  bytes\n\n"
      "title = \"Lab {}: my plan\"\n"
      "model = {}\n"
      "gpu = \"h100\"\n"
      "batch = {}\n"
      "seq = {}\n"
      "policies = [\"custom\"]\n\n"
      "[custom]\n"
      "rewrites = []\n"
      "on_chip = []  # for example \"down -> residual2\"\n",
      lab.number, lab.number, lab.number, toml_text(key.model.name), key.workload.batch,
      key.workload.seq);
}

}  // namespace

std::string default_folder(int number) { return fmt::format("lab-{:02}", number); }

std::string task_sheet(const Lab& lab, const Student& student) {
  std::string text = fmt::format("# Lab {}: {}\n\n", lab.number, lab.title);
  text += fmt::format(
      "Student `{}`; {} points. Read `docs/labs/{}/README.md` first.\n"
      "Write your answers into `answers.toml`, then run `fuseline lab check {}`.\n"
      "Stuck? `fuseline lab hint {}`.\n\n{}\n",
      student.id(), points_of(lab), lab.folder, lab.number, lab.tasks.front().id, lab.intro);
  for (const Task& task : lab.tasks) {
    text += fmt::format("\n## {} ({} point{})\n\n{}", task.id, task.points,
                        task.points == 1 ? "" : "s", task.text);
    if (const auto* function = std::get_if<FunctionKey>(&task.key))
      text += function_text(*function);
    if (const auto* choice = std::get_if<ChoiceKey>(&task.key)) text += options_text(*choice);
    text += fmt::format("\n\nAnswer: {}.\n", answer_line(task));
  }
  return text;
}

std::map<std::string, std::string> workspace_files(const Lab& lab, const Student& student) {
  std::map<std::string, std::string> files = {{"README.md", task_sheet(lab, student)},
                                              {"answers.toml", answers_text(lab, student)}};
  for (const Task& task : lab.tasks) {
    if (const auto* function = std::get_if<FunctionKey>(&task.key)) {
      const auto stub = embedded_files().find("docs/labs/" + lab.folder + "/" + function->file);
      FUSELINE_ASSERT(stub != embedded_files().end(), lab.folder);
      files[function->file] = with_factor(stub->second, lab);
      files["fuseline_lab.h"] = embedded_files().at("lab/harness/fuseline_lab.h");
    } else if (const auto* plan = std::get_if<PlanKey>(&task.key)) {
      files["plan.toml"] = plan_text(lab, *plan);
    } else if (const auto* program = std::get_if<ProgramKey>(&task.key)) {
      files[program->file] = program->head;
    }
  }
  return files;
}

std::string with_factor(std::string text, const Lab& lab) {
  const std::string mark = "@FACTOR@";
  for (const Task& task : lab.tasks) {
    const auto* function = std::get_if<FunctionKey>(&task.key);
    const auto* program = std::get_if<ProgramKey>(&task.key);
    if (function == nullptr && program == nullptr) continue;
    const std::string factor =
        fmt::format("{:g}", function == nullptr ? program->factor : function->factor);
    for (std::size_t at = 0; (at = text.find(mark)) != std::string::npos;) {
      text.replace(at, mark.size(), factor);
    }
  }
  return text;
}

void make_new_folder(const fs::path& folder) {
  std::error_code failed;
  if (fs::exists(folder, failed)) {
    throw InputError({.file = folder.string(),
                      .message = "is there already, and answers are not overwritten",
                      .allowed = "another folder (--dir), or remove this one"});
  }
  if (!fs::create_directory(folder, failed)) {
    throw InputError({.file = folder.string(),
                      .message = "cannot be made: " + failed.message(),
                      .allowed = "a new folder in one that exists"});
  }
}

void make_workspace(const Lab& lab, const Student& student, const fs::path& folder) {
  const std::map<std::string, std::string> files = workspace_files(lab, student);
  make_new_folder(folder);
  try {
    for (const auto& [name, text] : files) replace_file(folder / name, text);
  } catch (const InputError&) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    throw;
  }
}

void require_plain_file(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  throw TrickError({.file = path.string(),
                    .message = "is no plain file",
                    .allowed = "a file of the folder itself: no link, no FIFO, no device"});
}

std::string id_in(const fs::path& folder, const CourseSecret& secret) {
  for (const fs::path& workspace : find_workspaces(folder)) {
    try {
      const Answers head = read_answers_head(workspace / "answers.toml");
      if (head.tag == secret.tag(head.student, head.lab)) return head.student;
    } catch (const InputError&) {
      continue;  // lab check says what is wrong with it
    }
  }
  return {};
}

std::vector<fs::path> find_workspaces(const fs::path& folder) {
  std::vector<fs::path> found = folder_entries(folder);
  std::error_code unreadable;  // other people's folders may lie beside
  std::erase_if(found, [&](const fs::path& entry) {
    return !fs::exists(entry / "answers.toml", unreadable);
  });
  return found;
}

}  // namespace fuseline::lab
