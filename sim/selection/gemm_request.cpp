#include "sim/selection/gemm_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "model/activation_formats/stored_activation.h"
#include "sim/report/json_output.h"
#include "sim/selection/selection.h"

namespace fuseline {

namespace {

std::int64_t required_dimension(const std::string& option, const std::optional<std::string>& text) {
  if (text) return parse_whole_number(option, *text, 1, kLargestDimension);
  throw InputError({.file = kCommandLine,
                    .field = option,
                    .message = "is missing",
                    .allowed = fmt::format("a whole number from 1 to {}", kLargestDimension)});
}

// Codes are multiplied by codes of their own kind, and rows in groups are whole ones.
void check_activations(const LibraryGemm& gemm) {
  const StoredWeight& rows = gemm.activations;
  if (!rows.quantised()) return;
  const auto refuse = [&](const char* field, const std::string& value, const std::string& message,
                          const std::string& allowed) {
    throw InputError({.file = kCommandLine,
                      .field = field,
                      .value = value,
                      .message = message,
                      .allowed = allowed});
  };
  if (weights_for(rows) != gemm.weights.name())
    refuse("--activations", rows.name(), "is multiplied by weights in " + weights_for(rows),
           "--weights " + weights_for(rows));
  if (rows.scaled_within_rows() && gemm.k % rows.group != 0)
    refuse("--k", std::to_string(gemm.k),
           fmt::format("rows of x are no whole groups of {}", rows.group), "a multiple");
}

// Bands of products of few rows come from decode's.
constexpr std::int64_t kFewRows = 128;

}  // namespace

Workload bands_workload(const LibraryGemm& g) {
  Workload w{.phase = g.m < kFewRows ? Phase::decode : Phase::forward, .dtype = g.dtype};
  w.formats.weights = g.weights;
  w.formats.activations = g.activations;
  return w;
}

GemmRequest resolve_gemm(const GemmWords& words) {
  GemmRequest request;
  LibraryGemm& gemm = request.gemm;
  gemm.bias = words.bias;
  gemm.m = required_dimension("--m", words.m);
  gemm.n = required_dimension("--n", words.n);
  gemm.k = required_dimension("--k", words.k);
  gemm.dtype = parse_dtype(
      parse_word("--dtype", words.dtype.value_or("bf16"), {"bf16", "fp16", "fp32"}), "--dtype");
  if (words.weights) gemm.weights = weights_option(*words.weights, gemm.dtype);
  if (gemm.weights.quantised() && gemm.k * size_of(gemm.weights.element()).bits() % 8 != 0)
    throw InputError(
        {.file = kCommandLine,
         .field = "--k",
         .value = std::to_string(gemm.k),
         .message = fmt::format("rows of w in {} do not fill whole bytes", gemm.weights.name()),
         .allowed = "an even number"});
  if (words.activations) gemm.activations = activations_option(*words.activations, gemm.dtype);
  check_activations(gemm);
  const auto place = [](const std::vector<std::string>& all, const std::string& word) {
    return std::ranges::find(all, word) - all.begin();
  };
  gemm.operands = static_cast<Operands>(
      place(operand_words(),
            parse_word("--operands", words.operands.value_or("rotating"), operand_words())));
  gemm.run = static_cast<Run>(
      place(run_words(), parse_word("--run", words.run.value_or("benchmark"), run_words())));
  request.fidelity = parse_fidelity(words.fidelity.value_or("hierarchy"));
  request.gpu = load_gpu_option(words.gpu);
  return request;
}

std::string gemm_json(const GemmRequest& request, const KernelEstimate& estimate) {
  if (request.fidelity == Fidelity::roofline) return kernel_json(estimate);
  return kernel_json(estimate, request.gpu, bands_workload(request.gemm));
}

}  // namespace fuseline
