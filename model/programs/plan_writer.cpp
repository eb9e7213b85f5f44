// The one way that we write a plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/operators/operator.h"
#include "model/programs/attributes_syntax.h"
#include "model/programs/defined_map.h"
#include "model/programs/file_words.h"
#include "model/programs/known_lines.h"
#include "model/programs/line_writer.h"
#include "model/programs/program_file.h"

namespace fuseline {

namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kRemarkColumn = 56;

std::size_t shown_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Notes hold words in quotes; a text in our language has none within its own.
std::string quoted(std::string text) {
  std::ranges::replace(text, '"', '\'');
  std::ranges::replace(text, '\n', ' ');
  return "\"" + text + "\"";
}

class PlanWriter {
 public:
  explicit PlanWriter(const Plan& plan) : plan_(plan) {}

  std::string run(const std::string& target) {
    line(0, "plan " + name_text(plan_.policy));
    if (!target.empty()) line(0, "target " + name_text(target));
    if (!plan_.rewrites.empty()) line(0, fmt::format("rewrites {}", joined(plan_.rewrites)));
    functions();
    out_ += "\n";
    graph(0, plan_.graph, &plan_.homes);
    for (const Kernel& k : plan_.kernels) {
      out_ += "\n";
      kernel(k);
    }
    section("block", plan_.block);
    preparation();
    notes();
    return out_;
  }

 private:
  static std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& n : names) text += (text.empty() ? "" : ", ") + name_text(n);
    return text;
  }

  void line(int level, const std::string& code, const std::string& remark = "") {
    const std::string indent(static_cast<std::size_t>(level) * 2, ' ');
    std::string all = broken(indent, code);
    if (!remark.empty()) {
      const std::size_t last = all.rfind('\n');
      const std::size_t used = shown_width(last == std::string::npos ? all : all.substr(last + 1));
      all.append(std::max(kRemarkColumn, used + 2) - used, ' ');
      all += "# " + remark;
    }
    out_ += all + "\n";
  }

  // What is too long is broken behind commas within brackets, where a line break means nothing.
  static std::string broken(const std::string& indent, const std::string& code) {
    if (indent.size() + shown_width(code) <= kWidth) return indent + code;
    std::string out, now = indent;
    const std::string deeper = indent + "    ";
    int depth = 0;
    bool in_quotes = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (code[i] == '"') in_quotes = !in_quotes;
      if (in_quotes) continue;
      if (code[i] == '(' || code[i] == '[') ++depth;
      if (code[i] == ')' || code[i] == ']') --depth;
      const bool end = i + 1 == code.size();
      if (!end && !(depth > 0 && code[i] == ',' && code[i + 1] == ' ')) continue;
      const std::string piece = code.substr(begin, i + 1 - begin);
      if (begin > 0 && shown_width(now) + shown_width(piece) > kWidth) {
        while (!now.empty() && now.back() == ' ') now.pop_back();
        out += now + "\n";
        now = deeper + piece.substr(piece.find_first_not_of(' '));
      } else {
        now += piece;
      }
      begin = i + 1;
    }
    return out + now;
  }

  void functions() {
    std::set<std::string> written;
    for (const Kernel& k : plan_.kernels)
      for (const Program& p : k.phases)
        for (const auto* list : {&p.prologue, &p.body})
          for (const Primitive& primitive : *list) {
            const Map* map = primitive.as<Map>();
            const ValueFunction* f = map == nullptr ? nullptr : definition_of(map->fn);
            if (f == nullptr || !written.insert(map->fn->name.value).second) continue;
            line(0, fmt::format("let {}({}) = {}", defined_name(map->fn),
                                fmt::join(f->parameters(), ", "), f->text()));
          }
  }

  void graph(int level, const Graph& g, const std::vector<Home>* homes) {
    for (std::size_t i = 0; i < g.tensors().size(); ++i)
      tensor(level, g.tensors()[i], homes != nullptr && (*homes)[i] == Home::on_chip);
    for (const Op& op : g.ops()) write_op(level, g, op);
    for (const Related& r : g.relations())
      line(level, fmt::format("relate {} {} {}", name_text(g.tensor(r.tensor).name),
                              words::of(r.relation), name_text(g.tensor(r.to).name)));
    if (g.forward() != nullptr) {
      line(level, "forward");
      graph(level + 1, *g.forward(), nullptr);
    }
  }

  void tensor(int level, const Tensor& t, bool on_chip) {
    std::string symbol;
    for (const char c : t.symbol)
      if (c != ' ') symbol += c;
    const bool letters = symbol.find(',') != std::string::npos && symbol.size() >= 5;
    std::string text = fmt::format("{} {}", name_of(t.role), name_text(t.name));
    text += letters ? fmt::format("{} = [{}, {}]", symbol, t.rows, t.cols)
                    : fmt::format("[{}, {}]", t.rows, t.cols);
    text += std::string(", ") + name_of(t.dtype);
    if (!t.outer.empty()) text += fmt::format(", outer = [{}]", fmt::join(t.outer, ", "));
    if (!t.of_next_layer.empty()) text += ", next = " + quoted(t.of_next_layer);
    if (on_chip) text += ", on_chip";
    line(level, text);
  }

  void write_op(int level, const Graph& g, const Op& op) {
    std::string reads, writes;
    for (const Operand& o : op.reads) reads += (reads.empty() ? "" : ", ") + operand_text(g, o);
    for (const Operand& o : op.writes) writes += (writes.empty() ? "" : ", ") + operand_text(g, o);
    std::string text =
        fmt::format("op {} = {}({}) -> ({})", name_text(op.name), name_of(op.kind), reads, writes);
    const std::string word = attributes_word(op);
    if (!word.empty()) {
      const ProgramNames no_names(g, {});
      LineWriter writer(g, no_names);
      writer.open();
      (void)attributes_syntax(word, op.attributes, writer);
      writer.close();
      text += ", " + word + writer.take().code;
    }
    if (!op.site.empty()) text += ", site = " + name_text(op.site);
    if (op.pass == Pass::backward) text += ", backward";
    if (op.inlined) text += ", inlined";
    line(level, text);
  }

  void kernel(const Kernel& k) {
    std::string head = fmt::format("kernel {}: {}, {}", name_text(k.name), name_of(k.kind),
                                   words::of(k.implementation));
    if (k.in_pieces) head += ", in_pieces";
    line(0, head);
    if (!k.ops.empty()) {
      std::string names;
      for (const OpId id : k.ops)
        names += (names.empty() ? "" : ", ") + name_text(plan_.graph.op(id).name);
      line(1, "ops (" + names + ")");
    }
    for (const FrameworkLaunch& l : k.beside) launch(l);
    for (const Program& p : k.phases) program(p);
  }

  void launch(const FrameworkLaunch& l) {
    std::string moved;
    for (const LaunchAccess& a : l.moved) {
      const std::string way = a.store ? "store " : "load ";
      const auto* scratch = std::get_if<Scratch>(&a.of);
      moved += moved.empty() ? "" : ", ";
      moved += scratch != nullptr
                   ? fmt::format("{}scratch {}[{}, {}] {}", way, name_text(scratch->name),
                                 scratch->rows, scratch->cols, name_of(scratch->dtype))
                   : way + operand_text(plan_.graph, std::get<Operand>(a.of));
    }
    std::string text =
        fmt::format("beside {}: {}({})", quoted(l.name), words::of(l.implementation), moved);
    if (l.each != 1) text += fmt::format(", each = {}", l.each);
    if (l.flops.value() != 0) text += fmt::format(", flops = {}", l.flops.value());
    line(1, text);
  }

  void program(const Program& p) {
    line(1, "program " + name_text(p.name));
    const ProgramNames names(plan_.graph, p.names);
    LineWriter writer(plan_.graph, names);
    const auto put = [&](const Primitive& primitive) {
      const LineKind* kind = kind_of(primitive);
      FUSELINE_ASSERT(kind != nullptr,
                      "a primitive without a line: " + std::string(primitive.name()));
      LineWriter one(plan_.graph, names);
      (void)kind->walk(primitive, one);
      const CodeLine text = one.take();
      line(2, text.code, text.comment);
    };
    for (const Primitive& primitive : p.prologue) put(primitive);
    mainloop(p.mainloop, writer);
    const CodeLine text = writer.take();
    line(2, text.code, text.comment);
    for (const Primitive& primitive : p.body) put(primitive);
  }

  static void mainloop(Mainloop m, LineWriter& writer) {
    Value y = 0;
    if (auto* gemm = std::get_if<GemmMainloop>(&m)) return gemm_syntax(*gemm, y, writer);
    if (auto* attention = std::get_if<AttentionMainloop>(&m))
      return attention->gradient ? attention_gradient_syntax(*attention, y, writer)
                                 : attention_syntax(*attention, y, writer);
    if (auto* scan = std::get_if<ScanMainloop>(&m))
      return scan->gradient ? scan_gradient_syntax(*scan, y, writer)
                            : scan_syntax(*scan, y, writer);
    if (auto* stream = std::get_if<StreamMainloop>(&m)) {
      writer.put("for each tile of ");
      return stream_syntax(*stream, writer);
    }
    writer.put("for each row of ");
    row_syntax(std::get<RowMainloop>(m), writer);
  }

  void section(const char* word, const Graph& g) {
    if (g.tensors().empty()) return;
    out_ += "\n";
    line(0, word);
    graph(1, g, nullptr);
  }

  void preparation() {
    const Preparation& p = plan_.preparation;
    if (p.graph.tensors().empty() && p.interleavings.empty() && p.results.empty()) return;
    out_ += "\n";
    line(0, "preparation");
    graph(1, p.graph, nullptr);
    for (const Interleaving& i : p.interleavings) interleaving("interleave", i);
    for (const Interleaving& i : p.results) interleaving("comes_interleaved", i);
  }

  void interleaving(const char* word, const Interleaving& i) {
    line(1, fmt::format("{} {}, {}, begin = {}, count = {}, group = {}", word, name_text(i.tensor),
                        i.columns ? "columns" : "rows", i.begin, i.count, i.group));
  }

  void notes() {
    if (!plan_.notes.empty()) out_ += "\n";
    for (const FusionNote& n : plan_.notes)
      line(0,
           fmt::format("edge {} -> {} of {}, {}, {}", name_text(plan_.graph.op(n.edge.from).name),
                       name_text(plan_.graph.op(n.edge.to).name),
                       name_text(plan_.graph.tensor(n.edge.tensor).name),
                       n.fused ? "fused" : "apart", quoted(n.reason)));
  }

  const Plan& plan_;
  std::string out_;
};

}  // namespace

std::string hash_of_text(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a, 64 bits
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    if (text.compare(begin, 5, "hash ") != 0)
      for (std::size_t i = begin; i < std::min(end + 1, text.size()); ++i) {
        if (text[i] == '\r') continue;
        hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3U;
      }
    begin = end + 1;
  }
  return fmt::format("{:016x}", hash);
}

std::string plan_text(const Plan& plan, const std::string& target) {
  const std::string head = fmt::format("fuse {}\n", kProgramVersion);
  const std::string body = PlanWriter(plan).run(target);
  return head + "hash " + hash_of_text(head + body) + "\n" + body;
}

}  // namespace fuseline
