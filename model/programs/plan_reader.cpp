// Reads a text of programs, statement by statement.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "model/programs/file_reading.h"
#include "model/programs/graph_statements.h"
#include "model/programs/kernel_statements.h"
#include "model/programs/operand_reader.h"

namespace fuseline {

namespace {

constexpr std::uintmax_t kLargestFile = 16 << 20;

const std::vector<std::string>& statement_words() {
  static const std::vector<std::string> all = {
      "plan",    "target", "hash",        "rewrites", "size",       "let", "input",
      "weight",  "table",  "cache",       "output",   "activation", "op",  "relate",
      "forward", "block",  "preparation", "kernel",   "program",    "edge"};
  return all;
}

class FileReader {
 public:
  explicit FileReader(std::shared_ptr<const SourceText> source) : file_(std::move(source)) {}

  ProgramFile run() {
    file_.guarded([&] { version(); });
    while (cursor_.kind() != TokenKind::end) file_.guarded([&] { statement(); });
    finish();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(Position at, const char* rule, InputProblem problem,
                           std::string mend = {}) const {
    file_.refuse(at, rule, std::move(problem), std::move(mend));
  }

  void version() {
    const Position at = cursor_.here();
    if (!cursor_.take_name("fuse") || cursor_.kind() != TokenKind::number)
      refuse(at, "version",
             {.message = "the first line names no version",
              .allowed = fmt::format("fuse {}", kProgramVersion)},
             fmt::format("fuse {}", kProgramVersion));
    const std::string version(cursor_.next().text);
    if (version != std::to_string(kProgramVersion))
      refuse(at, "version",
             {.value = version,
              .message = "this version of the language is unknown",
              .allowed = std::to_string(kProgramVersion)},
             fmt::format("fuse {}", kProgramVersion));
    cursor_.need_line_end();
  }

  void statement() {
    if (cursor_.kind() == TokenKind::indent || cursor_.kind() == TokenKind::dedent) {
      if (cursor_.kind() == TokenKind::dedent) {
        cursor_.next();
        return;
      }
      cursor_.fail(cursor_.here(), {.message = "a line further in", .allowed = "column 1"});
    }
    const Position at = cursor_.here();
    const std::string word =
        cursor_.kind() == TokenKind::name ? std::string(cursor_.token().text) : std::string();
    if (read_graph_statement(file_, word)) return;
    if (!word.empty()) cursor_.next();
    if (word == "plan") return one_name(out_.plan.policy);
    if (word == "target") return one_name(out_.target);
    if (word == "hash") return hash(at);
    if (word == "rewrites") return rewrites();
    if (word == "size") return size();
    if (word == "let") return let();
    if (word == "kernel") return read_kernel(file_);
    if (word == "program") return read_own_program(file_, at);
    if (word == "edge") return edge();
    if (word == "block") return read_block(file_);
    if (word == "preparation") return read_preparation(file_);
    refuse(at, "statement",
           {.value = word.empty() ? std::string(cursor_.token().text) : word,
            .message = "no statement begins so",
            .allowed = fmt::format("{}", fmt::join(statement_words(), ", ")),
            .nearest = nearest_name(word, statement_words())});
  }

  void one_name(std::string& to) {
    to = read_any_name(cursor_, "a name");
    cursor_.need_line_end();
  }

  void rewrites() {
    do out_.plan.rewrites.push_back(read_any_name(cursor_, "the name of a rewrite"));
    while (cursor_.take(","));
    cursor_.need_line_end();
  }

  // Sixteen digits, which the words of our languages may be several of.
  void hash(Position at) {
    std::string text;
    while (cursor_.kind() == TokenKind::name || cursor_.kind() == TokenKind::number)
      text += cursor_.next().text;
    const std::string own = hash_of_text(out_.source->text);
    if (text != own)
      refuse(at, "hash",
             {.value = text,
              .message = "the text was changed after it was written",
              .allowed = own + ", or no line \"hash\""},
             "hash " + own);
    cursor_.need_line_end();
  }

  void size() {
    do {
      const std::string letter = read_any_name(cursor_, "a letter");
      cursor_.need("=");
      out_.sizes.set(letter, out_.sizes.read(cursor_));
    } while (cursor_.take(","));
    cursor_.need_line_end();
  }

  void let() {
    const Position at = cursor_.here();
    const std::string name = cursor_.need_name("the name of a function");
    std::vector<std::string> parameters;
    cursor_.need("(");
    do parameters.push_back(cursor_.need_name("a parameter"));
    while (cursor_.take(","));
    cursor_.need(")");
    cursor_.need("=");
    std::vector<NamedFunction> known;
    for (const DefinedFunction& f : out_.functions) {
      if (f.name == name)
        refuse(at, "defined-twice", {.value = name, .message = "is a function already"});
      known.push_back({f.name, f.function.parameters().size(), f.function.body()});
    }
    if (parameters.size() > 2)
      refuse(at, "arguments",
             {.value = name, .message = "has more than two parameters", .allowed = "one or two"});
    ValueFunction f = ValueFunction::parse(cursor_, parameters, known);
    cursor_.need_line_end();
    out_.functions.push_back({name, std::move(f)});
  }

  void edge() {
    FusionNote note;
    note.edge.from = file_.op_of(out_.plan.graph);
    cursor_.need("->");
    note.edge.to = file_.op_of(out_.plan.graph);
    if (!cursor_.take_name("of")) cursor_.expected("'of'");
    note.edge.tensor = file_.tensor_of(out_.plan.graph, "a tensor");
    cursor_.need(",");
    note.fused = cursor_.is_name("fused");
    if (!note.fused && !cursor_.is_name("apart")) cursor_.expected("'fused' or 'apart'");
    cursor_.next();
    cursor_.need(",");
    if (cursor_.kind() != TokenKind::quoted) cursor_.expected("the reason in quotes");
    note.reason = cursor_.next().text;
    cursor_.need_line_end();
    out_.plan.notes.push_back(std::move(note));
  }

  void finish() {
    out_.has_operators = !out_.plan.graph.ops().empty();
    if (out_.plan.policy.empty()) out_.plan.policy = "file";
    if (out_.plan.kernels.empty() && out_.diagnoses.empty()) {
      InputProblem problem{.file = out_.source->file,
                           .message = "the file holds no program",
                           .allowed = "a line \"program NAME\", and its lines below, indented",
                           .line = 1,
                           .column = 1,
                           .shown = out_.source->line(1)};
      out_.diagnoses.push_back({.rule = "statement", .problem = std::move(problem)});
    }
  }

  FileReading file_;
  TokenCursor& cursor_ = file_.cursor;
  ProgramFile& out_ = file_.out;
};

}  // namespace

ProgramFile read_program_text(const std::string& text, const std::string& file) {
  auto source = std::make_shared<const SourceText>(SourceText{file, text});
  try {
    return FileReader(source).run();
  } catch (const InputError& e) {
    ProgramFile out;
    out.source = source;
    out.diagnoses.push_back(diagnosis_of(e));
    return out;
  }
}

ProgramFile read_program_file(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || !std::filesystem::is_regular_file(path))
    throw InputError({.file = path,
                      .message = "there is no such file",
                      .allowed = "a text of programs, *.fuse"});
  if (size > kLargestFile)
    throw InputError(
        {.file = path, .message = "the file is too large", .allowed = "at most 16 MiB"});
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return read_program_text(text.str(), path);
}

}  // namespace fuseline
