// The sum of a tensor's parts over several GPUs, which all of them get. Declared, so that blocks
// can be written with it; plans of several GPUs are not built yet, and refuse it by name.
#include "base/error.h"
#include "model/config/several_gpus.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"

namespace fuseline {

namespace in_all_reduce {
namespace {

[[noreturn]] void refuse(const Op& op) {
  const Devices* devices = op.attributes.get<Devices>();
  const std::string count = devices == nullptr ? "several" : std::to_string(devices->count);
  throw InputError({.field = op.name,
                    .value = "all_reduce over " + count + " GPUs",
                    .message = kSeveralGpusMessage,
                    .allowed = "operators of one GPU"});
}

// Every element is added devices - 1 times.
Flops count(const Graph&, const Op& op) {
  return checked_product<Flops>(op.writes[0].rows, op.writes[0].cols,
                                op.attributes.as<Devices>().count - 1);
}

std::int64_t terms(const Graph&, const Op& op) { return op.attributes.as<Devices>().count; }

// The other GPUs' parts are not in this graph.
void compute(const Graph&, const Op& op, const TensorValues&, TensorValues&) { refuse(op); }

void lower(Emitter&, const Op& op) { refuse(op); }

}  // namespace
}  // namespace in_all_reduce

constinit const Operator operators::all_reduce{
    .name = "all_reduce",
    .op_class = OpClass::collective,
    .locality = Locality::tile_local,
    .formula = "y = sum of x over the GPUs (declared, not built yet)",
    .reads = {kX},
    .write = kY,
    .flops = in_all_reduce::count,
    .sum_length = in_all_reduce::terms,
    .reference = in_all_reduce::compute,
    .lower = in_all_reduce::lower,
    .extent = of_result,
    .gradient = no_gradient("several GPUs are not built yet"),
    .framework = always<Implementation::vectorized>,
    .alone = "moves data between GPUs"};

}  // namespace fuseline
