#include "tests/cli/made_traces.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline::test {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json edges(const std::string& triple) {
  json out = json::array();
  std::string digits;
  for (const char c : triple) {
    if (c >= '0' && c <= '9') digits += c;
    if ((c == ',' || c == ')') && !digits.empty()) {
      out.push_back(std::stoi(digits));
      digits.clear();
    }
  }
  return out;
}

}  // namespace

std::vector<MadeLaunch> model_run(const MeasuredTrace& block, int layers, int times) {
  std::vector<MadeLaunch> out;
  double now = 1000;
  const auto launch = [&](const std::string& name, const std::string& grid, double us) {
    out.push_back({name, grid.empty() ? "(1, 1, 1)" : grid, now, us});
    now += us + 1;
  };
  for (int run = 0; run < times; ++run) {
    const double slower = 1 + run / 100.0;
    launch("void at::native::vectorized_gather_kernel<16, long>(char*, char*)", "", 3);
    for (int layer = 0; layer < layers; ++layer)
      for (const MeasuredKernel& k : block.kernels)
        launch(k.kernel, k.grid, to_us(k.time) * slower);
    launch("nvjet_sm90_tst_head_of_the_model", "(2, 66, 1)", 400);
    launch("[CUDA memcpy Device-to-Host]", "", 2);
    now += 5000;
  }
  return out;
}

std::string as_kineto(const std::vector<MadeLaunch>& launches) {
  json events = json::array();
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"args", {{"name", "python"}}}});
  events.push_back({{"ph", "X"},
                    {"cat", "cpu_op"},
                    {"name", "aten::linear"},
                    {"ts", 990.5},
                    {"dur", 12.25},
                    {"args", {{"Input Dims", {{1, 2}, {3}}}, {"device", 7}}}});
  for (const MadeLaunch& m : launches) {
    const bool memory = m.name.find("memcpy") != std::string::npos;
    events.push_back({{"ph", "X"},
                      {"cat", memory ? "gpu_memcpy" : "kernel"},
                      {"name", m.name},
                      {"pid", 0},
                      {"tid", 7},
                      {"ts", m.begin},
                      {"dur", m.duration},
                      {"args",
                       {{"device", 0},
                        {"stream", 7},
                        {"grid", edges(m.grid)},
                        {"block", {128, 1, 1}},
                        {"est. achieved occupancy %", 40}}}});
  }
  // The profiler writes in no order of time.
  std::reverse(events.begin(), events.end());
  return json{{"schemaVersion", 1},
              {"deviceProperties", {{{"id", 0}, {"name", "NVIDIA H200"}, {"numSms", 132}}}},
              {"traceEvents", events},
              {"displayTimeUnit", "ms"}}
      .dump();
}

std::string as_nsys_csv(const std::vector<MadeLaunch>& launches) {
  std::string out =
      "Processing [made.sqlite] with [cuda_gpu_trace.py]...\n\n"
      "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem "
      "(MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n";
  for (const MadeLaunch& m : launches) {
    const json g = edges(m.grid);
    const bool memory = m.name.find("memcpy") != std::string::npos;
    std::string name = m.name;
    for (std::size_t at = 0; (at = name.find('"', at)) != std::string::npos; at += 2)
      name.insert(at, "\"");
    out += fmt::format(
        "{:.0f},{:.0f},1,{},{}NVIDIA H200 (0),1,,7,\"{}\"\n", m.begin * 1e3, m.duration * 1e3,
        memory ? std::string(",,,,")
               : fmt::format("{},{},{},128,1", g[0].get<int>(), g[1].get<int>(), g[2].get<int>()),
        memory ? ",,,,2.000,8.000,Device,Pageable," : "1,96,0.000,0.200,,,,,", name);
  }
  return out;
}

std::string as_nsys_sqlite(const std::vector<MadeLaunch>& launches, const std::string& name) {
  std::string sql =
      "BEGIN; CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);"
      "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
      "contextId INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER, "
      "shortName "
      "INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, "
      "blockZ "
      "INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, "
      "streamId INTEGER, bytes INTEGER);";
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const MadeLaunch& m = launches[i];
    const json g = edges(m.grid);
    // A clock of nanoseconds since 1970: a double would lose its last digits.
    const std::int64_t begin = 1'760'000'000'123'456'789 + std::llround(m.begin * 1e3),
                       end = begin + std::llround(m.duration * 1e3);
    if (m.name.find("memcpy") != std::string::npos) {
      sql += fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({}, {}, 0, 7, 100);",
                         begin, end);
      continue;
    }
    std::string quoted = m.name;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 2)
      quoted.insert(at, "'");
    sql += fmt::format(
        "INSERT INTO StringIds VALUES ({0}, '{1}'); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
        "({2}, {3}, 0, 1, 7, {0}, {0}, {0}, {4}, {5}, {6}, 128, 1, 1);",
        i + 1, quoted, begin, end, g[0].get<int>(), g[1].get<int>(), g[2].get<int>());
  }
  const std::string path = temporary_file(name, "");
  fs::remove(path);
  std::ofstream(path + ".sql") << sql << "COMMIT;";
  const std::string command =
      "python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
      "d.executescript(open(sys.argv[1] + \".sql\").read()); d.close()' " +
      path;
  return std::system(command.c_str()) == 0 ? path : std::string();
}

}  // namespace fuseline::test
