// Storage types: conversion between fp32 and bf16, fp16. Rounding is to nearest, ties to even;
// subnormals are kept; what is too large becomes infinity; NaN stays NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/config/config.h"

namespace fuseline::executor {

std::uint16_t float_to_bf16(float value);
float bf16_to_float(std::uint16_t bits);
std::uint16_t float_to_fp16(float value);
float fp16_to_float(std::uint16_t bits);

// An fp32 number that rounds to bf16 and fp16 as `value` does: the nearest below in magnitude, its
// last bit set when `value` lies above it (round to odd). Rounds fp64 to storage without rounding
// twice. For fp32 itself use a cast.
float round_to_odd(double value);

// Reads or writes `count` adjacent elements of the storage type; fp32 is copied. Types of 8 bits
// and less saturate: what is too large becomes their largest number. Of types of 4 bits two
// elements share a byte, the first in its low half: begin and count are those of whole bytes.
void widen(Dtype type, const std::byte* stored, float* values, std::int64_t count);
void narrow(Dtype type, const float* values, std::byte* stored, std::int64_t count);
void narrow(Dtype type, const double* values, std::byte* stored, std::int64_t count);

// The number nearest to `value` that the type holds.
float rounded_to(Dtype type, float value);

}  // namespace fuseline::executor
