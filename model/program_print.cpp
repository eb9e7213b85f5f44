// Programs as text that a person reads as code: names and symbols of maths.md, one primitive a
// line.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"
#include "model/program.h"

namespace fuseline {

namespace {

constexpr std::size_t comment_column = 56;
constexpr std::size_t kLineWidth = 97;  // explain indents by 2, a report has 100 columns

// Characters that a terminal shows: UTF-8 continuation bytes do not count.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

class ProgramPrinter {
 public:
  ProgramPrinter(const Graph& graph, const Program& program)
      : program_(program), names_(graph, program.names) {}

  std::string run() {
    const std::string head = program_.name + ":  ";
    indent_ = "  ";
    if (!program_.prologue.empty()) {
      text_ += program_.name + ":\n";
      for (const Primitive& p : program_.prologue) print(p);
      std::visit([this](const auto& m) { mainloop(m, ""); }, program_.mainloop);
    } else {
      indent_ = "";
      std::visit([&](const auto& m) { mainloop(m, head); }, program_.mainloop);
      indent_ = "  ";
    }
    for (const Primitive& p : program_.body) print(p);
    return text_;
  }

 private:
  void line(const std::string& code, const std::string& comment = "") {
    std::string all = indent_ + code;
    if (!comment.empty()) {
      const std::size_t used = width_of(all);
      const std::size_t column = std::max(comment_column, used + 2);
      if (column + 3 + width_of(comment) > kLineWidth)
        all += "\n" + std::string(comment_column, ' ');
      else
        all.append(column - used, ' ');
      all += "// " + comment;
    }
    text_ += all + "\n";
  }

  void mainloop(const GemmMainloop& m, const std::string& head) {
    std::string comment = "mainloop, fp32 accumulate";
    if (m.batch > 1) comment = fmt::format("{} mainloops, fp32 accumulate", m.batch);
    if (m.summed > 1) comment += fmt::format(", {} in a sum", m.summed);
    if (!m.groups.empty())
      comment =
          fmt::format("{} groups of {} to {} rows, fp32 accumulate", m.groups.size(),
                      *std::ranges::min_element(m.groups), *std::ranges::max_element(m.groups));
    if (!m.depths.empty())
      comment =
          fmt::format("{} products of {} to {} rows, fp32 accumulate", m.depths.size(),
                      *std::ranges::min_element(m.depths), *std::ranges::max_element(m.depths));
    if (m.interleaved) comment += ", pairs";
    if (!m.weight.quantised())
      return line(fmt::format("{}y = {}{} · {}{}", head, text(m.a), m.a_is_km ? "ᵀ" : "", text(m.b),
                              m.b_is_kn ? "" : "ᵀ"),
                  comment);
    std::string codes = text(m.b);
    for (const Operand& o : m.beside_b) codes += ", " + text(o);
    line(fmt::format("{}w = dequantised({})", head, codes), m.weight.name());
    if (!m.a_scale) return line(fmt::format("  y = {} · wᵀ", text(m.a)), comment);
    line(fmt::format("  x = dequantised({}, {})", text(m.a), text(*m.a_scale)),
         m.activation.name());
    line("  y = x · wᵀ", comment + ", scales behind the products of codes");
  }

  void mainloop(const AttentionMainloop& m, const std::string& head) {
    const auto operand = [this](Value v, const Operand& o) { return v >= 0 ? name(v) : text(o); };
    std::string mask = !m.shape.causal && m.shape.window == 0 ? "no mask"
                       : m.shape.window > 0 ? fmt::format("window of {} tokens", m.shape.window)
                                            : "causal";
    if (m.shape.causal && m.shape.prefix > 0)
      mask += fmt::format(", prefix of {} tokens", m.shape.prefix);
    if (m.shape.cache.quantised()) mask += ", cache " + m.shape.cache.name();
    if (m.shape.softcap > 0) mask += fmt::format(", scores capped at {}", m.shape.softcap);
    std::string inputs = fmt::format("{}, {}, {}", operand(m.q_value, m.q), operand(m.k_value, m.k),
                                     operand(m.v_value, m.v));
    if (m.bias) inputs += ", bias " + text(*m.bias);
    if (m.gradient) {
      const AttentionGradient& g = *m.gradient;
      line(fmt::format("{}{}, {}, {} = attention_gradient(", head, name(0), name(g.dk), name(g.dv)),
           mask);
      line(fmt::format("    {}, {},", inputs, text(g.dy)));
      line(fmt::format("    {}, {})", text(g.log_sum_exp), text(g.delta)),
           g.per_query_head ? "dK, dV of every query head" : "");
      return;
    }
    const std::string results = m.log_sum_exp >= 0 ? "y, " + name(m.log_sum_exp) : "y";
    line(fmt::format("{}{} = attention({})", head, results, inputs), "online softmax, " + mask);
    for (const auto& [codes, scale] : {std::pair{&m.k, &m.k_scale}, {&m.v, &m.v_scale}})
      if (*scale)
        line(fmt::format("    {} · {}", text(*codes), text(**scale)), "of each key's heads");
  }

  void scan_gradient(const ScanMainloop& m, const std::string& head) {
    const ScanGradient& g = *m.gradient;
    const std::string rates = m.rates ? ", rates " + text(*m.rates) : "";
    const std::string states = g.states ? ", states " + text(*g.states) : "";
    line(fmt::format("{}dx = scan_gradient({}, {}, {}, {}, {}{}{})", head, text(g.dy), text(m.x),
                     text(m.log_decay), text(m.k), text(m.q), rates, states),
         fmt::format("backwards, pieces of {} tokens",
                     m.shape.kept_tokens(m.has_rates_of_columns())));
    line(fmt::format("    store {} = of the decay", text(g.d_decay)));
    line(fmt::format("    add {}, {} = of the keys and queries", text(g.dk), text(g.dq)),
         "heads that share them");
    if (g.d_rates) line(fmt::format("    add {} = of the rates", text(*g.d_rates)), "sequences");
  }

  void mainloop(const ScanMainloop& m, const std::string& head) {
    if (m.gradient) return scan_gradient(m, head);
    const std::string state = m.state ? ", " + text(*m.state) : "";
    const std::string rates = m.rates ? ", rates " + text(*m.rates) : "";
    line(fmt::format("{}y = scan({}, {}, {}, {}{}{})", head, text(m.x), text(m.log_decay),
                     text(m.k), text(m.q), rates, state),
         m.has_rates_of_columns() ? std::string("a prefix of the recurrence")
         : m.shape.chunk == 1     ? std::string("step by step")
                                  : fmt::format("chunks of {} tokens", m.shape.chunk));
    if (m.state_after) line(fmt::format("    store {} = state", text(*m.state_after)));
  }

  void mainloop(const StreamMainloop& m, const std::string& head) {
    line(fmt::format("{}for each tile of [{}, {}]", head, m.rows, m.cols));
  }

  void mainloop(const RowMainloop& m, const std::string& head) {
    line(fmt::format("{}for each row of [{}, {}]", head, m.rows, m.cols),
         m.heads > 1 ? fmt::format("{} heads side by side", m.heads) : "");
  }

  void print(const Primitive& p) {
    const CodeLine text = p.text(names_);
    line(text.code, text.comment);
  }
  std::string name(Value v) const { return names_.name(v); }
  std::string text(const Operand& o) const { return names_.text(o); }

  const Program& program_;
  ProgramNames names_;
  std::string text_;
  std::string indent_;
};

}  // namespace

std::string print_program(const Graph& graph, const Program& program) {
  return ProgramPrinter(graph, program).run();
}

}  // namespace fuseline
