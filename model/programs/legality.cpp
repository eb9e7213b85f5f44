#include "model/programs/legality.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "model/chain.h"
#include "model/programs/columns_check.h"
#include "model/programs/line_writer.h"
#include "model/programs/mends.h"
#include "model/programs/moved_by_lines.h"
#include "model/programs/problem.h"

namespace fuseline {

namespace {

std::size_t index_of(TensorId id) { return static_cast<std::size_t>(id.index); }

class Checker {
 public:
  explicit Checker(const ProgramFile& file)
      : file_(file), graph_(file.plan.graph), present_(graph_.tensors().size()) {}

  std::vector<Diagnosis> run() {
    found_ = file_.diagnoses;
    const bool whole = file_.readable();
    std::set<std::string> names;
    for (std::size_t k = 0; k < file_.plan.kernels.size(); ++k) {
      const Kernel& kernel = file_.plan.kernels[k];
      kept_.reset();
      if (kernel.implementation == Implementation::chained_products && whole &&
          !file_.places[k].empty()) {
        if (const std::string why = why_not_handed_over(graph_, kernel); !why.empty())
          add(file_.places[k].front().head, "mainloop", why,
              "two products of at most 8 rows, the second of what the first stores");
        else
          kept_ = handed_over(kernel);
      }
      for (std::size_t p = 0; p < kernel.phases.size() && p < file_.places[k].size(); ++p) {
        const ProgramPlaces& places = file_.places[k][p];
        if (p == 0 && !names.insert(kernel.name).second)
          add(places.head, "kernel-name", "another kernel is named " + kernel.name, "another name",
              "program " + name_text(kernel.name + "_2"));
        if (!whole && spoilt(k, p)) continue;
        of_operators_ = !kernel.ops.empty();
        program(kernel.phases[p], places);
      }
    }
    for (std::size_t i = 0; i < graph_.tensors().size() && i < file_.tensors.size(); ++i) {
      const Tensor& t = graph_.tensors()[i];
      if (size_of(t.dtype).bits() < 8 && t.cols % 2 != 0)
        add(file_.tensors[i], "number-format",
            fmt::format("{} is {}: two columns share a byte, and it has {}", t.name,
                        name_of(t.dtype), t.cols),
            "an even number of columns, or a format of 8 bits and more");
    }
    if (whole) {
      partials();
      outputs();
      operators();
    }
    sort_by_line(found_);
    return std::move(found_);
  }

 private:
  void add(Position at, const std::string& rule, const std::string& message,
           const std::string& allowed = {}, const std::string& mend = {}) {
    found_.push_back(diagnosis_at(file_, at, rule, message, allowed, mend));
  }

  [[nodiscard]] std::string line(Position at) const { return file_.source->line(at.line); }
  [[nodiscard]] std::string text(const Operand& o) const { return operand_text(graph_, o); }

  // How the partials that a line stores are joined.
  [[nodiscard]] std::string joins(Position at) const {
    return line(at).find("= max(") != std::string::npos ? "max" : "sum";
  }

  // Of what a program's own check found.
  std::string mend(const ProgramProblem& problem, const Program& p,
                   const ProgramPlaces& places) const {
    const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop);
    const std::vector<Primitive>& list = problem.in_prologue ? p.prologue : p.body;
    const bool of_line =
        problem.primitive >= 0 && static_cast<std::size_t>(problem.primitive) < list.size();
    const Primitive* primitive =
        of_line ? &list[static_cast<std::size_t>(problem.primitive)] : nullptr;
    const ProgramNames names(graph_, p.names);
    if (problem.rule == "mainloop" && gemm != nullptr)
      return exchanged_product(graph_, *gemm, names.name(0));
    if (problem.rule == "pair-across-tiles" && gemm != nullptr && !gemm->interleaved)
      return with_flag(line(places.mainloop), "pairs");
    if (problem.rule == "whole-row" && primitive != nullptr && !primitive->uses().empty()) {
      const Value v = primitive->uses().front();
      const auto* reduce = primitive->as<RowReduce>();
      if (reduce != nullptr && gemm != nullptr && v == 0)
        return partials_of(names.name(v), name_of(reduce->fn), gemm->M, gemm->N);
    }
    if (problem.rule == "stored-twice" && primitive != nullptr && !primitive->uses().empty())
      return other_tensor(graph_, primitive->accesses().front().operand,
                          names.name(primitive->uses().front()));
    if (problem.rule == "stores-nothing" && gemm != nullptr)
      for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
        const Tensor& t = graph_.tensors()[i];
        if (t.role == Role::output && t.rows == gemm->M && t.cols == gemm->N)
          return fmt::format("store {} = {}",
                             text(graph_.whole(TensorId{static_cast<std::int32_t>(i)})),
                             names.name(0));
      }
    return "";
  }

  // Whether a line of the program could not be read: what it would have said is then unknown.
  [[nodiscard]] bool spoilt(std::size_t kernel, std::size_t phase) const {
    const int begin = file_.places[kernel][phase].head.line;
    int end = 1 << 30;
    for (const auto& phases : file_.places)
      for (const ProgramPlaces& other : phases)
        if (other.head.line > begin) end = std::min(end, other.head.line);
    return std::ranges::any_of(file_.diagnoses, [&](const Diagnosis& d) {
      return d.problem.line < begin || (d.problem.line >= begin && d.problem.line < end);
    });
  }

  void program(const Program& p, const ProgramPlaces& places) {
    const std::string lead = p.name + ": ";
    std::vector<ProgramProblem> problems = program_problems(graph_, p);
    if (problems.empty()) problems = column_problems(graph_, p);
    for (const ProgramProblem& problem : problems) {
      const std::string text =
          problem.text.starts_with(lead) ? problem.text.substr(lead.size()) : problem.text;
      add(problem.rule == "stores-nothing"
              ? places.head
              : place_of(places, problem.in_prologue, problem.primitive),
          problem.rule, named(text, p), {}, mend(problem, p, places));
    }
    product_ = std::holds_alternative<GemmMainloop>(p.mainloop);
    const std::vector<MovedByLine> moved = moved_by_lines(p, places);
    for (const MovedByLine& m : moved) half_bytes(m);
    for (const MovedByLine& m : moved)
      if (m.store)
        store(m, moved);
      else
        load(m, moved);
    for (const MovedByLine& m : moved) {
      if (m.store) present_[index_of(m.operand.tensor)].push_back(m.operand);
      if (m.store && m.reach == Reach::partials) partial_at_.emplace(m.operand.tensor, m.at);
    }
    for (const MovedByLine& m : moved)
      if (!m.store) readers_[m.operand.tensor].insert(&p);
    layouts(p, places);
  }

  // "value 3" -> the name that the text gives it.
  static std::string named(const std::string& text, const Program& p) {
    const std::size_t at = text.find("value ");
    if (at == std::string::npos) return text;
    std::size_t end = at + 6;
    std::size_t value = 0;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0)
      value = value * 10 + static_cast<std::size_t>(text[end++] - '0');
    if (end == at + 6 || value >= p.names.size() || p.names[value].empty()) return text;
    return text.substr(0, at) + p.names[value] + text.substr(end);
  }

  [[nodiscard]] bool on_chip(TensorId id) const {
    return index_of(id) < file_.plan.homes.size() &&
           file_.plan.homes[index_of(id)] == Home::on_chip;
  }

  // Two numbers of four bits share a byte, which one thread writes.
  void half_bytes(const MovedByLine& m) {
    const Tensor& t = graph_.tensor(m.operand.tensor);
    if (size_of(t.dtype).bits() >= 8) return;
    const bool of_part = m.part.group > 0 && (m.part.begin % 2 != 0 || m.part.count % 2 != 0 ||
                                              m.part.group % 2 != 0 || m.part.step != 1);
    if (m.operand.col_begin % 2 == 0 && m.operand.cols % 2 == 0 && !of_part &&
        m.reach != Reach::row_numbers)
      return;
    add(m.at, "number-format",
        fmt::format("{} is {}: two columns share a byte, and half of one is moved", t.name,
                    name_of(t.dtype)),
        "an even number of columns from an even one on, or a format of 8 bits and more");
  }

  void load(const MovedByLine& m, const std::vector<MovedByLine>& all) {
    const Tensor& t = graph_.tensor(m.operand.tensor);
    if (on_chip(m.operand.tensor) && !(kept_ && kept_->tensor == m.operand.tensor))
      return add(m.at, "on-chip", t.name + " stays on chip, and is gone when its kernel ends",
                 "a tensor in memory", in_memory_line(m.operand.tensor));
    for (const MovedByLine& other : all)
      if (other.store && other.reach == Reach::partials && other.operand.tensor == m.operand.tensor)
        return add(m.at, "unfinished-partial",
                   fmt::format("{} holds partials that this program makes: those of other thread "
                               "blocks may not be there",
                               t.name),
                   "a program of its own that finishes them, behind this one",
                   finisher_of(graph_, m.operand.tensor, joins(other.at)));
    const bool made = t.role == Role::activation || t.role == Role::output;
    if (made && !in_memory(m.operand))
      add(m.at, "read-before-stored",
          fmt::format("no program above stores {}{}", t.name,
                      present_[index_of(m.operand.tensor)].empty() ? "" : ", or not all of it"),
          "an input, a weight, a table, a cache, or what a program above stores", stored_below(m));
  }

  // The declaration of a tensor that stays on chip, without that.
  [[nodiscard]] std::string in_memory_line(TensorId id) const {
    if (index_of(id) >= file_.tensors.size()) return "";
    return without_flag(line(file_.tensors[index_of(id)]), "on_chip");
  }

  // Where a program below stores what is read, it has to stand above.
  [[nodiscard]] std::string stored_below(const MovedByLine& m) const {
    for (std::size_t k = 0; k < file_.plan.kernels.size(); ++k)
      for (std::size_t p = 0; p < file_.places[k].size(); ++p) {
        const ProgramPlaces& places = file_.places[k][p];
        const Program& program = file_.plan.kernels[k].phases[p];
        if (places.head.line > m.at.line &&
            std::ranges::any_of(stores(program),
                                [&](const Operand& o) { return overlap(o, m.operand); }))
          return fmt::format("program {} of line {} above this program", program.name,
                             places.head.line);
      }
    return present_[index_of(m.operand.tensor)].empty() &&
                   graph_.tensor(m.operand.tensor).role == Role::activation
               ? declaration(graph_.tensor(m.operand.tensor), Role::input)
               : "";
  }

  // The value of a line "store t[...] = v", as it is written.
  [[nodiscard]] std::string value_of(Position at) const {
    const std::string stored = code_of_line(line(at));
    const std::size_t sign = stored.rfind("= ");
    return sign == std::string::npos ? "" : stored.substr(sign + 2);
  }

  void store(const MovedByLine& m, const std::vector<MovedByLine>& all) {
    const Tensor& t = graph_.tensor(m.operand.tensor);
    if (on_chip(m.operand.tensor) && !(kept_ && kept_->tensor == m.operand.tensor))
      add(m.at, "on-chip", t.name + " stays on chip: it has no place in memory",
          "a tensor in memory", in_memory_line(m.operand.tensor));
    if (t.role == Role::input || t.role == Role::weight || t.role == Role::table)
      return add(m.at, "alias",
                 fmt::format("{} is {} {}: a store would change what the caller holds", t.name,
                             t.role == Role::input ? "an" : "a", name_of(t.role)),
                 "an output, an activation or a cache",
                 other_tensor(graph_, m.operand, value_of(m.at)));
    for (const MovedByLine& other : all) {
      if (other.store || !overlap(other.operand, m.operand)) continue;
      const bool same_tile =
          other.reach == Reach::tile && m.reach == Reach::tile && other.operand == m.operand;
      // Attention appends to a cache whose old rows it reads.
      if (same_tile || (t.role == Role::cache && !product_)) continue;
      if (other.reach == Reach::partials && m.reach == Reach::partials) continue;
      if (m.reach == Reach::partials) continue;  // said of the load
      return add(m.at, "in-place",
                 fmt::format("line {} reads {} for other tiles too, and they run in any order",
                             other.at.line, t.name),
                 "another tensor, or a load of the same tile",
                 other_tensor(graph_, m.operand, value_of(m.at)));
    }
  }

  // Whether the stores so far cover all elements.
  [[nodiscard]] bool in_memory(const Operand& wanted) const {
    std::vector<Operand> parts = present_[index_of(wanted.tensor)];
    std::ranges::sort(parts, {}, &Operand::col_begin);
    const auto covered = [&](const Operand& rows) {
      std::int64_t reached = wanted.col_begin;
      for (const Operand& part : parts) {
        Operand own = rows;
        own.col_begin = part.col_begin;
        own.cols = part.cols;
        if (part.col_begin <= reached && covers(part, own))
          reached = std::max(reached, part.col_begin + part.cols);
      }
      return reached >= wanted.col_begin + wanted.cols;
    };
    if (covered(wanted)) return true;
    if (parts.empty()) return false;
    for (std::int64_t r = 0; r < wanted.rows; ++r) {
      Operand row = wanted;
      row.rows = 1;
      row.at = {wanted.tensor_row(r)};
      if (!covered(row)) return false;
    }
    return true;
  }

  // A weight whose rows are interleaved is so for all programs that multiply by it as it is.
  void layouts(const Program& p, const ProgramPlaces& places) {
    const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop);
    if (gemm == nullptr || gemm->b_is_kn) return;
    const auto [at, first] =
        weights_.emplace(gemm->b.tensor, std::pair(gemm->interleaved, places.mainloop.line));
    // A plan's operators say which columns make pairs: its products without pairs may be in either
    // order.
    if (!first && !of_operators_ && at->second.first != gemm->interleaved && gemm->b.cols > 0)
      add(places.mainloop, "two-layouts",
          fmt::format("{} is {} here and {} in line {}", graph_.tensor(gemm->b.tensor).name,
                      gemm->interleaved ? "interleaved in pairs" : "in its usual order",
                      gemm->interleaved ? "in its usual order" : "interleaved in pairs",
                      at->second.second),
          "pairs in both programs, or in none",
          gemm->interleaved ? without_flag(line(places.mainloop), "pairs")
                            : with_flag(line(places.mainloop), "pairs"));
  }

  void partials() {
    for (const auto& [id, at] : partial_at_) {
      const Tensor& t = graph_.tensor(id);
      if (t.role != Role::activation) continue;
      const auto readers = readers_.find(id);
      const std::size_t count = readers == readers_.end() ? 0 : readers->second.size();
      if (count == 0)
        add(at, "no-finisher",
            fmt::format("no program below finishes the partials {}: they are one number for each "
                        "row and tile, not for each row",
                        t.name),
            fmt::format("a program that loads {} for each row and sums its columns", t.name),
            finisher_of(graph_, id, joins(at)));
      if (count > 1)
        add(at, "several-finishers", fmt::format("{} programs read the partials {}", count, t.name),
            "one finisher, whose result the others read");
    }
  }

  void outputs() {
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      const TensorId id{static_cast<std::int32_t>(i)};
      if (graph_.tensor(id).role != Role::output || in_memory(graph_.whole(id))) continue;
      add(i < file_.tensors.size() ? file_.tensors[i] : Position{1, 1}, "output-not-stored",
          fmt::format("no program stores {}{}", graph_.tensor(id).name,
                      present_[i].empty() ? "" : " as a whole"),
          "a store of every element",
          "store " + text(graph_.whole(id)) + " = a value of this shape");
    }
  }

  void operators() {
    std::vector<int> count(graph_.ops().size());
    for (const Kernel& k : file_.plan.kernels)
      for (const OpId id : k.ops) ++count[static_cast<std::size_t>(id.index)];
    for (std::size_t i = 0; i < count.size(); ++i)
      if (count[i] != 1)
        add(i < file_.operators.size() ? file_.operators[i] : Position{1, 1}, "operators",
            fmt::format("operator {} is in {} kernels", graph_.ops()[i].name, count[i]),
            "one kernel, in whose line \"ops\" it stands");
  }

  const ProgramFile& file_;
  const Graph& graph_;
  std::vector<Diagnosis> found_;
  bool product_ = false;         // the program that is looked at has a product as its mainloop
  std::optional<Operand> kept_;  // on chip, between the kernel's two programs
  std::vector<std::vector<Operand>> present_;  // by tensor: what was stored so far
  std::map<TensorId, std::set<const Program*>> readers_;
  std::map<TensorId, Position> partial_at_;
  std::map<TensorId, std::pair<bool, int>> weights_;
  bool of_operators_ = false;  // the program that is looked at
};

}  // namespace

Diagnosis diagnosis_at(const ProgramFile& file, Position at, const std::string& rule,
                       const std::string& message, const std::string& allowed,
                       const std::string& mend) {
  return {.rule = rule,
          .problem = {.file = file.source->file,
                      .message = message,
                      .allowed = allowed,
                      .line = at.line,
                      .column = at.column,
                      .shown = file.source->line(at.line)},
          .mend = mend};
}

Position place_of(const ProgramPlaces& places, bool in_prologue, int primitive) {
  const std::vector<Position>& list = in_prologue ? places.prologue : places.body;
  if (primitive < 0 || static_cast<std::size_t>(primitive) >= list.size()) return places.mainloop;
  return list[static_cast<std::size_t>(primitive)];
}

void sort_by_line(std::vector<Diagnosis>& diagnoses) {
  std::ranges::stable_sort(diagnoses, [](const Diagnosis& a, const Diagnosis& b) {
    return std::pair(a.problem.line, a.problem.column) <
           std::pair(b.problem.line, b.problem.column);
  });
}

std::vector<Diagnosis> check_programs(const ProgramFile& file) { return Checker(file).run(); }

}  // namespace fuseline
