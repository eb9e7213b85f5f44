#include "cuda/driver/driver.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

#if FUSELINE_HAS_CUDA

#include "cuda/driver/driver_calls.h"
#include "cuda/driver/patience.h"

namespace fuseline::cuda {

namespace {

constexpr int kOldestMajor = 8;

template <class Handle>
Handle as(void* pointer) {
  return static_cast<Handle>(pointer);
}

int attribute(const DriverCalls& calls, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  calls.check(calls.device_attribute(&value, which, device), "reading the GPU's attributes");
  return value;
}

DeviceInfo describe(const DriverCalls& calls, CUdevice device) {
  DeviceInfo info;
  std::array<char, 256> name{};
  calls.check(calls.device_name(name.data(), static_cast<int>(name.size()), device),
              "reading the GPU's name");
  info.name = name.data();
  info.major = attribute(calls, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.minor = attribute(calls, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.multiprocessors = attribute(calls, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.l2 = Bytes(attribute(calls, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  info.shared_per_block =
      Bytes(attribute(calls, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  std::size_t memory = 0;
  calls.check(calls.device_memory(&memory, device), "reading the GPU's memory");
  info.memory = Bytes(static_cast<std::int64_t>(memory));
  int version = 0;
  calls.check(calls.driver_version(&version), "reading the driver's version");
  info.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  return info;
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::shared_ptr<const DriverCalls> calls, Bytes size)
    : calls_(std::move(calls)), size_(size) {
  CUdeviceptr address = 0;
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(size.value(), 1));
  const CUresult result = calls_->allocate(&address, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw MissingError(fmt::format("out of GPU memory: {} bytes cannot be had", size.value()));
  calls_->check(result, "allocating memory");
  address_ = address;
}

DeviceBuffer::~DeviceBuffer() {
  if (address_ != 0) (void)calls_->free(address_);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : calls_(std::move(other.calls_)),
      address_(std::exchange(other.address_, 0)),
      size_(std::exchange(other.size_, Bytes(0))) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(calls_, other.calls_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

void DeviceBuffer::fill(std::uint32_t word) {
  const auto bytes = static_cast<std::size_t>(size_.value());
  calls_->check(calls_->fill_words(address_, word, bytes / 4), "filling memory");
  if (bytes % 4 != 0)
    calls_->check(calls_->fill_bytes(address_ + bytes / 4 * 4,
                                     static_cast<unsigned char>(word & 0xff), bytes % 4),
                  "filling memory");
  // Our streams do not wait for the default one.
  calls_->check(calls_->synchronize_stream(nullptr), "filling memory");
}

void DeviceBuffer::upload(std::span<const std::byte> data, Bytes offset) {
  FUSELINE_ASSERT(offset.value() + static_cast<std::int64_t>(data.size()) <= size_.value(),
                  "data fits its buffer");
  calls_->check(
      calls_->upload(address_ + static_cast<CUdeviceptr>(offset.value()), data.data(), data.size()),
      "copying to the GPU");
  calls_->check(calls_->synchronize_stream(nullptr), "copying to the GPU");
}

void DeviceBuffer::download(std::span<std::byte> data, Bytes offset) const {
  FUSELINE_ASSERT(offset.value() + static_cast<std::int64_t>(data.size()) <= size_.value(),
                  "data fits its buffer");
  calls_->check(calls_->download(data.data(), address_ + static_cast<CUdeviceptr>(offset.value()),
                                 data.size()),
                "copying from the GPU");
}

Module::Module(std::shared_ptr<const DriverCalls> calls, const std::vector<char>& cubin,
               std::string name)
    : calls_(std::move(calls)), name_(std::move(name)) {
  CUmodule module = nullptr;
  calls_->check(calls_->load_module(&module, cubin.data()), "loading " + name_);
  handle_ = module;
}

Module::~Module() {
  if (handle_ != nullptr) (void)calls_->unload_module(as<CUmodule>(handle_));
}

Module::Module(Module&& other) noexcept
    : calls_(std::move(other.calls_)),
      handle_(std::exchange(other.handle_, nullptr)),
      name_(std::move(other.name_)),
      given_(std::move(other.given_)) {}

Module& Module::operator=(Module&& other) noexcept {
  std::swap(calls_, other.calls_);
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  std::swap(given_, other.given_);
  return *this;
}

Function Module::function(const std::string& name, unsigned shared_bytes) const {
  CUfunction handle = nullptr;
  calls_->check(calls_->get_function(&handle, as<CUmodule>(handle_), name.c_str()),
                fmt::format("finding {} in {}", name, name_));
  if (shared_bytes > 48U * 1024U)
    calls_->check(
        calls_->set_function_attribute(handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       static_cast<int>(shared_bytes)),
        fmt::format("giving {} {} bytes of shared memory", name, shared_bytes));
  given_.push_back(handle);
  Function function;
  function.handle_ = handle;
  function.name_ = name;
  return function;
}

bool Module::gave(const Function& function) const {
  return std::ranges::find(given_, function.handle()) != given_.end();
}

void Module::read_constant(const std::string& name, std::span<std::byte> value) const {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  calls_->check(calls_->get_global(&address, &size, as<CUmodule>(handle_), name.c_str()),
                fmt::format("finding {} in {}", name, name_));
  FUSELINE_ASSERT(size == value.size(), "the constant has the type that is asked for");
  calls_->check(calls_->download(value.data(), address, size), "reading " + name);
}

Stream::Stream(std::shared_ptr<const DriverCalls> calls) : calls_(std::move(calls)) {
  CUstream stream = nullptr;
  calls_->check(calls_->create_stream(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
  handle_ = stream;
}

Stream::~Stream() {
  if (handle_ != nullptr) (void)calls_->destroy_stream(as<CUstream>(handle_));
}

Stream::Stream(Stream&& other) noexcept
    : calls_(std::move(other.calls_)), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(calls_, other.calls_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Stream::launch(const Function& function, const LaunchShape& shape, std::span<void*> arguments,
                    bool overlaps) {
  CUlaunchConfig config{};
  config.gridDimX = shape.grid[0];
  config.gridDimY = shape.grid[1];
  config.gridDimZ = shape.grid[2];
  config.blockDimX = shape.block[0];
  config.blockDimY = shape.block[1];
  config.blockDimZ = shape.block[2];
  config.sharedMemBytes = shape.shared_bytes;
  config.hStream = as<CUstream>(handle_);
#if CUDA_VERSION >= 12030
  CUlaunchAttribute serialization{};
  serialization.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  serialization.value.programmaticStreamSerializationAllowed = 1;
  if (overlaps) {
    config.attrs = &serialization;
    config.numAttrs = 1;
  }
#else
  if (overlaps)
    throw MissingError(
        "fuseline was built with a CUDA toolkit older than 12.3: no launches that overlap");
#endif
  calls_->check(
      calls_->launch(&config, as<CUfunction>(function.handle()), arguments.data(), nullptr),
      fmt::format("launching {} with grid {}x{}x{}, block {}, {} bytes of shared memory",
                  function.name(), shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                  shape.shared_bytes));
}

void Stream::zero(std::uint64_t address, Bytes size) {
  calls_->check(calls_->fill_bytes_async(address, 0, static_cast<std::size_t>(size.value()),
                                         as<CUstream>(handle_)),
                "zeroing memory");
}

void Stream::begin_capture() {
  calls_->check(calls_->begin_capture(as<CUstream>(handle_), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                "recording a graph");
}

LaunchGraph Stream::end_capture() {
  CUgraph graph = nullptr;
  calls_->check(calls_->end_capture(as<CUstream>(handle_), &graph), "recording a graph");
  return {calls_, graph};
}

void Stream::launch(const LaunchGraph& graph) {
  calls_->check(calls_->launch_graph(as<CUgraphExec>(graph.handle()), as<CUstream>(handle_)),
                "launching a graph");
}

void Stream::synchronize(const std::string& doing) {
  wait_patiently(
      [&] {
        const CUresult result = calls_->query_stream(as<CUstream>(handle_));
        if (result == CUDA_ERROR_NOT_READY) return false;
        calls_->check(result, doing);
        return true;
      },
      doing);
}

LaunchGraph::LaunchGraph(std::shared_ptr<const DriverCalls> calls, void* graph)
    : calls_(std::move(calls)) {
  CUgraphExec exec = nullptr;
  const CUresult result = calls_->instantiate_graph(&exec, as<CUgraph>(graph), 0);
  (void)calls_->destroy_graph(as<CUgraph>(graph));
  calls_->check(result, "making a graph ready");
  exec_ = exec;
}

LaunchGraph::~LaunchGraph() {
  if (exec_ != nullptr) (void)calls_->destroy_graph_exec(as<CUgraphExec>(exec_));
}

LaunchGraph::LaunchGraph(LaunchGraph&& other) noexcept
    : calls_(std::move(other.calls_)), exec_(std::exchange(other.exec_, nullptr)) {}

LaunchGraph& LaunchGraph::operator=(LaunchGraph&& other) noexcept {
  std::swap(calls_, other.calls_);
  std::swap(exec_, other.exec_);
  return *this;
}

Event::Event(std::shared_ptr<const DriverCalls> calls) : calls_(std::move(calls)) {
  CUevent event = nullptr;
  calls_->check(calls_->create_event(&event, CU_EVENT_DEFAULT), "making an event");
  handle_ = event;
}

Event::~Event() {
  if (handle_ != nullptr) (void)calls_->destroy_event(as<CUevent>(handle_));
}

Event::Event(Event&& other) noexcept
    : calls_(std::move(other.calls_)), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(calls_, other.calls_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Event::record(const Stream& stream) {
  calls_->check(calls_->record_event(as<CUevent>(handle_), as<CUstream>(stream.handle())),
                "recording an event");
}

void Event::record_in_graph(const Stream& stream) {
  calls_->check(calls_->record_event_with_flags(as<CUevent>(handle_), as<CUstream>(stream.handle()),
                                                CU_EVENT_RECORD_EXTERNAL),
                "recording an event in a graph");
}

Seconds Event::since(const Event& start) const {
  calls_->check(calls_->synchronize_event(as<CUevent>(handle_)), "waiting for an event");
  float milliseconds = 0;
  calls_->check(
      calls_->elapsed_time(&milliseconds, as<CUevent>(start.handle_), as<CUevent>(handle_)),
      "reading the time between events");
  return Seconds(static_cast<double>(milliseconds) * 1e-3);
}

Device::Device(int ordinal) {
  calls_ = std::make_shared<const DriverCalls>();
  const CUresult started = calls_->init(0);
  int count = 0;
  if (started == CUDA_ERROR_NO_DEVICE ||
      (started == CUDA_SUCCESS && calls_->device_count(&count) == CUDA_SUCCESS && count == 0))
    throw MissingError("the NVIDIA driver finds no GPU on this machine");
  if (started != CUDA_SUCCESS)
    throw MissingError("the NVIDIA driver does not start: " + calls_->describe(started));
  if (ordinal < 0 || ordinal >= count)
    throw MissingError(fmt::format("no GPU {} on this machine, which has {}", ordinal, count));
  calls_->check(calls_->device_get(&device_, ordinal), "choosing the GPU");
  info_ = describe(*calls_, device_);
  if (info_.major < kOldestMajor)
    throw MissingError(fmt::format(
        "{} has compute capability {}.{}: kernels are written for 8.0 (Ampere) and newer",
        info_.name, info_.major, info_.minor));
  CUcontext context = nullptr;
  calls_->check(calls_->retain_context(&context, device_), "opening the GPU");
  calls_->check(calls_->set_context(context), "opening the GPU");
}

Device::~Device() {
  if (calls_ != nullptr) (void)calls_->release_context(device_);
}

Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;

Bytes Device::free_memory() const {
  std::size_t free = 0;
  std::size_t total = 0;
  calls_->check(calls_->memory_info(&free, &total), "asking for free memory");
  return Bytes(static_cast<std::int64_t>(free));
}

DeviceBuffer Device::allocate(Bytes size) const {
  if (const Bytes free = free_memory(); size > free)
    throw MissingError(fmt::format("out of GPU memory: {} bytes needed, {} bytes free",
                                   size.value(), free.value()));
  return {calls_, size};
}

Module Device::load(const std::vector<char>& cubin, const std::string& name) const {
  return {calls_, cubin, name};
}

Stream Device::stream() const { return Stream(calls_); }

Event Device::event() const { return Event(calls_); }

int Device::blocks_at_once(const Function& function, int threads, unsigned shared_bytes) const {
  int blocks = 0;
  calls_->check(
      calls_->blocks_at_once(&blocks, as<CUfunction>(function.handle()), threads, shared_bytes),
      "asking how many blocks of " + function.name() + " run at once");
  return blocks;
}

int Device::clusters_at_once(const Function& function, const LaunchShape& shape,
                             int cluster) const {
#if CUDA_VERSION >= 12000
  CUlaunchAttribute of_cluster{};
  of_cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  of_cluster.value.clusterDim.x = static_cast<unsigned>(cluster);
  of_cluster.value.clusterDim.y = of_cluster.value.clusterDim.z = 1;
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(cluster);
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = shape.block[0];
  config.blockDimY = shape.block[1];
  config.blockDimZ = shape.block[2];
  config.sharedMemBytes = shape.shared_bytes;
  config.attrs = &of_cluster;
  config.numAttrs = 1;
  int clusters = 0;
  calls_->check(calls_->clusters_at_once(&clusters, as<CUfunction>(function.handle()), &config),
                "asking how many clusters of " + function.name() + " run at once");
  return clusters;
#else
  (void)function, (void)shape, (void)cluster;
  throw MissingError("fuseline was built with a CUDA toolkit older than 12: no clusters");
#endif
}

}  // namespace fuseline::cuda

#endif
