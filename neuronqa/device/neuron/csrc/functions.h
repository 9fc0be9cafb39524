// The functions of the scalar engine: piecewise polynomials over a range, as NKI documents them.
//
// Published are the ranges (SDK nki API activation tables), not the error. The tables here are cubic and keep to a few
// roundings of float32 inside the range; finite values beyond it are taken as the nearest value of the range.
#pragma once

#include <cstdint>

namespace neuronqa::functions {

float exp(float x);
float log(float x);
float sqrt(float x);
float rsqrt(float x);
float reciprocal(float x);
float tanh(float x);
float erf(float x);
float sin(float x);  // after range reduction, which the compiler is taken to add
float cos(float x);
float sigmoid(float x);
float silu(float x);
float gelu(float x);
float gelu_by_tanh(float x);
float log1p_exp(float x);

float silu_slope(float x);
float gelu_slope(float x);
float gelu_by_tanh_slope(float x);

}  // namespace neuronqa::functions
