// Lab 10: an epilogue as a program of one's own.
#include <fmt/format.h>

#include "base/format.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "lab/plan_bytes.h"
#include "model/programs/own_plan.h"
#include "model/programs/unfused_programs.h"
#include "sim/gpu/gpu.h"

namespace fuseline::lab {

namespace {

constexpr std::int64_t kProgramTile = 128;  // columns of a row that a partial stands for

struct ProgramSizes {
  std::int64_t M = 1, D = 1, F = 1;
};

// What every file begins with. `type`: of b, r and act. Results that are judged are in fp32, where
// a factor that is off by a sixteenth shows however small its part of the result is.
std::string program_tensors(const ProgramSizes& s, const std::string& type) {
  return fmt::format(
      "fuse 1\n\n"
      "size M = {0}, D = {1}, F = {2}\n\n"
      "input x[M,D]\n"
      "weight w[F,D]\n"
      "weight b[1,F], {3}\n"
      "input s[M,1], fp32\n"
      "input r[M,F], {3}\n"
      "output act[M,F], {3}\n",
      s.M, s.D, s.F, type);
}

// act = swish(s · x wᵀ + b) + r, swish(z) = z · sigmoid(factor · z); with the largest number of
// each row where it is asked for. The parts are replaced to make known mistakes.
struct ProgramText {
  std::string factor = "1";
  std::string type = "fp32";
  std::string gate = "factor * z";
  bool rows = true, bias = true, rest = true;  // each step of the epilogue
  bool rest_before = false;                    // r is added ahead of swish
  bool bias_before = false;                    // b is added ahead of s
  bool largest = false;
  std::string largest_of = "o";
};
std::string program_text(const ProgramSizes& sizes, const ProgramText& t) {
  std::string gate = t.gate;
  if (const std::size_t at = gate.find("factor"); at != std::string::npos) {
    gate.replace(at, 6, t.factor);
  }
  std::string text = program_tensors(sizes, t.type);
  if (t.largest) {
    text +=
        fmt::format("activation parts[M,⌈F/{}⌉], fp32\noutput largest[M,1], fp32\n", kProgramTile);
  }
  text +=
      fmt::format("\nlet swish(z) = z * sigmoid({})\n\nprogram up\n  y = x[M,D] · w[F,D]ᵀ\n", gate);
  std::string value = "y";
  const auto step = [&](const char* load, const char* name, const std::string& made) {
    text += fmt::format("{}  {} = {}\n", load, name, made);
    value = name;
  };
  const auto add_rest = [&](const char* name) {
    step("  rest = load r[M,F]\n", name, value + " + rest");
  };
  const auto add_bias = [&] { step("  bias = load_cols b[1,F]\n", "biased", value + " + bias"); };
  if (t.bias && t.bias_before) add_bias();
  if (t.rows) step("  rows = load_rows s[M,1]\n", "scaled", value + " * rows");
  if (t.bias && !t.bias_before) add_bias();
  if (t.rest_before) add_rest("early");
  step("", "a", fmt::format("swish({})", value));
  if (t.rest && !t.rest_before) add_rest("o");
  text += fmt::format("  store act[M,F] = {}\n", value);
  if (t.largest) {
    text += fmt::format(
        "  store parts[M,⌈F/{0}⌉] = max({1})\n\n"
        "program finish\n"
        "  for each row of [M, ⌈F/{0}⌉]\n"
        "  p = load parts[M,⌈F/{0}⌉]\n"
        "  m = row_max(p)\n"
        "  store_rows largest[M,1] = m\n",
        kProgramTile, t.rest && !t.rest_before ? t.largest_of : value);
  }
  return text;
}

// What the student gets: tensors, and where to go on.
std::string program_head(const ProgramSizes& sizes) {
  return "# Tasks 10.7 and 10.8: write the programs below. The tensors stay as they are.\n"
         "#   fuseline program check program.fuse    whether it is legal, and why not\n"
         "#   fuseline program explain program.fuse  what each line moves\n"
         "#   fuseline program verify program.fuse   whether it computes what it says\n" +
         program_tensors(sizes, "fp32") + "\n";
}

ProgramKey program_key(const Student& student, bool largest) {
  // Some tiles at the edges, and rows that are no multiple of a tile.
  const ProgramSizes sizes{.M = student.between("lab10.rows", 70, 110),
                           .D = 8 * student.between("lab10.depth", 9, 17),
                           .F = 8 * student.between("lab10.columns", 35, 60)};
  ProgramKey key;
  key.gpu = "h100";
  key.factor = student.factor("lab10.factor");
  key.head = program_head(sizes);
  const ProgramText right{.factor = fmt::format("{:g}", key.factor), .largest = largest};
  key.wanted = program_text(sizes, right);
  key.outputs = {"act"};
  if (largest) key.outputs.emplace_back("largest");
  // Both tasks judge the same file, so each leaves room for what the other asks for.
  ProgramText all = right;
  all.largest = true;
  key.most = plan_bytes(whole_plan(own_programs(program_text(sizes, all))));
  const auto mistake = [&](const char* diagnosis, const auto& change) {
    ProgramText wrong = right;
    change(wrong);
    key.mistakes.push_back({program_text(sizes, wrong), diagnosis});
  };
  if (largest) {
    mistake("that is the largest number before r is added",
            [](ProgramText& t) { t.largest_of = "a"; });
  }
  mistake("that is without the factor of your task", [](ProgramText& t) { t.gate = "z"; });
  mistake("the factor belongs inside sigmoid, not in front of it",
          [&](ProgramText& t) { t.gate = "z) * (" + t.factor; });
  mistake("r is added before swish: it belongs behind it",
          [](ProgramText& t) { t.rest_before = true; });
  mistake("b is multiplied by s too: it is added behind it",
          [](ProgramText& t) { t.bias_before = true; });
  mistake("r is missing: it is added at the end", [](ProgramText& t) { t.rest = false; });
  mistake("the bias is missing", [](ProgramText& t) { t.bias = false; });
  mistake("the rows are not multiplied by s", [](ProgramText& t) { t.rows = false; });
  return key;
}

Lab lab_program(const Student& student) {
  const ProgramSizes sizes{.M = student.pick("lab10.many_rows", {2048, 3072, 4096}),
                           .D = student.pick("lab10.width", {2560, 4096, 5120}),
                           .F = student.pick("lab10.wide", {8064, 11008, 13824})};
  const ProgramFile one = own_programs(program_text(sizes, {.type = "bf16"}));
  const ProgramFile both = own_programs(program_text(sizes, {.type = "bf16", .largest = true}));
  const double fused = plan_bytes(whole_plan(one)).as_double();
  const double apart = plan_bytes(unfused_programs(one).value()).as_double();
  const double with_largest = plan_bytes(whole_plan(both)).as_double();
  const double wide = static_cast<double>(sizes.M) * static_cast<double>(sizes.F) * 2;
  const double weights = static_cast<double>(sizes.F) * static_cast<double>(sizes.D) * 2;
  const double partials =
      static_cast<double>(sizes.M * ceil_div(sizes.F, kProgramTile)) * 4;  // fp32
  const auto tiles_across = static_cast<double>(ceil_div(sizes.F, kProgramTile));

  Lab lab;
  lab.intro = fmt::format(
      "Your product: x[M, D] w[F, D]ᵀ in bf16 with M = {}, D = {}, F = {}. Behind it:\n"
      "act = swish(s · y + b) + r, with s[M, 1] in fp32, b[1, F] and r[M, F] in bf16.\n"
      "Count each kernel's distinct operands once. Tiles have {} columns of a row.\n"
      "The sizes in `program.fuse` are smaller, because the check computes it on the CPU, and\n"
      "b, r and act are in fp32 there, so that small mistakes show.",
      grouped(sizes.M), grouped(sizes.D), grouped(sizes.F), kProgramTile);
  lab.tasks = {
      {.id = "10.1",
       .text = "As one program: how many bytes go through HBM?",
       .key = byte_key(
           fused, {{fused - wide, "r and act are both as large as y: one is read, one is written"},
                   {fused - 2 * wide, "r is read and act is written: both are as large as y"},
                   {fused + 2 * wide, "y itself stays on chip: it is neither written nor read"},
                   {fused - weights, "the weights are read too"},
                   {fused / 2, "that counts elements: each has 2 bytes"}}),
       .hints = {"Three matrices are read and one is written; s and b are small but count.",
                 "2 (M D + F D + 2 M F + F) + 4 M bytes."}},
      {.id = "10.2",
       .text = "The same with a kernel for the product and one for each line that makes a tile:\n"
               "the product with s, the sum with b, swish, the sum with r. Every tile between two\n"
               "of them goes through HBM in bf16. How many bytes are that altogether?",
       .key = byte_key(
           apart, {{fused, "that is as one program"},
                   {apart - fused, "that is what fusing saves: what do the five kernels move?"},
                   {fused + 4 * wide,
                    "four tiles are made between two kernels, and each is "
                    "written and read"},
                   {apart + 2 * wide, "act is written once and not read again"},
                   {apart - wide, "one pass is missing: every tile is written and read"}}),
       .hints = {"Five kernels: write down for each what it reads and writes.",
                 "10.1, and four tiles [M, F] that are written and read."}},
      {.id = "10.3",
       .text = "A second output is the largest number of every row of act. As it stands,\n"
               "`row_max(o)` in the epilogue is refused. Why?",
       .key = ChoiceKey{{{"a", "a maximum is not linear, and an epilogue holds linear steps",
                          "swish is not linear either, and it is legal"},
                         {"b", "a tile has a part of the row, and the rest is elsewhere", ""},
                         {"c", "a row's maximum has to be in fp32, and the tile is in bf16",
                          "on chip a tile is in fp32: only what is stored is rounded"}}},
       .hints = {"`fuseline program check` says it of docs/handbook/whole-row.fuse."}},
      {.id = "10.4",
       .text = "So each tile stores one number for each of its rows, in fp32. How many bytes do\n"
               "these partials have?",
       .key = byte_key(partials,
                       {{partials / 2, "partials are in fp32: 4 bytes each"},
                        {partials / tiles_across, "that is one for a row: each tile has its own"},
                        {partials * kProgramTile,
                         "that is one for each element: a tile of 128 "
                         "columns makes one number for a row"}},
                       "kB"),
       .hints = {"How many tiles stand side by side in a row?", "4 M x (F/128, rounded up)."}},
      {.id = "10.5",
       .text =
           "What share of the bytes of both programs together (the product's, which stores the\n"
           "partials too, and the finisher's) is for the rows' largest numbers?",
       .key = NumberKey{(with_largest - fused) / with_largest,
                        Dimension::ratio,
                        "%",
                        2,
                        {{partials / with_largest,
                          "the partials are written by one kernel and read by the other"},
                         {wide / (fused + wide), "the finisher reads the partials, not act"}}},
       .hints = {"Partials written and read, and one number a row written.",
                 "(2 x 10.4 + 4 M) over (10.1 + the same)."}},
      {.id = "10.6",
       .text = "Of which result of a row can one number for each tile not be enough?",
       .key = ChoiceKey{{{"a", "the sum of the row's numbers", "the sums of the tiles add up"},
                         {"b", "the median of the row's numbers", ""},
                         {"c", "the smallest of the row's numbers",
                          "it is the smallest of the tiles' smallest ones"}}},
       .hints = {"Which can be made of the same result of each half of the row?"}},
      {.id = "10.7",
       .text =
           fmt::format("Write `program.fuse`: act = swish(s · y + b) + r in one program, where\n"
                       "swish(z) = z · sigmoid({:g} z). The factor is yours alone.",
                       program_key(student, false).factor),
       .key = program_key(student, false),
       .hints = {"docs/handbook/swish.fuse is a product with a bias and an activation.",
                 "`load_rows` gives one number for each row, `load_cols` one for each column, and "
                 "`load` a tile.",
                 "y · s first, then + b, then swish, then + r."},
       .points = 3},
      {.id = "10.8",
       .text = "The same file again: also store the largest number of each row of act to\n"
               "`output largest[M,1], fp32`. It takes partials and a finisher.",
       .key = program_key(student, true),
       .hints = {"docs/handbook/largest.fuse has the partials; `program check` writes a finisher.",
                 "Declare the partials: activation parts[M,⌈F/128⌉], fp32.",
                 "The finisher: for each row of [M, ⌈F/128⌉]; load, row_max, store_rows."},
       .points = 2},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_10_program{
    .folder = "10-own-program", .title = "write an epilogue program", .make = lab_program};

}  // namespace fuseline::lab
