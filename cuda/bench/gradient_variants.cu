// Times both passes of Hopper's gradient of attention in the forms that the registers admit: when
// products are queued (gpu::GradientForm), and none, one or two of the tiles that stay held in
// registers. All forms add the same numbers in the same order, so their results must have the same
// bits.
//
//   nvcc -std=c++20 -O2 -gencode=arch=compute_90a,code=sm_90a -I. -o gradient_variants
//       cuda/bench/gradient_variants.cu
//   ./gradient_variants
#include <cstdio>
#include <cstring>
#include <string>

#include "attention_launch.cuh"

namespace fuseline::bench {
namespace {

using T = gpu::bf16;
int failures = 0;

struct Form {
  std::string name;
  std::function<void(const Inputs<T>&, const Gradient<T>&, cudaStream_t)> launch;
};
using enum gpu::GradientForm;
std::string name_of(gpu::GradientForm form, int held) {
  const char* name = form == late ? "late" : "early";
  return name + (held > 0 ? ", " + std::to_string(held) + " held" : "");
}
template <int d, gpu::GradientForm form, int held>
Form keys() {
  return {name_of(form, held), [](const Inputs<T>& in, const Gradient<T>& g, cudaStream_t s) {
            launch_gradient_pass<T, d, true, T, form, held>(in, g, g.dk, g.dv, s);
          }};
}
template <int d, gpu::GradientForm form, int held>
Form queries() {
  return {name_of(form, held), [](const Inputs<T>& in, const Gradient<T>& g, cudaStream_t s) {
            launch_gradient_pass<T, d, false, float, form, held>(
                in, g, g.dq, static_cast<float*>(nullptr), s);
          }};
}

// Those that the assembler makes neither spills nor products in turn of.
template <int d>
std::vector<Form> forms(bool of_keys) {
  std::vector<Form> all;
  if (of_keys) {
    all.push_back(keys<d, late, 0>());
    if constexpr (d <= 112) all.push_back(keys<d, late, 1>());
    if constexpr (d <= 112) all.push_back(keys<d, early, 0>());
    if constexpr (d <= 96) all.push_back(keys<d, early, 1>());
    if constexpr (d <= 80) all.push_back(keys<d, early, 2>());
    return all;
  }
  all.push_back(queries<d, early, 0>());
  all.push_back(queries<d, early, 1>());
  if constexpr (d <= 112) all.push_back(queries<d, early, 2>());
  return all;
}

template <class X>
bool same_bits(const Buffer<X>& a, const std::vector<X>& b) {
  const std::vector<X> now = a.host();
  return std::memcmp(now.data(), b.data(), now.size() * sizeof(X)) == 0;
}

template <int d>
void time_forms(const Case& c) {
  const Inputs<T> in(c);
  const Buffer<T> dy(in.y_size()), dk(in.y_size()), dv(in.y_size());
  const Buffer<float> lse(in.sums()), delta(in.sums()), dq(in.y_size());
  fill_normal(delta, 6);
  launch_forward_sm90<T, d>(in, dy.data(), lse.data(), cudaStream_t{});
  fill_normal(dy, 5);
  const Gradient<T> g{dy.data(), lse.data(), delta.data(), dq.data(), dk.data(), dv.data()};
  for (const bool of_keys : {true, false}) {
    const std::vector<Form> all = forms<d>(of_keys);
    std::vector<T> first_dk, first_dv;
    std::vector<float> first_dq;
    std::vector<Contender> contenders;
    for (const Form& form : all) {
      dk.zero();
      dv.zero();
      dq.zero();
      form.launch(in, g, cudaStream_t{});
      FUSELINE_CUDA(cudaDeviceSynchronize());
      if (contenders.empty()) {
        first_dk = dk.host();
        first_dv = dv.host();
        first_dq = dq.host();
      } else if (!same_bits(dk, first_dk) || !same_bits(dv, first_dv) ||
                 !same_bits(dq, first_dq)) {
        ++failures;
        std::printf("%s: other bits\n", form.name.c_str());
      }
      contenders.push_back(
          {form.name, [&in, &g, &form](int, cudaStream_t s) { form.launch(in, g, s); }});
    }
    time_alternating(contenders, 1, 5, 15);
    std::printf("%-28s %s", c.name, of_keys ? "dk, dv" : "dq    ");
    for (std::size_t i = 0; i < all.size(); ++i)
      std::printf("  %s: %.1f us", all[i].name.c_str(), median(contenders[i].times_us));
    std::printf("\n");
  }
}

int run() {
  time_forms<64>({"B 1, T 2048, H 32, d 64", 64, 1, 32, 32, 2048, 2048, true});
  time_forms<64>({"B 1, T 10000, H 16, d 64", 64, 1, 16, 16, 10000, 10000, true});
  time_forms<64>({"B 1, T 2048, H 32/4, d 64", 64, 1, 32, 4, 2048, 2048, true});
  time_forms<80>({"B 1, T 2048, H 32, d 80", 80, 1, 32, 32, 2048, 2048, true});
  time_forms<96>({"B 1, T 2048, H 32, d 96", 96, 1, 32, 32, 2048, 2048, true});
  time_forms<96>({"B 1, T 1096, H 32, d 96", 96, 1, 32, 32, 1096, 1096, true});
  time_forms<112>({"B 1, T 2048, H 32, d 112", 112, 1, 32, 32, 2048, 2048, true});
  time_forms<128>({"B 1, T 2048, H 32, d 128", 128, 1, 32, 32, 2048, 2048, true});
  time_forms<128>({"B 1, T 8192, H 32, d 128", 128, 1, 32, 32, 8192, 8192, true});
  std::printf("%s\n", failures == 0 ? "all forms agree" : "FORMS DIFFER");
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fuseline::bench

int main() {
  try {
    return fuseline::bench::run();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gradient_variants: %s\n", problem.what());
    return 70;
  }
}
