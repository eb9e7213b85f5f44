#include "model/blocks/build/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

// What no block comes near, and what parts that call parts would grow into.
constexpr std::size_t kMostOperators = 4'000;
constexpr std::size_t kMostTensors = 16'000;
// Rows and columns of one tensor.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 32;

}  // namespace

const char* kind_of(const TextValue& value) {
  static constexpr const char* kinds[] = {"nothing",       "a whole number", "a number",
                                          "yes or no",     "text in quotes", "a tensor",
                                          "several values"};
  return kinds[value.held.index()];
}

BlockBuilder::BlockBuilder(const BlockText& text, const ParameterValues& values,
                           const Workload& workload)
    : text_(text), values_(values), workload_(workload) {
  FUSELINE_ASSERT(workload.batch > 0 && workload.seq > 0, text.name());
  FUSELINE_ASSERT(workload.kv_tokens() >= workload.seq, text.name());
}

void BlockBuilder::fail(Position at, InputProblem problem) const {
  const SourceText* source = scope_ != nullptr ? scope_->source : text_.file().source.get();
  source->fail(at, std::move(problem));
}

Graph BlockBuilder::build() {
  Scope block;
  block.source = text_.file().source.get();
  scope_ = &block;
  bind_letters();
  bind_parameters(values_);
  words_of_defaults(text_.block());
  statements(text_.block().body);
  finish();
  return std::move(graph_);
}

ParameterValues BlockBuilder::defaults() {
  Scope block;
  block.source = text_.file().source.get();
  scope_ = &block;
  bind_letters();
  bind_parameters({});
  ParameterValues out;
  for (const Parameter& p : text_.block().parameters) {
    const TextValue& value = block.names.at(p.name);
    if (const auto* size = value.get<ShapeSize>()) out[p.name] = size->value();
    if (const auto* number = value.get<double>()) out[p.name] = *number;
    if (const auto* flag = value.get<bool>()) out[p.name] = *flag;
  }
  scope_ = nullptr;
  return out;
}

void BlockBuilder::bind_letters() {
  const ShapeSize B("B", workload_.batch);
  const ShapeSize T("T", workload_.seq);
  letters_["B"] = {B};
  letters_["T"] = {T};
  letters_["S"] = {ShapeSize("S", workload_.kv_tokens())};
  letters_["M"] = {ShapeSize("M", workload_.rows())};
  letters_["forward"] = {workload_.phase == Phase::forward};
  letters_["train"] = {workload_.phase == Phase::train};
  letters_["decode"] = {workload_.phase == Phase::decode};
  letters_["yes"] = {true};
  letters_["no"] = {false};
}

void BlockBuilder::bind_parameters(const ParameterValues& values) {
  for (const Parameter& p : text_.block().parameters) {
    const auto found = values.find(p.name);
    if (found == values.end() && !p.absent)
      fail(p.at, {.value = p.name,
                  .message = fmt::format("the block needs it, and the model does not say it"),
                  .allowed = "a value in the model, or a default here"});
    TextValue value;
    if (found == values.end()) {
      value = evaluate(*p.absent, {});
      // A default is another way to write what it stands for; its own letter is shorter.
      if (const auto* size = value.get<ShapeSize>()) value = {ShapeSize(p.name, size->value())};
    } else if (const auto* whole = std::get_if<std::int64_t>(&found->second)) {
      value = {ShapeSize(p.name, *whole)};
    } else if (const auto* number = std::get_if<double>(&found->second)) {
      value = {*number};
    } else {
      value = {std::get<bool>(found->second)};
    }
    give_name(p.name, std::move(value), p.at);
  }
}

// Where the value of `Hkv = H` or `d = D / H` is its default, shapes may be written with the
// letters of the default.
void BlockBuilder::words_of_defaults(const Definition& block) {
  const auto value_of = [&](const ExpressionPtr& e) -> std::optional<std::int64_t> {
    if (e->kind != ExpressionKind::name) return std::nullopt;
    const auto found = scope().names.find(e->text);
    if (found == scope().names.end()) return std::nullopt;
    const auto* size = found->second.get<ShapeSize>();
    if (size == nullptr) return std::nullopt;
    return size->value();
  };
  for (const Parameter& p : block.parameters) {
    if (!p.absent) continue;
    const auto* own = scope().names.at(p.name).get<ShapeSize>();
    if (own == nullptr) continue;
    if (const auto same = value_of(p.absent); same && *same == own->value())
      words_.equal(p.name, p.absent->text);
    if (p.absent->kind != ExpressionKind::binary || p.absent->text != "/") continue;
    const auto all = value_of(p.absent->parts[0]);
    const auto times = value_of(p.absent->parts[1]);
    if (all && times && *times * own->value() == *all)
      words_.product(p.name, p.absent->parts[1]->text, p.absent->parts[0]->text);
  }
}

void BlockBuilder::check_free(const std::string& name, Position at) const {
  if (letters_.contains(name))
    fail(at, {.value = name,
              .message = "stands for the same in every block and cannot be given another meaning",
              .allowed = "another name"});
  const auto place = scope_->places.find(name);
  if (place != scope_->places.end())
    fail(at, {.value = name,
              .message = fmt::format("was given in line {} already", place->second.line),
              .allowed = "another name"});
}

void BlockBuilder::give_name(const std::string& name, TextValue value, Position at) {
  check_free(name, at);
  scope().places[name] = at;
  scope().names[name] = std::move(value);
}

void BlockBuilder::statements(const std::vector<Statement>& all) {
  for (const Statement& s : all) {
    if (scope().given) fail(s.at, {.message = "a statement behind 'give', which ends its part"});
    statement(s);
  }
}

void BlockBuilder::statement(const Statement& s) {
  switch (s.kind) {
    case StatementKind::assign:
      return assign(s);
    case StatementKind::input:
      return declare(s, Role::input);
    case StatementKind::table:
      return declare(s, Role::table);
    case StatementKind::output:
      return outputs(s);
    case StatementKind::require:
      if (!truth(*s.value))
        fail(s.value->at, {.value = expression_text(*s.value), .message = s.message});
      return;
    case StatementKind::choose:
      return statements(truth(*s.value) ? s.body : s.otherwise);
    case StatementKind::computed:
      if (scope().depth > 0)
        fail(s.at, {.message = "'computed' stands in a block and names its operators"});
      computed_.push_back(&s);
      return;
    case StatementKind::give: {
      if (scope().depth == 0)
        fail(s.at, {.message = "'give' stands in a part", .allowed = "'output' in a block"});
      TextValues given;
      for (const ExpressionPtr& e : s.given) given.push_back(evaluate(*e, {.outermost = false}));
      scope().given = std::move(given);
      return;
    }
  }
}

void BlockBuilder::assign(const Statement& s) {
  for (const std::string& name : s.targets) check_free(name, s.at);
  TextValue value = evaluate(*s.value, {.site = s.site, .op = s.op, .targets = s.targets});
  if (s.targets.size() == 1) {
    if (const auto* several = value.get<TextValues>(); several != nullptr) {
      if (several->size() != 1)
        fail(s.at, {.value = s.targets[0],
                    .message = fmt::format("the right side gives {} values", several->size()),
                    .allowed = fmt::format("{} names before '='", several->size())});
      TextValue only = several->front();
      value = std::move(only);
    }
    if (value.get<Nothing>() != nullptr)
      fail(s.value->at, {.value = s.targets[0], .message = "the right side gives nothing"});
    return give_name(s.targets[0], std::move(value), s.at);
  }
  const auto* several = value.get<TextValues>();
  const std::size_t count = several == nullptr ? 1 : several->size();
  if (count != s.targets.size())
    fail(s.value->at,
         {.message = fmt::format("gives {} value{}", count, count == 1 ? "" : "s"),
          .allowed = fmt::format("{}, as many as names before '='", s.targets.size())});
  for (std::size_t i = 0; i < count; ++i) give_name(s.targets[i], (*several)[i], s.at);
}

void BlockBuilder::declare(const Statement& s, Role role) {
  if (scope().depth > 0)
    fail(s.at,
         {.message = "inputs and tables belong to the block", .allowed = "parameters of the part"});
  for (const Declared& d : s.declared) {
    if (d.sizes.size() > 2)
      fail(d.at, {.value = d.name, .message = "has too many sizes", .allowed = "rows and columns"});
    const ShapeSize rows = d.sizes.size() == 1 ? ShapeSize(1) : size_of_shape(*d.sizes[0]);
    const ShapeSize cols = size_of_shape(*d.sizes.back());
    const TensorValue tensor = new_tensor(d.name, role, rows, cols, d.at);
    // fp32 stands for the four bytes of a number.
    if (d.numbers) graph_.tensor(tensor.operand.tensor).dtype = Dtype::fp32;
    give_name(d.name, {tensor}, d.at);
  }
}

void BlockBuilder::outputs(const Statement& s) {
  if (scope().depth > 0)
    fail(s.at, {.message = "outputs belong to the block", .allowed = "'give' in a part"});
  for (const Declared& d : s.declared) {
    const TextValue value = name_value({.kind = ExpressionKind::name, .at = d.at, .text = d.name});
    const auto* tensor = value.get<TensorValue>();
    if (tensor == nullptr)
      fail(d.at, {.value = d.name,
                  .message = fmt::format("is {}", kind_of(value)),
                  .allowed = "a tensor"});
    Tensor& t = graph_.tensor(tensor->operand.tensor);
    if (t.role != Role::activation || tensor->operand != graph_.whole(tensor->operand.tensor))
      fail(d.at, {.value = d.name,
                  .message = t.role == Role::output       ? "is an output already"
                             : t.role == Role::activation ? "is part of a tensor"
                                                          : "is not computed by the block",
                  .allowed = "a whole tensor that the block computes"});
    t.role = Role::output;
    if (d.next.empty()) continue;
    const TextValue next = name_value({.kind = ExpressionKind::name, .at = d.at, .text = d.next});
    const auto* input = next.get<TensorValue>();
    if (input == nullptr || graph_.tensor(input->operand.tensor).role != Role::input)
      fail(d.at, {.value = d.next, .message = "is no input of the block"});
    const Tensor& x = graph_.tensor(input->operand.tensor);
    if (x.rows != t.rows || x.cols != t.cols)
      fail(d.at, {.value = d.name,
                  .message = fmt::format("is {}, and the next layer's {} is {}",
                                         shape_in_words(*tensor), d.next, shape_in_words(*input)),
                  .allowed = "the same shape"});
    graph_.relate(tensor->operand.tensor, Relation::carried_to_next_layer, input->operand.tensor);
  }
}

// A block without a result computes nothing that anybody reads.
void BlockBuilder::finish() {
  const Definition& block = text_.block();
  bool any = false;
  for (const Tensor& t : graph_.tensors()) any = any || t.role == Role::output;
  if (!any)
    fail(block.at,
         {.value = block.name, .message = "the block has no output", .allowed = "output NAME"});
  for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Tensor& t = graph_.tensor(id);
    if (t.role == Role::output || t.role == Role::cache || !graph_.consumers(id).empty()) continue;
    const auto place = scope().places.find(t.name);
    fail(place == scope().places.end() ? block.at : place->second,
         {.value = t.name, .message = "nothing reads it, and it is no output"});
  }
  own_programs();
}

// Names -----------------------------------------------------------------------------------------

std::string BlockBuilder::op_name(const Naming& naming, const std::string& otherwise) const {
  const std::string own = !naming.outermost      ? otherwise
                          : !naming.op.empty()   ? naming.op
                          : !naming.site.empty() ? naming.site
                                                 : otherwise;
  return op_names_.unused(scope_->prefix + own);
}

std::string BlockBuilder::site_name(const Naming& naming, const std::string& otherwise) const {
  return scope_->prefix + (naming.site.empty() ? otherwise : naming.site);
}

std::string BlockBuilder::result_name(const Naming& naming, const std::string& otherwise) {
  if (naming.outermost && naming.targets.size() == 1) return scope_->prefix + naming.targets[0];
  const std::string base =
      naming.targets.empty() ? otherwise : naming.targets.front() + "_" + otherwise;
  return tensor_names_.unused(scope_->prefix + base);
}

// Tensors and operators -------------------------------------------------------------------------

std::string BlockBuilder::symbol_of(const ShapeSize& rows, const ShapeSize& cols) const {
  return "[" + words_.text(rows) + ", " + words_.text(cols) + "]";
}

std::string BlockBuilder::shape_in_words(const TensorValue& t) const {
  const std::string words = symbol_of(t.rows, t.cols);
  const std::string numbers = fmt::format("[{}, {}]", t.operand.rows, t.operand.cols);
  return words == numbers ? numbers : numbers + " (" + words + ")";
}

TensorValue BlockBuilder::new_tensor(const std::string& name, Role role, const ShapeSize& rows,
                                     const ShapeSize& cols, Position at,
                                     const std::string& symbol) {
  for (const ShapeSize* size : {&rows, &cols})
    if (size->value() < 1 || size->value() > kLargestSize)
      fail(at, {.value = name,
                .message = fmt::format("the size {} = {} is out of range", words_.text(*size),
                                       size->value()),
                .allowed = fmt::format("a whole number from 1 to {}", kLargestSize)});
  if (graph_.tensors().size() >= kMostTensors)
    fail(at, {.message = "the block has too many tensors",
              .allowed = fmt::format("at most {}", kMostTensors)});
  if (!tensor_names_.add(name))
    fail(at, {.value = name,
              .message = "is the name of another tensor of the block",
              .allowed = "another name, or a label before the call of the part"});
  Tensor tensor{.name = name,
                .symbol = symbol.empty() ? symbol_of(rows, cols) : symbol,
                .role = role,
                .dtype = workload_.dtype,
                .rows = rows.value(),
                .cols = cols.value()};
  static_cast<void>(tensor.bytes());  // more than 64 bits are refused here
  const TensorId id = graph_.add_tensor(std::move(tensor));
  return {graph_.whole(id), rows, cols};
}

void BlockBuilder::add_op(const std::string& name, OpKind kind, const std::string& site,
                          const std::vector<TensorValue>& reads,
                          const std::vector<TensorValue>& writes, const Attributes& attributes,
                          Position at) {
  if (graph_.ops().size() >= kMostOperators)
    fail(at, {.message = "the block has too many operators",
              .allowed = fmt::format("at most {}", kMostOperators)});
  if (!op_names_.add(name))
    fail(at, {.value = name,
              .message = "is the name of another operator of the block",
              .allowed = "another name, or a label before the call of the part"});
  for (const TensorValue& t : reads)
    if (kind->op_class != OpClass::gemm && beside_.contains(t.operand.tensor))
      fail(at, {.field = graph_.tensor(t.operand.tensor).name,
                .value = workload_.formats.weights.name(),
                .message = "only a whole weight that nothing but products reads is stored in few "
                           "bits",
                .allowed = "a weight of its own"});
  for (const TensorValue& t : reads)
    if (!kind->attention && cached_.contains(t.operand.tensor))
      fail(at, {.field = graph_.tensor(t.operand.tensor).name,
                .value = workload_.formats.cache.name(),
                .message = "only attention reads a cache in few bits",
                .allowed = "attention(...), or a cache in the workload's type"});
  Op op{.name = name, .kind = kind, .attributes = attributes, .site = site};
  for (const TensorValue& t : reads) op.reads.push_back(t.operand);
  for (const TensorValue& t : writes) op.writes.push_back(t.operand);
  const std::vector<std::string> problems = check_operands(graph_, op);
  if (!problems.empty()) fail(at, {.value = name, .message = problems.front()});
  graph_.add_op(std::move(op));
}

ParameterValues default_values(const BlockText& text) {
  return BlockBuilder(text, {}, Workload{.seq = 1}).defaults();
}

Graph build_graph(const BlockText& text, const ParameterValues& values, const Workload& workload) {
  return BlockBuilder(text, values, workload).build();
}

}  // namespace fuseline
