// What an exported folder holds, without a toolkit: a folder made by hand, its launcher for C
// compiled and run, and its loader for Python run, on a driver that prints what it is asked for.
#include "cuda/export/export_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fuseline::cuda {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// libcuda with the functions that a launcher takes. Maps must start at multiples of 64 bytes.
constexpr const char* kFakeDriver = R"(
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int cuModuleLoadData(void **m, const void *i) { *m = malloc(1); return memcmp(i, "code", 4) != 0; }
int cuModuleUnload(void *m) { free(m); return 0; }
int cuModuleGetFunction(void **f, void *m, const char *n) { (void)m; *f = strdup(n); return 0; }
int cuFuncSetAttribute(void *f, int a, int v) { printf("%s attribute %d %d\n", (char *)f, a, v); return 0; }
int cuMemAlloc_v2(uint64_t *a, size_t n) { (void)n; *a = 0x9000; return 0; }
int cuMemFree_v2(uint64_t a) { printf("free %llx\n", (unsigned long long)a); return 0; }
int cuMemsetD8_v2(uint64_t a, unsigned char v, size_t n) { (void)a; printf("fill %d %zu\n", v, n); return 0; }
int cuMemcpyHtoD_v2(uint64_t a, const void *s, size_t n) { (void)a; printf("upload %d %zu\n", *(const unsigned char *)s, n); return 0; }
int cuGetErrorString(int r, const char **t) { (void)r; *t = "as a test wants"; return 0; }
int cuTensorMapEncodeTiled(void *m, int t, uint32_t r, void *a, const uint64_t *s, const uint64_t *st,
                           const uint32_t *b, const uint32_t *e, int i, int sw, int pr, int f) {
  if ((uintptr_t)m % 64 != 0 || e[0] != 1 || i != 0 || f != 0) return 1;
  printf("map type %d rank %u at %llx sizes %d %d stride %d box %u %u swizzle %d %d\n", t, r,
         (unsigned long long)(uintptr_t)a, (int)s[0], (int)s[1], (int)st[0], b[0], b[1], sw, pr);
  memset(m, 0x55, 128);
  return 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **p, void **extra) {
  uint64_t first, second;
  (void)stream; (void)extra;
  memcpy(&first, p[0], 8);
  memcpy(&second, (char *)p[1] + 128, 8);
  printf("%s %u %u %u / %u %u %u shared %u: %llx, %02x, %llx\n", (char *)f, gx, gy, gz, bx, by, bz, shared,
         (unsigned long long)first, *(unsigned char *)p[1], (unsigned long long)second);
  fflush(stdout);
  return 0;
}
)";

constexpr const char* kProgram = R"(
#include <stdio.h>
#include "fuseline_kernels.h"
int main(int argc, char **argv) {
  fuseline_kernels *k;
  const char *problem = fuseline_open(argv[argc - 1], &k);
  if (problem != NULL) return puts(problem), 1;
  uint64_t at[FUSELINE_TENSORS] = {0};
  at[FUSELINE_TENSOR_x] = 0x1000;
  problem = fuseline_run(k, FUSELINE_OPERATOR_all, at, NULL);
  puts(problem);
  at[FUSELINE_TENSOR_y_2_] = 0x2000;
  if ((problem = fuseline_run(k, FUSELINE_OPERATOR_all, at, NULL)) != NULL) return puts(problem), 1;
  fuseline_close(k);
  return 0;
}
)";

constexpr const char* kPython = R"(
import sys
sys.path.insert(0, sys.argv[1])
import fuseline_kernels
k = fuseline_kernels.Kernels.__new__(fuseline_kernels.Kernels)
real, sys.modules['torch'] = sys.modules.get('torch'), None  # without PyTorch
k.__init__(sys.argv[1])
k.workspace = lambda index: 0x9000
print(k.all.inputs, k.all.outputs, flush=True)
k.all.run({0: 0x1000, 1: 0x2000}, None)
)";

// Autograd without PyTorch: what the loader registers, called as autograd would.
constexpr const char* kGradientInPython = R"(
import sys, types
sys.path.insert(0, sys.argv[1])
import fuseline_kernels
class Tensor:
    device = 'cuda'
    def __init__(self, name): self.name, self.shape = name, 'shape of ' + name
    def contiguous(self): return self
    def zero_(self): return self
    def reshape(self, shape): print(self.name, 'as', shape); return self
class Op:
    def register_autograd(self, compute, setup_context): self.compute, self.keep = compute, setup_context
    def __call__(self, *given): print('backward of', *[t.name for t in given]); return Tensor('d_x'), Tensor('d_w')
names = ['x', 'w', 'h', 's', 'part', 'd_h', 'd_s', 'd_x', 'd_w']
kernels = types.SimpleNamespace(tensors=[{'name': n} for n in names])
fuseline_kernels._empty = lambda torch, described, device: Tensor('zeros for ' + described['name'])
def operator(**described): return types.SimpleNamespace(described=described, op=Op())
forward = operator(inputs=[0, 1], changed=[], outputs=[2, 3, 4])
backward = operator(inputs=[4, 1, 5, 6], outputs=[7, 8], gradients=[(5, 2), (6, 3), (7, 0), (8, 1)])
fuseline_kernels._register_gradient(kernels, forward, backward, None)
class Context:
    def save_for_backward(self, *tensors): self.saved_tensors = tensors
    def set_materialize_grads(self, on): print('materialized', on)
ctx = Context()
forward.op.keep(ctx, [Tensor('x'), Tensor('w')], (Tensor('h'), Tensor('s'), Tensor('part')))
print('kept', *[t.name for t in ctx.saved_tensors])
forward.op.compute(ctx, None, Tensor('gradient of s'), None)
)";

std::vector<std::byte> bytes(std::size_t count, int value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

// One launch with an address of each kind and a map.
Exported by_hand() {
  Exported e;
  e.name = "by-hand";
  e.gpu = "h200";
  e.gpu_title = "NVIDIA H200";
  e.hash = "0123456789abcdef";
  e.command = "fuseline program export by-hand.fuse";
  e.checked = "the rules of programs";
  e.tensors = {{.name = "x",
                .symbol = "[M,N]",
                .role = Role::input,
                .rows = 8,
                .cols = 64,
                .row_bytes = 128,
                .bytes = 1280},
               {.name = "y(2)",
                .symbol = "[M,1]",
                .role = Role::output,
                .dtype = Dtype::fp32,
                .rows = 8,
                .cols = 1,
                .row_bytes = 4,
                .bytes = 288}};
  e.workspaces = {{.bytes = 3, .contents = bytes(3, 7)}};
  e.codes = {{.name = "twice", .text = "// twice\n"}};
  e.codes[0].ptx = ".version 8\n";
  e.codes[0].cubin = {'c', 'o', 'd', 'e'};
  RecordedLaunch l{.program = "twice", .function = "twice_kernel", .code = 0};
  l.shape.grid[0] = 5;
  l.shape.block[0] = 128;
  l.shape.shared_bytes = 65536;
  l.parameters = {bytes(12, 0), bytes(192, 0)};
  l.addresses = {{.parameter = 0, .offset = 0, .target = 1, .addend = 16},
                 {.parameter = 1, .offset = 128, .target = -1, .addend = 2}};
  l.maps = {{.at = {.parameter = 1, .offset = 0, .target = 0, .addend = 128},
             .map = {.type = 9,
                     .rank = 2,
                     .swizzle = 3,
                     .promotion = 2,
                     .sizes = {64, 7},
                     .strides = {128},
                     .box = {64, 4}}}};
  e.launches = {l};
  ExportedOperator all{.name = "all"};
  all.launches = {0};
  all.inputs = {0};
  all.outputs = {1};
  e.operators = {all};
  e.programs = {"twice:  for each tile\n"};
  return e;
}

class ExportedFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fuseline-exported-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    for (const auto& [name, text] : export_files(by_hand())) {
      fs::create_directories((folder_ / name).parent_path());
      std::ofstream(folder_ / name, std::ios::binary) << text;
    }
    std::ofstream(folder_ / "driver.c") << kFakeDriver;
    std::ofstream(folder_ / "main.c") << kProgram;
    std::ofstream(folder_ / "main.py") << kPython;
    std::ofstream(folder_ / "gradient.py") << kGradientInPython;
    if (run("cc --version").second != 0) GTEST_SKIP() << "no C compiler here";
    const auto [text, status] =
        run("cc -std=c11 -shared -fPIC -o libcuda.so.1 -xc driver.c "
            "-D_GNU_SOURCE -Wno-implicit-function-declaration");
    ASSERT_EQ(status, 0) << text;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::pair<std::string, int> run(const std::string& command) const {
    const std::string line = "cd '" + folder_.string() + "' && { " + command + "; } 2>&1";
    std::FILE* pipe = ::popen(line.c_str(), "r");
    std::string text;
    std::array<char, 512> part{};
    while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
    return {text, ::pclose(pipe)};
  }

  fs::path folder_;
};

constexpr const char* kLaunched =
    "map type 9 rank 2 at 1080 sizes 64 7 stride 128 box 64 4 swizzle 3 2\n"
    "twice_kernel 5 1 1 / 128 1 1 shared 65536: 2010, 55, 9002\n";

TEST_F(ExportedFolder, LauncherForCCompilesAndLaunches) {
  const auto [compiled, status] =
      run("cc -std=c11 -pedantic -Wall -Wextra -Werror -o program main.c fuseline_kernels.c -ldl "
          "-Wno-unused-value -Wno-unused-parameter");
  ASSERT_EQ(status, 0) << compiled;
  const auto [out, done] = run("LD_LIBRARY_PATH=. LSAN_OPTIONS=detect_leaks=0 ./program .");
  EXPECT_EQ(done, 0) << out;
  EXPECT_THAT(out, HasSubstr("fill 0 3\nupload 7 3\n"));
  EXPECT_THAT(out, HasSubstr("twice_kernel attribute 8 65536\n"));
  EXPECT_THAT(out, HasSubstr("twice_kernel needs the tensor y_2_\n"));
  EXPECT_THAT(out, HasSubstr(kLaunched));
  EXPECT_THAT(out, HasSubstr("free 9000\n"));
}

TEST_F(ExportedFolder, LauncherSaysWhatIsMissing) {
  const auto [compiled, status] = run("cc -std=c11 -o program main.c fuseline_kernels.c -ldl");
  ASSERT_EQ(status, 0) << compiled;
  EXPECT_THAT(run("LD_LIBRARY_PATH=. ./program elsewhere").first,
              HasSubstr("elsewhere/twice.cubin cannot be read"));
  std::ofstream(folder_ / "twice.cubin") << "else";
  EXPECT_THAT(run("LD_LIBRARY_PATH=. ./program .").first,
              HasSubstr("CUDA, twice: as a test wants"));
}

TEST_F(ExportedFolder, LoaderForPythonLaunchesTheSame) {
  if (run("python3 --version").second != 0) GTEST_SKIP() << "no Python here";
  const auto [out, done] = run("LD_LIBRARY_PATH=. python3 -B main.py .");
  EXPECT_EQ(done, 0) << out;
  EXPECT_THAT(out, HasSubstr("['x'] ['y_2_']\n"));
  EXPECT_THAT(out, HasSubstr(kLaunched));
}

// Nothing was made of the first result: its gradient is zero.
TEST_F(ExportedFolder, LoaderForPythonGivesAutogradItsGradient) {
  if (run("python3 --version").second != 0) GTEST_SKIP() << "no Python here";
  const auto [out, done] = run("python3 -B gradient.py .");
  EXPECT_EQ(done, 0) << out;
  EXPECT_EQ(out,
            "materialized False\nkept part w\n"
            "backward of part w zeros for h gradient of s\nd_x as shape of x\n"
            "d_w as shape of w\n");
}

TEST(ExportFiles, AreAllThere) {
  const auto files = export_files(by_hand());
  for (const char* name :
       {"twice.cu", "twice.ptx", "twice.cubin", "kernels.json", "README.md", "fuseline_kernels.h",
        "fuseline_kernels.c", "fuseline_kernels.py", "source/epilogue/map.cuh"})
    EXPECT_TRUE(files.contains(name)) << name;
  EXPECT_EQ(files.at("twice.cubin"), "code");
  const std::string& page = files.at("README.md");
  for (const char* part : {"NVIDIA H200", "0123456789abcdef", "the rules of programs",
                           "| `y_2_` | output | fp32 | 8 x 1 | 4 |", "none is known"})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST(ExportFiles, NamesAreIdentifiers) {
  EXPECT_EQ(identifier("w_qkv"), "w_qkv");
  EXPECT_EQ(identifier("llama2-7b"), "llama2_7b");
  EXPECT_EQ(identifier("2x"), "t2x");
}

}  // namespace
}  // namespace fuseline::cuda
