// Launches of the attention kernels: tensor maps, grids, shared memory, workspaces.
#pragma once

#include "../kernels/attention/decode.cuh"
#include "../kernels/attention/forward_sm90.cuh"
#include "../kernels/attention/generic.cuh"
#include "../kernels/attention/gradient_sm90.cuh"
#include "attention_inputs.cuh"

namespace fuseline::bench {

// ---- Hopper ----

// Counters for one launch at a time.
inline gpu::Tickets tickets() {
  static const Buffer<gpu::u32> counters = [] {
    Buffer<gpu::u32> two(2);
    two.zero();
    return two;
  }();
  return {counters.data()};
}

template <class T, int d>
__global__ void __launch_bounds__(384, 1)
    forward_sm90_kernel(const __grid_constant__ gpu::AttentionForwardArgs<T> args) {
  gpu::attention_forward_sm90<T, d>(args);
}

template <class T, int d>
void launch_forward_sm90(const Inputs<T>& in, T* y, float* lse, cudaStream_t stream) {
  using Kernel = gpu::AttentionSm90<T, d>;
  gpu::AttentionForwardArgs<T> args;
  const auto map = [&](const T* data, int rows, int heads, long long ld, int box) {
    return matrix_map(data, rows, heads * d, static_cast<int>(ld), box, 64);
  };
  args.q = map(in.operands.q, in.q_rows(), in.shape.heads, in.operands.q_ld, Kernel::tile_rows);
  args.k =
      map(in.operands.k, in.kv_rows(), in.shape.kv_heads, in.operands.kv_ld, Kernel::block_keys);
  args.v =
      map(in.operands.v, in.kv_rows(), in.shape.kv_heads, in.operands.kv_ld, Kernel::block_keys);
  args.y = y;
  args.y_ld = in.shape.heads * d;
  args.log_sum_exp = lse;
  args.shape = in.shape;
  args.order = gpu::attention_order(in.shape, Kernel::tile_rows, d);
  args.tickets = tickets();
  static const bool once = (allow_shared(forward_sm90_kernel<T, d>, Kernel::shared_bytes), true);
  (void)once;
  const int blocks = std::min(args.order.items(), multiprocessors());
  forward_sm90_kernel<T, d>
      <<<static_cast<unsigned>(blocks), Kernel::threads, Kernel::shared_bytes, stream>>>(args);
  FUSELINE_CUDA(cudaGetLastError());
}

template <class T, int d, bool keys_stay, class Out, gpu::GradientForm form, int held>
__global__ void __launch_bounds__(384, 1)
    gradient_sm90_kernel(const __grid_constant__ gpu::AttentionGradientArgs<Out> args) {
  gpu::attention_gradient_sm90<T, d, keys_stay, Out, form, held>(args);
}

template <class T, int d, bool keys_stay, class Out,
          gpu::GradientForm form = gpu::gradient_form<d, keys_stay>,
          int held = gpu::tiles_in_registers<d, keys_stay>>
void launch_gradient_pass(const Inputs<T>& in, const Gradient<T>& g, Out* out_1, Out* out_2,
                          cudaStream_t stream) {
  using Kernel = gpu::AttentionGradientSm90<T, d, keys_stay, Out, form, held>;
  const auto& s = in.shape;
  gpu::AttentionGradientArgs<Out> args;
  const auto q_map = [&](const T* data, long long ld, int box) {
    return matrix_map(data, in.q_rows(), s.heads * d, static_cast<int>(ld), box, 64);
  };
  const auto kv_map = [&](const T* data, int box) {
    return matrix_map(data, in.kv_rows(), s.kv_heads * d, static_cast<int>(in.operands.kv_ld), box,
                      64);
  };
  const int q_box = keys_stay ? Kernel::block_rows : Kernel::tile_rows;
  const int kv_box = keys_stay ? Kernel::tile_rows : Kernel::block_rows;
  const gpu::TmaMap q[2] = {q_map(in.operands.q, in.operands.q_ld, q_box),
                            q_map(g.dy, s.heads * d, q_box)};
  const gpu::TmaMap kv[2] = {kv_map(in.operands.k, kv_box), kv_map(in.operands.v, kv_box)};
  args.stay_1 = keys_stay ? kv[0] : q[0];
  args.stay_2 = keys_stay ? kv[1] : q[1];
  args.move_1 = keys_stay ? q[0] : kv[0];
  args.move_2 = keys_stay ? q[1] : kv[1];
  args.log_sum_exp = g.lse;
  args.delta = g.delta;
  args.out_1 = out_1;
  args.out_2 = out_2;
  args.out_1_ld = args.out_2_ld = (keys_stay && !g.per_query_head ? s.kv_heads : s.heads) * d;
  args.shape = s;
  args.per_query_head = g.per_query_head;
  args.tickets = tickets();
  args.order = gpu::attention_gradient_order(s, Kernel::tile_rows, d, keys_stay, g.per_query_head);
  static const bool once =
      (allow_shared(gradient_sm90_kernel<T, d, keys_stay, Out, form, held>, Kernel::shared_bytes), true);
  (void)once;
  const int blocks = std::min(args.order.items(), multiprocessors());
  gradient_sm90_kernel<T, d, keys_stay, Out, form, held>
      <<<static_cast<unsigned>(blocks), Kernel::threads, Kernel::shared_bytes, stream>>>(args);
  FUSELINE_CUDA(cudaGetLastError());
}
template <class T, int d>
void launch_gradient_sm90(const Inputs<T>& in, const Gradient<T>& g, cudaStream_t stream) {
  launch_gradient_pass<T, d, true, T>(in, g, g.dk, g.dv, stream);
  launch_gradient_pass<T, d, false, float>(in, g, g.dq, static_cast<float*>(nullptr), stream);
}

// ---- any GPU ----

template <class T, int d>
__global__ void __launch_bounds__(128)
    decode_kernel(const __grid_constant__ gpu::AttentionDecodeArgs<T> args) {
  gpu::attention_decode<T, d>(args);
}

// What the splits of a decode launch leave for each other.
template <class T, int d>
struct DecodeWorkspace {
  int splits;
  Buffer<float> partial;
  Buffer<gpu::u32> arrivals;
  explicit DecodeWorkspace(const gpu::AttentionShape& s)
      : splits(gpu::decode_splits(s, slots())),
        partial(static_cast<std::size_t>(gpu::decode_partial_floats(s, splits, d))),
        arrivals(static_cast<std::size_t>(gpu::decode_tiles(s))) {
    arrivals.zero();
  }
  // Thread blocks that run at once.
  static int slots() {
    using Kernel = gpu::AttentionDecode<T, d>;
    allow_shared(decode_kernel<T, d>, Kernel::shared_bytes);
    int per_sm = 0;
    FUSELINE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &per_sm, decode_kernel<T, d>, Kernel::threads, Kernel::shared_bytes));
    return per_sm * multiprocessors();
  }
};

template <class T, int d>
void launch_decode(const Inputs<T>& in, T* y, float* lse, const DecodeWorkspace<T, d>& work,
                   cudaStream_t stream) {
  using Kernel = gpu::AttentionDecode<T, d>;
  const gpu::AttentionDecodeArgs<T> args{in.operands.q,
                                         in.operands.k,
                                         in.operands.v,
                                         in.operands.q_ld,
                                         in.operands.kv_ld,
                                         in.operands.kv_ld,
                                         in.shape.heads * d,
                                         y,
                                         lse,
                                         in.shape,
                                         work.splits,
                                         work.partial.data(),
                                         work.arrivals.data()};
  const int blocks = gpu::decode_tiles(in.shape) * work.splits;
  decode_kernel<T, d>
      <<<static_cast<unsigned>(blocks), Kernel::threads, Kernel::shared_bytes, stream>>>(args);
  FUSELINE_CUDA(cudaGetLastError());
}

template <class T, int d>
__global__ void __launch_bounds__(128, 2)
    forward_generic_kernel(const __grid_constant__ gpu::GenericForwardArgs<T> args) {
  gpu::attention_forward_generic<T, d>(args);
}
template <class T>
gpu::AttentionOperands<T> generic_operands(const Inputs<T>& in, const T* dy) {
  const auto& o = in.operands;
  return {o.q, o.k, o.v, dy, o.q_ld, o.kv_ld, o.kv_ld, in.shape.heads * in.d};
}
template <class T, int d>
void launch_forward_generic(const Inputs<T>& in, T* y, float* lse, cudaStream_t stream) {
  constexpr int bytes = gpu::generic_forward_bytes<T, d>;
  const gpu::GenericForwardArgs<T> args{
      generic_operands<T>(in, nullptr),     y, in.shape.heads * d, lse, in.shape,
      gpu::attention_order(in.shape, 64, d)};
  allow_shared(forward_generic_kernel<T, d>, bytes);
  forward_generic_kernel<T, d>
      <<<static_cast<unsigned>(args.order.items()), 128, bytes, stream>>>(args);
  FUSELINE_CUDA(cudaGetLastError());
}

template <class T, int d, gpu::AttentionGradientOf of, class Out>
__global__ void __launch_bounds__(128, 2)
    gradient_generic_kernel(const __grid_constant__ gpu::GenericGradientArgs<T, Out> args) {
  gpu::attention_gradient_generic<T, d, of>(args);
}
template <class T, int d, gpu::AttentionGradientOf of, class Out>
void launch_gradient_generic_of(const Inputs<T>& in, const Gradient<T>& g, Out* out,
                                cudaStream_t stream) {
  constexpr int bytes = gpu::generic_gradient_bytes<T, d>;
  const bool keys = of != gpu::AttentionGradientOf::q && !g.per_query_head;
  const gpu::GenericGradientArgs<T, Out> args{
      generic_operands<T>(in, g.dy),
      g.lse,
      g.delta,
      out,
      (keys ? in.shape.kv_heads : in.shape.heads) * d,
      in.shape,
      gpu::attention_gradient_order(in.shape, 64, d, of != gpu::AttentionGradientOf::q,
                                    g.per_query_head),
      g.per_query_head};
  allow_shared(gradient_generic_kernel<T, d, of, Out>, bytes);
  gradient_generic_kernel<T, d, of, Out>
      <<<static_cast<unsigned>(args.order.items()), 128, bytes, stream>>>(args);
  FUSELINE_CUDA(cudaGetLastError());
}
template <class T, int d>
void launch_gradient_generic(const Inputs<T>& in, const Gradient<T>& g, cudaStream_t stream) {
  using Of = gpu::AttentionGradientOf;
  launch_gradient_generic_of<T, d, Of::q>(in, g, g.dq, stream);
  launch_gradient_generic_of<T, d, Of::k>(in, g, g.dk, stream);
  launch_gradient_generic_of<T, d, Of::v>(in, g, g.dv, stream);
}

}  // namespace fuseline::bench
