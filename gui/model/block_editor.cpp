#include "gui/model/block_editor.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/output_file.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/config/model_files.h"

namespace fuseline::gui {

namespace {

namespace fs = std::filesystem;

constexpr const char* kBlockEnding = ".block";
constexpr std::size_t kLongestText = 1 << 20;  // bytes

// The message without its place: the editor shows that in the text.
BlockProblem problem_of(const InputError& error, const std::string& edited) {
  InputProblem p = error.problem();
  BlockProblem out{.line = p.line, .column = p.column, .text = {}, .file = {}};
  const bool elsewhere = !p.file.empty() && p.file != edited;
  if (elsewhere) out.file = p.file;
  p.line = p.column = 0;
  p.shown.clear();
  if (!elsewhere) p.file.clear();
  out.text = format_problem(p);
  if (elsewhere) out.line = out.column = 0;
  return out;
}

bool is_shipped(const std::string& path) {
  std::error_code none;
  const fs::path folder = fs::weakly_canonical(data_dir() / "blocks", none);
  return fs::weakly_canonical(fs::absolute(path), none).parent_path() == folder;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

BlockEditorText block_editor_text(const Document& document) {
  BlockEditorText out;
  const Setup& setup = document.setup;
  try {
    const auto source = original_text(setup.model, setup.change)->file().source;
    out.file = source->file;
    out.original = source->text;
  } catch (const InputError& error) {
    out.problem = problem_of(error, {});
    return out;
  }
  const fs::path file = out.file;
  out.name = is_shipped(out.file) ? file.stem().string() : file.filename().string();
  out.text = !document.draft.empty()     ? document.draft
             : setup.change.text.empty() ? out.original
                                         : setup.change.text;
  out.problem = with_text(setup, out.text).problem;
  return out;
}

CheckedText with_text(const Setup& setup, const std::string& text) {
  CheckedText out{.setup = setup};
  std::string file;
  try {
    const auto source = original_text(setup.model, setup.change)->file().source;
    file = source->file;
    out.setup.change.text = text == source->text ? std::string() : text;
    if (text.size() > kLongestText)
      throw InputError({.file = file, .message = "the text is longer than 1 MiB"});
    if (text.empty())
      throw InputError({.file = file, .message = "the text is empty", .line = 1, .column = 1});
    const PredictionCase c = resolve(out.setup);
    static_cast<void>(build_block(c.model, c.workload));
  } catch (const InputError& error) {
    out.setup = setup;
    out.problem = problem_of(error, file);
  }
  return out;
}

Setup with_block_of(Setup setup, const std::string& block) {
  setup.change = {.block = block};
  const auto fits = [](const Setup& s) {
    const PredictionCase c = resolve(s);
    static_cast<void>(build_block(c.model, c.workload));
  };
  try {
    fits(setup);
    return setup;
  } catch (const InputError& error) {
    if (setup.model.empty()) throw;
    Setup alone = setup;
    alone.model.clear();
    try {
      fits(alone);
      return alone;
    } catch (const InputError&) {
      throw InputError(error.problem());
    }
  }
}

void save_block_text(const std::string& text, const std::string& path) {
  if (fs::path(path).extension() != kBlockEnding)
    throw InputError({.file = path,
                      .message = "is no name of a block's file",
                      .allowed = "a name that ends in .block",
                      .nearest = fs::path(path).replace_extension(kBlockEnding).string()});
  if (is_shipped(path))
    throw InputError({.file = path,
                      .message = "is where the shipped blocks are, which every model uses",
                      .allowed = "a file in a folder of your own"});
  replace_file(path, text);
}

std::vector<WordSpan> words_of_line(std::string_view line) {
  std::vector<WordSpan> words;
  if (line.starts_with("fuseline.")) return {{0, line.size(), WordRole::comment}};  // the version
  bool before_colon = line.find(':') != std::string_view::npos;
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '#') {
      words.push_back({at, line.size() - at, WordRole::comment});
      break;
    }
    if (c == ':') before_colon = false;
    if (!is_word(c)) {
      ++at;
      continue;
    }
    std::size_t end = at;
    const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const auto belongs = [&](std::size_t i) {
      const bool in_number = number && (line[i] == '.' || (line[i] == '-' && line[i - 1] == 'e'));
      return is_word(line[i]) || in_number;
    };
    while (end < line.size() && belongs(end)) ++end;
    const std::string_view word = line.substr(at, end - at);
    const bool keyword = std::ranges::find(block_words(), word) != block_words().end();
    const bool called = end < line.size() && line[end] == '(';
    if (number) {
      words.push_back({at, end - at, WordRole::number});
    } else if (keyword) {
      words.push_back({at, end - at, WordRole::keyword});
      before_colon = false;
    } else if (called) {
      words.push_back({at, end - at, WordRole::function});
      before_colon = false;
    } else if (before_colon) {
      words.push_back({at, end - at, WordRole::label});
    }
    at = end;
  }
  return words;
}

}  // namespace fuseline::gui
