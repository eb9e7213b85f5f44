#include "sim/selection/saved_prediction.h"

#include <nlohmann/json.hpp>

#include "base/data_files.h"
#include "base/error.h"
#include "base/json_text.h"
#include "model/activation_formats/stored_activation.h"
#include "sim/report/json_output.h"

namespace fuseline {

namespace {

using nlohmann::json;

constexpr std::int64_t kMostCounted = 1'000'000'000'000'000'000;  // bytes and FLOPs
constexpr double kMostMicroseconds = 1e15;                        // 30 years

// Reads typed members of a JSON object; errors name file and path within it.
class JsonReader {
 public:
  JsonReader(const json& value, std::string file, std::string where)
      : value_(value), file_(std::move(file)), where_(std::move(where)) {}

  [[nodiscard]] bool has(const char* key) const {
    return value_.is_object() && value_.contains(key);
  }
  [[nodiscard]] std::string text(const char* key) const {
    const json& v = member(key, "a text");
    if (!v.is_string()) fail(key, v.dump(), "is not a text", "a text");
    return v.get<std::string>();
  }
  [[nodiscard]] std::int64_t whole(const char* key, std::int64_t most = kMostCounted) const {
    const json& v = member(key, "a whole number");
    if (!v.is_number_integer() || v.get<double>() < 0 ||
        v.get<double>() > static_cast<double>(most)) {
      fail(key, v.dump(), "is not such a number",
           "a whole number from 0 to " + std::to_string(most));
    }
    return v.get<std::int64_t>();
  }
  [[nodiscard]] double positive(const char* key) const {
    const json& v = member(key, "a number");
    if (!v.is_number() || !(v.get<double>() > 0) || v.get<double>() > kMostMicroseconds) {
      fail(key, v.dump(), "is not such a number", "a number above 0, at most 1e15");
    }
    return v.get<double>();
  }
  [[nodiscard]] std::vector<JsonReader> list(const char* key) const {
    const json& v = member(key, "a list");
    if (!v.is_array()) fail(key, v.dump(), "is not a list", "a list");
    std::vector<JsonReader> out;
    for (std::size_t i = 0; i < v.size(); ++i) {
      out.emplace_back(v[i], file_, where_ + key + "[" + std::to_string(i) + "].");
    }
    return out;
  }
  [[noreturn]] void fail(const char* key, const std::string& value, const std::string& message,
                         const std::string& allowed) const {
    throw InputError({.file = file_,
                      .field = where_ + key,
                      .value = value,
                      .message = message,
                      .allowed = allowed});
  }

 private:
  const json& member(const char* key, const char* allowed) const {
    if (!value_.is_object() || !value_.contains(key)) fail(key, "", "is missing", allowed);
    return value_.at(key);
  }

  const json& value_;
  std::string file_;
  std::string where_;  // "predictions[2]."
};

// "bf16" where the file has none: the type came later than the schema.
Dtype saved_dtype(const JsonReader& reader) {
  if (!reader.has("dtype")) return Dtype::bf16;
  const std::string text = reader.text("dtype");
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    if (text == name_of(dtype)) return dtype;
  }
  reader.fail("dtype", text, "there is no such type", "bf16, fp16, fp32");
}

// Files without number formats have no such fields.
Formats saved_formats(const JsonReader& reader, Dtype plain) {
  Formats formats;
  const auto read = [&](const char* field, auto& format, auto parse) {
    if (!reader.has(field)) return;
    const std::string text = reader.text(field);
    try {
      format = parse(text, field, name_of(plain));
    } catch (const InputError& error) {
      reader.fail(field, text, error.problem().message, error.problem().allowed);
    }
  };
  read("weights", formats.weights, parse_stored_weight);
  read("activations", formats.activations, parse_stored_activation);
  read("kv", formats.cache, parse_stored_cache);
  return formats;
}

Phase read_phase(const JsonReader& reader) {
  const std::string text = reader.text("phase");
  for (const Phase phase : {Phase::forward, Phase::train, Phase::decode}) {
    if (text == name_of(phase)) return phase;
  }
  reader.fail("phase", text, "there is no such phase", "forward, train, decode");
}

KernelKind parse_kind(const JsonReader& reader) {
  const std::string text = reader.text("kind");
  std::string allowed;
  for (const KernelKind kind : all_kernel_kinds()) {
    if (text == name_of(kind)) return kind;
    allowed += (allowed.empty() ? "" : ", ") + std::string(name_of(kind));
  }
  reader.fail("kind", text, "there is no such kind", allowed);
}

PlanEstimate read_estimate(const JsonReader& reader) {
  PlanEstimate e;
  e.policy = reader.text("policy");
  e.time = microseconds(reader.positive("time_us"));
  e.flops = Flops(reader.whole("flops"));
  e.hbm_read = Bytes(reader.whole("hbm_read_bytes"));
  e.hbm_write = Bytes(reader.whole("hbm_write_bytes"));
  e.l2 = Bytes(reader.whole("l2_bytes"));
  e.limits.compulsory = Bytes(reader.whole("hbm_compulsory_bytes"));
  e.launches = reader.whole("launches");
  for (const JsonReader& k : reader.list("kernels")) {
    KernelEstimate kernel;
    kernel.name = k.text("name");
    kernel.kind = parse_kind(k);
    kernel.time = microseconds(k.positive("time_us"));
    kernel.flops = Flops(k.whole("flops"));
    kernel.hbm_read = Bytes(k.whole("hbm_read_bytes"));
    kernel.hbm_write = Bytes(k.whole("hbm_write_bytes"));
    kernel.l2 = Bytes(k.whole("l2_bytes"));
    e.kernels.push_back(std::move(kernel));
  }
  return e;
}

}  // namespace

SavedPredictions load_predictions(const std::string& path) {
  const json value = parse_json(read_input_file(path, Bytes(std::int64_t{64} << 20)), path);
  const JsonReader reader(value, path, "");
  if (const std::string schema = reader.text("schema"); schema != kPredictionSchema) {
    reader.fail("schema", schema, "is another kind of file", kPredictionSchema);
  }
  BlockCase block{.model = reader.text("model"), .execution = {}, .workload = {}};
  block.workload.phase = read_phase(reader);
  block.workload.batch = reader.whole("batch", kLargestDimension);
  block.workload.seq = reader.whole("seq", kLargestDimension);
  block.workload.context = reader.whole("context", kLargestDimension);
  block.workload.dtype = saved_dtype(reader);
  block.workload.formats = saved_formats(reader, block.workload.dtype);
  SavedPredictions out{.gpu = reader.text("gpu"), .list = {}};
  for (const JsonReader& p : reader.list("predictions")) {
    out.list.push_back({block, read_estimate(p)});
    out.list.back().block.execution = out.list.back().estimate.policy;
  }
  return out;
}

}  // namespace fuseline
