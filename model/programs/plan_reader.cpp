// Reads a text of programs, statement by statement.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "model/programs/attributes_syntax.h"
#include "model/programs/file_words.h"
#include "model/programs/program_file.h"
#include "model/programs/program_reader.h"

namespace fuseline {

namespace {

constexpr std::string_view kSigns[] = {"+=", "·", "@", "ᵀ", "'", "⌈", "⌉", "|"};
constexpr std::uintmax_t kLargestFile = 16 << 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 44;

const std::vector<std::string>& statement_words() {
  static const std::vector<std::string> all = {
      "plan",    "target", "hash",        "rewrites", "size",       "let", "input",
      "weight",  "table",  "cache",       "output",   "activation", "op",  "relate",
      "forward", "block",  "preparation", "kernel",   "program",    "edge"};
  return all;
}

class FileReader {
 public:
  explicit FileReader(std::shared_ptr<const SourceText> source) : cursor_(source, {}, kSigns) {
    out_.source = std::move(source);
  }

  ProgramFile run() {
    guarded([&] { version(); });
    while (cursor_.kind() != TokenKind::end) guarded([&] { statement(); });
    finish();
    return std::move(out_);
  }

 private:
  template <class F>
  void guarded(F f) {
    try {
      f();
    } catch (const InputError& e) {
      Diagnosis d = diagnosis_of(e);
      if (!d.rule.empty()) out_.diagnoses.push_back(std::move(d));
      skip_statement(cursor_);
    }
  }

  [[noreturn]] void refuse(Position at, const char* rule, InputProblem problem,
                           std::string mend = {}) const {
    refuse_at(*out_.source, at, rule, std::move(problem), std::move(mend));
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
    if (words::role(word)) return tensor(out_.plan.graph, &out_.plan.homes);
    if (word == "op") return op(out_.plan.graph, &out_.operators);
    if (word == "relate") return relate(out_.plan.graph);
    if (word == "forward") return forward(out_.plan.graph);
    if (!word.empty()) cursor_.next();
    if (word == "plan") return one_name(out_.plan.policy);
    if (word == "target") return one_name(out_.target);
    if (word == "hash") return hash(at);
    if (word == "rewrites") return rewrites();
    if (word == "size") return size();
    if (word == "let") return let();
    if (word == "kernel") return kernel(at);
    if (word == "program") return own_program(at);
    if (word == "edge") return edge();
    if (word == "block") return section(out_.plan.block, [] { return false; });
    if (word == "preparation") {
      Preparation& p = out_.plan.preparation;
      return section(p.graph, [&] { return interleaving(p); });
    }
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

  // Tensors and operators -----------------------------------------------------------------------

  void tensor(Graph& graph, std::vector<Home>* homes) {
    Tensor t;
    const Position at = cursor_.here();
    t.role = *words::role(std::string(cursor_.next().text));
    const Position name_at = cursor_.here();
    t.name = read_any_name(cursor_, "the name of a tensor");
    if (graph.find_tensor(t.name))
      refuse(name_at, "defined-twice",
             {.value = t.name, .message = "is declared already", .allowed = "another name"});
    cursor_.need("[");
    const std::size_t begin = cursor_.place();
    std::string symbol = "[";
    int commas = 0;
    while (!cursor_.is("]") && cursor_.kind() != TokenKind::line_end) {
      commas += cursor_.is(",") ? 1 : 0;
      if (commas > 1) cursor_.expected("']': a tensor has rows and columns");
      symbol += cursor_.next().text;
    }
    cursor_.need("]");
    symbol += "]";
    const std::size_t behind = cursor_.place();
    const bool given = cursor_.take("=");
    if (given)
      cursor_.need("[");
    else
      cursor_.go_to(begin);
    const Position shape_at = cursor_.here();
    t.rows = out_.sizes.read(cursor_);
    cursor_.need(",");
    t.cols = out_.sizes.read(cursor_);
    cursor_.need("]");
    if (!given) cursor_.go_to(behind);
    if (t.rows < 1 || t.cols < 1 || t.rows > kMostElements / t.cols)
      refuse(shape_at, "shape",
             {.message = fmt::format("a tensor of [{}, {}]", t.rows, t.cols),
              .allowed = "sizes from 1, and at most 2^44 elements"});
    const bool letters = std::ranges::any_of(
        symbol, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    if (given || letters) t.symbol = spaced(symbol);
    bool on_chip = false;
    while (cursor_.take(",")) tensor_argument(t, on_chip);
    cursor_.need_line_end();
    graph.add_tensor(std::move(t));
    if (homes == nullptr) return;
    homes->push_back(on_chip ? Home::on_chip : Home::hbm);
    out_.tensors.push_back(at);
  }

  // "[M,3D]" -> "[M, 3D]", as symbols are written elsewhere.
  static std::string spaced(const std::string& symbol) {
    const std::size_t comma = symbol.find(',');
    if (comma == std::string::npos) return symbol;
    return symbol.substr(0, comma + 1) + " " + symbol.substr(comma + 1);
  }

  void tensor_argument(Tensor& t, bool& on_chip) {
    const Position at = cursor_.here();
    const std::string word = read_any_name(cursor_, "a number format, outer, next or on_chip");
    if (word == "on_chip") {
      on_chip = true;
    } else if (word == "outer") {
      cursor_.need("=");
      cursor_.need("[");
      do t.outer.push_back(out_.sizes.read(cursor_));
      while (cursor_.take(","));
      cursor_.need("]");
    } else if (word == "next") {
      cursor_.need("=");
      t.of_next_layer = read_any_name(cursor_, "a weight's name");
    } else if (const std::optional<Dtype> type = words::dtype(word)) {
      t.dtype = *type;
    } else {
      std::vector<std::string> all = words::dtypes();
      all.insert(all.end(), {"on_chip", "outer", "next"});
      refuse(at, "number-format",
             {.value = word,
              .message = "is no number format and no argument of a tensor",
              .allowed = fmt::format("{}", fmt::join(all, ", ")),
              .nearest = nearest_name(word, all)});
    }
  }

  std::vector<Operand> operands(const Graph& graph) {
    std::vector<Operand> all;
    cursor_.need("(");
    while (!cursor_.is(")")) {
      all.push_back(read_operand(cursor_, graph, out_.sizes));
      if (!cursor_.take(",")) break;
    }
    cursor_.need(")");
    return all;
  }

  void op(Graph& graph, std::vector<Position>* places = nullptr) {
    const Position line_at = cursor_.here();
    cursor_.next();
    Op op;
    op.name = read_any_name(cursor_, "the name of an operator");
    cursor_.need("=");
    const Position at = cursor_.here();
    const std::string kind = read_any_name(cursor_, "an operator");
    const Operator* known = find_operator(kind);
    if (known == nullptr) {
      std::vector<std::string> names;
      for (const Operator* o : all_operators()) names.emplace_back(o->name.value);
      refuse(at, "unknown-operator",
             {.value = kind,
              .message = "there is no such operator",
              .allowed = "see docs/reference",
              .nearest = nearest_name(kind, names)});
    }
    op.kind = *known;
    op.reads = operands(graph);
    cursor_.need("->");
    op.writes = operands(graph);
    if (op.writes.empty()) refuse(at, "arguments", {.value = op.name, .message = "writes nothing"});
    ValueNames none;
    LineReader reader(cursor_, graph, out_.sizes, none);
    const std::vector<std::string> words = attribute_words();
    while (cursor_.take(",")) {
      const Position word_at = cursor_.here();
      const std::string word = read_any_name(cursor_, "attributes, site, backward or inlined");
      if (std::ranges::find(words, word) != words.end()) {
        reader.begin({.at = word_at}, false);
        reader.open();
        op.attributes = attributes_syntax(word, {}, reader);
        reader.close();
      } else if (word == "site") {
        cursor_.need("=");
        op.site = read_any_name(cursor_, "a block's step");
      } else if (word == "backward") {
        op.pass = Pass::backward;
      } else if (word == "inlined") {
        op.inlined = true;
      } else {
        refuse(word_at, "arguments",
               {.value = word,
                .message = "no attributes are called so",
                .allowed = fmt::format("{}, site, backward, inlined", fmt::join(words, ", ")),
                .nearest = nearest_name(word, words)});
      }
    }
    cursor_.need_line_end();
    graph.add_op(std::move(op));
    if (places != nullptr) places->push_back(line_at);
  }

  TensorId tensor_of(const Graph& graph, const char* what) {
    const Position at = cursor_.here();
    const std::string name = read_any_name(cursor_, what);
    const std::optional<TensorId> id = graph.find_tensor(name);
    if (id) return *id;
    std::vector<std::string> names;
    for (const Tensor& t : graph.tensors()) names.push_back(t.name);
    refuse(at, "unknown-tensor",
           {.value = name,
            .message = "there is no such tensor",
            .allowed = "a declared tensor",
            .nearest = nearest_name(name, names)});
  }
  OpId op_of(const Graph& graph) {
    const Position at = cursor_.here();
    const std::string name = read_any_name(cursor_, "an operator's name");
    const std::optional<OpId> id = graph.find_op(name);
    if (id) return *id;
    std::vector<std::string> names;
    for (const Op& o : graph.ops()) names.push_back(o.name);
    refuse(at, "unknown-operator",
           {.value = name,
            .message = "the plan has no such operator",
            .allowed = "an operator of a line \"op\"",
            .nearest = nearest_name(name, names)});
  }

  void relate(Graph& graph) {
    cursor_.next();
    const TensorId tensor = tensor_of(graph, "a tensor");
    const Position at = cursor_.here();
    const std::optional<Relation> relation = words::relation(read_any_name(cursor_, "a relation"));
    if (!relation)
      refuse(at, "arguments",
             {.message = "there is no such relation",
              .allowed = "gradient_of, carried_to, recomputed_from"});
    graph.relate(tensor, *relation, tensor_of(graph, "a tensor"));
    cursor_.need_line_end();
  }

  void forward(Graph& graph) {
    cursor_.next();
    Graph inner;
    section(inner, [] { return false; });
    graph.derived_from(std::move(inner));
  }

  template <class More>
  void section(Graph& graph, More more) {
    cursor_.need_line_end();
    if (cursor_.kind() != TokenKind::indent) return;
    cursor_.next();
    while (cursor_.kind() != TokenKind::dedent && cursor_.kind() != TokenKind::end)
      guarded([&] {
        const std::string word(cursor_.token().text);
        if (words::role(word)) return tensor(graph, nullptr);
        if (word == "op") return op(graph);
        if (word == "relate") return relate(graph);
        if (word == "forward") return forward(graph);
        if (!more()) cursor_.expected("a tensor, op, relate or forward");
      });
    if (cursor_.kind() == TokenKind::dedent) cursor_.next();
  }

  bool interleaving(Preparation& p) {
    const bool result = cursor_.is_name("comes_interleaved");
    if (!result && !cursor_.is_name("interleave")) return false;
    cursor_.next();
    Interleaving i;
    i.tensor = read_any_name(cursor_, "a tensor's name");
    cursor_.need(",");
    i.columns = cursor_.is_name("columns");
    if (!i.columns && !cursor_.is_name("rows")) cursor_.expected("'rows' or 'columns'");
    cursor_.next();
    for (const auto& [word, to] :
         {std::pair{"begin", &i.begin}, {"count", &i.count}, {"group", &i.group}}) {
      cursor_.need(",");
      if (!cursor_.take_name(word)) cursor_.expected(std::string("'") + word + "'");
      cursor_.need("=");
      *to = out_.sizes.read(cursor_);
    }
    cursor_.need_line_end();
    (result ? p.results : p.interleavings).push_back(std::move(i));
    return true;
  }

  void edge() {
    FusionNote note;
    note.edge.from = op_of(out_.plan.graph);
    cursor_.need("->");
    note.edge.to = op_of(out_.plan.graph);
    if (!cursor_.take_name("of")) cursor_.expected("'of'");
    note.edge.tensor = tensor_of(out_.plan.graph, "a tensor");
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

  // Kernels -------------------------------------------------------------------------------------

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

  void kernel(Position) {
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
        guarded([&] { kernel_line(k, places); });
      if (cursor_.kind() == TokenKind::dedent) cursor_.next();
    }
    out_.plan.kernels.push_back(std::move(k));
    out_.places.push_back(std::move(places));
  }

  void kernel_line(Kernel& k, std::vector<ProgramPlaces>& places) {
    const Position at = cursor_.here();
    if (cursor_.take_name("ops")) {
      cursor_.need("(");
      while (!cursor_.is(")")) {
        k.ops.push_back(op_of(out_.plan.graph));
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

  // A program alone is a kernel of its own.
  void own_program(Position at) {
    std::vector<ProgramPlaces> places;
    Kernel k;
    k.phases.push_back(program(at, places));
    const Program& p = k.phases.front();
    k.name = p.name;
    if (std::holds_alternative<GemmMainloop>(p.mainloop)) {
      k.kind = KernelKind::gemm;
      k.implementation = Implementation::epilogue_gemm;
    } else if (std::holds_alternative<AttentionMainloop>(p.mainloop)) {
      k.kind = KernelKind::attention;
      k.implementation = Implementation::flash_attention;
    } else if (std::holds_alternative<ScanMainloop>(p.mainloop)) {
      k.kind = KernelKind::scan;
      k.implementation = Implementation::chunked_scan;
    } else if (std::holds_alternative<RowMainloop>(p.mainloop)) {
      k.kind = KernelKind::reduction;
      k.implementation = Implementation::resident_row;
    } else {
      k.kind = KernelKind::pointwise;
      k.implementation = Implementation::vectorized;
    }
    out_.plan.kernels.push_back(std::move(k));
    out_.places.push_back(std::move(places));
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

  TokenCursor cursor_;
  ProgramFile out_;
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
