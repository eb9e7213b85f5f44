// Lab 6: tiles, waves, L2, and how often operands are read again.
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "model/reference.h"
#include "sim/block/limits.h"
#include "sim/block/single_gemm.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_traffic.h"

namespace fuseline::lab {

namespace {

FunctionCase gemm_case(std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t tile_m,
                       std::int64_t tile_n, bool hidden, double factor, int index) {
  constexpr std::int64_t tile_k = 8;
  const auto seed = static_cast<std::uint64_t>(index);
  const std::vector<double> a = bf16_values("x", M, K, seed);
  const std::vector<double> b = bf16_values("w", N, K, seed);
  const Graph graph = gemm_graph(M, N, K);
  const TensorValues plain = run_reference(graph, {{"x", a}, {"w", b}});
  std::vector<double> scaled = b;
  for (double& v : scaled) v *= factor;
  const TensorValues want = run_reference(graph, {{"x", a}, {"w", scaled}});
  const GemmRequested asked = requested_bytes(plain_gemm(M, N, K, 0, 1, 2, 3),
                                              GemmTile{.m = tile_m, .n = tile_n, .k = tile_k});
  FunctionCase c;
  c.name = fmt::format("[{}, {}, {}] in tiles of {} x {}", M, N, K, tile_m, tile_n);
  c.hidden = hidden;
  c.numbers = {{"tile_m", static_cast<double>(tile_m)},
               {"tile_n", static_cast<double>(tile_n)},
               {"tile_k", static_cast<double>(tile_k)}};
  c.matrices = {{"a", M, K, false, a, 0, asked.a.value() / 2},
                {"b", N, K, false, b, 0, asked.b.value() / 2},
                {"c", M, N, true, want.at("y"), stored_tolerance(K), M * N}};
  c.mistakes = {{"c", plain.at("y"), "the sum is not multiplied by the factor of your task sheet"}};
  // Accumulators and one step's panels in fp32.
  c.on_chip = Bytes(4 * (tile_m * tile_n + tile_k * (tile_m + tile_n)) + 128);
  return c;
}

FunctionKey gemm_function(const Student& student) {
  FunctionKey key;
  key.harness = "lab/harness/lab_06.cpp";
  key.signature =
      "void gemm(const Source& a, const Source& b, const Target& c, std::int64_t tile_m,\n"
      "          std::int64_t tile_n, std::int64_t tile_k);";
  key.factor = student.factor("lab6.factor");
  key.cases = {gemm_case(16, 24, 32, 8, 8, false, key.factor, 1),
               gemm_case(40, 36, 48, 16, 8, false, key.factor, 2),
               gemm_case(student.between("lab6.hidden_rows", 19, 50),
                         student.between("lab6.hidden_cols", 19, 50),
                         student.between("lab6.hidden_depth", 21, 70), 8, 16, true, key.factor, 3)};
  for (const char* name : {"a", "b"}) {
    key.mistakes.push_back(
        {name, 4, 1e9, "every product loads its operands: keep panels of the tile on chip"});
    key.mistakes.push_back(
        {name, 1.0, 4,
         "more often than once per tile: is the panel loaded inside the wrong loop?"});
  }
  key.wrong_values =
      "c[i, j] is the sum over k of a[i, k] b[j, k]; tiles at the edges are smaller, and every "
      "step along k adds to the same accumulators";
  key.nan_values = "are the accumulators zero at the start of a tile?";
  key.over_capacity = "accumulators of one tile, and panels tile_k deep";
  return key;
}

double words_on_chip(const Gpu& gpu) {
  return (gpu.l2_capacity + gpu.sm_count * (gpu.smem_per_sm + gpu.registers_per_sm)).as_double() /
         2;
}

Lab lab_tiles(const Student& student) {
  const std::string name = student.pick_name("lab6.gpu", {"a100", "h100", "h200"});
  const Gpu gpu = load_gpu(name);
  const std::int64_t M = student.pick("lab6.rows", {2048, 4096, 6144});
  const std::int64_t N = student.pick("lab6.columns", {11264, 12288, 13824, 22016});
  const std::int64_t K = student.pick("lab6.depth", {4096, 5120, 8192});
  const GemmProblem problem = plain_gemm(M, N, K, 0, 1, 2, 3);
  const auto operands = [&](std::int64_t m, std::int64_t n) {
    const GemmRequested asked = requested_bytes(problem, GemmTile{.m = m, .n = n, .k = 64});
    return (asked.a + asked.b).as_double();
  };
  const double small = operands(128, 128);
  const double large = operands(128, 256);
  const double once = static_cast<double>((M + N) * K * 2);
  const std::int64_t tiles = ceil_div(M, 128) * ceil_div(N, 128);
  const std::int64_t waves = ceil_div(tiles, gpu.sm_count);
  const double fill = static_cast<double>(tiles) / static_cast<double>(waves * gpu.sm_count);
  const double words = words_on_chip(gpu);
  const double products = static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  const double bound = 2 * products / std::sqrt(words) * 2;
  const KernelEstimate library = estimate_library_gemm({.m = M, .n = N, .k = K}, gpu);
  const double amplification =
      (library.hbm_read + library.hbm_write).as_double() / library.compulsory.as_double();

  const FunctionKey function = gemm_function(student);

  Lab lab;
  lab.intro = fmt::format(
      "Your GEMM: y[M, N] = x[M, K] w[N, K]^T with M = {}, N = {}, K = {}, in bf16, on **{}**\n"
      "({} SMs, {} MiB of L2). One thread block per SM, one tile per thread block at a time.",
      grouped(M), grouped(N), grouped(K), gpu.title, gpu.sm_count, gpu.l2_capacity.value() >> 20);
  lab.tasks = {
      {.id = "6.1",
       .text = "Into how many tiles of 128 x 128 is the result cut?",
       .key = whole_key(tiles, {{static_cast<double>(ceil_div(M, 128)), "both directions count"},
                                {static_cast<double>(ceil_div(N, 128)), "both directions count"},
                                {static_cast<double>(tiles * ceil_div(K, 64)),
                                 "K is walked inside a tile: it makes no tiles"}}),
       .hints = {"Tiles down times tiles across.", "M/128 x N/128, each rounded up."}},
      {.id = "6.2",
       .text = "How many waves does the GPU need for them?",
       .key = whole_key(waves, {{static_cast<double>(waves - 1), "the last, partial wave counts"},
                                {static_cast<double>(waves + 1), "one too many: round up once"}}),
       .hints = {"Tiles over SMs, rounded up."}},
      {.id = "6.3",
       .text = "What share of the tile slots of all waves is used?",
       .key = ratio_key(
           fill,
           {{1 - fill, "that is what is idle"},
            {static_cast<double>(tiles) / static_cast<double>(gpu.sm_count) -
                 std::floor(static_cast<double>(tiles) / static_cast<double>(gpu.sm_count)),
             "that is the last wave alone"}},
           "%"),
       .hints = {"Slots: waves x SMs.", "6.1 over the slots."}},
      {.id = "6.4",
       .text = "How many bytes of x and w do all tiles of 128 x 128 load together, before any\n"
               "cache?",
       .key = byte_key(
           small,
           {{once, "each matrix once: every tile loads its own panels"},
            {large, "that is with tiles of 128 x 256"},
            {small / 2, "that counts elements: bf16 has 2 bytes"},
            {once * static_cast<double>(tiles), "a tile loads 128 rows of each matrix, not all"}},
           "GB"),
       .hints = {"Each tile loads 128 rows of x and 128 rows of w, all K columns.",
                 "x once per column of tiles, w once per row of tiles."}},
      {.id = "6.5",
       .text = "And with tiles of 128 x 256?",
       .key = byte_key(large,
                       {{small / 2, "only x is loaded half as often: w as often as before"},
                        {small, "that is with tiles of 128 x 128"},
                        {operands(256, 256), "that is 256 x 256: x is still cut every 128 rows"},
                        {large / 2, "that counts elements: bf16 has 2 bytes"}},
                       "GB"),
       .hints = {"Which matrix is loaded less often now?"}},
      {.id = "6.6",
       .text = fmt::format(
           "With S words on chip no schedule moves less than 2 M N K / sqrt(S) words. Take S = {}\n"
           "bf16 words (L2, shared memory and registers together). How many bytes is that?",
           grouped(static_cast<std::int64_t>(words))),
       .key = byte_key(bound, {{bound / 2, "that counts words: each has 2 bytes"},
                               {bound * 2, "2 M N K words, 2 bytes each"},
                               {library.compulsory.as_double(),
                                "that is each matrix once: here the bound asks for the formula"}}),
       .hints = {"2 M N K / sqrt(S) words of 2 bytes.",
                 "It can be less than the compulsory bytes; then those count."}},
      {.id = "6.7",
       .text = fmt::format("`fuseline gemm --m {} --n {} --k {} --gpu {}` simulates the library's "
                           "kernel and its L2.\nHow many times its compulsory bytes does it move "
                           "through HBM?",
                           M, N, K, name),
       .key = ratio_key(
           amplification,
           {{library.l2.as_double() / library.compulsory.as_double(), "that is the L2's traffic"},
            {1, "the panels of one wave push out those of the last: look again"},
            {small / library.compulsory.as_double(),
             "L2 holds what neighbouring tiles share: HBM sees less"}}),
       .hints = {"The last line of its output says it."}},
      {.id = "6.8",
       .text = "Why do libraries walk the tiles in narrow groups instead of row by row?",
       .key =
           ChoiceKey{
               {{"a", "the tiles of one wave then share panels of both operands, and L2 holds them",
                 ""},
                {"b",
                 "the result then has fewer tiles, and the last wave of them leaves no SM idle",
                 "there are as many tiles in every order"},
                {"c", "the tiles of one group then share products, so some FLOPs are saved",
                 "every order computes the same products"}}},
       .hints = {"How many distinct rows of x and of w does a wave need, if it is a long strip? If "
                 "it is nearly a square?"}},
      {.id = "6.9",
       .text = fmt::format(
           "Write `gemm` in `stub.cpp`: c[i, j] = {:g} times the sum over k of a[i, k] b[j, k],\n"
           "tile by tile (the factor is yours alone; libraries call it alpha). On chip there is\n"
           "room for the accumulators of one tile and panels tile_k deep. Load a and b as often "
           "as\n"
           "6.4 says, store c once.",
           function.factor),
       .key = function,
       .hints =
           {"Loops: tiles down, tiles across, steps along k; the panels are loaded once a step.",
            "Accumulators live as long as the tile; store them after the last step.",
            "Sizes of tiles at the edges: std::min(tile_m, a.rows() - first_row)."},
       .points = 3},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_06_tiles{
    .folder = "06-tiles-and-l2", .title = "tiles, L2 and re-reads", .make = lab_tiles};

}  // namespace fuseline::lab
