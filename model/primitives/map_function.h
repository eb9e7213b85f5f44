// What a map is: everything that is known of a function of one or two numbers, said once in its own
// file of maps/. Programs hold a handle on it; nothing else lists maps.
#pragma once

#include "base/described.h"

namespace fuseline {

struct Matrix;  // model/primitives/tile_maths.h

// out[r, c] = f(a[r, c], b[r, c]) over out's rows and columns; those of a and b repeat.
struct MapTiles {
  const Matrix& a;
  const Matrix* b = nullptr;
  float constant = 0;
  Matrix& out;
};

// What a map computes on tiles, in fp32. Made of the function of numbers by of_one, of_two or
// of_one_and_constant (model/primitives/map_elements.h).
struct MapMaths {
  int operands = 1;
  bool constant = false;
  void (*apply)(const MapTiles&) = nullptr;
};

struct MapFunction {
  Fact<const char*> name;  // of its device function
  Fact<MapMaths> maths;
  // How a program shows it, with {} for each operand: "{} + {}"; null: as a call by its name.
  const char* text = nullptr;
  // Its word in the name of a kernel; null: its name.
  const char* step = nullptr;
  // The text of its device function, which kernels that call it bring along; it sees map_1, map_2
  // and the functions of numbers of cuda/kernels/epilogue/map.cuh, and serves all kinds of kernels.
  // Null: the function is there.
  const char* device = nullptr;
  // It takes an exponential, or more than that, of each element: epilogues that call it come in a
  // loop.
  bool exponential = false;
  // Instructions for each element: what its device function adds to the machine code of sm_90a
  // (CUDA 13.0) when a thread has 16 elements more, divided by 16.
  double instructions = 1;
  // A function that it computes on its way: of the same number, that one costs nothing more.
  const MapFunction* holds = nullptr;
};
using MapFn = Handle<MapFunction>;

}  // namespace fuseline
