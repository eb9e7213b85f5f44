// Machine code as text, by NVIDIA's own tools, and the lines of a source that instructions come
// from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuseline::cuda {

// A command that prints the machine code of the file that is its last word.
struct Disassembler {
  std::string command;  // for the shell
  std::string name;     // "nvdisasm"
};

// $FUSELINE_DISASSEMBLER, a command; else nvdisasm, else cuobjdump, each in $CUDA_HOME, $CUDA_PATH,
// /usr/local/cuda and $PATH. MissingError: none of them is here; the message says what to install.
Disassembler find_disassembler();

// MissingError with what the command said: it failed, or it is too old for the code.
std::string disassemble(const Disassembler& tool, const std::vector<char>& cubin);

// An instruction or a label, without what only says where it comes from.
struct MachineLine {
  std::string text;
  int source_line = 0;  // of the source; 0: of a header alone, or unknown
};

// Of PTX that was compiled with line numbers. `source`: the name that it was compiled under. What
// was inlined belongs to the line of the source that calls it.
std::vector<MachineLine> ptx_lines(std::string_view ptx, const std::string& source);

// Of what nvdisasm prints with line numbers. What cuobjdump prints has none.
std::vector<MachineLine> sass_lines(std::string_view text, const std::string& source);

}  // namespace fuseline::cuda
