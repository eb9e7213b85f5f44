#include "model/programs/rewritten.h"

#include <string>
#include <variant>

#include "base/error.h"
#include "model/programs/known_lines.h"
#include "model/programs/mainloop_syntax.h"
#include "model/programs/syntax.h"

namespace fuseline {

namespace {

class Changing final : public MainloopSyntax {
 public:
  Changing(const ChangeOperand& operand, const ChangeValue& value)
      : operand_(operand), value_(value) {}

  void makes(std::span<Value* const> results) override {
    for (Value* v : results) change(*v);
  }
  void stores(std::string_view, Operand& to, bool*) override { change(to); }
  void word(std::string_view) override {}
  void open() override {}
  void close() override {}
  void value(Value& v) override { change(v); }
  void operand(Operand& o) override { change(o); }
  void slice(Value& in, std::int64_t&, std::int64_t&) override { change(in); }
  void pattern(std::string_view, std::vector<Value>& in, double*) override { change_all(in); }
  void more(std::vector<Operand>& operands) override { change_all(operands); }
  void more(std::vector<Value>& values) override { change_all(values); }
  void number(std::string_view, std::int64_t&, std::int64_t) override {}
  void real(std::string_view, double&, double) override {}
  void numbers(std::string_view, std::vector<std::int64_t>&) override {}
  void flag(std::string_view, bool&) override {}
  void named(std::string_view, std::optional<Operand>& o) override {
    if (o) change(*o);
  }
  void named(std::string_view, std::vector<Operand>& all) override { change_all(all); }
  void named(std::string_view, Value& v) override {
    if (v >= 0) change(v);
  }
  void choice(std::string_view, int&, std::span<const std::string_view>) override {}
  void text(std::string_view, const std::string&,
            const std::function<void(const std::string&)>&) override {}
  void remark(const std::string&) override {}
  void transposed(bool&) override {}
  void times() override {}
  void space(std::int64_t&, std::int64_t&) override {}
  void named_value_of(Value& v, Operand& o) override {
    if (v >= 0) change(v);
    change(o);
  }
  void makes_some(Value& first, Value& second) override {
    change(first);
    if (second >= 0) change(second);
  }

 private:
  void change(Operand& o) const {
    if (operand_) operand_(o);
  }
  void change(Value& v) const {
    if (value_) value_(v);
  }
  template <class T>
  void change_all(std::vector<T>& all) const {
    for (T& one : all) change(one);
  }
  const ChangeOperand& operand_;
  const ChangeValue& value_;
};

}  // namespace

Primitive rewritten(const Primitive& primitive, const ChangeOperand& operand,
                    const ChangeValue& value) {
  const LineKind* kind = kind_of(primitive);
  FUSELINE_ASSERT(kind != nullptr, std::string(primitive.name()) + " has no line");
  Changing walk(operand, value);
  return kind->walk(primitive, walk);
}

Mainloop rewritten(const Mainloop& mainloop, const ChangeOperand& operand) {
  const ChangeValue same;
  Changing walk(operand, same);
  Mainloop out = mainloop;
  Value y = 0;
  if (auto* gemm = std::get_if<GemmMainloop>(&out)) gemm_syntax(*gemm, y, walk);
  if (auto* attention = std::get_if<AttentionMainloop>(&out)) {
    if (attention->gradient)
      attention_gradient_syntax(*attention, y, walk);
    else
      attention_syntax(*attention, y, walk);
  }
  if (auto* scan = std::get_if<ScanMainloop>(&out)) {
    if (scan->gradient)
      scan_gradient_syntax(*scan, y, walk);
    else
      scan_syntax(*scan, y, walk);
  }
  return out;
}

}  // namespace fuseline
