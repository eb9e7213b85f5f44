#include "model/programs/kernel_statements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "model/programs/file_words.h"
#include "model/programs/operand_reader.h"
#include "model/programs/own_plan.h"

namespace fuseline {

namespace {

class KernelStatements {
 public:
  explicit KernelStatements(FileReading& file)
      : file_(file), cursor_(file.cursor), out_(file.out) {}

  void kernel() {
    Kernel k;
    k.name = read_any_name(cursor_, "the name of a kernel");
    cursor_.need(":");
    const Position at = cursor_.here();
    const std::string kind = read_any_name(cursor_, "the kind of the kernel");
    const std::optional<KernelKind> found = words::kernel_kind(kind);
    if (!found) {
      std::vector<std::string> all;
      for (const KernelKind each : all_kernel_kinds()) all.emplace_back(name_of(each));
      refuse(at, "arguments",
             {.value = kind,
              .message = "there is no such kind of kernel",
              .allowed = fmt::format("{}", fmt::join(all, ", ")),
              .nearest = nearest_name(kind, all)});
    }
    k.kind = *found;
    cursor_.need(",");
    k.implementation = implementation();
    if (cursor_.take(",")) {
      if (!cursor_.take_name("in_pieces")) cursor_.expected("'in_pieces'");
      k.in_pieces = true;
    }
    cursor_.need_line_end();
    std::vector<ProgramPlaces> places;
    if (cursor_.kind() == TokenKind::indent) {
      cursor_.next();
      while (cursor_.kind() != TokenKind::dedent && cursor_.kind() != TokenKind::end)
        file_.guarded([&] { kernel_line(k, places); });
      if (cursor_.kind() == TokenKind::dedent) cursor_.next();
    }
    out_.plan.kernels.push_back(std::move(k));
    out_.places.push_back(std::move(places));
  }

  // A program alone is a kernel of its own.
  void own_program(Position at) {
    std::vector<ProgramPlaces> places;
    Kernel k;
    k.phases.push_back(program(at, places));
    k.name = k.phases.front().name;
    set_own_kind(k);
    out_.plan.kernels.push_back(std::move(k));
    out_.places.push_back(std::move(places));
  }

 private:
  [[noreturn]] void refuse(Position at, const char* rule, InputProblem problem) const {
    file_.refuse(at, rule, std::move(problem));
  }

  Implementation implementation() {
    const Position at = cursor_.here();
    const std::string word = read_any_name(cursor_, "how the kernel's code is made");
    const std::optional<Implementation> found = words::implementation(word);
    if (found) return *found;
    const std::vector<std::string> all = words::implementations();
    refuse(at, "arguments",
           {.value = word,
            .message = "kernels are not made so",
            .allowed = fmt::format("{}", fmt::join(all, ", ")),
            .nearest = nearest_name(word, all)});
  }

  void kernel_line(Kernel& k, std::vector<ProgramPlaces>& places) {
    const Position at = cursor_.here();
    if (cursor_.take_name("ops")) {
      cursor_.need("(");
      while (!cursor_.is(")")) {
        k.ops.push_back(file_.op_of(out_.plan.graph));
        if (!cursor_.take(",")) break;
      }
      cursor_.need(")");
      return cursor_.need_line_end();
    }
    if (cursor_.take_name("beside")) return launch(k);
    if (!cursor_.take_name("program")) cursor_.expected("ops, beside or program");
    k.phases.push_back(program(at, places));
  }

  Program program(Position at, std::vector<ProgramPlaces>& places) {
    const std::string name = read_any_name(cursor_, "the name of a program");
    cursor_.need_line_end();
    ProgramPlaces& place = places.emplace_back();
    place.head = at;
    if (cursor_.kind() != TokenKind::indent)
      refuse(at, "stores-nothing",
             {.value = name,
              .message = "the program has no lines",
              .allowed = "indented lines below it"});
    cursor_.next();
    ProgramReader reader(cursor_, out_.plan.graph, out_.sizes, out_.functions);
    Program p = reader.read(name, place, out_.diagnoses);
    if (cursor_.kind() == TokenKind::dedent) cursor_.next();
    return p;
  }

  void launch(Kernel& k) {
    FrameworkLaunch l{.name = read_any_name(cursor_, "a name in quotes"), .implementation = {}};
    cursor_.need(":");
    l.implementation = implementation();
    cursor_.need("(");
    while (!cursor_.is(")")) {
      LaunchAccess access;
      access.store = cursor_.is_name("store");
      if (!access.store && !cursor_.is_name("load")) cursor_.expected("'load' or 'store'");
      cursor_.next();
      if (cursor_.take_name("scratch")) {
        Scratch scratch;
        scratch.name = read_any_name(cursor_, "a name");
        cursor_.need("[");
        scratch.rows = out_.sizes.read(cursor_);
        cursor_.need(",");
        scratch.cols = out_.sizes.read(cursor_);
        cursor_.need("]");
        const std::optional<Dtype> type = words::dtype(read_any_name(cursor_, "a number format"));
        if (!type) cursor_.expected("a number format");
        scratch.dtype = *type;
        access.of = std::move(scratch);
      } else {
        access.of = read_operand(cursor_, out_.plan.graph, out_.sizes);
      }
      l.moved.push_back(std::move(access));
      if (!cursor_.take(",")) break;
    }
    cursor_.need(")");
    while (cursor_.take(",")) {
      const bool each = cursor_.is_name("each");
      if (!each && !cursor_.is_name("flops")) cursor_.expected("'each' or 'flops'");
      cursor_.next();
      cursor_.need("=");
      if (each) {
        l.each = out_.sizes.read(cursor_);
      } else {
        const std::string_view text = cursor_.token().text;
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc()) cursor_.expected("a whole number");
        cursor_.next();
        l.flops = Flops(value);
      }
    }
    cursor_.need_line_end();
    k.beside.push_back(std::move(l));
  }

  FileReading& file_;
  TokenCursor& cursor_;
  ProgramFile& out_;
};

}  // namespace

void read_kernel(FileReading& file) { KernelStatements(file).kernel(); }

void read_own_program(FileReading& file, Position at) { KernelStatements(file).own_program(at); }

}  // namespace fuseline
