#include "tests/support/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "model/primitives/map.h"
#include "model/primitives/store_tile.h"
#include "model/programs/defined_map.h"
#include "model/programs/known_lines.h"
#include "model/programs/line_writer.h"
#include "model/programs/meanings.h"
#include "model/programs/problem.h"

namespace fuseline::test {

namespace {

constexpr int kFormulas = 60;     // fewer than the maps that a run of the program may define
constexpr double kLargest = 3e3;  // numbers of values: fp16 holds them, and so do their squares
constexpr int kTries = 60;        // of a line, until one is legal
constexpr std::size_t kMostPrograms = 6;
constexpr std::int64_t kWidest = 2000;  // columns

using Sample = std::array<double, 8>;  // a few numbers that the value may have

class Dice {
 public:
  explicit Dice(std::mt19937_64& random) : random_(random) {}
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(number(0, std::ssize(all) - 1))];
  }
  std::mt19937_64& source() { return random_; }

 private:
  std::mt19937_64& random_;
};

struct Let {
  std::string line;
  MapFn map;
};

// The same ones in every run: the program keeps each for as long as it runs.
const std::vector<Let>& lets() {
  static const std::vector<Let> all = [] {
    std::mt19937_64 random(7);
    std::vector<Let> made;
    while (made.size() < kFormulas) {
      std::vector<std::string> parameters = {"x"};
      if (random() % 3 == 0) parameters.emplace_back("z");
      const std::string text = random_formula(random, parameters, 3);
      const ValueFunction f = ValueFunction::of_text(text, parameters);
      bool tame = true;
      for (const double x : {-20.0, -3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 20.0})
        for (const double z : {-20.0, -1.0, 0.0, 1.0, 20.0}) {
          const double of[] = {x, z};
          tame = tame && std::fabs(f(std::span(of, parameters.size()))) < kLargest;
        }
      if (!tame) continue;
      const std::string name = fmt::format("f{}", made.size());
      made.push_back({fmt::format("let {}({}) = {}", name, fmt::join(parameters, ", "), text),
                      defined_map(name, f)});
    }
    return made;
  }();
  return all;
}

// What the programs of a file share.
struct FileState {
  Graph graph;
  std::map<std::int64_t, std::string> letters{};
  std::vector<TensorId> stored{};   // as a whole, by programs above
  std::vector<TensorId> waiting{};  // partials and activations that nothing has read yet
  std::set<TensorId> partials{};
  std::set<std::string> called{};  // by the names of their device functions
};

struct ProgramState {
  Program program;
  std::int64_t rows = 1, cols = 1;
  ValueShapes shapes{};
  std::map<Value, Sample> samples{};
  Value next = 1;
  std::vector<TensorId> made{};  // stores of this program
};

// Fills a line's places by chance.
class RandomLine final : public MainloopSyntax {
 public:
  RandomLine(Dice& dice, FileState& file, ProgramState& program)
      : dice_(dice), file_(file), program_(program), next_(program.next) {}

  std::optional<TensorId> first_operand{};  // what the line's first operand is to be
  [[nodiscard]] Value next_value() const { return next_; }
  [[nodiscard]] const std::vector<TensorId>& stored() const { return stored_; }

  void makes(std::span<Value* const> results) override {
    for (Value* v : results) *v = next_++;
  }
  void stores(std::string_view, Operand& to, bool* add) override {
    if (add != nullptr) *add = dice_.chance(0.03);
    if (dice_.chance(0.03) && !file_.graph.tensors().empty()) return operand(to);
    const bool twice = dice_.chance(0.03);
    const std::int64_t cols =
        dice_.chance(0.5) && !program_.shapes.empty()
            ? std::max<std::int64_t>(1, program_.shapes.rbegin()->second.width)
            : columns();
    to = file_.graph.whole(add_tensor(dice_.chance(0.85) ? program_.rows : 1,
                                      twice ? 2 * cols : cols,
                                      dice_.chance(0.5) ? Role::output : Role::activation));
    stored_.push_back(to.tensor);
    if (!twice) return;
    to.cols = cols;
    to.col_begin = dice_.chance(0.5) ? 0 : cols;
  }
  void word(std::string_view) override {}
  void open() override {}
  void close() override {}
  void value(Value& v) override {
    std::vector<Value> known;
    for (const auto& [name, shape] : program_.shapes) known.push_back(name);
    // What was made last is used most: chains are longer than bushes.
    v = known.empty() ? 0 : dice_.chance(0.5) ? known.back() : dice_.one_of(known);
  }
  void operand(Operand& o) override {
    if (first_operand) {
      o = file_.graph.whole(*std::exchange(first_operand, std::nullopt));
      return;
    }
    std::vector<TensorId> there = file_.stored;
    for (std::size_t i = 0; i < file_.graph.tensors().size(); ++i) {
      const TensorId id{static_cast<std::int32_t>(i)};
      const Role role = file_.graph.tensor(id).role;
      if (role == Role::input || role == Role::weight || role == Role::table) there.push_back(id);
      if (dice_.chance(0.01)) there.push_back(id);
    }
    if (!there.empty() && dice_.chance(0.3)) {
      o = file_.graph.whole(dice_.one_of(there));
      if (dice_.chance(0.2)) {
        o.cols = dice_.number(1, o.cols);
        o.col_begin = dice_.number(0, file_.graph.tensor(o.tensor).cols - o.cols);
      }
      if (dice_.chance(0.1)) {
        o.rows = dice_.number(1, o.rows);
        o.at.begin = dice_.number(0, file_.graph.tensor(o.tensor).rows - o.rows);
      }
      return;
    }
    static const std::vector<Role> roles = {Role::input, Role::weight, Role::table};
    o = file_.graph.whole(
        add_tensor(dice_.chance(0.7) ? program_.rows : 1, columns(), dice_.one_of(roles)));
  }
  void slice(Value& in, std::int64_t& begin, std::int64_t& count) override {
    value(in);
    const auto known = program_.shapes.find(in);
    const std::int64_t width = known == program_.shapes.end() ? 1 : known->second.width;
    begin = dice_.chance(0.5) ? 0 : dice_.number(0, width - 1);
    count = dice_.chance(0.5) ? std::max<std::int64_t>(1, width / 2) : dice_.number(1, width);
  }
  void pattern(std::string_view, std::vector<Value>& in, double* constant) override {
    for (Value& v : in) value(v);
    static const std::vector<double> constants = {0.5, 0.25, 2, 1, 1e-5, 0.0625, 1.5, -1};
    if (constant != nullptr) *constant = dice_.one_of(constants);
  }
  void more(std::vector<Operand>& operands) override {
    operands.resize(static_cast<std::size_t>(dice_.number(1, 2)));
    for (Operand& o : operands) operand(o);
  }
  void more(std::vector<Value>& values) override {
    values.resize(dice_.chance(0.2) ? 1 : 0);
    for (Value& v : values) value(v);
  }
  void number(std::string_view, std::int64_t& n, std::int64_t usual) override {
    n = usual;
    if (usual != kNeeded && dice_.chance(0.7)) return;
    const std::int64_t cols = columns();
    n = dice_.one_of<std::int64_t>({1, 2, 4, 8, 16, cols, std::max<std::int64_t>(1, cols / 2),
                                    program_.rows, dice_.number(1, 64)});
  }
  void real(std::string_view, double& x, double usual) override {
    x = dice_.chance(0.8) ? usual : 0.5;
  }
  void numbers(std::string_view, std::vector<std::int64_t>& all) override { all.clear(); }
  void flag(std::string_view, bool& on) override { on = dice_.chance(0.1); }
  void named(std::string_view, std::optional<Operand>& o) override {
    o.reset();
    if (dice_.chance(0.3)) operand(o.emplace());
  }
  void named(std::string_view, std::vector<Operand>& all) override { all.clear(); }
  void named(std::string_view, Value& v) override {
    v = -1;
    if (dice_.chance(0.3)) value(v);
  }
  void choice(std::string_view, int& which, std::span<const std::string_view> words) override {
    which = static_cast<int>(dice_.number(0, std::ssize(words) - 1));
  }
  void text(std::string_view, const std::string&,
            const std::function<void(const std::string&)>&) override {}
  void remark(const std::string&) override {}
  void transposed(bool& on) override { on = dice_.chance(0.2); }
  void times() override {}
  void space(std::int64_t& rows, std::int64_t& cols) override {
    rows = program_.rows;
    cols = program_.cols;
  }
  void named_value_of(Value& v, Operand& o) override {
    v = -1;
    operand(o);
  }
  void makes_some(Value& first, Value& second) override {
    second = -1;
    makes(first);
  }
  using Syntax::makes;
  using Syntax::number;

  TensorId add_tensor(std::int64_t rows, std::int64_t cols, Role role) {
    static const std::vector<Dtype> types = {Dtype::bf16, Dtype::bf16, Dtype::bf16, Dtype::fp16,
                                             Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::e4m3,
                                             Dtype::int8, Dtype::int4};
    Dtype type = dice_.one_of(types);
    if (size_of(type).bits() <= 8 && !dice_.chance(0.2)) type = Dtype::fp32;
    const auto letter = [&](std::int64_t size) {
      const auto known = file_.letters.find(size);
      return known == file_.letters.end() ? std::to_string(size) : known->second;
    };
    return file_.graph.add_tensor({.name = fmt::format("t{}", file_.graph.tensors().size()),
                                   .symbol = "[" + letter(rows) + ", " + letter(cols) + "]",
                                   .role = role,
                                   .dtype = type,
                                   .rows = rows,
                                   .cols = cols});
  }

 private:
  // A width that something of the program has.
  std::int64_t columns() {
    std::vector<std::int64_t> widths = {program_.cols,
                                        program_.cols,
                                        1,
                                        (program_.cols + partial_tile - 1) / partial_tile,
                                        std::max<std::int64_t>(1, program_.cols / 2),
                                        (program_.rows + partial_tile - 1) / partial_tile};
    for (const auto& [v, shape] : program_.shapes) widths.push_back(shape.width);
    return std::max<std::int64_t>(1, dice_.one_of(widths));
  }

  Dice& dice_;
  FileState& file_;
  ProgramState& program_;
  Value next_;
  std::vector<TensorId> stored_;
};

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
      const Let& let = dice_.one_of(lets());
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
    for (const Let& let : lets())
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

std::string random_formula(std::mt19937_64& random, const std::vector<std::string>& parameters,
                           int depth) {
  Dice dice(random);
  if (depth == 0 || dice.chance(0.15)) {
    if (dice.chance(0.3)) return dice.one_of<std::string>({"0.5", "2", "1", "0.1", "3"});
    return dice.one_of(parameters);
  }
  const auto inner = [&] { return random_formula(random, parameters, depth - 1); };
  const std::string a = inner();
  switch (dice.number(0, 6)) {
    case 0:
      return "(" + a + " + " + inner() + ")";
    case 1:
      return "(" + a + " - " + inner() + ")";
    case 2:
      return a + " * " + inner();
    case 3:
      return a + " / (1 + abs(" + inner() + "))";
    case 4:
      return "-(" + a + ")";
    default:
      break;
  }
  const std::string name = dice.one_of(value_function_names());
  // How many operands it takes is said by the parser alone.
  const std::string one = name + "(" + a + ")";
  try {
    (void)ValueFunction::of_text(one, parameters);
    return one;
  } catch (const InputError&) {
    return name + "(" + a + ", " + inner() + ")";
  }
}

}  // namespace fuseline::test
