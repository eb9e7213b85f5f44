// The pages of docs/reference are made by this test from what the program says: option lists from
// its help, keys and what they may hold from its error messages, constants from its tables. Each
// page is compared with what the code says now; with FUSELINE_UPDATE_DOCS=1 it is rewritten.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/toml_file.h"
#include "model/config/model_files.h"
#include "model/config/scenario.h"
#include "sim/gpu/constant_table.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/gpu_file.h"
#include "sim/judge/audit/claim_file.h"
#include "sim/measured/measurement.h"
#include "sim/measured/measurement_table.h"
#include "tests/cli/cli_run.h"
#include "tests/cli/programs_page.h"
#include "tests/cli/reference_meanings.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMade =
    "Made from the code by `FUSELINE_UPDATE_DOCS=1 ctest -R GeneratedReference`; a test compares "
    "it.\n";

// One cell of a Markdown table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
}

// A reader of TOML text: throws what a user would see.
using Reader = std::function<void(const std::string& text)>;

std::optional<InputProblem> problem_of(const Reader& read, const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.problem();
  }
  return std::nullopt;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(", ", at), list.size());
    out.push_back(list.substr(at, end - at));
    at = end + 2;
  }
  return out;
}

// A legal file whose keys are looked at one by one: lines before, the table's own lines (one key
// each), lines after.
struct LegalFile {
  std::string before{};
  std::vector<std::string> lines{};
  std::string after{};

  [[nodiscard]] std::string text_without(const std::string& key, const std::string& instead) const {
    std::string text = before;
    for (const std::string& line : lines) {
      if (!line.starts_with(key + " =")) text += line + "\n";
    }
    return text + instead + "\n" + after;
  }
};

// The known keys, in the reader's order.
std::vector<std::string> known_keys(const Reader& read, const LegalFile& example) {
  const auto problem = problem_of(read, example.text_without("zzz", "zzz = 1"));
  if (!problem || problem->allowed.empty()) {
    ADD_FAILURE() << "an unknown key is not refused with a list of known ones";
    return {};
  }
  return split(problem->allowed);
}

// A table of the keys: needed or not, what they may hold, what they mean.
std::string key_table(const Reader& read, const LegalFile& example, const Meanings& meanings,
                      const std::string& prefix = "") {
  EXPECT_FALSE(problem_of(read, example.text_without("zzz", ""))) << "the example is legal";
  std::string out = "| key | needed | what it may hold | meaning |\n|---|---|---|---|\n";
  for (const std::string& key : known_keys(read, example)) {
    const auto missing = problem_of(read, example.text_without(key, ""));
    // `nan` is of the wrong type or out of range everywhere.
    const auto wrong = problem_of(read, example.text_without(key, key + " = nan"));
    EXPECT_TRUE(wrong) << prefix << key << " takes anything";
    const auto meaning = meanings.find(prefix + key);
    EXPECT_NE(meaning, meanings.end()) << "reference_meanings.h says nothing of " << prefix << key;
    out += fmt::format("| `{}` | {} | {} | {} |\n", key, missing ? "yes" : "no",
                       wrong ? cell(wrong->allowed) : "",
                       meaning == meanings.end() ? "" : cell(meaning->second));
  }
  return out;
}

LegalFile shipped(const std::string& file) {
  LegalFile example;
  for (const std::string& line :
       lines_of(read_text(fs::path(FUSELINE_SOURCE_DIR) / "scenarios" / file))) {
    if (!line.empty() && line[0] != '#') example.lines.push_back(line);
  }
  return example;
}

std::string command_line_page() {
  std::string out = fmt::format(
      "# Command line\n\n{}\nExamples with their output: "
      "[docs/cli.md](../cli.md).\n\n```text\n{}```\n",
      kMade, cli({"--help"}).out);
  bool commands = false;
  for (const std::string& line : lines_of(cli({"--help"}).out)) {
    if (line == "commands:") {
      commands = true;
    } else if (line.empty()) {
      commands = false;
    } else if (commands) {
      const std::string name = line.substr(2, line.find(' ', 2) - 2);
      if (name == "gui") continue;  // the window's own program, which is not always built
      const CliRun run = cli({name, "--help"});
      EXPECT_EQ(run.status, 0) << name;
      std::string help = run.out;
      while (help.ends_with("\n\n")) help.pop_back();
      out += fmt::format("\n## {}\n\n```text\n{}```\n", name, help);
      if (name != "import") continue;
      for (const char* below : {"graph", "trace"})
        out += fmt::format("\n## import {}\n\n```text\n{}```\n", below,
                           cli({"import", below, "--help"}).out);
    }
  }
  return out;
}

// A value as the table shows it: inherited ones in brackets.
std::string shown(const ConstantOrigin& origin) {
  const bool own = origin.number.status != "inherited";
  return fmt::format(fmt::runtime(own ? "{:.4g}" : "({:.4g})"), origin.number.value);
}

std::string calibration_page() {
  std::vector<std::shared_ptr<const Architecture>> architectures;
  for (const std::string& name : architecture_names()) {
    architectures.push_back(load_architecture(name));
  }
  std::string out = fmt::format(
      "# Constants of the hierarchy model\n\n{}\nThey stand in `scenarios/architectures/*.toml`, "
      "each "
      "with unit, range, source, date and status. A GPU's file may replace each in a "
      "`[calibration]` section (`gemm.start_us = {{ value = 2.3, unit = \"us\", source = \"...\", "
      "date = \"...\", status = \"fitted\" }}`).\nWhere the values come from: "
      "[the hierarchy model](../handbook/03-hierarchy.md).\n\nIn brackets: inherited from another "
      "architecture, never fitted on this one.\n\n| name | unit | meaning | range |",
      kMade);
  for (const auto& a : architectures) out += fmt::format(" {} |", a->name);
  out += "\n|---|---|---|---|";
  for (std::size_t i = 0; i < architectures.size(); ++i) out += "---|";
  out += "\n";
  for (const ConstantInfo& c : constant_table()) {
    const ConstantOrigin& first = architectures.front()->origins.at(c.name);
    out += fmt::format("| `{}` | {} | {} | {:g} to {:g} |", c.name, c.unit, cell(c.meaning),
                       first.least, first.most);
    for (const auto& a : architectures) out += fmt::format(" {} |", shown(a->origins.at(c.name)));
    out += "\n";
  }
  out +=
      "\n## Architectures\n\n| name | what | inherits from | compute capabilities | features | "
      "library tiles | own tiles |\n|---|---|---|---|---|---|---|\n";
  for (const auto& a : architectures) {
    std::vector<std::string> features;
    for (const Feature feature : a->features) features.emplace_back(name_of(feature));
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", a->name, a->title, a->inherits,
                       fmt::join(a->compute_capabilities, ", "), fmt::join(features, ", "),
                       a->tiles.library.size(), a->tiles.own.size());
  }
  return out;
}

const Reader kGpuReader = [](const std::string& text) {
  static_cast<void>(read_gpu(TomlTable::parse(text, "gpu.toml")));
};

std::string gpus_page() {
  const LegalFile h200 = shipped("gpus/h200.toml");
  std::string out = fmt::format(
      "# GPU files\n\n{}\n`scenarios/gpus/*.toml`. How to add one: "
      "[extending](../handbook/07-extending.md#step-5-a-gpu).\n\n| key | needed | what it may hold "
      "| "
      "meaning |\n|---|---|---|---|\n",
      kMade);
  std::string numbers =
      "\n## Numbers\n\nEach is `{ value, unit, source, date, status }`, all needed; date is a "
      "year, a month or a day.\n\n| key | units | value in the first unit | meaning |\n"
      "|---|---|---|---|\n";
  for (const std::string& key : known_keys(kGpuReader, h200)) {
    const auto meaning = kGpuMeanings.find(key);
    EXPECT_NE(meaning, kGpuMeanings.end()) << key;
    const std::string means = meaning == kGpuMeanings.end() ? "" : meaning->second;
    const auto missing = problem_of(kGpuReader, h200.text_without(key, ""));
    const std::string in = "} in ";
    const std::size_t at = missing ? missing->allowed.find(in) : std::string::npos;
    if (at == std::string::npos) {
      const auto wrong = problem_of(kGpuReader, h200.text_without(key, key + " = nan"));
      out += fmt::format("| `{}` | {} | {} | {} |\n", key, missing ? "yes" : "no",
                         wrong ? wrong->allowed : "", means);
      continue;
    }
    const std::string units = missing->allowed.substr(at + in.size());
    const auto range = problem_of(
        kGpuReader,
        h200.text_without(key, fmt::format("{} = {{ value = 1e200, unit = \"{}\", source = \"-\", "
                                           "date = \"2024\", status = \"derived\" }}",
                                           key, split(units)[0])));
    EXPECT_TRUE(range) << key;
    numbers +=
        fmt::format("| `{}` | {} | {} | {} |\n", key, units, range ? range->allowed : "", means);
  }
  const auto status =
      problem_of(kGpuReader, h200.text_without("tdp",
                                               "tdp = { value = 700, unit = \"W\", source = \"-\", "
                                               "date = \"2024\", status = \"zzz\" }"));
  EXPECT_TRUE(status);
  return out + numbers + "\n`status`: " + (status ? status->allowed : "") + ".\n";
}

// TinyLlama in the form that names its block.
LegalFile of_a_block() {
  LegalFile example = shipped("models/tinyllama.toml");
  for (std::string& line : example.lines)
    if (line.starts_with("family")) line = "block = \"llama\"";
  std::erase_if(example.lines, [](const std::string& line) {
    return line.starts_with("norm =") || line.starts_with("activation");
  });
  return example;
}

std::string models_page() {
  const Reader read = [](const std::string& text) {
    static_cast<void>(read_model(TomlTable::parse(text, "model.toml")));
  };
  return fmt::format(
      "# Model files\n\n{}\n`scenarios/models/*.toml`; `--model` also takes a "
      "Hugging Face `config.json`.\n\n## A block by its name\n\nShown for the block llama; what "
      "else may stand there are the parameters of the model's blocks (`fuseline list blocks`). "
      "`[[blocks]]` in the place of `block` lists kinds of layers: see [any block, as text]"
      "(../handbook/08-blocks.md).\n\n{}\n## A family\n\nThe older form, for the blocks llama and "
      "gpt.\n\n{}",
      kMade, key_table(read, of_a_block(), kModelMeanings),
      key_table(read, shipped("models/tinyllama.toml"), kModelMeanings));
}

std::string scenarios_page() {
  const Reader read = [](const std::string& text) {
    static_cast<void>(load_scenario(temporary_file("s.toml", text)));
  };
  const LegalFile top{.lines = {"title = \"t\"", "model = \"llama2-7b\"", "gpu = \"h200\"",
                                "phase = \"forward\"", "batch = 1", "seq = 128",
                                "policies = [\"coda\"]"}};
  std::string base;
  for (const std::string& line : top.lines) base += line + "\n";
  const std::string custom_base = base + "[custom]\n";
  const std::string run = "[[runs]]\nname = \"NAME\"\npolicy = \"coda\"\n";
  const auto table = [&](const std::string& title, const LegalFile& example,
                         const std::string& prefix) {
    return fmt::format("\n## {}\n\n{}", title, key_table(read, example, kScenarioMeanings, prefix));
  };
  return fmt::format("# Scenario files\n\n{}\n`scenarios/*.toml`.\n\n{}", kMade,
                     key_table(read, top, kScenarioMeanings)) +
         table("[what_if]", {.before = base + "[what_if]\n"}, "what_if.") +
         table("[custom]", {.before = custom_base}, "custom.") +
         table("[gui]", {.before = base + "[gui]\n", .after = run}, "gui.") +
         table("[[runs]]",
               {.before = base + "[[runs]]\n", .lines = {"name = \"a\"", "policy = \"custom\""}},
               "runs.") +
         "\n`[runs.setup]` has the keys model, gpu, phase, batch, seq, context, dtype, fidelity "
         "and "
         "what_if of the top level.\n";
}

std::string claims_page() {
  const Reader read = [](const std::string& text) {
    static_cast<void>(audit::read_claim(TomlTable::parse(text, "claim.toml")));
  };
  const std::vector<std::string> lines = {"id = \"a\"", "statement = \"s\"", "kind = \"speed-up\""};
  const std::string source = "[source]\ntitle = \"t\"\ndate = \"2026\"\n";
  const std::string figure = "[figure]\nfactor = { value = 1.1, unit = \"x\" }\n";
  std::string base;
  for (const std::string& line : lines) base += line + "\n";
  std::string out = fmt::format(
      "# Claim files\n\n{}\n`scenarios/claims/*.toml`, judged by `fuseline "
      "audit`.\n\n| key | meaning |\n|---|---|\n",
      kMade);
  const auto rows = [&](const LegalFile& example, const std::string& prefix) {
    for (const std::string& key : known_keys(read, example)) {
      const auto meaning = kClaimMeanings.find(prefix + key);
      EXPECT_NE(meaning, kClaimMeanings.end()) << prefix << key;
      out += fmt::format("| `{}` | {} |\n", key,
                         meaning == kClaimMeanings.end() ? "" : meaning->second);
    }
  };
  rows({.lines = lines, .after = source + figure}, "");
  const auto kinds = problem_of(read, "id = \"a\"\nstatement = \"s\"\nkind = \"zzz\"\n" + source);
  EXPECT_TRUE(kinds);
  out += "\n## [source]\n\n| key | meaning |\n|---|---|\n";
  rows({.before = base + source, .after = figure}, "source.");
  out += "\n## [figure]\n\n| kind | keys |\n|---|---|\n";
  for (const std::string& kind : split(kinds ? kinds->allowed : "")) {
    const auto keys =
        problem_of(read, fmt::format("id = \"a\"\nstatement = \"s\"\nkind = \"{}\"\n{}[figure]\n"
                                     "zzz = 1\n",
                                     kind, source));
    const bool has_keys = keys && keys->field == "figure.zzz";
    out += fmt::format("| `{}` | {} |\n", kind, has_keys ? keys->allowed : "no figure");
  }
  out +=
      "\nA number is `{ value, unit }` or `{ least, most, unit }`.\n\n## [setting] and "
      "[try]\n\nOne value or a list.\n\n| key | meaning |\n|---|---|\n";
  rows({.before = base + source + figure + "[setting]\n"}, "setting.");
  return out;
}

std::string measurements_page() {
  std::string out = fmt::format(
      "# Measurement folders\n\n{}\n`scenarios/measurements/*/`; `fuseline measure` and "
      "`fuseline import` write them, `compare` reads them.\n",
      kMade);
  const auto rows = [&](const std::string& file, const std::vector<std::string>& names) {
    out += fmt::format("\n## {}\n\n| name | meaning |\n|---|---|\n", file);
    for (const std::string& name : names) {
      const auto meaning = kMeasurementMeanings.find(name);
      EXPECT_NE(meaning, kMeasurementMeanings.end()) << file << ": " << name;
      out += fmt::format("| `{}` | {} |\n", name,
                         meaning == kMeasurementMeanings.end() ? "" : meaning->second);
    }
  };
  for (const char* file : {"block.csv", "kernels.csv", "gemm.csv"}) {
    rows(file, measurement_columns(file));
    if (std::string_view(file) == "block.csv")
      out +=
          "\n`rivals.csv` has the same columns: other frameworks' blocks, timed in turns with "
          "these.\n";
  }
  const fs::path folder = fs::path(FUSELINE_SOURCE_DIR) / "scenarios/measurements/h200-fuseline";
  const Reader read = [&](const std::string& text) {
    temporary_file("block.csv", read_text(folder / "block.csv"));
    const fs::path meta = temporary_file("meta.toml", text);
    static_cast<void>(load_measurements(meta.parent_path().string()));
  };
  rows("meta.toml", known_keys(read, {}));
  return out;
}

std::string language_page() { return programs_page(kMade); }

struct Page {
  const char* file;
  const char* holds;
  std::string (*text)();
};

std::string contents_page();

const std::array kPages = {
    Page{"README.md", "", contents_page},
    Page{"command-line.md", "options of every command", command_line_page},
    Page{"scenarios.md", "keys of scenario files", scenarios_page},
    Page{"models.md", "keys of model files", models_page},
    Page{"gpus.md", "keys of GPU files, units and ranges", gpus_page},
    Page{"calibration.md", "constants of the hierarchy model", calibration_page},
    Page{"measurements.md", "columns of measurement files", measurements_page},
    Page{"claims.md", "keys of claim files", claims_page},
    Page{"programs.md", "the language of programs, and its rules", language_page},
};

std::string contents_page() {
  std::string out = fmt::format("# Reference\n\n{}\n| page | holds |\n|---|---|\n", kMade);
  for (const Page& page : kPages) {
    if (page.text != contents_page)
      out += fmt::format("| [{0}]({0}) | {1} |\n", page.file, page.holds);
  }
  // Made from the module's docstrings by tests/python/test_docs.py.
  out += "| [python.md](python.md) | functions, errors and results of the Python module |\n";
  // Made by tests/error/mistaken_programs_test.cpp.
  out += "| [program-mistakes.md](program-mistakes.md) | ten mistakes in programs, with mends |\n";
  return out + "\nExplanations are in the [handbook](../handbook/README.md).\n";
}

class GeneratedReference : public ::testing::TestWithParam<std::size_t> {};

TEST_P(GeneratedReference, SaysWhatTheCodeSays) {
  const Page& page = kPages[GetParam()];
  const fs::path path = fs::path(FUSELINE_SOURCE_DIR) / "docs/reference" / page.file;
  const std::string now = page.text();
  if (std::getenv("FUSELINE_UPDATE_DOCS") != nullptr) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << now;
  }
  const std::vector<std::string> shown = lines_of(read_text(path));
  const std::vector<std::string> lines = lines_of(now);
  for (std::size_t i = 0; i < std::max(shown.size(), lines.size()); ++i) {
    ASSERT_EQ(i < shown.size() ? shown[i] : "(no line)", i < lines.size() ? lines[i] : "(no line)")
        << "docs/reference/" << page.file << ":" << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, GeneratedReference, ::testing::Range(std::size_t{0}, kPages.size()),
                         [](const auto& p) {
                           std::string name = kPages[p.param].file;
                           name.resize(name.find('.'));
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace fuseline
