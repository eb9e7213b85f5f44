// The gradient of programs, held against differences of the programs' own fp64 meaning.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/programs/gradient.h"
#include "model/programs/legality.h"
#include "model/programs/meaning.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

using Values = std::map<std::string, std::vector<double>>;

ProgramFile legal(const std::string& text) {
  ProgramFile file = read_program_text(text, "text");
  const std::vector<Diagnosis> wrong =
      file.readable() ? check_programs(file) : std::vector<Diagnosis>(file.diagnoses);
  EXPECT_TRUE(wrong.empty()) << format_problem(wrong.front().problem) << "\n" << text;
  return file;
}

// All tensors after a run; those that are given are random where `given` has none.
Values run(const Plan& plan, const Values& given, std::uint64_t seed) {
  ExactTensors exact;
  std::mt19937_64 random(seed);
  for (const Tensor& t : plan.graph.tensors()) {
    exact.emplace_back(static_cast<std::size_t>(t.rows * t.cols));
    const auto found = given.find(t.name);
    if (found != given.end())
      exact.back() = found->second;
    else if (t.role != Role::activation && t.role != Role::output)
      for (double& x : exact.back()) x = std::normal_distribution<double>()(random);
  }
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) run_meaning(plan.graph, p, exact);
  Values all;
  for (std::size_t i = 0; i < exact.size(); ++i)
    all[plan.graph.tensors()[i].name] = std::move(exact[i]);
  return all;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// For every gradient that the programs store: its product with a random direction is the
// difference of sum(d_h · h) along that direction.
void expect_gradient(const std::string& text, Products products) {
  const ProgramFile file = legal(text);
  const ProgramGradient made = program_gradient(file, {}, products);
  const std::string written = gradient_text(made.plan, "");
  const ProgramFile read = legal(written);
  ASSERT_TRUE(read.readable()) << written;
  const ProgramFile kept = legal(gradient_text(made.forward, ""));
  ASSERT_TRUE(kept.readable());
  const Plan& forward = kept.plan;
  const Values before = run(forward, {}, 1);
  Values given = before;
  std::mt19937_64 random(2);
  for (const Tensor& t : forward.graph.tensors())
    if (t.role == Role::output)
      for (std::int64_t i = 0; i < t.rows * t.cols; ++i)
        given["d_" + t.name].push_back(std::normal_distribution<double>()(random));
  const Values gradients = run(read.plan, given, 3);
  int compared = 0;
  for (const Tensor& t : forward.graph.tensors()) {
    const auto d = gradients.find("d_" + t.name);
    if ((t.role != Role::input && t.role != Role::weight) || d == gradients.end()) continue;
    std::vector<double> direction;
    for (std::int64_t i = 0; i < t.rows * t.cols; ++i)
      direction.push_back(std::normal_distribution<double>()(random));
    constexpr double kStep = 1e-6;
    double loss[2] = {};
    for (const int side : {0, 1}) {
      Values moved = before;
      for (std::size_t i = 0; i < direction.size(); ++i)
        moved[t.name][i] += (side == 0 ? -kStep : kStep) * direction[i];
      for (const Tensor& o : forward.graph.tensors())
        if (o.role == Role::output || o.role == Role::activation) moved.erase(o.name);
      const Values after = run(forward, moved, 1);
      for (const Tensor& o : forward.graph.tensors())
        if (o.role == Role::output) loss[side] += dot(given.at("d_" + o.name), after.at(o.name));
    }
    const double by_difference = (loss[1] - loss[0]) / (2 * kStep);
    const double by_programs = dot(d->second, direction);
    const double size = std::sqrt(dot(d->second, d->second) * dot(direction, direction));
    EXPECT_NEAR(by_programs, by_difference, 1e-6 * size + 1e-7) << t.name << "\n" << written;
    ++compared;
  }
  EXPECT_GT(compared, 0) << written;
}

void expect_gradient(const std::string& text) {
  for (const Products products : {Products::again, Products::kept}) expect_gradient(text, products);
}

std::string with_product(const std::string& body, const std::string& more = "") {
  return "fuse 1\nsize M = 6, K = 5, N = 8\nlet swish(x) = x * sigmoid(1.702 * x)\n"
         "let mixed(a, b) = a * tanh(b) + b\ninput x[M,K]\nweight w[N,K]\nweight b[1,N]\n"
         "input r[M,1], fp32\ninput t[M,N]\noutput h[M,N]\n" +
         more + "program p\n  y = x[M,K] · w[N,K]ᵀ\n" + body;
}

TEST(ProgramGradient, OfAProductAlone) { expect_gradient(with_product("  store h[M,N] = y\n")); }

TEST(ProgramGradient, OfBiasAndResidual) {
  expect_gradient(
      with_product("  b = load_cols b[1,N]\n  z = y + b\n  t = load t[M,N]\n  u = z + t\n"
                   "  store h[M,N] = u\n"));
}

TEST(ProgramGradient, OfDefinedFunctions) {
  expect_gradient(
      with_product("  b = load_cols b[1,N]\n  z = y + b\n  a = swish(z)\n"
                   "  t = load t[M,N]\n  m = mixed(a, t)\n  store h[M,N] = m\n"));
}

TEST(ProgramGradient, OfRowsThatScale) {
  expect_gradient(
      with_product("  r = load_rows r[M,1]\n  s = exp(r)\n  z = y * s\n"
                   "  c = z * 0.5\n  d = c + -2\n  q = square(d)\n"
                   "  store h[M,N] = q\n"));
}

TEST(ProgramGradient, OfAQuotient) {
  expect_gradient(
      with_product("  t = load t[M,N]\n  e = exp(t)\n  q = y / e\n  r = load_rows r[M,1]\n"
                   "  s = exp(r)\n  z = q / s\n  store h[M,N] = z\n"));
}

TEST(ProgramGradient, OfAValueThatIsUsedTwice) {
  expect_gradient(
      with_product("  a = tanh(y)\n  b = a * y\n  store h[M,N] = b\n  c = -a\n"
                   "  store g[M,N] = c\n",
                   "output g[M,N]\n"));
}

// Rows of one tensor that are loaded apart share no element.
TEST(ProgramGradient, OfRowsOfOneTensor) {
  expect_gradient(
      with_product("  a = load_cols v[0:1, N]\n  p = y * a\n  c = load_cols v[1:2, N]\n"
                   "  q = p + c\n  store h[M,N] = q\n",
                   "weight v[2,N]\n"));
}

TEST(ProgramGradient, OfPairs) {
  expect_gradient(
      "fuse 1\nsize M = 6, K = 5, N = 8\ninput x[M,K]\nweight w[N,K]\noutput h[M,4]\n"
      "program p\n  y = x[M,K] · w[N,K]ᵀ, pairs\n  a = swiglu(y pairs)\n  store h[M,4] = a\n");
}

TEST(ProgramGradient, OfOperandsThatAreStoredTheOtherWay) {
  expect_gradient(
      "fuse 1\nsize M = 6, K = 5, N = 8\ninput x[K,M]\nweight w[K,N]\noutput h[M,N]\n"
      "program p\n  y = x[K,M]ᵀ · w[K,N]\n  a = sigmoid(y)\n  store h[M,N] = a\n");
}

TEST(ProgramGradient, OfTwoProgramsAndATensorThatBothRead) {
  expect_gradient(
      "fuse 1\nsize M = 6, K = 5, N = 8\ninput x[M,K]\nweight w[N,K]\nweight v[N,N]\n"
      "activation a[M,N]\noutput h[M,N]\n"
      "program up\n  y = x[M,K] · w[N,K]ᵀ\n  s = silu(y)\n  store a[M,N] = s\n"
      "program down\n  y = a[M,N] · v[N,N]ᵀ\n  t = load a[M,N]\n  z = y + t\n  store h[M,N] = z\n");
}

TEST(ProgramGradient, OfANormByRows) {
  expect_gradient(
      "fuse 1\nsize M = 6, N = 40\ninput x[M,N]\nweight w[1,N]\noutput h[M,N]\n"
      "program norm\n  for each row of [M, N]\n  x = load x[M,N]\n  m = row_mean(x)\n  c = x - m\n"
      "  s = row_sum_squares(c)\n  v = s * 0.025\n  e = v + 1e-5\n  i = rsqrt(e)\n  n = c * i\n"
      "  w = load_cols w[1,N]\n  o = n * w\n  store h[M,N] = o\n");
}

// Partials, their finisher, and the tile that both of them scale.
TEST(ProgramGradient, OfStatisticsAcrossTiles) {
  expect_gradient(
      "fuse 1\nsize M = 6, K = 5, N = 256\ninput x[M,K]\nweight w[N,K]\nactivation y[M,N]\n"
      "activation p[M,2], fp32\nactivation s[M,1], fp32\noutput h[M,N]\n"
      "program up\n  y = x[M,K] · w[N,K]ᵀ\n  store y[M,N] = y\n  store p[M,2] = sum_squares(y)\n"
      "program finish\n  for each row of [M, 2]\n  p = load p[M,2]\n  q = row_sum(p)\n"
      "  e = q + 0.5\n  i = rsqrt(e)\n  store_rows s[M,1] = i\n"
      "program scale\n  for each tile of [M, N]\n  y = load y[M,N]\n  s = load_rows s[M,1]\n"
      "  z = y * s\n  store h[M,N] = z\n");
}

bool multiplies(const Plan& plan, const std::string& program) {
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases)
      if (p.name == program) return std::holds_alternative<GemmMainloop>(p.mainloop);
  ADD_FAILURE() << "no program " << program;
  return false;
}

// The text of the chapter "Write an epilogue": z is all that its derivatives need.
const char* const kBiasAndSwish =
    "  b = load_cols b[1,N]\n  z = y + b\n  a = swish(z)\n  store h[M,N] = a\n";

TEST(ProgramGradient, ComputesAProductAgainOrLoadsATileThatWasKept) {
  const ProgramFile file = legal(with_product(kBiasAndSwish));
  const ProgramGradient again = program_gradient(file);
  EXPECT_FALSE(again.keeps);
  EXPECT_TRUE(multiplies(again.plan, "d_p"));
  EXPECT_EQ(again.forward.graph.tensors().size(), file.plan.graph.tensors().size());
  const ProgramGradient kept = program_gradient(file, {}, Products::kept);
  EXPECT_TRUE(kept.keeps);
  EXPECT_FALSE(multiplies(kept.plan, "d_p"));
  EXPECT_TRUE(kept.forward.graph.find_tensor("p_z"));
  EXPECT_FALSE(kept.plan.graph.find_tensor("b"));  // z holds it already
  expect_gradient(with_product(kBiasAndSwish));
}

// y is stored by the forward pass: no product is computed again, and nothing more is kept.
TEST(ProgramGradient, LoadsWhatTheForwardPassStoredAnyway) {
  const std::string text =
      with_product("  store g[M,N] = y\n  a = swish(y)\n  store h[M,N] = a\n", "output g[M,N]\n");
  const ProgramGradient made = program_gradient(legal(text), {}, Products::kept);
  EXPECT_FALSE(made.keeps);
  EXPECT_FALSE(multiplies(made.plan, "d_p"));
  expect_gradient(text);
}

// Where the residual's gradient is the product's as well, it lies in memory once; vectors along
// columns are summed up by one program.
TEST(ProgramGradient, StoresOneGradientOnceAndSumsVectorsTogether) {
  const std::string text = with_product(
      "  t = load t[M,N]\n  s = y + t\n  b = load_cols b[1,N]\n  c = load_cols c[1,N]\n"
      "  m = s * b\n  u = m + c\n  a = swish(u)\n  store h[M,N] = a\n",
      "weight c[1,N]\n");
  const Plan made = gradient_of(legal(text));
  EXPECT_FALSE(made.graph.find_tensor("d_p_product"));
  EXPECT_EQ(made.kernels.size(), 4U);  // the epilogue's, one of sums, two products
  expect_gradient(text);
}

TEST(ProgramGradient, OfTheNamedTensorsAlone) {
  const ProgramFile file = legal(with_product("  a = swish(y)\n  store h[M,N] = a\n"));
  const Plan of_w = gradient_of(file, {"w"});
  EXPECT_TRUE(of_w.graph.find_tensor("d_w"));
  EXPECT_FALSE(of_w.graph.find_tensor("d_x"));
  const InputProblem wrong = test::problem_of([&] { (void)gradient_of(file, {"xx"}); });
  EXPECT_EQ(wrong.value, "xx");
  EXPECT_EQ(wrong.nearest, "x");
}

TEST(ProgramGradient, RefusesByNameWhatStatesNone) {
  const ProgramFile file = legal(
      "fuse 1\nsize M = 6, N = 40\ninput x[M,N]\noutput h[M,1]\n"
      "program largest\n  for each row of [M, N]\n  x = load x[M,N]\n  m = row_max(x)\n"
      "  store_rows h[M,1] = m\n");
  try {
    (void)gradient_of(file);
    FAIL() << "the gradient of a maximum was made";
  } catch (const MissingError& e) {
    EXPECT_NE(std::string(e.what()).find("row_max"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace fuseline
