// Stochastic rounding: NEURON_RT_STOCHASTIC_ROUNDING_EN. What an operator computes in float32 goes up or down to the
// neighbours in half precision with the probability of its distance to them.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "device.h"
#include "numerics.h"

namespace neuronqa {
namespace {

using at::Tensor;

std::atomic<uint64_t> drawn{0};

// SplitMix64 over a counter: the same seed gives the same roundings.
uint64_t draw() {
  uint64_t z = settings().rounding_seed + 0x9E3779B97F4A7C15U * (drawn.fetch_add(1) + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

// Adds a random number below the last bit that is kept, and cuts: the carry goes up as often as it should.
float dithered(float value, int dropped) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7F800000U) == 0x7F800000U) {
    return value;
  }
  const uint32_t mask = (1U << dropped) - 1;
  bits = (bits + (static_cast<uint32_t>(draw()) & mask)) & ~mask;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

bool half_precision(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
      (value.toTensor().scalar_type() == at::kBFloat16 || value.toTensor().scalar_type() == at::kHalf);
}

bool names_a_dtype(const c10::OperatorHandle& op, const Stack& stack, size_t first) {
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == "dtype" && !stack[first + i].isNone()) {
      return true;
    }
  }
  return false;
}

struct Widened {
  size_t argument;
  Tensor narrow;
  Tensor wide;
};

}  // namespace

Tensor rounded_stochastically(const Tensor& wide, c10::ScalarType dtype) {
  auto result = wide.contiguous().clone();
  const int dropped = dtype == at::kBFloat16 ? 16 : 13;
  auto* values = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) {
    values[i] = dithered(values[i], dropped);
  }
  return result.to(dtype);
}

void run_with_stochastic_rounding(const c10::OperatorHandle& op, Stack& stack, const Kernel& kernel) {
  const auto& arguments = op.schema().arguments();
  const auto first = stack.size() - arguments.size();
  std::vector<Widened> widened;
  if (!names_a_dtype(op, stack, first)) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (half_precision(stack[first + i])) {
        const auto narrow = stack[first + i].toTensor();
        widened.push_back({i, narrow, narrow.to(at::kFloat)});
        stack[first + i] = widened.back().wide;
      }
    }
  }
  kernel(op, stack);
  if (widened.empty()) {
    return;
  }
  const auto dtype = widened.front().narrow.scalar_type();
  for (const auto& item : widened) {
    const auto* alias = arguments[item.argument].alias_info();
    if (alias != nullptr && alias->isWrite()) {
      if (item.narrow.sizes() != item.wide.sizes()) {
        item.narrow.resize_(item.wide.sizes());
      }
      item.narrow.copy_(rounded_stochastically(item.wide, dtype));
    }
  }
  for (size_t i = stack.size() - op.schema().returns().size(); i < stack.size(); ++i) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined() || stack[i].toTensor().scalar_type() != at::kFloat) {
      continue;
    }
    const auto result = stack[i].toTensor();
    const auto own = std::find_if(
        widened.begin(), widened.end(), [&](const Widened& item) { return item.wide.is_same(result); });
    stack[i] = own != widened.end() ? own->narrow : rounded_stochastically(result, dtype);
  }
}

}  // namespace neuronqa
