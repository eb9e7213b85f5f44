// Lab 12: the backward pass, what it keeps and what it computes again.
#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "lab/plan_bytes.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "model/programs/own_plan.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"

namespace fuseline::lab {

namespace {

constexpr std::int64_t kGradientTile = 128;  // rows that a partial sum of a column stands for

struct SoftmaxSizes {
  std::int64_t M = 1, S = 1;
};

// What every file begins with. In fp32, so that a factor that is off by a sixteenth shows.
std::string softmax_tensors(const SoftmaxSizes& s) {
  return fmt::format(
      "fuse 1\n\n"
      "size M = {}, S = {}\n\n"
      "input p[M,S], fp32\n"
      "input dp[M,S], fp32\n"
      "output ds[M,S], fp32\n",
      s.M, s.S);
}

// ds = factor · p (dp - sum(p dp)). The parts are replaced to make known mistakes.
struct SoftmaxText {
  std::string factor;
  std::string summed = "both";     // of which the row's sum is: both = p dp
  std::string reduce = "row_sum";  // "": there is no sum
  std::string joined = "d - z";
  std::string scaled = "out";  // what is multiplied by the factor: out, or the sum alone
};
std::string softmax_text(const SoftmaxSizes& sizes, const SoftmaxText& t) {
  std::string text = softmax_tensors(sizes) +
                     "\nprogram d_softmax\n  for each row of [M, S]\n"
                     "  a = load p[M,S]\n  d = load dp[M,S]\n";
  if (t.reduce.empty() || t.summed == "both") text += "  both = a * d\n";
  if (t.reduce.empty()) {
    text += "  out = copy(both)\n";
  } else {
    text += fmt::format("  {} = {}({})\n", t.scaled == "out" ? "z" : "z1", t.reduce, t.summed);
    if (t.scaled != "out") text += fmt::format("  z = z1 * {}\n", t.factor);
    text += fmt::format("  rest = {}\n  out = a * rest\n", t.joined);
  }
  if (t.scaled == "out" && !t.factor.empty()) {
    return text + fmt::format("  scaled = out * {}\n  store ds[M,S] = scaled\n", t.factor);
  }
  return text + "  store ds[M,S] = out\n";
}

ProgramKey softmax_key(const Student& student) {
  const SoftmaxSizes sizes{.M = student.between("lab12.rows", 70, 110),
                           .S = 8 * student.between("lab12.columns", 15, 40)};
  ProgramKey key;
  key.gpu = "h100";
  key.factor = student.factor("lab12.factor");
  key.head =
      "# Task 12.9: write the program below. The tensors stay as they are.\n"
      "#   fuseline program check program.fuse   whether it is legal, and why not\n"
      "#   fuseline program verify program.fuse  whether it computes what it says\n" +
      softmax_tensors(sizes) + "\n";
  const SoftmaxText right{.factor = fmt::format("{:g}", key.factor)};
  key.wanted = softmax_text(sizes, right);
  key.outputs = {"ds"};
  key.most = plan_bytes(whole_plan(own_programs(key.wanted)));
  const auto mistake = [&](const char* diagnosis, const auto& change) {
    SoftmaxText wrong = right;
    change(wrong);
    key.mistakes.push_back({softmax_text(sizes, wrong), diagnosis});
  };
  mistake("the row's sum is missing: every probability depends on every score of its row",
          [](SoftmaxText& t) { t.reduce.clear(); });
  mistake("the sum is of p times dp, not of dp alone", [](SoftmaxText& t) { t.summed = "d"; });
  mistake("the sum is of p times dp, not of p alone", [](SoftmaxText& t) { t.summed = "a"; });
  mistake("the row's sum is taken, not its mean", [](SoftmaxText& t) { t.reduce = "row_mean"; });
  mistake("the sum is taken away from dp, not added", [](SoftmaxText& t) { t.joined = "d + z"; });
  mistake("the factor belongs to the whole result, not to the sum alone",
          [](SoftmaxText& t) { t.scaled = "sum"; });
  mistake("that is without the factor of your task", [](SoftmaxText& t) { t.factor.clear(); });
  return key;
}

Lab lab_backward(const Student& student) {
  const std::string model =
      student.pick_name("lab12.model", {"llama2-7b", "llama2-13b", "llama3-8b", "mistral-7b"});
  const std::string gpu_name = student.pick_name("lab12.gpu", {"h100", "h200", "a100"});
  const ModelConfig config = load_model(model);
  const Gpu gpu = load_gpu(gpu_name);
  const Workload forward{.batch = 1, .seq = student.pick("lab12.tokens", {1536, 2560, 3072})};
  Workload train = forward;
  train.phase = Phase::train;
  const auto M = static_cast<double>(forward.seq), D = static_cast<double>(config.D);
  const auto F = static_cast<double>(config.F), L = static_cast<double>(config.layers);
  const double product = 2 * M * D * 2 * F;  // FLOPs of the forward product of gate and up
  const double matrices = 2 * (M * 2 * F + M * D + 2 * F * D);  // bytes: dy, x and dw, in bf16
  const double act = M * F * 2;                                 // bytes of one layer's act
  const auto strips = static_cast<double>(ceil_div(forward.seq, kGradientTile));
  const double partials = strips * D * 4;
  const auto time_of = [&](const Workload& work) {
    const Plan plan = make_plan("coda", config, work, plan_target(gpu));
    return simulate(plan, gpu, Fidelity::hierarchy).time;
  };
  const double predicted = time_of(train) / time_of(forward);
  const ProgramKey softmax = softmax_key(student);

  Lab lab;
  lab.intro = fmt::format(
      "Your model: **{}**, {} layers, D = {}, F = {}, in bf16, on **{}**.\n"
      "A batch has M = {} tokens: one sequence. Gate and up are one product,\n"
      "y[M, 2F] = x[M, D] w[2F, D]ᵀ, and act[M, F] = silu(gate) · up.\n"
      "Your commands take `--model {} --gpu {} --batch 1 --seq {}`.",
      config.title, config.layers, grouped(config.D), grouped(config.F), gpu.title,
      grouped(forward.seq), model, gpu_name, forward.seq);
  lab.tasks = {
      {.id = "12.1",
       .text = "How many FLOPs does the backward pass of the product of gate and up take?",
       .key = NumberKey{2 * product,
                        Dimension::flops,
                        "GFLOP",
                        3,
                        {{product, "there are two products: one for dx, one for dw"},
                         {3 * product, "that is with the forward product"},
                         {product / 2, "a multiply and an add count two FLOPs, in two products"},
                         {2 * product * L, "that is the whole model: one layer is asked for"}}},
       .hints = {"dx[M, D] = dy w, and dw[2F, D] = dyᵀ x.", "Each has 2 M · D · 2F FLOPs."}},
      {.id = "12.2",
       .text = "How many bytes does the product that makes dw[2F, D] move at least, with dw in\n"
               "bf16?",
       .key = byte_key(matrices, {{matrices - 2 * M * 2 * F, "dy is read: it is as large as y"},
                                  {matrices - 2 * M * D, "x is read too: it was kept"},
                                  {matrices - 2 * 2 * F * D, "dw is written: it is as large as w"},
                                  {matrices + 2 * 2 * F * D, "w itself is not needed for dw"},
                                  {2 * matrices, "bf16 has 2 bytes an element"},
                                  {matrices / 2, "that counts elements: each has 2 bytes"}}),
       .hints = {"Which two matrices are multiplied, and how large is what comes out?",
                 "2 (M · 2F + M · D + 2F · D)."}},
      {.id = "12.3",
       .text = "dw of the next product needs act. If no layer keeps act until the backward pass,\n"
               "and each computes it again from gate and up: how much memory does that save?",
       .key = byte_key(L * act,
                       {{act, "that is one layer: all of them keep theirs"},
                        {L * act * 2, "act has F columns: gate and up stay"},
                        {L * act * 3, "act alone is not kept: gate and up stay"},
                        {L * act / 2, "that counts elements: each has 2 bytes"},
                        {L * M * D * 2, "act has F columns, not D"}},
                       "GB"),
       .hints = {"One matrix [M, F] in every layer.", "layers x M x F x 2 bytes."}},
      {.id = "12.4",
       .text = "The kernel of SwiGLU's gradient computes act again. What does that cost in HBM\n"
               "traffic, compared with keeping act?",
       .key = ChoiceKey{{{"a", "gate and up are read from HBM one more time than they were before",
                          "the gradient of SwiGLU needs both anyway"},
                         {"b", "nothing, since all its operands are on chip in this kernel anyway",
                          "the product for dw, another kernel, reads act: where does it get it?"},
                         {"c", "act is written to HBM a second time, for the kernel that makes dw",
                          ""}}},
       .hints = {"Who reads act, and from where?"}},
      {.id = "12.5",
       .text = "The gradient of a norm's weights γ[D] is a sum over all rows. Each strip of 128\n"
               "rows stores its own partial sums in fp32. How many bytes are that?",
       .key = byte_key(partials,
                       {{partials / 2, "partial sums are in fp32: 4 bytes each"},
                        {partials / strips, "that is one strip: each has sums of its own"},
                        {M * D * 4, "a strip of 128 rows makes one sum for each column"},
                        {M * 4, "one sum for each column, not for each row"}},
                       "kB"),
       .hints = {"How many strips, and how many columns?", "4 D x (M/128, rounded up)."}},
      {.id = "12.6",
       .text =
           "Fused attention throws its probabilities away, and its backward pass computes them\n"
           "again from q and k. Why is that faster than reading them?",
       .key =
           ChoiceKey{
               {{"a", "they are one number for each pair of tokens: more bytes than q and k", ""},
                {"b", "they are not needed: the gradient takes nothing but q, k, v and dy",
                 "dv = pᵀ dy needs them, and so does ds"},
                {"c", "they would be read in fp32, because bf16 is too coarse for a gradient",
                 "they are multiplied in bf16 in both passes: compare numbers of elements"}}},
       .hints = {"Lab 5: how large are q, k and the probabilities?"}},
      {.id = "12.7",
       .text = "How many times the FLOPs of its forward pass does fused attention's backward pass\n"
               "take? Count products of tokens x tokens x width alone.",
       .key = ratio_key(2.5,
                        {{2, "the scores are computed again: that is a product more"},
                         {3.5, "that is with the forward pass"},
                         {1.5, "dq, dk and dv are three; dp and the scores again are products too"},
                         {5, "that is the number of products: how many has the forward pass?"},
                         {3, "count again: scores, dp, dv, dq and dk"}}),
       .hints = {"Forward: q kᵀ and p v.", "Backward: q kᵀ again, dy vᵀ, pᵀ dy, ds k, dsᵀ q."}},
      {.id = "12.8",
       .text = "How many times as long as the forward pass alone is `coda` predicted to take for\n"
               "both passes of a block (`--phase train`)?",
       .key = ratio_key(predicted,
                        {{1 / predicted, "upside down"},
                         {predicted - 1, "that is the backward pass alone: train has both passes"},
                         {3, "that counts the FLOPs of products: look at the times"}}),
       .hints = {fmt::format("`fuseline predict --model {} --gpu {} --batch 1 --seq {} --policy "
                             "coda`, with and without `--phase train`",
                             model, gpu_name, forward.seq)}},
      {.id = "12.9",
       .text = fmt::format(
           "Write `program.fuse`: the gradient of p = softmax({0:g} s) in one program of whole\n"
           "rows, ds = {0:g} p (dp - Σ p dp). The factor is yours alone. Load p and dp once.",
           softmax.factor),
       .key = softmax,
       .hints = {"`for each row of [M, S]` is its first line; `row_sum` adds up a row.",
                 "Four lines of maths: the product, its sum, the difference, the product with p; "
                 "then the factor."},
       .points = 3},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_12_backward{
    .folder = "12-backward", .title = "the backward pass", .make = lab_backward};

}  // namespace fuseline::lab
