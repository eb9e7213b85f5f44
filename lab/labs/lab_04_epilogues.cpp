// Lab 4: what runs in a GEMM's epilogue, and when it is not worth it.
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "model/config/model_files.h"
#include "model/operators/all_operators.h"
#include "model/program.h"
#include "model/reference.h"

namespace fuseline::lab {

namespace {

constexpr double kEpilogueEps = 1e-5;
// Rows of x of this size have a mean square near kEps or below it, where eps decides.
constexpr double kTinyEntry = 1.0 / 512;

struct EpilogueShape {
  std::int64_t M = 1, N = 1, K = 1, tile = 8;
  double eps = kEpilogueEps;
  bool tiny = false;  // every other row of x
  bool hidden = false;
};

// residual + rms_norm(x) w^T, the norm without a weight of its own, in fp64.
std::vector<double> reference(const EpilogueShape& s, const NamedTensors& inputs) {
  Graph graph;
  const auto add = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    return graph.whole(graph.add_tensor({.name = name, .role = role, .rows = rows, .cols = cols}));
  };
  const Operand in = add("x", Role::input, s.M, s.K);
  const Operand ones = add("ones", Role::weight, 1, s.K);
  const Operand normed = add("normed", Role::activation, s.M, s.K);
  const Operand weight = add("w", Role::weight, s.N, s.K);
  const Operand product = add("product", Role::activation, s.M, s.N);
  const Operand z = add("residual", Role::input, s.M, s.N);
  const Operand out = add("result", Role::output, s.M, s.N);
  graph.add_op({.name = "norm",
                .kind = operators::rms_norm,
                .reads = {in, ones},
                .writes = {normed},
                .attributes = NormEps{s.eps}});
  graph.add_op(
      {.name = "gemm", .kind = operators::gemm, .reads = {normed, weight}, .writes = {product}});
  graph.add_op(
      {.name = "add", .kind = operators::residual_add, .reads = {product, z}, .writes = {out}});
  return run_reference(graph, inputs).at("result");
}

// result = residual + factor · rms_norm(x) w^T.
FunctionCase epilogue_case(const EpilogueShape& shape, double factor, std::uint64_t seed) {
  const auto [M, N, K, tile, eps, tiny, hidden] = shape;
  NamedTensors inputs = {{"x", bf16_values("x", M, K, seed)},
                         {"w", bf16_values("w", N, K, seed)},
                         {"residual", bf16_values("residual", M, N, seed)},
                         {"ones", std::vector<double>(static_cast<std::size_t>(K), 1.0)}};
  std::vector<double>& x = inputs.at("x");
  for (std::int64_t i = K; tiny && i < M * K; ++i) {
    if (i / K % 2 == 1) x[static_cast<std::size_t>(i)] *= kTinyEntry;
  }
  const std::vector<double>& w = inputs.at("w");
  const std::vector<double>& residual = inputs.at("residual");
  const std::vector<double> plain = reference(shape, inputs);
  NamedTensors scaled = inputs;
  for (double& v : scaled.at("w")) v *= factor;
  const std::vector<double> want = reference(shape, scaled);

  std::vector<double> mean_square;
  for (std::int64_t i = 0; i < M; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < K; ++k) {
      const double v = x[static_cast<std::size_t>(i * K + k)];
      sum += v * v;
    }
    mean_square.push_back(sum / static_cast<double>(K));
  }
  // With another factor of a row than 1 / sqrt(mean square + eps).
  const auto with = [&, eps = eps, N = N](const auto& row_factor) {
    std::vector<double> out = want;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double mean = mean_square[i / static_cast<std::size_t>(N)];
      out[i] = residual[i] + (want[i] - residual[i]) * std::sqrt(mean + eps) * row_factor(mean);
    }
    return out;
  };
  FunctionCase c;
  c.name = fmt::format("[{}, {}] in tiles of {}{}", M, N, tile,
                       tiny ? ", every other row of x tiny" : "");
  c.hidden = hidden;
  c.numbers = {{"eps", eps}, {"tile", static_cast<double>(tile)}};
  // The statistic: once for each row of each tile.
  c.matrices = {{"mean_square", M, 1, false, mean_square, 0, M * ceil_div(N, tile), 4},
                {"residual", M, N, false, residual, 0, M * N},
                {"result", M, N, true, want, stored_tolerance(K), M * N}};
  c.mainloop = {M, N, tile, {}};
  for (std::int64_t i = 0; i < M; ++i) {
    for (std::int64_t j = 0; j < N; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < K; ++k) {
        sum += static_cast<float>(x[static_cast<std::size_t>(i * K + k)]) *
               static_cast<float>(w[static_cast<std::size_t>(j * K + k)]);
      }
      c.mainloop.values.push_back(sum);
    }
  }
  c.mistakes = {
      {"result", plain, "the tile is not multiplied by the factor of your task sheet"},
      {"result", with([](double mean) { return 1 / std::sqrt(mean); }), "that is without eps"},
      {"result", with([eps = eps](double mean) { return 1 / (std::sqrt(mean) + eps); }),
       "that is with eps added outside the root: it belongs under it"},
      {"result", with([](double mean) { return 1 / std::sqrt(mean + kEpilogueEps); }),
       "eps is an argument, and not always 1e-5"}};
  c.on_chip = Bytes(4 * tile * 2 + 64);  // two vectors as long as a tile
  return c;
}

FunctionKey epilogue_function(const Student& student) {
  FunctionKey key;
  key.harness = "lab/harness/lab_04.cpp";
  key.signature =
      "void epilogue(const Accumulator& tile, const Source& mean_square, const Source& residual,\n"
      "              const Target& result, float eps);";
  key.factor = student.factor("lab4.factor");
  key.cases = {epilogue_case({.M = 8, .N = 16, .K = 24}, key.factor, 1),
               epilogue_case({.M = 24, .N = 40, .K = 32, .tile = 16, .tiny = true}, key.factor, 2),
               epilogue_case({.M = student.between("lab4.hidden_rows", 17, 45),
                              .N = student.between("lab4.hidden_cols", 19, 61),
                              .K = student.between("lab4.hidden_depth", 9, 40),
                              .tile = 16,
                              .eps = 1e-4,
                              .tiny = true,
                              .hidden = true},
                             key.factor, 3)};
  key.mistakes = {{"mean_square", 1.5, 1e9,
                   "the row's statistic is loaded for every element: load it once per row of the "
                   "tile"},
                  {"residual", 1.5, 1e9, "each element of the residual belongs to one element"}};
  key.wrong_values =
      "element (i, j) of the tile is row first_row + i and column first_col + j; scale the "
      "accumulator, then add the residual";
  key.nan_values = "is eps added under the root?";
  key.over_capacity = "an epilogue keeps a vector, not a second tile";
  return key;
}

// The share of the time that goes when a pointwise kernel joins the GEMM.
double saved_share(std::int64_t M, std::int64_t N, std::int64_t K, const Gpu& gpu) {
  const GemmWork gemm = gemm_work(M, N, K);
  const double gemm_time = roofline_time(gemm.flops, gemm.bytes, gpu).value();
  const double pointwise = (checked_product<Bytes>(M, N, 4) / gpu.hbm_bandwidth).value();
  return pointwise / (gemm_time + pointwise);
}

Lab lab_epilogues(const Student& student) {
  const Gpu gpu = load_gpu(student.pick_name("lab4.gpu", {"a100", "h100", "h200"}));
  const ModelConfig config = load_model(student.pick_name("lab4.model", {"gpt2-xl", "gpt3-13b"}));
  const std::int64_t M = student.pick("lab4.rows", {2048, 3072, 4096, 6144});
  const std::int64_t N = student.pick("lab4.columns", {5120, 6400, 7680, 10240});
  const std::int64_t K = student.pick("lab4.depth", {1280, 1600, 1920, 2560});
  const double result = static_cast<double>(M) * static_cast<double>(N) * 2;
  const double bandwidth = gpu.hbm_bandwidth.value();
  const GemmWork gemm = gemm_work(M, N, K);
  const double gemm_time = roofline_time(gemm.flops, gemm.bytes, gpu).value();
  const double saved_time = 2 * result / bandwidth;
  const double share = saved_share(M, N, K, gpu);
  std::int64_t deep = 64;
  while (saved_share(M, N, deep, gpu) > 0.05) deep += 64;
  const std::int64_t again = ceil_div(config.D, partial_tile);

  const FunctionKey function = epilogue_function(student);

  Lab lab;
  lab.intro = fmt::format(
      "Your GEMM: y[M, N] = x[M, K] w[N, K]^T with M = {}, N = {}, K = {}, in bf16, then GELU in\n"
      "a kernel of its own or in the GEMM's epilogue, on\n{}.\n"
      "Datasheet numbers, each matrix once, no launch times.",
      grouped(M), grouped(N), grouped(K), describe_ceilings(gpu));
  lab.tasks = {
      {.id = "4.1",
       .text = "How many bytes does the epilogue save?",
       .key = byte_key(2 * result,
                       {{result, "the product is written and read back: both go"},
                        {3 * result, "GELU's own result is still written"},
                        {4 * result, "GELU's own result is still written, and bf16 has 2 bytes"}}),
       .hints = {"Which tensor no longer goes through HBM?", "y before GELU, written and read."}},
      {.id = "4.2",
       .text = "What is the GEMM's own roofline time?",
       .key = time_key(gemm_time, {{(gemm.bytes / gpu.hbm_bandwidth).value(),
                                    "that is HBM's time: the tensor cores take longer"},
                                   {gemm_time / 2,
                                    "half of it: a product counts two FLOPs, and the peak is "
                                    "the dense one"}}),
       .hints = {"Lab 2: the longer of two times."}},
      {.id = "4.3",
       .text = "How long do the saved bytes take?",
       .key = time_key(saved_time, {{saved_time / 2, "the product is written and read back"},
                                    {2 * saved_time, "bf16 has 2 bytes an element"}}),
       .hints = {"4.1 over the bandwidth."}},
      {.id = "4.4",
       .text = "What share of the time of GEMM and GELU as two kernels does that save?",
       .key = ratio_key(share,
                        {{saved_time / gemm_time,
                          "that is over the GEMM alone: the whole is GEMM and GELU kernel"},
                         {1 - share, "that is what is left"}},
                        "%"),
       .hints = {"The GELU kernel reads and writes [M, N]: its time is that of 4.3.",
                 "saved / (GEMM + GELU kernel)."}},
      {.id = "4.5",
       .text = "A deeper GEMM hides the epilogue. From which K on (a multiple of 64, M and N as\n"
               "they are) does the epilogue save no more than 5 % of the two kernels?",
       .key = whole_key(deep, {{static_cast<double>(deep - 64), "there it is still above 5 %"},
                               {static_cast<double>(deep + 64), "64 less is enough"},
                               {static_cast<double>(K), "that is your own K: solve for K"}}),
       .hints = {"saved / (saved + 2 M N K / peak) = 0.05, solved for K; then round up to 64.",
                 "K = 19 x 4 bytes / bandwidth x peak / 2 FLOPs: M and N cancel."}},
      {.id = "4.6",
       .text = "Which of these may move from before a GEMM to after it, with the same result?",
       .key = ChoiceKey{{{"a", "a factor for each row of x", ""},
                         {"b", "a factor for each column of x",
                          "columns of x are summed over: the factor has to go into w instead"},
                         {"c", "GELU of each element of x",
                          "it is not linear: GELU of a sum is not the sum of GELUs"}}},
       .hints = {"y[i, j] = sum over k of x[i, k] w[j, k]: what can leave the sum?"}},
      {.id = "4.7",
       .text = fmt::format(
           "Somebody wants the feed-forward's first GEMM inside the second one of **{}**\n"
           "(D = {}): every tile of 128 columns of the result computes what it needs of the\n"
           "hidden layer again. How many times are the first GEMM's FLOPs spent?",
           config.title, grouped(config.D)),
       .key = ratio_key(
           static_cast<double>(again),
           {{static_cast<double>(ceil_div(config.F, partial_tile)),
             "that is F / 128: the result has D columns"},
            {static_cast<double>(config.D) / static_cast<double>(partial_tile),
             "round up: a tile at the edge, however narrow, computes all of it again"},
            {std::floor(static_cast<double>(config.D) / static_cast<double>(partial_tile)),
             "round up: a tile at the edge, however narrow, computes all of it again"},
            {1, "each tile of the result needs the whole hidden row"},
            {static_cast<double>(config.D), "a tile computes 128 columns at once"}}),
       .hints = {"How many tiles stand side by side in the result?", "D / 128, rounded up."}},
      {.id = "4.8",
       .text = "An epilogue with many live values needs more registers, so the tile shrinks from\n"
               "128 x 256 to 128 x 128. What does that cost?",
       .key =
           ChoiceKey{{{"a", "nothing: twice as many tiles of half the size do the same work",
                       "the FLOPs stay, but every tile loads its own panels"},
                      {"b", "time: the operands are loaded through L2 more often than before", ""},
                      {"c", "accuracy: the sums over K are cut into more and shorter pieces",
                       "the sums are the same: only who computes them changes"}}},
       .hints = {"How often is a row of x loaded, when tiles have half the columns?"}},
      {.id = "4.9",
       .text = fmt::format(
           "Write `epilogue` in `stub.cpp`. The mainloop gives you a tile of x w^T, where x\n"
           "should have been normalised: result = residual + {:g} tile * rsqrt(mean_square + "
           "eps),\n"
           "mean_square one number a row (the factor is yours alone, as some models scale their\n"
           "residuals). Load the statistic once per row of the tile, the residual once, store\n"
           "once.",
           function.factor),
       .key = function,
       .hints = {"Task 4.6 says why the factor may come after the GEMM.",
                 "Rows outside, columns inside: the factor of a row belongs to the outer loop.",
                 "Row of the matrix: tile.first_row + i."},
       .points = 3},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_04_epilogues{
    .folder = "04-gemm-epilogues",
    .title = "GEMM epilogues, and when fusion does not pay",
    .make = lab_epilogues};

}  // namespace fuseline::lab
