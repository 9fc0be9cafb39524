// The device's arithmetic where it is not the host's: matrix products in tiles, functions from tables, rounding.
#pragma once

#include "operator.h"

namespace neuronqa {

// The device's own kernel for the operator named so; empty if the host's will do, or if the settings ask for none.
Kernel numeric_kernel(const std::string& name);

// Runs `kernel` on the arguments widened to float32, and rounds what it leaves stochastically to what the arguments
// were. Calls without a half-precision argument, and those that name a dtype, run as they are.
void run_with_stochastic_rounding(const c10::OperatorHandle& op, Stack& stack, const Kernel& kernel);

// `wide` (float32), each element rounded up or down with the probability of its distance.
at::Tensor rounded_stochastically(const at::Tensor& wide, c10::ScalarType dtype);

}  // namespace neuronqa
