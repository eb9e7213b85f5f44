// How the mainloop stands in a program's text: the same walks that primitives have.
#pragma once

#include <string_view>

#include "model/program.h"
#include "model/programs/syntax.h"

namespace fuseline {

// "y = a[M,K] · w[N,K]ᵀ". `transposed` writes or reads the sign behind an operand.
class MainloopSyntax : public Syntax {
 public:
  virtual void transposed(bool& on) = 0;
  virtual void times() = 0;                                        // " · "
  virtual void space(std::int64_t& rows, std::int64_t& cols) = 0;  // [2048, 4096]
  // "qkv[...]", or "q of qkv[...]" with the value of a prologue that takes its place.
  virtual void named_value_of(Value& v, Operand& o) = 0;
};

void gemm_syntax(GemmMainloop& m, Value& y, MainloopSyntax& line);
void attention_syntax(AttentionMainloop& m, Value& y, MainloopSyntax& line);
void attention_gradient_syntax(AttentionMainloop& m, Value& y, MainloopSyntax& line);
void scan_syntax(ScanMainloop& m, Value& y, MainloopSyntax& line);
void scan_gradient_syntax(ScanMainloop& m, Value& y, MainloopSyntax& line);
void stream_syntax(StreamMainloop& m, MainloopSyntax& line);  // behind "for each tile of"
void row_syntax(RowMainloop& m, MainloopSyntax& line);        // behind "for each row of"

}  // namespace fuseline
