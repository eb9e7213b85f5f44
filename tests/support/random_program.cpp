#include "tests/support/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "model/primitives/map.h"
#include "model/primitives/store_tile.h"
#include "model/programs/defined_map.h"
#include "model/programs/known_lines.h"
#include "model/programs/line_writer.h"
#include "model/programs/meanings.h"
#include "model/programs/problem.h"
#include "tests/support/random_formula.h"
#include "tests/support/random_line.h"

namespace fuseline::test {

namespace {

constexpr int kTries = 60;  // of a line, until one is legal
constexpr std::size_t kMostPrograms = 6;
constexpr std::int64_t kWidest = 2000;  // columns

class FileMaker {
 public:
  FileMaker(std::mt19937_64& random, const RandomProgramOptions& options)
      : dice_(random), options_(options), mistaken_(!dice_.chance(options.mistakes)) {
    for (const char* letter : {"M", "N", "K"})
      if (const std::int64_t size = letter[0] == 'N' ? width() : height();
          !file_.letters.contains(size))
        file_.letters[size] = letter;
  }

  std::string run() {
    first();
    while (count_ < kMostPrograms && !file_.waiting.empty()) {
      const TensorId read = file_.waiting.front();
      file_.waiting.erase(file_.waiting.begin());
      if (file_.partials.contains(read) || dice_.chance(0.7)) reader(read);
    }
    return text();
  }

 private:
  std::int64_t height() {
    return dice_.chance(0.1) ? dice_.number(120, 140) : dice_.number(1, options_.largest);
  }
  std::int64_t width() {
    const std::int64_t n = dice_.number(1, 8 * options_.largest);
    return dice_.chance(0.7) ? (n + 7) / 8 * 8 : n;
  }
  std::int64_t size_of_letter(const char* letter) {
    for (const auto& [size, name] : file_.letters)
      if (name == letter) return size;
    return height();
  }

  // What the mainloop reads.
  TensorId given(ProgramState& state, std::int64_t rows, std::int64_t cols, Role role) {
    RandomLine line(dice_, file_, state);
    const TensorId id = line.add_tensor(rows, cols, role);
    Dtype& type = file_.graph.tensor(id).dtype;
    if (type == Dtype::fp32 || size_of(type).bits() <= 8) type = Dtype::bf16;
    return id;
  }

  void first() {
    ProgramState state;
    state.rows = size_of_letter("M");
    state.cols = size_of_letter("N");
    if (dice_.chance(0.6)) {
      GemmMainloop m;
      m.M = state.rows;
      m.N = state.cols;
      m.K = size_of_letter("K");
      m.a_is_km = dice_.chance(0.15);
      m.b_is_kn = dice_.chance(0.15);
      m.interleaved = !m.b_is_kn && dice_.chance(0.3);
      m.a = file_.graph.whole(
          given(state, m.a_is_km ? m.K : m.M, m.a_is_km ? m.M : m.K, Role::input));
      m.b = file_.graph.whole(given(state, m.b_is_kn ? m.K : m.N, m.b_is_kn ? m.N : m.K,
                                    dice_.chance(0.9) ? Role::weight : Role::input));
      state.program.mainloop = m;
      state.shapes[0] = {Form::tile, m.N};
      state.samples[0] = {0.01, -0.3, 1, -1, 2, -4, 8, 15};
    } else {
      space(state, dice_.chance(0.5));
    }
    finish(state, {});
  }

  void space(ProgramState& state, bool rows) {
    if (rows)
      state.program.mainloop = RowMainloop{.rows = state.rows, .cols = state.cols};
    else
      state.program.mainloop = StreamMainloop{.rows = state.rows, .cols = state.cols};
  }

  void reader(TensorId read) {
    ProgramState state;
    const Tensor& t = file_.graph.tensor(read);
    state.rows = t.rows;
    state.cols = t.cols;
    const bool product = !file_.partials.contains(read) && dice_.chance(0.2) &&
                         (t.dtype == Dtype::bf16 || t.dtype == Dtype::fp16);
    if (product) {
      GemmMainloop m;
      m.M = t.rows;
      m.K = t.cols;
      m.N = state.cols = width();
      m.a = file_.graph.whole(read);
      m.b = file_.graph.whole(given(state, m.N, m.K, Role::weight));
      state.program.mainloop = m;
      state.shapes[0] = {Form::tile, m.N};
      state.samples[0] = {0.01, -0.3, 1, -1, 2, -4, 8, 15};
      return finish(state, {});
    }
    space(state, file_.partials.contains(read) || dice_.chance(0.4));
    finish(state, read);
  }

  void finish(ProgramState& state, std::optional<TensorId> read) {
    state.program.name = fmt::format("p{}", count_++);
    if (read)
      for (int i = 0; i < kTries && state.program.body.empty(); ++i) add(state, read, "load");
    const std::int64_t lines = dice_.number(2, 9);
    for (std::int64_t i = 0; i < lines; ++i)
      for (int n = 0; n < kTries && !add(state, {}, ""); ++n) {
      }
    for (int n = 0; n < 4 * kTries && state.made.empty(); ++n) add(state, {}, "store");
    if (!dice_.chance(0.02)) prune(state);
    for (const TensorId id : state.made) {
      file_.stored.push_back(id);
      if (file_.graph.tensor(id).role == Role::activation) file_.waiting.push_back(id);
    }
    programs_.push_back(std::move(state.program));
  }

  // Leaves out lines whose results nothing uses, until all are used; the product is stored.
  void prune(ProgramState& state) {
    std::vector<Primitive>& body = state.program.body;
    for (bool changed = true; changed;) {
      std::set<Value> used;
      for (const Primitive& p : body)
        for (const Value v : p.uses()) used.insert(v);
      changed = std::erase_if(body, [&](const Primitive& p) {
                  const std::vector<Value> made = p.defines();
                  return !made.empty() &&
                         std::ranges::none_of(made, [&](Value v) { return used.contains(v); });
                }) > 0;
      const bool product = std::holds_alternative<GemmMainloop>(state.program.mainloop);
      if (changed || !product || used.contains(0)) continue;
      RandomLine line(dice_, file_, state);
      const TensorId id = line.add_tensor(state.rows, state.cols, Role::output);
      body.emplace_back(StoreTile{.in = 0, .to = file_.graph.whole(id)});
    }
  }

  // A random line; false: it is refused, or its numbers would be too large.
  bool add(ProgramState& state, std::optional<TensorId> read, const std::string& only) {
    const Graph before = file_.graph;
    RandomLine line(dice_, file_, state);
    line.first_operand = read;
    const std::optional<Primitive> made = primitive(line, only);
    if (made && taken(state, *made, line)) return true;
    file_.graph = before;
    return false;
  }

  std::optional<Primitive> primitive(RandomLine& line, const std::string& only) {
    if (only.empty() && dice_.chance(0.1)) {
      const RandomLet& let = dice_.one_of(random_lets());
      const auto count = static_cast<std::size_t>(let.map->maths.value.operands);
      Map map{.out = 0, .fn = let.map, .in = std::vector<Value>(count)};
      line.makes(map.out);
      line.pattern("", map.in, nullptr);
      return map;
    }
    const LineForm& form =
        known_lines()[static_cast<std::size_t>(dice_.number(0, std::ssize(known_lines()) - 1))];
    if (only == "load" && (form.word != "load" || !form.keyword.empty())) return {};
    if (only == "store" && form.keyword.empty()) return {};
    const LineKind& kind = known_kinds()[form.kind];
    if (options_.with_meaning && !kind.meaning) return {};
    return kind.walk(form.filled, line);
  }

  // Roundings decide between near numbers, and what they decide is no error of a machine: choices
  // among values, and numbers that name places but are themselves results.
  bool decided_by_roundings(const ProgramState& state, const Primitive& made) const {
    if (made.is<ChooseExperts>() || made.is<ChooseExpertsGradient>()) return true;
    return std::ranges::any_of(made.accesses(), [&](const Access& a) {
      const Role role = file_.graph.tensor(a.operand.tensor).role;
      const bool computed = role == Role::activation || role == Role::output ||
                            std::ranges::count(state.made, a.operand.tensor) != 0;
      return a.names > 0 && computed;
    });
  }

  bool taken(ProgramState& state, const Primitive& made, const RandomLine& line) {
    if (decided_by_roundings(state, made)) return false;
    bool partial = false;
    for (const Access& a : made.accesses()) partial = partial || a.reach == Reach::partials;
    if (partial && dice_.chance(0.8))
      for (const TensorId id : line.stored()) {
        file_.graph.tensor(id).dtype = Dtype::fp32;
        file_.graph.tensor(id).role = Role::activation;
      }
    state.program.body.push_back(made);
    bool refused = false;
    for (const ProgramProblem& p : program_problems(file_.graph, state.program))
      refused = refused || p.rule != "stores-nothing";
    // Sizes that multiply would take minutes.
    bool wide = false;
    for (const Access& a : made.accesses()) wide = wide || a.operand.cols > kWidest;
    if (!refused)
      for (const ValueShape& s : made.results(state.shapes, 1)) wide = wide || s.width > kWidest;
    if (wide) {
      state.program.body.pop_back();
      return false;
    }
    const bool keep = !refused || (!mistaken_ && dice_.chance(0.02));
    std::map<Value, Sample> numbers;
    if (!keep || (!refused && !sampled(state, made, numbers))) {
      state.program.body.pop_back();
      return false;
    }
    if (refused) mistaken_ = true;
    if (const auto* map = made.as<Map>(); map != nullptr && definition_of(map->fn) != nullptr)
      file_.called.insert(map->fn->name.value);
    if (!refused) {
      const std::vector<Value> defined = made.defines();
      const std::vector<ValueShape> shapes = made.results(state.shapes, 1);
      for (std::size_t i = 0; i < defined.size(); ++i) state.shapes[defined[i]] = shapes[i];
      for (const auto& [v, s] : numbers) state.samples[v] = s;
    }
    state.next = line.next_value();
    for (const TensorId id : line.stored()) {
      state.made.push_back(id);
      if (partial) file_.partials.insert(id);
    }
    return true;
  }

  // A few numbers that the results may have; false: they are no numbers, or too large.
  bool sampled(const ProgramState& state, const Primitive& made, std::map<Value, Sample>& out) {
    const std::vector<Value> uses = made.uses();
    Sample of{0.01, -0.02, 0.5, -0.7, 1, -2, 3, -3};
    double largest = 0;
    if (const auto* map = made.as<Map>()) {
      const ValueFunction& f = meaning_of(map->fn);
      const Sample& a = state.samples.at(uses[0]);
      const Sample& b = state.samples.at(uses.back());
      for (std::size_t i = 0; i < of.size(); ++i) {
        const double values[] = {a[i], uses[0] == uses.back() ? a[i] : b[(3 * i + 1) % of.size()],
                                 map->constant};
        of[i] = f(values);
      }
    } else if (!uses.empty()) {
      const auto known = state.samples.find(uses[0]);
      if (known == state.samples.end()) return false;
      of = known->second;
      const auto width = static_cast<double>(state.shapes.at(uses[0]).width);
      std::int64_t columns = 1;
      for (const ValueShape& s : made.results(state.shapes, 1))
        columns = std::max(columns, s.width);
      const double terms =
          uses.size() == 1 ? std::max(1.0, width / static_cast<double>(columns)) : 1;
      if (made.accesses().empty())
        for (double& x : of) x *= terms;
      for (const Access& a : made.accesses())
        if (a.reach == Reach::partials)
          for (double& x : of) largest = std::max(largest, x * x * partial_tile);
    }
    for (const double x : of) {
      if (!std::isfinite(x)) return false;
      largest = std::max(largest, std::fabs(x));
    }
    for (const Value v : made.defines()) out[v] = of;
    return largest < kLargest;
  }

  std::string text() {
    std::string out = "fuse 1\n\n";
    for (const auto& [size, letter] : file_.letters)
      out += fmt::format("size {} = {}\n", letter, size);
    for (const RandomLet& let : random_lets())
      if (file_.called.contains(let.map->name.value)) out += let.line + "\n";
    for (const Tensor& t : file_.graph.tensors())
      out += fmt::format("{} {}{}{}\n", name_of(t.role), t.name, t.symbol,
                         t.dtype == Dtype::bf16 ? "" : std::string(", ") + name_of(t.dtype));
    for (const Program& p : programs_) {
      out += "\nprogram " + p.name + "\n";
      const ProgramNames names(file_.graph, p.names);
      LineWriter head(file_.graph, names);
      Value y = 0;
      Mainloop m = p.mainloop;
      if (auto* gemm = std::get_if<GemmMainloop>(&m)) gemm_syntax(*gemm, y, head);
      if (auto* stream = std::get_if<StreamMainloop>(&m)) {
        head.put("for each tile of ");
        stream_syntax(*stream, head);
      }
      if (auto* row = std::get_if<RowMainloop>(&m)) {
        head.put("for each row of ");
        row_syntax(*row, head);
      }
      out += "  " + head.take().code + "\n";
      for (const Primitive& primitive : p.body) {
        LineWriter line(file_.graph, names);
        (void)kind_of(primitive)->walk(primitive, line);
        out += "  " + line.take().code + "\n";
      }
    }
    return out;
  }

  Dice dice_;
  const RandomProgramOptions& options_;
  bool mistaken_;  // no further mistake is wanted
  FileState file_;
  std::vector<Program> programs_;
  std::size_t count_ = 0;
};

}  // namespace

std::string RandomPrograms::next() { return FileMaker(random_, options_).run(); }

}  // namespace fuseline::test
