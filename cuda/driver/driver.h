// The CUDA driver, opened while the program runs: one binary also starts where there is none. Every
// class here frees what it holds. Errors: MissingError where a driver, a GPU or memory is missing;
// InternalError where a call of ours fails (a kernel's fault appears at the next synchronize()).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace fuseline::cuda {

class DriverCalls;  // the functions of libcuda

struct DeviceInfo {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  Bytes memory, l2;
  Bytes shared_per_block;  // the largest a kernel may ask for
  std::string driver;      // newest CUDA version that the driver runs: "13.0"
};

// Memory of the GPU. Empty after a move.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::shared_ptr<const DriverCalls> calls, Bytes size);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] Bytes size() const { return size_; }
  void fill(std::uint32_t word);  // every 4 bytes; the rest of an odd size with its low byte
  void upload(std::span<const std::byte> data, Bytes offset = Bytes(0));
  void download(std::span<std::byte> data, Bytes offset = Bytes(0)) const;

 private:
  std::shared_ptr<const DriverCalls> calls_;
  std::uint64_t address_ = 0;
  Bytes size_;
};

struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  bool in_order = false;  // begins behind all before it even where launches overlap
};

class Function;

// Loaded machine code.
class Module {
 public:
  Module(std::shared_ptr<const DriverCalls> calls, const std::vector<char>& cubin,
         std::string name);
  ~Module();
  Module(Module&& other) noexcept;
  Module& operator=(Module&& other) noexcept;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // An extern "C" kernel that may use so much shared memory.
  [[nodiscard]] Function function(const std::string& name, unsigned shared_bytes) const;
  // Whether function() gave it.
  [[nodiscard]] bool gave(const Function& function) const;
  // The bytes of a constant of the module.
  void read_constant(const std::string& name, std::span<std::byte> value) const;

 private:
  std::shared_ptr<const DriverCalls> calls_;
  void* handle_ = nullptr;
  std::string name_;
  mutable std::vector<void*> given_{};  // functions
};

class Function {
 public:
  [[nodiscard]] void* handle() const { return handle_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  friend class Module;
  void* handle_ = nullptr;
  std::string name_;
};

class LaunchGraph;

class Stream {
 public:
  explicit Stream(std::shared_ptr<const DriverCalls> calls);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // `arguments`: addresses of the kernel's parameters, in order. `overlaps`: the kernel may begin
  // before the one before it has ended, and waits itself (kernels/launch_order.cuh).
  void launch(const Function& function, const LaunchShape& shape, std::span<void*> arguments,
              bool overlaps = false);
  void zero(std::uint64_t address, Bytes size);
  // What is launched until end_capture() becomes a graph instead of running.
  void begin_capture();
  [[nodiscard]] LaunchGraph end_capture();
  void launch(const LaunchGraph& graph);
  // InternalError when a kernel before it faulted; `doing` is part of its message, and of what a
  // long wait says (cuda/driver/patience.h).
  void synchronize(const std::string& doing);
  [[nodiscard]] void* handle() const { return handle_; }

 private:
  std::shared_ptr<const DriverCalls> calls_;
  void* handle_ = nullptr;
};

// Launches recorded once and replayed without the host's work for each.
class LaunchGraph {
 public:
  ~LaunchGraph();
  LaunchGraph(LaunchGraph&& other) noexcept;
  LaunchGraph& operator=(LaunchGraph&& other) noexcept;
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;
  [[nodiscard]] void* handle() const { return exec_; }

 private:
  friend class Stream;
  LaunchGraph(std::shared_ptr<const DriverCalls> calls, void* graph);
  std::shared_ptr<const DriverCalls> calls_;
  void* exec_ = nullptr;
};

class Event {
 public:
  explicit Event(std::shared_ptr<const DriverCalls> calls);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(const Stream& stream);
  // While the stream captures: every replay of the graph records the event at this place.
  void record_in_graph(const Stream& stream);
  // Time from `start` to this event; waits for it.
  [[nodiscard]] Seconds since(const Event& start) const;

 private:
  std::shared_ptr<const DriverCalls> calls_;
  void* handle_ = nullptr;
};

// A matrix in row-major order, or with rows = 0 a vector, as the bulk copy engine sees it: the 128
// bytes that kernels take as a __grid_constant__ parameter.
struct alignas(64) TensorMap {
  std::uint64_t words[16];
};
enum class TensorType : std::uint8_t { bf16, fp16, fp32, byte };
struct TensorMapShape {
  TensorType type = TensorType::bf16;
  std::uint64_t address = 0;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_bytes = 0;      // distance of two rows; a multiple of 16
  int box_rows = 0, box_cols = 0;  // what one copy moves; at most 256 each
  int swizzle = 128;               // bytes: 0, 32, 64, 128
  int l2_promotion = 256;          // bytes that L2 fetches at once: 0, 64, 128, 256
  // Many such matrices: `beside` of them beside_bytes apart, `stacked` times stacked_bytes apart,
  // multiples of 16. beside = 0: one. One copy moves the boxes of `box_beside` neighbours.
  std::int64_t beside = 0, beside_bytes = 0;
  int box_beside = 1;
  std::int64_t stacked = 1, stacked_bytes = 0;
};

// One GPU of this machine, its context current in the thread that made it.
class Device {
 public:
  // MissingError: no driver, no GPU, or one older than compute capability 8.0, in words.
  explicit Device(int ordinal = 0);
  // One that other functions stand for (recorded_driver.h).
  Device(std::shared_ptr<const DriverCalls> calls, DeviceInfo info)
      : calls_(std::move(calls)), info_(std::move(info)) {}
  ~Device();
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const DeviceInfo& info() const { return info_; }
  [[nodiscard]] Bytes free_memory() const;
  // MissingError with need and free when there is not enough.
  [[nodiscard]] DeviceBuffer allocate(Bytes size) const;
  [[nodiscard]] Module load(const std::vector<char>& cubin, const std::string& name) const;
  [[nodiscard]] Stream stream() const;
  // Thread blocks of a kernel that run at once on one multiprocessor.
  [[nodiscard]] int blocks_at_once(const Function& function, int threads,
                                   unsigned shared_bytes) const;
  // Clusters of so many thread blocks, of a kernel that was compiled for them, that run at once on
  // the whole GPU: where a group of multiprocessors is no multiple, fewer than would fill it.
  [[nodiscard]] int clusters_at_once(const Function& function, const LaunchShape& shape,
                                     int cluster) const;
  [[nodiscard]] Event event() const;
  [[nodiscard]] TensorMap tensor_map(const TensorMapShape& shape) const;

 private:
  std::shared_ptr<const DriverCalls> calls_;
  DeviceInfo info_;
  int device_ = 0;
};

}  // namespace fuseline::cuda
