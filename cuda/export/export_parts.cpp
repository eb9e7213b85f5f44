#include "cuda/export/export_parts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cuda/emit/row_pitch.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kRoomBehind = 256;  // of GpuTensors

std::vector<TensorId> tensors_of(const std::vector<Operand>& operands) {
  std::vector<TensorId> ids;
  for (const Operand& o : operands)
    if (std::ranges::find(ids, o.tensor) == ids.end()) ids.push_back(o.tensor);
  return ids;
}

}  // namespace

ExportedTensor exported(const Tensor& t, const std::string& name, Role role) {
  const std::int64_t pitch = row_pitch(t);
  return {.name = name,
          .symbol = t.symbol,
          .role = role,
          .dtype = t.dtype,
          .rows = t.rows,
          .cols = t.cols,
          .row_bytes = pitch,
          .bytes = pitch * t.rows + kRoomBehind};
}

void Uses::add(const Program& p, const std::function<int(TensorId)>& place) {
  std::vector<Operand> read = loads(p);
  for (const Primitive& line : p.body)
    for (const Access& a : line.accesses())
      if (a.accumulate) read.push_back(a.operand);  // added to: what is there is read
  for (const TensorId id : tensors_of(read)) {
    const int t = place(id);
    if (!stored_.contains(t) && read_.insert(t).second) inputs_.push_back(t);
  }
  for (const TensorId id : tensors_of(stores(p))) {
    const int t = place(id);
    if (stored_.insert(t).second) stored_order_.push_back(t);
  }
}

void Uses::give_to(ExportedOperator& op, const std::function<bool(int)>& kept) const {
  for (const int t : inputs_) (stored_.contains(t) ? op.changed : op.inputs).push_back(t);
  for (const int t : stored_order_) {
    if (read_.contains(t)) continue;
    (kept(t) ? op.outputs : op.temporaries).push_back(t);
  }
}

void take_codes(Exported& out, RecordedPlan recorded) {
  for (RecordedCode& c : recorded.codes) {
    const auto same = [&](const RecordedCode& o) { return o.name == c.name; };
    if (std::ranges::any_of(out.codes, same)) c.name += fmt::format("_{}", out.codes.size());
    out.codes.push_back(std::move(c));
  }
  for (RecordedWorkspace& w : recorded.workspaces) out.workspaces.push_back(std::move(w));
  out.toolkit = recorded.toolkit;
  out.architecture = recorded.architecture;
}

RecordedLaunch placed(RecordedLaunch launch, const std::function<int(TensorId)>& place,
                      std::size_t codes, std::size_t workspaces) {
  launch.code += static_cast<int>(codes);
  const auto move = [&](AddressPlace& a) {
    a.target = a.target >= 0 ? place(TensorId{a.target}) : a.target - static_cast<int>(workspaces);
  };
  for (AddressPlace& a : launch.addresses) move(a);
  for (MapPlace& m : launch.maps) move(m.at);
  if (launch.product)
    for (int* t : {&launch.product->a, &launch.product->b, &launch.product->out})
      *t = place(TensorId{*t});
  return launch;
}

void results_first(const Exported& out, ExportedOperator& op) {
  std::ranges::stable_sort(op.outputs, [&](int a, int b) {
    const auto is_output = [&](int t) {
      return out.tensors[static_cast<std::size_t>(t)].role == Role::output;
    };
    return is_output(a) && !is_output(b);
  });
}

void describe(Exported& out, const Plan& plan, const Gpu& gpu) {
  out.gpu = gpu.name;
  out.gpu_title = gpu.title;
  out.policy = plan.policy;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) out.programs.push_back(print_program(plan.graph, p));
  out.preparation = plan.preparation;
}

}  // namespace fuseline::cuda
