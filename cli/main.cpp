#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "cli/app.h"

namespace {

constexpr const char* kNoMemory = "fuseline: not available: out of memory\n";

std::terminate_handler handler_before = nullptr;

std::atomic<bool> ran_out{false};  // an allocation failed

// What operator new calls where it gets no memory: there is none to be freed, so it throws.
void remember() {
  ran_out = true;
  throw std::bad_alloc();
}

// The destructor of nlohmann::json allocates, and so do functions of toml++ that may not throw.
// Where they get no memory, no handler of ours sees the exception, and what ends the program may
// not even know of one.
void end_without_memory() {
  bool memory = ran_out;
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    memory = true;
  } catch (...) {  // it is the other handler's
    memory = false;
  }
  if (memory) {
    const auto written = write(STDERR_FILENO, kNoMemory, std::strlen(kNoMemory));
    static_cast<void>(written);
    _exit(static_cast<int>(fuseline::ExitStatus::something_missing));
  }
  handler_before();
}

}  // namespace

int main(int argc, char** argv) {
  handler_before = std::set_terminate(end_without_memory);
  std::set_new_handler(remember);
  try {
    return fuseline::run_cli(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                             std::cout, std::cerr);
  } catch (const std::bad_alloc&) {  // before run_cli: it throws nothing
    std::fputs(kNoMemory, stderr);
    return static_cast<int>(fuseline::ExitStatus::something_missing);
  }
}
