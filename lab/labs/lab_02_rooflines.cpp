// Lab 2: peaks, bandwidths, ridge points.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"

namespace fuseline::lab {

namespace {

double intensity(const GemmWork& w) { return w.flops.as_double() / w.bytes.as_double(); }

// The first M at which a GEMM [M, K] x [N, K] reaches the intensity; intensity grows with M.
std::int64_t rows_at(double wanted, std::int64_t N, std::int64_t K) {
  std::int64_t M = 1;
  while (intensity(gemm_work(M, N, K)) < wanted) ++M;
  return M;
}

Lab lab_rooflines(const Student& student) {
  const std::string name = student.pick_name("lab2.gpu", {"a100", "h100", "h200", "l40s"});
  const Gpu gpu = load_gpu(name);
  const double peak = gpu.tensor_bf16.value();
  const double bandwidth = gpu.hbm_bandwidth.value();
  const double ridge = ridge_point(gpu);
  const std::int64_t N = student.pick("lab2.columns", {5120, 6144, 7168, 10240});
  const std::int64_t K = student.pick("lab2.depth", {4608, 5632, 6656, 8704});
  const std::int64_t M = student.pick("lab2.rows", {2048, 3072, 4096});
  const std::int64_t few = student.pick("lab2.few", {2, 4, 6, 12});
  const std::int64_t gib = student.pick("lab2.weights", {9, 13, 19, 26});
  const GemmWork many_rows = gemm_work(M, N, K);
  const GemmWork few_rows = gemm_work(few, N, K);
  const double many_compute = many_rows.flops.as_double() / peak;
  const double many_memory = many_rows.bytes.as_double() / bandwidth;
  const double few_compute = few_rows.flops.as_double() / peak;
  const double few_memory = few_rows.bytes.as_double() / bandwidth;
  const double given = std::round(ridge / 3);
  const double weights = static_cast<double>(gib) * std::pow(2.0, 30);
  const std::int64_t enough = rows_at(ridge, N, K);
  const bool tensor_bound = many_compute >= many_memory;

  Lab lab;
  lab.intro = fmt::format(
      "Your GPU: {};\n`fuseline list gpus` has it in a row.\n"
      "Your GEMM: y[M, N] = x[M, K] w[N, K]^T in bf16 with N = {}, K = {}; M = {} rows in "
      "prefill,\n"
      "{} rows in decode. Use datasheet numbers, each matrix once, and no launch times.",
      describe_ceilings(gpu), grouped(N), grouped(K), grouped(M), few);
  lab.tasks = {
      {.id = "2.1",
       .text = "Where is the ridge point of your GPU for dense bf16?",
       .key = NumberKey{ridge,
                        Dimension::intensity,
                        "FLOP/B",
                        3,
                        {{2 * ridge,
                          "that is the sparse peak: it needs weights with two zeros in every four"},
                         {ridge / 1.073741824, "GB/s taken for GiB/s: bandwidths are decimal"},
                         {ridge / 2, "half of it: bytes, not elements of two bytes"},
                         {1 / ridge, "upside down: FLOPs over bytes"}}},
       .hints = {"Where both ceilings take the same time.", "Peak FLOP/s over bytes per second."}},
      {.id = "2.2",
       .text = fmt::format("What is the arithmetic intensity of your GEMM in prefill (M = {})?",
                           grouped(M)),
       .key = NumberKey{intensity(many_rows),
                        Dimension::intensity,
                        "FLOP/B",
                        3,
                        {{intensity(many_rows) / 2, "a multiply and an add count two FLOPs"},
                         {intensity(many_rows) * 2, "that is FLOPs an element: bf16 has 2 bytes"},
                         {many_rows.flops.as_double() /
                              (many_rows.bytes.as_double() - 2.0 * static_cast<double>(M * N)),
                          "y is missing: the result is written too"}}},
       .hints = {"FLOPs over compulsory bytes.", "2 M N K / (2 (M K + N K + M N))."}},
      {.id = "2.3",
       .text = "Which ceiling does it hit there?",
       .key = ChoiceKey{{{"tensor", "", tensor_bound ? "" : "its intensity is below the ridge"},
                         {"hbm", "", tensor_bound ? "its intensity is above the ridge" : ""}}},
       .hints = {"Compare 2.2 with 2.1."}},
      {.id = "2.4",
       .text = "What is its roofline time?",
       .key = time_key(
           std::max(many_compute, many_memory),
           {{std::min(many_compute, many_memory),
             "that is the other ceiling: the longer of the two times counts"},
            {many_compute + many_memory, "the two overlap: the longer counts, not the sum"},
            {many_compute / 2, "that is half: the sparse peak, or one FLOP a product"}}),
       .hints = {"Two times; which one counts?", "max(FLOPs / peak, bytes / bandwidth)."}},
      {.id = "2.5",
       .text = fmt::format("And in decode (M = {}): what is the intensity?", few),
       .key = NumberKey{intensity(few_rows),
                        Dimension::intensity,
                        "FLOP/B",
                        3,
                        {{intensity(few_rows) / 2, "a multiply and an add count two FLOPs"},
                         {intensity(few_rows) * 2, "that is FLOPs an element: bf16 has 2 bytes"},
                         {intensity(many_rows), "that is prefill: only the rows change"}}},
       .hints = {"The weights are as large as before.", "It is close to M itself. Why?"}},
      {.id = "2.6",
       .text = "And its roofline time in decode?",
       .key = time_key(std::max(few_compute, few_memory),
                       {{few_compute, "that is the tensor cores' time: HBM takes longer"},
                        {few_compute + few_memory,
                         "that is the sum: the two overlap, and the longer one counts"},
                        {few_memory * std::pow(2.0, 30) / 1e9,
                         "GB/s taken for 10^9/1.07 B/s: "
                         "bandwidths are decimal"},
                        {few_memory / 2, "half of it: bf16 has 2 bytes an element"}}),
       .hints = {"Below the ridge HBM sets the time.", "Bytes over bandwidth."}},
      {.id = "2.7",
       .text = "How many rows M does that GEMM need at least to reach the ridge point?",
       .key = whole_key(enough,
                        {{std::ceil(ridge),
                          "that is the ridge itself: x and y are traffic too, so it takes more"},
                         {std::floor(ridge),
                          "that is the ridge itself: x and y are traffic too, so it takes more"},
                         {std::ceil(ridge / 2), "bf16 has 2 bytes, a product 2 FLOPs: they cancel"},
                         {static_cast<double>(enough - 1), "there it is still just below"}}),
       .hints = {"Solve 2 M N K / (2 (M K + N K + M N)) = ridge for M.",
                 "M = ridge N K / (N K - ridge (N + K)), rounded up."}},
      {.id = "2.8",
       .text =
           fmt::format("How long does your GPU take at least to read {} GiB of weights once?", gib),
       .key = time_key(weights / bandwidth,
                       {{static_cast<double>(gib) * 1e9 / bandwidth,
                         "GiB taken for GB: 1 GiB is 2^30 bytes, bandwidths count 10^9"},
                        {8 * weights / bandwidth, "bits: the bandwidth is in bytes"}},
                       "ms"),
       .hints = {"Write both in bytes.", "GiB x 2^30 / (GB/s x 10^9)."}},
      {.id = "2.9",
       .text = fmt::format(
           "A kernel has an intensity of {} FLOP/B. What rate can it reach at most?", given),
       .key = NumberKey{std::min(peak, given * bandwidth),
                        Dimension::flop_rate,
                        "TFLOP/s",
                        3,
                        {{peak, "that is the peak: below the ridge HBM feeds less"},
                         {given * bandwidth * 1.073741824, "GB/s are 10^9 bytes a second"},
                         {given * bandwidth / 2, "intensity is in FLOPs a byte, not an element"}}},
       .hints = {"Left of the ridge the roof is a slope.", "Intensity x bandwidth."}},
      {.id = "2.10",
       .text = "A data sheet's headline says twice the peak that you used. Why?",
       .key = ChoiceKey{{{"a", "it is for a clock that the GPU reaches only for short moments",
                          "the clock is the same: read the small print under the table"},
                         {"b", "it is for weights of which two in every four are zero", ""},
                         {"c", "it counts a multiply and an add as two operations, not as one",
                          "both figures count them as two"}}},
       .hints = {"Look for the words \"with sparsity\"."}},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_02_rooflines{
    .folder = "02-rooflines", .title = "rooflines and ridge points", .make = lab_rooflines};

}  // namespace fuseline::lab
