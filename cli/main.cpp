#include <unistd.h>

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

// The destructor of nlohmann::json allocates. Where it gets no memory, no handler of ours sees the
// exception, because a destructor may not throw.
void end_without_memory() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    const auto written = write(STDERR_FILENO, kNoMemory, std::strlen(kNoMemory));
    static_cast<void>(written);
    _exit(static_cast<int>(fuseline::ExitStatus::something_missing));
  } catch (...) {  // it is the other handler's
  }
  handler_before();
}

}  // namespace

int main(int argc, char** argv) {
  handler_before = std::set_terminate(end_without_memory);
  try {
    return fuseline::run_cli(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                             std::cout, std::cerr);
  } catch (const std::bad_alloc&) {  // before run_cli: it throws nothing
    std::fputs(kNoMemory, stderr);
    return static_cast<int>(fuseline::ExitStatus::something_missing);
  }
}
