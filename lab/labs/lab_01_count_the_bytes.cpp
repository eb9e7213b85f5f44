// Lab 1: bytes of tensors and operators, counted by hand.
#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline::lab {

namespace {

constexpr double kMi = 1024.0 * 1024.0;

// A residual addition y = x + z of [M, D] in bf16.
Bytes residual_bytes(std::int64_t M, std::int64_t D) {
  Graph graph;
  const auto add = [&](const char* name, Role role) {
    return graph.whole(graph.add_tensor({.name = name, .role = role, .rows = M, .cols = D}));
  };
  const Operand x = add("x", Role::input);
  const Operand z = add("z", Role::input);
  const Operand y = add("y", Role::output);
  graph.add_op(
      {.name = "residual", .kind = operators::residual_add, .reads = {x, z}, .writes = {y}});
  return bytes_read(graph, graph.ops()[0]) + bytes_written(graph, graph.ops()[0]);
}

Lab lab_count_the_bytes(const Student& student) {
  const std::int64_t M = student.pick("lab1.rows", {1536, 3072, 5120, 6144});
  const std::int64_t D = student.pick("lab1.width", {2560, 3584, 4608, 7168});
  const std::int64_t F = student.pick("lab1.ffn", {9216, 11264, 13312, 17408});
  const std::int64_t mib = student.pick("lab1.mib", {12, 36, 44, 52, 60});
  const AttentionShape shape{.B = student.pick("lab1.batch", {2, 4, 6}),
                             .H = student.pick("lab1.heads", {12, 20, 24}),
                             .T = student.pick("lab1.tokens", {1024, 1536, 3072}),
                             .S = student.pick("lab1.tokens", {1024, 1536, 3072}),
                             .d = student.pick("lab1.head_width", {64, 96, 128})};
  const double tensor = gemm_graph(M, 1, D).tensors()[0].bytes().as_double();
  const double residual = residual_bytes(M, D).as_double();
  const GemmWork gemm = gemm_work(M, F, D);
  const double x = tensor;
  const double w = gemm_graph(F, 1, D).tensors()[0].bytes().as_double();
  const double y = gemm.bytes.as_double() - x - w;
  const AttentionWork attention = attention_work(shape);
  const double t = attention.one_operand.as_double();
  const double s = attention.one_matrix.as_double();
  const double unfused = attention.unfused.as_double();
  const double fused = attention.fused.as_double();

  Lab lab;
  lab.intro = fmt::format(
      "Your activations: M = {} rows of width D = {}, feed-forward width F = {}, in bf16.\n"
      "Your attention: B = {}, H = {}, N = {} tokens, d = {}, in fp16, without a mask.\n"
      "Count each distinct byte that a kernel reads from or writes to HBM once; caches come later.",
      grouped(M), grouped(D), grouped(F), shape.B, shape.H, grouped(shape.T), shape.d);
  lab.tasks = {
      {.id = "1.1",
       .text = "How large is one activation tensor [M, D]?",
       .key = byte_key(tensor, {{tensor * 2, "that is fp32: bf16 has 2 bytes an element"},
                                {tensor / 2, "that counts elements: each has 2 bytes"},
                                {static_cast<double>(D) * static_cast<double>(D) * 2,
                                 "that is D x D: the tensor has M rows"}}),
       .hints = {"Rows times columns times bytes of one element.", "bf16 has 16 bits: 2 bytes."}},
      {.id = "1.2",
       .text = fmt::format(
           "An L2 cache has {} MiB. What is its size in MB? (a pure number; 4 digits)", mib),
       .key =
           NumberKey{static_cast<double>(mib) * kMi / 1e6,
                     Dimension::plain,
                     {},
                     4,
                     {{static_cast<double>(mib), "1 MiB is more than 1 MB: 1024 x 1024 bytes"},
                      {static_cast<double>(mib) * 1e6 / kMi,
                       "the wrong way: a MiB is larger, so there are more MB"},
                      {static_cast<double>(mib) * 1.024, "1024 once: a MiB is 1024 x 1024 bytes"}}},
       .hints = {"M is 10^6, Mi is 2^20.", "MiB x 1.048576."}},
      {.id = "1.3",
       .text = "A kernel adds the residual: y = x + z, all [M, D]. How many bytes does it move?",
       .key = byte_key(residual, {{tensor, "one tensor only: it reads two and writes one"},
                                  {2 * tensor, "two tensors: it reads two and writes a third"},
                                  {2 * residual, "that is fp32: bf16 has 2 bytes an element"},
                                  {4 * tensor, "four tensors: it reads two and writes one"}}),
       .hints = {"List what is read and what is written.", "Two reads and one write of [M, D]."}},
      {.id = "1.4",
       .text = "A GEMM computes y[M, F] = x[M, D] w[F, D]^T. How many bytes at least?",
       .key = byte_key(gemm.bytes.as_double(),
                       {{x + w, "y is missing: the result is written too"},
                        {x + y, "w is missing: the weights are read too"},
                        {w + y, "x is missing: the activations are read too"},
                        {gemm.bytes.as_double() / 2, "that counts elements: each has 2 bytes"},
                        {x + w + 2 * y, "y is counted twice: the result is only written"}}),
       .hints = {"Three matrices.", "2 bytes x (M D + F D + M F)."}},
      {.id = "1.5",
       .text = "How many FLOPs is that GEMM?",
       .key = NumberKey{gemm.flops.as_double(),
                        Dimension::flops,
                        "GFLOP",
                        3,
                        {{gemm.flops.as_double() / 2, "a multiply and an add count two FLOPs"}}},
       .hints = {"Each of the M x F results is a sum of D products.", "2 M F D."}},
      {.id = "1.6",
       .text = "Attention as three kernels: S = Q K^T, P = softmax(S), Y = P V. S and P are\n"
               "[B H N, N] and go through HBM, in fp16 like Q, K, V and Y. How many bytes?",
       .key = byte_key(
           unfused,
           {{4 * t + 2 * s, "S counted once: it is written and read, and so is P"},
            {4 * t + 3 * s, "one pass is missing: S and P are each written and read"},
            {4 * t + s, "S counted once and P not at all: each is written and read"},
            {4 * s, "Q, K, V and Y are missing"},
            {3 * t + 4 * s, "Q, K, V and Y are four tensors, not three"},
            {2 * unfused, "that is fp32: fp16 has 2 bytes an element"},
            {unfused / static_cast<double>(shape.B),
             "that is one sequence: every tensor has a batch of them"},
            {4 * t + 4 * s / static_cast<double>(shape.B),
             "S has a matrix for every head of every sequence: the batch is missing in S and P"},
            {4 * t + 4 * s / static_cast<double>(shape.H), "S has a matrix for every head"}}),
       .hints = {"Three kernels: write down for each what it reads and writes.",
                 "S and P: written by one kernel, read by the next.",
                 "4 tensors [B N, H d] once, and 4 passes over [B H N, N]."}},
      {.id = "1.7",
       .text = "The same as one kernel that keeps S and P on chip: how many bytes?",
       .key = byte_key(fused, {{3 * t, "Y is missing: the result is written"},
                               {4 * t + s, "S stays on chip: it never goes to HBM"},
                               {5 * t, "four tensors: Q, K, V and Y"},
                               {2 * fused, "that is fp32: fp16 has 2 bytes an element"}}),
       .hints = {"What is left when S and P are gone?", "Q, K and V once, Y once."}},
      {.id = "1.8",
       .text = "By what factor do attention's bytes fall when it is fused?",
       .key = ratio_key(
           unfused / fused,
           {{fused / unfused, "upside down: unfused bytes over fused bytes"},
            {(unfused - fused) / unfused,
             "that is the share that is saved: a factor is bytes over bytes"},
            {unfused / fused / 100, "a factor of 17 is 17 x, or 1700 %: percent are hundredths"},
            {(unfused - fused) / fused,
             "that is by how much more the unfused one moves: one is missing"},
            {(4 * t + 2 * s) / fused, "S counted once: it is written and read"},
            {s / t, "that is S over Q: the four tensors count too, and each pass"}}),
       .hints = {"Your answer to 1.6 over your answer to 1.7.", "1 + N/d when N = T = S."}},
      {.id = "1.9",
       .text = "The sequence gets twice as long. What does the factor of 1.8 do?",
       .key =
           ChoiceKey{{{"a", "it stays as it is",
                       "Q, K, V, Y grow with N, but S and P grow with N squared"},
                      {"b", "it about doubles", ""},
                      {"c", "it is about fourfold",
                       "S and P quadruple, but the fused bytes double as well: take the ratio"}}},
       .hints = {"Write the factor as a formula in N and d."}},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_01_count_the_bytes{
    .folder = "01-count-the-bytes", .title = "count the bytes", .make = lab_count_the_bytes};

}  // namespace fuseline::lab
